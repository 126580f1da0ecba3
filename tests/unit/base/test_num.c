/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, names and times: what is taken, what is refused. */
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/base/macros.h"
#include "backends/base/name.h"
#include "backends/base/num.h"

#define UNTOUCHED UINT64_C(0x5555)

static int parse_u64(const char *s, uint64_t *ret)
{
	return cube_num_u64(s, 1000, ret);
}

static int parse_any(const char *s, uint64_t *ret)
{
	return cube_num_u64(s, UINT64_MAX, ret);
}

static int parse_mode(const char *s, uint64_t *ret)
{
	unsigned mode = UNTOUCHED;
	int r = cube_num_mode(s, &mode);

	*ret = mode;
	return r;
}

static int parse_bool(const char *s, uint64_t *ret)
{
	int value = UNTOUCHED;
	int r = cube_num_bool(s, &value);

	*ret = (uint64_t)value;
	return r;
}

static const struct num_case {
	int (*parse)(const char *s, uint64_t *ret);
	const char *text;
	int result;
	uint64_t value;
} num_cases[] = {
	{parse_u64, "0", 0, 0},
	{parse_u64, "1000", 0, 1000},
	{parse_u64, "0001000", 0, 1000},
	{parse_u64, "1001", -ERANGE, 0},
	{parse_u64, "99999999999999999999999999", -ERANGE, 0},
	{parse_u64, "99999999999999999999999999x", -EINVAL, 0},
	{parse_u64, "", -EINVAL, 0},
	{parse_u64, " 1", -EINVAL, 0},
	{parse_u64, "1 ", -EINVAL, 0},
	{parse_u64, "+1", -EINVAL, 0},
	{parse_u64, "-1", -EINVAL, 0},
	{parse_u64, "0x10", -EINVAL, 0},
	{parse_u64, "1\n", -EINVAL, 0},
	{parse_any, "18446744073709551615", 0, UINT64_MAX},
	{parse_any, "18446744073709551616", -ERANGE, 0},
	{cube_num_size, "0", 0, 0},
	{cube_num_size, "512", 0, 512},
	{cube_num_size, "2k", 0, 2048},
	{cube_num_size, "2K", 0, 2048},
	{cube_num_size, "3m", 0, 3 << 20},
	{cube_num_size, "4G", 0, UINT64_C(4) << 30},
	{cube_num_size, "5t", 0, UINT64_C(5) << 40},
	{cube_num_size, "16777215T", 0, UINT64_C(16777215) << 40},
	{cube_num_size, "16777216T", -ERANGE, 0},
	{cube_num_size, "18446744073709551616", -ERANGE, 0},
	{cube_num_size, "18446744073709551616q", -EINVAL, 0},
	{cube_num_size, "K", -EINVAL, 0},
	{cube_num_size, "1KB", -EINVAL, 0},
	{cube_num_size, "1.5G", -EINVAL, 0},
	{cube_num_size, "1 K", -EINVAL, 0},
	{cube_num_milli, "2", 0, 2000},
	{cube_num_milli, "0.5", 0, 500},
	{cube_num_milli, "0.05", 0, 50},
	{cube_num_milli, "1.125", 0, 1125},
	{cube_num_milli, "1.1250", -EINVAL, 0},
	{cube_num_milli, "1.", -EINVAL, 0},
	{cube_num_milli, ".5", -EINVAL, 0},
	{cube_num_milli, "1.5.5", -EINVAL, 0},
	{cube_num_milli, "1,5", -EINVAL, 0},
	{cube_num_milli, "-1", -EINVAL, 0},
	{cube_num_milli, "18446744073709550.999", 0, UINT64_C(18446744073709550999)},
	{cube_num_milli, "18446744073709551", -ERANGE, 0},
	{parse_mode, "0", 0, 0},
	{parse_mode, "644", 0, 0644},
	{parse_mode, "07777", 0, 07777},
	{parse_mode, "10000", -ERANGE, 0},
	{parse_mode, "8", -EINVAL, 0},
	{parse_mode, "", -EINVAL, 0},
	{parse_bool, "yes", 0, 1},
	{parse_bool, "true", 0, 1},
	{parse_bool, "on", 0, 1},
	{parse_bool, "1", 0, 1},
	{parse_bool, "no", 0, 0},
	{parse_bool, "false", 0, 0},
	{parse_bool, "off", 0, 0},
	{parse_bool, "0", 0, 0},
	{parse_bool, "Yes", -EINVAL, 0},
	{parse_bool, "2", -EINVAL, 0},
	{parse_bool, "", -EINVAL, 0},
};

static void test_numbers(void **state)
{
	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(num_cases); i++) {
		const struct num_case *c = &num_cases[i];
		uint64_t value = UNTOUCHED;
		int r = c->parse(c->text, &value);

		if (r != c->result || value != (r == 0 ? c->value : UNTOUCHED))
			fail_msg("'%s': %d, %llu", c->text, r, (unsigned long long)value);
	}
}

