/* SPDX-License-Identifier: Apache-2.0 */
/* Verb lines: words, quotes, comments, and what is refused. */
#include "ctl/words.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backends/base/alloc.h"

struct good {
	const char *line;
	const char *words[6];
};

static const struct good good[] = {
	{"", {NULL}},
	{"  \t ", {NULL}},
	{"# a comment", {NULL}},
	{"stop", {"stop"}},
	{"stop 5", {"stop", "5"}},
	{"  stop\t5  ", {"stop", "5"}},
	{"stop 5 # soon", {"stop", "5"}},
	{"set a#b", {"set", "a#b"}},
	{"set 'a b'", {"set", "a b"}},
	{"set 'it''s'", {"set", "it's"}},
	{"set key='a b'c", {"set", "key=a bc"}},
	{"set \"a \\\"b\\\" \\\\ \\n\\t\"", {"set", "a \"b\" \\ \n\t"}},
	{"set ''", {"set", ""}},
	{"set \"\" x", {"set", "", "x"}},
	{"set 'a'\"b\"c", {"set", "abc"}},
	{"set '\\n'", {"set", "\\n"}},
	{"set a\\b", {"set", "a\\b"}},
	{"set '#' x", {"set", "#", "x"}},
	{"stop\r", {"stop"}},
	{"a b c d e", {"a", "b", "c", "d", "e"}},
};

static void test_good(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct cube_err err = {0};
		unsigned n = 99, k = 0;
		char **words = NULL;

		assert_int_equal(cube_words_split(good[i].line, strlen(good[i].line), &words, &n, &err), 0);
		for (; good[i].words[k] != NULL; k++) {
			assert_true(k < n);
			assert_string_equal(words[k], good[i].words[k]);
		}
		assert_int_equal(n, k);
		assert_null(words[n]);
		cube_free(words);
	}
}

static const struct {
	const char *line;
	const char *says;
} bad[] = {
	{"set 'a", "not closed"},
	{"set \"a", "not closed"},
	{"set \"a\\", "not closed"},
	{"set 'a''", "not closed"},
	{"set \"\\x\"", "unknown escape \\x"},
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cube_err err = {0};
		char **words = NULL;
		unsigned n = 99;

		assert_int_equal(cube_words_split(bad[i].line, strlen(bad[i].line), &words, &n, &err),
				 -EINVAL);
		assert_non_null(strstr(err.text, bad[i].says));
		assert_null(words);
		assert_int_equal(n, 99);
	}
}

static void test_nul(void **state)
{
	struct cube_err err = {0};
	char **words = NULL;
	unsigned n;

	(void)state;
	assert_int_equal(cube_words_split("a\0b", 3, &words, &n, &err), -EINVAL);
	assert_non_null(strstr(err.text, "NUL"));
}

static void test_many(void **state)
{
	static char line[2 * CUBE_WORDS_MAX + 4];
	struct cube_err err = {0};
	char **words = NULL;
	unsigned n;

	(void)state;
	for (size_t i = 0; i < CUBE_WORDS_MAX; i++)
		memcpy(line + 2 * i, "a ", 2);
	assert_int_equal(cube_words_split(line, strlen(line), &words, &n, &err), 0);
	assert_int_equal(n, CUBE_WORDS_MAX);
	assert_string_equal(words[CUBE_WORDS_MAX - 1], "a");
	cube_free(words);
	memcpy(line + strlen(line), "b", 2);
	words = NULL;
	assert_int_equal(cube_words_split(line, strlen(line), &words, &n, &err), -EINVAL);
	assert_null(words);
}

static void test_no_memory(void **state)
{
	struct cube_err err = {0};
	char **words = NULL;
	unsigned n;

	(void)state;
	cube_alloc_fail_at(1);
	assert_int_equal(cube_words_split("a b", 3, &words, &n, &err), -ENOMEM);
	cube_alloc_fail_at(0);
	assert_null(words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good), cmocka_unit_test(test_bad),       cmocka_unit_test(test_nul),
		cmocka_unit_test(test_many), cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
