/* SPDX-License-Identifier: Apache-2.0 */
/* A child that makes a few system calls and ends.
 *
 * The system call itself and not fork(3): nothing of the C library's (or a sanitizer's, which would start a thread) runs
 * in the child, so that it has one thread and may enter or make namespaces. It must do nothing but system calls, and
 * end by _exit. */
#ifndef CUBEFS_BACKENDS_LOCAL_CHILD_H
#define CUBEFS_BACKENDS_LOCAL_CHILD_H

#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* As fork(2), in new namespaces of the kinds @spaces (CLONE_NEW*, or 0). */
static inline pid_t cube_local_child(unsigned long spaces)
{
	return (pid_t)syscall(SYS_clone, spaces | SIGCHLD, 0UL, 0UL, 0UL, 0UL);
}

#endif
