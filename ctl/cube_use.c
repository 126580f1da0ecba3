/* SPDX-License-Identifier: Apache-2.0 */
/* Using a sandbox: can it run something now, its files, its counters, signals to all of it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "ctl/ctl_priv.h"
#include "ctl/cube.h"
#include "ctl/signal.h"

#define RESUME_TOLD_NS  UINT64_C(1000000000)
#define USAGE_LOOKED_NS UINT64_C(30000000000) /* so long after the last look the counters are kept fresh */

static int use_down(struct cube_cube *c, struct cube_err *err)
{
	const char *why = cube_cube_why(c);

	return cube_fail(err, -EHOSTDOWN, "sandbox '%s' is %s%s%s%s", c->name, cube_cube_is(c),
			 why[0] != '\0' ? ": " : "", why,
			 c->phase == CUBE_STOPPED && !c->terminal ? "; `start` starts it" : "");
}

/* A paused one: it is resumed by who uses it. */
static int use_paused(struct cube_cube *c, bool use, struct cube_err *err)
{
	struct cube_own *own = cube_own(c);

	if (!c->resume)
		return cube_fail(err, -EHOSTDOWN,
				 "sandbox '%s' is paused and has resume=no: only `resume` resumes it",
				 c->name);
	int r = cube_guard_refuse(c, err);
	if (r < 0)
		return r;
	if (own->resume_failed_mono != 0 && cube_clock_mono() - own->resume_failed_mono < RESUME_TOLD_NS)
		return cube_fail(err, -EHOSTDOWN, "sandbox '%s' is paused and cannot be resumed: %s", c->name,
				 own->resume_err.text);
	if (!use)
		return 1;
	if (own->op == NULL) {
		r = cube_op_begin(c, CUBE_OP_RESUME, 0, NULL, err);
		return r < 0 ? r : 1;
	}
	if (own->op->kind != CUBE_OP_RESUME)
		own->wanted = true; /* by the end of what is under way */
	return 1;
}

static int use_running(struct cube_cube *c, bool use)
{
	struct cube_own *own = cube_own(c);

	if (own->op != NULL && own->op->kind == CUBE_OP_PAUSE && use)
		own->wanted = true;
	if (own->op != NULL && own->op->kind != CUBE_OP_ADOPT)
		return 1;
	return cube_conn_ready(c) ? 0 : 1;
}

int cube_cube_usable(struct cube_cube *c, bool use, struct cube_err *err)
{
	const struct cube_own *own = cube_own(c);

	if (c->domain->closing)
		return cube_fail(err, -EHOSTDOWN, "sandbox '%s': the daemon is ending", c->name);
	int r = cube_backend_need(c->service->backend, CUBE_CAP_EXEC, err);
	if (r < 0)
		return r;
	if (own->op != NULL && own->op->kind == CUBE_OP_STOP)
		return cube_fail(err, -EHOSTDOWN, "sandbox '%s' is being stopped", c->name);
	if (own->op != NULL && (own->op->kind == CUBE_OP_START || own->op->kind == CUBE_OP_RESTART))
		return 1;
	switch (c->phase) {
	case CUBE_CREATING:
		return 1;
	case CUBE_RUNNING:
		return use_running(c, use);
	case CUBE_PAUSED:
		return use_paused(c, use, err);
	case CUBE_STOPPED:
	case CUBE_ERROR:
	case CUBE_REMOVED:
		break;
	}
	return use_down(c, err);
}

int cube_cube_files_usable(struct cube_cube *c, struct cube_err *err)
{
	if (c->domain->closing)
		return cube_fail(err, -EHOSTDOWN, "sandbox '%s': the daemon is ending", c->name);
	int r = cube_backend_need(c->service->backend, CUBE_CAP_FILES, err);
	if (r < 0)
		return r;
	if (c->phase == CUBE_CREATING)
		return 1;
	if (c->phase == CUBE_ERROR || c->phase == CUBE_REMOVED || c->id == NULL)
		return use_down(c, err);
	return 0;
}

/* ---- Files ---- */

struct root_work {
	struct cube_work work;
	struct cube_cube *cube;
	char id[CUBE_ID_MAX + 1];
	struct cube_binds binds; /* to be told first */
	void (*done)(void *ctx, int code, struct cube_root *root, const struct cube_err *err);
	void *ctx;
};

static void root_run(struct cube_work *w)
{
	struct root_work *rw = cube_container_of(w, struct root_work, work);
	struct cube_domain *d = rw->cube->domain;
	struct cube_root root = {.fd = -1};
	struct cube_err err = {0};
	bool told = cube_binds_tell(rw->cube->service->backend, rw->id, &rw->binds, NULL, NULL) == 0;
	int code = rw->id[0] == '\0' ? cube_fail(&err, -EHOSTDOWN, "the sandbox is not there")
				     : cube_backend_root(rw->cube->service->backend, rw->id, &root, &err);

	rw->done(rw->ctx, code, &root, &err);
	cube_domain_enter(d);
	if (told)
		cube_binds_told(rw->cube);
	cube_binds_free(&rw->binds);
	cube_cube_unref(rw->cube);
	cube_task_end(d);
	cube_domain_leave(d);
	cube_free(rw);
}

