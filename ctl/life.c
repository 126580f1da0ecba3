/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a sandbox: one table of operations, one at a time, destruction before all.
 *
 * An operation begins under the lock, works at the backend on a pool thread (life_run.c), comes back under
 * the lock, and may then wait for the agent's link before it is finished. What is queued behind it (anything
 * behind an inspection, the destruction behind anything) begins then. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/log.h"
#include "ctl/checkpoint_priv.h"
#include "ctl/ctl_priv.h"
#include "ctl/errlog.h"
#include "ctl/event.h"

#define AGENT_MS 60000u /* so long an operation waits for the agent's first word */

#define IN(phase) (1u << (phase))

struct op_def {
	const char *name;
	bool quiet;                       /* not shown as `doing` */
	uint32_t from;                    /* phases it begins in */
	uint32_t already;                 /* phases in which there is nothing to do */
	uint32_t cap;                     /* capability; 0: none */
	bool replaces;                    /* its files: what runs ends, and no link outlives that */
	bool boots;                       /* what its template asks for at a boot is begun */
	bool links;                       /* where it runs then: ends when the agent's link is ready */
	void (*run)(struct cube_op *op);  /* pool thread, no lock */
	void (*done)(struct cube_op *op); /* it succeeded at the backend */
	void (*failed)(struct cube_op *op);
	void (*linked)(struct cube_op *op);
};

static const struct op_def op_defs[] = {
	[CUBE_OP_CREATE] = {.name = "create",
			    .from = IN(CUBE_CREATING),
			    .boots = true,
			    .links = true,
			    .run = cube_op_run_create,
			    .done = cube_op_created,
			    .failed = cube_op_create_failed,
			    .linked = cube_op_runs},
	[CUBE_OP_TAKE] = {.name = "create", /* for who waits: a quick one */
			  .from = IN(CUBE_CREATING),
			  .run = cube_op_run_take,
			  .done = cube_op_runs,
			  .failed = cube_op_create_failed},
	[CUBE_OP_ADOPT] = {.name = "inspect",
			   .quiet = true,
			   .from = UINT32_MAX,
			   .run = cube_op_run_inspect,
			   .done = cube_op_inspected,
			   .failed = cube_op_inspect_failed},
	[CUBE_OP_START] = {.name = "start",
			   .from = IN(CUBE_STOPPED),
			   .already = IN(CUBE_RUNNING),
			   .cap = CUBE_CAP_STOP,
			   .boots = true,
			   .links = true,
			   .run = cube_op_run_start,
			   .done = cube_op_started},
	[CUBE_OP_STOP] = {.name = "stop",
			  .from = IN(CUBE_RUNNING) | IN(CUBE_PAUSED),
			  .already = IN(CUBE_STOPPED),
			  .cap = CUBE_CAP_STOP,
			  .run = cube_op_run_stop,
			  .done = cube_op_stop_done},
	[CUBE_OP_RESTART] = {.name = "restart",
			     .from = IN(CUBE_RUNNING) | IN(CUBE_PAUSED) | IN(CUBE_STOPPED),
			     .cap = CUBE_CAP_STOP,
			     .boots = true,
			     .links = true,
			     .run = cube_op_run_restart,
			     .done = cube_op_started,
			     .failed = cube_op_restart_failed},
	[CUBE_OP_PAUSE] = {.name = "pause",
			   .from = IN(CUBE_RUNNING),
			   .already = IN(CUBE_PAUSED),
			   .cap = CUBE_CAP_PAUSE,
			   .run = cube_op_run_pause,
			   .done = cube_op_paused},
	[CUBE_OP_RESUME] = {.name = "resume",
			    .from = IN(CUBE_PAUSED),
			    .already = IN(CUBE_RUNNING),
			    .cap = CUBE_CAP_PAUSE,
			    .links = true,
			    .run = cube_op_run_resume,
			    .done = cube_op_resumed,
			    .failed = cube_op_resume_failed},
	[CUBE_OP_RESET] = {.name = "reset",
			   .from = IN(CUBE_RUNNING) | IN(CUBE_PAUSED) | IN(CUBE_STOPPED),
			   .cap = CUBE_CAP_RESET,
			   .replaces = true,
			   .boots = true,
			   .links = true,
			   .run = cube_op_run_reset,
			   .done = cube_op_replaced,
			   .failed = cube_op_replace_failed},
	[CUBE_OP_RESTORE] = {.name = "restore",
			     .from = IN(CUBE_RUNNING) | IN(CUBE_PAUSED) | IN(CUBE_STOPPED),
			     .cap = CUBE_CAP_CHECKPOINTS,
			     .replaces = true,
			     .boots = true,
			     .links = true,
			     .run = cube_op_run_restore,
			     .done = cube_op_replaced,
			     .failed = cube_op_replace_failed},
	[CUBE_OP_CHECKPOINT] = {.name = "checkpoint",
				.from = IN(CUBE_RUNNING) | IN(CUBE_PAUSED) | IN(CUBE_STOPPED),
				.cap = CUBE_CAP_CHECKPOINTS,
				.run = cube_op_run_checkpoint,
				.done = cube_op_checkpoint_taken},
	[CUBE_OP_DESTROY] = {.name = "destroy",
			     .from = UINT32_MAX,
			     .run = cube_op_run_destroy,
			     .done = cube_op_destroyed,
			     .failed = cube_op_destroy_failed},
};

