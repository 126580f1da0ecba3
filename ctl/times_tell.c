/* SPDX-License-Identifier: Apache-2.0 */
/* Who else has a clock is told when the life of a sandbox ends: the agent inside, and a backend that ends sandboxes by
 * itself. */
#include <stdio.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "ctl/ctl_priv.h"
#include "ctl/errlog.h"

#define NS_PER_MS UINT64_C(1000000)

/* A service has a clock of its own. */
struct expire_work {
	struct cube_work work;
	struct cube_cube *cube; /* referenced */
	char id[CUBE_ID_MAX + 1];
	uint64_t wall;
	enum cube_expiry what;
};

static void expire_run(struct cube_work *w)
{
	struct expire_work *e = cube_container_of(w, struct expire_work, work);
	struct cube_domain *d = e->cube->domain;
	struct cube_err err;
	int code = cube_backend_expire(e->cube->service->backend, e->id, e->wall, e->what, &err);

	cube_domain_enter(d);
	if (code < 0 && e->cube->phase != CUBE_REMOVED)
		cube_errlog_add(e->cube->errors, NULL, "lifetime", &err);
	cube_cube_unref(e->cube);
	cube_task_end(d);
	cube_domain_leave(d);
	cube_free(e);
}

void cube_times_tell_backend(struct cube_cube *c)
{
	static const enum cube_expiry whats[CUBE_AT_ENDS] = {
		[CUBE_AT_END_DESTROY] = CUBE_EXPIRY_DESTROY,
		[CUBE_AT_END_STOP] = CUBE_EXPIRY_STOP,
		[CUBE_AT_END_PAUSE] = CUBE_EXPIRY_PAUSE,
	};
	struct expire_work *e;

	if (!cube_backend_expires(c->service->backend) || c->id == NULL || c->phase == CUBE_REMOVED)
		return;
	e = cube_calloc(1, sizeof(*e));
	if (e == NULL)
		return; /* told at the next change */
	e->work.run = expire_run;
	e->work.key = cube_backend_queue_key(c->service->backend, c);
	e->cube = cube_cube_ref(c);
	e->wall = c->times.ends_wall;
	e->what = whats[c->times.at_end];
	(void)snprintf(e->id, sizeof(e->id), "%s", c->id);
	cube_task_submit(c->domain, &e->work);
}

/* Should we not be there then, it ends by itself as far as it can: all that runs. The rest is done by the daemon
 * that finds it so. */
void cube_times_tell(struct cube_cube *c)
{
	const struct cube_times *t = &c->times;
	uint64_t now = cube_clock_wall();

	if (c->agent == NULL)
		return;
	cube_link_deadline(c->agent, t->ends_wall > now ? (t->ends_wall - now) / NS_PER_MS : 0,
			   t->ends_wall == 0                ? CUBE_LINK_END_NONE
			   : t->at_end == CUBE_AT_END_PAUSE ? CUBE_LINK_END_STILL
							    : CUBE_LINK_END_STOP);
}

void cube_times_changed(struct cube_cube *c)
{
	cube_times_tell(c);
	if (c->phase != CUBE_CREATING)
		cube_times_tell_backend(c);
}
