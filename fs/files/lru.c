/* SPDX-License-Identifier: Apache-2.0 */
/* Which directories stay open between calls: at most `max_lru` in the space, by the clock algorithm (a hit
 * only sets a flag, so that it needs the table's lock shared). */
#include <sys/resource.h>

#include "fs/files/files_priv.h"

#define LRU_MAX 1024u
#define LRU_MIN 16u

/* A quarter of the descriptors that this process may have. */
unsigned cube_flru_limit(void)
{
	struct rlimit r;
	rlim_t quarter;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return LRU_MIN;
	quarter = r.rlim_cur / 4;
	if (quarter >= LRU_MAX)
		return LRU_MAX;
	return quarter < LRU_MIN ? LRU_MIN : (unsigned)quarter;
}

struct cube_ffd *cube_flru_get_locked(struct cube_fnode *n)
{
	if (n->dir == NULL)
		return NULL;
	atomic_store_explicit(&n->used, true, memory_order_relaxed);
	return cube_ffd_ref(n->dir);
}

void cube_flru_drop_locked(struct cube_fnode *n)
{
	if (n->dir == NULL)
		return;
	cube_list_remove(&n->lru);
	n->tree->space->n_lru--;
	cube_ffd_unref(n->dir);
	n->dir = NULL;
}

/* Closes the first one that was not used since it was last looked at. */
static void lru_evict_locked(struct cube_files_space *s)
{
	for (;;) {
		struct cube_fnode *n = cube_list_entry(s->lru.next, struct cube_fnode, lru);

		if (!atomic_exchange_explicit(&n->used, false, memory_order_relaxed)) {
			cube_flru_drop_locked(n);
			return;
		}
		cube_list_remove(&n->lru);
		cube_list_push(&s->lru, &n->lru);
	}
}

void cube_flru_put(struct cube_fnode *n, struct cube_ffd *fd)
{
	struct cube_files_space *s = n->tree->space;

	(void)pthread_rwlock_wrlock(&s->lock);
	if (n->dir == NULL && !atomic_load(&n->tree->detached)) {
		while (s->n_lru >= s->max_lru)
			lru_evict_locked(s);
		n->dir = cube_ffd_ref(fd);
		atomic_store_explicit(&n->used, false, memory_order_relaxed);
		cube_list_push(&s->lru, &n->lru);
		s->n_lru++;
	}
	(void)pthread_rwlock_unlock(&s->lock);
}

void cube_flru_shrink(struct cube_files_space *s)
{
	(void)pthread_rwlock_wrlock(&s->lock);
	while (s->n_lru > 0)
		lru_evict_locked(s);
	(void)pthread_rwlock_unlock(&s->lock);
}
