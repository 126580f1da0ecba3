/* SPDX-License-Identifier: Apache-2.0 */
/* The command language of `mem`: from text to words; and what its shells remember. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/base/alloc.h"
#include "backends/mem/mem_priv.h"

static int setup(void **state)
{
	static struct mem_shell shell;

	mem_shell_init(&shell);
	assert_int_equal(mem_shell_set(&shell, "FOO", 3, "two words", true), 0);
	assert_int_equal(mem_shell_set(&shell, "E", 1, "", true), 0);
	shell.status = 7;
	*state = &shell;
	return 0;
}

static int teardown(void **state)
{
	mem_shell_done(*state);
	return 0;
}

/* The commands of a text as "word|word/word|...". */
static void expect_words(const struct mem_shell *shell, const char *text, const char *want)
{
	struct cube_buf got = CUBE_BUF(4096);
	size_t pos = 0;

	for (;;) {
		struct mem_args args = {.v = NULL};
		struct cube_err err;
		int r = mem_parse(text, strlen(text), &pos, shell, &args, &err);

		if (r < 0)
			fail_msg("'%s': %s", text, err.text);
		if (r == 0)
			break;
		assert_null(args.v[args.n]);
		for (unsigned i = 0; i < args.n; i++)
			(void)cube_buf_printf(&got, "%s%s", args.v[i], i + 1 < args.n ? "|" : "/");
		mem_args_done(&args);
	}
	if (strcmp(cube_buf_str(&got), want) != 0)
		fail_msg("'%s' is '%s', not '%s'", text, cube_buf_str(&got), want);
	cube_buf_done(&got);
}

static void commands(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"", ""},
		{" \t\n;;\n", ""},
		{"echo", "echo/"},
		{"  echo   a\tb  ", "echo|a|b/"},
		{"a;b\nc", "a/b/c/"},
		{"a b ; c", "a|b/c/"},
		{"# nothing\na # b\n", "a/"},
		{"a#b", "a#b/"},
		{"'a b' \"c d\"", "a b|c d/"},
		{"a'b'\"c\"", "abc/"},
		{"'' \"\"", "|/"},
		{"'a\nb;c#d'", "a\nb;c#d/"},
		{"'\"' \"'\"", "\"|'/"},
		{"\"\\\" \\\\ \\$ \\` \\n\"", "\" \\ $ ` \\n/"},
		{"a\\ b \\' \\\\", "a b|'|\\/"},
		{"a \\\nb", "a|b/"},
		{"a\\\nb", "ab/"},
		{"$FOO", "two words/"}, /* not split: less than a shell does, never more */
		{"\"$FOO\" '$FOO'", "two words|$FOO/"},
		{"x${FOO}y$E", "xtwo wordsy/"},
		{"$E $NOT a", "a/"},
		{"\"$E\"", "/"},
		{"$? \"$?\"", "7|7/"},
		{"$ a$ $1 \"$\"", "$|a$|$1|$/"},
		{"\"a\nb\"", "a\nb/"},
		{"\xc3\xa4\r", "\xc3\xa4\r/"},
	};

	for (size_t i = 0; i < CUBE_COUNT(cases); i++)
		expect_words(*state, cases[i].text, cases[i].want);
}

static void syntax_errors(void **state)
{
	static const char *const texts[] = {"'a",    "\"a",   "a 'b\n", "${FOO", "${}", "${a b}",
					    "a | b", "a > b", "a &",    "(a)",   "`a`", "\"${x\""};

	for (size_t i = 0; i < CUBE_COUNT(texts); i++) {
		struct mem_args args = {.v = NULL};
		struct cube_err err = {.code = 0};
		size_t pos = 0;

		if (mem_parse(texts[i], strlen(texts[i]), &pos, *state, &args, &err) != -EINVAL)
			fail_msg("'%s' is taken", texts[i]);
		assert_non_null(strstr(err.text, "syntax error"));
		assert_null(args.v);
		assert_true(pos <= strlen(texts[i]));
	}
}

/* What stands before an error runs. */
static void error_later(void **state)
{
	static const char text[] = "echo a\necho 'b";
	struct mem_args args = {.v = NULL};
	struct cube_err err;
	size_t pos = 0;

	assert_int_equal(mem_parse(text, sizeof(text) - 1, &pos, *state, &args, &err), 1);
	assert_int_equal(pos, 7);
	mem_args_done(&args);
	assert_int_equal(mem_parse(text, sizeof(text) - 1, &pos, *state, &args, &err), -EINVAL);
}

static void split_words(void **state)
{
	struct mem_args args = {.v = NULL};

	(void)state;
	assert_int_equal(mem_args_split(&args, "a\0\0b c\0", 7), 0);
	assert_int_equal(args.n, 3);
	assert_string_equal(args.v[0], "a");
	assert_string_equal(args.v[1], "");
	assert_string_equal(args.v[2], "b c");
	assert_null(args.v[3]);
	mem_args_done(&args);
	assert_int_equal(mem_args_split(&args, "", 0), 0);
	assert_int_equal(args.n, 0);
}

