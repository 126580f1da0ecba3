/* SPDX-License-Identifier: Apache-2.0 */
/* The image of the store: made by mkfs.btrfs, on a loop device (linux/loop.h) that goes when the last mount goes. */
#include "backends/local/image.h"

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "backends/base/spawn.h"
#include "backends/local/find.h"
#include "backends/local/keep.h"
#include "backends/local/mnt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <linux/btrfs.h>
#include <linux/loop.h>

#define IMAGE_NEW     (CUBE_LOCAL_IMAGE ".new")
#define IMAGE_LEAST   (UINT64_C(256) << 20) /* what mkfs.btrfs and a little work need */
#define IMAGE_STEP    (UINT64_C(1) << 20)
#define IMAGE_TRIES   32 /* a free loop device may be taken by another between two calls */
#define IMAGE_MKFS_MS 120000

struct cube_local_image {
	int file, root;
	struct cube_local_grow *grow;
};

/* ---- can it be ---- */

int cube_local_image_possible(struct cube_err *err)
{
	char path[PATH_MAX];
	cube_auto_fd fs = fsopen("btrfs", FSOPEN_CLOEXEC);

	if (fs < 0)
		return cube_fail(err, -EOPNOTSUPP,
				 "this kernel has no btrfs, or does not let us mount it: %s",
				 cube_errno_text(errno));
	if (!cube_local_find_program("mkfs.btrfs", path, sizeof(path)))
		return cube_fail(err, -EOPNOTSUPP,
				 "mkfs.btrfs is not installed: apt-get install btrfs-progs");
	if (access("/dev/loop-control", R_OK | W_OK) < 0)
		return cube_fail(err, -EOPNOTSUPP, "there are no loop devices (/dev/loop-control): %s",
				 cube_errno_text(errno));
	return 0;
}

