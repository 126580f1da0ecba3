/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop over libuv: the only file that includes it. */
#include "backends/base/loop.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"

/* Handles are the first member of what embeds them: libuv gives the handle back when it is closed, and that
 * is then the address to free. */
struct cube_watch {
	union {
		uv_handle_t handle;
		uv_poll_t poll;
	} u;
	void (*fn)(void *ctx, unsigned events);
	void *ctx;
	unsigned events;
};

struct cube_timer {
	union {
		uv_handle_t handle;
		uv_timer_t timer;
	} u;
	void (*fn)(void *ctx);
	void *ctx;
};

struct cube_loop {
	uv_loop_t uv;
	union {
		uv_handle_t handle;
		uv_async_t async;
	} wake;
	struct cube_post *_Atomic posted; /* newest first */
	atomic_bool stop;
};

/* Takes all that was posted and calls it, oldest first. What these calls post comes in the next round, so
 * that a call which posts itself again does not keep descriptors from being looked at. */
static bool loop_run_posted(struct cube_loop *l)
{
	struct cube_post *newest = atomic_exchange_explicit(&l->posted, NULL, memory_order_acquire);
	struct cube_post *oldest = NULL;

	while (newest != NULL) {
		struct cube_post *next = newest->next;

		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	if (oldest == NULL)
		return false;
	while (oldest != NULL) {
		struct cube_post *next =
			oldest->next; /* before the call: the element is the caller's in it */

		oldest->fn(oldest);
		oldest = next;
	}
	return true;
}

/* Called behind every callback, so that a stop out of one counts from there. */
static void loop_check_stop(uv_loop_t *uv)
{
	const struct cube_loop *l = cube_container_of(uv, struct cube_loop, uv);

	if (atomic_load(&l->stop))
		uv_stop(uv);
}

static void loop_woken(uv_async_t *async)
{
	(void)loop_run_posted(cube_container_of(async, struct cube_loop, wake.async));
	loop_check_stop(async->loop);
}

struct cube_loop *cube_loop_new(void)
{
	struct cube_loop *l = cube_calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	if (uv_loop_init(&l->uv) < 0) {
		cube_free(l);
		return NULL;
	}
	if (uv_async_init(&l->uv, &l->wake.async, loop_woken) < 0) {
		(void)uv_loop_close(&l->uv);
		cube_free(l);
		return NULL;
	}
	return l;
}

void cube_loop_run(struct cube_loop *l)
{
	while (!atomic_load(&l->stop))
		(void)uv_run(&l->uv, UV_RUN_DEFAULT);
	(void)loop_run_posted(l); /* what came before the stop but after the last look */
	atomic_store(&l->stop, false);
}

void cube_loop_stop(struct cube_loop *l)
{
	atomic_store(&l->stop, true);
	(void)uv_async_send(&l->wake.async); /* fails only for a handle of another kind */
}

void cube_loop_post(struct cube_loop *l, struct cube_post *post)
{
	struct cube_post *head = atomic_load_explicit(&l->posted, memory_order_relaxed);

	do
		post->next = head;
	while (!atomic_compare_exchange_weak_explicit(&l->posted, &head, post, memory_order_release,
						      memory_order_relaxed));
	/* Behind another element the loop was woken already and has not taken the list yet. */
	if (head == NULL)
		(void)uv_async_send(&l->wake.async);
}

static void loop_handle_closed(uv_handle_t *handle)
{
	cube_free(handle);
}

static void loop_close_left(uv_handle_t *handle, void *ctx)
{
	struct cube_loop *l = ctx;

	if (!uv_is_closing(handle))
		uv_close(handle, handle == &l->wake.handle ? NULL : loop_handle_closed);
}

void cube_loop_free(struct cube_loop *l)
{
	if (l == NULL)
		return;
	while (loop_run_posted(l))
		;
	uv_walk(&l->uv, loop_close_left, l);
	(void)uv_run(&l->uv, UV_RUN_DEFAULT); /* until the last handle is closed */
	(void)uv_loop_close(&l->uv);
	cube_free(l);
}

static void watch_start(struct cube_watch *w);

static void watch_event(uv_poll_t *poll, int status, int events)
{
	struct cube_watch *w = cube_container_of(poll, struct cube_watch, u.poll);
	unsigned hold = 0;

	if (status < 0) {
		/* libuv reports an error of the descriptor once and lets go of it. Ours is level triggered.
		 */
		hold = w->events;
		watch_start(w);
	}
	if ((events & UV_READABLE) != 0)
		hold |= CUBE_WATCH_IN;
	if ((events & UV_WRITABLE) != 0)
		hold |= CUBE_WATCH_OUT;
	if (hold != 0)
		w->fn(w->ctx,
		      hold); /* may have freed it: the handle itself lives until the loop has closed it */
	loop_check_stop(poll->loop);
}

static void watch_start(struct cube_watch *w)
{
	int events = ((w->events & CUBE_WATCH_IN) != 0 ? UV_READABLE : 0) |
		     ((w->events & CUBE_WATCH_OUT) != 0 ? UV_WRITABLE : 0);

	if (events != 0)
		(void)uv_poll_start(&w->u.poll, events, watch_event); /* fails only while closing */
	else
		(void)uv_poll_stop(&w->u.poll);
}

struct cube_watch *cube_watch_new(struct cube_loop *l, int fd, unsigned events,
				  void (*fn)(void *ctx, unsigned events), void *ctx)
{
	struct cube_watch *w = cube_calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	if (uv_poll_init(&l->uv, &w->u.poll, fd) < 0) {
		cube_free(w);
		return NULL;
	}
	w->fn = fn;
	w->ctx = ctx;
	cube_watch_set(w, events);
	return w;
}

void cube_watch_set(struct cube_watch *w, unsigned events)
{
	if (events == w->events)
		return; /* to say it again would cost two system calls */
	w->events = events;
	watch_start(w);
}

void cube_watch_free(struct cube_watch *w)
{
	if (w != NULL)
		uv_close(&w->u.handle, loop_handle_closed);
}

static void timer_event(uv_timer_t *timer)
{
	struct cube_timer *t = cube_container_of(timer, struct cube_timer, u.timer);

	t->fn(t->ctx);
	loop_check_stop(timer->loop);
}

struct cube_timer *cube_timer_new(struct cube_loop *l, void (*fn)(void *ctx), void *ctx)
{
	struct cube_timer *t = cube_calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	(void)uv_timer_init(&l->uv, &t->u.timer); /* cannot fail */
	t->fn = fn;
	t->ctx = ctx;
	return t;
}

void cube_timer_start(struct cube_timer *t, uint64_t ms)
{
	/* The loop's idea of now is that of its last round, and a callback may have taken long. */
	uv_update_time(t->u.timer.loop);
	(void)uv_timer_start(&t->u.timer, timer_event, ms, 0);
}

void cube_timer_stop(struct cube_timer *t)
{
	(void)uv_timer_stop(&t->u.timer);
}

void cube_timer_free(struct cube_timer *t)
{
	if (t != NULL)
		uv_close(&t->u.handle, loop_handle_closed);
}
