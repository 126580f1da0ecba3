/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/agent/init/door.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define DOOR_FIRST_NS 2000000L   /* between two knocks at first: the other side is just about to open */
#define DOOR_LAST_NS  250000000L /* and at most */

static void door_end(int sig)
{
	(void)sig;
	_exit(0);
}

static void door_signals(void (*handler)(int))
{
	const int all[] = {SIGTERM, SIGINT, SIGPWR};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		(void)signal(all[i], handler);
}

/* The descriptor that comes with one byte; -EPROTO: none did. */
static int door_receive(int sock)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char byte;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.space,
			     .msg_controllen = sizeof(control)};
	const struct cmsghdr *c;
	int fd;

	if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) != 1)
		return -EPROTO;
	c = CMSG_FIRSTHDR(&msg);
	if (c == NULL || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(int)))
		return -EPROTO;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static int door_knock(const struct sockaddr_un *at)
{
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd;

	if (sock < 0)
		return -errno;
	fd = connect(sock, (const struct sockaddr *)at, sizeof(*at)) < 0 ? -errno : door_receive(sock);
	(void)close(sock);
	return fd;
}

int init_door_enter(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct timespec pause = {.tv_nsec = DOOR_FIRST_NS};
	int fd;

	if ((size_t)snprintf(at.sun_path, sizeof(at.sun_path), "%s", path) >= sizeof(at.sun_path))
		return -ENAMETOOLONG;
	door_signals(door_end);
	while ((fd = door_knock(&at)) < 0) {
		(void)nanosleep(&pause, NULL);
		if (pause.tv_nsec < DOOR_LAST_NS)
			pause.tv_nsec *= 2;
	}
	door_signals(SIG_DFL);
	return fd;
}