const char *cube_op_name(enum cube_op_kind kind)
{
	return op_defs[kind].name;
}

/* ---- The object ---- */

static void op_free(struct cube_op *op)
{
	cube_alarm_off(&op->late);
	cube_cancel_unref(op->cancel);
	cube_spec_done(&op->spec);
	cube_binds_free(&op->binds);
	cube_free(op->id);
	cube_free(op->checkpoints);
	cube_checkpoint_unpin(op->checkpoint);
	cube_cube_unref(op->cube);
	cube_free(op);
}

static void op_late(struct cube_alarm *a)
{
	struct cube_op *op = cube_container_of(a, struct cube_op, late);
	struct cube_err err;

	(void)cube_fail(&err, -ETIMEDOUT, "its agent does not answer");
	cube_op_linked(op->cube, -ETIMEDOUT, &err);
}

static struct cube_op *op_new(struct cube_cube *c, enum cube_op_kind kind, uint32_t grace_s,
			      struct cube_life_call *call)
{
	struct cube_op *op = cube_calloc(1, sizeof(*op));

	if (op == NULL)
		return NULL;
	op->cube = cube_cube_ref(c);
	op->kind = kind;
	op->grace_s = grace_s;
	op->call = call;
	cube_alarm_init(&op->late, op_late);
	op->cancel = cube_cancel_new();
	if (op->cancel == NULL) {
		op_free(op);
		return NULL;
	}
	op->checkpoint = call != NULL ? call->checkpoint : kind == CUBE_OP_CREATE ? cube_own(c)->from : NULL;
	if (op->checkpoint != NULL)
		cube_checkpoint_pin(op->checkpoint);
	return op;
}

static void op_answer(struct cube_op *op, int code, const struct cube_err *err)
{
	struct cube_life_call *call = op->call;

	op->call = NULL;
	if (call != NULL && !call->cancelled)
		call->done(call, code, err);
}

/* ---- Beginning ---- */

static int op_refuse(const struct cube_cube *c, const struct op_def *def, struct cube_err *err)
{
	bool down = c->phase == CUBE_STOPPED || c->phase >= CUBE_ERROR;
	const char *why = down ? cube_cube_why(c) : "";

	if (c->phase == CUBE_CREATING)
		return cube_fail(err, -EBUSY, "%s: sandbox '%s' is being created", def->name, c->name);
	return cube_fail(err, down ? -EHOSTDOWN : -EINVAL, "%s: sandbox '%s' is %s%s%s", def->name, c->name,
			 cube_cube_is(c), why[0] != '\0' ? ": " : "", why);
}

