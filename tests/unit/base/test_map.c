/* SPDX-License-Identifier: Apache-2.0 */
/* Maps: the same random steps on a map and on a plain array, growth, gaps, memory that is out. */
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/map.h"

#define KEYS 500

static int values[KEYS];

static void test_strings(void **state)
{
	struct cube_map *m = cube_map_new();
	char key[8] = "one";

	(void)state;
	assert_int_equal(cube_map_put(m, key, &values[1]), 0);
	key[0] = 'x'; /* it was copied */
	assert_ptr_equal(cube_map_get(m, "one"), &values[1]);
	assert_int_equal(cube_map_put(m, "one", &values[2]), -EEXIST);
	assert_ptr_equal(cube_map_get(m, "one"), &values[1]);
	assert_int_equal(cube_map_put(m, "", &values[3]), 0);
	assert_int_equal(cube_map_put(m, "none", NULL), -EINVAL);
	assert_int_equal(cube_map_count(m), 2);
	assert_null(cube_map_take(m, "two"));
	assert_ptr_equal(cube_map_take(m, ""), &values[3]);
	assert_null(cube_map_get(m, ""));
	assert_int_equal(cube_map_count(m), 1);
	cube_map_free(m);
	cube_map_free(NULL);
	cube_imap_free(NULL);
}

static void test_numbers(void **state)
{
	struct cube_imap *m = cube_imap_new();
	const uint64_t keys[] = {0, 1, UINT64_MAX, UINT64_C(1) << 63, 42};

	(void)state;
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(cube_imap_put(m, keys[i], &values[i]), 0);
	assert_int_equal(cube_imap_put(m, 0, &values[9]), -EEXIST);
	for (size_t i = 0; i < 5; i++)
		assert_ptr_equal(cube_imap_get(m, keys[i]), &values[i]);
	assert_null(cube_imap_get(m, 2));
	assert_ptr_equal(cube_imap_take(m, UINT64_MAX), &values[2]);
	assert_null(cube_imap_take(m, UINT64_MAX));
	assert_int_equal(cube_imap_count(m), 4);
	cube_imap_free(m);
}

static void check_same(const struct cube_map *m, const struct cube_imap *n, const int *there)
{
	size_t count = 0;
	char key[16];

	for (int k = 0; k < KEYS; k++) {
		void *want = there[k] ? &values[k] : NULL;

		(void)snprintf(key, sizeof(key), "k%d", k);
		assert_ptr_equal(cube_map_get(m, key), want);
		assert_ptr_equal(cube_imap_get(n, (uint64_t)k * 16), want);
		count += there[k] != 0;
	}
	assert_int_equal(cube_map_count(m), count);
	assert_int_equal(cube_imap_count(n), count);
}

static void test_random_steps(void **state)
{
	struct cube_map *m = cube_map_new();
	struct cube_imap *n = cube_imap_new();
	int there[KEYS] = {0};
	unsigned seed = 1;

	(void)state;
	for (int step = 0; step < 20000; step++) {
		int k = rand_r(&seed) % KEYS;
		char key[16];

		(void)snprintf(key, sizeof(key), "k%d", k);
		if (rand_r(&seed) % 2) {
			int want = there[k] ? -EEXIST : 0;

			assert_int_equal(cube_map_put(m, key, &values[k]), want);
			assert_int_equal(cube_imap_put(n, (uint64_t)k * 16, &values[k]), want);
			there[k] = 1;
		} else {
			void *want = there[k] ? &values[k] : NULL;

			assert_ptr_equal(cube_map_take(m, key), want);
			assert_ptr_equal(cube_imap_take(n, (uint64_t)k * 16), want);
			there[k] = 0;
		}
		if (step % 1000 == 0)
			check_same(m, n, there);
	}
	check_same(m, n, there);
	cube_map_free(m);
	cube_imap_free(n);
}

struct walk {
	int seen[KEYS];
	int stop_after;
};

static int walk_name(void *ctx, const char *key, void *value)
{
	struct walk *w = ctx;
	long k = strtol(key + 1, NULL, 10);

	assert_ptr_equal(value, &values[k]);
	w->seen[k]++;
	return --w->stop_after == 0 ? 77 : 0;
}

static int walk_number(void *ctx, uint64_t key, void *value)
{
	char name[16];

	(void)snprintf(name, sizeof(name), "k%u", (unsigned)key);
	return walk_name(ctx, name, value);
}

static void test_each(void **state)
{
	struct cube_map *m = cube_map_new();
	struct cube_imap *n = cube_imap_new();
	struct walk w = {.stop_after = -1};
	char key[16];

	(void)state;
	for (int k = 0; k < 100; k++) {
		(void)snprintf(key, sizeof(key), "k%d", k);
		assert_int_equal(cube_map_put(m, key, &values[k]), 0);
		assert_int_equal(cube_imap_put(n, (uint64_t)k, &values[k]), 0);
	}
	assert_int_equal(cube_map_each(m, walk_name, &w), 0);
	assert_int_equal(cube_imap_each(n, walk_number, &w), 0);
	for (int k = 0; k < 100; k++)
		assert_int_equal(w.seen[k], 2);
	w = (struct walk){.stop_after = 3};
	assert_int_equal(cube_map_each(m, walk_name, &w), 77);
	w = (struct walk){.stop_after = 3};
	assert_int_equal(cube_imap_each(n, walk_number, &w), 77);
	cube_map_free(m);
	cube_imap_free(n);
}

/* Fills a map with the n-th allocation failing; what could be put must be there, nothing else. */
static int fill_failing(unsigned long nth)
{
	struct cube_map *m;
	size_t put = 0;
	int failed = 0;
	char key[16];

	cube_alloc_fail_at(nth);
	m = cube_map_new();
	for (int k = 0; m != NULL && k < 40; k++) {
		(void)snprintf(key, sizeof(key), "k%d", k);
		int r = cube_map_put(m, key, &values[k]);

		assert_true(r == 0 || r == -ENOMEM);
		assert_ptr_equal(cube_map_get(m, key), r == 0 ? &values[k] : NULL);
		put += r == 0;
		failed |= r != 0;
	}
	cube_alloc_fail_at(0);
	if (m == NULL)
		return 1;
	assert_int_equal(cube_map_count(m), put);
	cube_map_free(m);
	return failed;
}

static void test_out_of_memory(void **state)
{
	unsigned long nth = 1;

	(void)state;
	while (fill_failing(nth))
		nth++;
	assert_int_equal(nth, 2 + 40 + 2 + 1); /* table and map, 40 names, two growths, then none fails */
	cube_alloc_fail_at(2);
	assert_null(cube_imap_new());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strings),       cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_random_steps),  cmocka_unit_test(test_each),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
