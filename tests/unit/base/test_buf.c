/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: the ceiling, the sticky error, memory that is out, escaping. */
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/buf.h"

static void test_add(void **state)
{
	struct cube_buf b = CUBE_BUF(100);

	(void)state;
	assert_string_equal(cube_buf_str(&b), "");
	assert_int_equal(cube_buf_adds(&b, "one"), 0);
	assert_int_equal(cube_buf_addc(&b, ' '), 0);
	assert_int_equal(cube_buf_printf(&b, "%d-%s", 2, "two"), 0);
	assert_int_equal(cube_buf_add(&b, "\0x", 2), 0);
	assert_int_equal(cube_buf_add(&b, NULL, 0), 0);
	assert_int_equal(b.len, 11);
	assert_memory_equal(b.data, "one 2-two\0x", 12); /* with the NUL behind */
	cube_buf_done(&b);
	assert_null(b.data);
	assert_int_equal(b.max, 100);
}

static void test_ceiling(void **state)
{
	struct cube_buf b = CUBE_BUF(4);

	(void)state;
	assert_int_equal(cube_buf_adds(&b, "1234"), 0);
	assert_int_equal(cube_buf_addc(&b, '5'), -EMSGSIZE);
	assert_int_equal(b.len, 4);
	assert_string_equal(cube_buf_str(&b), "1234");
	assert_int_equal(cube_buf_add(&b, "", 0), -EMSGSIZE); /* sticky */
	assert_int_equal(cube_buf_printf(&b, "x"), -EMSGSIZE);
	assert_null(cube_buf_reserve(&b, 0));
	cube_buf_reset(&b);
	assert_string_equal(cube_buf_str(&b), "");
	assert_int_equal(cube_buf_printf(&b, "%s", "12345"), -EMSGSIZE);
	cube_buf_reset(&b);
	assert_int_equal(cube_buf_printf(&b, "%s", "1234"), 0);
	cube_buf_done(&b);
}

static void test_no_room_at_all(void **state)
{
	struct cube_buf b = CUBE_BUF(0);

	(void)state;
	assert_int_equal(cube_buf_adds(&b, ""), 0);
	assert_int_equal(cube_buf_adds(&b, "x"), -EMSGSIZE);
	cube_buf_done(&b);
}

static void test_huge_length(void **state)
{
	struct cube_buf b = CUBE_BUF(SIZE_MAX);

	(void)state;
	assert_int_equal(cube_buf_addc(&b, 'x'), 0);
	assert_null(cube_buf_reserve(&b, SIZE_MAX - 1));
	assert_int_equal(b.error, -EMSGSIZE);
	cube_buf_done(&b);
}

static void test_growth(void **state)
{
	struct cube_buf b = CUBE_BUF(100000);

	(void)state;
	for (unsigned i = 0; i < 100000; i++)
		assert_int_equal(cube_buf_addc(&b, (char)('a' + i % 26)), 0);
	for (unsigned i = 0; i < 100000; i++)
		assert_int_equal(b.data[i], 'a' + i % 26);
	assert_true(b.cap <= 100001);
	assert_int_equal(cube_buf_addc(&b, 'x'), -EMSGSIZE);
	cube_buf_done(&b);
}

static void test_out_of_memory(void **state)
{
	struct cube_buf b = CUBE_BUF(1000);

	(void)state;
	cube_alloc_fail_at(1);
	assert_int_equal(cube_buf_adds(&b, "x"), -ENOMEM);
	assert_int_equal(b.len, 0);
	cube_buf_reset(&b);
	assert_int_equal(cube_buf_adds(&b, "kept"), 0);
	cube_alloc_fail_at(1);
	assert_int_equal(cube_buf_printf(&b, "%200s", ""), -ENOMEM);
	assert_string_equal(cube_buf_str(&b), "kept");
	cube_buf_done(&b);
}

static void test_reserve(void **state)
{
	struct cube_buf b = CUBE_BUF(10);
	char *to = cube_buf_reserve(&b, 3);

	(void)state;
	memcpy(to, "abc", 3);
	b.len += 2; /* less than reserved */
	assert_string_equal(cube_buf_str(&b), "ab");
	assert_int_equal(cube_buf_adds(&b, "c"), 0);
	assert_string_equal(cube_buf_str(&b), "abc");
	cube_buf_done(&b);
}

