/* SPDX-License-Identifier: Apache-2.0 */
/* The guard for a short disk: below what is kept free on the disk that holds the state, whoever writes the most is
 * paused, one after the other, before the others find no room; when there is room again they go on.
 *
 * The disk is looked at (a pool thread, statvfs) every few seconds while anything runs. Near the limit it is looked at
 * more often, and the backends are asked how much each sandbox has written: who wrote the most from one look to the
 * next is the one. A sandbox that was resumed by its user is left alone as long as it does not write on. */
#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

#include "backends/base/alloc.h"
#include "backends/base/log.h"
#include "ctl/ctl_priv.h"
#include "ctl/errlog.h"
#include "ctl/event.h"

#define FAR_MS      5000u
#define NEAR_MS     1000u
#define NEAR_FACTOR 2u                   /* times what is kept free: near */
#define LITTLE      (UINT64_C(64) << 10) /* bytes from one look to the next: nobody is paused for that */

const char cube_guard_reason[] = "disk";

struct guard_one {
	struct cube_cube *cube; /* referenced */
	char id[CUBE_ID_MAX + 1];
	uint64_t written;
	bool known;
};

struct guard_look {
	struct cube_work work;
	struct cube_domain *domain;
	uint64_t reserve; /* the settings, as they were when it was begun */
	uint32_t percent;
	uint64_t kept; /* to be kept free */
	uint64_t free, total;
	bool near;
	size_t n;
	struct guard_one all[];
};

/* The larger of a share and a size. */
static uint64_t guard_kept(const struct guard_look *l)
{
	uint64_t share = l->total / 100 * l->percent;

	return share > l->reserve ? share : l->reserve;
}

static bool guard_paused(const struct cube_cube *c)
{
	return c->phase == CUBE_PAUSED && strcmp(c->reason, cube_guard_reason) == 0;
}

/* ---- Without the lock ---- */

static void guard_back(struct guard_look *l);

static void guard_run(struct cube_work *w)
{
	struct guard_look *l = cube_container_of(w, struct guard_look, work);
	struct cube_domain *d = l->domain;
	struct statvfs vfs;

	if (statvfs(d->state_dir, &vfs) == 0) {
		l->total = (uint64_t)vfs.f_blocks * vfs.f_frsize;
		l->free = (uint64_t)vfs.f_bavail * vfs.f_frsize;
		l->kept = guard_kept(l);
		l->near = l->free / NEAR_FACTOR < l->kept;
	}
	for (size_t i = 0; l->near && i < l->n; i++) {
		struct guard_one *o = &l->all[i];

		o->known = cube_backend_written(o->cube->service->backend, o->id, &o->written, NULL) == 0;
	}
	cube_domain_enter(d);
	guard_back(l);
	cube_task_end(d);
	cube_domain_leave(d);
	cube_free(l);
}

/* ---- Under it ---- */

static struct guard_look *guard_new(struct cube_domain *d)
{
	struct guard_look *l =
		cube_calloc(1, sizeof(*l) + cube_map_count(d->by_name) * sizeof(struct guard_one));

	if (l == NULL)
		return NULL;
	l->work.run = guard_run;
	l->domain = d;
	l->reserve = d->disk_reserve;
	l->percent = d->disk_percent;
	cube_list_each (i, &d->cubes) {
		struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);

		if (l->n == cube_map_count(d->by_name) || c->phase != CUBE_RUNNING || c->id == NULL ||
		    !(c->service->backend->caps & CUBE_CAP_PAUSE))
			continue;
		l->all[l->n].cube = cube_cube_ref(c);
		memcpy(l->all[l->n++].id, c->id, strlen(c->id) + 1);
	}
	return l;
}

static bool guard_any(const struct cube_domain *d)
{
	for (struct cube_list *i = d->cubes.next; i != &d->cubes; i = i->next) {
		const struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);

		if (c->phase == CUBE_RUNNING || guard_paused(c))
			return true;
	}
	return false;
}

