/* SPDX-License-Identifier: Apache-2.0 */
/* destroy NAME|label.NAME=VALUE ...: returns when all of them are gone. */
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"
#include "ctl/verbs/verbs.h"

struct cube_destroy {
	unsigned n, at; /* those before @at are gone */
	struct cube_cube *cubes[];
};

struct cube_destroy *cube_destroy_new(struct cube_domain *d)
{
	return cube_calloc(1, sizeof(struct cube_destroy) + cube_map_count(d->by_name) * sizeof(void *));
}

static void destroy_free(struct cube_destroy *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		cube_own(s->cubes[i])->picked = false;
		cube_cube_unref(s->cubes[i]);
	}
	cube_free(s);
}

static void destroy_end(struct cube_verb_call *call, int code)
{
	destroy_free(cube_steal(call->state));
	cube_verb_finish(call, code);
}

/* The first that is not gone yet; NULL: all are. */
static struct cube_cube *destroy_left(struct cube_destroy *s)
{
	while (s->at < s->n && cube_own(s->cubes[s->at])->gone)
		s->at++;
	return s->at < s->n ? s->cubes[s->at] : NULL;
}

static void destroy_look(struct cube_verb_call *call)
{
	struct cube_destroy *s = call->state;
	struct cube_cube *c = destroy_left(s);

	if (c == NULL) {
		destroy_end(call, 0);
		return;
	}
	if (cube_own(c)->destroy_err.code != 0) {
		call->err = cube_own(c)->destroy_err;
		(void)cube_fail_in(&call->err, "%s '%s' (tried again behind)", call->verb->name, c->name);
		destroy_end(call, call->err.code);
		return;
	}
	if (call->domain->closing) {
		destroy_end(call, cube_fail(&call->err, -EHOSTDOWN,
					    "%s: the daemon is ending; it goes on at the next start",
					    call->verb->name));
		return;
	}
	cube_wait_add(&c->changed, &call->waiter);
}

static void destroy_wake(struct cube_waiter *w)
{
	destroy_look(cube_container_of(w, struct cube_verb_call, waiter));
}

static void destroy_cancel(struct cube_verb_call *call)
{
	(void)cube_fail(&call->err, -EINTR, "%s: interrupted; the destruction goes on", call->verb->name);
	destroy_end(call, -EINTR);
}

void cube_destroy_go(struct cube_verb_call *call, struct cube_destroy *s)
{
	int r = 0;

	if (call->note != NULL)
		call->note(call, 1);
	for (unsigned i = 0; i < s->n; i++)
		cube_own(s->cubes[i])->picked = false;
	for (unsigned i = 0; r == 0 && i < s->n; i++)
		r = cube_cube_remove(s->cubes[i], &call->by, &call->err);
	call->state = s;
	if (r < 0) {
		destroy_end(call, r);
		return;
	}
	call->cancel = destroy_cancel;
	cube_waiter_init(&call->waiter, destroy_wake);
	destroy_look(call);
}

/* ---- which ---- */

void cube_destroy_pick(struct cube_destroy *s, struct cube_cube *c)
{
	cube_own(c)->picked = true;
	s->cubes[s->n++] = cube_cube_ref(c);
}

static int destroy_pick_name(struct cube_verb_call *call, struct cube_destroy *s, const char *name,
			     struct cube_err *err)
{
	struct cube_cube *c = cube_domain_find(call->domain, name);

	if (c == NULL && call->noted != 0)
		return 0; /* it was gone when the worker was killed; others may not be */
	if (c == NULL)
		return cube_fail(err, -ENOENT, "destroy: no sandbox '%s'", name);
	if (cube_own(c)->picked)
		return cube_fail(err, -EINVAL, "destroy: '%s' is named twice", name);
	cube_destroy_pick(s, c);
	return 0;
}

/* Those that another word has named already are meant by this one too. */
static int destroy_pick_label(struct cube_verb_call *call, struct cube_destroy *s, char *word,
			      struct cube_err *err)
{
	struct cube_list *all = &call->domain->cubes;
	struct cube_pair label;
	bool some = false;
	int r = cube_verb_label("destroy", word, &label, err);

	if (r < 0)
		return r;
	cube_list_each (i, all) {
		struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);

		if (!cube_label_is(c, &label))
			continue;
		some = true;
		if (!cube_own(c)->picked)
			cube_destroy_pick(s, c);
	}
	return some || call->noted != 0 ? 0
					: cube_fail(err, -ENOENT, "destroy: no sandbox has label.%s=%s",
						    label.key, label.value);
}

/* All are there, or none is touched. Names first: they may not be said twice, what has a label may. */
static int destroy_find(struct cube_verb_call *call, struct cube_destroy *s, struct cube_err *err)
{
	int r = 0;

	for (unsigned i = 1; r == 0 && i < call->n_words; i++)
		if (!cube_verb_is_label(call->words[i]))
			r = destroy_pick_name(call, s, call->words[i], err);
	for (unsigned i = 1; r == 0 && i < call->n_words; i++)
		if (cube_verb_is_label(call->words[i]))
			r = destroy_pick_label(call, s, call->words[i], err);
	return r;
}

static int destroy_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_destroy *s = cube_destroy_new(call->domain);
	int r;

	if (s == NULL)
		return cube_fail(err, -ENOMEM, "destroy: out of memory");
	r = destroy_find(call, s, err);
	if (r < 0) {
		destroy_free(s);
		return r;
	}
	cube_destroy_go(call, s);
	return 1;
}

const struct cube_verb cube_verb_destroy = {
	.name = "destroy",
	.args = "NAME|label.NAME=VALUE ...",
	.summary = "end sandboxes with all that is theirs; returns when they are gone",
	.min = 1,
	.max = 1024,
	.run = destroy_run,
};