static void test_drop(void **state)
{
	struct cube_buf b = CUBE_BUF(10);

	(void)state;
	cube_buf_drop(&b, 5);
	(void)cube_buf_adds(&b, "abcdef");
	cube_buf_drop(&b, 0);
	cube_buf_drop(&b, 2);
	assert_string_equal(cube_buf_str(&b), "cdef");
	cube_buf_drop(&b, 9);
	assert_int_equal(b.len, 0);
	assert_string_equal(cube_buf_str(&b), "");
	cube_buf_done(&b);
}

static void test_steal(void **state)
{
	struct cube_buf b = CUBE_BUF(10);
	size_t len = 9;
	char *s = cube_buf_steal(&b, &len);

	(void)state;
	assert_string_equal(s, "");
	assert_int_equal(len, 0);
	cube_free(s);
	(void)cube_buf_adds(&b, "0123456789");
	s = cube_buf_steal(&b, &len);
	assert_string_equal(s, "0123456789");
	assert_int_equal(len, 10);
	assert_int_equal(b.len, 0);
	assert_null(b.data);
	cube_free(s);
	assert_int_equal(cube_buf_adds(&b, "again"), 0);
	s = cube_buf_steal(&b, NULL);
	assert_string_equal(s, "again");
	cube_free(s);
	cube_alloc_fail_at(1);
	assert_null(cube_buf_steal(&b, &len));
}

static const struct escape_case {
	const char *in;
	size_t len;
	int backslash;
	const char *out;
} escape_cases[] = {
	{"plain", 5, 0, "plain"},
	{"a\\b", 3, 0, "a\\b"},
	{"a\\b", 3, 1, "a\\x5cb"},
	{"\0\n\x1f ", 4, 0, "\\x00\\x0a\\x1f "},
	{"\x7f~", 2, 0, "\\x7f~"},
	{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, 0, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
	{"\xc2\x85", 2, 0, "\\xc2\\x85"},                   /* a C1 control */
	{"\xc2\xa0", 2, 0, "\xc2\xa0"},                     /* the character after the last of them */
	{"\xc0\xaf", 2, 0, "\\xc0\\xaf"},                   /* overlong '/' */
	{"\xe0\x80\xaf", 3, 0, "\\xe0\\x80\\xaf"},          /* the same in three */
	{"\xf0\x80\x80\xaf", 4, 0, "\\xf0\\x80\\x80\\xaf"}, /* and in four bytes */
	{"\xed\xa0\x80", 3, 0, "\\xed\\xa0\\x80"},          /* a surrogate */
	{"\xf4\x90\x80\x80", 4, 0, "\\xf4\\x90\\x80\\x80"}, /* above U+10FFFF */
	{"\xf4\x8f\xbf\xbd", 4, 0, "\xf4\x8f\xbf\xbd"},     /* just below */
	{"\xe2\x82", 2, 0, "\\xe2\\x82"},                   /* cut */
	{"\xe2\x82x", 3, 0, "\\xe2\\x82x"},                 /* broken off */
	{"\xff\xfe\x80", 3, 0, "\\xff\\xfe\\x80"},          /* never in UTF-8; alone */
	{"\xe2\x80\xa8\xe2\x80\xae\xe2\x81\xa6", 9, 0, "\\xe2\\x80\\xa8\\xe2\\x80\\xae\\xe2\\x81\\xa6"},
};

static void test_escaped(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(escape_cases) / sizeof(escape_cases[0]); i++) {
		const struct escape_case *c = &escape_cases[i];
		struct cube_buf b = CUBE_BUF(100);

		assert_int_equal(cube_buf_add_escaped(&b, c->in, c->len, c->backslash != 0), 0);
		assert_string_equal(cube_buf_str(&b), c->out);
		cube_buf_done(&b);
	}
}

static void test_escaped_ceiling(void **state)
{
	struct cube_buf b = CUBE_BUF(5);

	(void)state;
	assert_int_equal(cube_buf_add_escaped(&b, "\n\n", 2, false), -EMSGSIZE);
	assert_string_equal(cube_buf_str(&b), "\\x0a"); /* no half escape */
	cube_buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_no_room_at_all),
		cmocka_unit_test(test_huge_length),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_reserve),
		cmocka_unit_test(test_drop),
		cmocka_unit_test(test_steal),
		cmocka_unit_test(test_escaped),
		cmocka_unit_test(test_escaped_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
