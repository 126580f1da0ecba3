/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts that are attached nowhere. */
#include "backends/local/mnt.h"

#include "backends/base/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

int cube_local_mnt_clone(int dirfd, const char *path)
{
	int fd = open_tree(dirfd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

	return fd < 0 ? -errno : fd;
}

int cube_local_mnt_clone_read_only(const char *path)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID};
	cube_auto_fd fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return -errno;
	return cube_steal_fd(&fd);
}

void cube_local_mnt_log(int fs, char *out, unsigned size)
{
	ssize_t n = read(fs, out, size - 1);

	if (n < 0)
		n = 0;
	while (n > 0 && out[n - 1] == '\n')
		n--;
	out[n] = 0;
	if (n > 2 && out[1] == ' ') /* "e text", "w text", "i text" */
		memmove(out, out + 2, (size_t)n - 1);
}

int cube_local_mnt_tmpfs(const char *size, struct cube_err *err)
{
	cube_auto_fd fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0)
		return cube_fail_errno(err, "cannot make a tmpfs");
	if (fsconfig(fs, FSCONFIG_SET_STRING, "source", "cubefs", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "size", size, 0) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0755", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return cube_fail_errno(err, "cannot set up a tmpfs");
	fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID);
	return fd < 0 ? cube_fail_errno(err, "cannot mount a tmpfs") : fd;
}

int cube_local_mnt_set(int fd, uint64_t attrs, int userns)
{
	struct mount_attr attr = {.attr_set = attrs};

	if (userns >= 0) {
		attr.attr_set |= MOUNT_ATTR_IDMAP;
		attr.userns_fd = (uint64_t)userns;
	}
	return mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

int cube_local_mnt_writable(int fd)
{
	struct mount_attr attr = {.attr_clr = MOUNT_ATTR_RDONLY};

	return mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

int cube_local_mnt_attach(int fd, const char *path)
{
	return move_mount(fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}
