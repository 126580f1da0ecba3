/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel may keep of names and attributes, and how it comes to be told that it is old.
 *
 * A directory of which a name is to be kept is watched (inotify) before the name is looked at, and from then on for as
 * long as its node lives: each name that comes, goes or becomes another's is an event. A file of which the attributes
 * are to be kept is watched itself, before they are looked at, and once: whatever happens to it, by whichever of its
 * names, ends that, and they are kept again when they were asked for again. The watch is on the inode that all who
 * are inside have too, so nothing that they do is missed, with one exception: a page of a mapping is written without
 * any event. So attributes are kept only where nothing runs inside (cube_files_quiet) at the time when they are looked
 * at; whoever starts later opens a file before he can map it, and that is an event. Nor are they while somebody has the
 * file open for writing outside, nor once somebody outside could map it without our seeing when that ends
 * (cube_files_mapped).
 *
 * An event is there before the system call that caused it returns. So cube_files_tell, called before somebody is told
 * what was done inside, finds all of them: it is the barrier.
 *
 * Not watched, and so not kept: volumes and binds (others than the sandbox change them), file systems of other
 * machines, the tree's root (the kernel has another number for it), and what is more than WATCH_MAX nodes.
 *
 * Locks: `telling` is held while events are read and told, so that who finds none knows that all were told. `lock`
 * covers the watches; it is taken inside of `telling` and of space.lock, and nothing is taken inside of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/log.h"
#include "fs/files/files_priv.h"

#define WATCH_MAX    65536u
#define WATCH_BUFFER (64 << 10)
#define WATCH_NAMES  (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR)
#define WATCH_CAME   (IN_CREATE | IN_MOVED_TO)
#define WATCH_ATTR   (IN_OPEN | IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF | IN_ONESHOT)

/* One node's share in the watch of its inode: a directory that was moved inside has two. */
struct cube_fwatched {
	struct cube_fwatched *next; /* of the same watch */
	struct cube_fnode *n;
	int wd;
};

struct cube_fwatch {
	struct cube_files_watcher to;
	pthread_mutex_t telling, lock;
	int fd;
	struct cube_imap *by_wd; /* -> the first of them */
	atomic_uint n;
	unsigned max;
	atomic_bool is_short; /* the last that was to be watched could not be */
	_Alignas(struct inotify_event) char events[WATCH_BUFFER]; /* under `telling` */
};

/* What is to be told, with no lock of the table held. */
struct watch_news {
	struct watch_news *next;
	uint64_t id;
	bool is_name, again;
	char name[];
};

/* ---- the table of watches ---- */

/* Takes @e off its watch, which ends with its last one if it has not by itself. */
static void watch_drop_locked(struct cube_fwatch *w, struct cube_fwatched *e, bool ended)
{
	struct cube_fwatched *first = cube_imap_get(w->by_wd, (uint64_t)e->wd), **at = &first;

	while (*at != NULL && *at != e)
		at = &(*at)->next;
	if (*at != NULL) {
		*at = e->next;
		(void)cube_imap_take(w->by_wd, (uint64_t)e->wd);
		if (first != NULL && cube_imap_put(w->by_wd, (uint64_t)e->wd, first) == 0)
			ended = true; /* others have it */
		if (!ended)
			(void)inotify_rm_watch(w->fd, e->wd);
	}
	atomic_store(&e->n->watched, NULL);
	atomic_fetch_sub(&w->n, 1);
	cube_free(e);
}

void cube_fwatch_gone_locked(struct cube_fnode *n)
{
	struct cube_fwatch *w = n->tree->space->watch;
	struct cube_fwatched *e;

	if (w == NULL || atomic_load(&n->watched) == NULL)
		return;
	(void)pthread_mutex_lock(&w->lock);
	e = atomic_load(&n->watched);
	if (e != NULL)
		watch_drop_locked(w, e, false);
	(void)pthread_mutex_unlock(&w->lock);
}

static bool watch_add_locked(struct cube_fwatch *w, struct cube_fnode *n, int wd)
{
	struct cube_fwatched *e = cube_calloc(1, sizeof(*e)), *first = cube_imap_take(w->by_wd, (uint64_t)wd);

	if (e == NULL || cube_imap_put(w->by_wd, (uint64_t)wd, e) < 0) {
		if (first == NULL)
			(void)inotify_rm_watch(w->fd, wd);
		else
			(void)cube_imap_put(w->by_wd, (uint64_t)wd, first);
		cube_free(e);
		return false;
	}
	*e = (struct cube_fwatched){.next = first, .n = n, .wd = wd};
	atomic_store(&n->watched, e);
	atomic_fetch_add(&w->n, 1);
	return true;
}

