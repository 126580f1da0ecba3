/* SPDX-License-Identifier: Apache-2.0 */
/* A process that keeps a worker's descriptors open beyond its end. */
#include "fs/keep/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/base/macros.h"

#define HOLDER_END_MS   5000
#define HOLDER_BEGIN_MS 5000

/* In a process that libc does not know of: system calls and nothing else. It must be dumpable, since a process that
 * entered a user namespace is not, and its descriptors could not be taken. */
static void holder_run(pid_t parent, int begun)
{
	uint64_t one = 1;
	sigset_t all;

	(void)sigfillset(&all);
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, _NSIG / 8);
	(void)syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)syscall(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
	(void)syscall(SYS_prctl, PR_SET_NAME, "cubefs-holder", 0, 0, 0);
	(void)syscall(SYS_write, begun, &one, sizeof(one));
	while ((pid_t)syscall(SYS_getppid) == parent)
		(void)syscall(SYS_pause);
	(void)syscall(SYS_exit_group, 0);
}

/* One that is not dumpable yet has nothing for who comes next, should this process be killed now. False: on this machine it
 * has not come to it; what it writes then must find the same file, so that is left open. */
static bool holder_await(int begun)
{
	struct pollfd p = {.fd = begun, .events = POLLIN};

	return poll(&p, 1, HOLDER_BEGIN_MS) == 1;
}

int cube_holder_start(pid_t *ret, struct cube_err *err)
{
	cube_auto_fd begun = eventfd(0, EFD_CLOEXEC);
	pid_t parent = getppid();
	long pid = begun < 0 ? -1
			     : syscall(SYS_clone, CLONE_FILES | CLONE_PARENT | CLONE_PARENT_SETTID | SIGCHLD,
				       NULL, ret, NULL, NULL);

	if (pid == 0)
		holder_run(parent, begun);
	if (pid < 0)
		return cube_fail_errno(err, "no process that holds the open files");
	if (!holder_await(begun))
		(void)cube_steal_fd(&begun);
	return 0;
}

int cube_holder_take(int pidfd, int fd)
{
	int got = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0), r = 0;

	if (got < 0)
		return -errno;
	if (got == fd)
		return fcntl(got, F_SETFD, FD_CLOEXEC) < 0 ? -errno : 0;
	if (dup3(got, fd, O_CLOEXEC) < 0)
		r = -errno;
	(void)close(got);
	return r;
}

void cube_holder_end(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	(void)poll(&p, 1, HOLDER_END_MS);
}
