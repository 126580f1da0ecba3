/* SPDX-License-Identifier: Apache-2.0 */
/* What backends do for checkpoints, on threads of the pool; taking and restoring are operations (life.c). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/log.h"
#include "ctl/checkpoint_priv.h"
#include "ctl/ctl_priv.h"
#include "ctl/errlog.h"

#define AGAIN_MS  500u
#define LOOKED_NS UINT64_C(5000000000) /* so old sizes may be before they are asked for again */

struct checkpoint_work {
	struct cube_work work;
	struct cube_cube *cube;                   /* referenced: it keeps the checkpoint's */
	struct cube_checkpoint_entry *checkpoint; /* referenced */
	/* files */
	void (*done)(void *ctx, int code, struct cube_root *root, const struct cube_err *err);
	void *ctx;
};

static struct checkpoint_work *work_new(struct cube_checkpoint_entry *e, void (*run)(struct cube_work *w))
{
	struct checkpoint_work *cw = cube_calloc(1, sizeof(*cw));

	if (cw == NULL)
		return NULL;
	cw->cube = cube_cube_ref(e->cube);
	cw->checkpoint = cube_checkpoint_ref(e);
	cw->work = (struct cube_work){.run = run,
				      .key = cube_backend_queue_key(e->cube->service->backend, e->cube)};
	return cw;
}

/* Under the lock; gives it back. */
static void work_end(struct checkpoint_work *cw)
{
	struct cube_domain *d = cw->cube->domain;

	cube_checkpoint_unref(cw->checkpoint);
	cube_cube_unref(cw->cube);
	cube_task_end(d);
	cube_domain_leave(d);
	cube_free(cw);
}

/* ---- Removing ---- */

static void work_removed(struct cube_cube *c, struct cube_checkpoint_entry *e, int code,
			 const struct cube_err *err)
{
	unsigned shift = e->tries < 7 ? e->tries++ : 7;

	if (e->cube == NULL || c->phase == CUBE_REMOVED)
		return; /* the destruction sees to it */
	if (code == 0) {
		cube_checkpoint_forget(e);
		(void)cube_state_save(c, NULL); /* else it is removed once more */
		return;
	}
	cube_log(CUBE_LOG_WARNING, "ctl", "checkpoint of '%s': %s", c->name, err->text);
	cube_errlog_add(c->errors, NULL, "rmdir of a checkpoint", err);
	if (!c->domain->closing)
		cube_alarm_set(c->domain, &e->again, AGAIN_MS << shift);
}

static void work_remove_run(struct cube_work *w)
{
	struct checkpoint_work *cw = cube_container_of(w, struct checkpoint_work, work);
	struct cube_err err = {0};
	int code = cube_backend_checkpoint_remove(cw->cube->service->backend, cw->checkpoint->id, &err);

	cube_domain_enter(cw->cube->domain);
	work_removed(cw->cube, cw->checkpoint, code, &err);
	work_end(cw);
}

void cube_checkpoint_work_remove(struct cube_checkpoint_entry *e)
{
	struct checkpoint_work *cw = work_new(e, work_remove_run);

	if (cw != NULL)
		cube_task_submit(e->cube->domain, &cw->work);
	else
		cube_alarm_set(e->cube->domain, &e->again, 1000); /* when there is memory */
}

void cube_checkpoints_resume(struct cube_cube *c)
{
	cube_list_each (i, &cube_own(c)->checkpoints_gone)
		cube_checkpoint_work_remove(cube_list_entry(i, struct cube_checkpoint_entry, link));
}

static size_t ids_add(char (*to)[17], size_t n, const struct cube_list *list)
{
	cube_list_each (i, list) {
		if (to != NULL)
			memcpy(to[n], cube_list_entry(i, struct cube_checkpoint_entry, link)->id, 17);
		n++;
	}
	return n;
}

char (*cube_checkpoints_ids(struct cube_cube *c, size_t *ret_n))[17]
{
	const struct cube_list *gone = &cube_own(c)->checkpoints_gone;
	size_t n = ids_add(NULL, ids_add(NULL, 0, &c->checkpoints), gone);
	char(*ids)[17] = n > 0 ? cube_calloc(n, sizeof(*ids)) : NULL;

	*ret_n = n;
	if (ids != NULL)
		(void)ids_add(ids, ids_add(ids, 0, &c->checkpoints), gone);
	return ids;
}

/* ---- Files ---- */

static void work_root_run(struct cube_work *w)
{
	struct checkpoint_work *cw = cube_container_of(w, struct checkpoint_work, work);
	struct cube_root root = {.fd = -1};
	struct cube_err err = {0};
	int code = cube_backend_checkpoint_root(cw->cube->service->backend, cw->checkpoint->id, &root, &err);

	cw->done(cw->ctx, code, &root, &err);
	cube_domain_enter(cw->cube->domain);
	work_end(cw);
}

int cube_checkpoint_root_async(struct cube_checkpoint_entry *e,
			       void (*done)(void *ctx, int code, struct cube_root *root,
					    const struct cube_err *err),
			       void *ctx)
{
	struct checkpoint_work *cw = work_new(e, work_root_run);

	if (cw == NULL)
		return -ENOMEM;
	cw->done = done;
	cw->ctx = ctx;
	cube_task_submit(e->cube->domain, &cw->work);
	return 0;
}

/* ---- What a backend has ---- */

struct seen {
	char id[CUBE_ID_MAX + 1];
	uint64_t size;
};

struct list_work {
	struct cube_work work;
	struct cube_service *service;
	bool compare;         /* not the sizes alone */
	struct cube_buf seen; /* struct seen after struct seen */
};

