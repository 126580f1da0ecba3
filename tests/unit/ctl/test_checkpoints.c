/* SPDX-License-Identifier: Apache-2.0 */
/* Other states of a sandbox's files: reset; what becomes of all else meanwhile, and when it fails. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"
#include "tests/unit/ctl/stage.h"

static void faulty(struct stage *s, const char *lines)
{
	char conf[256];

	(void)snprintf(conf, sizeof(conf), "[backend mem]\nkind=mem\n%s\n", lines);
	stage_open(s, conf);
}

static void expect_run(struct stage *s, struct cube_cube *c, const char *text, int code, const char *output)
{
	char *out = NULL;

	assert_int_equal(stage_exec(s, c, NULL, text, &out), code);
	assert_string_equal(out, output);
	cube_free(out);
}

/* ---- reset ---- */

static void reset_running(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "a env.A=b");
	struct cube_job *j;

	expect_run(s, c, "write /tmp/f mine; write /workspace/w kept", 0, "");
	j = stage_start(s, c, "long", "await never");
	assert_int_equal(stage_cube(s, c, "reset"), 0);
	assert_int_equal(c->phase, CUBE_RUNNING);
	assert_int_equal(c->generation, 1);
	assert_null(c->doing);
	assert_int_equal(j->state, CUBE_JOB_ENDED);
	assert_int_equal(j->end.how, CUBE_END_KILLED);
	assert_int_not_equal(stage_exec(s, c, NULL, "cat /tmp/f", NULL), 0);
	expect_run(s, c, "cat /workspace/w; echo $A", 0, "kept\nb\n");
	stage_unref(s, j);
}

static void reset_in_states(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "a");

	assert_int_equal(stage_cube(s, c, "pause"), 0);
	assert_int_equal(stage_cube(s, c, "reset"), 0);
	assert_int_equal(c->phase, CUBE_RUNNING);
	assert_int_equal(stage_cube(s, c, "stop 0"), 0);
	assert_int_equal(stage_cube(s, c, "reset"), 0);
	assert_int_equal(c->phase, CUBE_STOPPED);
	assert_int_equal(c->generation, 2);
	assert_int_equal(stage_cube(s, c, "reset x"), -EINVAL);
	assert_int_equal(c->generation, 2);
	assert_int_equal(stage_cube(s, c, "start"), 0);
	expect_run(s, c, "echo on", 0, "on\n");
}

/* The backend refuses: nothing has changed, and it goes on. */
static void reset_fails(void **state)
{
	struct stage s;
	struct cube_cube *c;

	(void)state;
	faulty(&s, "fail=reset:ENOSPC:1");
	c = stage_make(&s, "a");
	expect_run(&s, c, "X=1; write /tmp/f mine", 0, "");
	assert_int_equal(stage_cube(&s, c, "reset"), -ENOSPC);
	assert_int_equal(c->generation, 0);
	assert_null(c->doing);
	expect_run(&s, c, "cat /tmp/f", 0, "mine\n");
	assert_int_equal(stage_cube(&s, c, "reset"), 0);
	assert_int_equal(c->generation, 1);
	stage_close(&s);
}

static void reset_is_missing(void **state)
{
	struct stage s;
	struct cube_cube *c;

	(void)state;
	faulty(&s, "caps=-reset");
	c = stage_make(&s, "a");
	assert_int_equal(stage_cube(&s, c, "reset"), -EOPNOTSUPP);
	assert_int_equal(c->generation, 0);
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reset_running, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(reset_in_states, stage_setup, stage_teardown),
		cmocka_unit_test(reset_fails),
		cmocka_unit_test(reset_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
