/* SPDX-License-Identifier: Apache-2.0 */
/* fork: sandboxes with the files of another one or of a checkpoint, all of them or none. Of a sandbox as it is: a
 * checkpoint without a name is taken, they are made of it, and it goes. */
#include "ctl/checkpoint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/log.h"
#include "backends/base/num.h"
#include "ctl/ctl_priv.h"
#include "ctl/verbs/verbs.h"
#include "ctl/volume_priv.h"

struct fork {
	struct cube_cube *parent;         /* referenced */
	struct cube_checkpoint_entry *cp; /* pinned; NULL until it is known */
	struct cube_checkpoint_entry
		*volumes;   /* pinned: those of the parent as they are; NULL: with cp, or none */
	const char **names; /* words of the call */
	unsigned n_names;
	struct cube_create_key *keys; /* point into words of the call */
	unsigned n_keys;
	struct cube_cube **made; /* referenced */
	unsigned n_made;
	bool create; /* a creation, which may take volumes that are there */
};

static void fork_free(struct fork *f)
{
	cube_checkpoint_let_go(f->cp);
	cube_checkpoint_let_go(f->volumes);
	for (unsigned i = 0; f->made != NULL && i < f->n_made; i++)
		cube_cube_unref(f->made[i]);
	cube_cube_unref(f->parent);
	cube_free(f->made);
	cube_free(f->keys);
	cube_free(f->names);
	cube_free(f);
}

/* None is left of those that were made. */
static void fork_undo(struct fork *f)
{
	for (unsigned i = 0; i < f->n_made; i++)
		if (f->made[i]->phase != CUBE_REMOVED && !f->made[i]->domain->closing)
			(void)cube_cube_remove(f->made[i], NULL, NULL);
}

static int fork_keep_one(struct cube_cube *c, struct cube_err *err)
{
	cube_own(c)->fork[0] = '\0';
	cube_own(c)->keep = true;
	return cube_state_save(c, err);
}

/* All are there: from now on a daemon that comes back keeps them, all as soon as the first one says so. */
static int fork_keep(const struct fork *f, struct cube_err *err)
{
	struct cube_err later;
	int r = f->n_made > 0 ? fork_keep_one(f->made[0], err) : 0;

	if (r < 0)
		cube_own(f->made[0])->keep = false;
	for (unsigned i = 1; r == 0 && i < f->n_made; i++)
		if (fork_keep_one(f->made[i], &later) < 0)
			cube_log(CUBE_LOG_ERROR, "ctl", "%s", later.text);
	return r;
}

static void fork_end(struct cube_verb_call *call, int code)
{
	struct fork *f = cube_steal(call->state);

	cube_wait_remove(&call->waiter);
	call->cancel = NULL;
	if (code == 0)
		code = fork_keep(f, &call->err);
	if (code < 0)
		fork_undo(f);
	for (unsigned i = 0; code == 0 && i < f->n_made; i++)
		cube_cube_event(f->parent, "forked", f->made[i]->name);
	fork_free(f);
	cube_verb_finish(call, code);
}

static int fork_make(struct cube_verb_call *call, struct fork *f)
{
	struct cube_fork_source from = {
		.parent = f->parent, .files = f->cp, .volumes = f->volumes, .fork = !f->create};

	for (unsigned i = 0; i < f->n_names; i++) {
		struct cube_cube *c;
		int r = cube_create_from(&from, f->names[i], f->keys, f->n_keys, &c, &call->err);

		if (r < 0)
			return r;
		f->made[f->n_made++] = cube_cube_ref(c);
		from.first = f->made[0];
	}
	return 0;
}

/* 0 all run; 1 not yet. */
static int fork_look(struct cube_verb_call *call, const struct fork *f)
{
	int r = 0;

	for (unsigned i = 0; i < f->n_made; i++) {
		const struct cube_cube *c = f->made[i];

		if (c->phase == CUBE_ERROR) {
			call->err = c->failure;
			(void)cube_fail_in(&call->err, "fork '%s'", c->name);
			return call->err.code;
		}
		if (c->phase == CUBE_REMOVED)
			return cube_fail(&call->err, -EHOSTDOWN, "fork: sandbox '%s' was destroyed meanwhile",
					 c->name);
		if (c->phase == CUBE_CREATING)
			r = 1;
	}
	return r;
}

