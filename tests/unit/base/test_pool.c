/* SPDX-License-Identifier: Apache-2.0 */
/* The pool and the cancel flag: concurrency, keys, order, the end; thread sanitizer food. */
#include "tests/unit/base/unit.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/cancel.h"
#include "backends/base/macros.h"
#include "backends/base/pool_priv.h"

/* ---- counting ---- */

struct counted {
	struct cube_work work;
	atomic_int *count;
};

static void count_run(struct cube_work *work)
{
	struct counted *c = cube_container_of(work, struct counted, work);

	atomic_fetch_add(c->count, 1);
	cube_free(c); /* it is ours when it runs */
}

static struct cube_work *counted_new(atomic_int *count, const void *key)
{
	struct counted *c = cube_calloc(1, sizeof(*c));

	c->work.run = count_run;
	c->work.key = key;
	c->count = count;
	return &c->work;
}

static void test_all_run(void **state)
{
	struct cube_pool *p = cube_pool_new(3);
	atomic_int count = 0;

	(void)state;
	for (int i = 0; i < 2000; i++)
		cube_pool_submit(p, counted_new(&count, i % 3 == 0 ? p : NULL));
	cube_pool_free(p); /* waits for all of them */
	assert_int_equal(count, 2000);
	cube_pool_free(NULL);
}

/* ---- works that wait for each other: they need so many threads ---- */

struct meeting {
	pthread_barrier_t barrier;
	struct guest {
		struct cube_work work;
		struct meeting *meeting;
	} guests[8];
};

static void guest_run(struct cube_work *work)
{
	(void)pthread_barrier_wait(&cube_container_of(work, struct guest, work)->meeting->barrier);
}

static void meet(struct cube_pool *p, struct meeting *m, unsigned count)
{
	assert_int_equal(pthread_barrier_init(&m->barrier, NULL, count + 1), 0);
	for (unsigned i = 0; i < count; i++) {
		struct guest *g = &m->guests[i];

		*g = (struct guest){.work = {.run = guest_run, .key = i % 2 ? g : NULL}, .meeting = m};
		cube_pool_submit(p, &g->work);
	}
	(void)pthread_barrier_wait(&m->barrier); /* hangs where fewer threads are started than are needed */
}

