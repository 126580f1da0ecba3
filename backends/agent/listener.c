/* SPDX-License-Identifier: Apache-2.0 */
/* cube-init's socket. Its address goes by way of /proc/self/fd, since a path has 108 bytes at most. */
#include "backends/agent/listener.h"

#include "backends/base/clock.h"
#include "backends/base/macros.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LISTENER_NAME    "agent.sock"
#define LISTENER_WAIT_NS UINT64_C(5000000000)

static void listener_address(int dir, struct sockaddr_un *a)
{
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	(void)snprintf(a->sun_path, sizeof(a->sun_path), "/proc/self/fd/%d/" LISTENER_NAME, dir);
}

int cube_agent_listener_make(int dir, int *ret_fd, struct cube_err *err)
{
	cube_auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un a;

	listener_address(dir, &a);
	(void)unlinkat(dir, LISTENER_NAME, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ||
	    fchmodat(dir, LISTENER_NAME, 0600, 0) < 0 || listen(fd, 16) < 0)
		return cube_fail_errno(err, "cannot make the agent's socket");
	*ret_fd = cube_steal_fd(&fd);
	return 0;
}

int cube_agent_listener_connect(int dir, struct cube_cancel *cancel, int *ret_fd, struct cube_err *err)
{
	uint64_t end = cube_clock_mono() + LISTENER_WAIT_NS;
	cube_auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd p = {.fd = cube_cancel_fd(cancel), .events = POLLIN};
	struct sockaddr_un a;

	listener_address(dir, &a);
	if (fd < 0)
		return cube_fail_errno(err, "cannot make a socket");
	while (connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0) {
		if (errno == ECONNREFUSED || errno == ENOENT)
			return cube_fail(err, -EHOSTDOWN, "the sandbox's agent does not listen any more");
		if (errno != EAGAIN && errno != EINTR)
			return cube_fail_errno(err, "cannot connect to the sandbox's agent");
		if (cube_clock_mono() > end)
			return cube_fail(err, -ETIMEDOUT, "the sandbox's agent takes no connection");
		if (poll(&p, 1, 10) > 0)
			return cube_fail(err, -EINTR, "interrupted");
	}
	*ret_fd = cube_steal_fd(&fd);
	return 0;
}

int cube_agent_listener_path(int dir, char *out, size_t size)
{
	char link[64];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	n = readlink(link, out, size);
	if (n < 0)
		return -errno;
	if ((size_t)n + sizeof("/" LISTENER_NAME) > size)
		return -ENAMETOOLONG;
	memcpy(out + n, "/" LISTENER_NAME, sizeof("/" LISTENER_NAME));
	return 0;
}