static void fork_step(struct cube_waiter *w)
{
	struct cube_verb_call *call = cube_container_of(w, struct cube_verb_call, waiter);
	struct fork *f = call->state;
	struct cube_checkpoint_entry *e;
	int r = 0;

	if (call->domain->closing) {
		fork_end(call, cube_fail(&call->err, -EHOSTDOWN, "fork: the daemon is ending"));
		return;
	}
	e = f->volumes != NULL ? f->volumes : f->cp;
	if (e->phase == CUBE_CHECKPOINT_TAKING) {
		cube_wait_add(&e->changed, w);
		return;
	}
	if (e->phase == CUBE_CHECKPOINT_FAILED) {
		call->err = e->failure;
		r = e->failure.code;
	} else if (f->n_made == 0) {
		r = fork_make(call, f);
	}
	if (r == 0)
		r = fork_look(call, f);
	if (r == 1)
		cube_wait_add(&call->domain->changed, w);
	else
		fork_end(call, r);
}

static void fork_cancel(struct cube_verb_call *call)
{
	struct fork *f = call->state;

	if (f->cp->name == NULL)
		cube_checkpoint_leave(f->cp);
	if (f->volumes != NULL)
		cube_checkpoint_leave(f->volumes);
	(void)cube_fail(&call->err, -EINTR, "fork: interrupted");
	fork_end(call, -EINTR);
}

/* ---- The line ---- */

struct fork_line {
	const char *from; /* NULL: not said */
};

static int fork_key(struct fork *f, char *key, char *value, struct fork_line *line, struct cube_err *err)
{
	int on;

	if (strcmp(key, "from") == 0) {
		line->from = value;
		return 0;
	}
	if (strcmp(key, "memory") != 0) {
		f->keys[f->n_keys++] = (struct cube_create_key){.key = key, .value = value};
		return 0;
	}
	/* a limit of the child, or whether its memory is copied */
	if (cube_num_bool(value, &on) < 0) {
		f->keys[f->n_keys++] = (struct cube_create_key){.key = key, .value = value};
		return 0;
	}
	return on == 0 ? 0 : cube_checkpoint_memory(f->parent->service, err);
}

static int fork_names_free(const struct fork *f, struct cube_err *err)
{
	for (unsigned i = 0; i < f->n_names; i++) {
		int r = cube_cube_check_name(f->names[i], err);

		if (r < 0)
			return r;
		if (cube_domain_find(f->parent->domain, f->names[i]) != NULL)
			return cube_fail(err, -EEXIST, "a sandbox named '%s' is there already", f->names[i]);
		for (unsigned k = 0; k < i; k++)
			if (strcmp(f->names[i], f->names[k]) == 0)
				return cube_fail(err, -EEXIST, "fork: '%s' is named twice", f->names[i]);
	}
	return 0;
}

static int fork_parse(struct cube_verb_call *call, struct fork *f, unsigned first, struct fork_line *line,
		      struct cube_err *err)
{
	for (unsigned i = first; i < call->n_words; i++) {
		char *word = call->words[i], *value;
		int r;

		if (strchr(word, '=') == NULL) {
			f->names[f->n_names++] = word;
			continue;
		}
		value = cube_verb_value("fork", word, err);
		r = value != NULL ? fork_key(f, word, value, line, err) : -EINVAL;
		if (r < 0)
			return r;
	}
	if (f->n_names == 0)
		return cube_fail(err, -EINVAL, "usage: %s %s", call->verb->name, call->verb->args);
	return fork_names_free(f, err);
}

static int fork_take(struct cube_cube *parent, bool files, struct cube_checkpoint_entry **ret,
		     struct cube_err *err)
{
	struct cube_checkpoint_entry *e;
	int r = cube_checkpoint_take_fork(parent, files, &e, err);

	if (r < 0)
		return r;
	cube_checkpoint_pin(e);
	cube_checkpoint_unref(e); /* the pin keeps it */
	*ret = e;
	return 0;
}

/* Has it volumes that a child gets copies of? */
static bool fork_copies(struct cube_cube *parent)
{
	const struct cube_own *own = cube_own(parent);

	for (size_t i = 0; i < own->n_volumes; i++)
		if (own->volumes[i].volume != NULL && !own->volumes[i].read_only)
			return true;
	return false;
}

