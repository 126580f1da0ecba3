/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as text and back: the examples of RFC 4648, every length around the pieces in which it is done, and text that is
 * none. */
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/base64.h"
#include "backends/base/macros.h"

static const struct {
	const char *bytes, *text;
} examples[] = {
	{"", ""},
	{"f", "Zg=="},
	{"fo", "Zm8="},
	{"foo", "Zm9v"},
	{"foob", "Zm9vYg=="},
	{"fooba", "Zm9vYmE="},
	{"foobar", "Zm9vYmFy"},
	{"\xfb\xff\xbf", "+/+/"},
};

static void test_examples(void **state)
{
	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(examples); i++) {
		struct cube_buf text = CUBE_BUF(100), bytes = CUBE_BUF(100);

		assert_int_equal(cube_base64_add(&text, examples[i].bytes, strlen(examples[i].bytes)), 0);
		assert_string_equal(cube_buf_str(&text), examples[i].text);
		assert_int_equal(cube_base64_decode(&bytes, examples[i].text, strlen(examples[i].text)), 0);
		assert_string_equal(cube_buf_str(&bytes), examples[i].bytes);
		cube_buf_done(&text);
		cube_buf_done(&bytes);
	}
}

/* As readers are asked to take it, too. */
static void test_other_forms(void **state)
{
	struct cube_buf bytes = CUBE_BUF(100);

	(void)state;
	assert_int_equal(cube_base64_decode(&bytes, "-_-_", 4), 0);
	assert_int_equal(cube_base64_decode(&bytes, "Zg", 2), 0);
	assert_int_equal(cube_base64_decode(&bytes, "Zm8", 3), 0);
	assert_string_equal(cube_buf_str(&bytes), "\xfb\xff\xbf"
						  "ffo");
	cube_buf_done(&bytes);
}

static void test_lengths(void **state)
{
	static const size_t around[] = {0, 3, 12288 / 4 * 3, 12288, 3 * 12288, 100000};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(around); i++) {
		for (size_t len = around[i] < 4 ? 0 : around[i] - 4; len <= around[i] + 4; len++) {
			struct cube_buf text = CUBE_BUF(1 << 20), bytes = CUBE_BUF(1 << 20);
			unsigned char *data = cube_malloc(len + 1);

			for (size_t n = 0; n < len; n++)
				data[n] = (unsigned char)(n * 7 + n / 256);
			assert_int_equal(cube_base64_add(&text, data, len), 0);
			assert_int_equal(text.len, (len + 2) / 3 * 4);
			assert_int_equal(cube_base64_decode(&bytes, cube_buf_str(&text), text.len), 0);
			assert_int_equal(bytes.len, len);
			assert_true(len == 0 || memcmp(bytes.data, data, len) == 0);
			cube_free(data);
			cube_buf_done(&text);
			cube_buf_done(&bytes);
		}
	}
}

static void test_no_such_text(void **state)
{
	static const char *const texts[] = {"Z",      "Zg==Zg==",   "Zm9vYg=x",   "Zm9 v",        " Zm9v",
					    "Zm9v\n", "Zm9v\nZm9v", "Zm\xc3\xa4", "Zm9v====Zg==", "=Zm9",
					    "Z==="};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(texts); i++) {
		struct cube_buf bytes = CUBE_BUF(100);

		assert_int_equal(cube_buf_adds(&bytes, "before"), 0);
		if (cube_base64_decode(&bytes, texts[i], strlen(texts[i])) != -EINVAL)
			fail_msg("'%s' was taken", texts[i]);
		assert_string_equal(cube_buf_str(&bytes), "before");
		cube_buf_done(&bytes);
	}
}

static void test_bounds(void **state)
{
	struct cube_buf text = CUBE_BUF(7), bytes = CUBE_BUF(2);

	(void)state;
	assert_int_equal(cube_base64_add(&text, "foobar", 6), -EMSGSIZE);
	assert_int_equal(cube_base64_decode(&bytes, "Zm9vYmFy", 8), -EMSGSIZE);
	cube_buf_done(&text);
	cube_buf_done(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_examples), cmocka_unit_test(test_other_forms),
		cmocka_unit_test(test_lengths),  cmocka_unit_test(test_no_such_text),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests_name("base64", tests, NULL, NULL);
}
