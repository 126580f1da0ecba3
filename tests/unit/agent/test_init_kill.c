/* SPDX-License-Identifier: Apache-2.0 */
/* cube-init: signals, interrupts and time-outs reach everything that a job started, and nothing else. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/agent/rig.h"

/* A child, a child of its own session, and one that was forked twice: all write their numbers and sleep. */
#define FAMILY                                                                                               \
	"(echo $$ >main; exec 2>/dev/null; sh -c 'echo $$ >child; exec sleep 300' & "                        \
	"setsid sh -c 'echo $$ >leader; exec sleep 300' & "                                                  \
	"setsid sh -c 'setsid sh -c \"echo \\$\\$ >twice; exec sleep 300\" & exit' & "                       \
	"sh -c 'trap \"\" TERM INT HUP; echo $$ >deaf; while :; do sleep 0.05; done' & ); "

static const char *const family[] = {"child", "leader", "twice", "deaf"};

static void family_dead(struct rig *r, bool deaf)
{
	for (unsigned i = 0; i < sizeof(family) / sizeof(family[0]) - !deaf; i++)
		rig_wait_dead(rig_wait_number(r, family[i]));
}

static void family_born(struct rig *r)
{
	for (unsigned i = 0; i < sizeof(family) / sizeof(family[0]); i++)
		(void)rig_wait_number(r, family[i]);
}

