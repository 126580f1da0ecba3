/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads with one queue.
 *
 * Works of one key run one after the other. A thread that takes a work whose key another one is busy with
 * hangs it behind that thread and goes on looking; the busy one takes it when it has finished. What hangs
 * there was submitted before all that is still queued, so taking it first keeps the order of submission and
 * nobody starves. Nothing is allocated per work and no list is searched: each one is moved twice at most. */
#include "backends/base/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "backends/base/alloc.h"
#include "backends/base/pool_priv.h"

#define POOL_IDLE_MS 10000

struct work_list {
	struct cube_work *first, *last;
};

enum slot_state { SLOT_FREE, SLOT_LIVE, SLOT_ENDED /* to be joined */ };

struct pool_slot {
	struct cube_pool *pool;
	pthread_t thread;
	enum slot_state state;
	const void *key;          /* of the work that runs; NULL: none, or one without */
	struct work_list waiting; /* of the same key, in order */
};

struct cube_pool {
	pthread_mutex_t lock; /* of all below; never held while a work runs */
	pthread_cond_t work_came;
	struct work_list queue;
	unsigned max, live, idle, queued, idle_ms;
	bool ending;
	struct pool_slot slots[];
};

static void list_push(struct work_list *l, struct cube_work *w)
{
	w->next = NULL;
	if (l->first == NULL)
		l->first = w;
	else
		l->last->next = w;
	l->last = w;
}

static struct cube_work *list_pop(struct work_list *l)
{
	struct cube_work *w = l->first;

	if (w != NULL)
		l->first = w->next;
	return w;
}

static struct pool_slot *pool_busy_with(struct cube_pool *p, const void *key)
{
	for (unsigned i = 0; i < p->max; i++) {
		if (p->slots[i].key == key)
			return &p->slots[i];
	}
	return NULL;
}

/* The next work for @self, which just finished one or is new. */
static struct cube_work *pool_next_locked(struct cube_pool *p, struct pool_slot *self)
{
	struct cube_work *w = list_pop(&self->waiting);

	if (w != NULL)
		return w;
	self->key = NULL;
	while ((w = list_pop(&p->queue)) != NULL) {
		struct pool_slot *busy = w->key != NULL ? pool_busy_with(p, w->key) : NULL;

		p->queued--;
		if (busy == NULL) {
			self->key = w->key;
			return w;
		}
		list_push(&busy->waiting, w);
	}
	return NULL;
}

/* Waits for work; false when the thread shall end. One thread stays for ever, so that a work can be run even
 * where no other thread can be started. */
static bool pool_wait_locked(struct cube_pool *p)
{
	struct timespec until;
	int r;

	if (p->ending)
		return false;
	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += p->idle_ms / 1000;
	until.tv_nsec += p->idle_ms % 1000 * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	p->idle++;
	r = pthread_cond_timedwait(&p->work_came, &p->lock, &until);
	p->idle--;
	return r == 0 || p->queue.first != NULL || p->live == 1;
}

static void *pool_thread(void *arg)
{
	struct pool_slot *self = arg;
	struct cube_pool *p = self->pool;

	(void)pthread_mutex_lock(&p->lock);
	for (;;) {
		struct cube_work *w = pool_next_locked(p, self);

		if (w != NULL) {
			(void)pthread_mutex_unlock(&p->lock);
			w->run(w);
			(void)pthread_mutex_lock(&p->lock);
		} else if (!pool_wait_locked(p)) {
			break;
		}
	}
	self->state = SLOT_ENDED;
	p->live--;
	(void)pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Signals are for the main thread: none may interrupt a backend's call. */
static int pool_create_thread(struct pool_slot *slot)
{
	sigset_t all, before;
	int r;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&slot->thread, NULL, pool_thread, slot);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r == 0)
		(void)pthread_setname_np(slot->thread, "cubefs-pool");
	return r;
}

static bool pool_start_locked(struct cube_pool *p)
{
	for (unsigned i = 0; i < p->max && !p->ending; i++) {
		struct pool_slot *slot = &p->slots[i];

		if (slot->state == SLOT_LIVE)
			continue;
		if (slot->state == SLOT_ENDED) {
			(void)pthread_join(slot->thread, NULL); /* it let go of the lock already */
			slot->state = SLOT_FREE;
		}
		if (pool_create_thread(slot) != 0)
			return false;
		slot->state = SLOT_LIVE;
		p->live++;
		return true;
	}
	return false;
}

static int pool_init_sync(struct cube_pool *p)
{
	pthread_condattr_t attr;
	int r = pthread_condattr_init(&attr);

	if (r != 0)
		return r;
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	r = pthread_cond_init(&p->work_came, &attr);
	(void)pthread_condattr_destroy(&attr);
	if (r == 0)
		(void)pthread_mutex_init(&p->lock, NULL); /* cannot fail on Linux without attributes */
	return r;
}

struct cube_pool *cube_pool_new(unsigned max)
{
	return cube_pool_new_idle(max, POOL_IDLE_MS);
}

struct cube_pool *cube_pool_new_idle(unsigned max, unsigned idle_ms)
{
	struct cube_pool *p;
	bool started;

	if (max == 0)
		max = 1;
	p = cube_calloc(1, sizeof(*p) + max * sizeof(p->slots[0]));
	if (p == NULL)
		return NULL;
	p->max = max;
	p->idle_ms = idle_ms;
	for (unsigned i = 0; i < max; i++)
		p->slots[i].pool = p;
	if (pool_init_sync(p) != 0) {
		cube_free(p);
		return NULL;
	}
	(void)pthread_mutex_lock(&p->lock);
	started = pool_start_locked(p);
	(void)pthread_mutex_unlock(&p->lock);
	if (!started) {
		cube_pool_free(p);
		return NULL;
	}
	return p;
}

void cube_pool_submit(struct cube_pool *p, struct cube_work *work)
{
	bool wake;

	(void)pthread_mutex_lock(&p->lock);
	list_push(&p->queue, work);
	p->queued++;
	wake = p->idle > 0;
	if (p->queued > p->idle)            /* the idle ones have other works to wake up for */
		(void)pool_start_locked(p); /* no more allowed or to be had: it waits its turn */
	(void)pthread_mutex_unlock(&p->lock);
	if (wake) /* behind the lock, which it would find locked and sleep again */
		(void)pthread_cond_signal(&p->work_came);
}

static bool pool_slot_used(struct cube_pool *p, unsigned i)
{
	bool used;

	(void)pthread_mutex_lock(&p->lock);
	used = p->slots[i].state != SLOT_FREE;
	(void)pthread_mutex_unlock(&p->lock);
	return used;
}

void cube_pool_free(struct cube_pool *p)
{
	if (p == NULL)
		return;
	(void)pthread_mutex_lock(&p->lock);
	p->ending = true;
	(void)pthread_cond_broadcast(&p->work_came);
	(void)pthread_mutex_unlock(&p->lock);
	/* No thread is started any more: a work that submits others leaves them to its own thread. */
	for (unsigned i = 0; i < p->max; i++) {
		if (pool_slot_used(p, i))
			(void)pthread_join(p->slots[i].thread, NULL);
	}
	(void)pthread_cond_destroy(&p->work_came);
	(void)pthread_mutex_destroy(&p->lock);
	cube_free(p);
}
