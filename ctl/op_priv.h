/* SPDX-License-Identifier: Apache-2.0 */
/* Within ctl/: operations of the backend on one sandbox (life.c). Under the lock unless said otherwise. */
#ifndef CUBEFS_CTL_OP_PRIV_H
#define CUBEFS_CTL_OP_PRIV_H

#include "ctl/alarm.h"
#include "ctl/bind.h"
#include "ctl/create_priv.h"
#include "ctl/cube.h"
#include "ctl/template.h"

enum cube_op_kind {
	CUBE_OP_CREATE,
	CUBE_OP_TAKE, /* from a pool */
	CUBE_OP_ADOPT,
	CUBE_OP_START,
	CUBE_OP_STOP,
	CUBE_OP_RESTART,
	CUBE_OP_PAUSE,
	CUBE_OP_RESUME,
	CUBE_OP_RESET,
	CUBE_OP_RESTORE,
	CUBE_OP_CHECKPOINT,
	CUBE_OP_DESTROY,
};

struct cube_op {
	struct cube_work work;
	struct cube_cube *cube; /* referenced */
	enum cube_op_kind kind;
	uint32_t grace_s;
	struct cube_cancel *cancel;
	struct cube_life_call *call; /* who waits; NULL: nobody */
	const char *reason;          /* why, if it was not asked for: "idle", "lifetime"; NULL */
	/* taken under the lock for the thread that runs it */
	enum cube_phase from;
	char *id; /* owned */
	struct cube_spec_parts spec;
	struct cube_checkpoint_entry *checkpoint; /* pinned; NULL: it is about none */
	char (*checkpoints)[17];                  /* destroy: ids of all that it has; owned */
	size_t n_checkpoints;
	bool halfway;            /* a restart has stopped it */
	struct cube_binds binds; /* of what starts it: to be told first */
	bool booted;             /* what its template asks for was begun */
	bool waits_boot;         /* linked, and what its template asks for at a boot is under way */
	bool waits_link;         /* done at the backend; the agent has not answered yet */
	/* what came out */
	int code;
	struct cube_err err;
	struct cube_info info;
	struct cube_alarm late; /* the agent does not answer */
};

int cube_op_begin(struct cube_cube *c, enum cube_op_kind kind, uint32_t grace_s, struct cube_life_call *call,
		  struct cube_err *err);
/* boot.c: its template's `start` and `ready`. 0: nothing to wait for; 1: cube_op_booted will be called; negative: it
 * cannot boot. drop: nobody waits any more. check: is @text fit to be `ready`? */
int cube_boot_begin(struct cube_cube *c, struct cube_err *err);
void cube_boot_drop(struct cube_cube *c);
int cube_boot_check(const char *text, size_t len, struct cube_err *err);
/* services.c: may it be a template's `services`? -EINVAL with the line's number; the last line counts where it is
 * @final or ended. Then for a sandbox that is made of it, under its state directory. */
int cube_services_check(const char *text, size_t len, bool final, struct cube_err *err);
int cube_services_start(struct cube_cube *c, const struct cube_template_entry *t, struct cube_err *err);
void cube_op_booted(struct cube_cube *c, int code, const struct cube_err *err);
/* From conn.c: the link that the operation waits for is ready (code 0), or will not be. */
void cube_op_linked(struct cube_cube *c, int code, const struct cube_err *err);
void cube_op_cancel(struct cube_cube *c); /* the destruction comes, or the end of the daemon */
void cube_op_leave_all(struct cube_cube *c,
		       const struct cube_err *err); /* who waits is answered; it goes on */
void cube_op_abandon(struct cube_cube *c);          /* no thread has it any more: closing */
void cube_op_stopped(struct cube_cube *c);          /* nothing runs in it any more */
/* life_done.c: what is so when it has come back. */
void cube_op_create_failed(struct cube_op *op);
void cube_op_created(struct cube_op *op);
void cube_op_destroy_failed(struct cube_op *op);
void cube_op_destroyed(struct cube_op *op);
void cube_op_inspect_failed(struct cube_op *op);
void cube_op_inspected(struct cube_op *op);
void cube_op_paused(struct cube_op *op);
void cube_op_restart_failed(struct cube_op *op);
void cube_op_resume_failed(struct cube_op *op);
void cube_op_resuming(struct cube_cube *c);
void cube_op_resumed(struct cube_op *op);
void cube_op_runs(struct cube_op *op);
void cube_op_started(struct cube_op *op);
void cube_op_stop_done(struct cube_op *op);
void cube_op_checkpoint_taken(struct cube_op *op);
void cube_op_replaced(struct cube_op *op); /* it has other files */
void cube_op_replace_failed(struct cube_op *op);
/* life_run.c: what runs on the pool's thread, without the lock. */
void cube_op_run_create(struct cube_op *op);
void cube_op_run_take(struct cube_op *op);
void cube_op_run_inspect(struct cube_op *op);
void cube_op_run_start(struct cube_op *op);
void cube_op_run_stop(struct cube_op *op);
void cube_op_run_restart(struct cube_op *op);
void cube_op_run_pause(struct cube_op *op);
void cube_op_run_resume(struct cube_op *op);
void cube_op_run_reset(struct cube_op *op);
void cube_op_run_restore(struct cube_op *op);
void cube_op_run_checkpoint(struct cube_op *op);
void cube_op_run_destroy(struct cube_op *op);
void cube_op_run_undo(struct cube_op *op);
const char *cube_op_name(enum cube_op_kind kind);
/* Its backend says that it is in @state: looked at, if not now then after what is under way, unless that is known. */
void cube_cube_heard(struct cube_cube *c, enum cube_state state);

#endif
