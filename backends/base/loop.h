/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop (libuv inside): descriptors, timers, and calls posted from other threads.
 *
 * One loop, one thread. Callbacks run on it with no lock held and must not block. All functions
 * but cube_loop_post and cube_loop_stop are for the loop's own thread, or for before it runs. */
#ifndef CUBEFS_BACKENDS_BASE_LOOP_H
#define CUBEFS_BACKENDS_BASE_LOOP_H

#include <stdint.h>

struct cube_loop;
struct cube_watch;
struct cube_timer;

struct cube_loop *cube_loop_new(void); /* NULL: out of memory or descriptors */
/* After run returned. Runs what is still posted and what that posts, then frees the watches and timers that
 * are left: they must not be used or freed any more. NULL is harmless. */
void cube_loop_free(struct cube_loop *l);

/* Runs until cube_loop_stop. What was posted before the stop, by the same thread, has run when it returns; a
 * stop out of a callback is looked at right behind it. A stop before the run ends it at once. May be run
 * again. */
void cube_loop_run(struct cube_loop *l);
void cube_loop_stop(struct cube_loop *l); /* any thread, signal handlers too */

/* A call on the loop's thread, in the order of posting; from any thread, never blocks, never fails. The
 * element is the caller's memory and its own again when fn is called. What is posted in a post comes in the
 * next round. */
struct cube_post {
	void (*fn)(struct cube_post *post);
	struct cube_post *next; /* the loop's */
};
void cube_loop_post(struct cube_loop *l, struct cube_post *post);

#define CUBE_WATCH_IN  1u
#define CUBE_WATCH_OUT 2u
/* Level triggered. @fn gets those of the wanted events that hold; errors and hang-up count as each of them,
 * so that the call that follows (read, write, connect's result) tells. The descriptor stays the caller's, is
 * made non-blocking, and must be open until after cube_watch_free. One watch for a descriptor at a time.
 * NULL: out of memory, or nothing that can be waited for (a plain file). */
struct cube_watch *cube_watch_new(struct cube_loop *l, int fd, unsigned events,
				  void (*fn)(void *ctx, unsigned events), void *ctx);
void cube_watch_set(struct cube_watch *w, unsigned events); /* 0: no call until it is set again */
/* No call comes after; may be called in any callback. NULL is harmless. */
void cube_watch_free(struct cube_watch *w);

/* A timer that is not running. @fn is called once for each cube_timer_start, in real time (not
 * cube_clock_mono's). NULL: out of memory. */
struct cube_timer *cube_timer_new(struct cube_loop *l, void (*fn)(void *ctx), void *ctx);
void cube_timer_start(struct cube_timer *t, uint64_t ms); /* replaces an earlier start */
void cube_timer_stop(struct cube_timer *t);
void cube_timer_free(struct cube_timer *t); /* as cube_watch_free */

#endif
