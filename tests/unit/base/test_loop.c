/* SPDX-License-Identifier: Apache-2.0 */
/* The loop: posts from threads, descriptors, timers, freeing in callbacks. */
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/loop.h"
#include "backends/base/macros.h"

/* ---- posts ---- */

#define POSTERS 4
#define POSTS   5000

struct poster;

struct numbered {
	struct cube_post post;
	struct poster *poster;
	int number;
};

struct poster {
	struct cube_loop *loop;
	pthread_t thread;
	int seen; /* by the loop's thread only */
	int *left;
	struct numbered posts[POSTS];
};

static void number_comes(struct cube_post *post)
{
	struct numbered *n = cube_container_of(post, struct numbered, post);

	assert_int_equal(n->number, n->poster->seen++); /* in the order of posting */
	post->next = post;                              /* it is ours again */
	if (--*n->poster->left == 0)
		cube_loop_stop(n->poster->loop);
}

static void *post_all(void *arg)
{
	struct poster *p = arg;

	for (int i = 0; i < POSTS; i++) {
		p->posts[i] = (struct numbered){.post.fn = number_comes, .poster = p, .number = i};
		cube_loop_post(p->loop, &p->posts[i].post);
	}
	return NULL;
}

static void test_posts_from_threads(void **state)
{
	struct cube_loop *l = cube_loop_new();
	struct poster *posters = cube_calloc(POSTERS, sizeof(*posters));
	int left = POSTERS * POSTS;

	(void)state;
	for (int i = 0; i < POSTERS; i++) {
		posters[i].loop = l;
		posters[i].left = &left;
		assert_int_equal(pthread_create(&posters[i].thread, NULL, post_all, &posters[i]), 0);
	}
	cube_loop_run(l);
	for (int i = 0; i < POSTERS; i++) {
		assert_int_equal(pthread_join(posters[i].thread, NULL), 0);
		assert_int_equal(posters[i].seen, POSTS);
	}
	assert_int_equal(left, 0);
	cube_loop_free(l);
	cube_free(posters);
}

struct again {
	struct cube_post post;
	struct cube_loop *loop;
	int count, limit;
};

static void post_again(struct cube_post *post)
{
	struct again *a = cube_container_of(post, struct again, post);

	if (++a->count < a->limit)
		cube_loop_post(a->loop, post);
	else
		cube_loop_stop(a->loop);
}

static void test_post_in_post(void **state)
{
	struct cube_loop *l = cube_loop_new();
	struct again a = {.post.fn = post_again, .loop = l, .limit = 100};

	(void)state;
	cube_loop_post(l, &a.post);
	cube_loop_run(l);
	assert_int_equal(a.count, 100);
	cube_loop_free(l);
	cube_loop_free(NULL);
}

/* What is posted and never run is run by free, with what that posts. */
static void test_free_runs_posts(void **state)
{
	struct cube_loop *l = cube_loop_new();
	struct again a = {.post.fn = post_again, .loop = l, .limit = 3};

	(void)state;
	cube_loop_post(l, &a.post);
	cube_loop_free(l);
	assert_int_equal(a.count, 3);
}

static void test_stop(void **state)
{
	struct cube_loop *l = cube_loop_new();
	struct again a = {.post.fn = post_again, .loop = l, .limit = 1};

	(void)state;
	cube_loop_stop(l); /* before: the next run ends at once */
	cube_loop_run(l);
	cube_loop_post(l, &a.post); /* and the one after that does not */
	cube_loop_run(l);
	assert_int_equal(a.count, 1);
	cube_loop_free(l);
}

static void count_post(struct cube_post *post)
{
	cube_container_of(post, struct again, post)->count++;
}

static void *post_and_stop(void *arg)
{
	struct again *a = arg;

	cube_loop_post(a->loop, &a->post);
	cube_loop_stop(a->loop);
	return NULL;
}

/* A post before a stop, of one thread, is run before the run returns. */
static void test_post_before_stop(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++) {
		struct cube_loop *l = cube_loop_new();
		struct again a = {.post.fn = count_post, .loop = l};
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, post_and_stop, &a), 0);
		(void)sched_yield();
		cube_loop_run(l);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(a.count, 1);
		cube_loop_free(l);
	}
}

/* ---- descriptors ---- */

struct watched {
	struct cube_loop *loop;
	struct cube_watch *watch;
	int fd;
	unsigned events;
	int calls, stop_at;
	void (*each)(struct watched *w);
};

