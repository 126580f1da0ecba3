/* SPDX-License-Identifier: Apache-2.0 */
/* The operations' calls at the backend: on a pool thread, without the lock. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/log.h"
#include "ctl/checkpoint.h"
#include "ctl/ctl_priv.h"
#include "ctl/volume_priv.h"

static struct cube_backend *op_backend(struct cube_op *op)
{
	return op->cube->service->backend;
}

/* The intention is on the medium before anything exists. */
static void run_create_sync(struct cube_cube *c)
{
	cube_domain_enter(c->domain);
	cube_own(c)->sync_due = false;
	cube_domain_leave(c->domain);
	cube_state_sync(c->dir_fd);
}

void cube_op_run_create(struct cube_op *op)
{
	char *id = NULL;

	if (!op_backend(op)->ops->beside_state)
		run_create_sync(op->cube);
	cube_output_prepare(op->cube);
	if (op->cube->adopted != NULL) {
		op->code = cube_adopt_run(op);
		return;
	}
	op->code = cube_use_make(op->cube->service, &op->spec, op->cancel, &op->err);
	if (op->code == 0)
		op->code = cube_backend_create(op_backend(op), &op->spec.spec, op->cancel, &id, &op->err);
	if (op->code < 0)
		return;
	cube_free(op->id);
	op->id = id;
}

/* It runs already: what is left is its name. */
void cube_op_run_take(struct cube_op *op)
{
	if (op_backend(op)->caps & CUBE_CAP_RENAME)
		op->code = cube_backend_rename(op_backend(op), op->id, op->spec.spec.name, &op->err);
}

void cube_op_run_inspect(struct cube_op *op)
{
	if (op->id == NULL) {
		op->info.state = CUBE_IS_GONE;
		return;
	}
	op->code = cube_backend_inspect(op_backend(op), op->id, &op->info, &op->err);
	if (op->code == -ENOENT) {
		op->code = 0;
		op->info.state = CUBE_IS_GONE;
	}
}

/* What cannot be had any more is said, not left out. */
void cube_op_run_start(struct cube_op *op)
{
	op->code = cube_binds_tell(op_backend(op), op->id, &op->binds, op->cancel, &op->err);
	if (op->code == 0)
		op->code = cube_backend_start(op_backend(op), op->id, op->cancel, &op->err);
}

/* A frozen process takes no TERM, so a paused sandbox runs again to be stopped. */
void cube_op_run_stop(struct cube_op *op)
{
	if (op->from == CUBE_PAUSED)
		(void)cube_backend_resume(op_backend(op), op->id, op->cancel,
					  NULL); /* the stop says what is wrong */
	op->code = cube_backend_stop(op_backend(op), op->id, op->grace_s, op->cancel, &op->err);
	if (op->code == 0) /* how its jobs ended */
		cube_conn_drain(op->cube, op->cancel);
}

void cube_op_run_restart(struct cube_op *op)
{
	if (op->from != CUBE_STOPPED) {
		cube_op_run_stop(op);
		if (op->code < 0)
			return;
		cube_domain_enter(op->cube->domain);
		cube_op_stopped(op->cube);
		cube_domain_leave(op->cube->domain);
	}
	op->halfway = true;
	cube_op_run_start(op);
}

void cube_op_run_pause(struct cube_op *op)
{
	op->code = cube_backend_pause(op_backend(op), op->id, op->cancel, &op->err);
}

void cube_op_run_resume(struct cube_op *op)
{
	op->code = cube_backend_resume(op_backend(op), op->id, op->cancel, &op->err);
}

/* ---- Other files ---- */

/* The backend ends what runs, and where something ran it starts it again. */
static bool run_replace_begin(struct cube_op *op)
{
	op->code = cube_binds_tell(op_backend(op), op->id, &op->binds, op->cancel, &op->err);
	return op->code == 0;
}

void cube_op_run_reset(struct cube_op *op)
{
	if (run_replace_begin(op))
		op->code = cube_backend_reset(op_backend(op), op->id, op->cancel, &op->err);
}

void cube_op_run_restore(struct cube_op *op)
{
	if (run_replace_begin(op))
		op->code = cube_backend_restore(op_backend(op), op->id, op->checkpoint->id, op->cancel,
						&op->err);
}

void cube_op_run_checkpoint(struct cube_op *op)
{
	const struct cube_checkpoint_entry *e = op->checkpoint;
	const char *volumes[CUBE_MOUNTS_MAX];
	struct cube_take take = {.cp = e->id, .files = !e->no_files, .volumes = volumes};
	uint32_t still_ms;

	for (; take.n_volumes < e->n_volumes && take.n_volumes < CUBE_MOUNTS_MAX; take.n_volumes++)
		volumes[take.n_volumes] = e->volumes[take.n_volumes];
	op->code = cube_backend_checkpoint(op_backend(op), op->id, &take, op->cancel, &still_ms, &op->err);
	if (op->code == 0)
		cube_log(CUBE_LOG_DEBUG, "ctl", "checkpoint %s: stood still for %u ms", op->checkpoint->id,
			 still_ms);
}

/* ---- Destruction ---- */

/* What was adopted goes on without us. */
static int destroy_or_let_go(struct cube_op *op, const char *id, struct cube_err *err)
{
	return op->cube->adopted != NULL ? cube_backend_let_go(op_backend(op), id, err)
					 : cube_backend_destroy(op_backend(op), id, err);
}

struct marked {
	const char *uid;
	char id[CUBE_ID_MAX + 1];
};

static void marked_look(void *ctx, const struct cube_info *info)
{
	struct marked *m = ctx;

	if (strcmp(info->uid, m->uid) == 0)
		(void)snprintf(m->id, sizeof(m->id), "%s", info->id);
}

/* A creation that was cut off may have left something: it bears our mark. */
static int destroy_marked(struct cube_op *op)
{
	struct marked m = {.uid = op->cube->uid};
	int r;

	if (op->cube->adopted != NULL) /* adopted it may have been, made it was not */
		return cube_backend_let_go(op_backend(op), op->cube->adopted, &op->err);
	r = cube_backend_list(op_backend(op), NULL, marked_look, &m, &op->err);

	if (r < 0 || m.id[0] == '\0')
		return r;
	return cube_backend_destroy(op_backend(op), m.id, &op->err);
}

static int destroy_dir(struct cube_op *op)
{
	char name[sizeof(op->cube->uid) + sizeof(CUBE_STATE_REMOVED)];
	int r;

	(void)snprintf(name, sizeof(name), "%s" CUBE_STATE_REMOVED, op->cube->uid);
	r = cube_file_remove_tree(cube_domain_own(op->cube->domain)->cubes_fd, name);
	if (r < 0)
		return cube_fail(&op->err, r, "its state directory %s: %s", name, cube_errno_text(r));
	return 0;
}

void cube_op_run_destroy(struct cube_op *op)
{
	op->code = op->id != NULL ? destroy_or_let_go(op, op->id, &op->err) : destroy_marked(op);
	for (size_t i = 0; op->code == 0 && i < op->n_checkpoints; i++)
		op->code = cube_backend_checkpoint_remove(op_backend(op), op->checkpoints[i], &op->err);
	if (op->code == 0)
		op->code = destroy_dir(op);
}

/* What a creation made whose agent never answered. */
void cube_op_run_undo(struct cube_op *op)
{
	struct cube_err err;

	if (destroy_or_let_go(op, op->id, &err) < 0)
		(void)cube_fail_in(&op->err, "'%s' is left at the backend (%s)", op->id, err.text);
}
