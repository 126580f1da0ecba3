/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting without a thread: whoever waits is an entry in the waited-for thing's queue.
 *
 * All of it under the domain lock. A waiter looks at the state it needs, finds that it must wait, adds
 * itself, and looks again when woken. Waking is one-shot: a waiter that must go on waiting adds itself
 * anew. */
#ifndef CUBEFS_CTL_WAIT_H
#define CUBEFS_CTL_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/list.h"

struct cube_waitq {
	struct cube_list waiters;
};

struct cube_waiter {
	struct cube_list link;               /* alone in its own list when it waits for nothing */
	void (*wake)(struct cube_waiter *w); /* under the domain lock; w is out of the queue */
};

/* Wakes everyone who is in the queue now; those who add themselves meanwhile stay for the next time. */
void cube_wake(struct cube_waitq *q);

/* A question to somebody slow, and who waits for the answer. */
struct cube_asked {
	bool asking;                /* the answer is under way */
	uint64_t answers;           /* so far */
	struct cube_waitq answered; /* another one */
};

static inline void cube_waitq_init(struct cube_waitq *q)
{
	cube_list_init(&q->waiters);
}

static inline void cube_waiter_init(struct cube_waiter *w, void (*wake)(struct cube_waiter *))
{
	cube_list_init(&w->link);
	w->wake = wake;
}

static inline void cube_wait_add(struct cube_waitq *q, struct cube_waiter *w)
{
	cube_list_remove(&w->link);
	cube_list_push(&q->waiters, &w->link);
}

/* The answer has come. */
static inline void cube_asked_answer(struct cube_asked *a)
{
	a->asking = false;
	a->answers++;
	cube_wake(&a->answered);
}

static inline void cube_wait_remove(struct cube_waiter *w)
{
	cube_list_remove(&w->link);
}

#endif
