/* SPDX-License-Identifier: Apache-2.0 */
/* Mounting and unmounting. */
#include "fs/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/base/spawn.h"
#include "ctl/cli/mounts.h"

#define MOUNT_HELPER_MS 20000
#define MOUNT_OPTIONS   "allow_other,default_permissions"

/* ---- as root ---- */

static int mount_directly(const char *path, bool allow_other, int *ret_fd, struct cube_err *err)
{
	cube_auto_fd fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[160];

	if (fd < 0)
		return cube_fail_errno(err, "/dev/fuse (is the kernel's fuse module there?)");
	(void)snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,group_id=%u%s%s", fd,
		       geteuid(), getegid(), allow_other ? "," : "", allow_other ? MOUNT_OPTIONS : "");
	if (mount("cubefs", path, "fuse.cubefs", MS_NOSUID | MS_NODEV, options) < 0)
		return cube_fail_errno(err, "%s: cannot mount", path);
	*ret_fd = cube_steal_fd(&fd);
	return 0;
}

/* ---- as anyone else ---- */

static int mount_helper(const char *const *argv, const int *sock, struct cube_err *err)
{
	static const char *const env[] = {"_FUSE_COMMFD=3", "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C",
					  NULL};
	struct cube_buf text = CUBE_BUF(4096);
	struct cube_spawn s = {.argv = argv,
			       .env = env,
			       .cwd = -1,
			       .fds = sock,
			       .nfds = sock != NULL ? 1 : 0,
			       .in = -1,
			       .out = -1,
			       .text = &text,
			       .timeout_ms = MOUNT_HELPER_MS};
	char why[256];
	int status, r = cube_spawn_run(&s, NULL, &status, err);

	if (r == -ENOENT)
		r = cube_fail(err, r, "fusermount3 is not installed (Debian: apt install fuse3)");
	if (r == 0 && status != 0) {
		cube_spawn_describe(status, &text, why, sizeof(why));
		r = cube_fail(err, -EPERM, "fusermount3: %s", why);
	}
	cube_buf_done(&text);
	return r;
}

static int mount_by_helper(const char *path, bool allow_other, int *ret_fd, struct cube_err *err)
{
	char options[160], byte;
	const char *const argv[] = {"fusermount3", "-o", options, "--", path, NULL};
	int pair[2], r;
	unsigned n = 0;

	(void)snprintf(options, sizeof(options), "rw,nosuid,nodev,fsname=cubefs,subtype=cubefs%s%s",
		       allow_other ? "," : "", allow_other ? MOUNT_OPTIONS : "");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return cube_fail_errno(err, "socket pair");
	r = mount_helper(argv, &pair[1], err);
	if (r < 0 && allow_other && strstr(err->text, "user_allow_other") != NULL)
		r = cube_fail(err, -EPERM,
			      "-o allow_other: on this machine only root may let others in; leave it out, or "
			      "have a "
			      "line user_allow_other put into /etc/fuse.conf");
	(void)close(pair[1]);
	if (r == 0 && (cube_fd_recv(pair[0], &byte, 1, ret_fd, 1, &n) < 0 || n != 1))
		r = cube_fail(err, -EIO, "fusermount3 mounted %s and handed over no descriptor", path);
	(void)close(pair[0]);
	return r;
}

/* ---- which mount is it? ---- */

/* Looks at the mount itself, not at its file system: no request is made. */
static int mount_id(const char *path)
{
	cube_auto_fd fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct cube_buf text = CUBE_BUF(4096);
	char info[48];
	const char *at;
	int id = -1;

	(void)snprintf(info, sizeof(info), "/proc/self/fdinfo/%d", fd);
	if (fd >= 0 && cube_file_read(AT_FDCWD, info, &text) == 0) {
		at = strstr(cube_buf_str(&text), "mnt_id:");
		id = at == NULL ? -1 : (int)strtol(at + strlen("mnt_id:"), NULL, 10);
	}
	cube_buf_done(&text);
	return id;
}

int cube_mount_attach(struct cube_mount *m, bool allow_other, int *ret_fd, struct cube_err *err)
{
	int r;

	if (m->path == NULL)
		return 0;
	r = geteuid() == 0 ? mount_directly(m->path, allow_other, ret_fd, err)
			   : mount_by_helper(m->path, allow_other, ret_fd, err);

	if (r == 0)
		m->id = mount_id(m->path);
	return r;
}

static int mount_away(const char *path, bool lazily, struct cube_err *err)
{
	const char *const plain[] = {"fusermount3", "-u", "-q", "--", path, NULL};
	const char *const lazy[] = {"fusermount3", "-u", "-z", "-q", "--", path, NULL};

	if (geteuid() != 0)
		return mount_helper(lazily ? lazy : plain, NULL, err);
	if (umount2(path, UMOUNT_NOFOLLOW | (lazily ? MNT_DETACH : 0)) < 0)
		return cube_fail_errno(err, "%s: cannot unmount", path);
	return 0;
}

int cube_mount_drop(const char *path, struct cube_err *err)
{
	return mount_away(path, true, err);
}

bool cube_mount_there(const struct cube_mount *m)
{
	return m->path != NULL && mount_id(m->path) == m->id;
}

/* A copy of a mount has a number of its own. */
void cube_mount_let_go(const struct cube_mount *m)
{
	if (m->path != NULL && !cube_mount_there(m) && cube_mounts_has(m->path))
		(void)umount2(m->path, MNT_DETACH | UMOUNT_NOFOLLOW);
}

/* The device of the mount with that number: the control files of its connection are called so. 0: it is not there. */
static unsigned mount_minor(int id)
{
	struct cube_buf text = CUBE_BUF((size_t)1 << 24);
	const char *line =
		cube_file_read(AT_FDCWD, "/proc/self/mountinfo", &text) == 0 ? cube_buf_str(&text) : NULL;
	unsigned minor = 0;

	while (line != NULL && *line != '\0' && minor == 0) {
		const char *colon = strchr(line, ':'), *next = strchr(line, '\n');

		if (strtol(line, NULL, 10) == id && colon != NULL)
			minor = (unsigned)strtoul(colon + 1, NULL, 10);
		line = next != NULL ? next + 1 : NULL;
	}
	cube_buf_done(&text);
	return minor;
}

void cube_mount_abort(const struct cube_mount *m)
{
	cube_auto_fd fd = -1;
	unsigned minor;
	char path[64];

	if (!cube_mount_there(m))
		return;
	minor = mount_minor(m->id);
	if (geteuid() == 0 && (umount2(m->path, UMOUNT_NOFOLLOW | MNT_FORCE) == 0 || errno == EBUSY))
		return;
	(void)snprintf(path, sizeof(path), "/sys/fs/fuse/connections/%u/abort", minor);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)cube_file_write_all(fd, "1", 1);
}

int cube_mount_detach(const struct cube_mount *m, bool *ret_busy, struct cube_err *err)
{
	*ret_busy = false;
	if (!cube_mount_there(m))
		return 0; /* somebody did it already */
	if (mount_away(m->path, false, err) == 0)
		return 0;
	*ret_busy = true;
	return mount_away(m->path, true, err);
}