/* 0: it can begin; 1: there is nothing to do. */
static int op_check(const struct cube_cube *c, enum cube_op_kind kind, struct cube_err *err)
{
	const struct op_def *def = &op_defs[kind];

	if (def->cap != 0) {
		int r = cube_backend_need(c->service->backend, (enum cube_cap)def->cap, err);

		if (r < 0)
			return r;
	}
	if (def->already & IN(c->phase))
		return 1;
	if (!(def->from & IN(c->phase)))
		return op_refuse(c, def, err);
	if (c->terminal && kind != CUBE_OP_DESTROY && kind != CUBE_OP_ADOPT)
		return cube_fail(err, -EHOSTDOWN, "%s: sandbox '%s' cannot run again: %s", def->name, c->name,
				 c->reason);
	if (def->replaces && !cube_list_empty(&cube_own((struct cube_cube *)(uintptr_t)c)->transfers))
		return cube_fail(err, -EBUSY, "%s: sandbox '%s': a put or get is under way", def->name,
				 c->name);
	return 0;
}

static void op_work(struct cube_work *w);

static bool op_is_creation(enum cube_op_kind kind)
{
	return kind == CUBE_OP_CREATE || kind == CUBE_OP_TAKE;
}

/* What the thread needs, taken under the lock. */
static int op_load(struct cube_op *op)
{
	struct cube_cube *c = op->cube;

	op->from = c->phase;
	if (c->id != NULL && op->id == NULL) {
		op->id = cube_strdup(c->id);
		if (op->id == NULL)
			return -ENOMEM;
	}
	if (op_defs[op->kind].boots && !op_is_creation(op->kind) && cube_binds_untold(c, &op->binds) < 0)
		return -ENOMEM;
	if (op->kind == CUBE_OP_DESTROY && c->service->backend->caps & CUBE_CAP_CHECKPOINTS) {
		op->checkpoints = cube_checkpoints_ids(c, &op->n_checkpoints);
		if (op->checkpoints == NULL && op->n_checkpoints > 0)
			return -ENOMEM;
	}
	return op_is_creation(op->kind) ? cube_spec_make(c, &op->spec) : 0;
}

static void op_submit(struct cube_op *op)
{
	op->work.run = op_work;
	op->work.key = cube_backend_queue_key(op->cube->service->backend, op->cube);
	cube_task_submit(op->cube->domain, &op->work);
}

static int op_launch(struct cube_op *op, struct cube_err *err)
{
	struct cube_cube *c = op->cube;
	struct cube_err lost;

	if (op_load(op) < 0)
		return cube_fail(err, -ENOMEM, "%s: sandbox '%s': out of memory", cube_op_name(op->kind),
				 c->name);
	cube_own(c)->op = op;
	/* An attempt to reach the agent may hold the backend's queue for long. */
	if (op->kind == CUBE_OP_DESTROY || op_defs[op->kind].replaces || !cube_conn_ready(c))
		cube_conn_drop(c);
	if (op->kind == CUBE_OP_RESUME)
		cube_op_resuming(c);
	if (!op_defs[op->kind].quiet) {
		c->doing = cube_op_name(op->kind);
		if (op->kind != CUBE_OP_DESTROY && !op_is_creation(op->kind) && cube_state_save(c, &lost) < 0)
			cube_log(CUBE_LOG_ERROR, "ctl", "%s", lost.text);
		cube_cube_changed(c);
	}
	op_submit(op);
	return 0;
}

