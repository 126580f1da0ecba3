/* SPDX-License-Identifier: Apache-2.0 */
/* Locks, shared with the inside.
 *
 * POSIX locks belong to a process (the front end's lock owner) and a file, not to a descriptor, and all
 * callers are one process here. So each owner has an open file description of its own for each file it locks,
 * and the kernel's open-file-description locks on that conflict with everybody else's, inside and outside,
 * and never with the owner's own. It is gone, with all its locks, when the owner closes any descriptor of the
 * file (flush), as POSIX wants it.
 *
 * A read-only handle gets a read-only description (to open a file for writing has effects of its own, such as
 * a copy-up). If the same owner later locks through a writable handle, it gets a second one, used from then
 * on; a range that it wants to lock for writing is first given up on the other. Another process may slip in
 * at that moment: the price for something that hardly any program does.
 *
 * flock(2) locks belong to the open file description, which a handle is: they are put on the handle's own.
 *
 * The kernel tells of each close before it returns (flush), but of the last one of an open file behind its back
 * (release), with which flock's and open file descriptions' locks go. Who does not wait for a lock would find it taken
 * by one who has closed the file: so he waits for that release. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "fs/files/files_priv.h"

struct lock_owner {
	struct cube_list in_node;
	uint64_t id;
	pid_t pid;                          /* who set the latest, for whoever asks; 0: not known */
	const struct cube_files_handle *by; /* through which */
	struct cube_ffd *reads, *writes;    /* NULL: not opened yet */
	uint32_t kept[2];                   /* their records (kept.c) */
	struct cube_files_space *space;
};

/* The records first: a descriptor's number is another file's right after. */
static void lock_owner_free(struct lock_owner *o)
{
	cube_fkept_lock_gone(o->space, o->kept[0]);
	cube_fkept_lock_gone(o->space, o->kept[1]);
	cube_ffd_unref(o->reads);
	cube_ffd_unref(o->writes);
	cube_free(o);
}

static struct lock_owner *lock_find_locked(struct cube_fnode *n, uint64_t id)
{
	cube_list_each (l, &n->lock_owners) {
		struct lock_owner *o = cube_list_entry(l, struct lock_owner, in_node);

		if (o->id == id)
			return o;
	}
	return NULL;
}

/* What the owner has; either may be NULL. */
static void lock_get(const struct cube_files_handle *h, uint64_t id, struct cube_ffd **reads,
		     struct cube_ffd **writes)
{
	struct cube_files_space *s = h->n->tree->space;
	struct lock_owner *o;

	(void)pthread_mutex_lock(&s->locks);
	o = lock_find_locked(h->n, id);
	*reads = o != NULL ? cube_ffd_ref(o->reads) : NULL;
	*writes = o != NULL ? cube_ffd_ref(o->writes) : NULL;
	(void)pthread_mutex_unlock(&s->locks);
}

/* @fd becomes the owner's, unless another thread was faster: then *fd is that one's. */
static int lock_put(struct cube_fnode *n, uint64_t id, bool writes, uint32_t record, struct cube_ffd **fd)
{
	struct cube_files_space *s = n->tree->space;
	struct lock_owner *o, *fresh = cube_calloc(1, sizeof(*fresh));
	struct cube_ffd **slot, *old;

	if (fresh == NULL)
		return -ENOMEM;
	(void)pthread_mutex_lock(&s->locks);
	o = lock_find_locked(n, id);
	if (o == NULL) {
		o = cube_steal(fresh);
		o->id = id;
		o->space = s;
		o->kept[0] = o->kept[1] = CUBE_KEEP_NONE;
		cube_list_push(&n->lock_owners, &o->in_node);
	}
	slot = writes ? &o->writes : &o->reads;
	old = *fd;
	if (*slot == NULL) {
		*slot = cube_ffd_ref(old);
		o->kept[writes] = record != CUBE_KEEP_NONE ? record : cube_fkept_lock(n, id, old->fd, writes);
	}
	*fd = cube_ffd_ref(*slot);
	(void)pthread_mutex_unlock(&s->locks);
	cube_ffd_unref(old);
	cube_free(fresh);
	return 0;
}

/* Through which handle the owner's locks are set, and by whom. */
static void lock_note(const struct cube_files_handle *h, uint64_t id, pid_t pid)
{
	struct cube_files_space *s = h->n->tree->space;
	struct lock_owner *o;

	(void)pthread_mutex_lock(&s->locks);
	o = lock_find_locked(h->n, id);
	if (o != NULL) {
		o->by = h;
		o->pid = pid;
	}
	(void)pthread_mutex_unlock(&s->locks);
}

