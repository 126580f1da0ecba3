/* SPDX-License-Identifier: Apache-2.0 */
/* The hash table with links inside, against a plain array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"
#include "fs/files/hash.h"

enum { ELEMENTS = 5000 };

struct element {
	struct cube_fhash_link link;
	uint64_t key;
	bool in;
};

static struct element *find(const struct cube_fhash *h, uint64_t key, uint64_t hash)
{
	struct cube_fhash_link *l = cube_fhash_first(h, hash);

	for (; l != NULL; l = cube_fhash_next(l)) {
		if (cube_container_of(l, struct element, link)->key == key)
			return cube_container_of(l, struct element, link);
	}
	return NULL;
}

/* @spread: how many different hashes there are; 1 puts all into one chain. */
static void run(uint64_t spread, unsigned n)
{
	static struct element all[ELEMENTS];
	struct cube_fhash h;
	size_t count = 0;

	assert_int_equal(cube_fhash_init(&h), 0);
	for (unsigned i = 0; i < n; i++) {
		all[i] = (struct element){.key = i, .in = true};
		cube_fhash_add(&h, &all[i].link, cube_fhash_mix(i % spread, 7));
	}
	for (unsigned i = 0; i < n; i += 3) {
		cube_fhash_remove(&h, &all[i].link);
		all[i].in = false;
	}
	for (unsigned i = 0; i < n; i++) {
		assert_ptr_equal(find(&h, i, cube_fhash_mix(i % spread, 7)), all[i].in ? &all[i] : NULL);
		count += all[i].in;
	}
	assert_int_equal(h.count, count);
	cube_fhash_done(&h);
}

static void test_table(void **state)
{
	(void)state;
	run(ELEMENTS, ELEMENTS);
	run(10, 500);
	run(1, 300);
}

/* It works on with too few slots. */
static void test_no_memory(void **state)
{
	static struct element all[600];
	struct cube_fhash h;

	(void)state;
	assert_int_equal(cube_fhash_init(&h), 0);
	cube_alloc_fail_at(1); /* when it would grow */
	for (unsigned i = 0; i < CUBE_COUNT(all); i++) {
		all[i].key = i;
		cube_fhash_add(&h, &all[i].link, cube_fhash_mix(i, 0));
	}
	cube_alloc_fail_at(0);
	for (unsigned i = 0; i < CUBE_COUNT(all); i++)
		assert_ptr_equal(find(&h, i, cube_fhash_mix(i, 0)), &all[i]);
	cube_fhash_done(&h);
}

static void test_functions(void **state)
{
	static const char *const texts[] = {"", "a", "b", "ab", "ba", "aaaaaaaa", "aaaaaaaaa", "aaaaaaaab"};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(texts); i++) {
		assert_true(cube_fhash_text(1, texts[i]) == cube_fhash_text(1, texts[i]));
		assert_true(cube_fhash_text(1, texts[i]) != cube_fhash_text(2, texts[i]));
		for (size_t k = 0; k < i; k++)
			assert_true(cube_fhash_text(1, texts[i]) != cube_fhash_text(1, texts[k]));
	}
	assert_true(cube_fhash_mix(1, 2) != cube_fhash_mix(2, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
