/* SPDX-License-Identifier: Apache-2.0 */
/* User namespaces for idmapped mounts. */
#include "backends/ns/userns.h"

#include "backends/base/child.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int cube_ns_userns_write(pid_t pid, const char *file, const char *text)
{
	char path[64];
	cube_auto_fd fd = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : cube_file_write_all(fd, text, strlen(text));
}

/* A child in a user namespace of its own that stays until the other end of @wait is closed. */
static pid_t userns_hold(const int wait[2])
{
	pid_t pid = cube_child(CLONE_NEWUSER);

	if (pid != 0)
		return pid < 0 ? -errno : pid;
	cube_child_close(wait[1]);
	cube_child_wait(wait[0]);
	cube_child_exit(0);
}

/* @uid and those that follow are @ids, so many as @ids has; groups alike. */
static int userns_map_and_open(pid_t pid, const struct cube_ns_ids *ids, uint32_t uid, uint32_t gid,
			       int *ret_fd)
{
	char text[64], path[64];
	int rc;

	(void)snprintf(text, sizeof(text), "%u %u %u", uid, ids->uid, ids->count);
	rc = cube_ns_userns_write(pid, "uid_map", text);
	(void)snprintf(text, sizeof(text), "%u %u %u", gid, ids->gid, ids->count);
	if (rc == 0)
		rc = cube_ns_userns_write(pid, "gid_map", text);
	if (rc < 0)
		return rc;
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

static int userns_make(const struct cube_ns_ids *ids, uint32_t uid, uint32_t gid, int *ret_fd,
		       struct cube_err *err)
{
	int wait[2], rc;
	pid_t pid;

	if (pipe2(wait, O_CLOEXEC) < 0)
		return cube_fail_errno(err, "cannot make a pipe");
	pid = userns_hold(wait);
	rc = pid < 0 ? pid : userns_map_and_open(pid, ids, uid, gid, ret_fd);
	close(wait[0]);
	close(wait[1]);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	if (rc < 0)
		return cube_fail(err, rc,
				 "cannot make a user namespace (%s): user.max_user_namespaces must not be 0",
				 cube_errno_text(rc));
	return 0;
}

int cube_ns_userns(const struct cube_ns_ids *ids, int *ret_fd, struct cube_err *err)
{
	return userns_make(ids, 0, 0, ret_fd, err);
}

int cube_ns_userns_one(const struct cube_ns_ids *ids, uint32_t uid, uint32_t gid, int *ret_fd,
		       struct cube_err *err)
{
	const struct cube_ns_ids one = {.uid = ids->uid, .gid = ids->gid, .count = 1};

	return userns_make(&one, uid, gid, ret_fd, err);
}