static const struct name_case {
	const char *s;
	bool name, template, entry;
} name_cases[] = {
	{"a", true, true, true},         {"Az09._-", true, true, true}, {"_x", true, true, true},
	{"", false, false, false},       {".", false, false, false},    {"..", false, false, false},
	{".hidden", false, false, true}, {"-rf", false, false, true},   {"a b", false, false, true},
	{"a/b", false, false, false},    {"ds:v1", false, true, true},  {":v1", false, false, true},
	{"ds:", false, false, true},     {"a\n", false, false, true},   {"\xc3\xa9", false, false, true},
	{"...", false, false, true},
};

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(name_cases); i++) {
		const struct name_case *c = &name_cases[i];

		if (cube_name_ok(c->s) != c->name || cube_name_template_ok(c->s) != c->template ||
		    cube_name_entry_ok(c->s) != c->entry)
			fail_msg("'%s'", c->s);
	}
}

static void test_name_lengths(void **state)
{
	char s[CUBE_ENTRY_MAX + 2];

	(void)state;
	memset(s, 'x', sizeof(s));
	s[CUBE_ENTRY_MAX + 1] = '\0';
	assert_false(cube_name_entry_ok(s));
	s[CUBE_ENTRY_MAX] = '\0';
	assert_true(cube_name_entry_ok(s));
	s[CUBE_NAME_MAX + 1] = '\0';
	assert_false(cube_name_ok(s));
	assert_false(cube_name_template_ok(s));
	s[CUBE_NAME_MAX] = '\0';
	assert_true(cube_name_ok(s));
	assert_true(cube_name_template_ok(s));
}

static void test_env_names(void **state)
{
	(void)state;
	assert_true(cube_name_env_ok("PATH=x", 4));
	assert_true(cube_name_env_ok("_a9", 3));
	assert_false(cube_name_env_ok("", 0));
	assert_false(cube_name_env_ok("9a", 2));
	assert_false(cube_name_env_ok("a-b", 3));
	assert_false(cube_name_env_ok("a\0b", 3));
}

static const struct time_case {
	const char *text;
	uint64_t ns;
	const char *back; /* NULL: the same */
} time_cases[] = {
	{"-", 0, NULL},
	{"1970-01-01T00:00:01.000Z", UINT64_C(1000000000), NULL},
	{"2026-11-29T19:23:06.120Z", UINT64_C(1795980186120000000), NULL},
	{"2024-02-29T23:59:59.999Z", UINT64_C(1709251199999000000), NULL},
	{"2024-02-29T23:59:59Z", UINT64_C(1709251199000000000), "2024-02-29T23:59:59.000Z"},
	{"1970-01-01T00:00:01.5Z", UINT64_C(1500000000), "1970-01-01T00:00:01.500Z"},
	{"1970-01-01T00:00:01.123456789Z", UINT64_C(1123456789), "1970-01-01T00:00:01.123Z"},
};

static const char *const time_bad[] = {
	"",
	"1970-01-01",
	"1970-01-01T00:00:00",
	"1970-01-01 00:00:00Z",
	"1970-01-01T00:00:00+00:00",
	"1970-01-01T00:00:00.Z",
	"1970-01-01T00:00:00.1234567890Z",
	"1970-01-01T00:00:00ZZ",
	"1970-13-01T00:00:00Z",
	"1970-00-01T00:00:00Z",
	"2023-02-29T00:00:00Z",
	"2024-02-30T00:00:00Z",
	"1970-01-01T24:00:00Z",
	"1970-01-01T00:60:00Z",
	"1970-01-01T00:00:60Z",
	"1969-12-31T23:59:59Z",
	"9999-01-01T00:00:00Z",
	"x970-01-01T00:00:00Z",
};

static void test_times(void **state)
{
	char out[CUBE_TIME_TEXT];

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(time_cases); i++) {
		const struct time_case *c = &time_cases[i];
		uint64_t ns = UNTOUCHED;

		assert_int_equal(cube_clock_parse(c->text, &ns), 0);
		assert_true(ns == c->ns);
		assert_string_equal(cube_clock_text(ns, out), c->back != NULL ? c->back : c->text);
	}
	for (size_t i = 0; i < CUBE_COUNT(time_bad); i++) {
		uint64_t ns = UNTOUCHED;

		if (cube_clock_parse(time_bad[i], &ns) != -EINVAL || ns != UNTOUCHED)
			fail_msg("'%s'", time_bad[i]);
	}
	assert_string_equal(cube_clock_text(UINT64_MAX, out), "2554-07-21T23:34:33.709Z");
}

static void test_clock(void **state)
{
	_Atomic uint64_t fake = 5;
	uint64_t mono, wall;

	(void)state;
	cube_clock_fake(&fake);
	assert_int_equal(cube_clock_mono(), 5);
	fake = 6;
	assert_int_equal(cube_clock_mono(), 6);
	assert_int_equal(cube_clock_wall(), 6);
	cube_clock_fake(NULL);
	mono = cube_clock_mono();
	wall = cube_clock_wall();
	assert_true(wall > UINT64_C(1700000000) * 1000000000);
	assert_true(cube_clock_mono() >= mono);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),      cmocka_unit_test(test_names),
		cmocka_unit_test(test_name_lengths), cmocka_unit_test(test_env_names),
		cmocka_unit_test(test_times),        cmocka_unit_test(test_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
