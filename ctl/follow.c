/* SPDX-License-Identifier: Apache-2.0 */
/* One work of the pool for each backend that tells by itself. What is told is a hint: the sandbox is looked at
 * (CUBE_OP_ADOPT), where it says anything that is not known here. */
#include "ctl/follow.h"

#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/log.h"
#include "ctl/ctl_priv.h"
#include "ctl/stock_priv.h"

#define FOLLOW_MS      500u
#define FOLLOW_DOUBLED 6u /* times: half a minute at most */

struct cube_follow {
	struct cube_work work;
	struct cube_service *service;
	struct cube_cancel *cancel;
	struct cube_alarm again;
	unsigned tries; /* since it was last told anything */
	bool lost;      /* and the log says so */
};

/* ---- what is told ---- */

static void follow_anew(struct cube_cube *c)
{
	cube_cube_heard(c, CUBE_IS_GONE); /* which it then is, or is not */
}

static void follow_begun(void *ctx)
{
	struct cube_follow *f = ctx;
	struct cube_service *s = f->service;
	struct cube_domain *d = s->domain;

	cube_domain_enter(d);
	if (f->lost)
		cube_log(CUBE_LOG_INFO, "ctl", "backend '%s' tells again what happens there",
			 s->backend->name);
	f->lost = false;
	f->tries = 0;
	cube_list_each (i, &d->cubes) {
		struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);

		if (c->service == s)
			follow_anew(c);
	}
	cube_list_each (i, &s->stocks)
		cube_list_each (k, &cube_list_entry(i, struct cube_stock, link)->cubes)
			follow_anew(cube_list_entry(k, struct cube_cube, link));
	cube_domain_leave(d);
}

/* Under the lock that the caller gives back. NULL: nobody here has it. */
static struct cube_cube *follow_find(const struct cube_follow *f, const char *id)
{
	struct cube_info info = {.state = CUBE_IS_GONE};

	if (strlen(id) >= sizeof(info.id))
		return NULL;
	memcpy(info.id, id, strlen(id));
	return cube_service_has(f->service, &info);
}

static void follow_changed(void *ctx, const char *id, enum cube_state state)
{
	struct cube_follow *f = ctx;
	struct cube_domain *d = f->service->domain;
	struct cube_cube *c;

	cube_domain_enter(d);
	c = follow_find(f, id);
	if (c != NULL)
		cube_cube_heard(c, state);
	cube_domain_leave(d);
}

static void follow_oom(void *ctx, const char *id)
{
	struct cube_follow *f = ctx;
	struct cube_domain *d = f->service->domain;
	struct cube_cube *c;

	cube_domain_enter(d);
	c = follow_find(f, id);
	if (c != NULL && (c->phase == CUBE_RUNNING || c->phase == CUBE_PAUSED))
		cube_cube_event(c, "oom", "the memory limit has ended something in it");
	cube_domain_leave(d);
}

/* ---- the work ---- */

static void follow_run(struct cube_work *w)
{
	struct cube_follow *f = cube_container_of(w, struct cube_follow, work);
	struct cube_domain *d = f->service->domain;
	const struct cube_news news = {
		.begun = follow_begun, .changed = follow_changed, .oom = follow_oom, .ctx = f};
	struct cube_err err = {0};
	unsigned shift;

	(void)cube_backend_watch(f->service->backend, &news, f->cancel, &err);
	cube_domain_enter(d);
	if (!d->closing) {
		if (!f->lost)
			cube_log(CUBE_LOG_INFO, "ctl", "backend '%s' is not followed: %s",
				 f->service->backend->name, err.text);
		f->lost = true;
		shift = f->tries < FOLLOW_DOUBLED ? f->tries++ : FOLLOW_DOUBLED;
		cube_alarm_set(d, &f->again, FOLLOW_MS << shift);
	}
	cube_task_end(d);
	cube_domain_leave(d);
}

static void follow_again(struct cube_alarm *a)
{
	struct cube_follow *f = cube_container_of(a, struct cube_follow, again);

	if (!f->service->domain->closing)
		cube_task_submit(f->service->domain, &f->work);
}

int cube_follow_begin(struct cube_service *s, struct cube_err *err)
{
	struct cube_follow *f;

	if (!cube_backend_watches(s->backend))
		return 0;
	f = cube_calloc(1, sizeof(*f));
	if (f != NULL)
		f->cancel = cube_cancel_new();
	if (f == NULL || f->cancel == NULL) {
		cube_free(f);
		return cube_fail(err, -ENOMEM, "backend '%s': out of memory", s->backend->name);
	}
	f->work.run = follow_run;
	f->service = s;
	cube_alarm_init(&f->again, follow_again);
	s->follow = f;
	cube_task_submit(s->domain, &f->work);
	return 0;
}

void cube_follow_cancel(struct cube_service *s)
{
	if (s->follow == NULL)
		return;
	cube_alarm_off(&s->follow->again);
	cube_cancel_fire(s->follow->cancel);
}

void cube_follow_free(struct cube_service *s)
{
	struct cube_follow *f = cube_steal(s->follow);

	if (f == NULL)
		return;
	cube_cancel_unref(f->cancel);
	cube_free(f);
}
