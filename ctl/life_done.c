/* SPDX-License-Identifier: Apache-2.0 */
/* What the operations mean for a sandbox: phases, reasons, events, when they have come back from the backend.
 */
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/log.h"
#include "ctl/checkpoint_priv.h"
#include "ctl/ctl_priv.h"
#include "ctl/errlog.h"
#include "ctl/event.h"
#include "ctl/volume_priv.h"

void cube_op_created(struct cube_op *op)
{
	struct cube_cube *c = op->cube;

	cube_free(c->id);
	c->id = cube_strdup(op->id);
	if (c->id == NULL) {
		op->code = cube_fail(&op->err, -ENOMEM, "out of memory");
		return;
	}
	if (c->adopted != NULL && cube_adopt_take(c, &op->info) < 0) {
		op->code = cube_fail(&op->err, -ENOMEM, "out of memory");
		return;
	}
	(void)cube_state_save(c, NULL); /* if it cannot be kept, the mark at the backend finds it */
}

void cube_op_runs(struct cube_op *op)
{
	cube_times_begin(op->cube);
	cube_own(op->cube)->keep =
		cube_own(op->cube)->fork[0] == '\0'; /* whatever becomes of it now, it was there */
	cube_cube_enter(op->cube, CUBE_RUNNING, NULL, "running");
}

void cube_op_create_failed(struct cube_op *op)
{
	struct cube_cube *c = op->cube;

	if (c->domain->closing && op->code == -EINTR)
		return; /* still accepted: the next daemon makes it */
	c->failure = op->err;
	c->doing = NULL;
	cube_use_undo(c);
	cube_errlog_add(c->errors, NULL, "create", &op->err);
	if (!cube_own(c)->unseen) /* else the pool says it */
		cube_errlog_add(c->domain->errors, NULL, "create", &op->err);
	cube_cube_end_jobs(c, CUBE_END_KILLED, &op->err);
	cube_cube_enter(c, CUBE_ERROR, "the creation failed", "error");
}

void cube_op_started(struct cube_op *op)
{
	cube_binds_told(op->cube);
	op->cube->started_wall = cube_clock_wall();
	cube_times_begin(op->cube);
	cube_cube_enter(op->cube, CUBE_RUNNING, NULL, "running");
}

void cube_op_restart_failed(struct cube_op *op)
{
	if (op->halfway)
		cube_cube_enter(op->cube, CUBE_STOPPED, "stopped", NULL);
}

void cube_op_stopped(struct cube_cube *c)
{
	const struct cube_op *op = cube_own(c)->op;

	cube_conn_drop(c);
	cube_cube_end_jobs(c, CUBE_END_KILLED, NULL);
	cube_cube_sessions_anew(c);
	cube_own(c)->paused_mono = cube_own(c)->paused_wall = cube_own(c)->paused_owed = 0;
	cube_cube_enter(c, CUBE_STOPPED, op != NULL && op->reason != NULL ? op->reason : "stopped",
			"stopped");
}

void cube_op_stop_done(struct cube_op *op)
{
	op->cube->doing = NULL;
	cube_op_stopped(op->cube);
}

void cube_op_paused(struct cube_op *op)
{
	op->cube->doing = NULL;
	cube_own(op->cube)->paused_mono = cube_clock_mono();
	cube_own(op->cube)->paused_wall = cube_clock_wall();
	cube_cube_enter(op->cube, CUBE_PAUSED, op->reason != NULL ? op->reason : "paused", "paused");
}

/* ---- Other files ---- */

static void op_files_replaced(struct cube_cube *c)
{
	const struct cube_domain_watcher *w = &c->domain->watcher;

	if (w->files_replaced != NULL)
		w->files_replaced(w->ctx, c);
}

void cube_op_replaced(struct cube_op *op)
{
	struct cube_cube *c = op->cube;
	bool ran = op->from != CUBE_STOPPED;
	const struct cube_checkpoint_entry *from = op->checkpoint;

	cube_conn_drop(c);
	cube_cube_end_jobs(c, CUBE_END_KILLED, NULL);
	cube_cube_sessions_anew(c);
	cube_own(c)->paused_mono = cube_own(c)->paused_wall = cube_own(c)->paused_owed = 0;
	c->generation++;
	if (from == NULL)
		cube_own(c)->checkpoint_base[0] = '\0';
	else if (cube_checkpoint_restored(c, from) < 0)
		cube_log(CUBE_LOG_ERROR, "ctl", "'%s': its template's name: out of memory", c->name);
	cube_binds_told(c);
	if (ran) {
		c->started_wall = cube_clock_wall();
		cube_times_begin(c);
	}
	cube_cube_enter(c, ran ? CUBE_RUNNING : CUBE_STOPPED, ran ? NULL : "stopped", NULL);
	op_files_replaced(c);
	cube_cube_event(c, "restored", from == NULL ? "the template's files" : from->name);
}

/* Who takes it does the rest (checkpoint.c). */
void cube_op_checkpoint_taken(struct cube_op *op)
{
	op->cube->doing = NULL;
}

