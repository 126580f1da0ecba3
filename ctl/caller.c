/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks, and opening files as if the asker did it. */
#include "ctl/caller.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "backends/base/buf.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"

#define CALLER_GROUPS 1024
#define CALLER_STATUS (64 << 10)

const char *cube_caller_text(const struct cube_caller *c, char out[64])
{
	struct cube_buf comm = CUBE_BUF(64), safe = CUBE_BUF(48);
	char path[32];

	if (!c->local) {
		(void)snprintf(out, 64, "remote");
		return out;
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/comm", c->pid);
	if (c->pid > 0 && cube_file_read(AT_FDCWD, path, &comm) == 0 && comm.len > 1) {
		cube_buf_add_escaped(&safe, comm.data, comm.len - 1, false);
		(void)snprintf(out, 64, "%s[%d]", cube_buf_str(&safe), c->pid);
	} else {
		(void)snprintf(out, 64, "pid %d", c->pid);
	}
	cube_buf_done(&comm);
	cube_buf_done(&safe);
	return out;
}

/* The supplementary groups of a process; none where it is gone or not visible. */
static size_t caller_groups(pid_t pid, gid_t *groups)
{
	struct cube_buf status = CUBE_BUF(CALLER_STATUS);
	char path[32];
	size_t n = 0;
	char *at;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (pid <= 0 || cube_file_read(AT_FDCWD, path, &status) < 0 || status.len == 0)
		goto out;
	at = strstr(status.data, "\nGroups:");
	if (at == NULL)
		goto out;
	at += strlen("\nGroups:");
	while (n < CALLER_GROUPS) {
		char *end;
		unsigned long g = strtoul(at, &end, 10);

		/* strtoul skips newlines too: stay on the line. */
		if (end == at || memchr(at, '\n', (size_t)(end - at)) != NULL)
			break;
		groups[n++] = (gid_t)g;
		at = end;
	}
out:
	cube_buf_done(&status);
	return n;
}

static int caller_open2(const char *path, int flags)
{
	/* With O_PATH nothing is opened that could become a terminal, and openat2 wants no other flag. */
	struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC | (flags & O_PATH ? 0 : O_NOCTTY)),
			       .resolve = RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/* The raw calls act on this thread alone; the C library's would change all threads. */
static int caller_open_as(const struct cube_caller *c, const char *path, int flags)
{
	gid_t theirs[CALLER_GROUPS], ours[CALLER_GROUPS];
	size_t n_theirs = caller_groups(c->pid, theirs);
	long n_ours = syscall(SYS_getgroups, CALLER_GROUPS, ours);
	uid_t uid = (uid_t)setfsuid((uid_t)-1);
	gid_t gid = (gid_t)setfsgid((gid_t)-1);
	int fd = -EACCES;

	if (n_ours < 0 || syscall(SYS_setgroups, n_theirs, theirs) < 0)
		return -EACCES;
	(void)setfsgid(c->gid);
	(void)setfsuid(c->uid);
	if ((uid_t)setfsuid((uid_t)-1) == c->uid && (gid_t)setfsgid((gid_t)-1) == c->gid)
		fd = caller_open2(path, flags);
	(void)setfsuid(uid);
	(void)setfsgid(gid);
	(void)syscall(SYS_setgroups, n_ours, ours);
	return fd;
}

int cube_caller_open(const struct cube_caller *c, const char *path, int flags, int *ret_fd,
		     struct cube_err *err)
{
	cube_auto_fd fd = -1;
	struct statfs fs;

	if (!c->local)
		return cube_fail(err, -EPERM, "'%s': a remote client cannot name a path of this machine",
				 path);
	if (path[0] != '/')
		return cube_fail(err, -EINVAL, "'%s': a path of this machine must be absolute", path);
	if (c->owner)
		fd = caller_open2(path, flags);
	else
		fd = caller_open_as(c, path, flags);
	if (fd < 0) {
		int code = fd;

		fd = -1;
		return cube_fail(err, code, "'%s': %s", path, cube_errno_text(code));
	}
	if (fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC)
		return cube_fail(err, -EACCES, "'%s': files of /proc would be those of the daemon", path);
	*ret_fd = cube_steal_fd(&fd);
	return 0;
}
