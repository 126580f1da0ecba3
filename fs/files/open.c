/* SPDX-License-Identifier: Apache-2.0 */
/* Handles: open, create, opendir, release. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "fs/files/files_priv.h"

/* What of open(2)'s flags means something for a file that is there. O_DIRECT is dropped: it would make
 * demands on alignment that the caller cannot know of. */
#define OPEN_FLAGS (O_ACCMODE | O_APPEND | O_TRUNC | O_SYNC | O_DSYNC | O_NOATIME)
/* Those of the descriptor itself: cube_files_write appends, it does not. */
#define OPEN_OWN(flags) ((flags) & ~O_APPEND)

int cube_fhandle_ok(const struct cube_files_handle *h)
{
	return atomic_load(&h->n->tree->detached) ? -ESTALE : 0;
}

ssize_t cube_fhandle_result(const struct cube_files_handle *h, ssize_t r)
{
	int error = errno;

	/* afterwards, since the descriptor may have become that of nothing in the middle */
	if (atomic_load(&h->n->tree->detached))
		return -ESTALE;
	return r < 0 ? -error : r;
}

static int handle_add(struct cube_files_handle *h)
{
	struct cube_files *f = h->n->tree;
	int r = 0;

	(void)pthread_rwlock_wrlock(&f->space->lock);
	if (atomic_load(&f->detached)) {
		r = -ESTALE;
	} else {
		cube_list_push(&h->n->handles, &h->in_node);
		cube_list_push(&f->handles, &h->in_tree);
		cube_fnode_pin_more(h->n);
	}
	(void)pthread_rwlock_unlock(&f->space->lock);
	if (r == 0 && !h->is_dir)
		atomic_fetch_add(&f->n_open, 1);
	return r;
}

/* The time first: who sees that none is open sees when that began. */
static void handle_closed(const struct cube_files_handle *h)
{
	struct cube_files *f = h->n->tree;

	if (h->is_dir)
		return;
	atomic_store(&f->closed_wall, cube_clock_wall());
	atomic_fetch_sub(&f->n_open, 1);
}

int cube_fhandle_new(struct cube_fnode *n, struct cube_ffd *fd, int flags, bool is_dir,
		     struct cube_files_handle **ret)
{
	struct cube_files_handle *h = cube_calloc(1, sizeof(*h));
	int r = -ENOMEM;

	if (h != NULL) {
		h->n = n;
		h->fd = fd;
		h->flags = flags;
		h->is_dir = is_dir;
		cube_list_init(&h->in_node);
		cube_list_init(&h->in_tree);
		r = -pthread_mutex_init(&h->mutex, NULL);
		if (r == 0)
			r = handle_add(h);
	}
	if (r < 0) {
		cube_ffd_unref(fd);
		cube_free(h);
		return r;
	}
	*ret = h;
	return 0;
}

void cube_files_release(struct cube_files_handle *h)
{
	struct cube_files_space *s;
	bool last;

	if (h == NULL)
		return;
	s = h->n->tree->space;
	cube_flock_releasing(s);
	(void)pthread_rwlock_wrlock(&s->lock);
	cube_list_remove(&h->in_node);
	cube_list_remove(&h->in_tree);
	last = cube_list_empty(&h->n->handles);
	(void)pthread_rwlock_unlock(&s->lock);
	handle_closed(h);
	if (last)
		cube_flock_drop_all(h->n); /* who has nothing open has no locks */
	else
		cube_flock_drop_of(h);
	cube_ffd_unref(h->fd);
	cube_flock_released(s);
	cube_fdirbuf_free(h->dir);
	(void)pthread_mutex_destroy(&h->mutex);
	cube_fnode_unpin(h->n);
	cube_free(h);
}

int cube_files_fd(const struct cube_files_handle *h)
{
	return h->fd != NULL ? h->fd->fd : -1;
}

