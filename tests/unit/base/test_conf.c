/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file: what is read, what is refused and where. */
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/buf.h"
#include "backends/base/conf.h"
#include "backends/base/macros.h"

static struct cube_conf *parsed(const char *text)
{
	struct cube_err err = {0};
	struct cube_conf *c = NULL;

	if (cube_conf_parse(text, strlen(text), "cubefs.conf", &c, &err) != 0)
		fail_msg("%s", err.text);
	return c;
}

static void test_values(void **state)
{
	struct cube_conf *c = parsed("# comment\n"
				     "; another\n"
				     "early = yes\n"
				     "\n"
				     "[ daemon ]  # behind\n"
				     "state=/var/lib/cubefs\n"
				     "\t indented :  two words \t\r\n"
				     "empty =\n"
				     "equals = a=b=c ; not this\n"
				     "semicolon = a;b\n"
				     "quoted = \"x\"\n"
				     "[empty one]\n"
				     "[backend a-very-long-name-that-has-more-than-fifty-bytes-in-all]\n"
				     "key = last");
	const struct cube_conf_section *d = cube_conf_find(c, "daemon");

	(void)state;
	assert_string_equal(cube_conf_get(cube_conf_find(c, ""), "early"), "yes");
	assert_string_equal(cube_conf_get(d, "state"), "/var/lib/cubefs");
	assert_string_equal(cube_conf_get(d, "indented"), "two words");
	assert_string_equal(cube_conf_get(d, "empty"), "");
	assert_string_equal(cube_conf_get(d, "equals"), "a=b=c");
	assert_string_equal(cube_conf_get(d, "semicolon"), "a;b");
	assert_string_equal(cube_conf_get(d, "quoted"), "\"x\"");
	assert_null(cube_conf_get(d, "none"));
	assert_null(cube_conf_get(NULL, "state"));
	assert_null(cube_conf_key(NULL, 0));
	assert_null(cube_conf_find(c, "none"));
	assert_string_equal(cube_conf_key(d, 0), "state");
	assert_string_equal(cube_conf_key(d, 5), "quoted");
	assert_null(cube_conf_key(d, 6));
	assert_string_equal(cube_conf_section_name(cube_conf_at(c, 0)), "");
	assert_string_equal(cube_conf_section_name(cube_conf_at(c, 2)), "empty one");
	assert_null(cube_conf_key(cube_conf_at(c, 2), 0));
	assert_string_equal(cube_conf_section_name(cube_conf_at(c, 3)),
			    "backend a-very-long-name-that-has-more-than-fifty-bytes-in-all");
	assert_string_equal(cube_conf_get(cube_conf_at(c, 3), "key"), "last");
	assert_null(cube_conf_at(c, 4));
	cube_conf_free(c);
	cube_conf_free(NULL);
}

static void test_empty(void **state)
{
	const char *const texts[] = {"", "\n\n", "# only this", "\xef\xbb\xbf", "  \r\n"};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(texts); i++) {
		struct cube_conf *c = parsed(texts[i]);

		assert_null(cube_conf_at(c, 0));
		assert_null(cube_conf_find(c, ""));
		cube_conf_free(c);
	}
}

static void test_byte_order_mark(void **state)
{
	struct cube_conf *c = parsed("\xef\xbb\xbf[s]\nk = v\n");

	(void)state;
	assert_string_equal(cube_conf_get(cube_conf_find(c, "s"), "k"), "v");
	cube_conf_free(c);
}

#define TEXT(s) s, sizeof(s) - 1

static const struct bad_case {
	const char *text;
	size_t len;
	const char *why;
} bad_cases[] = {
	{TEXT("[a]\nk = 1\nk = 2\n"), "f line 3: key 'k' is there twice"},
	{TEXT("[a]\n\n[b]\n[ a ]\n"), "f line 4: section 'a' is there twice"},
	{TEXT("k = 1\n[a]\nword\n"), "f line 3: neither [section] nor key = value nor a comment"},
	{TEXT("word"), "f line 1: neither [section] nor key = value nor a comment"},
	{TEXT("word ; a = b"), "f line 1: neither [section] nor key = value nor a comment"},
	{TEXT("word\nk = v\n"), "f line 1: neither [section] nor key = value nor a comment"},
	{TEXT("= v\n"), "f line 1: there is no key before the '='"},
	{TEXT("[a\n"), "f line 1: the section's name has no ']' behind"},
	{TEXT("[a] b\n"), "f line 1: there is something behind the section's ']'"},
	{TEXT("[ ]\n"), "f line 1: a section needs a name"},
	{TEXT("k = a\0b\n"), "f line 1: there is a NUL in it"},
	{TEXT("# c\n\0\n"), "f line 2: there is a NUL in it"},
	{TEXT("[a]\n k = 1\n  k = 2\n"), "f line 3: key 'k' is there twice"}, /* not a value of two lines */
};

