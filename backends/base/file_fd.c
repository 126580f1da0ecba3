/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors over unix sockets. */
#include "backends/base/file.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A message with room for as many descriptors as the kernel lets one have. */
union fd_control {
	char space[CMSG_SPACE(CUBE_FDS_MAX * sizeof(int))];
	struct cmsghdr align;
};

ssize_t cube_fd_send(int sock, const void *data, size_t len, const int *fds, unsigned nfds)
{
	union fd_control control = {.space = {0}};
	char *bytes = NULL;
	struct iovec iov = {.iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (nfds > CUBE_FDS_MAX || len == 0)
		return -EINVAL;
	memcpy(&bytes, &data, sizeof(bytes)); /* iov_base has no const, sendmsg does not write to it */
	iov.iov_base = bytes;
	if (nfds > 0) {
		struct cmsghdr *c = &control.align;

		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* Takes the descriptors of one control message; those above @max are closed and counted all the same. */
static unsigned fd_collect(struct cmsghdr *c, int *fds, unsigned max, unsigned count)
{
	size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < n; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
		if (count < max)
			fds[count] = fd;
		else
			(void)close(fd);
		count++;
	}
	return count;
}

ssize_t cube_fd_recv(int sock, void *data, size_t len, int *fds, unsigned max, unsigned *ret_n)
{
	union fd_control control = {.space = {0}};
	struct iovec iov = {.iov_base = data, .iov_len = len};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space),
	};
	unsigned count = 0;
	ssize_t n;

	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			count = fd_collect(c, fds, max, count);
	}
	if (count > max || (msg.msg_flags & MSG_CTRUNC) != 0) {
		while (count > max)
			count--;
		while (count > 0)
			(void)close(fds[--count]);
		return -EMSGSIZE;
	}
	*ret_n = count;
	return n;
}