/* The destruction: what is under way is told to hurry, what waited is refused. */
static int op_begin_destroy(struct cube_cube *c)
{
	static const struct cube_err gone = {.code = -EHOSTDOWN, .text = "the sandbox is being destroyed"};
	struct cube_own *own = cube_own(c);
	struct cube_op *op = op_new(c, CUBE_OP_DESTROY, 0, NULL);

	if (op == NULL || (own->op == NULL && op_launch(op, NULL) < 0)) {
		if (op != NULL)
			op_free(op);
		cube_alarm_set(c->domain, &own->destroy_again, 1000); /* when there is memory */
		return -ENOMEM;
	}
	if (own->op == op)
		return 0;
	if (own->next_op != NULL) {
		op_answer(own->next_op, gone.code, &gone);
		op_free(own->next_op);
	}
	own->next_op = op;
	cube_op_cancel(c);
	return 0;
}

int cube_op_begin(struct cube_cube *c, enum cube_op_kind kind, uint32_t grace_s, struct cube_life_call *call,
		  struct cube_err *err)
{
	struct cube_own *own = cube_own(c);
	bool behind = own->op != NULL && own->op->kind == CUBE_OP_ADOPT && kind != CUBE_OP_ADOPT;

	if (c->domain->closing)
		return cube_fail(err, -EHOSTDOWN, "sandbox '%s': the daemon is ending", c->name);
	if (kind == CUBE_OP_DESTROY)
		return op_begin_destroy(c);
	if ((own->op != NULL && !behind) || own->next_op != NULL)
		return cube_fail(err, -EBUSY, "sandbox '%s': %s is under way", c->name,
				 cube_op_name(own->next_op != NULL ? own->next_op->kind : own->op->kind));
	int r = behind ? 0 : op_check(c, kind, err);
	if (r == 1 && call != NULL)
		call->done(call, 0, NULL);
	if (r != 0)
		return r < 0 ? r : 0;

	struct cube_op *op = op_new(c, kind, grace_s, call);

	if (op == NULL)
		return cube_fail(err, -ENOMEM, "%s: sandbox '%s': out of memory", cube_op_name(kind),
				 c->name);
	if (behind) {
		own->next_op = op;
		return 0;
	}
	r = op_launch(op, err);
	if (r < 0)
		op_free(op);
	return r;
}

int cube_cube_life(struct cube_cube *c, struct cube_life_call *call, struct cube_err *err)
{
	static const enum cube_op_kind kinds[] = {
		[CUBE_LIFE_START] = CUBE_OP_START,     [CUBE_LIFE_STOP] = CUBE_OP_STOP,
		[CUBE_LIFE_RESTART] = CUBE_OP_RESTART, [CUBE_LIFE_PAUSE] = CUBE_OP_PAUSE,
		[CUBE_LIFE_RESUME] = CUBE_OP_RESUME,   [CUBE_LIFE_RESET] = CUBE_OP_RESET,
		[CUBE_LIFE_RESTORE] = CUBE_OP_RESTORE, [CUBE_LIFE_CHECKPOINT] = CUBE_OP_CHECKPOINT,
	};

	return cube_op_begin(c, kinds[call->what], call->grace_s, call, err);
}

void cube_cube_life_leave(struct cube_cube *c, struct cube_life_call *call)
{
	struct cube_own *own = cube_own(c);

	if (own->op != NULL && own->op->call == call)
		own->op->call = NULL;
	if (own->next_op != NULL && own->next_op->call == call)
		own->next_op->call = NULL;
}

void cube_op_cancel(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);

	if (own->op == NULL)
		return;
	cube_cancel_fire(own->op->cancel);
	if (own->op->waits_link || own->op->waits_boot) {
		static const struct cube_err cancelled = {.code = -EINTR, .text = "it was cancelled"};

		cube_conn_drop(c);
		cube_op_linked(c, -EINTR, &cancelled);
	}
}

void cube_op_leave_all(struct cube_cube *c, const struct cube_err *err)
{
	struct cube_own *own = cube_own(c);

	if (own->op != NULL)
		op_answer(own->op, err->code, err);
	if (own->next_op != NULL)
		op_answer(own->next_op, err->code, err);
}

