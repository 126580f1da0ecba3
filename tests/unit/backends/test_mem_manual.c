/* SPDX-License-Identifier: Apache-2.0 */
/* cubefs-mem(7) has every word of the language, every key of the configuration, every operation that can
 * be made to fail; and none that is not there. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/decor/fault.h"
#include "backends/mem/mem_priv.h"

static struct cube_buf manual = {.max = 1 << 20};

static int setup(void **state)
{
	(void)state;
	assert_int_equal(cube_file_read(AT_FDCWD, CUBEFS_SOURCE_DIR "/docs/cubefs-mem.7", &manual), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cube_buf_done(&manual);
	return 0;
}

static void words_documented(void **state)
{
	(void)state;
	for (size_t i = 0; mem_word_at(i) != NULL; i++) {
		char item[64];

		(void)snprintf(item, sizeof(item), "\n.It Ic %s", mem_word_at(i)->name);
		if (strstr(cube_buf_str(&manual), item) == NULL)
			fail_msg("the manual lacks the word %s", mem_word_at(i)->name);
	}
}

/* Items of the two lists of words, in the order of the table within each. */
static void documented_words(void **state)
{
	unsigned n = 0, words = 0;

	(void)state;
	for (const char *at = cube_buf_str(&manual); (at = strstr(at, "\n.It Ic ")) != NULL; n++) {
		char name[32] = "";

		at += strlen("\n.It Ic ");
		(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, " \n"), at);
		if (mem_word_find(name) == NULL)
			fail_msg("the manual has the word %s, which is none", name);
	}
	while (mem_word_at(words) != NULL)
		words++;
	assert_int_equal(n, words);
}

static void table_is_sorted(void **state)
{
	(void)state;
	for (size_t i = 1; mem_word_at(i) != NULL; i++)
		assert_true(strcmp(mem_word_at(i - 1)->name, mem_word_at(i)->name) < 0);
}

/* Somewhere in the part on configuration, as a word of its own. */
static void expect_configuration(const char *word)
{
	const char *part = strstr(cube_buf_str(&manual), "\n.Sh CONFIGURATION\n");
	const char *end = part != NULL ? strstr(part, "\n.Sh EXAMPLES\n") : NULL;
	size_t len = strlen(word);

	assert_non_null(end);
	for (const char *at = part; (at = strstr(at, word)) != NULL && at < end; at += len) {
		if (at[-1] == ' ' && (at[len] == ' ' || at[len] == '\n'))
			return;
	}
	fail_msg("the manual's configuration lacks %s", word);
}

static void configuration(void **state)
{
	(void)state;
	for (size_t i = 0; mem_conf_key(i) != NULL; i++)
		expect_configuration(mem_conf_key(i));
	for (unsigned i = 0; cube_fault_op(i) != NULL; i++)
		expect_configuration(cube_fault_op(i));
}

static void capabilities(void **state)
{
	const char *list = strstr(cube_buf_str(&manual), "\nIt has\n");
	const char *lacks = strstr(cube_buf_str(&manual), "\nIt lacks\n");

	(void)state;
	assert_true(list != NULL && lacks != NULL && list < lacks);
	for (unsigned i = 0; i < CUBE_CAP_COUNT; i++) {
		bool has = (cube_backend_mem.caps & (1u << i)) != 0;
		const char *at = strstr(list, cube_cap_name(i));

		if (at == NULL || (at < lacks) != has)
			fail_msg("the manual is wrong about %s", cube_cap_name(i));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_documented), cmocka_unit_test(documented_words),
		cmocka_unit_test(table_is_sorted),  cmocka_unit_test(capabilities),
		cmocka_unit_test(configuration),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