static void test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(bad_cases); i++) {
		const struct bad_case *c = &bad_cases[i];
		struct cube_err err = {0};
		struct cube_conf *conf = NULL;

		assert_int_equal(cube_conf_parse(c->text, c->len, "f", &conf, &err), -EINVAL);
		assert_string_equal(err.text, c->why);
		assert_null(conf);
		assert_int_equal(cube_conf_parse(c->text, c->len, "f", &conf, NULL), -EINVAL);
	}
}

static void test_lengths(void **state)
{
	struct cube_buf b = CUBE_BUF(2000000);
	struct cube_err err = {0};
	struct cube_conf *c = NULL;

	(void)state;
	/* a line of 8191 bytes is the longest; where the library is built for less, its own limit is named */
	(void)cube_buf_printf(&b, "[s]\nk = %08187d\n", 5);
	if (cube_conf_parse(b.data, b.len, "f", &c, &err) == 0) {
		assert_int_equal(strlen(cube_conf_get(cube_conf_find(c, "s"), "k")), 8187);
		cube_conf_free(c);
	} else {
		assert_string_equal(err.text, "f line 2: the line is too long");
	}
	cube_buf_reset(&b);
	(void)cube_buf_printf(&b, "[s]\nk = %08188d\nl = 1\n", 5);
	assert_int_equal(cube_conf_parse(b.data, b.len, "f", &c, &err), -EINVAL);
	assert_string_equal(err.text, "f line 2: the line is too long");
	cube_buf_reset(&b);
	while (b.len <= 1024 * 1024)
		(void)cube_buf_adds(&b, "# padding\n");
	assert_int_equal(cube_conf_parse(b.data, b.len, "f", &c, &err), -EINVAL);
	assert_string_equal(err.text, "f is larger than 1048576 bytes");
	assert_int_equal(cube_conf_parse(b.data, 1024 * 1024 - 6, "f", &c, &err), 0);
	cube_conf_free(c);
	cube_buf_done(&b);
}

static void test_many(void **state)
{
	struct cube_buf b = CUBE_BUF(1024 * 1024);
	struct cube_conf *c;
	char key[16];

	(void)state;
	for (int i = 0; i < 20000; i++)
		(void)cube_buf_printf(&b, "[s%d]\nk%d=%d\n", i, i, i);
	assert_int_equal(b.error, 0);
	c = parsed(cube_buf_str(&b));
	for (int i = 0; i < 20000; i += 777) {
		(void)snprintf(key, sizeof(key), "s%d", i);
		assert_string_equal(cube_conf_section_name(cube_conf_at(c, (size_t)i)), key);
		(void)snprintf(key, sizeof(key), "k%d", i);
		assert_string_equal(cube_conf_get(cube_conf_at(c, (size_t)i), key), key + 1);
	}
	cube_conf_free(c);
	cube_buf_done(&b);
}

static void test_check(void **state)
{
	static const char *const known[] = {"state", "limit", NULL};
	struct cube_conf *c = parsed("[d]\nstate = 1\n\nlimits = 2\n[e]\nlimit = 1\n");
	struct cube_err err = {0};

	(void)state;
	assert_int_equal(cube_conf_check(cube_conf_find(c, "e"), known, &err), 0);
	assert_int_equal(cube_conf_check(NULL, known, &err), 0);
	assert_int_equal(cube_conf_check(cube_conf_find(c, "d"), known, &err), -EINVAL);
	assert_string_equal(err.text, "cubefs.conf line 4: unknown key 'limits' in section [d]");
	cube_conf_free(c);
}

static void test_out_of_memory(void **state)
{
	const char text[] = "a = 1\n[s]\nb = 2\nc = 3\n[t]\n";
	struct cube_err err = {0};
	struct cube_conf *c = NULL;
	unsigned long nth;

	(void)state;
	for (nth = 1;; nth++) {
		int r;

		cube_alloc_fail_at(nth);
		r = cube_conf_parse(text, strlen(text), "f", &c, &err);
		cube_alloc_fail_at(0);
		if (r == 0)
			break;
		assert_int_equal(r, -ENOMEM);
		assert_null(c);
		assert_non_null(strstr(err.text, "out of memory"));
	}
	assert_true(nth > 20);
	cube_conf_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),          cmocka_unit_test(test_empty),
		cmocka_unit_test(test_byte_order_mark), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_lengths),         cmocka_unit_test(test_many),
		cmocka_unit_test(test_check),           cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
