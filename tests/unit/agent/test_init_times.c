/* SPDX-License-Identifier: Apache-2.0 */
/* cube-init: what ended commands left, and the end of the sandbox's life where no daemon is. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/agent/rig.h"

static bool left_is(struct rig *r, void *ctx)
{
	return r->lefts > 0 && r->left == *(uint64_t *)ctx;
}

/* Asks, or (@ask false) waits to be told. */
static void expect_left(struct rig *r, uint64_t n, bool ask)
{
	if (ask) {
		pthread_mutex_lock(&r->lock);
		r->lefts = 0;
		pthread_mutex_unlock(&r->lock);
		assert_int_equal(cube_link_look(r->link), 0);
	}
	rig_wait(r, left_is, &n);
}

/* Of a session, of a job, with a session of its own; the shells are none. */
static void left(struct rig *r)
{
	uint64_t id;

	expect_left(r, 0, true);
	rig_expect(r, rig_say(r, "echo here"), "here\n", CUBE_END_EXIT, 0);
	expect_left(r, 0, true);
	rig_expect(r, rig_say(r, "sleep 300 & echo $! >one"), "", CUBE_END_EXIT, 0);
	expect_left(r, 1, true);
	id = rig_do(r, &(struct rig_run){.text = "setsid sleep 300 >/dev/null 2>&1 & echo $! >two"});
	rig_expect(r, id, "", CUBE_END_EXIT, 0);
	expect_left(r, 2, true);
	assert_int_equal(kill(rig_wait_number(r, "one"), SIGKILL), 0);
	assert_int_equal(kill(rig_wait_number(r, "two"), SIGKILL), 0);
	expect_left(r, 0, false);
}

static void test_left(void **state)
{
	(void)state;
	rig_each_shell(left);
	struct rig *r = rig_new(NULL, false, true);
	left(r);
	rig_free(r);
}

/* What a shell could hand on, so that it is written without being opened: only if it is open for both. */
static void held(struct rig *r)
{
	static const struct {
		const char *line;
		bool still;
	} steps[] = {
		{"exec 3<>one", false},   {"exec 3>&-", true},         {"exec 3>one 4<one", true},
		{"exec 3>&- 4<&-", true}, {"exec 5<>/dev/null", true}, {"exec 6<>one; exec 7<&6", false},
		{"exec 6>&-", false},     {"exec 7>&-", true},
	};

	expect_left(r, 0, true);
	assert_true(r->still);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		rig_expect(r, rig_say(r, steps[i].line), "", CUBE_END_EXIT, 0);
		expect_left(r, 0, true);
		assert_int_equal(r->still, steps[i].still);
	}
}

static void test_held(void **state)
{
	(void)state;
	rig_each_shell(held);
}

static void expect_agent_ends(struct rig *r)
{
	int status;

	assert_int_equal(waitpid(r->agent, &status, 0), r->agent);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	r->agent = 0;
}

/* Nothing happens while a daemon is there, however late it is; without one all ends. */
static void test_stop(void **state)
{
	struct rig *r = rig_new(NULL, false, false);
	uint64_t id =
		rig_start(r, &(struct rig_run){.text = "trap '' TERM; echo $$ >pid; sleep 300 & wait; wait"});
	int pid = rig_wait_number(r, "pid");

	(void)state;
	cube_link_deadline(r->link, 0, CUBE_LINK_END_STOP);
	rig_expect(r, rig_say(r, "sleep 0.2; echo here"), "here\n", CUBE_END_EXIT, 0);
	assert_false(rig_job(r, id)->ended);
	rig_disconnect(r);
	expect_agent_ends(r);
	rig_wait_dead(pid);
	rig_free(r);
}

/* The end comes while nobody is there. */
static void test_stop_later(void **state)
{
	struct rig *r = rig_new(NULL, false, false);

	(void)state;
	cube_link_deadline(r->link, 3000, CUBE_LINK_END_STOP);
	rig_expect(r, rig_say(r, "cd /usr"), "", CUBE_END_EXIT, 0);
	rig_disconnect(r);
	expect_agent_ends(r);
	rig_free(r);
}

static char state_of(int pid)
{
	char path[64], text[256] = "", *at;
	FILE *in;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	in = fopen(path, "r");
	assert_non_null(in);
	assert_true(fread(text, 1, sizeof(text) - 1, in) > 0);
	(void)fclose(in);
	at = strrchr(text, ')');
	assert_non_null(at);
	return at[2];
}

static void wait_state(int pid, bool stopped)
{
	for (int i = 0; i < 1000; i++) {
		if ((state_of(pid) == 'T') == stopped)
			return;
		(void)usleep(20000);
	}
	fail_msg("process %d is in state %c", pid, state_of(pid));
}

/* Longer than the agent waits for the next daemon. */
static void stay_away(void)
{
	const struct timespec span = {.tv_sec = 2, .tv_nsec = 500000000};

	(void)nanosleep(&span, NULL);
}

/* Everything stands still until a daemon comes; who was stopped before stays so. */
static void test_still(void **state)
{
	struct rig *r = rig_new(NULL, false, false);
	uint64_t id =
		rig_start(r, &(struct rig_run){.text = "echo $$ >pid; while :; do echo x; sleep 0.05; done",
					       .timeout_s = 60});
	uint64_t other =
		rig_start(r, &(struct rig_run){.text = "echo $$ >stopped; kill -STOP $$; echo woken"});
	int pid = rig_wait_number(r, "pid"), stopped = rig_wait_number(r, "stopped");
	uint64_t before;

	(void)state;
	wait_state(stopped, true);
	cube_link_deadline(r->link, 0, CUBE_LINK_END_STILL);
	rig_disconnect(r);
	wait_state(pid, true);
	rig_connect(r);
	wait_state(pid, false);
	before = rig_job(r, id)->total;
	rig_wait_total(r, id, before + 10);
	assert_int_equal(state_of(stopped), 'T');
	/* That was it: the next daemon that goes is no end. */
	rig_disconnect(r);
	stay_away();
	rig_connect(r);
	assert_int_not_equal(state_of(pid), 'T');
	cube_link_kill(r->link, id, SIGKILL);
	cube_link_kill(r->link, other, SIGKILL);
	rig_wait_end(r, id);
	rig_wait_end(r, other);
	rig_free(r);
}

/* Taken back; and a daemon that is away for a moment only. */
static void test_none(void **state)
{
	struct rig *r = rig_new(NULL, false, false);

	(void)state;
	cube_link_deadline(r->link, 0, CUBE_LINK_END_STOP);
	rig_expect(r, rig_say(r, "cd /usr"), "", CUBE_END_EXIT, 0);
	rig_disconnect(r);
	rig_connect(r);
	rig_expect(r, rig_say(r, "pwd"), "/usr\n", CUBE_END_EXIT, 0);
	cube_link_deadline(r->link, 0, CUBE_LINK_END_NONE);
	rig_disconnect(r);
	stay_away();
	rig_connect(r);
	rig_expect(r, rig_say(r, "pwd"), "/usr\n", CUBE_END_EXIT, 0);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_left),       cmocka_unit_test(test_held),  cmocka_unit_test(test_stop),
		cmocka_unit_test(test_stop_later), cmocka_unit_test(test_still), cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