void cube_op_abandon(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);

	cube_boot_drop(c);
	if (own->next_op != NULL)
		op_free(cube_steal(own->next_op));
	if (own->op != NULL)
		op_free(cube_steal(own->op));
}

/* ---- What others did ---- */

static bool op_fits(const struct cube_cube *c, enum cube_state state)
{
	return (c->phase == CUBE_RUNNING && state == CUBE_IS_RUNNING) ||
	       (c->phase == CUBE_PAUSED && state == CUBE_IS_PAUSED) ||
	       (c->phase == CUBE_STOPPED && state == CUBE_IS_STOPPED);
}

void cube_cube_heard(struct cube_cube *c, enum cube_state state)
{
	struct cube_own *own = cube_own(c);

	own->heard = own->op != NULL;
	own->heard_state = state;
	if (own->op != NULL || c->terminal || op_fits(c, state))
		return;
	if (c->phase == CUBE_RUNNING || c->phase == CUBE_PAUSED || c->phase == CUBE_STOPPED)
		cube_cube_inspect(c);
}

/* ---- Ending ---- */

static void op_next(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);
	struct cube_op *op = own->next_op;
	struct cube_err err = {0};
	int r;

	own->next_op = NULL;
	if (op == NULL)
		return;
	r = c->domain->closing ? cube_fail(&err, -EHOSTDOWN, "the daemon is ending")
			       : op_check(c, op->kind, &err);
	if (r == 0)
		r = op_launch(op, &err);
	if (own->op == op)
		return;
	if (op->kind == CUBE_OP_DESTROY && !c->domain->closing)
		cube_alarm_set(c->domain, &own->destroy_again, 1000);
	op_answer(op, r < 0 ? r : 0, r < 0 ? &err : NULL);
	op_free(op);
}

/* Use came while it was being paused: it runs again at once. */
static void op_wanted(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);
	bool wanted = own->wanted;

	own->wanted = false;
	if (wanted && own->op == NULL && c->phase == CUBE_PAUSED && c->resume)
		(void)cube_op_begin(c, CUBE_OP_RESUME, 0, NULL, NULL);
}

static void op_finish(struct cube_op *op)
{
	struct cube_cube *c = cube_cube_ref(op->cube);
	struct cube_own *own = cube_own(c);

	own->op = NULL;
	if (!op_defs[op->kind].quiet) {
		c->doing = NULL;
		if (c->phase != CUBE_REMOVED && op->code < 0)
			(void)cube_state_save(
				c, NULL); /* it is no longer under way; the next save says so as well */
	}
	if (op->code < 0 && op->reason != NULL)
		cube_times_failed(op);
	op_answer(op, op->code, op->code < 0 ? &op->err : NULL);
	op_free(op);
	op_next(c);
	op_wanted(c);
	if (own->op == NULL && own->heard)
		cube_cube_heard(c, own->heard_state);
	if (own->op == NULL)
		cube_times_look(c);
	cube_cube_changed(c);
	cube_conn_settle(c);
	cube_jobs_kick(c);
	cube_cube_unref(c);
}

static void op_wait_link(struct cube_op *op)
{
	struct cube_cube *c = op->cube;

	op->waits_link = true;
	if (cube_conn_ready(c)) {
		cube_op_linked(c, 0, NULL);
		return;
	}
	cube_alarm_set(c->domain, &op->late, AGENT_MS);
	if (cube_own(c)->conn != NULL)
		return;

	int r = cube_conn_begin(c, &op->err);

	if (r < 0) {
		struct cube_err err = op->err;

		cube_op_linked(c, r, &err);
	}
}

static void op_undo_work(struct cube_work *w);

/* What was made is taken away again, and then the creation has failed. */
static void op_undo(struct cube_op *op)
{
	op->work.run = op_undo_work;
	cube_task_submit(op->cube->domain, &op->work);
}

