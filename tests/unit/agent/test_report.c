/* SPDX-License-Identifier: Apache-2.0 */
/* How cube-init and a session's shell talk: the text that is written for it, the reports that it writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/agent/init/session_driver.h"
#include "backends/agent/init/session_report.h"

static struct init_report_in in;

static void say(const char *text)
{
	size_t space;
	char *to = init_report_space(&in, &space);

	assert_true(strlen(text) <= space);
	memcpy(to, text, strlen(text));
	in.len += strlen(text);
}

static void test_reports(void **state)
{
	struct init_report r;

	(void)state;
	say("u 1000 100\ni 7\nv 7 1\nd 7 3 hB /us");
	assert_true(init_report_next(&in, 7, &r));
	assert_true(r.kind == 'u' && r.a == 1000 && r.b == 100);
	assert_true(init_report_next(&in, 7, &r));
	assert_true(r.kind == 'i' && r.seq == 7);
	assert_true(init_report_next(&in, 7, &r));
	assert_true(r.kind == 'v' && r.seq == 7 && r.a == 1);
	assert_false(init_report_next(&in, 7, &r));
	say("r\n");
	assert_false(init_report_next(&in, 7, &r));
	say("e 7\nx /a\nb\ne x\n");
	assert_true(init_report_next(&in, 7, &r));
	assert_true(r.kind == 'd' && r.seq == 7 && r.a == 3);
	assert_string_equal(r.options, "hB");
	assert_string_equal(r.pwd, "/usr");
	assert_true(init_report_next(&in, 7, &r));
	assert_int_equal(r.kind, 'x');
	assert_string_equal(r.pwd, "/a\nb");
	assert_false(init_report_next(&in, 7, &r));
	assert_int_equal(in.len, 0);
}

/* What is no report, or not of this command, does not hide what is. */
static void test_nonsense(void **state)
{
	static const char *const lines[] = {
		"\n",
		"d\n",
		"d 7\n",
		"d 6 0 h /\ne 6\n",
		"d 8 0 h /\n",
		"e 7\n",
		"z 7 0\n",
		"i 8 9\n",
		"i x\n",
		"v 7\n",
		"u 1\n",
		"u 4294967296 1\n",
		"i 18446744073709551616\n",
		"d  7 0 h /\n",
		"i  7\n",
	};
	struct init_report r;

	(void)state;
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		say(lines[i]);
	say("d 7 0  nopath\ne 7\n");
	assert_true(init_report_next(&in, 7, &r));
	assert_true(r.kind == 'd' && r.a == 0 && r.options[0] == '\0' && r.pwd[0] == '\0');
	assert_false(init_report_next(&in, 7, &r));
	/* A status that is none. */
	say("d 7 256 h /\ne 7\ni 7\n");
	assert_true(init_report_next(&in, 7, &r));
	assert_int_equal(r.kind, 'i');
}

/* More than fits without an end is dropped, and what comes then is heard. */
static void test_flood(void **state)
{
	struct init_report r;
	char *text = malloc(INIT_REPORT_MAX);
	size_t space;

	(void)state;
	assert_non_null(text);
	for (int round = 0; round < 5; round++) {
		char *to = init_report_space(&in, &space);

		memset(to, 'x', space);
		in.len += space;
		assert_false(init_report_next(&in, 7, &r));
	}
	say("\ni 7\n");
	assert_true(init_report_next(&in, 7, &r));
	free(text);
}

static void test_quote(void **state)
{
	struct init_text t = {0};

	(void)state;
	init_text_quote(&t, "it's \"$x\" `y` \\n\n", 17);
	assert_int_equal(t.len, 17 + 2 + 3);
	assert_memory_equal(t.data, "'it'\\''s \"$x\" `y` \\n\n'", t.len);
	init_text_done(&t);
	init_text_quote(&t, "", 0);
	assert_memory_equal(t.data, "''", 2);
	init_text_done(&t);
}

/* Names that no shell can hold are left out: they would be text. */
static void test_vars(void **state)
{
	static const char env[] = "A=1\0B\0C=x y\0a-b=1\0=2\0"
				  "1A=3\0;rm=4\0D;rm\0";
	const struct init_driver d = {.path = "/r/1", .bash = true};
	struct init_text t = {0};

	(void)state;
	init_driver_vars(&t, &d, 9, env, sizeof(env) - 1, "/it's");
	init_text_add(&t, "", 1);
	assert_string_equal(t.data, "export A='1'\nunset B\nexport C='x y'\nbuiltin cd -- '/it'\\''s' && "
				    "__cube_s=0 || __cube_s=1\n"
				    "builtin printf 'v 9 %s\\n' \"$__cube_s\" >|/r/1/s\n");
	init_text_done(&t);
}

static void test_prefix(void **state)
{
	(void)state;
	assert_string_equal(init_driver_prefix("hB"), "");
	assert_string_equal(init_driver_prefix("hxB"), "set -x;");
	assert_string_equal(init_driver_prefix("v"), "set -v;");
	assert_string_equal(init_driver_prefix("vx"), "set -xv;");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reports), cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_flood),   cmocka_unit_test(test_quote),
		cmocka_unit_test(test_vars),    cmocka_unit_test(test_prefix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
