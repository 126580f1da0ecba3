/* SPDX-License-Identifier: Apache-2.0 */
/* start, stop, restart, pause, resume, reset. */
#include <errno.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"
#include "ctl/verbs/verbs.h"

#define STOP_GRACE_S 10u /* from TERM to KILL unless said otherwise */

#define IN(phase) (1u << (phase))

struct life_state {
	struct cube_life_call life;
	struct cube_verb_call *call;
	struct cube_cube *cube; /* referenced */
};

static void life_done(struct cube_life_call *life, int code, const struct cube_err *err)
{
	struct life_state *s = cube_container_of(life, struct life_state, life);
	struct cube_verb_call *call = s->call;

	if (err != NULL)
		call->err = *err;
	call->state = NULL;
	cube_cube_unref(s->cube);
	cube_free(s);
	cube_verb_finish(call, code);
}

static void life_cancel(struct cube_verb_call *call)
{
	struct life_state *s = cube_steal(call->state);

	cube_cube_life_leave(s->cube, &s->life);
	cube_cube_unref(s->cube);
	cube_free(s);
	(void)cube_fail(&call->err, -EINTR, "%s: interrupted; it goes on", call->verb->name);
}

/* Another number each time that @what was done; 0: what was done already is not done again anyway. */
static uint64_t life_times(const struct cube_cube *c, enum cube_life what)
{
	if (what == CUBE_LIFE_RESTART)
		return c->started_wall + 1;
	return what == CUBE_LIFE_RESET || what == CUBE_LIFE_RESTORE ? (uint64_t)c->generation + 1 : 0;
}

/* By the worker before, which was killed before it could say so. */
static bool life_was_done(struct cube_verb_call *call, const struct cube_cube *c, enum cube_life what)
{
	uint64_t times = life_times(c, what);

	if (times == 0)
		return false;
	if (call->noted != 0)
		return call->noted != times;
	if (call->note != NULL)
		call->note(call, times);
	return false;
}

static int life_begin(struct cube_verb_call *call, struct cube_cube *c, const struct cube_life_call *life,
		      struct cube_err *err)
{
	struct life_state *s;

	if (life_was_done(call, c, life->what))
		return 0;
	s = cube_calloc(1, sizeof(*s));

	if (s == NULL)
		return cube_fail(err, -ENOMEM, "%s: out of memory", call->verb->name);
	s->call = call;
	s->cube = cube_cube_ref(c);
	s->life = *life;
	s->life.done = life_done;
	call->state = s;
	call->cancel = life_cancel;
	int r = cube_cube_life(c, &s->life, err);
	if (r < 0) {
		call->state = NULL;
		call->cancel = NULL;
		cube_cube_unref(s->cube);
		cube_free(s);
		return r;
	}
	return 1;
}

int cube_verb_life(struct cube_verb_call *call, struct cube_cube *c, enum cube_life what,
		   struct cube_checkpoint_entry *checkpoint, struct cube_err *err)
{
	const struct cube_life_call life = {.what = what, .checkpoint = checkpoint};

	return life_begin(call, c, &life, err);
}

static int life_run(struct cube_verb_call *call, enum cube_life what, struct cube_err *err)
{
	struct cube_life_call life = {.what = what, .grace_s = STOP_GRACE_S};

	if (call->n_words > 1 && cube_verb_seconds(call->verb->name, call->words[1], &life.grace_s, err) < 0)
		return -EINVAL;
	return life_begin(call, call->object, &life, err);
}

static int start_run(struct cube_verb_call *call, struct cube_err *err)
{
	return life_run(call, CUBE_LIFE_START, err);
}

static int stop_run(struct cube_verb_call *call, struct cube_err *err)
{
	return life_run(call, CUBE_LIFE_STOP, err);
}

static int restart_run(struct cube_verb_call *call, struct cube_err *err)
{
	return life_run(call, CUBE_LIFE_RESTART, err);
}

static int pause_run(struct cube_verb_call *call, struct cube_err *err)
{
	return life_run(call, CUBE_LIFE_PAUSE, err);
}

static int resume_run(struct cube_verb_call *call, struct cube_err *err)
{
	return life_run(call, CUBE_LIFE_RESUME, err);
}

static int reset_run(struct cube_verb_call *call, struct cube_err *err)
{
	return life_run(call, CUBE_LIFE_RESET, err);
}

const struct cube_verb cube_verb_life_start = {
	.name = "start",
	.args = "",
	.summary = "start it again, with the same files",
	.needs = CUBE_CAP_STOP,
	.phases = IN(CUBE_STOPPED) | IN(CUBE_RUNNING),
	.run = start_run,
};

const struct cube_verb cube_verb_life_stop = {
	.name = "stop",
	.args = "[SECONDS]",
	.summary = "end all that runs in it: TERM, and KILL after so long (10)",
	.max = 1,
	.needs = CUBE_CAP_STOP,
	.phases = IN(CUBE_RUNNING) | IN(CUBE_PAUSED) | IN(CUBE_STOPPED),
	.run = stop_run,
};

const struct cube_verb cube_verb_life_restart = {
	.name = "restart",
	.args = "",
	.summary = "stop and start; sessions begin anew, jobs end as killed",
	.needs = CUBE_CAP_STOP,
	.phases = IN(CUBE_RUNNING) | IN(CUBE_PAUSED) | IN(CUBE_STOPPED),
	.run = restart_run,
};

const struct cube_verb cube_verb_life_pause = {
	.name = "pause",
	.args = "",
	.summary = "freeze it; its memory stays, the next use resumes it",
	.needs = CUBE_CAP_PAUSE,
	.phases = IN(CUBE_RUNNING) | IN(CUBE_PAUSED),
	.run = pause_run,
};

const struct cube_verb cube_verb_life_resume = {
	.name = "resume",
	.args = "",
	.summary = "let it run on",
	.needs = CUBE_CAP_PAUSE,
	.phases = IN(CUBE_RUNNING) | IN(CUBE_PAUSED),
	.run = resume_run,
};

const struct cube_verb cube_verb_life_reset = {
	.name = "reset",
	.args = "",
	.summary = "the template's files again, but for /workspace; jobs end as killed",
	.needs = CUBE_CAP_RESET,
	.phases = IN(CUBE_RUNNING) | IN(CUBE_PAUSED) | IN(CUBE_STOPPED),
	.run = reset_run,
};