static bool watch_may(const struct cube_fnode *n)
{
	return n->mount->watchable && !n->is_void && !atomic_load(&n->tree->detached) &&
	       !atomic_load(&n->tree->unkept);
}

/* False: it is not watched. *ret_news: it was before, and what happened to it since is to be told. */
static bool watch_node_locked(struct cube_fwatch *w, struct cube_fnode *n, int fd, uint32_t mask,
			      bool *ret_news)
{
	struct cube_fwatched *e = atomic_load(&n->watched);
	char path[CUBE_FD_PATH];
	int wd;

	if (!watch_may(n))
		return false;
	if (e == NULL && atomic_load(&w->n) >= w->max) {
		atomic_store(&w->is_short, true);
		return false;
	}
	if (mask == WATCH_ATTR && !atomic_load(&n->tree->quiet))
		return false; /* whoever begins to run inside clears it under this lock first */
	wd = inotify_add_watch(w->fd, cube_fstep_path(fd, path), mask);
	atomic_store(&w->is_short, wd < 0 && errno == ENOSPC);
	if (wd < 0 || (e != NULL && e->wd == wd))
		return wd >= 0;
	*ret_news = e != NULL;
	if (e != NULL)
		watch_drop_locked(w, e, true);
	return watch_add_locked(w, n, wd);
}

static bool watch_node(struct cube_fnode *n, int fd, uint32_t mask)
{
	struct cube_fwatch *w = n->tree->space->watch;
	bool news = false, ok;

	(void)pthread_mutex_lock(&w->lock);
	ok = watch_node_locked(w, n, fd, mask, &news);
	(void)pthread_mutex_unlock(&w->lock);
	if (ok)
		atomic_store(&n->tree->keeps, true);
	if (news)
		w->to.attr(w->to.ctx, n->id);
	return ok;
}

bool cube_fwatch_names(struct cube_fnode *dir, int fd)
{
	if (dir->tree->space->watch == NULL || atomic_load(&dir->tree->unkept))
		return false;
	if (dir->mount->constant) {
		atomic_store(&dir->tree->keeps, true);
		return true;
	}
	if (dir->tree->root == dir || !watch_may(dir))
		return false;
	return atomic_load(&dir->watched) != NULL || watch_node(dir, fd, WATCH_NAMES);
}

static bool watch_is_quiet(const struct cube_fnode *n)
{
	const struct cube_files_watcher *to = &n->tree->space->watch->to;

	if (atomic_load(&n->tree->quiet))
		return true;
	if (!atomic_load(&n->tree->asked) && !atomic_exchange(&n->tree->asked, true))
		to->ask(to->ctx, n->id);
	return false;
}

/* Who has it open for writing outside may have it mapped, or have had it so and still have the mapping. */
static bool watch_is_written(struct cube_fnode *n)
{
	struct cube_files_space *s = n->tree->space;
	bool written = atomic_load(&n->mapped);

	(void)pthread_rwlock_rdlock(&s->lock);
	cube_list_each (l, &n->handles)
		if ((cube_list_entry(l, struct cube_files_handle, in_node)->flags & O_ACCMODE) != O_RDONLY)
			written = true;
	(void)pthread_rwlock_unlock(&s->lock);
	return written;
}

int cube_fwatch_stat(struct cube_fnode *n, struct stat *ret)
{
	cube_auto_ffd fd = NULL;

	if (n->tree->space->watch == NULL || n->is_void || atomic_load(&n->tree->unkept))
		return 0;
	if (n->mount->constant)
		return 1;
	if (!S_ISREG(n->object.type) || !watch_may(n) || watch_is_written(n))
		return 0;
	if (atomic_load(&n->watched) != NULL) /* since then nobody has opened it */
		return cube_freach_stat(n, ret) == 0;
	if (!watch_is_quiet(n) || cube_freach(n, &fd) < 0 || !watch_node(n, fd->fd, WATCH_ATTR))
		return 0;
	return !watch_is_written(n) && fstat(fd->fd, ret) == 0;
}

/* ---- telling ---- */