static void op_back(struct cube_op *op)
{
	const struct op_def *def = &op_defs[op->kind];
	struct cube_cube *c = op->cube;
	bool superseded = c->phase == CUBE_REMOVED && op->kind != CUBE_OP_DESTROY;

	if (superseded) {
		/* The destruction waits. It must know what was made. */
		if (op->kind == CUBE_OP_CREATE && op->code == 0 && c->id == NULL)
			c->id = cube_steal(op->id);
		if (op->code == 0)
			op->code = cube_fail(&op->err, -EHOSTDOWN, "sandbox '%s' was destroyed", c->name);
		op_finish(op);
		return;
	}
	if (op->code < 0) {
		if (def->failed != NULL)
			def->failed(op);
		op_finish(op);
		return;
	}
	def->done(op);
	if (op->code < 0 && op->kind == CUBE_OP_CREATE) {
		op_undo(op);
		return;
	}
	if (op->code == 0 && def->links && c->phase != CUBE_STOPPED &&
	    c->service->backend->caps & CUBE_CAP_EXEC)
		op_wait_link(op);
	else {
		if (op->code == 0 && def->linked != NULL)
			def->linked(op);
		op_finish(op);
	}
}

static void op_work(struct cube_work *w)
{
	struct cube_op *op = cube_container_of(w, struct cube_op, work);
	struct cube_domain *d = op->cube->domain;

	op_defs[op->kind].run(op);
	cube_domain_enter(d);
	op_back(op);
	cube_task_end(d);
	cube_domain_leave(d);
}

/* ---- The agent ---- */

static void op_undo_work(struct cube_work *w)
{
	struct cube_op *op = cube_container_of(w, struct cube_op, work);
	struct cube_domain *d = op->cube->domain;

	cube_op_run_undo(op);
	cube_domain_enter(d);
	cube_free(cube_steal(op->cube->id));
	if (op->cube->phase != CUBE_REMOVED)
		cube_op_create_failed(op);
	op_finish(op);
	cube_task_end(d);
	cube_domain_leave(d);
}

/* What its template asks for comes first: true, it is under way. */
static bool op_boot(struct cube_op *op)
{
	struct cube_cube *c = op->cube;
	int r;

	op->booted = true;
	if (!op_defs[op->kind].boots || c->phase == CUBE_REMOVED)
		return false;
	op->waits_boot = true;
	r = cube_boot_begin(c, &op->err);
	if (r == 1) {
		cube_alarm_set(c->domain, &op->late, (c->domain->ready_timeout_s + 30) * UINT64_C(1000));
		return true;
	}
	op->code = r;
	return false;
}

void cube_op_booted(struct cube_cube *c, int code, const struct cube_err *err)
{
	struct cube_op *op = cube_own(c)->op;

	if (op == NULL || !op->waits_boot)
		return;
	op->waits_link = true;
	cube_op_linked(c, code, err);
}

void cube_op_linked(struct cube_cube *c, int code, const struct cube_err *err)
{
	struct cube_op *op = cube_own(c)->op;
	const struct op_def *def;
	struct cube_err why;

	if (op == NULL || (!op->waits_link && !(op->waits_boot && code < 0)))
		return;
	def = &op_defs[op->kind];
	op->waits_link = false;
	cube_alarm_off(&op->late);
	if (code == 0 && !op->booted && op_boot(op))
		return;
	op->waits_boot = false;
	cube_boot_drop(c);
	if (code == 0 && op->code < 0) { /* what it should do at its boot could not be begun */
		code = op->code;
		why = op->err;
		err = &why;
	}
	if (code == 0) {
		if (def->linked != NULL && c->phase != CUBE_REMOVED)
			def->linked(op);
		op_finish(op);
		return;
	}
	op->code = code;
	op->err = *err;
	cube_conn_drop(c);
	if (op->kind == CUBE_OP_CREATE && c->phase != CUBE_REMOVED && !c->domain->closing) {
		op_undo(op);
		return;
	}
	op_finish(op);
}
