/* SPDX-License-Identifier: Apache-2.0 */
/* cube-init: jobs that are processes of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/agent/rig.h"

static void script(struct rig *r)
{
	rig_expect(r, rig_do(r, &(struct rig_run){.text = "echo out; echo err >&2; exit 3"}), "out\nerr\n",
		   CUBE_END_EXIT, 3);
	rig_expect(r, rig_do(r, &(struct rig_run){.text = "printf 'no newline'"}), "no newline",
		   CUBE_END_EXIT, 0);
	rig_expect(r, rig_do(r, &(struct rig_run){.text = "pwd"}), NULL, CUBE_END_EXIT, 0);
	rig_expect(r, rig_do(r, &(struct rig_run){.text = "echo 'unbalanced"}), NULL, CUBE_END_EXIT, 2);
	rig_expect(r, rig_do(r, &(struct rig_run){.text = ""}), "", CUBE_END_EXIT, 0);
	rig_expect(r, rig_do(r, &(struct rig_run){.text = "cat <<E\nhere\nE"}), "here\n", CUBE_END_EXIT, 0);
	rig_expect(r, rig_do(r, &(struct rig_run){.text = "kill -SEGV $$"}), "", CUBE_END_SIGNAL, 139);
}

static void test_script(void **state)
{
	(void)state;
	rig_each(script);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_script),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
