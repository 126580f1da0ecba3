/* SPDX-License-Identifier: Apache-2.0 */
/* What is seen of a process: its group, its end, the signals that wait for it. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/tree/proc.h"
#include "tests/unit/tree/rig.h"

static void *thread_looks(void *arg)
{
	cube_proc_look((pid_t)syscall(SYS_gettid), arg);
	return NULL;
}

static void check_group(void **state)
{
	struct cube_proc p;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, thread_looks, &p), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(p.known && p.visible);
	assert_false(p.exiting);
	assert_int_equal(p.tgid, getpid());
	cube_proc_look(0, &p);
	assert_true(p.known);
	assert_false(p.visible);
}

static void check_end(void **state)
{
	static const int signals[] = {SIGKILL, SIGTERM, 0};
	struct cube_proc p;

	(void)state;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		pid_t pid = rig_person();

		rig_person_end(pid, signals[i]);
		cube_proc_look(pid, &p);
		assert_true(p.visible && p.exiting);
		assert_int_equal(p.exit_signal, signals[i]);
		rig_person_bury(pid);
	}
}

struct pending {
	int signal;
	bool lasting, reading; /* does it end a wait on a command, on a read? */
};

/* A stopped process keeps what it is sent; what it has blocked does not count. */
static void check_signals(void **state)
{
	const struct pending table[] = {
		{SIGINT, true, true},    {SIGTERM, true, true},   {SIGHUP, true, true},
		{SIGQUIT, true, true},   {SIGALRM, true, true},   {SIGUSR1, false, true},
		{SIGRTMIN, false, true}, {SIGCHLD, false, false}, {SIGWINCH, false, false},
		{SIGURG, false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		pid_t pid = rig_person();
		int status;

		assert_int_equal(kill(pid, SIGSTOP), 0);
		assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
		assert_false(cube_proc_interrupted(pid, true));
		assert_int_equal(kill(pid, table[i].signal), 0);
		if (cube_proc_interrupted(pid, true) != table[i].lasting ||
		    cube_proc_interrupted(pid, false) != table[i].reading)
			fail_msg("signal %d", table[i].signal);
		rig_person_end(pid, SIGKILL);
		rig_person_bury(pid);
	}
	assert_true(cube_proc_interrupted(0, true)); /* not visible: believed */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_group),
		cmocka_unit_test(check_end),
		cmocka_unit_test(check_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