/* Opens the owner's description. */
static int lock_open(struct cube_files_handle *h, uint64_t id, bool writes, struct cube_ffd **ret)
{
	int fd, r = cube_fstep_reopen(h->n->tree->space, h->fd->fd, writes ? O_RDWR : O_RDONLY, &fd);

	if (r < 0)
		return r;
	*ret = cube_ffd_new(fd);
	if (*ret == NULL)
		return -ENOMEM;
	r = lock_put(h->n, id, writes, CUBE_KEEP_NONE, ret);
	if (r == 0)
		r = cube_fhandle_ok(h); /* detached meanwhile: what was opened may be nothing */
	if (r < 0)
		cube_ffd_unref(cube_steal(*ret));
	return r;
}

int cube_flock_restore(struct cube_fnode *n, uint64_t owner, bool writes, int fd, uint32_t record)
{
	cube_auto_ffd f = cube_ffd_wrap(fd);

	return f == NULL ? -ENOMEM : lock_put(n, owner, writes, record, &f);
}

static int lock_set(const struct cube_ffd *f, const struct flock *lock, int cmd)
{
	struct flock l = *lock;

	l.l_pid = 0; /* must be, for these */
	return fcntl(f->fd, cmd, &l) < 0 ? -errno : 0;
}

static int lock_check(const struct cube_files_handle *h, const struct flock *lock)
{
	int access = h->flags & O_ACCMODE, r = cube_fhandle_ok(h);

	if (r < 0)
		return r;
	if (h->is_dir || h->fd == NULL)
		return -EBADF;
	switch (lock->l_type) {
	case F_RDLCK:
		return access == O_WRONLY ? -EBADF : 0;
	case F_WRLCK:
		return access == O_RDONLY ? -EBADF : 0;
	case F_UNLCK:
		return 0;
	default:
		return -EINVAL;
	}
}

/* A system call that may wait, for lockwait.c. */
struct lock_try {
	const struct cube_ffd *fd;
	const struct flock *lock;
	int op;
};

static int lock_try_range(void *ctx)
{
	const struct lock_try *t = ctx;

	return lock_set(t->fd, t->lock, F_OFD_SETLKW);
}

static int lock_try_flock(void *ctx)
{
	const struct lock_try *t = ctx;

	return flock(t->fd->fd, t->op) < 0 ? -errno : 0;
}

/* The owner has no lock, or loses what it has with its descriptions. */
static void lock_forget(const struct cube_files_handle *h, uint64_t owner)
{
	struct cube_files_space *s = h->n->tree->space;
	struct lock_owner *o;

	(void)pthread_mutex_lock(&s->locks);
	o = lock_find_locked(h->n, owner);
	if (o != NULL)
		cube_list_remove(&o->in_node);
	(void)pthread_mutex_unlock(&s->locks);
	if (o != NULL)
		lock_owner_free(o);
}

static int lock_give_up_reads(const struct cube_ffd *reads, const struct flock *lock)
{
	struct flock l = *lock;

	l.l_type = F_UNLCK;
	return lock_set(reads, &l, F_OFD_SETLK);
}

static int lock_unlock(struct cube_files_handle *h, uint64_t owner, const struct flock *lock)
{
	cube_auto_ffd reads = NULL;
	cube_auto_ffd writes = NULL;
	int r = 0;

	lock_get(h, owner, &reads, &writes);
	if (reads != NULL)
		r = lock_set(reads, lock, F_OFD_SETLK);
	if (writes != NULL && r == 0)
		r = lock_set(writes, lock, F_OFD_SETLK);
	if (r == 0 && lock->l_whence == SEEK_SET && lock->l_start == 0 && lock->l_len == 0)
		lock_forget(h, owner);
	return r;
}

static bool lock_has(const struct cube_files_handle *h, uint64_t owner, const struct cube_ffd *f)
{
	struct cube_files_space *s = h->n->tree->space;
	const struct lock_owner *o;
	bool has;

	(void)pthread_mutex_lock(&s->locks);
	o = lock_find_locked(h->n, owner);
	has = o != NULL && (o->reads == f || o->writes == f);
	(void)pthread_mutex_unlock(&s->locks);
	return has;
}

/* *ret_kept: the owner has the description that was locked; else another thread of his gave all up meanwhile, and this
 * lock, which came behind that, is about to go with it. */
