/* SPDX-License-Identifier: Apache-2.0 */
/* From a node to its object. Nothing is kept open per node: a directory is reached from the nearest one above
 * it that is open, step by step, and each step checks that it met the object that the node stands for. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "backends/base/alloc.h"
#include "fs/files/files_priv.h"

/* What is open of it: a handle, the mount's descriptor, the LRU's. */
static struct cube_ffd *reach_open_locked(struct cube_fnode *n)
{
	if (n->is_top)
		return cube_ffd_ref(n->mount->fd);
	cube_list_each (l, &n->handles) {
		struct cube_files_handle *h = cube_list_entry(l, struct cube_files_handle, in_node);

		if (h->fd != NULL)
			return cube_ffd_ref(h->fd);
	}
	return cube_flru_get_locked(n);
}

static struct cube_ffd *reach_open(struct cube_fnode *n)
{
	struct cube_files_space *s = n->tree->space;
	struct cube_ffd *fd;

	(void)pthread_rwlock_rdlock(&s->lock);
	fd = atomic_load(&n->tree->detached) ? NULL : reach_open_locked(n);
	(void)pthread_rwlock_unlock(&s->lock);
	return fd;
}

/* One step down: @name of @dirfd must be @n. */
static int reach_step(struct cube_fnode *n, int dirfd, const char *name, struct cube_ffd **ret)
{
	struct stat st;
	int fd, r = cube_fstep_open(n->tree->space, dirfd, name, &fd);

	if (r < 0)
		return r == -ENOENT || r == -EXDEV || r == -ENOTDIR ? -ESTALE : r;
	*ret = cube_ffd_new(fd);
	if (*ret == NULL)
		return -ENOMEM;
	if (fstat((*ret)->fd, &st) < 0)
		r = -errno;
	else if (!cube_fnode_same(n, &st))
		r = -ESTALE;
	if (r < 0)
		cube_ffd_unref(cube_steal(*ret));
	return r;
}

/* The nearest open directory at or above @n, with @have (may be NULL) as one that is open at @have_fd, and,
 * where that is not @n itself, which node comes next on the way down (pinned, its name). */
static int reach_nearest(struct cube_fnode *n, const struct cube_fnode *have, struct cube_ffd *have_fd,
			 struct cube_fnode **ret_next, char name[NAME_MAX + 1], struct cube_ffd **ret)
{
	struct cube_files_space *s = n->tree->space;
	struct cube_fnode *next = NULL;
	struct cube_ffd *fd = NULL;

	(void)pthread_rwlock_rdlock(&s->lock);
	while (!atomic_load(&n->tree->detached)) {
		fd = n == have ? cube_ffd_ref(have_fd) : reach_open_locked(n);
		if (fd != NULL || n->places == NULL)
			break;
		next = n;
		n = n->places->parent;
	}
	if (fd != NULL && next != NULL) {
		cube_fnode_pin_more(next);
		(void)snprintf(name, NAME_MAX + 1, "%s", next->places->name);
	}
	(void)pthread_rwlock_unlock(&s->lock);
	if (fd == NULL)
		return -ESTALE;
	*ret = fd;
	*ret_next = next;
	return 0;
}

/* The step just made is kept in hand, so that nobody who closes directories meanwhile can keep this from
 * ending. */
static int reach_dir(struct cube_fnode *n, struct cube_ffd **ret)
{
	cube_auto_fnode at = NULL;
	cube_auto_ffd at_fd = NULL;

	for (;;) {
		cube_auto_fnode next = NULL;
		cube_auto_ffd fd = NULL;
		cube_auto_ffd down = NULL;
		char name[NAME_MAX + 1];
		int r = reach_nearest(n, at, at_fd, &next, name, &fd);

		if (r == 0 && next != NULL)
			r = reach_step(next, fd->fd, name, &down);
		if (r < 0)
			return r;
		if (next == NULL) {
			*ret = cube_steal(fd);
			return 0;
		}
		cube_flru_put(next, down);
		cube_fnode_unpin(at);
		cube_ffd_unref(at_fd);
		at = cube_steal(next);
		at_fd = cube_steal(down);
	}
}