static void family_forget(struct rig *r)
{
	char path[128];

	for (unsigned i = 0; i < sizeof(family) / sizeof(family[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", r->dir, family[i]);
		(void)unlink(path);
	}
}

static uint64_t family_start(struct rig *r, uint64_t session, uint32_t timeout_s)
{
	uint64_t id = rig_start(r, &(struct rig_run){.text = FAMILY "echo ready; sleep 300; echo never",
						     .session = session,
						     .timeout_s = timeout_s});

	rig_wait_total(r, id, 6);
	family_born(r);
	return id;
}

static void kill_all_of_it(struct rig *r)
{
	for (uint64_t session = 0; session < 2; session++) {
		uint64_t id = family_start(r, session, 0);

		cube_link_kill(r->link, id, SIGKILL);
		rig_expect(r, id, "ready\n", CUBE_END_KILLED, 137);
		assert_int_equal(rig_job(r, id)->end.signal, SIGKILL);
		family_dead(r, true);
		family_forget(r);
	}
	rig_expect(r, rig_say(r, "echo alive"), "alive\n", CUBE_END_EXIT, 0);
}

static void test_kill(void **state)
{
	(void)state;
	rig_each(kill_all_of_it);
}

static void timeout_of_it(struct rig *r)
{
	for (uint64_t session = 0; session < 2; session++) {
		uint64_t id = family_start(r, session, 1);

		rig_expect(r, id, "ready\n", CUBE_END_TIMEOUT, 124);
		family_dead(r, true);
		family_forget(r);
	}
	rig_expect(r, rig_say(r, "echo alive"), "alive\n", CUBE_END_EXIT, 0);
}

static void test_timeout(void **state)
{
	(void)state;
	rig_each(timeout_of_it);
}

static double seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void interrupt_of_it(struct rig *r)
{
	uint64_t id = family_start(r, 1, 0);
	double began = seconds();

	cube_link_interrupt(r->link, id);
	rig_expect(r, id, "ready\n", CUBE_END_KILLED, 137); /* one of them was deaf */
	assert_true(seconds() - began >= 3.9);
	family_dead(r, true);
	began = seconds();
	id = rig_start(r, &(struct rig_run){.text = "cd /usr; export K=v; echo ready; sleep 300; echo never",
					    .session = 1});
	rig_wait_total(r, id, 6);
	(void)usleep(200000); /* bash loses an INT that comes while it forks */
	cube_link_interrupt(r->link, id);
	rig_expect(r, id, "ready\n", CUBE_END_KILLED, 130);
	assert_true(seconds() - began < 1.9);
	rig_expect(r, rig_say(r, "pwd"), "/usr\n", CUBE_END_EXIT, 0);
}

static void test_interrupt(void **state)
{
	(void)state;
	rig_each(interrupt_of_it);
}

/* Whatever a killed command had still to do is not done: not even in a shell that catches the signal. */
static void never_goes_on(struct rig *r)
{
	static const char *const texts[] = {
		"echo ready; sleep 300; echo never",
		"echo ready; while :; do sleep 300; echo never; done",
		"trap 'echo caught' INT; echo ready; sleep 300; echo never",
		"f() { sleep 300; echo never; }; echo ready; f; f",
		"echo ready; while :; do :; done",
	};

	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		uint64_t id = rig_start(r, &(struct rig_run){.text = texts[i], .session = 1});

		rig_wait_total(r, id, 6);
		(void)usleep(20000);
		cube_link_interrupt(r->link, id);
		rig_wait_end(r, id);
		assert_false(rig_has(r, id, "never"));
		assert_int_equal(rig_job(r, id)->end.how, CUBE_END_KILLED);
	}
}

static void test_never_goes_on(void **state)
{
	(void)state;
	rig_each(never_goes_on);
}

/* Earlier background children of the session live on, through a time-out, an interrupt and a KILL. */
static void left_alone(struct rig *r)
{
	uint64_t id;
	int left;

	rig_expect(r,
		   rig_say(r, "sh -c 'echo $$ >left; exec sleep 300' >/dev/null 2>&1 & (setsid sh -c 'echo "
			      "$$ >left2; "
			      "sleep 300; exit' >/dev/null 2>&1 &)"),
		   "", CUBE_END_EXIT, 0);
	left = rig_wait_number(r, "left");
	(void)rig_wait_number(r, "left2");
	id = rig_start(r, &(struct rig_run){.text = "echo ready; sleep 300 & sleep 300", .session = 1});
	rig_wait_total(r, id, 6);
	cube_link_kill(r->link, id, SIGKILL);
	rig_expect(r, id, "ready\n", CUBE_END_KILLED, 137);
	assert_int_equal(kill(left, 0), 0);
	assert_int_equal(kill(rig_wait_number(r, "left2"), 0), 0);
	/* But they go with the session. */
	cube_link_session_close(r->link, 1, true);
	rig_expect(r, rig_say(r, "echo reset"), "reset\n", CUBE_END_EXIT, 0);
	assert_int_equal(kill(left, 0), 0);
	cube_link_session_close(r->link, 1, false);
	rig_wait_dead(left);
	rig_wait_dead(rig_wait_number(r, "left2"));
}

static void test_left_alone(void **state)
{
	(void)state;
	rig_each(left_alone);
}

/* Other signals reach the processes and end nothing by themselves; a stopped one is reached as well. */
static void other_signals(struct rig *r)
{
	uint64_t id =
		rig_start(r, &(struct rig_run){.text = "trap 'echo usr' USR1; echo ready; i=0; while [ $i "
						       "-lt 200 ]; do sleep 0.02; i=$((i+1)); done"});

	rig_wait_total(r, id, 6);
	cube_link_kill(r->link, id, SIGUSR1);
	rig_wait_total(r, id, 10);
	cube_link_kill(r->link, id, SIGSTOP);
	(void)usleep(50000);
	cube_link_kill(r->link, id, SIGTERM);
	rig_expect(r, id, NULL, CUBE_END_KILLED, 143);
	id = rig_start(r, &(struct rig_run){.text = "echo ready; exec sleep 300"});
	rig_wait_total(r, id, 6);
	cube_link_kill(r->link, id, SIGUSR2);
	rig_expect(r, id, "ready\n", CUBE_END_KILLED, 128 + SIGUSR2);
	/* In a session USR1 is for the program, not for the shell. */
	id = rig_start(
		r,
		&(struct rig_run){
			.text = "x=1; sh -c 'trap \"echo got; exit 3\" USR1; echo ready; sleep 300 & wait'",
			.session = 1});
	rig_wait_total(r, id, 6);
	cube_link_kill(r->link, id, SIGUSR1);
	rig_expect(r, id, "ready\ngot\n", CUBE_END_EXIT, 3);
	rig_expect(r, rig_say(r, "echo $x"), "1\n", CUBE_END_EXIT, 0);
}

static void test_other_signals(void **state)
{
	(void)state;
	rig_each(other_signals);
}

/* What forks all the time does not outrun the killer. */
static void spawning(struct rig *r)
{
	uint64_t id;

	for (uint64_t session = 0; session < 2; session++) {
		id = rig_start(r, &(struct rig_run){.text = "echo ready; for i in 1 2 3; do sh -c 'while :; "
							    "do (setsid sleep 0.01 &) ; done' & done; wait",
						    .session = session});
		rig_wait_total(r, id, 6);
		(void)usleep(100000);
		cube_link_kill(r->link, id, SIGKILL);
		rig_expect(r, id, NULL, CUBE_END_KILLED, 137);
	}
}

static void test_spawning(void **state)
{
	(void)state;
	rig_each(spawning);
}

static void test_paused(void **state)
{
	struct rig *r = rig_new(NULL, false, false);
	uint64_t id = rig_start(r, &(struct rig_run){.text = "sleep 300", .timeout_s = 1});
	double began = seconds();

	(void)state;
	cube_link_paused(r->link, 1500);
	rig_expect(r, id, "", CUBE_END_TIMEOUT, 124);
	assert_true(seconds() - began >= 2.4);
	/* The agent stood still with everything else, and hears of it in time: before it goes on, or just after. */
	for (int late = 0; late < 2; late++) {
		id = rig_start(r, &(struct rig_run){.text = "sleep 4; echo done", .timeout_s = 2});
		rig_wait_started(r, id);
		assert_int_equal(kill(r->agent, SIGSTOP), 0);
		(void)poll(NULL, 0, 3500);
		if (late == 0)
			cube_link_paused(r->link, 3500);
		assert_int_equal(kill(r->agent, SIGCONT), 0);
		(void)usleep(50000);
		if (late == 1)
			cube_link_paused(r->link, 3500);
		rig_expect(r, id, "done\n", CUBE_END_EXIT, 0);
	}
	id = rig_start(r, &(struct rig_run){.text = "sleep 1.3", .timeout_s = 1});
	cube_link_timeout(r->link, id, 0);
	rig_expect(r, id, "", CUBE_END_EXIT, 0);
	id = rig_start(r, &(struct rig_run){.text = "sleep 300"});
	cube_link_timeout(r->link, id, 1);
	rig_expect(r, id, "", CUBE_END_TIMEOUT, 124);
	rig_free(r);
}

/* Everything at once; and standing still without a freezer, from which who was stopped before is not woken.
 */
static void everyone(struct rig *r)
{
	uint64_t a = rig_start(r, &(struct rig_run){.text = "while :; do echo x; sleep 0.01; done"});
	uint64_t b = rig_start(r, &(struct rig_run){.text = "echo $$ >stopped; kill -STOP $$; echo woken"});
	int stopped = rig_wait_number(r, "stopped");
	uint64_t before;

	rig_wait_total(r, a, 20);
	cube_link_freeze(r->link, true);
	(void)usleep(200000);
	before = rig_job(r, a)->total;
	(void)usleep(200000);
	assert_int_equal(rig_job(r, a)->total, before);
	cube_link_freeze(r->link, false);
	rig_wait_total(r, a, before + 20);
	assert_int_equal(rig_job(r, b)->total, 0);
	cube_link_kill_all(r->link, SIGKILL);
	rig_expect(r, a, NULL, CUBE_END_KILLED, 137);
	rig_expect(r, b, "", CUBE_END_KILLED, 137);
	rig_wait_dead(stopped);
	rig_expect(r, rig_say(r, "echo still here"), "still here\n", CUBE_END_EXIT, 0);
}

static void test_everyone(void **state)
{
	(void)state;
	rig_each(everyone);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kill),       cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_interrupt),  cmocka_unit_test(test_never_goes_on),
		cmocka_unit_test(test_left_alone), cmocka_unit_test(test_other_signals),
		cmocka_unit_test(test_spawning),   cmocka_unit_test(test_paused),
		cmocka_unit_test(test_everyone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
