/* SPDX-License-Identifier: Apache-2.0 */
/* cube-init: sessions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/agent/rig.h"

static void lives_on(struct rig *r)
{
	rig_expect(r, rig_say(r, "echo hello"), "hello\n", CUBE_END_EXIT, 0);
	rig_expect(r, rig_say(r, "x=5; f() { echo f $x; }; cd /usr"), "", CUBE_END_EXIT, 0);
	rig_expect(r, rig_say(r, "f; pwd"), "f 5\n/usr\n", CUBE_END_EXIT, 0);
	rig_expect(r, rig_say(r, "false"), "", CUBE_END_EXIT, 1);
	rig_expect(r, rig_say(r, "echo $?"), "1\n", CUBE_END_EXIT, 0);
	rig_expect(r, rig_say(r, "echo \"a"), NULL, CUBE_END_EXIT, 2);
	rig_expect(r, rig_say(r, "f"), "f 5\n", CUBE_END_EXIT, 0);
}

static void test_lives_on(void **state)
{
	(void)state;
	rig_each(lives_on);
}

static void fresh_shell(struct rig *r)
{
	rig_expect(r, rig_say(r, "cd /usr; export A='b c'; x=1"), "", CUBE_END_EXIT, 0);
	rig_expect(r, rig_say(r, "exit 3"), "", CUBE_END_EXIT, 3);
	rig_expect(r, rig_say(r, "echo $A-$x; pwd"), "b c-\n/usr\n", CUBE_END_EXIT, 0);
	rig_expect(r, rig_say(r, "exec sh -c 'exit 9'"), "", CUBE_END_EXIT, 9);
	rig_expect(r, rig_say(r, "echo $A; pwd"), "b c\n/usr\n", CUBE_END_EXIT, 0);
	rig_expect(r, rig_say(r, "kill -9 $$"), "", CUBE_END_SIGNAL, 137);
	rig_expect(r, rig_say(r, "echo $A; pwd"), "b c\n/usr\n", CUBE_END_EXIT, 0);
}

static void test_fresh_shell(void **state)
{
	(void)state;
	rig_each(fresh_shell);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lives_on),
		cmocka_unit_test(test_fresh_shell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
