/* SPDX-License-Identifier: Apache-2.0 */
/* set key=value: of the daemon, of a sandbox, of a session. Limits of a sandbox go to its backend. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"
#include "ctl/ports/door.h"
#include "ctl/verbs/verbs.h"

static int set_root_run(struct cube_verb_call *call, struct cube_err *err)
{
	char *value = cube_verb_value("set", call->words[1], err);

	if (value == NULL)
		return -EINVAL;
	int r = cube_domain_set(call->domain, call->words[1], value, err);
	if (r < 0)
		return r;
	cube_guard_look(call->domain);
	cube_doors_again(call->domain);
	return r;
}

const struct cube_verb cube_verb_root_set = {
	.name = "set",
	.args = "key=value",
	.summary = "one of the settings above (cubefs.conf(5)), until the daemon ends",
	.min = 1,
	.max = 1,
	.run = set_root_run,
};

static int set_session_run(struct cube_verb_call *call, struct cube_err *err)
{
	char *value = cube_verb_value("set", call->words[1], err);

	return value == NULL ? -EINVAL : cube_session_set(call->object, call->words[1], value, err);
}

const struct cube_verb cube_verb_session_set = {
	.name = "set",
	.args = "key=value",
	.summary = "patience=SECONDS of a close, timeout=SECONDS of a command; 0: for ever",
	.min = 1,
	.max = 1,
	.run = set_session_run,
};

/* ---- Limits ---- */

struct limit_work {
	struct cube_work work;
	struct cube_verb_call *call; /* NULL: who asked has gone */
	struct cube_cube *cube;
	struct cube_limits limits;
	char id[CUBE_ID_MAX + 1];
	int code;
	struct cube_err err;
};

static void limit_take(struct cube_cube *c, const struct cube_limits *l)
{
	if (l->cpus_milli != 0)
		c->limits.cpus_milli = l->cpus_milli;
	if (l->memory != 0)
		c->limits.memory = l->memory;
	if (l->pids != 0)
		c->limits.pids = l->pids;
	if (l->disk != 0)
		c->limits.disk = l->disk;
}

static void limit_run(struct cube_work *w)
{
	struct limit_work *lw = cube_container_of(w, struct limit_work, work);
	struct cube_domain *d = lw->cube->domain;

	lw->code = cube_backend_limit(lw->cube->service->backend, lw->id, &lw->limits, &lw->err);
	cube_domain_enter(d);
	if (lw->code == 0 && lw->cube->phase != CUBE_REMOVED) {
		limit_take(lw->cube, &lw->limits);
		lw->code = cube_state_save(lw->cube, &lw->err);
	}
	if (lw->call != NULL) {
		lw->call->state = NULL;
		lw->call->err = lw->err;
		cube_verb_finish(lw->call, lw->code);
	}
	cube_cube_unref(lw->cube);
	cube_task_end(d);
	cube_domain_leave(d);
	cube_free(lw);
}

static void limit_cancel(struct cube_verb_call *call)
{
	struct limit_work *lw = cube_steal(call->state);

	lw->call = NULL;
}

static int set_limit(struct cube_verb_call *call, const struct cube_limits *limits, struct cube_err *err)
{
	struct cube_cube *c = call->object;
	struct limit_work *lw;

	if (c->id == NULL || c->phase == CUBE_CREATING || c->phase >= CUBE_ERROR)
		return cube_fail(err, c->phase == CUBE_CREATING ? -EBUSY : -EHOSTDOWN,
				 "set %s: sandbox '%s' is %s", call->words[1], c->name,
				 cube_phase_name(c->phase));
	lw = cube_calloc(1, sizeof(*lw));
	if (lw == NULL)
		return cube_fail(err, -ENOMEM, "set: out of memory");
	lw->work.run = limit_run;
	lw->work.key = cube_backend_queue_key(c->service->backend, c);
	lw->cube = cube_cube_ref(c);
	lw->limits = *limits;
	lw->call = call;
	(void)snprintf(lw->id, sizeof(lw->id), "%s", c->id);
	call->state = lw;
	call->cancel = limit_cancel;
	cube_task_submit(call->domain, &lw->work);
	return 1;
}

static int set_run(struct cube_verb_call *call, struct cube_err *err)
{
	char *value = cube_verb_value("set", call->words[1], err);
	struct cube_cube *c = call->object;
	struct cube_limits limits = {0};
	enum cube_cap cap;

	if (value == NULL)
		return -EINVAL;
	int r = cube_keys_limit(call->words[1], value, &limits, &cap, err);
	if (r == 0)
		return cube_cube_set(c, call->words[1], value, err);
	if (r == 1)
		r = cube_backend_need(c->service->backend, cap, err);
	return r < 0 ? r : set_limit(call, &limits, err);
}

const struct cube_verb cube_verb_set = {
	.name = "set",
	.args = "key=value",
	.summary = "resume, idle, idle_background, lifetime, at_end, command_timeout, cpus, memory, pids, "
		   "label.NAME",
	.min = 1,
	.max = 1,
	.run = set_run,
};