void cube_guard_look(struct cube_domain *d)
{
	struct cube_domain_own *own = cube_domain_own(d);
	struct guard_look *l;

	if (d->closing || own->guarding || !guard_any(d))
		return;
	l = guard_new(d);
	if (l == NULL) {
		cube_alarm_set(d, &own->guard, FAR_MS);
		return;
	}
	own->guarding = true;
	cube_task_submit(d, &l->work);
}

void cube_guard_wake(struct cube_domain *d)
{
	struct cube_domain_own *own = cube_domain_own(d);

	if (!own->guarding && !cube_alarm_is_on(&own->guard))
		cube_alarm_set(d, &own->guard, NEAR_MS);
}

/* What it wrote since the look before; none the first time. */
static uint64_t guard_growth(struct guard_one *o)
{
	struct cube_own *own = cube_own(o->cube);
	uint64_t before = own->written;

	if (!o->known)
		return 0;
	own->written = o->written;
	return before != UINT64_MAX && o->written > before ? o->written - before : 0;
}

static void guard_pause(struct guard_look *l, struct cube_cube *c, uint64_t bytes)
{
	struct cube_own *own = cube_own(c);
	struct cube_err err;

	if (cube_op_begin(c, CUBE_OP_PAUSE, 0, NULL, &err) < 0 || own->op == NULL ||
	    own->op->kind != CUBE_OP_PAUSE)
		return; /* something else is done to it; the next look */
	own->op->reason = cube_guard_reason;
	(void)cube_fail(&err, -ENOSPC,
			"paused: it wrote %llu MiB while the disk that holds the state has %llu MiB free, of "
			"which %llu "
			"MiB are to be kept; it goes on when there is room, or by `resume`",
			(unsigned long long)(bytes >> 20), (unsigned long long)(l->free >> 20),
			(unsigned long long)(l->kept >> 20));
	cube_errlog_add(c->errors, NULL, "disk", &err);
	cube_errlog_add(c->domain->errors, NULL, "disk", &err);
	cube_log(CUBE_LOG_INFO, "ctl", "'%s' %s", c->name, err.text);
}

static void guard_short(struct guard_look *l)
{
	struct cube_cube *most = NULL;
	uint64_t bytes = LITTLE - 1;

	for (size_t i = 0; i < l->n; i++) {
		uint64_t growth = guard_growth(&l->all[i]);

		if (growth > bytes && l->all[i].cube->phase == CUBE_RUNNING) {
			bytes = growth;
			most = l->all[i].cube;
		}
	}
	if (most != NULL && l->free < l->kept)
		guard_pause(l, most, bytes);
}

/* One at a time: it may write on. */
static void guard_room(struct guard_look *l)
{
	cube_list_each (i, &l->domain->cubes) {
		struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);

		if (!guard_paused(c) || cube_own(c)->op != NULL)
			continue;
		(void)cube_op_begin(c, CUBE_OP_RESUME, 0, NULL, NULL);
		return;
	}
}

static void guard_back(struct guard_look *l)
{
	struct cube_domain *d = l->domain;

	cube_domain_own(d)->guarding = false;
	if (l->near)
		guard_short(l);
	if (l->total != 0 && l->free > l->kept + l->kept / 8 && !d->closing)
		guard_room(l);
	for (size_t i = 0; i < l->n; i++)
		cube_cube_unref(l->all[i].cube);
	if (!d->closing && guard_any(d))
		cube_alarm_set(d, &cube_domain_own(d)->guard, l->near ? NEAR_MS : FAR_MS);
}

int cube_guard_refuse(const struct cube_cube *c, struct cube_err *err)
{
	if (!guard_paused(c))
		return 0;
	return cube_fail(err, -EHOSTDOWN,
			 "sandbox '%s' is paused since the disk that holds the state is short: make room, "
			 "then it goes "
			 "on; or `resume` resumes it",
			 c->name);
}
