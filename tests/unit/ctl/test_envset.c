/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of variables: differences, changes, lines; bytes in JSON; names of signals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/bytes.h"
#include "ctl/ctl_priv.h"
#include "ctl/signal.h"

/* Texts of these tests have `;` for NUL. */
static struct cube_buf text(const char *s)
{
	struct cube_buf b = CUBE_BUF(4096);

	for (; *s != '\0'; s++)
		assert_int_equal(cube_buf_addc(&b, *s == ';' ? '\0' : *s), 0);
	return b;
}

static void expect(struct cube_buf *is, const char *want)
{
	for (size_t i = 0; i < is->len; i++)
		if (is->data[i] == '\0')
			is->data[i] = ';';
	assert_string_equal(cube_buf_str(is), want);
	cube_buf_done(is);
}

static void differences(void **state)
{
	static const struct {
		const char *old, *new, *want;
	} cases[] = {
		{"", "", ""},
		{"A=1;", "A=1;", ""},
		{"A=1", "A=1;", ""}, /* the last NUL may be left out */
		{"", "A=1;B=2;", "A=1;B=2;"},
		{"A=1;B=2;", "", "A;B;"},
		{"A=1;B=2;C=3;", "A=1;B=x;D=4;", "B=x;D=4;C;"},
		{"A=;", "A=1;", "A=1;"},
		{"A=1;", "A=;", "A=;"},
		{"AB=1;", "A=1;", "A=1;AB;"},
		{"A=1;A=2;", "A=2;", ""}, /* the last of several counts */
		{"A=x=y;", "A=x=z;", "A=x=z;"},
	};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		struct cube_buf old = text(cases[i].old), new = text(cases[i].new), out = CUBE_BUF(4096);

		assert_int_equal(
			cube_env_diff(cube_buf_str(&old), old.len, cube_buf_str(&new), new.len, &out), 0);
		expect(&out, cases[i].want);
		cube_buf_done(&old);
		cube_buf_done(&new);
	}
}

static void changes(void **state)
{
	static const struct {
		const char *base, *changes, *applied, *merged;
	} cases[] = {
		{"A=1;B=2;", "", "A=1;B=2;", "A=1;B=2;"},
		{"A=1;B=2;", "B;", "A=1;", "A=1;B;"},
		{"A=1;B=2;", "A=x;C=3;", "B=2;A=x;C=3;", "B=2;A=x;C=3;"},
		{"", "A;B=1;", "B=1;", "A;B=1;"},
	};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		struct cube_buf base = text(cases[i].base), change = text(cases[i].changes),
				out = CUBE_BUF(4096), merged = CUBE_BUF(4096);

		assert_int_equal(cube_env_apply(cube_buf_str(&base), base.len, cube_buf_str(&change),
						change.len, &out),
				 0);
		expect(&out, cases[i].applied);
		assert_int_equal(cube_env_merge(&base, &change, &merged), 0);
		expect(&merged, cases[i].merged);
		cube_buf_done(&base);
		cube_buf_done(&change);
	}
}

/* A difference, applied to the old one, makes the new one. */
static void differences_apply(void **state)
{
	struct cube_buf old = text("A=1;B=2;C=3;"), new = text("C=3;B=;D=\n;"), diff = CUBE_BUF(4096),
			is = CUBE_BUF(4096);

	(void)state;
	assert_int_equal(cube_env_diff(old.data, old.len, new.data, new.len, &diff), 0);
	assert_int_equal(cube_env_apply(old.data, old.len, diff.data, diff.len, &is), 0);
	cube_buf_reset(&diff);
	assert_int_equal(cube_env_diff(is.data, is.len, new.data, new.len, &diff), 0);
	assert_int_equal(diff.len, 0);
	cube_buf_done(&old);
	cube_buf_done(&new);
	cube_buf_done(&diff);
	cube_buf_done(&is);
}

static void lines(void **state)
{
	struct cube_buf env = text("A=1;B=two words;"), out = CUBE_BUF(4096), small = CUBE_BUF(5);

	(void)state;
	assert_int_equal(cube_env_lines(env.data, env.len, &out), 0);
	assert_string_equal(out.data, "A=1\nB=two words\n");
	assert_int_equal(cube_env_lines(env.data, env.len, &small), -EMSGSIZE);
	cube_buf_done(&env);
	cube_buf_done(&out);
	cube_buf_done(&small);
}

/* ---- Bytes ---- */

static void every_byte(void **state)
{
	struct cube_buf quoted = CUBE_BUF(4096), back = CUBE_BUF(4096), list = CUBE_BUF(4096);
	char all[255];
	json_t *value = NULL;

	(void)state;
	for (unsigned i = 0; i < sizeof(all); i++)
		all[i] = (char)(i + 1);
	assert_int_equal(cube_bytes_quote(&quoted, all, sizeof(all)), 0);
	for (size_t i = 0; i < quoted.len; i++)
		assert_in_range((unsigned char)quoted.data[i], ' ', '~');
	assert_int_equal(cube_json_parse(quoted.data, quoted.len, "test", &value, NULL), 0);
	assert_int_equal(cube_bytes_read(value, &back), 0);
	assert_int_equal(back.len, sizeof(all));
	assert_memory_equal(back.data, all, sizeof(all));
	json_decref(value);
	value = cube_bytes_json(all, sizeof(all));
	cube_buf_reset(&back);
	assert_int_equal(cube_bytes_read(value, &back), 0);
	assert_memory_equal(back.data, all, sizeof(all));
	json_decref(value);
	value = cube_bytes_list("a\0\xff", 3);
	assert_int_equal(cube_bytes_read_list(value, &list), 0);
	assert_int_equal(list.len, 4);
	assert_memory_equal(list.data, "a\0\xff", 4);
	json_decref(value);
	value = json_string("\xe2\x82\xac"); /* a euro is no byte */
	assert_int_equal(cube_bytes_read(value, &list), -EINVAL);
	json_decref(value);
	assert_int_equal(cube_bytes_read(NULL, &list), -EINVAL);
	cube_buf_done(&quoted);
	cube_buf_done(&back);
	cube_buf_done(&list);
}

/* ---- Signals ---- */

static void signals(void **state)
{
	struct cube_err err;
	int sig = 0;

	(void)state;
	assert_int_equal(cube_signal_parse("TERM", &sig, &err), 0);
	assert_int_equal(sig, SIGTERM);
	assert_int_equal(cube_signal_parse("sigkill", &sig, &err), 0);
	assert_int_equal(sig, SIGKILL);
	assert_int_equal(cube_signal_parse("34", &sig, &err), 0);
	assert_int_equal(sig, 34);
	assert_int_equal(cube_signal_parse("0", &sig, &err), -EINVAL);
	assert_int_equal(cube_signal_parse("65", &sig, &err), -EINVAL);
	assert_int_equal(cube_signal_parse("-9", &sig, &err), -EINVAL);
	assert_int_equal(cube_signal_parse("SIG", &sig, &err), -EINVAL);
	assert_true(cube_signal_ends(SIGTERM));
	assert_true(cube_signal_ends(40));
	assert_false(cube_signal_ends(SIGWINCH));
	assert_false(cube_signal_ends(SIGSTOP));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(differences),       cmocka_unit_test(changes),
		cmocka_unit_test(differences_apply), cmocka_unit_test(lines),
		cmocka_unit_test(every_byte),        cmocka_unit_test(signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
