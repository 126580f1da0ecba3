/* SPDX-License-Identifier: Apache-2.0 */
/* A child that makes a few system calls and ends.
 *
 * The system call itself and not fork(3): nothing of the C library's (or a sanitizer's, which would start a thread) runs
 * in the child, so that it has one thread and may enter or make namespaces. For the same reason it calls nothing that
 * a sanitizer puts a function of its own before, which might want a lock that another thread held: these here. */
#ifndef CUBEFS_BACKENDS_BASE_CHILD_H
#define CUBEFS_BACKENDS_BASE_CHILD_H

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* As fork(2), in new namespaces of the kinds @spaces (CLONE_NEW*, or 0). */
static inline pid_t cube_child(unsigned long spaces)
{
	return (pid_t)syscall(SYS_clone, spaces | SIGCHLD, 0UL, 0UL, 0UL, 0UL);
}

/* The same in the directory @group of a v2 tree. To be born there costs nothing; whoever enters one later waits
 * until no processor is in the middle of a fork, which takes ten milliseconds after a pause. */
static inline pid_t cube_child_in_group(int group)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
		.cgroup = (unsigned)group,
	};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static inline _Noreturn void cube_child_exit(int code)
{
	for (;;)
		(void)syscall(SYS_exit_group, code);
}

/* Waits until the other end of a pipe says something or is closed. */
static inline void cube_child_wait(int fd)
{
	char c;

	(void)syscall(SYS_read, fd, &c, 1UL);
}

static inline void cube_child_close(int fd)
{
	(void)syscall(SYS_close, fd);
}

static inline bool cube_child_write(int fd, const void *data, size_t len)
{
	return syscall(SYS_write, fd, data, len) == (long)len;
}

/* Writes @len bytes to the file @path, which is there; true if it took them all. */
static inline bool cube_child_put(const char *path, const char *text, size_t len)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && cube_child_write(fd, text, len);
}

/* @fd, with one byte, to who has the other end of the unix socket @sock: 0, or what errno says. */
static inline int cube_child_send(int sock, int fd)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)),
			      .cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS}};
	char byte = 0;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control.space)};

	__builtin_memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	return syscall(SYS_sendmsg, sock, &msg, 0) == 1 ? 0 : errno;
}

static inline bool cube_child_enter(int ns, int kind)
{
	return syscall(SYS_setns, ns, kind) == 0;
}

#endif
