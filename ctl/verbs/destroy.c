/* SPDX-License-Identifier: Apache-2.0 */
/* destroy NAME ...: returns when all of them are gone. */
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"
#include "ctl/verbs/verbs.h"

struct destroy_state {
	unsigned n;
	struct cube_cube *cubes[];
};

static void destroy_end(struct cube_verb_call *call, int code)
{
	struct destroy_state *s = cube_steal(call->state);

	for (unsigned i = 0; i < s->n; i++)
		cube_cube_unref(s->cubes[i]);
	cube_free(s);
	cube_verb_finish(call, code);
}

/* The first that is not gone yet; NULL: all are. */
static struct cube_cube *destroy_left(struct destroy_state *s)
{
	for (unsigned i = 0; i < s->n; i++)
		if (!cube_own(s->cubes[i])->gone)
			return s->cubes[i];
	return NULL;
}

static void destroy_look(struct cube_verb_call *call)
{
	struct destroy_state *s = call->state;
	struct cube_cube *c = destroy_left(s);

	if (c == NULL) {
		destroy_end(call, 0);
		return;
	}
	if (cube_own(c)->destroy_err.code != 0) {
		call->err = cube_own(c)->destroy_err;
		(void)cube_fail_in(&call->err, "destroy '%s' (tried again behind)", c->name);
		destroy_end(call, call->err.code);
		return;
	}
	if (call->domain->closing) {
		destroy_end(call, cube_fail(&call->err, -EHOSTDOWN,
					    "destroy: the daemon is ending; it goes on at the next start"));
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
	(void)cube_fail(&call->err, -EINTR, "destroy: interrupted; the destruction goes on");
	destroy_end(call, -EINTR);
}

/* All are there, or none is touched. */
static int destroy_find(struct cube_verb_call *call, struct destroy_state *s, struct cube_err *err)
{
	for (unsigned i = 1; i < call->n_words; i++) {
		struct cube_cube *c = cube_domain_find(call->domain, call->words[i]);

		if (c == NULL)
			return cube_fail(err, -ENOENT, "destroy: no sandbox '%s'", call->words[i]);
		for (unsigned k = 0; k < s->n; k++)
			if (s->cubes[k] == c)
				return cube_fail(err, -EINVAL, "destroy: '%s' is named twice",
						 call->words[i]);
		s->cubes[s->n++] = cube_cube_ref(c);
	}
	return 0;
}

static int destroy_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct destroy_state *s = cube_calloc(1, sizeof(*s) + call->n_words * sizeof(void *));
	int r;

	if (s == NULL)
		return cube_fail(err, -ENOMEM, "destroy: out of memory");
	r = destroy_find(call, s, err);
	for (unsigned i = 0; r == 0 && i < s->n; i++)
		r = cube_cube_remove(s->cubes[i], &call->by, err);
	call->state = s;
	if (r < 0) {
		destroy_end(call, r);
		return 1; /* finished already */
	}
	call->cancel = destroy_cancel;
	cube_waiter_init(&call->waiter, destroy_wake);
	destroy_look(call);
	return 1;
}

const struct cube_verb cube_verb_destroy = {
	.name = "destroy",
	.args = "NAME ...",
	.summary = "end sandboxes with all that is theirs; returns when they are gone",
	.min = 1,
	.max = 1024,
	.run = destroy_run,
};
