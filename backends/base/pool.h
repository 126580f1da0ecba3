/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads for calls that may block: one backend call each. */
#ifndef CUBEFS_BACKENDS_BASE_POOL_H
#define CUBEFS_BACKENDS_BASE_POOL_H

struct cube_pool;

struct cube_work {
	void (*run)(struct cube_work *work); /* on a pool thread, no lock held, signals blocked; owns *work
						from then on */
	struct cube_work *next;              /* the pool's */
	const void *key; /* works with the same non-NULL key run one after the other, in order */
};

/* At most @max threads (0 counts as 1), started when needed, ended after 10 idle seconds but for one, which
 * is there from the start. NULL: out of memory or threads. */
struct cube_pool *cube_pool_new(unsigned max);

/* Queue @work, from any thread, works included. Never blocks, never fails: the element is the caller's
 * memory. Works are begun in the order of submission, except that one whose key is busy lets later ones with
 * other keys pass. */
void cube_pool_submit(struct cube_pool *p, struct cube_work *work);

/* Waits until all that was submitted has run (and what that submits), joins the threads, frees. Not from a
 * work. NULL is harmless. */
void cube_pool_free(struct cube_pool *p);

#endif
