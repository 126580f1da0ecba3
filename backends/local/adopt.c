/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the mounts of a running sandbox out of its mount namespace. */
#include "backends/local/adopt.h"

#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/local/child.h"
#include "backends/local/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ADOPT_MAX (1u << 20)

/* One line: ... POINT OPTIONS ... - overlay ID ... */
static bool adopt_line(const char *line, const char *point, const char *id)
{
	char at[64], type[16], source[80];
	const char *dash = strstr(line, " - ");

	return dash && sscanf(line, "%*s %*s %*s %*s %63s", at) == 1 &&
	       sscanf(dash + 3, "%15s %79s", type, source) == 2 && strcmp(at, point) == 0 &&
	       strcmp(type, "overlay") == 0 && strcmp(source, id) == 0;
}

static bool adopt_has(pid_t init, const char *point, const char *id)
{
	struct cube_buf text = CUBE_BUF(ADOPT_MAX);
	char path[64], *save = NULL;
	bool found = false;

	(void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)init);
	if (cube_file_read(AT_FDCWD, path, &text) == 0 && text.len > 0)
		for (char *l = strtok_r(text.data, "\n", &save); l && !found; l = strtok_r(NULL, "\n", &save))
			found = adopt_line(l, point, id);
	cube_buf_done(&text);
	return found;
}

bool cube_local_adopt_is(pid_t init, const char *id)
{
	return adopt_has(init, "/", id);
}

/* In a child, since the other namespace's root becomes the process's. Only system calls: other threads may
 * have held locks at the fork. In that namespace the sandbox's own process 1 decides what is at
 * /workspace; what is found there is checked to be the overlay before and has no link in its path. */
static _Noreturn void adopt_child(int ns, int out)
{
	union {
		char space[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr head;
	} control = {.head = {.cmsg_len = CMSG_LEN(2 * sizeof(int)),
			      .cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS}};
	char c = 0;
	struct iovec iov = {.iov_base = &c, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control.space)};
	int fds[2];

	if (!cube_local_child_enter(ns, CLONE_NEWNS))
		cube_local_child_exit(1);
	fds[0] = open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	fds[1] = open_tree(AT_FDCWD, "/workspace", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	if (fds[0] < 0 || fds[1] < 0)
		cube_local_child_exit(1);
	__builtin_memcpy(CMSG_DATA(&control.head), fds, sizeof(fds));
	cube_local_child_exit(syscall(SYS_sendmsg, out, &msg, 0) == 1 ? 0 : 1);
}

static int adopt_receive(int in, int fds[2])
{
	unsigned n = 0;
	char c;

	if (cube_fd_recv(in, &c, 1, fds, 2, &n) == 1 && n == 2)
		return 0;
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
	return -EIO;
}

/* Both or none. */
static int adopt_rehome(int fds[2], int dir)
{
	fds[0] = cube_local_keep_foreign(fds[0], dir);
	fds[1] = cube_local_keep_foreign(fds[1], dir);
	for (unsigned i = 0; i < 2; i++) {
		if (fds[i] >= 0)
			continue;
		if (fds[1 - i] >= 0)
			cube_local_keep_end(fds[1 - i]);
		return fds[i];
	}
	return 0;
}

int cube_local_adopt_mounts(pid_t init, const char *id, int dir, int *ret_root, int *ret_workspace,
			    struct cube_err *err)
{
	cube_auto_fd ns = -1, in = -1, out = -1;
	int pair[2], fds[2] = {-1, -1}, rc;
	char path[64];
	pid_t pid;

	if (!adopt_has(init, "/", id) || !adopt_has(init, "/workspace", id))
		return cube_fail(err, -EIO, "process %d does not have the files of sandbox %s", (int)init,
				 id);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)init);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return cube_fail_errno(err, "cannot reach the mounts of sandbox %s", id);
	in = pair[0];
	out = pair[1];
	pid = cube_local_child(0);
	if (pid == 0)
		adopt_child(ns, out);
	close(cube_steal_fd(&out));
	rc = pid < 0 ? -errno : adopt_receive(in, fds);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	if (rc == 0)
		rc = adopt_rehome(fds, dir);
	if (rc < 0)
		return cube_fail(err, rc, "cannot take the mounts of sandbox %s: %s", id,
				 cube_errno_text(rc));
	*ret_root = fds[0];
	*ret_workspace = fds[1];
	return 0;
}
