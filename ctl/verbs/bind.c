/* SPDX-License-Identifier: Apache-2.0 */
/* bind and unbind. */
#include <errno.h>
#include <string.h>

#include "ctl/bind.h"
#include "ctl/ctl_priv.h"
#include "ctl/verbs/verbs.h"

#define BIND_PHASES (1u << CUBE_RUNNING | 1u << CUBE_PAUSED | 1u << CUBE_STOPPED)

static void bind_done(void *ctx, int code, const struct cube_err *err)
{
	struct cube_verb_call *call = ctx;

	if (err != NULL)
		call->err = *err;
	call->state = NULL;
	cube_verb_finish(call, code);
}

static void bind_cancel(struct cube_verb_call *call)
{
	cube_bind_leave(cube_steal(call->state));
	(void)cube_fail(&call->err, -EINTR, "%s: interrupted; cat status says what became of it",
			call->verb->name);
}

static int bind_wait(struct cube_verb_call *call, struct cube_bind_call *begun)
{
	call->state = begun;
	call->cancel = bind_cancel;
	return 1;
}

static int bind_run(struct cube_verb_call *call, struct cube_err *err)
{
	const struct cube_bind_wanted wanted = {.by = &call->by,
						.source = call->words[1],
						.path = call->words[2],
						.read_only = call->n_words > 3};
	struct cube_bind_call *begun;

	if (wanted.read_only && strcmp(call->words[3], "ro") != 0)
		return cube_fail(err, -EINVAL, "bind: '%s' is not ro", call->words[3]);

	int r = cube_bind_begin(call->object, &wanted, bind_done, call, &begun, err);

	return r < 0 ? r : bind_wait(call, begun);
}

const struct cube_verb cube_verb_bind = {
	.name = "bind",
	.args = "HOSTDIR DIR [ro]",
	.summary = "show a directory of this machine at DIR inside",
	.min = 2,
	.max = 3,
	.needs = CUBE_CAP_BIND,
	.phases = BIND_PHASES,
	.run = bind_run,
};

static int unbind_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_bind_call *begun;
	int r = cube_unbind_begin(call->object, call->words[1], bind_done, call, &begun, err);

	return r < 0 ? r : bind_wait(call, begun);
}

const struct cube_verb cube_verb_unbind = {
	.name = "unbind",
	.args = "DIR",
	.summary = "take away what is bound at DIR",
	.min = 1,
	.max = 1,
	.needs = CUBE_CAP_BIND,
	.phases = BIND_PHASES,
	.run = unbind_run,
};
