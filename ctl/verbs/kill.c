/* SPDX-License-Identifier: Apache-2.0 */
/* kill: of a sandbox (every process but the first), of a session (what it runs now), of a job. */
#include <signal.h>

#include "ctl/job.h"
#include "ctl/session.h"
#include "ctl/signal.h"
#include "ctl/verbs/verbs.h"

/* Two of them are not one. */
static int kill_signal(struct cube_verb_call *call, int *sig, struct cube_err *err)
{
	int r;

	*sig = SIGTERM;
	r = call->n_words > 1 ? cube_signal_parse(call->words[1], sig, err) : 0;
	return r < 0 ? r : cube_verb_once(call, err);
}

static int kill_cube_run(struct cube_verb_call *call, struct cube_err *err)
{
	int sig, r = kill_signal(call, &sig, err);

	return r < 0 ? r : cube_cube_kill(call->object, sig, err);
}

static int kill_session_run(struct cube_verb_call *call, struct cube_err *err)
{
	int sig, r = kill_signal(call, &sig, err);

	return r < 0 ? r : cube_session_kill(call->object, sig, err);
}

static int kill_job_run(struct cube_verb_call *call, struct cube_err *err)
{
	int sig, r = kill_signal(call, &sig, err);

	return r < 0 ? r : cube_job_kill(call->object, sig, err);
}

const struct cube_verb cube_verb_kill = {
	.name = "kill",
	.args = "SIGNAL",
	.summary = "send a signal to every process but the first",
	.min = 1,
	.max = 1,
	.needs = CUBE_CAP_EXEC,
	.phases = 1u << CUBE_RUNNING | 1u << CUBE_PAUSED,
	.run = kill_cube_run,
};

const struct cube_verb cube_verb_session_kill = {
	.name = "kill",
	.args = "[SIGNAL]",
	.summary = "send a signal (TERM) to what it runs now; the session stays",
	.max = 1,
	.run = kill_session_run,
};

const struct cube_verb cube_verb_job_kill = {
	.name = "kill",
	.args = "[SIGNAL]",
	.summary = "send a signal (TERM) to everything the job started",
	.max = 1,
	.run = kill_job_run,
};
