/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts that are kept for later. */
#include "backends/local/keep.h"

#include "backends/base/macros.h"
#include "backends/local/mnt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEEP_PLACE "mount" /* of a foreign mount, for the moment */

/* Set up once, before there are threads. */
static bool keep_forced;
static int keep_area = -1; /* the tmpfs; -1: mounts need not be attached */
static pid_t keep_user;    /* the process that swept it last */

void cube_local_keep_attached(void)
{
	keep_forced = true;
}

/* ---- set-up ---- */

static bool keep_is_easy(void)
{
	cube_auto_fd fd = cube_local_mnt_tmpfs("4k", NULL);
	cube_auto_fd copy = fd < 0 ? -1 : cube_local_mnt_clone(fd, "");

	return copy >= 0 && !keep_forced;
}

int cube_local_keep_setup(const char *state_dir, struct cube_err *err)
{
	cube_auto_fd area = -1;
	char path[PATH_MAX];
	int rc;

	if (keep_is_easy())
		return 0;
	area = cube_local_mnt_tmpfs("1m", err);
	if (area < 0)
		return area;
	if ((size_t)snprintf(path, sizeof(path), "%s/.mounts", state_dir) >= sizeof(path))
		return cube_fail(err, -ENAMETOOLONG, "the path of the state directory is too long");
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return cube_fail_errno(err, "cannot make %s", path);
	rc = cube_local_mnt_attach(area, path);
	if (rc < 0)
		return cube_fail(err, rc, "cannot mount on %s: %s", path, cube_errno_text(rc));
	keep_area = cube_steal_fd(&area);
	return 0;
}

/* ---- one mount ---- */

/* Name of its place: the number of the mount, which it has from its birth. */
static int keep_name(int fd, char out[24])
{
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &stx) < 0)
		return -errno;
	(void)snprintf(out, 24, "%" PRIu64, (uint64_t)stx.stx_mnt_id);
	return 0;
}

static void keep_remove(const char *name)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", keep_area, name);
	(void)umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
	(void)unlinkat(keep_area, name, AT_REMOVEDIR);
}

int cube_local_keep(int fd)
{
	char name[24];
	int rc;

	if (keep_area < 0)
		return 0;
	rc = keep_name(fd, name);
	if (rc < 0)
		return rc;
	if (mkdirat(keep_area, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (move_mount(fd, "", keep_area, name, MOVE_MOUNT_F_EMPTY_PATH) < 0) {
		rc = -errno;
		(void)unlinkat(keep_area, name, AT_REMOVEDIR);
	}
	return rc;
}

void cube_local_keep_end(int fd)
{
	char name[24];

	if (fd < 0)
		return;
	if (keep_area >= 0 && keep_name(fd, name) == 0)
		keep_remove(name);
	close(fd);
}

/* ---- of others ---- */

/* A clone of ours is made while it is attached here, since one from elsewhere cannot be cloned. */
static int keep_clone_foreign(int fd, int dirfd)
{
	char path[64];
	int rc;

	if (mkdirat(dirfd, KEEP_PLACE, 0700) < 0 && errno != EEXIST)
		return -errno;
	rc = move_mount(fd, "", dirfd, KEEP_PLACE, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
	if (rc == 0) {
		rc = cube_local_mnt_clone(dirfd, KEEP_PLACE);
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/" KEEP_PLACE, dirfd);
		(void)umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
	}
	(void)unlinkat(dirfd, KEEP_PLACE, AT_REMOVEDIR);
	return rc;
}

int cube_local_keep_foreign(int fd, int dirfd)
{
	cube_auto_fd from = fd;
	int rc;

	if (keep_area < 0)
		return keep_clone_foreign(from, dirfd);
	rc = cube_local_keep(from);
	return rc < 0 ? rc : cube_steal_fd(&from);
}

int cube_local_keep_inside(pid_t init, const struct cube_ns_point *p, int dirfd, int *ret_fd)
{
	int fd = -1, rc = cube_ns_mount_take(init, p, &fd);

	if (rc == 0)
		rc = fd = cube_local_keep_foreign(fd, dirfd);
	if (rc < 0)
		return rc;
	*ret_fd = fd;
	return 0;
}

static bool keep_is_own(const char *name, const int *own, unsigned n)
{
	char one[24];

	for (unsigned i = 0; i < n; i++)
		if (own[i] >= 0 && keep_name(own[i], one) == 0 && strcmp(one, name) == 0)
			return true;
	return false;
}

void cube_local_keep_sweep(const int *own, unsigned n)
{
	int fd = keep_area < 0 || keep_user == getpid()
			 ? -1
			 : openat(keep_area, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	keep_user = getpid();
	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d)) != NULL)
		if (e->d_name[0] != '.' && !keep_is_own(e->d_name, own, n))
			keep_remove(e->d_name);
	closedir(d);
}