/* ---- Shells ---- */

static void expect_exports(const struct mem_shell *shell, const char *want)
{
	struct cube_buf text = CUBE_BUF(4096);

	assert_int_equal(mem_shell_exports(shell, &text), 0);
	assert_string_equal(cube_buf_str(&text), want);
	cube_buf_done(&text);
}

static void exports(void **state)
{
	struct mem_shell *shell = *state;

	assert_int_equal(mem_shell_set(shell, "LOCAL", 5, "x", false), 0);
	assert_int_equal(mem_shell_set(shell, "Q", 1, "it's\n\"$x\"", true), 0);
	expect_exports(shell, "export FOO='two words'\nexport E=''\nexport Q='it'\\''s\n\"$x\"'\n");
	assert_int_equal(mem_shell_set(shell, "LOCAL", 5, NULL, true), 0); /* keeps its value */
	mem_shell_unset(shell, "Q");
	mem_shell_unset(shell, "NOT");
	expect_exports(shell, "export FOO='two words'\nexport E=''\nexport LOCAL='x'\n");
}

static void changes(void **state)
{
	static const char env[] = "FOO=new\0E\0MORE=a=b\0";
	struct mem_shell *shell = *state;

	shell->changed = false;
	assert_int_equal(mem_shell_set(shell, "local", 5, "x", false), 0);
	assert_false(shell->changed);
	assert_int_equal(mem_shell_apply(shell, env, sizeof(env) - 1), 0);
	assert_true(shell->changed);
	expect_exports(shell, "export FOO='new'\nexport MORE='a=b'\n");
	assert_string_equal(mem_shell_get(shell, "local", 5), "x");
	mem_shell_renew(shell);
	assert_null(mem_shell_get(shell, "local", 5));
	assert_string_equal(mem_shell_get(shell, "MORE", 4), "a=b");
	assert_null(mem_shell_get(shell, "MO", 2));
	assert_int_equal(shell->status, 0);
}

/* ---- Paths ---- */

static void normal_paths(void **state)
{
	static const struct {
		const char *cwd, *path, *want;
	} cases[] = {
		{"/", "", "/"},
		{"/", "a", "/a"},
		{"/a/b", "c/d", "/a/b/c/d"},
		{"/a", "/c//d/", "/c/d"},
		{"/a/b", "..", "/a"},
		{"/a/b", "../../../..", "/"},
		{"/a", "./b/./c/../d", "/a/b/d"},
		{"/a", "...", "/a/..."},
	};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		char *got = mem_tree_normal(cases[i].cwd, cases[i].path);

		assert_string_equal(got, cases[i].want);
		cube_free(got);
	}
}

/* ---- Signals, users ---- */

static void signals(void **state)
{
	(void)state;
	assert_int_equal(mem_signal_number("TERM"), 15);
	assert_int_equal(mem_signal_number("SIGKILL"), 9);
	assert_int_equal(mem_signal_number("sigint"), 2);
	assert_int_equal(mem_signal_number("15"), 15);
	assert_int_equal(mem_signal_number("99"), 0);
	assert_int_equal(mem_signal_number("0"), 0);
	assert_int_equal(mem_signal_number("NOPE"), 0);
	assert_int_equal(mem_signal_number(""), 0);
	assert_int_equal(mem_signal_action(15), MEM_SIG_END);
	assert_int_equal(mem_signal_action(17), MEM_SIG_NOTHING);
	assert_int_equal(mem_signal_action(19), MEM_SIG_STOP);
	assert_int_equal(mem_signal_action(18), MEM_SIG_CONTINUE);
	assert_int_equal(mem_signal_action(-1), MEM_SIG_NOTHING);
	assert_int_equal(mem_signal_action(64), MEM_SIG_NOTHING);
}

static void users(void **state)
{
	uint32_t uid = 7, gid = 7;

	(void)state;
	assert_int_equal(mem_user_parse("nobody", &uid, &gid), 0);
	assert_true(uid == 65534 && gid == 65534);
	assert_int_equal(mem_user_parse("12", &uid, &gid), 0);
	assert_true(uid == 12 && gid == 12);
	assert_int_equal(mem_user_parse("12:13", &uid, &gid), 0);
	assert_true(uid == 12 && gid == 13);
	assert_int_equal(mem_user_parse("", &uid, &gid), 0);
	assert_true(uid == 0 && gid == 0);
	uid = 7;
	assert_int_equal(mem_user_parse("mallory", &uid, &gid), -ENOENT);
	assert_int_equal(mem_user_parse("12:", &uid, &gid), -ENOENT);
	assert_int_equal(mem_user_parse("4294967295", &uid, &gid), -ENOENT);
	assert_int_equal(uid, 7);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH(commands),
		WITH(syntax_errors),
		WITH(error_later),
		cmocka_unit_test(split_words),
		WITH(exports),
		WITH(changes),
		cmocka_unit_test(normal_paths),
		cmocka_unit_test(signals),
		cmocka_unit_test(users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
