/* SPDX-License-Identifier: Apache-2.0 */
/* A short disk: who writes the most is paused, and goes on when there is room. How much is to be kept free is what
 * the test says; how much is free is what this machine has. */
#include "tests/unit/ctl/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"
#include "ctl/errlog.h"

#define MUCH 100000 /* bytes */

static bool is_idle(void *ctx)
{
	return !cube_domain_own(((struct stage *)ctx)->d)->guarding;
}

/* One look from its beginning to its end. */
static void look(struct stage *s)
{
	assert_true(stage_until(s, is_idle, s));
	cube_domain_enter(s->d);
	cube_guard_look(s->d);
	cube_domain_leave(s->d);
	assert_true(stage_until(s, is_idle, s));
}

static void writes(struct stage *s, struct cube_cube *c, size_t bytes)
{
	char *text = calloc(1, bytes + 32);
	int n = snprintf(text, 32, "append file ");

	assert_non_null(text);
	memset(text + n, 'x', bytes);
	assert_int_equal(stage_exec(s, c, NULL, text, NULL), 0);
	free(text);
}

static void expect(struct stage *s, struct cube_cube *c, enum cube_phase phase, const char *reason)
{
	assert_true(stage_phase(s, c, phase));
	cube_domain_enter(s->d);
	assert_string_equal(c->reason, reason);
	cube_domain_leave(s->d);
}

static void expect_noted(struct stage *s, struct cube_cube *c, const char *part)
{
	struct cube_buf text = CUBE_BUF(65536);

	cube_domain_enter(s->d);
	assert_int_equal(cube_errlog_text(c->errors, &text), 0);
	cube_domain_leave(s->d);
	if (strstr(cube_buf_str(&text), part) == NULL)
		fail_msg("no '%s' in\n%s", part, cube_buf_str(&text));
	cube_buf_done(&text);
}

static void short_disk(struct stage *s)
{
	assert_int_equal(stage_root(s, "set disk_percent=0"), 0);
	assert_int_equal(stage_root(s, "set disk_reserve=1024T"), 0);
	look(s);
}

static void writer_is_paused(void **state)
{
	struct stage *s = *state;
	struct cube_cube *hog = stage_make(s, "hog"), *more = stage_make(s, "more"),
			 *calm = stage_make(s, "calm");

	writes(s, hog, MUCH); /* before anybody looked: nobody's fault */
	short_disk(s);
	look(s);
	expect(s, hog, CUBE_RUNNING, "");
	writes(s, calm, 100);
	writes(s, hog, MUCH);
	writes(s, more, 2 * MUCH);
	look(s);
	expect(s, more, CUBE_PAUSED, "disk");
	expect(s, hog, CUBE_RUNNING, "");
	expect_noted(s, more, "paused: it wrote 0 MiB while the disk that holds the state has ");
	writes(s, hog, MUCH);
	look(s);
	expect(s, hog, CUBE_PAUSED, "disk");
	look(s);
	expect(s, calm, CUBE_RUNNING, "");
	/* Using it changes nothing; its user can. */
	assert_int_equal(stage_exec(s, hog, NULL, "true", NULL), -EHOSTDOWN - 1000);
	assert_non_null(strstr(s->err.text, "the disk that holds the state is short"));
	assert_int_equal(stage_cube(s, hog, "resume"), 0);
	look(s);
	look(s);
	expect(s, hog, CUBE_RUNNING, "");
	writes(s, hog, MUCH);
	look(s);
	expect(s, hog, CUBE_PAUSED, "disk");
	assert_int_equal(stage_root(s, "set disk_reserve=0"), 0);
	look(s);
	look(s);
	expect(s, hog, CUBE_RUNNING, "");
	expect(s, more, CUBE_RUNNING, "");
	assert_int_equal(stage_exec(s, more, NULL, "true", NULL), 0);
}

/* Who was paused by somebody else stays so. */
static void others_are_left_alone(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");

	assert_int_equal(stage_cube(s, c, "pause"), 0);
	short_disk(s);
	assert_int_equal(stage_root(s, "set disk_reserve=0"), 0);
	look(s);
	expect(s, c, CUBE_PAUSED, "paused");
	assert_int_equal(stage_exec(s, c, NULL, "true", NULL), 0);
}

static struct cube_cube *find(struct stage *s, const char *name)
{
	cube_domain_enter(s->d);
	struct cube_cube *c = cube_domain_find(s->d, name);
	cube_domain_leave(s->d);
	return c;
}

static void over_a_restart(void **state)
{
	struct stage s;

	(void)state;
	host_open(&s);
	(void)stage_make(&s, "hog");
	short_disk(&s);
	writes(&s, find(&s, "hog"), MUCH);
	look(&s);
	expect(&s, find(&s, "hog"), CUBE_PAUSED, "disk");
	stage_killed(&s);
	stage_up(&s); /* with the settings as they were */
	expect(&s, find(&s, "hog"), CUBE_RUNNING, "");
	host_close(&s);
}

static void settings(void **state)
{
	struct stage *s = *state;

	assert_int_equal(s->d->disk_reserve, 1 << 30);
	assert_int_equal(s->d->disk_percent, 5);
	assert_int_equal(stage_root(s, "set disk_percent=91"), -EINVAL);
	assert_int_equal(stage_root(s, "set disk_reserve=much"), -EINVAL);
	assert_non_null(strstr(s->err.text, "disk_reserve=much"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(settings, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(writer_is_paused, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(others_are_left_alone, stage_setup, stage_teardown),
		cmocka_unit_test(over_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