static void list_add(void *ctx, const struct cube_checkpoint *c)
{
	struct seen s = {.size = c->size};

	(void)snprintf(s.id, sizeof(s.id), "%s", c->id);
	(void)cube_buf_add(ctx, &s, sizeof(s));
}

static const struct seen *list_find(const struct list_work *lw, const char *id)
{
	for (size_t at = 0; at < lw->seen.len; at += sizeof(struct seen)) {
		const struct seen *s = (const void *)(lw->seen.data + at);

		if (strcmp(s->id, id) == 0)
			return s;
	}
	return NULL;
}

/* One that the backend has not any more is none. */
static void list_lost(struct cube_checkpoint_entry *e)
{
	struct cube_cube *c = e->cube;
	struct cube_err err;

	(void)cube_fail(&err, -ENOENT, "backend '%s' has lost checkpoint '%s': it is listed no more",
			c->service->backend->name, e->name);
	cube_errlog_add(c->errors, NULL, "checkpoint", &err);
	cube_errlog_add(c->domain->errors, NULL, "checkpoint", &err);
	if (cube_checkpoint_remove(e, &err) < 0)
		cube_log(CUBE_LOG_ERROR, "ctl", "%s", err.text);
}

static void list_look(struct list_work *lw, struct cube_cube *c)
{
	cube_list_each (i, &c->checkpoints) {
		struct cube_checkpoint_entry *e = cube_list_entry(i, struct cube_checkpoint_entry, link);
		const struct seen *s = list_find(lw, e->id);

		if (s != NULL)
			e->size = s->size;
		if (!lw->compare || !e->recovered)
			continue;
		e->recovered = false;
		if (s == NULL && e->phase == CUBE_CHECKPOINT_THERE)
			list_lost(e);
	}
}

static bool list_knows(const struct cube_list *cubes, const char *id)
{
	cube_list_each (i, cubes) {
		struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);
		const struct cube_list *lists[] = {&c->checkpoints, &cube_own(c)->checkpoints_gone};

		for (size_t n = 0; n < CUBE_COUNT(lists); n++)
			cube_list_each (k, lists[n])
				if (strcmp(cube_list_entry(k, struct cube_checkpoint_entry, link)->id, id) ==
				    0)
					return true;
	}
	return false;
}

/* Under the lock: leaves in the list what nobody knows. */
static void list_strangers(struct list_work *lw)
{
	struct cube_domain *d = lw->service->domain;
	size_t kept = 0;

	for (size_t at = 0; at < lw->seen.len; at += sizeof(struct seen)) {
		struct seen s;

		memcpy(&s, lw->seen.data + at, sizeof(s));
		if (list_knows(&d->cubes, s.id) || list_knows(&cube_domain_own(d)->dying, s.id))
			continue;
		memcpy(lw->seen.data + kept, &s, sizeof(s));
		kept += sizeof(s);
	}
	lw->seen.len = kept;
}

/* Only where the backend's state is ours alone, and only when every sandbox could be read: another one's checkpoints
 * are not ours to throw away. */
static bool list_ours(const struct list_work *lw)
{
	const struct cube_backend_ops *ops = lw->service->backend->ops;

	return lw->compare && (ops->beside_state || ops->own_checkpoints) &&
	       !cube_domain_own(lw->service->domain)->load_failed;
}

static void list_run(struct cube_work *w)
{
	struct list_work *lw = cube_container_of(w, struct list_work, work);
	struct cube_domain *d = lw->service->domain;
	int code = cube_backend_checkpoint_list(lw->service->backend, list_add, &lw->seen, NULL);
	bool strangers;

	if (lw->seen.error != 0)
		code = lw->seen.error;
	cube_domain_enter(d);
	if (code == 0)
		cube_list_each (i, &d->cubes) {
			struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);

			if (c->service == lw->service)
				list_look(lw, c);
		}
	strangers = code == 0 && list_ours(lw);
	if (strangers)
		list_strangers(lw);
	cube_domain_leave(d);
	for (size_t at = 0; strangers && at < lw->seen.len; at += sizeof(struct seen))
		(void)cube_backend_checkpoint_remove(
			lw->service->backend, ((const struct seen *)(const void *)(lw->seen.data + at))->id,
			NULL);
	cube_domain_enter(d);
	cube_task_end(d);
	cube_domain_leave(d);
	cube_buf_done(&lw->seen);
	cube_free(lw);
}

static void list_begin(struct cube_service *s, bool compare)
{
	struct list_work *lw = cube_calloc(1, sizeof(*lw));

	if (lw == NULL)
		return; /* the next look, or the next daemon */
	lw->work = (struct cube_work){.run = list_run, .key = cube_backend_queue_key(s->backend, lw)};
	lw->service = s;
	lw->compare = compare;
	cube_buf_init(&lw->seen, (size_t)64 << 20);
	cube_task_submit(s->domain, &lw->work);
}

void cube_checkpoints_compare(struct cube_domain *d)
{
	cube_list_each (i, &d->services) {
		struct cube_service *s = cube_list_entry(i, struct cube_service, link);

		if (s->backend->caps & CUBE_CAP_CHECKPOINTS)
			list_begin(s, true);
	}
}

void cube_checkpoint_look(struct cube_checkpoint_entry *e)
{
	struct cube_service *s = e->cube != NULL ? e->cube->service : NULL;
	uint64_t now = cube_clock_mono();

	if (s == NULL || s->domain->closing ||
	    (s->checkpoints_looked != 0 && now - s->checkpoints_looked < LOOKED_NS))
		return;
	s->checkpoints_looked = now;
	list_begin(s, false);
}
