/* SPDX-License-Identifier: Apache-2.0 */
/* What only jobs have: eof, timeout, stdin, merge, session, tty, winsize. */
#include <errno.h>
#include <string.h>

#include "backends/base/num.h"
#include "ctl/ctl_priv.h"
#include "ctl/verbs/verbs.h"

static int job_is_new(const struct cube_verb_call *call, struct cube_err *err)
{
	const struct cube_job *j = call->object;

	if (j->forgotten)
		return cube_fail(err, -ENOENT, "%s: job '%s' is removed", call->verb->name, j->name);
	if (j->state == CUBE_JOB_NEW)
		return 0;
	return cube_fail(err, -EBUSY, "%s: job '%s' has its command; this is said before it",
			 call->verb->name, j->name);
}

static int eof_run(struct cube_verb_call *call, struct cube_err *err)
{
	return cube_job_eof(call->object, err);
}

const struct cube_verb cube_verb_job_eof = {
	.name = "eof",
	.args = "",
	.summary = "the end of its stdin",
	.run = eof_run,
};

static int timeout_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_job *j = call->object;
	uint32_t seconds;

	if (cube_verb_seconds("timeout", call->words[1], &seconds, err) < 0)
		return -EINVAL;
	if (j->state == CUBE_JOB_ENDED)
		return 0;
	if (j->state == CUBE_JOB_RUNNING) {
		if (j->cube->agent == NULL)
			return cube_fail(err, -EHOSTUNREACH,
					 "timeout: the agent of sandbox '%s' is not connected",
					 j->cube->name);
		cube_link_timeout(j->cube->agent, j->number, seconds);
	}
	j->timeout_s = seconds;
	return cube_job_keep(j, err);
}

const struct cube_verb cube_verb_job_timeout = {
	.name = "timeout",
	.args = "SECONDS",
	.summary = "end it after so long, from its start or from now; 0: never",
	.min = 1,
	.max = 1,
	.run = timeout_run,
};

static int stdin_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_job *j = call->object;
	bool pipe = strcmp(call->words[1], "pipe") == 0;

	if (!pipe && strcmp(call->words[1], "stream") != 0)
		return cube_fail(err, -EINVAL,
				 "stdin: '%s': pipe (the last close is its end) or stream (eof is)",
				 call->words[1]);
	int r = job_is_new(call, err);
	if (r < 0)
		return r;
	j->in_mode = pipe ? CUBE_JOB_STDIN_PIPE : CUBE_JOB_STDIN_STREAM;
	return cube_job_keep(j, err);
}

const struct cube_verb cube_verb_job_stdin = {
	.name = "stdin",
	.args = "pipe|stream",
	.summary = "its input comes from whoever opens it later, to the last close or to eof",
	.min = 1,
	.max = 1,
	.run = stdin_run,
};

static int merge_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_job *j = call->object;
	int r = job_is_new(call, err);

	if (r < 0)
		return r;
	j->merge = true;
	return cube_job_keep(j, err);
}

const struct cube_verb cube_verb_job_merge = {
	.name = "merge",
	.args = "",
	.summary = "one pipe for stdout and stderr: their order is exact",
	.run = merge_run,
};

static int session_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_job *j = call->object;
	struct cube_session *s;
	int r = job_is_new(call, err);

	if (r < 0)
		return r;
	s = cube_session_find(j->cube, call->words[1]);
	if (s == NULL)
		return cube_fail(err, -ENOENT, "session: sandbox '%s' has no session '%s'", j->cube->name,
				 call->words[1]);
	if (j->tty)
		return cube_fail(err, -EINVAL, "session: job '%s' has a terminal; it runs on its own",
				 j->name);
	cube_session_unref(j->session);
	j->session = cube_session_ref(s);
	return cube_job_keep(j, err);
}

const struct cube_verb cube_verb_job_session = {
	.name = "session",
	.args = "NAME",
	.summary = "run it as the next command of that session",
	.min = 1,
	.max = 1,
	.run = session_run,
};

/* ---- Terminals ---- */

static int tty_size(const struct cube_verb_call *call, uint16_t *rows, uint16_t *cols, struct cube_err *err)
{
	uint64_t r, c;

	if (cube_num_u64(call->words[1], UINT16_MAX, &r) < 0 ||
	    cube_num_u64(call->words[2], UINT16_MAX, &c) < 0 || r == 0 || c == 0)
		return cube_fail(err, -EINVAL, "%s: rows and columns are numbers from 1 to 65535",
				 call->verb->name);
	*rows = (uint16_t)r;
	*cols = (uint16_t)c;
	return 0;
}

static int tty_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_job *j = call->object;
	uint16_t rows = 0, cols = 0;
	int r = tty_size(call, &rows, &cols, err);

	if (r == 0)
		r = job_is_new(call, err);
	if (r < 0)
		return r;
	if (j->session != NULL)
		return cube_fail(err, -EINVAL, "tty: job '%s' runs in session '%s', which has no terminal",
				 j->name, j->session->name);
	j->tty = true;
	j->rows = rows;
	j->cols = cols;
	j->in_mode = CUBE_JOB_STDIN_STREAM;
	return cube_job_keep(j, err);
}

const struct cube_verb cube_verb_job_tty = {
	.name = "tty",
	.args = "ROWS COLS",
	.summary = "give it a terminal",
	.min = 2,
	.max = 2,
	.needs = CUBE_CAP_TTY,
	.run = tty_run,
};

static int winsize_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_job *j = call->object;
	uint16_t rows = 0, cols = 0;
	int r = tty_size(call, &rows, &cols, err);

	if (r < 0)
		return r;
	if (!j->tty)
		return cube_fail(
			err, -EINVAL,
			"winsize: job '%s' has no terminal; `tty ROWS COLS` before its start gives it one",
			j->name);
	j->rows = rows;
	j->cols = cols;
	if (j->state == CUBE_JOB_RUNNING && j->cube->agent != NULL)
		cube_link_winsize(j->cube->agent, j->number, rows, cols);
	return 0;
}

const struct cube_verb cube_verb_job_winsize = {
	.name = "winsize",
	.args = "ROWS COLS",
	.summary = "the new size of its terminal",
	.min = 2,
	.max = 2,
	.needs = CUBE_CAP_TTY,
	.run = winsize_run,
};
