/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads for calls that may block: one backend call each. */
#ifndef CUBEFS_BACKENDS_BASE_POOL_H
#define CUBEFS_BACKENDS_BASE_POOL_H

struct cube_pool;

struct cube_work {
	void (*run)(struct cube_work *work); /* on a pool thread, no lock held; owns *work from then on */
	struct cube_work *next;              /* the pool's */
	const void *key; /* works with the same non-NULL key run one after the other, in order */
};

/* At most @max threads, started when needed, ended after 10 idle seconds. NULL: out of memory. */
struct cube_pool *cube_pool_new(unsigned max);

/* Queue @work. Never blocks, never fails: the element is the caller's memory. */
void cube_pool_submit(struct cube_pool *p, struct cube_work *work);

/* Waits until all that was submitted has run, joins the threads, frees. */
void cube_pool_free(struct cube_pool *p);

#endif
