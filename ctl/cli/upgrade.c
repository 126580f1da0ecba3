/* SPDX-License-Identifier: Apache-2.0 */
/* `cubefs upgrade MOUNTPOINT`: this program takes over from the one that serves a mount (fs/upgrade.h). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "ctl/cli/cli.h"
#include "ctl/cli/mounts.h"

#define UPGRADE_WAIT_MS 150000 /* longer than the daemon takes for any of it */

struct upgrade_mount {
	const char *path;
	struct cube_mounts_owner owner;
};

static int upgrade_compare(void *ctx, const char *path, const struct cube_mounts_owner *owner)
{
	struct upgrade_mount *m = ctx;

	if (strcmp(path, m->path) == 0)
		m->owner = *owner; /* the last one is on top */
	return 0;
}

/* Root may upgrade the mount of another, but not look into it: as that user one may. */
static char *upgrade_state(const struct upgrade_mount *m)
{
	struct cube_buf text = CUBE_BUF(PATH_MAX);
	char path[32], *state = NULL;
	int line[2];
	pid_t pid;

	if (m->owner.user == geteuid())
		return cube_cli_state(m->path);
	if (pipe2(line, O_CLOEXEC) < 0)
		return NULL;
	pid = fork();
	if (pid == 0) {
		if (setresgid(m->owner.group, m->owner.group, m->owner.group) == 0 &&
		    setresuid(m->owner.user, m->owner.user, m->owner.user) == 0)
			state = cube_cli_state(m->path);
		_exit(state != NULL && cube_file_write_all(line[1], state, strlen(state)) == 0 ? 0 : 1);
	}
	(void)close(line[1]);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", line[0]);
	if (pid > 0 && cube_file_read(AT_FDCWD, path, &text) == 0 && text.len > 0)
		state = cube_strdup(cube_buf_str(&text));
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	(void)close(line[0]);
	cube_buf_done(&text);
	return state;
}

/* The directory may have a longer path than an address can. */
static int upgrade_connect(const char *state, int *ret_fd, struct cube_err *err)
{
	cube_auto_fd dir = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cube_auto_fd fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/" CUBE_CLI_UPGRADE_DOOR, dir);
	if (dir < 0 || fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return cube_fail_errno(err, "%s/" CUBE_CLI_UPGRADE_DOOR ", where its daemon listens", state);
	*ret_fd = cube_steal_fd(&fd);
	return 0;
}

static int upgrade_ask(int fd, struct cube_err *err)
{
	cube_auto_fd self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char text[1024];
	ssize_t n;

	if (self < 0)
		return cube_fail_errno(err, "/proc/self/exe");
	if (cube_fd_send(fd, CUBE_CLI_UPGRADE_ASK, strlen(CUBE_CLI_UPGRADE_ASK), &self, 1) < 0)
		return cube_fail_errno(err, "the daemon");
	if (poll(&p, 1, UPGRADE_WAIT_MS) != 1)
		return cube_fail(err, -ETIMEDOUT, "the daemon does not say what has come of it");
	n = recv(fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return cube_fail(err, -EPIPE, "the daemon ended before the new one served");
	text[n] = '\0';
	if (strncmp(text, "ok", 2) == 0)
		return 0;
	return cube_fail(err, -EPERM, "%s", strncmp(text, "no ", 3) == 0 ? text + 3 : text);
}

static int upgrade_mount(const char *given, struct cube_err *err)
{
	struct upgrade_mount m = {.owner = {.user = (uid_t)-1, .group = (gid_t)-1}};
	cube_auto_str state = NULL;
	cube_auto_fd fd = -1;
	char path[PATH_MAX];
	int r = cube_cli_mount(given, path, err);

	if (r < 0)
		return r;
	m.path = path;
	(void)cube_mounts_each(upgrade_compare, &m);
	if (geteuid() != 0 && m.owner.user != geteuid())
		return cube_fail(err, -EPERM, "%s: only who mounted it and root may upgrade it", path);
	state = upgrade_state(&m);
	if (state == NULL)
		return cube_fail(err, -EIO, "%s does not say where its daemon is", path);
	r = upgrade_connect(state, &fd, err);
	return r < 0 ? r : upgrade_ask(fd, err);
}

int cube_cli_upgrade(int argc, char **argv)
{
	struct cube_err err = {0};

	if (argc != 2 || argv[1][0] == '-') {
		(void)fprintf(stderr, "usage: cubefs upgrade MOUNTPOINT\n");
		return 2;
	}
	return upgrade_mount(argv[1], &err) < 0 ? cube_cli_fail(&err) : 0;
}
