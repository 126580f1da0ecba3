/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of attributes: all that was asked or, as far as one system call after the other allows, nothing. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/files/files_priv.h"

#define SET_OWNER (CUBE_SET_UID | CUBE_SET_GID)
#define SET_TIMES (CUBE_SET_ATIME | CUBE_SET_MTIME | CUBE_SET_ATIME_NOW | CUBE_SET_MTIME_NOW)
#define SET_ALL   (CUBE_SET_MODE | SET_OWNER | CUBE_SET_SIZE | SET_TIMES)

/* In the kernel's terms. */
struct setattr {
	int fd; /* O_PATH or a handle's */
	const struct cube_files_handle *h;
	unsigned set;
	uid_t uid; /* -1: stays */
	gid_t gid;
	mode_t mode;
	off_t size;
	struct timespec times[2];
};

static int setattr_owner(const struct setattr *a)
{
	return fchownat(a->fd, "", a->uid, a->gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* By path: fchmod does not take descriptors of O_PATH. The link in /proc is followed to the object itself,
 * never on. */
static int setattr_mode(const struct setattr *a)
{
	char path[CUBE_FD_PATH];

	return chmod(cube_fstep_path(a->fd, path), a->mode) < 0 ? -errno : 0;
}

/* A change of size takes setuid bits away as well, where we are not root: they are given back if they were
 * asked for. */
static int setattr_size(const struct setattr *a)
{
	char path[CUBE_FD_PATH];
	int r;

	if (a->h != NULL && (a->h->flags & O_ACCMODE) != O_RDONLY)
		r = ftruncate(a->fd, a->size);
	else
		r = truncate(cube_fstep_path(a->fd, path), a->size);
	if (r < 0)
		return -errno;
	return (a->set & CUBE_SET_MODE) != 0 ? setattr_mode(a) : 0;
}

static int setattr_times(const struct setattr *a)
{
	return utimensat(a->fd, "", a->times, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* In this order: a change of owner takes setuid bits away, which a mode may bring back; what is undone most
 * easily comes first, and the content, which cannot be undone, when the rest has worked. Times come last,
 * since all else moves them. */
static const struct setattr_step {
	unsigned set;
	int (*fn)(const struct setattr *a);
} setattr_steps[] = {
	{.set = SET_OWNER, .fn = setattr_owner},
	{.set = CUBE_SET_MODE, .fn = setattr_mode},
	{.set = CUBE_SET_SIZE, .fn = setattr_size},
	{.set = SET_TIMES, .fn = setattr_times},
};

/* Puts owner and mode back; what fails here fails for the reason that is reported already. */
static void setattr_undo(const struct setattr *a, const struct stat *before)
{
	const struct setattr old = {
		.fd = a->fd,
		.uid = before->st_uid,
		.gid = before->st_gid,
		.mode = before->st_mode & 07777,
	};

	if ((a->set & SET_OWNER) != 0)
		(void)setattr_owner(&old);
	if ((a->set & (SET_OWNER | CUBE_SET_MODE)) != 0 && !S_ISLNK(before->st_mode))
		(void)setattr_mode(&old);
}

static int setattr_run(const struct setattr *a, const struct stat *before)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < CUBE_COUNT(setattr_steps); i++) {
		if ((a->set & setattr_steps[i].set) != 0)
			r = setattr_steps[i].fn(a);
	}
	if (r < 0)
		setattr_undo(a, before);
	return r;
}

static struct timespec setattr_time(unsigned set, unsigned bit, unsigned now, const struct timespec *t)
{
	if ((set & now) != 0)
		return (struct timespec){.tv_nsec = UTIME_NOW};
	return (set & bit) != 0 ? *t : (struct timespec){.tv_nsec = UTIME_OMIT};
}

/* What can be refused without trying is refused here. */
static int setattr_prepare(const struct cube_fnode *n, const struct stat *st, unsigned set, struct setattr *a)
{
	a->set = set;
	a->uid = (uid_t)-1;
	a->gid = (gid_t)-1;
	a->mode = st->st_mode & 07777;
	a->size = st->st_size;
	a->times[0] = setattr_time(set, CUBE_SET_ATIME, CUBE_SET_ATIME_NOW, &st->st_atim);
	a->times[1] = setattr_time(set, CUBE_SET_MTIME, CUBE_SET_MTIME_NOW, &st->st_mtim);
	if ((set & ~SET_ALL) != 0)
		return -EINVAL;
	if ((set & CUBE_SET_UID) != 0 && !cube_fowner_uid(n->tree, st->st_uid, &a->uid))
		return -EINVAL;
	if ((set & CUBE_SET_GID) != 0 && !cube_fowner_gid(n->tree, st->st_gid, &a->gid))
		return -EINVAL;
	if ((set & CUBE_SET_MODE) != 0 && S_ISLNK(n->object.type))
		return -EOPNOTSUPP;
	if ((set & CUBE_SET_SIZE) == 0)
		return 0;
	if (S_ISDIR(n->object.type))
		return -EISDIR;
	return S_ISREG(n->object.type) && st->st_size >= 0 ? 0 : -EINVAL;
}

int cube_files_setattr(struct cube_files_space *s, uint64_t id, struct cube_files_handle *h,
		       const struct stat *st, unsigned set, struct stat *ret)
{
	cube_auto_fdoor d = {.n = NULL};
	struct setattr a = {.h = h};
	struct stat raw;
	int r = cube_fdoor_open(s, id, CUBE_DOOR_WRITE, &d);

	if (r == 0)
		r = setattr_prepare(d.n, st, set, &a);
	if (r < 0)
		return r;
	a.fd = h != NULL && h->fd != NULL ? h->fd->fd : d.fd->fd;
	if (fstat(a.fd, &raw) < 0)
		return -errno;
	r = setattr_run(&a, &raw);
	if (r == 0 && fstat(a.fd, &raw) < 0)
		r = -errno;
	if (r < 0)
		return atomic_load(&d.n->tree->detached) ? -ESTALE : r;
	cube_fnode_renumber(d.n, &raw);
	return cube_fattr_show(d.n, &raw, ret);
}

mode_t cube_fattr_written(const struct cube_files *f, const struct cube_files_cred *c, const struct stat *st)
{
	if (c->uid == 0 || c->uid == f->space->options.uid)
		return st->st_mode;
	if ((st->st_mode & S_IXGRP) == 0) /* for locking, not for programs */
		return st->st_mode & ~(mode_t)S_ISUID;
	return st->st_mode & ~(mode_t)(S_ISUID | S_ISGID);
}

int cube_files_written(struct cube_files_space *s, const struct cube_files_cred *c, uint64_t id,
		       struct stat *ret)
{
	cube_auto_fdoor d = {.n = NULL};
	struct stat raw = {0}, want = {0};
	int r = cube_fdoor_open(s, id, CUBE_DOOR_WRITE, &d);

	if (r == 0 && fstat(d.fd->fd, &raw) < 0)
		r = -errno;
	if (r < 0)
		return r;
	want.st_mode = cube_fattr_written(d.n->tree, c, &raw);
	if (S_ISREG(raw.st_mode) && want.st_mode != raw.st_mode)
		return cube_files_setattr(s, id, NULL, &want, CUBE_SET_MODE, ret);
	return cube_fattr_show(d.n, &raw, ret);
}
