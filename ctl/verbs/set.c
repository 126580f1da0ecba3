/* SPDX-License-Identifier: Apache-2.0 */
/* set key=value: of the daemon, of a sandbox, of a session. Limits of a sandbox go to its backend. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/num.h"
#include "ctl/ctl_priv.h"
#include "ctl/verbs/verbs.h"

static int set_root_run(struct cube_verb_call *call, struct cube_err *err)
{
	char *value = cube_verb_value("set", call->words[1], err);

	return value == NULL ? -EINVAL : cube_domain_set(call->domain, call->words[1], value, err);
}

const struct cube_verb cube_verb_root_set = {
	.name = "set",
	.args = "key=value",
	.summary = "output_limit, spool_limit, jobs_kept or exit_patience, until the daemon ends",
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

static int limit_cpus(const char *value, struct cube_limits *l)
{
	uint64_t n;

	if (cube_num_milli(value, &n) < 0 || n < 10 || n > 4096000)
		return -EINVAL;
	l->cpus_milli = (uint32_t)n;
	return 0;
}

static int limit_memory(const char *value, struct cube_limits *l)
{
	return cube_num_size(value, &l->memory) < 0 || l->memory < (UINT64_C(4) << 20) ? -EINVAL : 0;
}

static int limit_pids(const char *value, struct cube_limits *l)
{
	uint64_t n;

	if (cube_num_u64(value, 4194304, &n) < 0 || n < 8)
		return -EINVAL;
	l->pids = (uint32_t)n;
	return 0;
}

static const struct set_limit {
	const char *key, *what;
	enum cube_cap cap;
	int (*parse)(const char *value, struct cube_limits *l);
} set_limits[] = {
	{"cpus", "a number from 0.01 to 4096", CUBE_CAP_CPUS, limit_cpus},
	{"memory", "a size of at least 4M", CUBE_CAP_MEMORY, limit_memory},
	{"pids", "a number from 8 to 4194304", CUBE_CAP_PIDS, limit_pids},
};

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

static int set_limit(struct cube_verb_call *call, const struct set_limit *l, const char *value,
		     struct cube_err *err)
{
	struct cube_cube *c = call->object;
	struct cube_limits limits = {0};
	struct limit_work *lw;
	int r = cube_backend_need(c->service->backend, l->cap, err);

	if (r < 0)
		return r;
	if (l->parse(value, &limits) < 0)
		return cube_fail(err, -EINVAL, "%s=%s: %s", l->key, value, l->what);
	if (c->id == NULL || c->phase == CUBE_CREATING || c->phase >= CUBE_ERROR)
		return cube_fail(err, c->phase == CUBE_CREATING ? -EBUSY : -EHOSTDOWN,
				 "set %s: sandbox '%s' is %s", l->key, c->name, cube_phase_name(c->phase));
	lw = cube_calloc(1, sizeof(*lw));
	if (lw == NULL)
		return cube_fail(err, -ENOMEM, "set: out of memory");
	lw->work.run = limit_run;
	lw->work.key = cube_backend_queue_key(c->service->backend, c);
	lw->cube = cube_cube_ref(c);
	lw->limits = limits;
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

	if (value == NULL)
		return -EINVAL;
	for (size_t i = 0; i < CUBE_COUNT(set_limits); i++)
		if (strcmp(call->words[1], set_limits[i].key) == 0)
			return set_limit(call, &set_limits[i], value, err);
	return cube_cube_set(call->object, call->words[1], value, err);
}

const struct cube_verb cube_verb_set = {
	.name = "set",
	.args = "key=value",
	.summary = "resume=yes|no, command_timeout, cpus, memory, pids, label.NAME (empty: none)",
	.min = 1,
	.max = 1,
	.run = set_run,
};