static void watched_event(void *ctx, unsigned events)
{
	struct watched *w = ctx;

	w->events = events;
	w->calls++;
	if (w->each != NULL)
		w->each(w);
	if (w->calls == w->stop_at)
		cube_loop_stop(w->loop);
}

static void watched_init(struct watched *w, int pair[2], unsigned events, int stop_at)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	*w = (struct watched){.loop = cube_loop_new(), .fd = pair[0], .stop_at = stop_at};
	w->watch = cube_watch_new(w->loop, pair[0], events, watched_event, w);
	assert_non_null(w->watch);
}

static void watched_done(struct watched *w, const int pair[2])
{
	cube_watch_free(w->watch);
	cube_loop_free(w->loop);
	(void)close(pair[0]);
	if (pair[1] >= 0)
		(void)close(pair[1]);
}

/* A stop after @ms, for what must not come. */
static void run_for(struct cube_loop *l, uint64_t ms);

static void test_level_triggered(void **state)
{
	struct watched w;
	int pair[2];

	(void)state;
	watched_init(&w, pair, CUBE_WATCH_IN, 3);
	assert_int_equal(write(pair[1], "x", 1), 1);
	cube_loop_run(w.loop); /* not read: it comes again and again */
	assert_int_equal(w.calls, 3);
	assert_int_equal(w.events, CUBE_WATCH_IN);
	watched_done(&w, pair);
}

static void test_watch_set(void **state)
{
	struct watched w;
	int pair[2];

	(void)state;
	watched_init(&w, pair, CUBE_WATCH_IN, 1);
	run_for(w.loop, 20);
	assert_int_equal(w.calls, 0);
	cube_watch_set(w.watch, CUBE_WATCH_IN | CUBE_WATCH_OUT);
	cube_loop_run(w.loop);
	assert_int_equal(w.calls, 1);
	assert_int_equal(w.events, CUBE_WATCH_OUT);
	assert_int_equal(write(pair[1], "x", 1), 1);
	w.calls = 0;
	cube_loop_run(w.loop);
	assert_int_equal(w.events, CUBE_WATCH_IN | CUBE_WATCH_OUT);
	cube_watch_set(w.watch, 0);
	w.calls = 0;
	run_for(w.loop, 20);
	assert_int_equal(w.calls, 0);
	watched_done(&w, pair);
}

static void test_hang_up(void **state)
{
	struct watched w;
	int pair[2];

	(void)state;
	watched_init(&w, pair, CUBE_WATCH_IN | CUBE_WATCH_OUT, 2);
	(void)close(cube_steal_fd(&pair[1]));
	cube_loop_run(w.loop);
	assert_int_equal(w.calls, 2);
	assert_int_equal(w.events, CUBE_WATCH_IN | CUBE_WATCH_OUT);
	watched_done(&w, pair);
}

/* The read end of a pipe is gone: an error condition, which libuv tells only once by itself. */
static void test_error_stays(void **state)
{
	struct watched w = {.loop = cube_loop_new(), .stop_at = 3};
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	(void)close(fds[0]);
	w.watch = cube_watch_new(w.loop, fds[1], CUBE_WATCH_OUT, watched_event, &w);
	cube_loop_run(w.loop);
	assert_int_equal(w.calls, 3);
	assert_int_equal(w.events, CUBE_WATCH_OUT);
	cube_watch_free(w.watch);
	cube_loop_free(w.loop);
	(void)close(fds[1]);
}

static void free_watch(struct watched *w)
{
	cube_watch_free(w->watch);
	w->watch = NULL;
	cube_loop_stop(w->loop);
}

static void test_free_in_callback(void **state)
{
	struct watched w;
	int pair[2];

	(void)state;
	watched_init(&w, pair, CUBE_WATCH_IN, 0);
	w.each = free_watch;
	assert_int_equal(write(pair[1], "x", 1), 1);
	cube_loop_run(w.loop);
	run_for(w.loop, 20);
	assert_int_equal(w.calls, 1);
	/* the descriptor can be watched again */
	w.watch = cube_watch_new(w.loop, pair[0], CUBE_WATCH_IN, watched_event, &w);
	w.each = NULL;
	w.stop_at = 2;
	cube_loop_run(w.loop);
	assert_int_equal(w.calls, 2);
	watched_done(&w, pair);
}

/* Two that are ready in the same round: the first to be called frees the other. */
struct rivals {
	struct cube_loop *loop;
	struct rival {
		struct rivals *all;
		struct cube_watch *watch;
	} r[2];
	int calls;
};