static bool news_add(struct watch_news ***end, uint64_t id, const char *name, uint32_t mask)
{
	size_t size = name != NULL ? strlen(name) + 1 : 1;
	struct watch_news *x = cube_malloc(sizeof(*x) + size);

	if (x == NULL)
		return false;
	*x = (struct watch_news){
		.id = id, .is_name = name != NULL, .again = (mask & (IN_CREATE | IN_ISDIR)) == IN_CREATE};
	memcpy(x->name, name != NULL ? name : "", size);
	**end = x;
	*end = &x->next;
	return true;
}

/* False: something was lost. */
static bool watch_event_locked(struct cube_fwatch *w, const struct inotify_event *v, struct watch_news ***end)
{
	struct cube_fwatched *e = w->max == 0 ? NULL : cube_imap_get(w->by_wd, (uint64_t)v->wd), *next;
	bool ok = (v->mask & IN_Q_OVERFLOW) == 0;

	for (; e != NULL && ok; e = next) {
		const bool dir = cube_fnode_is_dir(e->n);

		next = e->next;
		if (dir && v->len > 0 &&
		    cube_fowns_event(&e->n->tree->space->owns, e->n->id, v->name,
				     (v->mask & WATCH_CAME) != 0))
			continue;
		if (dir && v->len > 0)
			ok = news_add(end, e->n->id, v->name, v->mask);
		else if (!dir)
			ok = news_add(end, e->n->id, NULL, v->mask);
		if (!dir || (v->mask & (IN_IGNORED | IN_UNMOUNT)) != 0)
			watch_drop_locked(w, e, true);
	}
	return ok;
}

static bool watch_events(struct cube_fwatch *w, size_t len, struct watch_news ***end)
{
	bool ok = true;

	(void)pthread_mutex_lock(&w->lock);
	for (size_t at = 0; at < len;) {
		const struct inotify_event *v = (const void *)(w->events + at);

		ok = watch_event_locked(w, v, end) && ok;
		at += sizeof(*v) + v->len;
	}
	(void)pthread_mutex_unlock(&w->lock);
	return ok;
}

static int watch_take_all(void *ctx, uint64_t wd, void *value)
{
	struct cube_fwatch *w = ctx;
	struct cube_fwatched *e, *next;

	for (e = value; e != NULL; e = next) {
		next = e->next;
		atomic_store(&e->n->watched, NULL);
		atomic_fetch_sub(&w->n, 1);
		cube_free(e);
	}
	(void)inotify_rm_watch(w->fd, (int)wd);
	return 0;
}

/* More happened than the kernel has room for: all is old. */
static void watch_lost(struct cube_files_space *s)
{
	struct cube_fwatch *w = s->watch;
	struct cube_imap *fresh = cube_imap_new();

	cube_log(CUBE_LOG_INFO, "files",
		 "too much has happened at once: all that is kept is asked for again");
	(void)pthread_mutex_lock(&w->lock);
	(void)cube_imap_each(w->by_wd, watch_take_all, w);
	if (fresh != NULL) {
		cube_imap_free(w->by_wd);
		w->by_wd = fresh;
	} else {
		w->max = 0; /* what is in the map is no more: nothing is kept from now on */
	}
	(void)pthread_mutex_unlock(&w->lock);
	cube_fwatch_tell_all(s, NULL);
}

static void watch_tell(struct cube_files_space *s, struct watch_news *x)
{
	const struct cube_files_watcher *to = &s->watch->to;
	struct watch_news *next;

	for (; x != NULL; x = next) {
		next = x->next;
		if (!x->is_name)
			to->attr(to->ctx, x->id);
		else
			to->name(to->ctx, x->id, x->name, x->again);
		cube_free(x);
	}
}

void cube_fwatch_tell_name(struct cube_files_space *s, uint64_t dir, const char *name)
{
	s->watch->to.name(s->watch->to.ctx, dir, name, false);
}

/* What is there now, in bytes: what comes while we read is another one's, and who goes on for ever inside shall not keep
 * us here. */
static size_t tell_waiting(const struct cube_fwatch *w)
{
	int n = 0;

	return ioctl(w->fd, FIONREAD, &n) < 0 || n <= 0 ? sizeof(w->events) : (size_t)n;
}

