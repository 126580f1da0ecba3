/* SPDX-License-Identifier: Apache-2.0 */
/* reset of a session. */
#include "ctl/session.h"
#include "ctl/verbs/verbs.h"

static int reset_run(struct cube_verb_call *call, struct cube_err *err)
{
	int r = cube_verb_once(call, err);

	return r < 0 ? r : cube_session_reset(call->object, err);
}

const struct cube_verb cube_verb_session_reset = {
	.name = "reset",
	.args = "",
	.summary = "end its shell with what it runs; the next command finds a fresh one",
	.run = reset_run,
};
