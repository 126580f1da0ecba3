/* SPDX-License-Identifier: Apache-2.0 */
/* Names that are looked up or made: lookup, mknod, mkdir, symlink, link. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/files/files_priv.h"

static int name_fill(struct cube_fnode *n, struct cube_files_entry *ret)
{
	ret->id = n->id;
	ret->generation = 1; /* ids are never used again */
	return 0;
}

int cube_fname_entry(const struct cube_fdoor *d, const char *name, struct cube_files_entry *ret)
{
	cube_auto_fnode n = NULL;
	struct cube_fpeek seen;
	int r;

	*ret = (struct cube_files_entry){.id = 0};
	if (d->fd == NULL)
		return -ENOENT; /* an empty directory */
	ret->keep_name = cube_fwatch_names(d->n, d->fd->fd);
	r = cube_fstep_peek(d->n, d->fd->fd, name, &seen);
	if (r == -ENOENT)
		cube_fnode_drop_name(d->n, name, false);
	if (r == 0)
		r = cube_fnode_intern(d->n, name, &seen, true, &n);
	if (r != 0)
		return r;
	ret->keep_name = ret->keep_name && !seen.is_top && !seen.is_void;
	ret->keep_attr = ret->keep_name && cube_fwatch_stat(n, &seen.st) > 0;
	r = cube_fattr_show(n, &seen.st, &ret->st);
	if (r < 0) {
		cube_fnode_uncount(n->tree->space, n->id, 1);
		return r;
	}
	return name_fill(n, ret);
}

static bool name_is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* "." and "..", which the protocol of the kernel never asks for, but 9P does. */
static int name_lookup_dot(struct cube_fnode *dir, const char *name, struct cube_files_entry *ret)
{
	cube_auto_fnode n = NULL;
	char own[NAME_MAX + 1];
	int r;

	if (name[1] == '\0' || cube_fnode_place(dir, 0, &n, own) != 0) {
		cube_fnode_pin_more(dir);
		n = dir;
	}
	r = cube_fattr_get(n, &ret->st);
	if (r != 0)
		return r;
	cube_fnode_count(n);
	return name_fill(n, ret);
}

int cube_files_lookup(struct cube_files_space *s, uint64_t parent, const char *name,
		      struct cube_files_entry *ret)
{
	cube_auto_fdoor d = {.n = NULL};
	int r = cube_fstep_name(name);

	*ret = (struct cube_files_entry){.id = 0};
	if (r == 0)
		r = cube_fdoor_open(s, parent, CUBE_DOOR_DIR, &d);
	if (r != 0)
		return r;
	return name_is_dot(name) ? name_lookup_dot(d.n, name, ret) : cube_fname_entry(&d, name, ret);
}

bool cube_files_holds(struct cube_files_space *s, uint64_t dir, const char *name)
{
	cube_auto_fdoor d = {.n = NULL};
	struct cube_fpeek seen;

	if (cube_fdoor_open(s, dir, CUBE_DOOR_DIR, &d) < 0 || d.fd == NULL)
		return false;
	return cube_fstep_peek(d.n, d.fd->fd, name, &seen) == 0 && cube_fnode_is_at(d.n, name, &seen);
}

void cube_files_names(struct cube_files_space *s, uint64_t id,
		      void (*each)(void *ctx, uint64_t dir, const char *name), void *ctx)
{
	cube_auto_fnode n = NULL;
	char name[NAME_MAX + 1];

	if (cube_fnode_pin(s, id, &n) < 0)
		return;
	for (unsigned i = 0;; i++) {
		cube_auto_fnode dir = NULL;

		if (cube_fnode_place(n, i, &dir, name) < 0)
			break;
		each(ctx, dir->id, name);
	}
}

void cube_files_forget(struct cube_files_space *s, uint64_t id, uint64_t n)
{
	cube_fnode_uncount(s, id, n);
}

/* What is to be made, and the system call that does. */
struct name_make {
	const struct cube_files_cred *by;
	int (*make)(const struct name_make *m, int dirfd, const char *name);
	mode_t mode;
	const char *target;
};

static int make_node(const struct name_make *m, int dirfd, const char *name)
{
	return mknodat(dirfd, name, m->mode, 0);
}

static int make_dir(const struct name_make *m, int dirfd, const char *name)
{
	return mkdirat(dirfd, name, m->mode & 07777);
}

static int make_link(const struct name_make *m, int dirfd, const char *name)
{
	return symlinkat(m->target, dirfd, name);
}

