/* SPDX-License-Identifier: Apache-2.0 */
/* wait: for a state of a sandbox, for the end of a job; with a time limit. */
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"
#include "ctl/verbs/verbs.h"

struct wait_state {
	struct cube_alarm alarm;
	struct cube_verb_call *call;
	enum cube_phase want;
	/* 0 it has come, 1 not yet, negative it cannot come (err is filled) */
	int (*look)(struct wait_state *s, struct cube_err *err);
	struct cube_waitq *queue;
};

static void wait_end(struct cube_verb_call *call, int code)
{
	struct wait_state *s = cube_steal(call->state);

	cube_alarm_off(&s->alarm);
	cube_free(s);
	cube_verb_finish(call, code);
}

static void wait_look(struct cube_verb_call *call)
{
	struct wait_state *s = call->state;
	int r = call->domain->closing ? cube_fail(&call->err, -EHOSTDOWN, "wait: the daemon is ending")
				      : s->look(s, &call->err);

	if (r == 1)
		cube_wait_add(s->queue, &call->waiter);
	else
		wait_end(call, r);
}

static void wait_wake(struct cube_waiter *w)
{
	wait_look(cube_container_of(w, struct cube_verb_call, waiter));
}

static void wait_late(struct cube_alarm *a)
{
	struct cube_verb_call *call = cube_container_of(a, struct wait_state, alarm)->call;

	wait_end(call, cube_fail(&call->err, -ETIMEDOUT, "wait: it has not come to that in time"));
}

static void wait_cancel(struct cube_verb_call *call)
{
	(void)cube_fail(&call->err, -EINTR, "wait: interrupted");
	wait_end(call, -EINTR);
}

static int wait_begin(struct cube_verb_call *call, const struct wait_state *how, const char *seconds,
		      struct cube_err *err)
{
	uint32_t limit_s = 0;
	struct wait_state *s;

	if (seconds != NULL && cube_verb_seconds("wait", seconds, &limit_s, err) < 0)
		return -EINVAL;
	s = cube_memdup(how, sizeof(*how));
	if (s == NULL)
		return cube_fail(err, -ENOMEM, "wait: out of memory");
	s->call = call;
	cube_alarm_init(&s->alarm, wait_late);
	cube_waiter_init(&call->waiter, wait_wake);
	call->state = s;
	call->cancel = wait_cancel;
	if (seconds != NULL)
		cube_alarm_set(call->domain, &s->alarm, limit_s * UINT64_C(1000));
	wait_look(call);
	return 1;
}

/* ---- A sandbox ---- */

static int wait_cube_look(struct wait_state *s, struct cube_err *err)
{
	const struct cube_cube *c = s->call->object;
	bool still = c->doing != NULL || c->phase == CUBE_CREATING;

	if (c->phase == s->want && !(s->want == CUBE_RUNNING && c->doing != NULL))
		return 0;
	if (c->phase == CUBE_REMOVED || c->terminal || (c->phase == CUBE_ERROR && !still))
		return cube_fail(err, -EHOSTDOWN, "wait: sandbox '%s' is %s and will not be %s: %s", c->name,
				 cube_cube_is(c), cube_phase_name(s->want), cube_cube_why(c));
	if (s->want == CUBE_RUNNING && c->phase == CUBE_STOPPED && !still)
		return cube_fail(err, -EHOSTDOWN, "wait: sandbox '%s' is stopped: `start` starts it",
				 c->name);
	return 1;
}

static int wait_phase(const char *word, enum cube_phase *ret)
{
	for (unsigned p = CUBE_RUNNING; p < CUBE_REMOVED; p++) {
		if (strcmp(word, cube_phase_name((enum cube_phase)p)) == 0) {
			*ret = (enum cube_phase)p;
			return 0;
		}
	}
	return -EINVAL;
}

static int wait_cube_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_cube *c = call->object;
	struct wait_state how = {.want = CUBE_RUNNING, .look = wait_cube_look, .queue = &c->changed};
	unsigned at = 1;

	if (call->n_words > at && wait_phase(call->words[at], &how.want) == 0)
		at++;
	if (call->n_words > at + 1 || (call->n_words > at && strspn(call->words[at], "0123456789") == 0))
		return cube_fail(err, -EINVAL, "wait: '%s': running, paused, stopped or error, then seconds",
				 call->words[1]);
	return wait_begin(call, &how, call->n_words > at ? call->words[at] : NULL, err);
}

const struct cube_verb cube_verb_wait = {
	.name = "wait",
	.args = "[STATE] [SECONDS]",
	.summary = "until it is in that state (running) or cannot be",
	.max = 2,
	.run = wait_cube_run,
};

/* ---- A job ---- */

static int wait_job_look(struct wait_state *s, struct cube_err *err)
{
	const struct cube_job *j = s->call->object;

	if (j->state == CUBE_JOB_ENDED)
		return 0;
	return j->forgotten ? cube_fail(err, -EHOSTDOWN, "wait: job '%s' is removed", j->name) : 1;
}

static int wait_job_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_job *j = call->object;
	struct wait_state how = {.look = wait_job_look, .queue = &j->changed};

	return wait_begin(call, &how, call->n_words > 1 ? call->words[1] : NULL, err);
}

const struct cube_verb cube_verb_job_wait = {
	.name = "wait",
	.args = "[SECONDS]",
	.summary = "until it has ended",
	.max = 1,
	.run = wait_job_run,
};