static void test_as_many_threads_as_needed(void **state)
{
	struct cube_pool *p = cube_pool_new(8);
	struct meeting m[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		meet(p, &m[i], i == 1 ? 3 : 8); /* with new threads, then with idle ones */
	cube_pool_free(p);
	for (int i = 0; i < 3; i++)
		(void)pthread_barrier_destroy(&m[i].barrier);
}

static unsigned threads_of_process(void)
{
	unsigned count = 0;
	DIR *dir = opendir("/proc/self/task");

	while (readdir(dir) != NULL)
		count++;
	(void)closedir(dir);
	return count;
}

/* Idle threads end, but for one, and their places are used again. */
static void test_idle_threads_end(void **state)
{
	unsigned before = threads_of_process();
	struct cube_pool *p = cube_pool_new_idle(8, 1);
	struct meeting m[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		meet(p, &m[i], 8);
		for (int k = 0; k < 10000 && threads_of_process() != before + 1; k++)
			(void)usleep(1000);
		assert_int_equal(threads_of_process(), before + 1);
	}
	cube_pool_free(p);
	for (int i = 0; i < 3; i++)
		(void)pthread_barrier_destroy(&m[i].barrier);
	assert_int_equal(threads_of_process(), before);
}

/* ---- keys ---- */

#define LANES    5
#define PER_LANE 400

struct lane {
	atomic_int inside;
	int next; /* guarded by the promise that is tested: thread sanitizer looks at it too */
	bool broken;
};

struct step {
	struct cube_work work;
	struct lane *lane;
	int number;
};

static void step_run(struct cube_work *work)
{
	struct step *s = cube_container_of(work, struct step, work);

	if (atomic_fetch_add(&s->lane->inside, 1) != 0 || s->lane->next != s->number)
		s->lane->broken = true;
	s->lane->next++;
	if (s->number % 50 == 0)
		(void)sched_yield();
	atomic_fetch_sub(&s->lane->inside, 1);
}

static void test_keys_keep_order(void **state)
{
	struct cube_pool *p = cube_pool_new(4);
	struct lane lanes[LANES] = {0};
	struct step *steps = cube_calloc(LANES * PER_LANE, sizeof(*steps));
	atomic_int count = 0;

	(void)state;
	for (int i = 0; i < LANES * PER_LANE; i++) {
		struct lane *lane = &lanes[i % LANES];

		steps[i] = (struct step){
			.work = {.run = step_run, .key = lane}, .lane = lane, .number = i / LANES};
		cube_pool_submit(p, &steps[i].work);
		if (i % 10 == 0)
			cube_pool_submit(p, counted_new(&count, NULL));
	}
	cube_pool_free(p);
	for (int i = 0; i < LANES; i++) {
		assert_false(lanes[i].broken);
		assert_int_equal(lanes[i].next, PER_LANE);
	}
	assert_int_equal(count, LANES * PER_LANE / 10);
	cube_free(steps);
}

/* ---- a busy key holds up nobody else ---- */

struct gate {
	struct cube_work work;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	bool entered, open;
};

static void gate_run(struct cube_work *work)
{
	struct gate *g = cube_container_of(work, struct gate, work);

	(void)pthread_mutex_lock(&g->lock);
	g->entered = true;
	(void)pthread_cond_broadcast(&g->moved);
	while (!g->open)
		(void)pthread_cond_wait(&g->moved, &g->lock);
	(void)pthread_mutex_unlock(&g->lock);
}

static void gate_submit(struct cube_pool *p, struct gate *g, const void *key)
{
	*g = (struct gate){.work = {.run = gate_run, .key = key}};
	(void)pthread_mutex_init(&g->lock, NULL);
	(void)pthread_cond_init(&g->moved, NULL);
	cube_pool_submit(p, &g->work);
	(void)pthread_mutex_lock(&g->lock);
	while (!g->entered)
		(void)pthread_cond_wait(&g->moved, &g->lock);
	(void)pthread_mutex_unlock(&g->lock);
}

static void gate_open(struct gate *g)
{
	(void)pthread_mutex_lock(&g->lock);
	g->open = true;
	(void)pthread_cond_broadcast(&g->moved);
	(void)pthread_mutex_unlock(&g->lock);
}

static void wait_for_count(atomic_int *count, int want)
{
	for (int i = 0; i < 10000 && atomic_load(count) != want; i++)
		(void)usleep(1000);
	assert_int_equal(atomic_load(count), want);
}

static void test_busy_key(void **state)
{
	struct cube_pool *p = cube_pool_new(2);
	atomic_int blocked = 0, others = 0;
	struct gate g;

	(void)state;
	gate_submit(p, &g, &g);
	for (int i = 0; i < 100; i++) {
		cube_pool_submit(p, counted_new(&blocked, &g));
		cube_pool_submit(p, counted_new(&others, NULL));
		cube_pool_submit(p, counted_new(&others, &others));
	}
	wait_for_count(&others, 200);
	assert_int_equal(atomic_load(&blocked), 0);
	gate_open(&g);
	wait_for_count(&blocked, 100);
	cube_pool_free(p);
}

/* A work that submits others, during the end of the pool too. */
struct parent {
	struct cube_work work;
	struct cube_pool *pool;
	atomic_int *count;
	int left;
};

static void parent_run(struct cube_work *work)
{
	struct parent *q = cube_container_of(work, struct parent, work);

	cube_pool_submit(q->pool, counted_new(q->count, NULL));
	cube_pool_submit(q->pool, counted_new(q->count, q));
	if (--q->left > 0)
		cube_pool_submit(q->pool, work);
}

static void test_submit_in_work(void **state)
{
	atomic_int count = 0;

	(void)state;
	for (int i = 0; i < 50; i++) {
		struct cube_pool *p = cube_pool_new(3);
		struct parent q = {
			.work = {.run = parent_run, .key = &q}, .pool = p, .count = &count, .left = 20};

		cube_pool_submit(p, &q.work);
		cube_pool_free(p);
	}
	assert_int_equal(count, 50 * 20 * 2);
}

static void test_new_fails(void **state)
{
	(void)state;
	cube_alloc_fail_at(1);
	assert_null(cube_pool_new(2));
	cube_alloc_fail_at(1);
	assert_null(cube_cancel_new());
}

static void test_zero_is_one(void **state)
{
	struct cube_pool *p = cube_pool_new(0);
	atomic_int count = 0;

	(void)state;
	cube_pool_submit(p, counted_new(&count, NULL));
	cube_pool_free(p);
	assert_int_equal(count, 1);
}

/* ---- cancel ---- */

static void test_cancel(void **state)
{
	struct cube_cancel *c = cube_cancel_new();
	struct pollfd poll_it = {.fd = cube_cancel_fd(c), .events = POLLIN};

	(void)state;
	assert_false(cube_cancel_fired(c));
	assert_int_equal(poll(&poll_it, 1, 0), 0);
	assert_ptr_equal(cube_cancel_ref(c), c);
	errno = EXDEV;
	cube_cancel_fire(c);
	cube_cancel_fire(c);
	assert_int_equal(errno, EXDEV);
	cube_cancel_unref(c);
	assert_true(cube_cancel_fired(c));
	assert_int_equal(poll(&poll_it, 1, 0), 1);
	assert_int_equal(poll(&poll_it, 1, 0), 1); /* it stays so */
	cube_cancel_unref(c);
	/* none */
	cube_cancel_unref(NULL);
	cube_cancel_fire(NULL);
	assert_null(cube_cancel_ref(NULL));
	assert_false(cube_cancel_fired(NULL));
	assert_int_equal(cube_cancel_fd(NULL), -1);
}

static void *wait_and_unref(void *arg)
{
	struct cube_cancel *c = arg;
	struct pollfd poll_it = {.fd = cube_cancel_fd(c), .events = POLLIN};

	(void)poll(&poll_it, 1, -1);
	arg = cube_cancel_fired(c) ? NULL : arg;
	cube_cancel_unref(c);
	return arg;
}

static void *fire_and_unref(void *arg)
{
	cube_cancel_fire(arg);
	cube_cancel_unref(arg);
	return NULL;
}

static void test_cancel_in_any_order(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		struct cube_cancel *c = cube_cancel_new();
		pthread_t waits, fires;
		void *failed;

		(void)cube_cancel_ref(c);
		assert_int_equal(pthread_create(&waits, NULL, wait_and_unref, c), 0);
		assert_int_equal(pthread_create(&fires, NULL, fire_and_unref, c), 0);
		assert_int_equal(pthread_join(waits, &failed), 0);
		assert_int_equal(pthread_join(fires, NULL), 0);
		assert_null(failed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_run),          cmocka_unit_test(test_as_many_threads_as_needed),
		cmocka_unit_test(test_idle_threads_end), cmocka_unit_test(test_keys_keep_order),
		cmocka_unit_test(test_busy_key),         cmocka_unit_test(test_submit_in_work),
		cmocka_unit_test(test_new_fails),        cmocka_unit_test(test_zero_is_one),
		cmocka_unit_test(test_cancel),           cmocka_unit_test(test_cancel_in_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
