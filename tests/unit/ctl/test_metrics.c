/* SPDX-License-Identifier: Apache-2.0 */
/* Samples: their form, the last hour, after a restart, who waits for them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "ctl/metrics.h"
#include "tests/unit/ctl/stage.h"

#define SECOND UINT64_C(1000000000)

static char *text(struct stage *s, struct cube_cube *c)
{
	static char data[65536];
	uint64_t pos;
	ssize_t n;

	cube_domain_enter(s->d);
	pos = cube_metrics_first(c);
	n = cube_metrics_read(c, &pos, data, sizeof(data) - 1);
	assert_true(n >= 0);
	assert_int_equal(pos, cube_metrics_end(c));
	cube_domain_leave(s->d);
	data[n] = '\0';
	return data;
}

static void sample(struct stage *s, struct cube_cube *c, uint64_t wall, struct cube_usage u)
{
	cube_domain_enter(s->d);
	c->usage = u;
	c->usage_wall = wall;
	cube_metrics_add(c);
	cube_domain_leave(s->d);
}

static void woken(struct cube_waiter *w)
{
	w->wake = NULL;
}

static void lines(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "a memory=100M");
	struct cube_waiter w;
	struct cube_usage u = {.pids = 3,
			       .cpu_ns = 1234 * SECOND / 1000,
			       .memory = 5000,
			       .disk = 7,
			       .net_in = 8,
			       .net_out = 9};
	uint64_t now = cube_clock_wall();
	char expected[300], time[CUBE_TIME_TEXT];

	cube_domain_enter(s->d);
	cube_waiter_init(&w, woken);
	cube_wait_add(&c->metrics.added, &w);
	cube_domain_leave(s->d);
	sample(s, c, now, u);
	assert_null(w.wake);
	(void)snprintf(expected, sizeof(expected), "%s 1.234 5000 104857600 7 - 3 8 9\n",
		       cube_clock_text(now, time));
	assert_non_null(strstr(text(s, c), expected));
	memset(&u, 0xff, sizeof(u)); /* nothing is known */
	sample(s, c, now, u);
	(void)snprintf(expected, sizeof(expected), "%s - - 104857600 - - - - -\n",
		       cube_clock_text(now, time));
	assert_non_null(strstr(text(s, c), expected));
	assert_int_equal(stage_root(s, "destroy a"), 0);
}

/* What is older than an hour goes, also when nothing is added any more. */
static void the_last_hour(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "a");
	struct cube_usage u = {.pids = 77};
	uint64_t now = cube_clock_wall(), count = 0;

	assert_int_equal(stage_cube(s, c, "stop"), 0);
	for (uint64_t i = 0; i < 400; i++)
		sample(s, c, now - (400 - i) * 15 * SECOND, u);
	for (const char *at = text(s, c); (at = strstr(at, " 77 ")) != NULL; at++)
		count++;
	assert_in_range(count, 230, 241);
	stage_killed(s);
	stage_up(s);
	cube_domain_enter(s->d);
	c = cube_domain_find(s->d, "a");
	cube_domain_leave(s->d);
	assert_non_null(strstr(text(s, c), " 77 "));
	assert_int_equal(stage_root(s, "destroy a"), 0);
}

struct sampled {
	struct cube_cube *c;
};

static bool has_sample(void *ctx)
{
	return cube_metrics_end(((struct sampled *)ctx)->c) > 0;
}

static void running_ones_are_sampled(void **state)
{
	struct stage *s = *state;
	struct sampled x = {stage_make(s, "a")};

	assert_true(stage_until(s, has_sample, &x));
	assert_non_null(strstr(text(s, x.c), "Z "));
	assert_int_equal(stage_root(s, "destroy a"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(the_last_hour),
		cmocka_unit_test(running_ones_are_sampled),
	};

	return cmocka_run_group_tests(tests, stage_setup, stage_teardown);
}
