/* SPDX-License-Identifier: Apache-2.0 */
/* What backends do for volumes, on threads of the pool. */
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/log.h"
#include "ctl/ctl_priv.h"
#include "ctl/errlog.h"
#include "ctl/volume_priv.h"

#define AGAIN_MS  200u
#define LOOKED_NS UINT64_C(5000000000) /* so old sizes may be before they are asked for again */

struct volume_work {
	struct cube_work work;
	struct cube_volume_entry *volume; /* referenced */
	char name[CUBE_NAME_MAX + 1];
	/* files */
	void (*done)(void *ctx, int code, struct cube_root *root, const struct cube_err *err);
	void *ctx;
};

static struct volume_work *work_new(struct cube_volume_entry *v, void (*run)(struct cube_work *w))
{
	struct volume_work *vw = cube_calloc(1, sizeof(*vw));

	if (vw == NULL)
		return NULL;
	vw->work.run = run;
	vw->work.key = cube_backend_queue_key(v->service->backend, v);
	vw->volume = cube_volume_ref(v);
	memcpy(vw->name, v->name, sizeof(vw->name));
	return vw;
}

/* Under the lock; gives it back. */
static void work_end(struct volume_work *vw)
{
	struct cube_domain *d = vw->volume->service->domain;

	cube_volume_unref(vw->volume);
	cube_task_end(d);
	cube_domain_leave(d);
	cube_free(vw);
}

/* ---- Making ---- */

static void work_made(struct cube_volume_entry *v, int code, const struct cube_err *err)
{
	if (code == 0) {
		v->phase = CUBE_VOLUME_THERE;
		cube_wake(&v->changed);
		return;
	}
	v->phase = CUBE_VOLUME_FAILED;
	v->failure = *err;
	cube_volume_unsave(v);
	cube_volume_delist(v);
}

static void work_make_run(struct cube_work *w)
{
	struct volume_work *vw = cube_container_of(w, struct volume_work, work);
	struct cube_volume_entry *v = vw->volume;
	struct cube_err err = {0};
	int code;

	cube_volume_sync(v->service->domain,
			 v->uid); /* the intention is on the medium before anything exists */
	code = cube_backend_volume_make(v->service->backend, v->uid, vw->name, NULL, &err);
	cube_domain_enter(v->service->domain);
	work_made(v, code, &err);
	work_end(vw);
}

void cube_volume_work_make(struct cube_volume_entry *v)
{
	struct volume_work *vw = work_new(v, work_make_run);

	if (vw != NULL) {
		cube_task_submit(v->service->domain, &vw->work);
		return;
	}

	struct cube_err err;
	int code = cube_fail(&err, -ENOMEM, "volume '%s': out of memory", v->name);

	work_made(v, code, &err);
}

/* ---- Removing ---- */

static void work_removed(struct cube_volume_entry *v, int code, const struct cube_err *err)
{
	struct cube_domain *d = v->service->domain;
	unsigned shift = v->tries < 8 ? v->tries++ : 8;

	v->removing = false;
	if (code == 0) {
		cube_volume_unsave(v);
		cube_volume_delist(v);
		return;
	}
	if (code != -EBUSY) { /* a sandbox that has it is just being destroyed */
		cube_log(CUBE_LOG_WARNING, "ctl", "volume '%s': %s", v->name, err->text);
		cube_errlog_add(d->errors, NULL, "rmdir of a volume", err);
	}
	if (!d->closing)
		cube_alarm_set(d, &v->again, AGAIN_MS << shift);
}

static void work_remove_run(struct cube_work *w)
{
	struct volume_work *vw = cube_container_of(w, struct volume_work, work);
	struct cube_volume_entry *v = vw->volume;
	struct cube_err err = {0};
	int code = cube_backend_volume_remove(v->service->backend, v->uid, &err);

	cube_domain_enter(v->service->domain);
	work_removed(v, code, &err);
	work_end(vw);
}

void cube_volume_work_remove(struct cube_volume_entry *v)
{
	struct volume_work *vw = v->removing ? NULL : work_new(v, work_remove_run);

	if (v->removing)
		return; /* at a start: a creation that was cut off began it, and it is on disk as well */
	v->removing = vw != NULL;
	if (vw != NULL)
		cube_task_submit(v->service->domain, &vw->work);
	else
		cube_alarm_set(v->service->domain, &v->again, 1000); /* when there is memory */
}

/* ---- Files ---- */

/* Made where a daemon that was killed had not come to it. */
static void work_root_run(struct cube_work *w)
{
	struct volume_work *vw = cube_container_of(w, struct volume_work, work);
	struct cube_volume_entry *v = vw->volume;
	struct cube_root root = {.fd = -1};
	struct cube_err err = {0};
	int code = cube_backend_volume_make(v->service->backend, v->uid, vw->name, NULL, &err);

	if (code == 0)
		code = cube_backend_volume_root(v->service->backend, v->uid, &root, &err);
	vw->done(vw->ctx, code, &root, &err);
	cube_domain_enter(v->service->domain);
	work_end(vw);
}

int cube_volume_root_async(struct cube_volume_entry *v,
			   void (*done)(void *ctx, int code, struct cube_root *root,
					const struct cube_err *err),
			   void *ctx)
{
	struct volume_work *vw = work_new(v, work_root_run);

	if (vw == NULL)
		return -ENOMEM;
	vw->done = done;
	vw->ctx = ctx;
	cube_task_submit(v->service->domain, &vw->work);
	return 0;
}

/* ---- Sizes ---- */

struct look_work {
	struct cube_work work;
	struct cube_service *service;
};

static void look_size(void *ctx, const struct cube_volume *seen)
{
	struct cube_domain *d = ((struct cube_service *)ctx)->domain;

	cube_domain_enter(d);
	cube_list_each (i, &d->volumes) {
		struct cube_volume_entry *v = cube_list_entry(i, struct cube_volume_entry, link);

		if (v->service == ctx && strcmp(v->uid, seen->uid) == 0)
			v->size = seen->size;
	}
	cube_domain_leave(d);
}

static void look_run(struct cube_work *w)
{
	struct look_work *lw = cube_container_of(w, struct look_work, work);
	struct cube_domain *d = lw->service->domain;

	(void)cube_backend_volume_list(lw->service->backend, look_size, lw->service, NULL);
	cube_domain_enter(d);
	cube_task_end(d);
	cube_domain_leave(d);
	cube_free(lw);
}

void cube_volume_look(struct cube_volume_entry *v)
{
	struct cube_service *s = v->service;
	uint64_t now = cube_clock_mono();
	struct look_work *lw;

	if (s->domain->closing ||
	    (s->volumes_looked != 0 && now - s->volumes_looked < LOOKED_NS && v->size != UINT64_MAX))
		return;
	lw = cube_calloc(1, sizeof(*lw));
	if (lw == NULL)
		return; /* the sizes stay as old as they are */
	s->volumes_looked = now;
	lw->work.run = look_run;
	lw->work.key = cube_backend_queue_key(s->backend, lw);
	lw->service = s;
	cube_task_submit(s->domain, &lw->work);
}
