/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/agent/door.h"

#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define NS_PER_MS INT64_C(1000000)

int cube_agent_door_open(int dir, int *ret_fd, struct cube_err *err)
{
	cube_auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/" CUBE_AGENT_DOOR, dir);
	(void)unlinkat(dir, CUBE_AGENT_DOOR, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ||
	    fchmodat(dir, CUBE_AGENT_DOOR, 0666, 0) < 0 || listen(fd, 16) < 0)
		return cube_fail_errno(err, "cannot make the socket on which the agent is awaited");
	*ret_fd = cube_steal_fd(&fd);
	return 0;
}

void cube_agent_door_close(int dir, int door)
{
	if (door < 0)
		return;
	(void)unlinkat(dir, CUBE_AGENT_DOOR, 0);
	close(door);
}

/* 1: it was the agent. */
static int door_answer(int door, pid_t who, int listener)
{
	struct sockaddr_un from; /* it has no name */
	socklen_t from_len = sizeof(from), len = sizeof(struct ucred);
	cube_auto_fd fd = accept4(door, (struct sockaddr *)&from, &from_len, SOCK_CLOEXEC);
	struct ucred peer = {0};

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.pid != who)
		return 0;
	return cube_fd_send(fd, "", 1, &listener, 1) == 1;
}

int cube_agent_door_hand(int door, pid_t who, int listener, int ms, struct cube_cancel *cancel,
			 struct cube_err *err)
{
	uint64_t end = cube_clock_mono() + (uint64_t)ms * NS_PER_MS;
	struct pollfd p[] = {{.fd = door, .events = POLLIN},
			     {.fd = cube_cancel_fd(cancel), .events = POLLIN}};

	for (;;) {
		int64_t left = (int64_t)(end - cube_clock_mono()) / NS_PER_MS;
		int n = poll(p, CUBE_COUNT(p), left > 0 ? (int)left : 0);

		if (n > 0 && p[1].revents != 0)
			return cube_fail(err, -EINTR, "interrupted");
		if (n > 0 && door_answer(door, who, listener))
			return 0;
		if (n == 0 || left <= 0)
			return cube_fail(err, -ETIMEDOUT, "the agent inside does not report");
	}
}
