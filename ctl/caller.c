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
	while (n < CUBE_CALLER_GROUPS) {
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

static int caller_open2(int dir, const char *path, int flags, uint64_t resolve)
{
	/* With O_PATH nothing is opened that could become a terminal, and openat2 wants no other flag. */
	struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC | (flags & O_PATH ? 0 : O_NOCTTY)),
			       .resolve = resolve | RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/* The raw calls act on this thread alone; the C library's would change all threads. */
int cube_caller_enter(const struct cube_caller *c, struct cube_caller_rights *ours)
{
	gid_t theirs[CUBE_CALLER_GROUPS];
	size_t n_theirs;

	ours->entered = false;
	if (c == NULL || c->owner)
		return 0;
	n_theirs = caller_groups(c->pid, theirs);
	ours->n_groups = syscall(SYS_getgroups, CUBE_CALLER_GROUPS, ours->groups);
	ours->uid = (uid_t)setfsuid((uid_t)-1);
	ours->gid = (gid_t)setfsgid((gid_t)-1);
	if (ours->n_groups < 0 || syscall(SYS_setgroups, n_theirs, theirs) < 0)
		return -EACCES;
	ours->entered = true;
	(void)setfsgid(c->gid);
	(void)setfsuid(c->uid);
	if ((uid_t)setfsuid((uid_t)-1) == c->uid && (gid_t)setfsgid((gid_t)-1) == c->gid)
		return 0;
	cube_caller_leave(ours);
	return -EACCES;
}

void cube_caller_leave(struct cube_caller_rights *ours)
{
	if (!ours->entered)
		return;
	(void)setfsuid(ours->uid);
	(void)setfsgid(ours->gid);
	(void)syscall(SYS_setgroups, ours->n_groups, ours->groups);
	ours->entered = false;
}

int cube_caller_openat(const struct cube_caller *c, int dir, const char *path, int flags, uint64_t resolve)
{
	struct cube_caller_rights ours;
	int fd = cube_caller_enter(c, &ours);

	if (fd == 0)
		fd = caller_open2(dir, path, flags, resolve);
	cube_caller_leave(&ours);
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
	fd = cube_caller_openat(c, AT_FDCWD, path, flags, 0);
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
