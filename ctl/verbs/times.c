/* SPDX-License-Identifier: Apache-2.0 */
/* renew, lease: how long a sandbox lives, and how long it counts as used. */
#include <errno.h>

#include "backends/base/num.h"
#include "ctl/cube.h"
#include "ctl/verbs/verbs.h"

#define THERE ((1u << CUBE_RUNNING) | (1u << CUBE_PAUSED) | (1u << CUBE_STOPPED))

/* A life may be longer than any wait. */
static int times_seconds(const struct cube_verb_call *call, uint64_t *ret, struct cube_err *err)
{
	if (cube_num_u64(call->words[1], UINT32_MAX, ret) < 0)
		return cube_fail(err, -EINVAL, "%s: '%s' is no number of seconds", call->verb->name,
				 call->words[1]);
	return 0;
}

static int renew_run(struct cube_verb_call *call, struct cube_err *err)
{
	uint64_t seconds;

	if (times_seconds(call, &seconds, err) < 0)
		return -EINVAL;
	if (seconds == 0)
		return cube_fail(err, -EINVAL,
				 "renew: at least 1 second; `set lifetime=0` lets it live on for ever");
	return cube_cube_renew(call->object, (uint32_t)seconds, err);
}

static int lease_run(struct cube_verb_call *call, struct cube_err *err)
{
	uint64_t seconds;

	if (times_seconds(call, &seconds, err) < 0)
		return -EINVAL;
	return cube_cube_lease(call->object, (uint32_t)seconds, err);
}

const struct cube_verb cube_verb_renew = {
	.name = "renew",
	.args = "SECONDS",
	.summary = "its life ends so long from now",
	.min = 1,
	.max = 1,
	.phases = THERE,
	.run = renew_run,
};

const struct cube_verb cube_verb_lease = {
	.name = "lease",
	.args = "SECONDS",
	.summary = "counts as used for so long and is not paused; 0 gives it up",
	.min = 1,
	.max = 1,
	.phases = THERE,
	.run = lease_run,
};