bool cube_local_image_there(int state)
{
	return faccessat(state, CUBE_LOCAL_IMAGE, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- make ---- */

static int image_mkfs(int state, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(4096);
	const char *argv[] = {NULL,     "-q", "-f",     "-K", "-L",      "cubefs", "-m",
			      "single", "-d", "single", "--", IMAGE_NEW, NULL};
	const struct cube_spawn s = {
		.argv = argv, .cwd = state, .in = -1, .out = -1, .text = &text, .timeout_ms = IMAGE_MKFS_MS};
	char path[PATH_MAX], why[300];
	int status = 0, rc;

	(void)cube_local_find_program("mkfs.btrfs", path, sizeof(path));
	argv[0] = path;
	rc = cube_spawn_run(&s, NULL, &status, err);
	if (rc == 0 && status != 0) {
		cube_spawn_describe(status, &text, why, sizeof(why));
		rc = cube_fail(err, -EIO, "mkfs.btrfs cannot make the image of the store: %s", why);
	}
	cube_buf_done(&text);
	return rc;
}

static int image_size(int state, uint64_t limit, uint64_t *ret, struct cube_err *err)
{
	struct statvfs vfs;

	if (fstatvfs(state, &vfs) < 0)
		return cube_fail_errno(err, "cannot ask how much room the state directory has");
	if (limit == 0)
		limit = (uint64_t)vfs.f_bavail * vfs.f_frsize / 10 * 9;
	if (limit < IMAGE_LEAST)
		return cube_fail(err, -ENOSPC, "an image of the store needs %u MiB at least",
				 (unsigned)(IMAGE_LEAST >> 20));
	*ret = limit / IMAGE_STEP * IMAGE_STEP;
	return 0;
}

static int image_make(int state, uint64_t limit, struct cube_err *err)
{
	cube_auto_fd file = -1;
	uint64_t size = 0;
	int rc = image_size(state, limit, &size, err);

	if (rc < 0)
		return rc;
	file = openat(state, IMAGE_NEW, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (file < 0 || ftruncate(file, (off_t)size) < 0)
		return cube_fail_errno(err, "cannot make the image of the store");
	rc = image_mkfs(state, err);
	if (rc == 0 && (fsync(file) < 0 || renameat(state, IMAGE_NEW, state, CUBE_LOCAL_IMAGE) < 0))
		rc = cube_fail_errno(err, "cannot keep the image of the store");
	if (rc < 0)
		(void)unlinkat(state, IMAGE_NEW, 0);
	return rc;
}

/* ---- loop device ---- */

static int loop_open(const char *name, char path[64])
{
	(void)snprintf(path, 64, "/dev/%.32s", name);
	return open(path, O_RDWR | O_CLOEXEC);
}

static bool loop_has(int loop, const struct stat *file)
{
	struct loop_info64 info;

	return ioctl(loop, LOOP_GET_STATUS64, &info) == 0 && info.lo_inode == file->st_ino &&
	       info.lo_device == (uint64_t)file->st_dev;
}

/* The one of the file, if a sandbox of an earlier daemon holds it; -ENOENT. */
static int loop_find(const struct stat *file, char path[64])
{
	DIR *d = opendir("/sys/block");
	const struct dirent *e;
	int found = -ENOENT;

	while (d && found < 0 && (e = readdir(d)) != NULL) {
		char bound[300];
		int loop;

		(void)snprintf(bound, sizeof(bound), "/sys/block/%s/loop/backing_file", e->d_name);
		if (strncmp(e->d_name, "loop", 4) != 0 || access(bound, F_OK) < 0)
			continue;
		loop = loop_open(e->d_name, path);
		if (loop >= 0 && loop_has(loop, file))
			found = loop;
		else if (loop >= 0)
			close(loop);
	}
	if (d)
		closedir(d);
	return found;
}

/* Without a second cache in memory where the disk lets us. */
static int loop_configure(int loop, int file)
{
	struct loop_config config = {.fd = (uint32_t)file,
				     .info = {.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO}};

	(void)snprintf((char *)config.info.lo_file_name, LO_NAME_SIZE, "%s", CUBE_LOCAL_IMAGE);
	if (ioctl(loop, LOOP_CONFIGURE, &config) == 0)
		return 0;
	if (errno != EINVAL)
		return -errno;
	config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
	return ioctl(loop, LOOP_CONFIGURE, &config) < 0 ? -errno : 0;
}

static int loop_take(int file, char path[64])
{
	cube_auto_fd control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int rc = control < 0 ? -errno : -EBUSY;

	for (unsigned i = 0; i < IMAGE_TRIES && rc == -EBUSY; i++) {
		int number = ioctl(control, LOOP_CTL_GET_FREE);
		cube_auto_fd loop = -1;
		char name[32];

		if (number < 0)
			return -errno;
		(void)snprintf(name, sizeof(name), "loop%d", number);
		loop = loop_open(name, path);
		rc = loop < 0 ? -errno : loop_configure(loop, file);
		if (rc == 0)
			return cube_steal_fd(&loop);
	}
	return rc;
}

/* ---- mount ---- */

static int image_mount(const char *device, int *ret_root, struct cube_err *err)
{
	cube_auto_fd fs = fsopen("btrfs", FSOPEN_CLOEXEC);
	cube_auto_fd root = -1;
	char why[160] = "";
	int rc = fs < 0 ? -errno : 0;

	if (rc == 0 && (fsconfig(fs, FSCONFIG_SET_STRING, "source", device, 0) < 0 ||
			fsconfig(fs, FSCONFIG_SET_FLAG, "nodiscard", NULL, 0) < 0 ||
			fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)) {
		rc = -errno;
		cube_local_mnt_log(fs, why, sizeof(why));
	}
	if (rc == 0)
		root = fsmount(fs, FSMOUNT_CLOEXEC,
			       MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOATIME);
	if (rc == 0)
		rc = root < 0 ? -errno : cube_local_keep(root);
	if (rc < 0)
		return cube_fail(err, rc, "cannot mount the image of the store (%s): %s%s%s", device,
				 cube_errno_text(rc), *why ? ": " : "", why);
	*ret_root = cube_steal_fd(&root);
	return 0;
}

static int image_attach(struct cube_local_image *i, struct cube_err *err)
{
	cube_auto_fd loop = -1;
	struct stat st;
	char device[64];
	int found;

	if (fstat(i->file, &st) < 0)
		return cube_fail_errno(err, "cannot look at the image of the store");
	found = loop_find(&st, device);
	if (found < 0)
		found = loop_take(i->file, device);
	if (found < 0)
		return cube_fail(err, found, "there is no loop device for the image of the store: %s",
				 cube_errno_text(found));
	loop = found;
	return image_mount(device, &i->root, err);
}

/* mkfs makes the first chunk of metadata tiny, and on a disk that data has filled there is none for a second: nobody
 * could even make a file. Moved once, it gets the usual size. */
static int image_settle(int root, struct cube_err *err)
{
	struct btrfs_ioctl_balance_args args = {.flags = BTRFS_BALANCE_METADATA};
	cube_auto_fd fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, BTRFS_IOC_BALANCE_V2, &args) < 0)
		return cube_fail_errno(err, "cannot settle the new image of the store");
	return 0;
}

int cube_local_image_open(int state, uint64_t limit, struct cube_local_image **ret, int *ret_root,
			  struct cube_err *err)
{
	struct cube_local_image *i = cube_calloc(1, sizeof(*i));
	bool fresh = !cube_local_image_there(state);
	int rc = 0;

	if (i == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	i->file = i->root = -1;
	if (fresh)
		rc = image_make(state, limit, err);
	if (rc == 0) {
		i->file = openat(state, CUBE_LOCAL_IMAGE, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
		rc = i->file < 0 ? cube_fail_errno(err, "cannot open the image of the store") : 0;
	}
	if (rc == 0)
		rc = image_attach(i, err);
	if (rc == 0 && fresh)
		rc = image_settle(i->root, err);
	if (rc == 0)
		rc = cube_local_grow_start(i->file, i->root, &i->grow, err);
	if (rc < 0) {
		cube_local_image_close(i);
		return rc;
	}
	*ret = i;
	*ret_root = i->root;
	return 0;
}

void cube_local_image_close(struct cube_local_image *i)
{
	if (!i)
		return;
	cube_local_grow_stop(i->grow);
	cube_local_keep_end(i->root);
	if (i->file >= 0)
		close(i->file);
	cube_free(i);
}
