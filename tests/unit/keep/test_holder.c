/* SPDX-License-Identifier: Apache-2.0 */
/* A holder has its process's descriptors, as they are, when that has been killed. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fs/keep/holder.h"

#define FILE_NO  200 /* numbers that nobody else here has */
#define PIPE_NO  201
#define OTHER_NO 202

/* The worker: a holder, then files; then it waits to be killed. */
static void worker(int tell)
{
	struct cube_err err;
	pid_t holder = -1;
	int fd, pipes[2];

	if (cube_holder_start(&holder, &err) < 0)
		_exit(1);
	fd = memfd_create("held", MFD_CLOEXEC); /* after the holder was made: it shares what comes */
	if (fd < 0 || write(fd, "abcdef", 6) != 6 || lseek(fd, 2, SEEK_SET) != 2 || dup2(fd, FILE_NO) < 0 ||
	    flock(FILE_NO, LOCK_EX) < 0 || pipe(pipes) < 0 || dup2(pipes[1], PIPE_NO) < 0 ||
	    dup2(pipes[0], OTHER_NO) < 0)
		_exit(2);
	(void)!write(tell, &holder, sizeof(holder));
	for (;;)
		pause();
}

static void test_held(void **state)
{
	int tell[2], pidfd;
	pid_t holder, pid;
	char c;

	(void)state;
	assert_int_equal(pipe(tell), 0);
	pid = fork();
	if (pid == 0)
		worker(tell[1]);
	assert_int_equal(read(tell[0], &holder, sizeof(holder)), sizeof(holder));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	pidfd = (int)syscall(SYS_pidfd_open, holder, 0);
	assert_true(pidfd >= 0);
	assert_int_equal(cube_holder_take(pidfd, FILE_NO), 0);
	assert_int_equal(cube_holder_take(pidfd, PIPE_NO), 0);
	assert_int_equal(cube_holder_take(pidfd, 999), -EBADF);
	assert_int_equal(fcntl(FILE_NO, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(OTHER_NO, F_GETFD), -1); /* not asked for */
	assert_int_equal(read(FILE_NO, &c, 1), 1);      /* where it stood */
	assert_int_equal(c, 'c');
	cube_holder_end(pidfd);
	assert_int_equal(waitpid(holder, NULL, 0), holder); /* it is our child */
	/* what only it had is gone with it: the pipe's other end */
	(void)signal(SIGPIPE, SIG_IGN);
	assert_int_equal(write(PIPE_NO, "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	assert_int_equal(cube_holder_take(pidfd, FILE_NO), -ESRCH);
	close(pidfd);
	close(FILE_NO);
	close(PIPE_NO);
	close(tell[0]);
	close(tell[1]);
}

/* Its maker may be killed at any instant: it is known when there is one, and has what it is for when its maker goes on. */
static void test_at_once(void **state)
{
	pid_t *made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct cube_err err;

	(void)state;
	assert_ptr_not_equal(made, MAP_FAILED);
	for (int i = 0; i < 50; i++) {
		char path[64], name[32] = "";
		int pidfd, fd, status;
		pid_t pid = fork();

		if (pid == 0) {
			(void)prctl(PR_SET_DUMPABLE, 0); /* as one that has entered a user namespace */
			_exit(cube_holder_start(made, &err) < 0 || dup2(2, FILE_NO) < 0 ? 1 : 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		(void)snprintf(path, sizeof(path), "/proc/%d/comm", *made);
		fd = open(path, O_RDONLY);
		assert_true(fd >= 0 && read(fd, name, sizeof(name) - 1) > 0);
		assert_string_equal(name, "cubefs-holder\n");
		(void)close(fd);
		pidfd = (int)syscall(SYS_pidfd_open, *made, 0);
		assert_int_equal(cube_holder_take(pidfd, FILE_NO), 0);
		(void)close(FILE_NO);
		cube_holder_end(pidfd);
		assert_int_equal(waitpid(*made, NULL, 0), *made);
		(void)close(pidfd);
	}
	assert_int_equal(munmap(made, sizeof(*made)), 0);
}

/* It ends with whoever is to wait for it. */
static void test_parent_ends(void **state)
{
	int tell[2], pidfd;
	pid_t holder, middle = -1;
	char end;

	(void)state;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	assert_int_equal(pipe(tell), 0);
	middle = fork();
	if (middle == 0) {
		if (fork() == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			worker(tell[1]);
		}
		for (;;)
			pause();
	}
	assert_int_equal(read(tell[0], &holder, sizeof(holder)), sizeof(holder));
	pidfd = (int)syscall(SYS_pidfd_open, holder, 0);
	assert_int_equal(kill(middle, SIGKILL), 0);
	close(tell[1]);
	assert_int_equal(read(tell[0], &end, 1), 0); /* nobody has the other end: all have ended */
	while (waitpid(-1, NULL, 0) > 0)
		;
	assert_int_equal(cube_holder_take(pidfd, FILE_NO), -ESRCH);
	close(pidfd);
	close(tell[0]);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_at_once),
		cmocka_unit_test(test_parent_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