int cube_cube_root_async(struct cube_cube *c,
			 void (*done)(void *ctx, int code, struct cube_root *root,
				      const struct cube_err *err),
			 void *ctx)
{
	struct root_work *rw = cube_calloc(1, sizeof(*rw));

	if (rw == NULL || cube_binds_untold(c, &rw->binds) < 0) {
		cube_free(rw);
		return -ENOMEM;
	}
	rw->work.run = root_run;
	rw->work.key = cube_backend_queue_key(c->service->backend, c);
	rw->cube = cube_cube_ref(c);
	rw->done = done;
	rw->ctx = ctx;
	if (c->id != NULL)
		(void)snprintf(rw->id, sizeof(rw->id), "%s", c->id);
	cube_task_submit(c->domain, &rw->work);
	return 0;
}

/* ---- Signals ---- */

int cube_cube_kill(struct cube_cube *c, int sig, struct cube_err *err)
{
	if (c->phase != CUBE_RUNNING && c->phase != CUBE_PAUSED)
		return use_down(c, err);
	if (c->agent == NULL)
		return cube_fail(err, -EHOSTUNREACH, "sandbox '%s': its agent is not connected; try again",
				 c->name);
	cube_list_each (i, &c->jobs) {
		struct cube_job *j = cube_list_entry(i, struct cube_job, link);

		if (j->state == CUBE_JOB_RUNNING && cube_signal_ends(sig))
			cube_job_own(j)->fatal = sig;
	}
	cube_link_kill_all(c->agent, sig);
	return 0;
}

/* ---- Counters ---- */

struct usage_work {
	struct cube_work work;
	struct cube_cube *cube;
	char id[CUBE_ID_MAX + 1];
};

static void usage_run(struct cube_work *w)
{
	struct usage_work *uw = cube_container_of(w, struct usage_work, work);
	struct cube_cube *c = uw->cube;
	struct cube_domain *d = c->domain;
	struct cube_usage usage;
	int code = cube_backend_usage(c->service->backend, uw->id, &usage, NULL);

	cube_domain_enter(d);
	cube_own(c)->usage_busy = false;
	if (code == 0) {
		c->usage = usage;
		c->usage_wall = cube_clock_wall();
		if (cube_own(c)->sample && !d->closing)
			cube_metrics_add(c);
	}
	cube_own(c)->sample = false;
	cube_cube_unref(c);
	cube_task_end(d);
	cube_domain_leave(d);
	cube_free(uw);
}

static void usage_ask(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);
	struct usage_work *uw;

	if (own->usage_busy || c->id == NULL || c->phase == CUBE_CREATING || c->phase >= CUBE_ERROR)
		return;
	uw = cube_calloc(1, sizeof(*uw));
	if (uw == NULL)
		return; /* the counters stay as old as they are */
	uw->work.run = usage_run;
	uw->work.key = cube_backend_queue_key(c->service->backend, c);
	uw->cube = cube_cube_ref(c);
	(void)snprintf(uw->id, sizeof(uw->id), "%s", c->id);
	own->usage_busy = true;
	cube_task_submit(c->domain, &uw->work);
}

void cube_usage_sample(struct cube_cube *c)
{
	usage_ask(c);
	cube_own(c)->sample = cube_own(c)->usage_busy;
}

void cube_cube_look(struct cube_cube *c)
{
	struct cube_domain_own *d = cube_domain_own(c->domain);
	uint64_t now = cube_clock_mono();
	uint64_t before = cube_own(c)->looked_mono;

	if (c->domain->closing || !(c->service->backend->caps & CUBE_CAP_USAGE))
		return;
	cube_own(c)->looked_mono = now;
	if (before == 0 || now - before > CUBE_USAGE_MS * UINT64_C(1000000))
		usage_ask(c);
	if (!cube_alarm_is_on(&d->usage))
		cube_alarm_set(c->domain, &d->usage, CUBE_USAGE_MS);
}

bool cube_usage_round(struct cube_domain *d)
{
	uint64_t now = cube_clock_mono();
	bool any = false;

	cube_list_each (i, &d->cubes) {
		struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);
		uint64_t looked = cube_own(c)->looked_mono;

		if (looked == 0 || now - looked > USAGE_LOOKED_NS)
			continue;
		any = true;
		usage_ask(c);
	}
	return any && !d->closing;
}
