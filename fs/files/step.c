/* SPDX-License-Identifier: Apache-2.0 */
/* One name beneath one directory descriptor: the only place of this module that resolves names.
 *
 * A name has no slash and is not "..", so that the kernel takes exactly one step, never follows a link at its
 * end, and either stays in the mount of the directory or is told not to leave it. So a component that is
 * swapped for a link at any instant is seen as a link. Things that are mounted inside are not touched: a FUSE
 * of a hostile process would let us wait for ever at the first request. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fs/files/files_priv.h"

int cube_fstep_name(const char *name)
{
	size_t len = strlen(name);

	if (len == 0 || memchr(name, '/', len) != NULL)
		return -EINVAL;
	return len > NAME_MAX ? -ENAMETOOLONG : 0;
}

static int step_openat2(int dirfd, const char *name, const struct open_how *how)
{
	return (int)syscall(SYS_openat2, dirfd, name, how, sizeof(*how));
}

int cube_fstep_open(struct cube_files_space *s, int dirfd, const char *name, int *ret_fd)
{
	const struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	int fd = step_openat2(dirfd, name, &how);

	if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
		cube_flru_shrink(s); /* ours are the ones that can be had back */
		fd = step_openat2(dirfd, name, &how);
	}
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static void step_stat_of(const struct statx *x, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_dev = makedev(x->stx_dev_major, x->stx_dev_minor);
	st->st_ino = x->stx_ino;
	st->st_mode = x->stx_mode;
	st->st_nlink = x->stx_nlink;
	st->st_uid = x->stx_uid;
	st->st_gid = x->stx_gid;
	st->st_rdev = makedev(x->stx_rdev_major, x->stx_rdev_minor);
	st->st_size = (off_t)x->stx_size;
	st->st_blksize = x->stx_blksize;
	st->st_blocks = (blkcnt_t)x->stx_blocks;
	st->st_atim = (struct timespec){.tv_sec = x->stx_atime.tv_sec, .tv_nsec = x->stx_atime.tv_nsec};
	st->st_mtim = (struct timespec){.tv_sec = x->stx_mtime.tv_sec, .tv_nsec = x->stx_mtime.tv_nsec};
	st->st_ctim = (struct timespec){.tv_sec = x->stx_ctime.tv_sec, .tv_nsec = x->stx_ctime.tv_nsec};
}

/* By a descriptor, which asks a file server too, and is told of mounts by an error. */
static int step_peek_open(struct cube_files *f, int dirfd, const char *name, struct cube_fpeek *ret)
{
	cube_auto_fd fd = -1;
	int r = cube_fstep_open(f->space, dirfd, name, &fd);

	if (r == -EXDEV) {
		ret->is_void = true;
		return 0;
	}
	if (r == 0 && fstat(fd, &ret->st) < 0)
		r = -errno;
	return r;
}

static int step_peek_top(struct cube_files *f, const struct cube_fpoint *point, struct cube_fpeek *ret)
{
	cube_auto_ffd top = cube_fstep_top(f, point->mount);

	if (top == NULL)
		return -ESTALE;
	ret->mount = point->mount;
	ret->is_top = true;
	return fstat(top->fd, &ret->st) < 0 ? -errno : 0;
}

/* statx without synchronisation asks nobody, whatever is mounted at the name, and says if something is. */
int cube_fstep_peek_at(struct cube_files *f, const struct cube_fmount *m, const struct cube_fpoint *point,
		       int dirfd, const char *name, struct cube_fpeek *ret)
{
	struct statx x;

	*ret = (struct cube_fpeek){.mount = m, .point = cube_fpoint_find(point, name)};
	if (ret->point != NULL && ret->point->mount != NULL)
		return step_peek_top(f, ret->point, ret);
	if (statx(dirfd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_BASIC_STATS,
		  &x) < 0)
		return -errno;
	step_stat_of(&x, &ret->st);
	ret->is_void = (x.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
	if (ret->is_void || (m->local && (x.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0))
		return 0;
	return step_peek_open(f, dirfd, name, ret);
}

int cube_fstep_peek(struct cube_fnode *dir, int dirfd, const char *name, struct cube_fpeek *ret)
{
	return cube_fstep_peek_at(dir->tree, dir->mount, dir->point, dirfd, name, ret);
}

/* Through /proc, since a descriptor of O_PATH cannot be opened otherwise without its name. O_NONBLOCK and
 * O_NOCTTY: had it been a fifo or terminal after all, nothing would hang or become ours. */
int cube_fstep_reopen(struct cube_files_space *s, int fd, int flags, int *ret_fd)
{
	char name[CUBE_FD_PATH];
	int new_fd;

	(void)snprintf(name, sizeof(name), "%d", fd);
	flags |= O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	new_fd = openat(s->fds_dir, name, flags);
	if (new_fd < 0 && (errno == EMFILE || errno == ENFILE)) {
		cube_flru_shrink(s);
		new_fd = openat(s->fds_dir, name, flags);
	}
	if (new_fd < 0)
		return -errno;
	*ret_fd = new_fd;
	return 0;
}

const char *cube_fstep_path(int fd, char out[CUBE_FD_PATH])
{
	(void)snprintf(out, CUBE_FD_PATH, "/proc/self/fd/%d", fd);
	return out;
}

struct cube_ffd *cube_fstep_top(const struct cube_files *f, const struct cube_fmount *m)
{
	struct cube_ffd *fd;

	(void)pthread_rwlock_rdlock(&f->space->lock);
	fd = cube_ffd_ref(m->fd);
	(void)pthread_rwlock_unlock(&f->space->lock);
	return fd;
}