/* What kinds of files an open meets. */
static int open_refusal(const struct cube_fnode *n, int flags)
{
	const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;

	if ((flags & O_ACCMODE) == O_ACCMODE)
		return -EINVAL;
	if (S_ISDIR(n->object.type))
		return -EISDIR;
	if ((flags & O_DIRECTORY) != 0)
		return -ENOTDIR;
	if (S_ISLNK(n->object.type))
		return -ELOOP;
	if (!S_ISREG(n->object.type))
		return -ENXIO;
	return writes && (n->mount->read_only || n->is_void) ? -EROFS : 0;
}

/* The copy of a file in a higher layer of an overlay may have another number: it is the same node. */
static int open_note(struct cube_fnode *n, int fd, struct stat *st)
{
	if (fstat(fd, st) < 0)
		return -errno;
	cube_fnode_renumber(n, st);
	return 0;
}

/* An empty file, for what is mounted inside. */
static int open_void(struct cube_fnode *n, int flags, struct cube_files_handle **ret)
{
	int fd = memfd_create("empty", MFD_CLOEXEC);
	struct cube_ffd *f = fd < 0 ? NULL : cube_ffd_new(fd);

	if (f == NULL)
		return fd < 0 ? -errno : -ENOMEM;
	return cube_fhandle_new(n, f, flags, false, ret);
}

static int open_fd(struct cube_fnode *n, int at, int flags, bool is_dir, struct cube_files_handle **ret)
{
	struct cube_ffd *f;
	struct stat st;
	int fd, r = cube_fstep_reopen(n->tree->space, at, OPEN_OWN(flags), &fd);

	if (r < 0)
		return r == -ENOENT ? -ESTALE : r;
	f = cube_ffd_new(fd);
	if (f == NULL)
		return -ENOMEM;
	if (!is_dir && (flags & (O_ACCMODE | O_TRUNC)) != 0)
		r = open_note(n, fd, &st);
	if (r < 0) {
		cube_ffd_unref(f);
		return r;
	}
	return cube_fhandle_new(n, f, flags, is_dir, ret);
}

int cube_files_open(struct cube_files_space *s, uint64_t id, int flags, struct cube_files_handle **ret)
{
	cube_auto_fdoor d = {.n = NULL};
	cube_auto_fnode n = NULL;
	int r = cube_fnode_pin(s, id, &n);

	if (r == 0)
		r = open_refusal(n, flags); /* before anything is walked to */
	if (r == 0)
		r = cube_fdoor_open(s, id, 0, &d);
	if (r != 0)
		return r;
	flags &= OPEN_FLAGS;
	return n->is_void ? open_void(n, flags, ret) : open_fd(n, d.fd->fd, flags, false, ret);
}

int cube_files_opendir(struct cube_files_space *s, uint64_t id, struct cube_files_handle **ret)
{
	cube_auto_fdoor d = {.n = NULL};
	int r = cube_fdoor_open(s, id, CUBE_DOOR_DIR, &d);

	if (r < 0)
		return r;
	if (d.fd == NULL)
		return cube_fhandle_new(d.n, NULL, O_RDONLY, true, ret);
	return open_fd(d.n, d.fd->fd, O_RDONLY | O_DIRECTORY, true, ret);
}

/* The file that has been made at @fd; @name NULL: it has none. ret->keep_name: was the directory watched before? */
static int create_made(const struct cube_fdoor *d, const char *name, int fd, int flags, mode_t mode,
		       struct cube_files_entry *ret, struct cube_files_handle **ret_h)
{
	struct cube_fpeek seen = {.mount = d->n->mount};
	const mode_t mask = d->n->tree->space->umask;
	const bool keep = name != NULL && ret->keep_name;
	cube_auto_fnode n = NULL;
	cube_auto_ffd f = cube_ffd_new(fd);
	int r;

