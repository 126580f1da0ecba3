/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation: copies, formats, the call that fails, and the small macros. */
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/list.h"
#include "backends/base/macros.h"

static void test_copies(void **state)
{
	cube_auto_str whole = cube_strdup("text");
	cube_auto_str part = cube_strndup("text", 2);
	cube_auto_str beyond = cube_strndup("text", 20);
	cube_auto(cube_free_auto) int *numbers = cube_memdup((int[]){1, 2}, 2 * sizeof(int));
	cube_auto_str text = cube_asprintf("%s-%d", "a", 7);

	(void)state;
	assert_string_equal(whole, "text");
	assert_string_equal(part, "te");
	assert_string_equal(beyond, "text");
	assert_int_equal(numbers[1], 2);
	assert_string_equal(text, "a-7");
}

static void test_nothing_is_something(void **state)
{
	cube_auto(cube_free_auto) void *a = cube_malloc(0);
	cube_auto(cube_free_auto) void *b = cube_calloc(0, 8);
	cube_auto(cube_free_auto) void *c = cube_realloc(NULL, 0);
	cube_auto(cube_free_auto) void *d = cube_memdup(NULL, 0);

	(void)state;
	assert_non_null(a);
	assert_non_null(b);
	assert_non_null(c);
	assert_non_null(d);
}

static void test_too_much(void **state)
{
	volatile size_t huge = SIZE_MAX / 2;

	(void)state;
	assert_null(cube_calloc(huge, 4));
}

static void test_nth_fails_once(void **state)
{
	(void)state;
	for (unsigned long nth = 1; nth <= 3; nth++) {
		cube_alloc_fail_at(nth);
		for (unsigned long i = 1; i <= 4; i++) {
			void *p;

			errno = 0;
			p = cube_malloc(1);
			assert_true((p == NULL) == (i == nth));
			if (i == nth)
				assert_int_equal(errno, ENOMEM);
			cube_free(p);
		}
	}
	cube_alloc_fail_at(1);
	cube_alloc_fail_at(0);
	cube_auto(cube_free_auto) void *fine = cube_malloc(1);
	assert_non_null(fine);
}

static void test_every_kind_can_fail(void **state)
{
	char *kept = cube_strdup("kept");

	(void)state;
	cube_alloc_fail_at(1);
	assert_null(cube_calloc(1, 1));
	cube_alloc_fail_at(1);
	assert_null(cube_realloc(kept, 100));
	cube_alloc_fail_at(1);
	assert_null(cube_strdup("x"));
	cube_alloc_fail_at(1);
	assert_null(cube_strndup("x", 1));
	cube_alloc_fail_at(1);
	assert_null(cube_memdup("x", 1));
	cube_alloc_fail_at(1);
	assert_null(cube_asprintf("%d", 1));
	assert_string_equal(kept, "kept");
	cube_free(kept);
}

static void test_steal(void **state)
{
	char *s = cube_strdup("s"), *t = cube_steal(s);
	int fd = 7;

	(void)state;
	assert_null(s);
	assert_string_equal(t, "s");
	cube_free(t);
	assert_int_equal(cube_steal_fd(&fd), 7);
	assert_int_equal(fd, -1);
}

static void test_close_auto(void **state)
{
	int seen;

	(void)state;
	{
		cube_auto_fd fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		cube_auto_fd none = -1;

		assert_true(fd >= 0);
		seen = fd;
		errno = EXDEV;
	}
	assert_int_equal(errno, EXDEV);
	assert_int_equal(fcntl(seen, F_GETFD), -1);
	errno = EXDEV;
	int bad = seen;
	cube_close_auto(&bad); /* fails, and keeps errno all the same */
	assert_int_equal(errno, EXDEV);
}

struct item {
	int number;
	struct cube_list link;
};

static void test_list(void **state)
{
	struct cube_list head = CUBE_LIST_INIT(head);
	struct item items[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
	int seen = 0;

	(void)state;
	assert_true(cube_list_empty(&head));
	assert_null(cube_list_pop(&head));
	for (size_t i = 0; i < CUBE_COUNT(items); i++)
		cube_list_push(&head, &items[i].link);
	cube_list_each (it, &head) {
		assert_int_equal(cube_list_entry(it, struct item, link)->number, seen++);
		if (seen == 2)
			cube_list_remove(it);
	}
	assert_int_equal(seen, 3);
	cube_list_remove(&items[1].link); /* a second time is harmless */
	assert_ptr_equal(cube_list_pop(&head), &items[0].link);
	assert_ptr_equal(cube_list_pop(&head), &items[2].link);
	assert_true(cube_list_empty(&head));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_nothing_is_something),
		cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_nth_fails_once),
		cmocka_unit_test(test_every_kind_can_fail),
		cmocka_unit_test(test_steal),
		cmocka_unit_test(test_close_auto),
		cmocka_unit_test(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