/* How far it came nobody knows: what is there is looked at, and its files are asked for anew. */
void cube_op_replace_failed(struct cube_op *op)
{
	op_files_replaced(op->cube);
	cube_conn_again(op->cube);
}

/* Told before it runs again: the agent reads this before it looks at its clocks. What passes from here to the end of
 * the resume is told then. */
void cube_op_resuming(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);
	uint64_t now = cube_clock_mono();

	if (c->agent == NULL || own->paused_mono == 0)
		return;
	cube_link_paused(c->agent, (now - own->paused_mono) / 1000000);
	own->paused_mono = now;
}

/* It was paused by an earlier daemon: the agent hears of it over the link that is made now. */
static void op_pause_outlived(struct cube_own *own)
{
	uint64_t now = cube_clock_wall();

	if (own->paused_mono == 0 && own->paused_wall != 0 && now > own->paused_wall)
		own->paused_owed = (now - own->paused_wall) / 1000000;
}

static void op_goes_on(struct cube_cube *c)
{
	cube_op_resuming(c);
	op_pause_outlived(cube_own(c));
	cube_own(c)->paused_mono = cube_own(c)->paused_wall = 0;
}

void cube_op_resumed(struct cube_op *op)
{
	struct cube_cube *c = op->cube;

	op_goes_on(c);
	c->doing = NULL;
	cube_times_begin(c);
	cube_cube_enter(c, CUBE_RUNNING, NULL, "resumed");
}

/* Who waits to use it is told, instead of having it tried over and over. */
void cube_op_resume_failed(struct cube_op *op)
{
	struct cube_own *own = cube_own(op->cube);

	own->resume_failed_mono = cube_clock_mono();
	own->resume_err = op->err;
}

static void op_found_down(struct cube_cube *c, const char *reason)
{
	static const struct cube_err ended = {.text = "the sandbox ended"};
	bool can_start = (c->service->backend->caps & CUBE_CAP_STOP) != 0;

	cube_conn_drop(c);
	cube_cube_end_jobs(c, CUBE_END_LOST, &ended);
	cube_cube_sessions_anew(c);
	c->terminal = !can_start;
	if (cube_times_over(c) && strcmp(reason, "oom") != 0)
		reason = "lifetime";
	cube_cube_enter(c, CUBE_STOPPED, reason[0] != '\0' ? reason : "exited", "stopped");
	if (strcmp(reason, "oom") == 0 || strcmp(reason, "lost") == 0)
		cube_cube_event(c, reason, "the sandbox ended");
}

static void op_found_gone(struct cube_cube *c)
{
	(void)cube_fail(&c->failure, -EHOSTDOWN, "backend '%s' no longer has it", c->service->backend->name);
	cube_conn_drop(c);
	cube_cube_end_jobs(c, CUBE_END_LOST, &c->failure);
	cube_cube_sessions_anew(c);
	c->terminal = true;
	cube_cube_enter(c, CUBE_ERROR, "lost", "lost");
}

static void op_found_running(struct cube_cube *c)
{
	bool paused = c->phase == CUBE_PAUSED;

	cube_times_found(c);
	if (c->phase == CUBE_RUNNING)
		return;
	if (paused)
		op_goes_on(c);
	else
		c->started_wall = cube_clock_wall();
	cube_cube_enter(c, CUBE_RUNNING, NULL, paused ? "resumed" : "running");
}

static void op_found_paused(struct cube_cube *c)
{
	if (c->phase == CUBE_PAUSED)
		return;
	cube_own(c)->paused_mono = cube_clock_mono();
	cube_own(c)->paused_wall = cube_clock_wall();
	cube_cube_enter(c, CUBE_PAUSED, "paused", "paused");
}

void cube_op_inspected(struct cube_op *op)
{
	struct cube_cube *c = op->cube;

	cube_guard_wake(c->domain);
	switch (op->info.state) {
	case CUBE_IS_RUNNING:
		op_found_running(c);
		return; /* the link is made behind this (cube_conn_settle) */
	case CUBE_IS_PAUSED:
		op_found_paused(c);
		return;
	case CUBE_IS_STOPPED:
		if (c->phase != CUBE_STOPPED)
			op_found_down(c, op->info.reason);
		return;
	case CUBE_IS_GONE:
		op_found_gone(c);
		return;
	}
}

void cube_op_inspect_failed(struct cube_op *op)
{
	cube_conn_again(op->cube);
}

void cube_op_destroyed(struct cube_op *op)
{
	cube_cube_finish_gone(op->cube);
}

void cube_op_destroy_failed(struct cube_op *op)
{
	struct cube_own *own = cube_own(op->cube);
	unsigned shift = own->destroy_tries < 6 ? own->destroy_tries++ : 6;

	own->destroy_err = op->err;
	cube_log(CUBE_LOG_WARNING, "ctl", "destroy '%s': %s", op->cube->name, op->err.text);
	cube_errlog_add(op->cube->domain->errors, NULL, "destroy", &op->err);
	if (!op->cube->domain->closing)
		cube_alarm_set(op->cube->domain, &own->destroy_again, 500u << shift);
}