/* The mode of something new, from which the kernel took this process's umask. Not by name, which may be
 * another's by now; a mode that something else (a default ACL) has formed stays. */
static void name_fix_mode(const struct cube_fdoor *d, const char *name, mode_t mode)
{
	const mode_t mask = d->n->tree->space->umask;
	char path[CUBE_FD_PATH];
	cube_auto_fd fd = -1;
	struct stat st;

	if ((mode & mask & 0777) == 0 || cube_fstep_open(d->n->tree->space, d->fd->fd, name, &fd) < 0)
		return;
	if (fstat(fd, &st) == 0 && !S_ISLNK(st.st_mode) && (st.st_mode & 0777) == (mode & 0777 & ~mask))
		(void)chmod(cube_fstep_path(fd, path), (st.st_mode & 07000) | (mode & 0777));
}

int cube_fname_new(struct cube_files_space *s, uint64_t parent, const char *name, struct cube_fdoor *ret)
{
	const struct cube_fpoint *p;
	int r = cube_fstep_name(name);

	if (r < 0)
		return r;
	if (name_is_dot(name))
		return -EEXIST;
	r = cube_fdoor_open(s, parent, CUBE_DOOR_DIR | CUBE_DOOR_WRITE, ret);
	if (r < 0)
		return r;
	p = cube_fpoint_find(ret->n->point, name); /* what is mounted is there, whatever lies below it */
	if (p == NULL || p->mount == NULL)
		return 0;
	cube_fdoor_close(ret);
	return -EEXIST;
}

static int name_make(struct cube_files_space *s, uint64_t parent, const char *name, const struct name_make *m,
		     struct cube_files_entry *ret)
{
	cube_auto_fdoor d = {.n = NULL};
	int entered, r = cube_fname_new(s, parent, name, &d);

	if (r < 0)
		return r;
	entered = cube_fowner_enter(d.n->tree, m->by);
	if (entered < 0)
		return entered;
	if (m->make(m, d.fd->fd, name) < 0)
		r = -errno;
	cube_fowner_leave(entered);
	if (r < 0)
		return r;
	if (m->target == NULL)
		name_fix_mode(&d, name, m->mode);
	return cube_fname_entry(&d, name, ret);
}

/* Devices are made only as the sandbox's root could make them: not. */
int cube_files_mknod(struct cube_files_space *s, const struct cube_files_cred *c, uint64_t parent,
		     const char *name, mode_t mode, dev_t rdev, struct cube_files_entry *ret)
{
	const struct name_make m = {.by = c, .make = make_node, .mode = mode};

	(void)rdev;
	switch (mode & S_IFMT) {
	case 0:
	case S_IFREG:
	case S_IFIFO:
	case S_IFSOCK:
		return name_make(s, parent, name, &m, ret);
	case S_IFCHR:
	case S_IFBLK:
		return -EPERM;
	default:
		return -EINVAL;
	}
}

int cube_files_mkdir(struct cube_files_space *s, const struct cube_files_cred *c, uint64_t parent,
		     const char *name, mode_t mode, struct cube_files_entry *ret)
{
	const struct name_make m = {.by = c, .make = make_dir, .mode = mode};

	return name_make(s, parent, name, &m, ret);
}

int cube_files_symlink(struct cube_files_space *s, const struct cube_files_cred *c, uint64_t parent,
		       const char *name, const char *target, struct cube_files_entry *ret)
{
	const struct name_make m = {.by = c, .make = make_link, .target = target};

	return name_make(s, parent, name, &m, ret);
}

int cube_files_link(struct cube_files_space *s, uint64_t id, uint64_t new_parent, const char *new_name,
		    struct cube_files_entry *ret)
{
	cube_auto_fdoor from = {.n = NULL}, to = {.n = NULL};
	char path[CUBE_FD_PATH];
	int r = cube_fname_new(s, new_parent, new_name, &to);

	if (r == 0)
		r = cube_fdoor_open(s, id, CUBE_DOOR_WRITE, &from);
	if (r < 0)
		return r;
	if (from.n->tree != to.n->tree || from.n->mount != to.n->mount)
		return -EXDEV;
	/* The link in /proc leads to the object itself, a link in the sandbox included. */
	if (linkat(AT_FDCWD, cube_fstep_path(from.fd->fd, path), to.fd->fd, new_name, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	return cube_fname_entry(&to, new_name, ret);
}