void cube_files_tell(struct cube_files_space *s)
{
	struct cube_fwatch *w = s->watch;

	if (w == NULL)
		return;
	(void)pthread_mutex_lock(&w->telling);
	for (size_t waiting = tell_waiting(w), done = 0; done < waiting;) {
		struct watch_news *news = NULL, **end = &news;
		ssize_t n = read(w->fd, w->events, sizeof(w->events));
		bool ok;

		if (n <= 0)
			break;
		done += (size_t)n;
		ok = watch_events(w, (size_t)n, &end);
		watch_tell(s, news);
		if (!ok)
			watch_lost(s);
	}
	(void)pthread_mutex_unlock(&w->telling);
}

/* ---- whole trees ---- */

/* The nodes of a tree, or of all; NULL: none, or no memory. */
static uint64_t *watch_list(struct cube_files_space *s, const struct cube_files *f, size_t *ret_n)
{
	uint64_t *ids;

	*ret_n = 0;
	(void)pthread_rwlock_rdlock(&s->lock);
	ids = s->by_id.count == 0 ? NULL : cube_malloc(s->by_id.count * sizeof(*ids));
	for (size_t i = 0; ids != NULL && i < s->by_id.n_slots; i++) {
		for (struct cube_fhash_link *l = s->by_id.slots[i]; l != NULL; l = l->next) {
			const struct cube_fnode *n = cube_container_of(l, struct cube_fnode, by_id);

			if (f == NULL || n->tree == f)
				ids[(*ret_n)++] = n->id;
		}
	}
	(void)pthread_rwlock_unlock(&s->lock);
	return ids;
}

static void watch_each(struct cube_files_space *s, const struct cube_files *f,
		       void (*each)(void *ctx, uint64_t id), void *ctx)
{
	size_t n;
	uint64_t *ids = watch_list(s, f, &n);

	for (size_t i = 0; i < n; i++)
		each(ctx, ids[i]);
	cube_free(ids);
}

void cube_fwatch_tell_all(struct cube_files_space *s, const struct cube_files *f)
{
	watch_each(s, f, s->watch->to.attr, s->watch->to.ctx);
	s->watch->to.all(s->watch->to.ctx);
}

void cube_files_each(struct cube_files_space *s, void (*each)(void *ctx, uint64_t id), void *ctx)
{
	watch_each(s, NULL, each, ctx);
}

void cube_fwatch_tree_gone(struct cube_files *f)
{
	struct cube_fwatch *w = f->space->watch;

	if (w == NULL)
		return;
	/* who looks at whether it may be watched does so under this lock */
	(void)pthread_mutex_lock(&w->lock);
	(void)pthread_mutex_unlock(&w->lock);
	if (atomic_load(&f->keeps))
		cube_fwatch_tell_all(f->space, f);
}

void cube_files_keep_nothing(struct cube_files *f)
{
	atomic_store(&f->unkept, true);
	cube_fwatch_tree_gone(f);
}

void cube_files_mapped(struct cube_files_handle *h)
{
	atomic_store(&h->n->mapped, true);
}

void cube_files_quiet(struct cube_files *f, bool quiet)
{
	struct cube_fwatch *w = f->space->watch;

	if (w == NULL)
		return;
	(void)pthread_mutex_lock(&w->lock);
	if (!quiet)
		atomic_fetch_add(&f->runs, 1);
	atomic_store(&f->quiet, quiet);
	atomic_store(&f->asked, false);
	(void)pthread_mutex_unlock(&w->lock);
}

bool cube_files_watch_short(const struct cube_files_space *s)
{
	return s->watch != NULL && atomic_load(&s->watch->is_short);
}

/* ---- its beginning and end ---- */

int cube_files_watch(struct cube_files_space *s, const struct cube_files_watcher *to)
{
	struct cube_fwatch *w = cube_calloc(1, sizeof(*w));

	if (w == NULL)
		return -ENOMEM;
	w->to = *to;
	w->max = WATCH_MAX;
	w->by_wd = cube_imap_new();
	w->fd = w->by_wd == NULL ? -1 : inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->fd < 0) {
		int code = w->by_wd == NULL ? -ENOMEM : -errno;

		cube_imap_free(w->by_wd);
		cube_free(w);
		return code;
	}
	(void)pthread_mutex_init(&w->telling, NULL);
	(void)pthread_mutex_init(&w->lock, NULL);
	s->watch = w;
	return w->fd;
}

void cube_fwatch_free(struct cube_fwatch *w)
{
	if (w == NULL)
		return;
	(void)close(w->fd);
	cube_imap_free(w->by_wd);
	(void)pthread_mutex_destroy(&w->telling);
	(void)pthread_mutex_destroy(&w->lock);
	cube_free(w);
}