static int lock_take(struct cube_files_handle *h, uint64_t owner, const struct flock *lock, bool wait,
		     struct cube_cancel *cancel, bool *ret_kept)
{
	cube_auto_ffd reads = NULL;
	cube_auto_ffd writes = NULL;
	struct lock_try t = {.lock = lock};
	bool writable;
	int r = 0;

	lock_get(h, owner, &reads, &writes);
	writable = writes != NULL || (h->flags & O_ACCMODE) != O_RDONLY;
	if (writable && writes == NULL)
		r = lock_open(h, owner, true, &writes);
	else if (!writable && reads == NULL)
		r = lock_open(h, owner, false, &reads);
	if (r == 0)
		lock_note(h, owner, lock->l_pid);
	if (r == 0 && writable && reads != NULL && lock->l_type == F_WRLCK)
		r = lock_give_up_reads(reads, lock);
	if (r < 0)
		return r;
	t.fd = writable ? writes : reads;
	r = wait ? cube_flockwait(h->n->tree->space, cancel, lock_try_range, &t)
		 : lock_set(t.fd, lock, F_OFD_SETLK);
	*ret_kept = lock_has(h, owner, t.fd);
	return cube_fhandle_ok(h) < 0 ? -ESTALE : r;
}

int cube_files_setlk(struct cube_files_handle *h, uint64_t owner, const struct flock *lock, bool wait,
		     struct cube_cancel *cancel)
{
	bool kept = true;
	int r = lock_check(h, lock);

	if (r < 0)
		return r;
	if (lock->l_type == F_UNLCK)
		return lock_unlock(h, owner, lock);
	do
		r = lock_take(h, owner, lock, wait, cancel, &kept);
	while (r == 0 && !kept);
	return r;
}

/* The @index-th owner's description and process; false: there are no more. */
static bool lock_owner_at(struct cube_fnode *n, unsigned index, struct cube_ffd **ret, pid_t *ret_pid)
{
	struct cube_files_space *s = n->tree->space;
	bool found = false;

	(void)pthread_mutex_lock(&s->locks);
	cube_list_each (l, &n->lock_owners) {
		const struct lock_owner *o = cube_list_entry(l, struct lock_owner, in_node);

		if (index-- > 0)
			continue;
		*ret = cube_ffd_ref(o->writes != NULL ? o->writes : o->reads);
		*ret_pid = o->pid;
		found = true;
		break;
	}
	(void)pthread_mutex_unlock(&s->locks);
	return found;
}

/* Which of our owners has @lock, of which the kernel says only that it is a description's: the one in whose way
 * nothing is there. 0: one inside, or several share it. */
static pid_t lock_holder(struct cube_fnode *n, const struct flock *lock)
{
	pid_t pid = 0;

	for (unsigned i = 0;; i++) {
		struct flock l = {.l_type = F_WRLCK, .l_start = lock->l_start, .l_len = lock->l_len};
		cube_auto_ffd fd = NULL;

		if (!lock_owner_at(n, i, &fd, &pid))
			return 0;
		if (fd != NULL && fcntl(fd->fd, F_OFD_GETLK, &l) == 0 && l.l_type == F_UNLCK)
			return pid;
	}
}

/* The holder's process is not known (0 then) where it holds such a lock inside. */
int cube_files_getlk(struct cube_files_handle *h, uint64_t owner, struct flock *lock)
{
	cube_auto_ffd reads = NULL;
	cube_auto_ffd writes = NULL;
	struct cube_ffd *fd;
	int r = cube_fhandle_ok(h);

	if (r == 0 && (h->is_dir || h->fd == NULL))
		r = -EBADF;
	if (r < 0)
		return r;
	lock_get(h, owner, &reads, &writes);
	fd = writes != NULL ? writes : reads != NULL ? reads : h->fd;
	lock->l_pid = 0;
	r = (int)cube_fhandle_result(h, fcntl(fd->fd, F_OFD_GETLK, lock));
	if (r == 0 && lock->l_type != F_UNLCK && lock->l_pid < 0)
		lock->l_pid = lock_holder(h->n, lock);
	return r;
}

int cube_files_flock(struct cube_files_handle *h, uint64_t owner, int op, struct cube_cancel *cancel)
{
	struct lock_try t = {.fd = h->fd, .op = op};
	int r = cube_fhandle_ok(h);

	(void)owner;
	if (r == 0 && h->fd == NULL)
		r = -EBADF;
	if (r < 0)
		return r;
	r = (op & LOCK_NB) != 0 || (op & ~LOCK_NB) == LOCK_UN
		    ? lock_try_flock(&t)
		    : cube_flockwait(h->n->tree->space, cancel, lock_try_flock, &t);
	return cube_fhandle_ok(h) < 0 ? -ESTALE : r;
}