/* Calls @fn for each known name of @n, with its directory's descriptor, until one gives something else than
 * -ESTALE. */
static int reach_names(struct cube_fnode *n,
		       int (*fn)(struct cube_fnode *n, struct cube_fnode *dir, int dirfd, const char *name,
				 void *ret),
		       void *ret)
{
	int r = -ESTALE;

	for (unsigned i = 0; r == -ESTALE; i++) {
		cube_auto_fnode dir = NULL;
		cube_auto_ffd dirfd = NULL;
		char name[NAME_MAX + 1];

		if (cube_fnode_place(n, i, &dir, name) < 0)
			break;
		r = reach_dir(dir, &dirfd);
		if (r == 0)
			r = fn(n, dir, dirfd->fd, name, ret);
	}
	return r;
}

static int reach_by_name(struct cube_fnode *n, struct cube_fnode *dir, int dirfd, const char *name, void *ret)
{
	(void)dir;
	return reach_step(n, dirfd, name, ret);
}

static int reach_peek(struct cube_fnode *n, struct cube_fnode *dir, int dirfd, const char *name, void *ret)
{
	struct cube_fpeek seen;
	int r = cube_fstep_peek(dir, dirfd, name, &seen);

	if (r == -ENOENT || r == -ENOTDIR)
		return -ESTALE;
	if (r < 0)
		return r;
	if (seen.is_void || seen.is_top || !cube_fnode_same(n, &seen.st))
		return -ESTALE;
	*(struct stat *)ret = seen.st;
	return 0;
}

/* -ENOENT: a directory that was removed through us, of which nothing is open. (What has its name and even its number
 * now is another one.) */
int cube_freach(struct cube_fnode *n, struct cube_ffd **ret)
{
	if (cube_fnode_is_dir(n) && cube_fnode_gone(n, NULL)) {
		*ret = reach_open(n);
		return *ret != NULL ? 0 : -ENOENT;
	}
	if (cube_fnode_is_dir(n))
		return reach_dir(n, ret);
	*ret = reach_open(n);
	return *ret != NULL ? 0 : reach_names(n, reach_by_name, ret);
}

int cube_freach_stat(struct cube_fnode *n, struct stat *ret)
{
	cube_auto_ffd fd = NULL;
	int r;

	if (cube_fnode_is_dir(n)) {
		r = cube_freach(n, &fd);
		if (r == -ENOENT && cube_fnode_gone(n, ret))
			return 0;
		if (r < 0)
			return r;
	} else {
		fd = reach_open(n);
		if (fd == NULL)
			return reach_names(n, reach_peek, ret);
	}
	return fstat(fd->fd, ret) < 0 ? -errno : 0;
}

int cube_fdoor_open(struct cube_files_space *s, uint64_t id, unsigned need, struct cube_fdoor *ret)
{
	struct cube_fdoor d = {.n = NULL};
	int r = cube_fnode_pin(s, id, &d.n);

	if (r == 0 && (need & CUBE_DOOR_DIR) != 0 && !cube_fnode_is_dir(d.n))
		r = -ENOTDIR;
	if (r == 0 && (need & CUBE_DOOR_WRITE) != 0 && (d.n->is_void || d.n->mount->read_only))
		r = -EROFS;
	if (r == 0 && !d.n->is_void)
		r = cube_freach(d.n, &d.fd);
	if (r == -ENOENT && (need & CUBE_DOOR_WRITE) == 0)
		r = 0; /* what was removed is an empty directory */
	if (r < 0) {
		cube_fdoor_close(&d);
		return r;
	}
	*ret = d;
	return 0;
}

void cube_fdoor_close(struct cube_fdoor *d)
{
	cube_ffd_unref(d->fd);
	cube_fnode_unpin(d->n);
	*d = (struct cube_fdoor){0};
}
