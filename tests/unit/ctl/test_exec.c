/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of sessions: order, output, codes, what lives on from one to the next. */
#include "tests/unit/ctl/stage.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "backends/base/alloc.h"

static void expect(struct stage *s, struct cube_cube *c, const char *text, int code, const char *output)
{
	char *out;

	assert_int_equal(stage_exec(s, c, NULL, text, &out), code);
	assert_string_equal(out, output);
	cube_free(out);
}

static void write_then_read(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");

	expect(s, c, "echo hello", 0, "hello\n");
	expect(s, c, "false", 1, "");
	expect(s, c, "cd /tmp", 0, "");
	expect(s, c, "pwd", 0, "/tmp\n");
	expect(s, c, "exit 3", 3, "");
	expect(s, c, "pwd", 0, "/tmp\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(write_then_read, stage_setup, stage_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
