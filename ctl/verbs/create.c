/* SPDX-License-Identifier: Apache-2.0 */
/* create NAME [key=value ...]: returns when the sandbox runs, or is refused and leaves nothing behind. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/checkpoint.h"
#include "ctl/ctl_priv.h"
#include "ctl/stock.h"
#include "ctl/verbs/verbs.h"

static void create_end(struct cube_verb_call *call, int code)
{
	struct cube_cube *c = cube_steal(call->state);

	cube_cube_unref(c);
	cube_verb_finish(call, code);
}

/* 0 it runs, 1 not yet. */
static int create_look(struct cube_verb_call *call, struct cube_cube *c)
{
	if (c->domain->closing)
		return cube_fail(&call->err, -EHOSTDOWN, "create: the daemon is ending");
	switch (c->phase) {
	case CUBE_CREATING:
		return 1;
	case CUBE_REMOVED:
		return cube_fail(&call->err, -EHOSTDOWN, "create: sandbox '%s' was destroyed meanwhile",
				 c->name);
	case CUBE_ERROR:
		call->err = c->failure;
		(void)cube_fail_in(&call->err, "create '%s'", c->name);
		(void)cube_cube_remove(c, &call->by, NULL);
		return call->err.code;
	default:
		return 0;
	}
}

static void create_wake(struct cube_waiter *w)
{
	struct cube_verb_call *call = cube_container_of(w, struct cube_verb_call, waiter);
	struct cube_cube *c = call->state;
	int r = create_look(call, c);

	if (r == 1)
		cube_wait_add(&c->changed, w);
	else
		create_end(call, r);
}

/* Whoever gave up gets no sandbox that nobody asked for any more. */
static void create_cancel(struct cube_verb_call *call)
{
	struct cube_cube *c = call->state;

	cube_wait_remove(&call->waiter); /* the removal wakes */
	if (c->phase == CUBE_CREATING && !c->domain->closing)
		(void)cube_cube_remove(c, &call->by, NULL);
	(void)cube_fail(&call->err, -EINTR, "create: interrupted");
	create_end(call, -EINTR);
}

static int create_start(struct cube_verb_call *call, struct cube_create_key *keys, struct cube_err *err)
{
	struct cube_cube *c;

	for (unsigned i = 2; i < call->n_words; i++) {
		keys[i - 2].key = call->words[i];
		keys[i - 2].value = cube_verb_value("create", call->words[i], err);
		if (keys[i - 2].value == NULL)
			return -EINVAL;
	}
	int r = cube_create_as(call->domain, &call->by, call->words[1], keys, call->n_words - 2, false, &c,
			       err);
	if (r < 0)
		return r;
	cube_cube_ref(c);
	(void)snprintf(call->answer, sizeof(call->answer), "name=%s%s", c->name,
		       c->pool_cold ? " pool=" CUBE_STOCK_COLD : "");
	r = create_look(call, c);
	if (r != 1) {
		cube_cube_unref(c);
		return r;
	}
	call->state = c;
	call->cancel = create_cancel;
	cube_waiter_init(&call->waiter, create_wake);
	cube_wait_add(&c->changed, &call->waiter);
	return 1;
}

/* from=SANDBOX[/CHECKPOINT]: a fork with one child. The word at @at goes. */
static int create_from(struct cube_verb_call *call, unsigned at, struct cube_err *err)
{
	const char *text = call->words[at] + strlen("from=");
	struct cube_checkpoint_entry *e = NULL;
	struct cube_cube *parent;
	int r = strchr(text, '/') != NULL ? cube_checkpoint_named(call->domain, NULL, text, &e, err) : 0;

	if (r < 0)
		return r;
	parent = e != NULL ? e->cube : cube_domain_find(call->domain, text);
	if (parent == NULL)
		return cube_fail(err, -ENOENT, "create: from=%s: there is no such sandbox", text);
	for (unsigned i = 2; i < call->n_words; i++)
		if (strchr(call->words[i], '=') == NULL)
			return cube_fail(err, -EINVAL, "create: '%s' is no key=value", call->words[i]);
	memmove(&call->words[at], &call->words[at + 1], (call->n_words - at) * sizeof(call->words[0]));
	call->n_words--;
	return cube_verb_create_from(call, parent, e, err);
}

static int create_run(struct cube_verb_call *call, struct cube_err *err)
{
	for (unsigned i = 2; i < call->n_words; i++)
		if (strncmp(call->words[i], "from=", strlen("from=")) == 0)
			return create_from(call, i, err);

	struct cube_create_key *keys = cube_calloc(call->n_words, sizeof(*keys));

	if (keys == NULL)
		return cube_fail(err, -ENOMEM, "create: out of memory");
	int r = create_start(call, keys, err);
	cube_free(keys);
	return r;
}

const struct cube_verb cube_verb_create = {
	.name = "create",
	.args = "NAME [key=value ...]",
	.summary = "make a sandbox; returns when it runs",
	.min = 1,
	.max = 1 + CUBE_KEYS_MAX,
	.run = create_run,
};
