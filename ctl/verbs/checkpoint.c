/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint, restore; set of a checkpoint. */
#include "ctl/checkpoint.h"

#include <errno.h>
#include <string.h>

#include "backends/base/num.h"
#include "ctl/ctl_priv.h"
#include "ctl/verbs/verbs.h"

#define ALIVE (1u << CUBE_RUNNING | 1u << CUBE_PAUSED | 1u << CUBE_STOPPED)

/* ---- checkpoint NAME [memory=yes|no] ---- */

static void take_end(struct cube_verb_call *call, int code)
{
	cube_checkpoint_unref(cube_steal(call->state));
	cube_verb_finish(call, code);
}

static void take_wake(struct cube_waiter *w)
{
	struct cube_verb_call *call = cube_container_of(w, struct cube_verb_call, waiter);
	struct cube_checkpoint_entry *e = call->state;

	if (e->phase == CUBE_CHECKPOINT_TAKING) {
		cube_wait_add(&e->changed, w);
		return;
	}
	if (e->phase != CUBE_CHECKPOINT_THERE)
		call->err = e->failure;
	take_end(call, e->phase == CUBE_CHECKPOINT_THERE ? 0 : e->failure.code);
}

static void take_cancel(struct cube_verb_call *call)
{
	cube_wait_remove(&call->waiter);
	cube_checkpoint_leave(call->state);
	(void)cube_fail(&call->err, -EINTR, "checkpoint: interrupted");
	take_end(call, -EINTR);
}

static int take_memory(struct cube_verb_call *call, char *word, struct cube_err *err)
{
	char *value = cube_verb_value("checkpoint", word, err);
	int on;

	if (value == NULL)
		return -EINVAL;
	if (strcmp(word, "memory") != 0 || cube_num_bool(value, &on) < 0)
		return cube_fail(err, -EINVAL, "checkpoint: %s=%s: only memory=yes or memory=no is known",
				 word, value);
	return on == 0 ? 0 : cube_checkpoint_memory(((const struct cube_cube *)call->object)->service, err);
}

static int take_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_checkpoint_entry *e = NULL;
	int r = call->n_words > 2 ? take_memory(call, call->words[2], err) : 0;

	if (r == 0)
		r = cube_checkpoint_take(call->object, call->words[1], &e, err);
	if (r < 0 || e == NULL)
		return r;
	call->state = e;
	call->cancel = take_cancel;
	cube_waiter_init(&call->waiter, take_wake);
	take_wake(&call->waiter);
	return 1;
}

const struct cube_verb cube_verb_checkpoint = {
	.name = "checkpoint",
	.args = "NAME [memory=yes|no]",
	.summary = "keep the files as they are now, as checkpoints/NAME",
	.min = 1,
	.max = 2,
	.needs = CUBE_CAP_CHECKPOINTS,
	.phases = ALIVE,
	.run = take_run,
};

/* ---- restore ---- */

static int restore_from(struct cube_verb_call *call, struct cube_cube *c, struct cube_checkpoint_entry *e,
			struct cube_err *err)
{
	if (e->cube->service != c->service)
		return cube_fail(err, -EINVAL,
				 "restore: the checkpoint is on backend '%s', sandbox '%s' on '%s'",
				 e->cube->service->backend->name, c->name, c->service->backend->name);
	return cube_verb_life(call, c, CUBE_LIFE_RESTORE, e, err);
}

static int restore_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_checkpoint_entry *e;
	int r = cube_checkpoint_named(call->domain, call->object, call->words[1], &e, err);

	return r < 0 ? r : restore_from(call, call->object, e, err);
}

const struct cube_verb cube_verb_restore = {
	.name = "restore",
	.args = "[SANDBOX/]CHECKPOINT",
	.summary = "the files of that checkpoint, its own or another one's; jobs end as killed",
	.min = 1,
	.max = 1,
	.needs = CUBE_CAP_CHECKPOINTS,
	.phases = ALIVE,
	.run = restore_run,
};

/* ---- In a checkpoint's ctl ---- */

static int own_there(const struct cube_checkpoint_entry *e, struct cube_err *err)
{
	if (e->phase != CUBE_CHECKPOINT_THERE || e->cube == NULL)
		return cube_fail(err, -ENOENT, "the checkpoint is gone");
	return 0;
}

static int own_restore_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_checkpoint_entry *e = call->object;
	int r = own_there(e, err);

	return r < 0 ? r : restore_from(call, e->cube, e, err);
}

const struct cube_verb cube_verb_checkpoint_restore = {
	.name = "restore",
	.args = "",
	.summary = "its sandbox gets these files again; jobs end as killed",
	.phases = ALIVE,
	.run = own_restore_run,
};

static int own_template_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_checkpoint_entry *e = call->object;
	struct cube_import *i;
	int r = own_there(e, err);

	if (r == 0)
		r = cube_template_keep(e, call->words[1], &call->by, &i, err);
	return r == 0 ? cube_verb_import_wait(call, i) : r;
}

const struct cube_verb cube_verb_checkpoint_template = {
	.name = "template",
	.args = "T",
	.summary = "a template of these files, which outlives the sandbox",
	.min = 1,
	.max = 1,
	.needs = CUBE_CAP_KEEP,
	.run = own_template_run,
};

static int own_set_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_checkpoint_entry *e = call->object;
	char *value = cube_verb_value("set", call->words[1], err);

	if (value == NULL)
		return -EINVAL;
	if (strncmp(call->words[1], "label.", 6) != 0)
		return cube_fail(err, -EINVAL, "no key '%s'; known: label.NAME", call->words[1]);
	int r = own_there(e, err);
	return r < 0 ? r : cube_checkpoint_label(e, call->words[1] + 6, value, err);
}

const struct cube_verb cube_verb_checkpoint_set = {
	.name = "set",
	.args = "label.NAME=VALUE",
	.summary = "a label; an empty value takes it away",
	.min = 1,
	.max = 1,
	.run = own_set_run,
};
