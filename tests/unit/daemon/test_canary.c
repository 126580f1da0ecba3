/* SPDX-License-Identifier: Apache-2.0 */
/* When a worker hangs, and when it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/clock.h"
#include "fs/canary.h"
#include "fs/revive.h"

#define MS UINT64_C(1000000)

static unsigned wait_ms(struct cube_canary *c, uint64_t *now, unsigned ms, bool waiting)
{
	*now += ms * MS;
	return cube_canary_count(c, *now, waiting);
}

static void test_seconds_are_told_once(void **state)
{
	struct cube_canary c = {.path = NULL};
	uint64_t now = 0;

	(void)state;
	for (unsigned second = 1; second < 12; second++) {
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(wait_ms(&c, &now, 200, true), 0);
		assert_int_equal(wait_ms(&c, &now, 200, true), second);
	}
	assert_int_equal(wait_ms(&c, &now, 200, false), 0); /* the answer */
	assert_int_equal(wait_ms(&c, &now, 800, true), 0);
	assert_int_equal(wait_ms(&c, &now, 200, true), 1);
}

static void test_a_machine_that_stands_still(void **state)
{
	struct cube_canary c = {.path = NULL};
	uint64_t now = 0;

	(void)state;
	for (unsigned i = 0; i < 49; i++)
		(void)wait_ms(&c, &now, 200, true); /* 9.8 s */
	assert_int_equal(wait_ms(&c, &now, 5000, true), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(wait_ms(&c, &now, 200, true), 0);
	assert_int_equal(wait_ms(&c, &now, 200, true), 1); /* from the beginning */
}

struct hang {
	int fd;
	struct cube_revive v;
	_Atomic uint64_t now;
};

static void hang_begin(struct hang *h, unsigned limit)
{
	struct cube_err err = {0};

	*h = (struct hang){.fd = -1, .now = 1000 * MS};
	cube_clock_fake(&h->now);
	assert_int_equal(cube_keep_make(&h->fd, &err), 0);
	assert_int_equal(cube_revive_init(&h->v, h->fd, &err), 0);
	cube_revive_begin(&h->v);
	atomic_store(&h->v.keep->head->canary, limit);
}

static void hang_end(struct hang *h)
{
	cube_clock_fake(NULL);
	cube_revive_done(&h->v);
	(void)close(h->fd);
}

static void test_one_that_has_yet_to_begin(void **state)
{
	struct hang h;

	(void)state;
	hang_begin(&h, 10);
	cube_revive_look(&h.v);
	h.now += 60000 * MS;
	assert_false(cube_revive_hung(&h.v, 60));
	atomic_store(&h.v.keep->head->ready, 1);
	cube_revive_look(&h.v);
	assert_false(cube_revive_hung(&h.v, 60)); /* the silence was before it */
	h.now += 9999 * MS;
	assert_false(cube_revive_hung(&h.v, 70));
	h.now += 1 * MS;
	assert_true(cube_revive_hung(&h.v, 70));
	assert_int_equal(atomic_load(&h.v.keep->head->hung), 70);
	assert_false(cube_revive_hung(&h.v, 71)); /* it has been told to end */
	hang_end(&h);
}

static void test_as_long_as_the_setting_says(void **state)
{
	struct hang h;

	(void)state;
	hang_begin(&h, 0);
	atomic_store(&h.v.keep->head->ready, 1);
	cube_revive_look(&h.v);
	h.now += 100000 * MS;
	assert_false(cube_revive_hung(&h.v, 100));
	atomic_store(&h.v.keep->head->canary, 50);
	assert_false(cube_revive_hung(&h.v, 49));
	assert_true(cube_revive_hung(&h.v, 50));
	hang_end(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seconds_are_told_once),
		cmocka_unit_test(test_a_machine_that_stands_still),
		cmocka_unit_test(test_one_that_has_yet_to_begin),
		cmocka_unit_test(test_as_long_as_the_setting_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
