/* SPDX-License-Identifier: Apache-2.0 */
/* Environments: what people write, and what shells print. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/cube.h"
#include "ctl/exports.h"

#define BYTES(s) s, sizeof(s) - 1

static void env_is(const char *text, size_t len, bool final, const char *want, size_t want_len)
{
	struct cube_buf out = CUBE_BUF(4096);
	struct cube_err err = {0};

	assert_int_equal(cube_env_parse(text, len, final, &out, &err), 0);
	assert_int_equal(out.len, want_len);
	if (want_len > 0)
		assert_memory_equal(out.data, want, want_len);
	cube_buf_done(&out);
}

static void test_lines(void **state)
{
	(void)state;
	env_is(BYTES(""), true, BYTES(""));
	env_is(BYTES("A=1\n"), false, BYTES("A=1\0"));
	env_is(BYTES("A=1\n\nB=two words\n"), false, BYTES("A=1\0B=two words\0"));
	env_is(BYTES("A=1\nB=2"), true, BYTES("A=1\0B=2\0"));
	env_is(BYTES("A=1\nB=2"), false, BYTES("A=1\0"));
	env_is(BYTES("A==x=\n"), true, BYTES("A==x=\0"));
	env_is(BYTES("A=\n"), true, BYTES("A=\0"));
	env_is(BYTES("A=1\nx\0B=2\0"), true, BYTES("A=1\nx\0B=2\0"));
}

static void env_fails(const char *text, size_t len, const char *says)
{
	struct cube_buf out = CUBE_BUF(4096);
	struct cube_err err = {0};

	assert_int_equal(cube_env_parse(text, len, true, &out, &err), -EINVAL);
	assert_non_null(strstr(err.text, says));
	cube_buf_done(&out);
}

static void test_bad_lines(void **state)
{
	(void)state;
	env_fails(BYTES("A=1\nnothing\n"), "line 2");
	env_fails(BYTES("=x\n"), "line 1");
	env_fails(BYTES("1A=x\n"), "line 1");
	env_fails(BYTES("A B=x\n"), "line 1");
	env_fails(BYTES("A=1\0B\0"), "line 2");
}

static void exports_are(const char *text, const char *want, size_t want_len)
{
	struct cube_buf out = CUBE_BUF(1 << 20);

	assert_int_equal(cube_exports_parse(text, strlen(text), &out), 0);
	assert_int_equal(out.len, want_len);
	if (want_len > 0)
		assert_memory_equal(out.data, want, want_len);
	cube_buf_done(&out);
}

static void test_exports(void **state)
{
	(void)state;
	exports_are("", BYTES(""));
	exports_are("declare -x A=\"1\"\ndeclare -x B\ndeclare -xr C=\"\"\n", BYTES("A=1\0C=\0"));
	exports_are("declare -x A=\"a \\\"b\\\" \\$x \\`y\\` \\\\ \\n\"\n",
		    BYTES("A=a \"b\" $x `y` \\ \\n\0"));
	exports_are("declare -x A=\"two\nlines\"\ndeclare -x B=\"2\"\n", BYTES("A=two\nlines\0B=2\0"));
	exports_are("declare -x A=$'tab\\there\\001\\'\\x41'\n", BYTES("A=tab\there\001'A\0"));
	exports_are("export A='it'\"'\"'s'\nexport B='x y'\n", BYTES("A=it's\0B=x y\0"));
	exports_are("export A='it'\\''s'\n", BYTES("A=it's\0"));
	exports_are("garbage\ndeclare -x A=\"unterminated", BYTES(""));
	exports_are("declare -x 1A=\"x\"\ndeclare -x B=\"y\"\n", BYTES("B=y\0"));
}

/* The real shells: set, export, print, read back. */
static void shell_exports(const char *shell, const char *value)
{
	struct cube_buf text = CUBE_BUF(1 << 20), out = CUBE_BUF(1 << 20), want = CUBE_BUF(4096);
	char command[64], block[4096];
	size_t n;
	FILE *f;

	assert_int_equal(setenv("CUBE_VALUE", value, 1), 0);
	(void)snprintf(command, sizeof(command), "%s -c 'export -p'", shell);
	f = popen(command, "r");
	assert_non_null(f);
	while ((n = fread(block, 1, sizeof(block), f)) > 0)
		cube_buf_add(&text, block, n);
	if (pclose(f) != 0)
		goto out; /* this shell is not here */
	assert_int_equal(cube_exports_parse(text.data, text.len, &out), 0);
	cube_buf_printf(&want, "CUBE_VALUE=%s", value);
	assert_non_null(memmem(out.data, out.len, want.data, want.len + 1));
out:
	cube_buf_done(&text);
	cube_buf_done(&out);
	cube_buf_done(&want);
}

static void test_shells(void **state)
{
	static const char *const shells[] = {"bash", "dash", "busybox sh"};
	static const char *const values[] = {
		"",           "plain",   "it's",     "a\"b",     "$x `y` \\ \\n", "two\nlines\n",
		"\x01\x02\t", "'\"'\"'", "\xc3\xa4", "\xff\xfe", "trailing\\"};

	(void)state;
	for (size_t s = 0; s < sizeof(shells) / sizeof(shells[0]); s++) {
		for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++)
			shell_exports(shells[s], values[v]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_exports),
		cmocka_unit_test(test_shells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
