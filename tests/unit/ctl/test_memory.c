/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation fails once, in the middle of a life: whoever asked gets an answer, nothing leaks, the rest
 * goes on. */
#include "tests/unit/ctl/host.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"

static struct cube_cube *find(struct stage *s, const char *name)
{
	cube_domain_enter(s->d);
	struct cube_cube *c = cube_domain_find(s->d, name);
	cube_domain_leave(s->d);
	return c;
}

/* Some of these are refused, and then the ones behind them find nothing to work on; all of that is an answer.
 */
static void a_life(struct stage *s)
{
	struct cube_session *in = NULL;
	struct cube_job *j = NULL;
	struct cube_cube *c;

	(void)stage_root(s, "create dev label.a=b env.X=1");
	c = find(s, "dev");
	if (c == NULL)
		return;
	(void)stage_exec(s, c, NULL, "cd /tmp; export Y=2; echo hi", NULL);
	cube_domain_enter(s->d);
	(void)cube_cube_set_env(c, "A=1\0B=2", 8, &s->err);
	if (cube_session_create(c, "side", &in, &s->err) == 0)
		(void)cube_session_set_cwd(in, "/tmp", &s->err);
	if (cube_job_create(c, "job", &j, &s->err) < 0)
		j = NULL;
	if (j != NULL && cube_job_submit(j, false, "err x; exit 2", 13, &s->err) < 0) {
		cube_job_unref(j);
		j = NULL;
	}
	cube_domain_leave(s->d);
	if (j != NULL) {
		(void)stage_end(s, j);
		stage_unref(s, j);
	}
	(void)stage_exec(s, c, NULL, "true", NULL);
	(void)stage_cube(s, c, "pause");
	(void)stage_cube(s, c, "restart");
	(void)stage_root(s, "rename dev prod");
}

static void once(unsigned long nth)
{
	struct stage s;

	host_open(&s);
	cube_alloc_fail_at(nth);
	a_life(&s);
	cube_alloc_fail_at(0);
	/* Now there is memory again: what there is works. */
	for (unsigned i = 0; i < 2; i++) {
		const char *name = i == 0 ? "dev" : "prod";
		struct cube_cube *c = find(&s, name);
		char line[32];

		if (c == NULL)
			continue;
		assert_true(stage_phase(&s, c, CUBE_RUNNING) || c->phase == CUBE_ERROR ||
			    c->phase == CUBE_STOPPED);
		if (c->phase == CUBE_RUNNING)
			assert_int_equal(stage_exec(&s, c, NULL, "true", NULL), 0);
		(void)snprintf(line, sizeof(line), "destroy %s", name);
		(void)stage_root(&s, line);
	}
	for (unsigned i = 0; i < 5000 && host_count() > 0; i++)
		(void)usleep(1000);
	assert_int_equal(host_count(), 0);
	host_close(&s);
}

static void every_allocation(void **state)
{
	(void)state;
	/* Threads take turns, so the n-th is not always the same one; close together at the start, where it
	 * is. */
	for (unsigned long n = 1; n < 1500; n += 1 + n / 25)
		once(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
