/* SPDX-License-Identifier: Apache-2.0 */
/* Thousands of jobs in one sandbox: what they cost stays bounded, and all of it is there again after the daemon's
 * end. */
#include "tests/unit/ctl/host.h"

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"

#define NAMED    1000u
#define NUMBERED 4000u
#define KEPT     128u

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
size_t __sanitizer_get_current_allocated_bytes(void);

static size_t heap(void)
{
	return __sanitizer_get_current_allocated_bytes();
}
#else
static size_t heap(void)
{
	return mallinfo2().uordblks;
}
#endif

static bool all_settled(void *ctx)
{
	struct cube_cube *c = ctx;

	cube_list_each (i, &c->jobs) {
		struct cube_job *j = cube_list_entry(i, struct cube_job, link);

		if (j->state != CUBE_JOB_ENDED || cube_job_own(j)->unsettled)
			return false;
	}
	return cube_own(c)->ended_numbered <= c->domain->jobs_kept;
}

static void settle(struct stage *s, struct cube_cube *c)
{
	assert_true(stage_until(s, all_settled, c));
}

static void run_named(struct stage *s, struct cube_cube *c)
{
	for (unsigned i = 0; i < NAMED; i++) {
		char name[32], text[48];

		(void)snprintf(name, sizeof(name), "job-%u", i);
		(void)snprintf(text, sizeof(text), "echo named %u", i);
		struct cube_job *j = stage_start(s, c, name, text);

		assert_int_equal(stage_end(s, j), 0);
		stage_unref(s, j);
	}
}

static void run_numbered(struct stage *s, struct cube_cube *c, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(stage_exec(s, c, NULL, "echo a line", NULL), 0);
	settle(s, c);
}

/* Every job by the directory's cursor: in order, none twice, each also found by its number and name. */
static unsigned walk(struct stage *s, struct cube_cube *c)
{
	unsigned n = 0;
	uint64_t at = 0;

	cube_domain_enter(s->d);
	for (struct cube_job *j = cube_job_next(c, at); j != NULL; j = cube_job_next(c, at)) {
		assert_true(j->seq > at);
		assert_ptr_equal(cube_job_by_number(c, j->number), j);
		assert_ptr_equal(cube_job_find(c, j->name), j);
		at = j->seq;
		n++;
	}
	assert_null(cube_job_next(c, UINT64_MAX));
	assert_null(cube_job_next_live(c, 0));
	cube_domain_leave(s->d);
	return n;
}

static void output_is(struct stage *s, struct cube_cube *c, const char *name, const char *want)
{
	cube_domain_enter(s->d);
	struct cube_job *j = cube_job_find(c, name);

	assert_non_null(j);
	cube_job_ref(j);
	cube_domain_leave(s->d);
	char *out = stage_output(s, j, CUBE_STREAM_STDOUT);

	assert_string_equal(out, want);
	cube_free(out);
	stage_unref(s, j);
}

/* What is there: all that have a name, of the others the last ones. */
static void all_there(struct stage *s, struct cube_cube *c, uint64_t last)
{
	char name[32];

	assert_int_equal(walk(s, c), NAMED + KEPT);
	for (unsigned i = 0; i < NAMED; i += 111) {
		char want[32];

		(void)snprintf(name, sizeof(name), "job-%u", i);
		(void)snprintf(want, sizeof(want), "named %u\n", i);
		output_is(s, c, name, want);
	}
	(void)snprintf(name, sizeof(name), "%llu", (unsigned long long)last - KEPT + 1);
	output_is(s, c, name, "a line\n");
	cube_domain_enter(s->d);
	assert_int_equal(c->next_job, last + 1);
	assert_null(cube_job_by_number(c, last - KEPT));
	cube_domain_leave(s->d);
}

static unsigned files(struct stage *s, struct cube_cube *c)
{
	char path[128];
	unsigned n = 0;

	(void)snprintf(path, sizeof(path), "%s/cubes/%s/jobs", s->dir, c->uid);
	DIR *dir = opendir(path);

	assert_non_null(dir);
	for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir))
		n += e->d_name[0] != '.';
	(void)closedir(dir);
	return n;
}

