/* SPDX-License-Identifier: Apache-2.0 */
/* hold: the sandbox lives as long as the channel that this is written to. */
#include <errno.h>

#include "ctl/cube.h"
#include "ctl/verbs/verbs.h"

static int hold_run(struct cube_verb_call *call, struct cube_err *err)
{
	if (call->hold == NULL)
		return cube_fail(
			err, -EINVAL,
			"hold: only who has this ctl open for reading and writing can hold, without &: "
			"exec 3<>ctl; echo hold >&3");
	return cube_hold_take(call->hold, call->object, err);
}

const struct cube_verb cube_verb_hold = {
	.name = "hold",
	.args = "",
	.summary = "on a channel: destroy it when the channel is closed, by whatever end of its owner",
	.run = hold_run,
};
