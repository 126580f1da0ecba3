/* SPDX-License-Identifier: Apache-2.0 */
/* Our view of jansson. */
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/json.h"
#include "backends/base/macros.h"

static json_t *parsed(const char *text)
{
	struct cube_err err = {0};
	json_t *o = NULL;

	assert_int_equal(cube_json_parse(text, strlen(text), "text", &o, &err), 0);
	return o;
}

static void test_members(void **state)
{
	cube_auto(cube_json_auto) json_t *o =
		parsed("{\"s\":\"x\",\"i\":-5,\"big\":9223372036854775807,\"t\":true,\"f\":false,\"n\":null,"
		       "\"r\":1.5,\"z\":\"a\\u0000b\"}");

	(void)state;
	assert_string_equal(cube_json_str(o, "s", "-"), "x");
	assert_string_equal(cube_json_str(o, "i", "-"), "-");
	assert_string_equal(cube_json_str(o, "none", "-"), "-");
	assert_string_equal(cube_json_str(o, "z", "-"), "-"); /* a NUL inside */
	assert_null(cube_json_str(o, "n", NULL));
	assert_int_equal(cube_json_int(o, "i", 7), -5);
	assert_true(cube_json_int(o, "big", 7) == INT64_MAX);
	assert_int_equal(cube_json_int(o, "r", 7), 7);
	assert_int_equal(cube_json_int(o, "s", 7), 7);
	assert_true(cube_json_bool(o, "t", false));
	assert_false(cube_json_bool(o, "f", true));
	assert_true(cube_json_bool(o, "n", true));
	assert_string_equal(cube_json_str(NULL, "s", "-"), "-");
	assert_int_equal(cube_json_int(NULL, "s", 7), 7);
	assert_true(cube_json_bool(NULL, "s", true));
}

static void test_no_object(void **state)
{
	cube_auto(cube_json_auto) json_t *o = parsed("[1]");

	(void)state;
	assert_string_equal(cube_json_str(o, "s", "-"), "-");
}

static const char *const bad[] = {
	"", " ", "{", "{}x", "{} {}", "{\"a\":1,\"a\":2}", "nope", "\"\xff\"", "[1,]", "{\"a\" 1}",
};

static void test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(bad); i++) {
		struct cube_err err = {0};
		json_t *o = NULL;

		if (cube_json_parse(bad[i], strlen(bad[i]), "cube.json", &o, &err) != -EINVAL)
			fail_msg("'%s'", bad[i]);
		assert_null(o);
		assert_memory_equal(err.text, "cube.json: line ", 16);
	}
	assert_int_equal(cube_json_parse("{", 1, "x", &(json_t *){NULL}, NULL), -EINVAL);
}

static void test_write(void **state)
{
	cube_auto(cube_json_auto) json_t *o = parsed(" { \"b\" : [ 1 , \"\\u00e9\\n\" ] , \"a\" : null } ");
	cube_auto(cube_json_auto) json_t *s = json_string("alone");
	struct cube_buf b = CUBE_BUF(100);

	(void)state;
	assert_int_equal(cube_json_write(o, &b), 0);
	assert_int_equal(cube_buf_addc(&b, '|'), 0);
	assert_int_equal(cube_json_write(s, &b), 0);
	assert_string_equal(cube_buf_str(&b), "{\"b\":[1,\"\xc3\xa9\\n\"],\"a\":null}|\"alone\"");
	cube_buf_done(&b);
	cube_buf_init(&b, 5);
	assert_int_equal(cube_json_write(o, &b), -EMSGSIZE);
	cube_buf_done(&b);
}

static void test_bytes(void **state)
{
	cube_auto(cube_json_auto) json_t *o = cube_json_bytes("a\0\xff\xc3\xa9\xe2\x82", 7);
	cube_auto(cube_json_auto) json_t *empty = cube_json_bytes(NULL, 0);
	struct cube_buf b = CUBE_BUF(100);

	(void)state;
	assert_int_equal(json_string_length(o), 1 + 1 + 3 + 2 + 6);
	assert_memory_equal(json_string_value(o), "a\0\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd", 13);
	assert_int_equal(json_string_length(empty), 0);
	assert_int_equal(cube_json_write(o, &b), 0);
	cube_auto(cube_json_auto) json_t *again = parsed(cube_buf_str(&b)); /* what we write, we read */
	assert_true(json_equal(o, again));
	cube_buf_done(&b);
}

static void test_out_of_memory(void **state)
{
	const char text[] = "{\"a\":[1,{\"b\":\"c\"}]}";
	struct cube_err err = {0};
	json_t *o = NULL;
	unsigned long nth;

	(void)state;
	json_decref(parsed("1")); /* jansson uses our allocation from the first parse on */
	for (nth = 1;; nth++) {
		int r;

		cube_alloc_fail_at(nth);
		r = cube_json_parse(text, strlen(text), "x", &o, &err);
		cube_alloc_fail_at(0);
		if (r == 0)
			break;
		/* jansson does not always say why; what counts is that it fails and leaks nothing */
		assert_true(r == -ENOMEM || r == -EINVAL);
		assert_null(o);
	}
	assert_true(nth > 5);
	json_decref(o);
	cube_alloc_fail_at(1);
	assert_null(cube_json_bytes("x", 1));
	cube_alloc_fail_at(2);
	assert_null(cube_json_bytes("x", 1));
	cube_alloc_fail_at(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members), cmocka_unit_test(test_no_object),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_write),
		cmocka_unit_test(test_bytes),   cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
