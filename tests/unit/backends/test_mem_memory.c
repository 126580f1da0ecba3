/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation fails in its turn: what was promised holds, nothing is left behind, nothing leaks
 * (the address sanitizer looks). */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/registry.h"
#include "tests/unit/backends/stage.h"

#define TURNS 120 /* more than the scenario has allocations */
#define JOB   5

/* A listener that allocates nothing. */
struct counts {
	atomic_int synced, ended, down;
	atomic_int code;
};

static void on_up(void *ctx, uint64_t boot)
{
	(void)ctx;
	assert_true(boot > 0);
}

static void on_synced(void *ctx)
{
	struct counts *c = ctx;

	atomic_fetch_add(&c->synced, 1);
}

static void on_started(void *ctx, uint64_t job, int pid)
{
	(void)ctx;
	(void)job;
	(void)pid;
}

static void on_output(void *ctx, uint64_t job, uint64_t total, uint64_t err_total)
{
	(void)ctx;
	(void)job;
	assert_true(err_total <= total);
}

static void on_input(void *ctx, uint64_t job, uint64_t got)
{
	(void)ctx;
	(void)job;
	(void)got;
}

static void on_session(void *ctx, const struct cube_link_session *s)
{
	(void)ctx;
	assert_non_null(s->cwd);
}

static void on_ended(void *ctx, uint64_t job, const struct cube_end_record *end, const struct cube_err *err)
{
	struct counts *c = ctx;

	(void)err;
	assert_int_equal(job, JOB);
	atomic_store(&c->code, end->code);
	atomic_fetch_add(&c->ended, 1);
}

static void on_left(void *ctx, uint64_t n, bool still)
{
	(void)ctx, (void)n, (void)still;
}

static void on_down(void *ctx, const struct cube_err *err)
{
	struct counts *c = ctx;

	(void)err;
	atomic_fetch_add(&c->down, 1);
}

static const struct cube_link_handler handler = {
	.up = on_up,
	.synced = on_synced,
	.started = on_started,
	.output = on_output,
	.input = on_input,
	.session = on_session,
	.ended = on_ended,
	.left = on_left,
	.down = on_down,
};

/* Until one of both has happened more than so often. */
static void wait_more(atomic_int *a, int seen_a, atomic_int *b, int seen_b)
{
	uint64_t until = cube_clock_mono() + UINT64_C(20000000000);

	while (atomic_load(a) == seen_a && atomic_load(b) == seen_b) {
		if (cube_clock_mono() > until)
			fail_msg("nothing happens");
		(void)usleep(200);
	}
}

static struct cube_link *connect(struct stage *s, const char *id, struct counts *c)
{
	struct cube_link *l = NULL;
	struct cube_err err;
	int r;

	do {
		int synced = atomic_load(&c->synced), down = atomic_load(&c->down);

		r = cube_backend_link(s->b, id, &handler, c, NULL, &l, &err);
		if (r < 0) {
			assert_int_equal(r, -ENOMEM);
			continue;
		}
		wait_more(&c->synced, synced, &c->down, down);
		if (atomic_load(&c->synced) ==
		    synced) { /* broken before it was complete: once, the failure is used up */
			cube_link_close(l);
			r = -ENOMEM;
		}
	} while (r < 0);
	return l;
}

static int start(struct cube_link *l, int out, int order)
{
	static const char env[] = "A=1\0B=2";
	const struct cube_link_start job = {
		.job = JOB,
		.session = 2,
		.text = "echo $A\nexport C='x y'\ncd /tmp\nerr e\nbytes 200\nexit 9",
		.text_len = strlen(job.text),
		.env = env,
		.env_len = sizeof(env),
		.out_fd = out,
		.order_fd = order,
		.limit = 1 << 20,
	};

	return cube_link_start(l, &job, NULL);
}

/* A command from start to end, over as many connections as it takes. */
static void run(struct stage *s, const char *id, int out, int order)
{
	static struct counts c; /* a handler function may still run when the link is closed from here */
	struct cube_link *l;
	bool started = false;

	c = (struct counts){0};
	l = connect(s, id, &c);
	while (atomic_load(&c.ended) == 0) {
		int down = atomic_load(&c.down);
		int r = started ? 0 : start(l, out, order);

		/* Out of memory: refused and nothing has happened; or it broke, and the job is there. */
		started = started || r == 0 || r == -EEXIST;
		if (r == 0)
			wait_more(&c.ended, 0, &c.down, down);
		if (atomic_load(&c.down) == down)
			continue;
		cube_link_close(l);
		l = connect(s, id, &c);
	}
	if (atomic_load(&c.code) != 9 && atomic_load(&c.code) != 1 && atomic_load(&c.code) != 2)
		fail_msg("ended with %d", atomic_load(&c.code));
	cube_link_close(l);
}

static void scenario(struct stage *s, unsigned long nth)
{
	char uid[17];
	struct cube_spec spec = stage_spec(uid);
	char *id = NULL;
	int out = memfd_create("out", MFD_CLOEXEC), order = memfd_create("order", MFD_CLOEXEC);
	int r;

	cube_alloc_fail_at(nth);
	r = cube_backend_create(s->b, &spec, NULL, &id, NULL);
	if (r < 0) {
		assert_int_equal(r, -ENOMEM);
		assert_null(id);
		assert_int_equal(cube_backend_create(s->b, &spec, NULL, &id, NULL), 0);
	}
	run(s, id, out, order);
	assert_int_equal(cube_backend_stop(s->b, id, 0, NULL, NULL), 0);
	while (cube_backend_destroy(s->b, id, NULL) == -ENOMEM)
		;
	cube_alloc_fail_at(0);
	assert_false(stage_listed(s, id));
	cube_free(id);
	(void)close(out);
	(void)close(order);
}

static void each_in_its_turn(void **state)
{
	struct stage s;

	(void)state;
	assert_int_equal(stage_open(&s, cube_backend_find("mem"), NULL, NULL), 0);
	for (unsigned long n = 1; n <= TURNS; n++)
		scenario(&s, n);
	stage_close(&s);
}

/* Opening either works or says so, and leaves nothing behind. */
static void opening(void **state)
{
	struct stage s;
	unsigned failures = 0;

	(void)state;
	assert_int_equal(stage_open(&s, cube_backend_find("mem"), "fail = create:EIO:9\ncaps = -tty", NULL),
			 0);
	for (unsigned long n = 1; n <= 40; n++) {
		struct cube_backend *b = NULL;
		int r;

		cube_alloc_fail_at(n);
		r = cube_backend_open(cube_backend_find("mem"), &s.env, &b, NULL);
		cube_alloc_fail_at(0);
		assert_true(r == 0 || r == -ENOMEM);
		failures += r < 0 ? 1 : 0;
		cube_backend_close(b);
	}
	assert_true(failures > 3 && failures < 40);
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_in_its_turn),
		cmocka_unit_test(opening),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
