/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of sandboxes by others' hands, or by the service's clock: it tells of nothing by itself, so it is asked for
 * the list of them, a request for each hundred, every few seconds. */
#include "backends/e2b/e2b_priv.h"

#include "backends/base/alloc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct watch_seen {
	enum cube_state state;
	unsigned round;
	char id[CUBE_ID_MAX + 1];
};

struct watch {
	struct cube_e2b *e;
	const struct cube_news *news;
	struct cube_map *seen; /* struct watch_seen */
	unsigned round;
	struct cube_buf labels;
	struct watch_seen *gone;
};

static int watch_one(void *ctx, const json_t *one)
{
	struct watch *w = ctx;
	struct watch_seen *seen;
	struct cube_info info;

	if (!e2b_look_info(w->e, one, &info, &w->labels))
		return 0;
	seen = cube_map_get(w->seen, info.id);
	if (seen == NULL) {
		seen = cube_calloc(1, sizeof(*seen));
		if (seen == NULL || cube_map_put(w->seen, info.id, seen) < 0) {
			cube_free(seen);
			return -ENOMEM;
		}
		(void)snprintf(seen->id, sizeof(seen->id), "%s", info.id);
		seen->state = w->round == 1 ? info.state : CUBE_IS_GONE;
	}
	seen->round = w->round;
	if (seen->state != info.state) {
		seen->state = info.state;
		w->news->changed(w->news->ctx, info.id, info.state);
	}
	return 0;
}

static int watch_find_gone(void *ctx, const char *id, void *value)
{
	struct watch *w = ctx;
	struct watch_seen *seen = value;

	(void)id;
	w->gone = seen->round != w->round ? seen : NULL;
	return w->gone != NULL;
}

static int watch_round(struct watch *w, struct cube_cancel *cancel, struct cube_err *err)
{
	int rc;

	w->round++;
	rc = e2b_look_all(w->e, "", cancel, watch_one, w, err);
	if (rc == -ENOMEM)
		return cube_fail(err, rc, "out of memory");
	while (rc == 0 && cube_map_each(w->seen, watch_find_gone, w) != 0) {
		struct watch_seen *gone = cube_map_take(w->seen, w->gone->id);

		w->news->changed(w->news->ctx, gone->id, CUBE_IS_GONE);
		cube_free(gone);
	}
	return rc;
}

/* ---- creations that nobody waits for any more ---- */

static int watch_find_doubt(void *ctx, const char *uid, void *value)
{
	struct watch *w = ctx;

	(void)value;
	if (cube_map_get(w->seen, uid) == NULL)
		return 0;
	w->gone = cube_map_get(w->seen, uid);
	return 1;
}

static void watch_settle_doubts(struct watch *w)
{
	for (;;) {
		char uid[CUBE_ID_MAX + 1];
		int found;

		pthread_mutex_lock(&w->e->lock);
		found = cube_map_each(w->e->doubtful, watch_find_doubt, w);
		if (found != 0)
			(void)snprintf(uid, sizeof(uid), "%s", w->gone->id);
		pthread_mutex_unlock(&w->e->lock);
		if (found == 0)
			return;
		e2b_doubt(w->e, uid, false);
		if (e2b_destroy(&w->e->base, uid, &(struct cube_err){0}) < 0) {
			e2b_doubt(w->e, uid, true);
			return;
		}
	}
}

static int watch_free_seen(void *ctx, const char *id, void *value)
{
	(void)ctx, (void)id;
	cube_free(value);
	return 0;
}

int e2b_watch(struct cube_backend *b, const struct cube_news *news, struct cube_cancel *cancel,
	      struct cube_err *err)
{
	struct cube_e2b *e = e2b_of(b);
	struct watch w = {.e = e, .news = news, .seen = cube_map_new(), .labels = CUBE_BUF((size_t)64 << 10)};
	int rc = w.seen != NULL ? 0 : cube_fail(err, -ENOMEM, "out of memory");

	while (rc == 0) {
		rc = watch_round(&w, cancel, err);
		if (rc == 0 && w.round == 1)
			news->begun(news->ctx);
		if (rc == 0) {
			watch_settle_doubts(&w);
			e2b_lease_renew(e, cancel);
			rc = e2b_wait((uint64_t)e->poll_s * 1000, cancel, err);
		}
	}
	if (w.seen != NULL)
		(void)cube_map_each(w.seen, watch_free_seen, NULL);
	cube_map_free(w.seen);
	cube_buf_done(&w.labels);
	return rc;
}
