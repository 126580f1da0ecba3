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
void cube_loop_free(struct cube_loop *l); /* after run returned; runs what is still posted */

/* Runs until cube_loop_stop. */
void cube_loop_run(struct cube_loop *l);
void cube_loop_stop(struct cube_loop *l);

/* A call on the loop's thread, in the order of posting; from any thread, never blocks. The element
 * is the caller's memory and its own again when fn is called. */
struct cube_post {
	void (*fn)(struct cube_post *post);
	struct cube_post *next; /* the loop's */
};
void cube_loop_post(struct cube_loop *l, struct cube_post *post);

#define CUBE_WATCH_IN 1u
#define CUBE_WATCH_OUT 2u
/* Level triggered. @fn gets the events that hold (errors and hang-up count as both). The descriptor
 * stays the caller's and must be open until after cube_watch_free. NULL: out of memory. */
struct cube_watch *cube_watch_new(struct cube_loop *l, int fd, unsigned events,
				  void (*fn)(void *ctx, unsigned events), void *ctx);
void cube_watch_set(struct cube_watch *w, unsigned events);
void cube_watch_free(struct cube_watch *w); /* no call comes after; may be called in the callback */

/* A timer that is not running. @fn is called once for each cube_timer_start. */
struct cube_timer *cube_timer_new(struct cube_loop *l, void (*fn)(void *ctx), void *ctx);
void cube_timer_start(struct cube_timer *t, uint64_t ms); /* replaces an earlier start */
void cube_timer_stop(struct cube_timer *t);
void cube_timer_free(struct cube_timer *t);

#endif