	if (f == NULL)
		return -ENOMEM;
	if ((mode & mask & 0777) != 0 && fstat(fd, &seen.st) == 0 &&
	    (seen.st.st_mode & 0777) == (mode & 0777 & ~mask))
		(void)fchmod(fd, (seen.st.st_mode & 07000) | (mode & 0777));
	if (fstat(fd, &seen.st) < 0)
		return -errno;
	r = name != NULL ? cube_fnode_intern(d->n, name, &seen, true, &n)
			 : cube_fnode_nameless(d->n, &seen, &n);
	if (r < 0)
		return r;
	*ret = (struct cube_files_entry){.id = n->id, .generation = 1, .keep_name = keep};
	r = cube_fattr_show(n, &seen.st, &ret->st);
	if (r == 0)
		r = cube_fhandle_new(n, cube_steal(f), flags, false, ret_h);
	if (r < 0)
		cube_fnode_uncount(n->tree->space, n->id, 1);
	return r;
}

/* @how beside the flags: O_CREAT | O_EXCL takes one step as openat2 does, and O_TMPFILE none. -EEXIST: there is
 * something. */
static int create_new(const struct cube_fdoor *d, const struct cube_files_cred *c, const char *name,
		      int flags, mode_t mode, int *ret_fd)
{
	const int how = (flags & ~(O_APPEND | O_TRUNC)) | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC;
	int fd, r, entered = cube_fowner_enter(d->n->tree, c);

	if (entered < 0)
		return entered;
	fd = openat(d->fd->fd, name, how, mode & 07777);
	r = fd < 0 ? -errno : 0;
	cube_fowner_leave(entered);
	*ret_fd = fd;
	return r;
}

static int create_existing(struct cube_files_space *s, const struct cube_fdoor *d, const char *name,
			   int flags, struct cube_files_entry *ret, struct cube_files_handle **ret_h)
{
	int r = cube_fname_entry(d, name, ret);

	if (r < 0)
		return r;
	r = cube_files_open(s, ret->id, flags, ret_h);
	if (r == 0 && (flags & O_TRUNC) != 0)
		r = cube_files_getattr(s, ret->id, *ret_h, &ret->st);
	else if (r < 0)
		cube_fnode_uncount(s, ret->id, 1);
	return r;
}

int cube_files_create(struct cube_files_space *s, const struct cube_files_cred *c, uint64_t parent,
		      const char *name, int flags, mode_t mode, struct cube_files_entry *ret,
		      struct cube_files_handle **ret_h)
{
	cube_auto_fdoor d = {.n = NULL};
	int fd, r = cube_fname_new(s, parent, name, &d);

	if (r == 0 && (flags & O_ACCMODE) == O_ACCMODE)
		r = -EINVAL;
	if (r < 0)
		return r;
	ret->keep_name = cube_fwatch_names(d.n, d.fd->fd);
	/* What is there and what is not may change between the two, but not for ever. */
	for (int i = 0; i < 100; i++) {
		r = create_new(&d, c, name, (flags & OPEN_FLAGS) | O_CREAT | O_EXCL, mode, &fd);
		if (r == 0)
			return create_made(&d, name, fd, flags & OPEN_FLAGS, mode, ret, ret_h);
		if (r != -EEXIST || (flags & O_EXCL) != 0)
			return r;
		r = create_existing(s, &d, name, flags, ret, ret_h);
		if (r != -ENOENT && r != -ESTALE)
			return r;
	}
	return r;
}

int cube_files_tmpfile(struct cube_files_space *s, const struct cube_files_cred *c, uint64_t parent,
		       int flags, mode_t mode, struct cube_files_entry *ret, struct cube_files_handle **ret_h)
{
	cube_auto_fdoor d = {.n = NULL};
	int fd = -1, r = cube_fdoor_open(s, parent, CUBE_DOOR_DIR | CUBE_DOOR_WRITE, &d);

	if (r == 0 && (flags & O_ACCMODE) == O_ACCMODE)
		r = -EINVAL;
	if (r == 0)
		r = create_new(&d, c, ".", (flags & (OPEN_FLAGS | O_EXCL)) | O_TMPFILE, mode, &fd);
	return r < 0 ? r : create_made(&d, NULL, fd, flags & OPEN_FLAGS, mode, ret, ret_h);
}