/* Is another open of the file about to be released? @forget: none is from now on. */
static bool lock_closing(const struct cube_files_handle *h, bool forget)
{
	struct cube_files_space *s = h->n->tree->space;
	bool any = false;

	(void)pthread_rwlock_rdlock(&s->lock);
	cube_list_each (l, &h->n->handles) {
		struct cube_files_handle *o = cube_list_entry(l, struct cube_files_handle, in_node);

		if (o == h)
			continue;
		any = any || atomic_load(&o->closing);
		if (forget)
			atomic_store(&o->closing, false);
	}
	(void)pthread_rwlock_unlock(&s->lock);
	return any;
}

unsigned long cube_files_lock_seen(struct cube_files_handle *h)
{
	struct cube_files_space *s = h->n->tree->space;
	unsigned long seen;

	(void)pthread_mutex_lock(&s->locks);
	seen = s->n_released;
	(void)pthread_mutex_unlock(&s->locks);
	return seen;
}

/* A release is counted as begun before its handle can no more be found, and as done when its locks have gone: so whatever
 * has gone since @seen, or is about to go, is met in one of the three. */
bool cube_files_lock_soon(struct cube_files_handle *h, unsigned long *seen, uint64_t until)
{
	const struct timespec at = {.tv_sec = (time_t)(until / 1000000000u),
				    .tv_nsec = (long)(until % 1000000000u)};
	struct cube_files_space *s = h->n->tree->space;
	bool closing = lock_closing(h, false), soon;
	int r = 0;

	(void)pthread_mutex_lock(&s->locks);
	soon = closing || s->n_released != *seen || s->n_releasing != s->n_released;
	while (soon && s->n_released == *seen && r == 0)
		r = pthread_cond_clockwait(&s->released, &s->locks, CLOCK_MONOTONIC, &at);
	*seen = s->n_released;
	(void)pthread_mutex_unlock(&s->locks);
	if (r != 0 && closing)
		(void)lock_closing(h, true);
	return soon && r == 0 && cube_clock_mono() < until;
}

void cube_flock_releasing(struct cube_files_space *s)
{
	(void)pthread_mutex_lock(&s->locks);
	s->n_releasing++;
	(void)pthread_mutex_unlock(&s->locks);
}

void cube_flock_released(struct cube_files_space *s)
{
	(void)pthread_mutex_lock(&s->locks);
	s->n_released++;
	(void)pthread_cond_broadcast(&s->released);
	(void)pthread_mutex_unlock(&s->locks);
}

int cube_files_flush(struct cube_files_handle *h, uint64_t lock_owner)
{
	int r = cube_fhandle_ok(h), fd;

	atomic_store(&h->closing, true);
	lock_forget(h, lock_owner);
	if (r < 0 || h->fd == NULL || h->n->mount->local)
		return r;
	/* a file server may have kept an error for the close of a descriptor */
	fd = fcntl(h->fd->fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : (int)cube_fhandle_result(h, close(fd));
}

/* An owner that is no process but an open file: no flush tells of its end. (What a process has set through @h went
 * with its own close of it.) */
void cube_flock_drop_of(const struct cube_files_handle *h)
{
	struct cube_files_space *s = h->n->tree->space;
	struct lock_owner *o;

	do {
		o = NULL;
		(void)pthread_mutex_lock(&s->locks);
		cube_list_each (l, &h->n->lock_owners) {
			o = cube_list_entry(l, struct lock_owner, in_node);
			if (o->by == h)
				break;
			o = NULL;
		}
		if (o != NULL)
			cube_list_remove(&o->in_node);
		(void)pthread_mutex_unlock(&s->locks);
		if (o != NULL)
			lock_owner_free(o);
	} while (o != NULL);
}

void cube_flock_drop_all(struct cube_fnode *n)
{
	struct cube_files_space *s = n->tree->space;
	struct cube_list *l;

	do {
		(void)pthread_mutex_lock(&s->locks);
		l = cube_list_pop(&n->lock_owners);
		(void)pthread_mutex_unlock(&s->locks);
		if (l != NULL)
			lock_owner_free(cube_list_entry(l, struct lock_owner, in_node));
	} while (l != NULL);
}