static struct cube_cube *find(struct stage *s)
{
	cube_domain_enter(s->d);
	struct cube_cube *c = cube_domain_find(s->d, "dev");
	cube_domain_leave(s->d);
	assert_non_null(c);
	assert_true(stage_phase(s, c, CUBE_RUNNING));
	return c;
}

static void thousands(void **state)
{
	struct stage s;
	size_t before;

	(void)state;
	host_open(&s);
	struct cube_cube *c = stage_make(&s, "dev");

	run_named(&s, c);
	run_numbered(&s, c, NUMBERED);
	all_there(&s, c, NAMED + NUMBERED);
	before = heap();
	run_numbered(&s, c, 2000);
	assert_true(heap() < before + (256u << 10));
	/* An output each, an index beside those of two pipes; a few that are made ahead. */
	assert_true(files(&s, c) <= 2 * NAMED + KEPT + 16);
	stage_killed(&s);
	stage_up(&s);
	c = find(&s);
	all_there(&s, c, NAMED + NUMBERED + 2000);
	/* It goes on: what ends now pushes out the oldest. */
	run_numbered(&s, c, 10);
	all_there(&s, c, NAMED + NUMBERED + 2010);
	host_close(&s);
}

/* The last ones that ended are kept, not those that were made last. */
static void in_the_order_of_their_ends(void **state)
{
	struct stage stage, *s = &stage;
	struct cube_job *slow;

	(void)state;
	host_open(s);
	struct cube_cube *c = stage_make(s, "dev");

	assert_int_equal(stage_root(s, "set jobs_kept=3"), 0);
	cube_domain_enter(s->d);
	assert_int_equal(cube_job_create(c, NULL, &slow, &s->err), 0);
	assert_int_equal(cube_job_submit(slow, false, "await go; echo slow", 19, &s->err), 0);
	cube_domain_leave(s->d);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(stage_exec(s, c, NULL, "true", NULL), 0);
	stage_go(s, c, "go");
	assert_int_equal(stage_end(s, slow), 0);
	settle(s, c);
	cube_domain_enter(s->d);
	assert_ptr_equal(cube_job_by_number(c, 1), slow);
	assert_null(cube_job_by_number(c, 4));
	assert_non_null(cube_job_by_number(c, 6));
	assert_non_null(cube_job_by_number(c, 7));
	cube_domain_leave(s->d);
	stage_unref(s, slow);
	stage_down(s);
	stage_up(s);
	c = find(s);
	assert_int_equal(stage_root(s, "set jobs_kept=2"), 0);
	assert_int_equal(stage_exec(s, c, NULL, "true", NULL), 0);
	settle(s, c);
	cube_domain_enter(s->d);
	assert_null(cube_job_by_number(c, 6)); /* ended before it, was made behind it */
	assert_non_null(cube_job_by_number(c, 1));
	cube_domain_leave(s->d);
	host_close(s);
}

/* Any of them goes while the others stay, from all places. */
static void removed_anywhere(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	char name[16];

	cube_domain_enter(s->d);
	for (unsigned i = 0; i < 300; i++) {
		struct cube_job *j;

		(void)snprintf(name, sizeof(name), "j%u", i);
		assert_int_equal(cube_job_create(c, name, &j, &s->err), 0);
		cube_job_unref(j);
	}
	for (unsigned i = 0, at = 0; i < 299; i++, at = (at + 7) % 300) {
		(void)snprintf(name, sizeof(name), "j%u", at);
		assert_int_equal(cube_job_remove(cube_job_find(c, name), &s->err), 0);
		assert_null(cube_job_by_number(c, at + 1));
		assert_int_equal(cube_own(c)->index.n, 299 - i);
	}
	assert_non_null(cube_job_next(c, 0));
	assert_ptr_equal(cube_job_next_live(c, 0), cube_job_next(c, 0));
	assert_ptr_equal(c->last_job, cube_job_next(c, 0));
	assert_null(cube_job_next(c, cube_job_next(c, 0)->seq));
	cube_domain_leave(s->d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(thousands),
		cmocka_unit_test(in_the_order_of_their_ends),
		cmocka_unit_test_setup_teardown(removed_anywhere, stage_setup, stage_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
