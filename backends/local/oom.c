/* SPDX-License-Identifier: Apache-2.0 */
/* Kills by the memory limit, counted once each. */
#include "backends/local/oom.h"

#include "backends/base/alloc.h"
#include "backends/base/macros.h"
#include "backends/base/map.h"

#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

struct oom_watch {
	int file; /* with the count */
	uint64_t seen;
};

static pthread_mutex_t oom_lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf: of what follows */
static struct cube_imap *oom_watches;
static uint64_t oom_next;

static void oom_free(struct oom_watch *w)
{
	close(w->file);
	cube_free(w);
}

static uint64_t oom_read(const struct oom_watch *w)
{
	uint64_t count = w ? cube_local_group_oom_count(w->file) : UINT64_MAX;

	return count != UINT64_MAX ? count : 0;
}

static uint64_t oom_enter(struct oom_watch *w)
{
	uint64_t number = 0;

	pthread_mutex_lock(&oom_lock);
	if (!oom_watches)
		oom_watches = cube_imap_new();
	if (oom_watches && cube_imap_put(oom_watches, oom_next + 1, w) == 0)
		number = ++oom_next;
	pthread_mutex_unlock(&oom_lock);
	return number;
}

void *cube_local_oom_watch(const struct cube_local_cgroups *c, const char *id)
{
	int file = cube_local_group_oom_file(c, id);
	struct oom_watch *w = file < 0 ? NULL : cube_calloc(1, sizeof(*w));
	uint64_t number;

	if (!w) {
		if (file >= 0)
			close(file);
		return NULL;
	}
	w->file = file;
	w->seen = oom_read(w);
	number = oom_enter(w);
	if (number == 0)
		oom_free(w);
	return (void *)(uintptr_t)
		number; /* NOLINT(performance-no-int-to-ptr): a number that is carried along */
}

void cube_local_oom_forget(void *watch)
{
	struct oom_watch *w = NULL;

	pthread_mutex_lock(&oom_lock);
	if (watch && oom_watches)
		w = cube_imap_take(oom_watches, (uintptr_t)watch);
	pthread_mutex_unlock(&oom_lock);
	if (w)
		oom_free(w);
}

/* With the lock held. NULL: forgotten. */
static struct oom_watch *oom_find(void *watch)
{
	return watch && oom_watches ? cube_imap_get(oom_watches, (uintptr_t)watch) : NULL;
}

uint64_t cube_local_oom_count(void *watch)
{
	uint64_t count;

	pthread_mutex_lock(&oom_lock);
	count = oom_read(oom_find(watch));
	pthread_mutex_unlock(&oom_lock);
	return count;
}

bool cube_local_oom_probe(void *watch, uint64_t count)
{
	struct oom_watch *w;
	bool more = false;

	pthread_mutex_lock(&oom_lock);
	w = oom_find(watch);
	if (w && w->seen < count)
		w->seen = count;
	if (w && oom_read(w) > w->seen) {
		w->seen++;
		more = true;
	}
	pthread_mutex_unlock(&oom_lock);
	return more;
}