static int fork_source(struct fork *f, struct cube_checkpoint_entry *e, const struct fork_line *line,
		       struct cube_err *err)
{
	int r;

	if (e != NULL && line->from != NULL)
		return cube_fail(err, -EINVAL, "from=%s: it is forked from this checkpoint", line->from);
	r = line->from == NULL ? 0 : cube_checkpoint_named(f->parent->domain, f->parent, line->from, &e, err);
	if (r == 0 && e != NULL && e->cube->service != f->parent->service)
		r = cube_fail(err, -EINVAL, "from=%s: the checkpoint is on backend '%s'", line->from,
			      e->cube->service->backend->name);
	if (r < 0)
		return r;
	if (e == NULL)
		return fork_take(f->parent, true, &f->cp, err);
	cube_checkpoint_pin(e);
	f->cp = e;
	return fork_copies(f->parent) ? fork_take(f->parent, false, &f->volumes, err) : 0;
}

/* @e NULL: of @parent as it is, or as the line says. The names and keys are the words from @first on. */
static int fork_begin(struct cube_verb_call *call, struct cube_cube *parent, struct cube_checkpoint_entry *e,
		      unsigned first, bool create, struct cube_err *err)
{
	struct fork *f = cube_calloc(1, sizeof(*f));
	struct fork_line line = {.from = NULL};
	int r = 0;

	if (f == NULL)
		return cube_fail(err, -ENOMEM, "fork: out of memory");
	f->create = create;
	f->parent = cube_cube_ref(parent);
	f->names = cube_calloc(call->n_words, sizeof(*f->names));
	f->keys = cube_calloc(call->n_words, sizeof(*f->keys));
	f->made = cube_calloc(call->n_words, sizeof(struct cube_cube *));
	if (f->names == NULL || f->keys == NULL || f->made == NULL)
		r = cube_fail(err, -ENOMEM, "fork: out of memory");
	if (r == 0)
		r = cube_backend_need(parent->service->backend, CUBE_CAP_CHECKPOINTS, err);
	if (r == 0)
		r = fork_parse(call, f, first, &line, err);
	if (r == 0)
		r = fork_source(f, e, &line, err);
	if (r < 0) {
		fork_free(f);
		return r;
	}
	call->state = f;
	call->cancel = fork_cancel;
	cube_waiter_init(&call->waiter, fork_step);
	fork_step(&call->waiter);
	return 1;
}

int cube_verb_create_from(struct cube_verb_call *call, struct cube_cube *parent,
			  struct cube_checkpoint_entry *e, struct cube_err *err)
{
	return fork_begin(call, parent, e, 1, true, err);
}

static int fork_run(struct cube_verb_call *call, struct cube_err *err)
{
	return fork_begin(call, call->object, NULL, 1, false, err);
}

static int root_fork_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_cube *c = cube_domain_find(call->domain, call->words[1]);

	if (c == NULL)
		return cube_fail(err, -ENOENT, "fork: no sandbox '%s'", call->words[1]);
	return fork_begin(call, c, NULL, 2, false, err);
}

static int checkpoint_fork_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_checkpoint_entry *e = call->object;

	if (e->phase != CUBE_CHECKPOINT_THERE || e->cube == NULL)
		return cube_fail(err, -ENOENT, "fork: the checkpoint is gone");
	return fork_begin(call, e->cube, e, 1, false, err);
}

#define FORK_MAX (64 + CUBE_KEYS_MAX)

const struct cube_verb cube_verb_fork = {
	.name = "fork",
	.args = "NEW ... [from=CHECKPOINT] [key=value ...]",
	.summary = "sandboxes with these files, or a checkpoint's: all or none",
	.min = 1,
	.max = FORK_MAX,
	.needs = CUBE_CAP_CHECKPOINTS,
	.run = fork_run,
};

const struct cube_verb cube_verb_root_fork = {
	.name = "fork",
	.args = "NAME NEW ... [from=CHECKPOINT] [key=value ...]",
	.summary = "sandboxes with the files of another one: all or none",
	.min = 2,
	.max = FORK_MAX,
	.run = root_fork_run,
};

const struct cube_verb cube_verb_checkpoint_fork = {
	.name = "fork",
	.args = "NEW ... [key=value ...]",
	.summary = "sandboxes with these files: all or none",
	.min = 1,
	.max = FORK_MAX,
	.run = checkpoint_fork_run,
};
