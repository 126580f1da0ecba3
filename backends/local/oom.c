/* SPDX-License-Identifier: Apache-2.0 */
/* Kills by the memory limit, counted once each. */
#include "backends/local/oom.h"

#include "backends/base/alloc.h"
#include "backends/base/macros.h"
#include "backends/base/map.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

struct oom_watch {
	struct cube_local_group group; /* descriptors of our own */
	uint64_t seen;
};

static pthread_mutex_t oom_lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf: of what follows */
static struct cube_imap *oom_watches;
static uint64_t oom_next;

static uint64_t oom_count(const struct cube_local_group *g)
{
	struct cube_usage usage;

	cube_local_group_usage(g, &usage);
	return usage.oom_kills == UINT64_MAX ? 0 : usage.oom_kills;
}

static void oom_free(struct oom_watch *w)
{
	cube_local_group_close(&w->group);
	cube_free(w);
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

void *cube_local_oom_watch(const struct cube_local_group *g)
{
	struct oom_watch *w = cube_calloc(1, sizeof(*w));
	uint64_t number;

	if (!w)
		return NULL;
	w->group.v2 = g->v2 >= 0 ? fcntl(g->v2, F_DUPFD_CLOEXEC, 3) : -1;
	for (size_t i = 0; i < CUBE_CTL_COUNT; i++)
		w->group.v1[i] =
			i == CUBE_CTL_MEMORY && g->v1[i] >= 0 ? fcntl(g->v1[i], F_DUPFD_CLOEXEC, 3) : -1;
	w->seen = oom_count(&w->group);
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

bool cube_local_oom_probe(void *watch)
{
	struct oom_watch *w = NULL;
	bool more = false;

	pthread_mutex_lock(&oom_lock);
	if (watch && oom_watches)
		w = cube_imap_get(oom_watches, (uintptr_t)watch);
	if (w && oom_count(&w->group) > w->seen) {
		w->seen++;
		more = true;
	}
	pthread_mutex_unlock(&oom_lock);
	return more;
}