static void rival_event(void *ctx, unsigned events)
{
	struct rival *self = ctx, *other = self == &self->all->r[0] ? &self->all->r[1] : &self->all->r[0];

	(void)events;
	self->all->calls++;
	cube_watch_free(other->watch);
	cube_watch_free(self->watch);
	self->watch = other->watch = NULL;
	cube_loop_stop(self->all->loop);
}

static void test_free_other(void **state)
{
	struct rivals all = {.loop = cube_loop_new()};
	int pairs[2][2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]), 0);
		assert_int_equal(write(pairs[i][1], "x", 1), 1);
		all.r[i].all = &all;
		all.r[i].watch = cube_watch_new(all.loop, pairs[i][0], CUBE_WATCH_IN, rival_event, &all.r[i]);
	}
	cube_loop_run(all.loop);
	run_for(all.loop, 20);
	assert_int_equal(all.calls, 1);
	cube_loop_free(all.loop);
	for (int i = 0; i < 2; i++) {
		(void)close(pairs[i][0]);
		(void)close(pairs[i][1]);
	}
}

static void test_not_watchable(void **state)
{
	struct cube_loop *l = cube_loop_new();
	cube_auto_fd file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_null(
		cube_watch_new(l, file, CUBE_WATCH_IN, watched_event, NULL)); /* epoll refuses plain files */
	cube_watch_free(NULL);
	cube_loop_free(l);
}

/* ---- timers ---- */

static void timer_stops(void *ctx)
{
	cube_loop_stop(ctx);
}

static void run_for(struct cube_loop *l, uint64_t ms)
{
	struct cube_timer *t = cube_timer_new(l, timer_stops, l);

	cube_timer_start(t, ms);
	cube_loop_run(l);
	cube_timer_free(t);
}

struct ticks {
	int count;
	struct cube_timer *timer;
};

static void tick(void *ctx)
{
	((struct ticks *)ctx)->count++;
}

static void tick_free(void *ctx)
{
	struct ticks *t = ctx;

	t->count++;
	cube_timer_free(t->timer);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void test_timers(void **state)
{
	struct cube_loop *l = cube_loop_new();
	struct ticks once = {0}, stopped = {0}, replaced = {0}, freed = {0}, never = {0};
	uint64_t begin = now_ms();

	(void)state;
	once.timer = cube_timer_new(l, tick, &once);
	stopped.timer = cube_timer_new(l, tick, &stopped);
	replaced.timer = cube_timer_new(l, tick, &replaced);
	freed.timer = cube_timer_new(l, tick_free, &freed);
	never.timer = cube_timer_new(l, tick, &never);
	cube_timer_start(once.timer, 0);
	cube_timer_start(stopped.timer, 5);
	cube_timer_stop(stopped.timer);
	cube_timer_start(replaced.timer, 1);
	cube_timer_start(replaced.timer, 100000);
	cube_timer_start(freed.timer, 1);
	run_for(l, 50);
	assert_true(now_ms() - begin >= 50);
	assert_int_equal(once.count, 1);
	assert_int_equal(stopped.count, 0);
	assert_int_equal(replaced.count, 0);
	assert_int_equal(freed.count, 1);
	assert_int_equal(never.count, 0);
	cube_timer_start(once.timer, 1); /* again */
	run_for(l, 20);
	assert_int_equal(once.count, 2);
	cube_timer_free(once.timer);
	cube_timer_free(replaced.timer);
	cube_timer_free(NULL);
	cube_loop_free(l); /* and with it what is left */
}

static void test_out_of_memory(void **state)
{
	struct cube_loop *l;

	(void)state;
	cube_alloc_fail_at(1);
	assert_null(cube_loop_new());
	l = cube_loop_new();
	cube_alloc_fail_at(1);
	assert_null(cube_timer_new(l, tick, NULL));
	cube_alloc_fail_at(1);
	assert_null(cube_watch_new(l, 0, CUBE_WATCH_IN, watched_event, NULL));
	cube_loop_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_posts_from_threads),
		cmocka_unit_test(test_post_in_post),
		cmocka_unit_test(test_free_runs_posts),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_post_before_stop),
		cmocka_unit_test(test_level_triggered),
		cmocka_unit_test(test_watch_set),
		cmocka_unit_test(test_hang_up),
		cmocka_unit_test(test_error_stays),
		cmocka_unit_test(test_free_in_callback),
		cmocka_unit_test(test_free_other),
		cmocka_unit_test(test_not_watchable),
		cmocka_unit_test(test_timers),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
