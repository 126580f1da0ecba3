/* SPDX-License-Identifier: Apache-2.0 */
/* How a job is brought to its end: by a signal, an interrupt or its time-out.
 *
 * Whatever is meant to end it makes it *dying*: it gets the first signal of a ladder at once and the next
 * ones in their time, and meanwhile it is looked at every few milliseconds.
 *
 * In a session. The shell cannot be told to leave off its text in the middle: once `make` in `make; install`
 * is gone it would go on with `install`. So it is stopped before the command's processes get their signal,
 * and when they are gone it is ended as well (TERM, so that bash reports its exports in its EXIT trap; KILL
 * soon after). The session goes on with a fresh shell in the same directory, with the same exports. KILL goes
 * to the shell's whole group at once. What earlier commands left running is in neither. */
#include "backends/agent/init/job.h"

#include <signal.h>

#include "backends/agent/init/session.h"
#include "backends/base/macros.h"

#define POLL_FIRST (2 * INIT_MS)
#define POLL_MAX   (100 * INIT_MS)
#define SHELL_TERM (500 * INIT_MS)  /* before the shell gets KILL */
#define GIVE_UP    (5000 * INIT_MS) /* what KILL did not end by then hangs in the kernel */

static const struct init_step interrupt_ladder[] = {{SIGINT, 2000}, {SIGTERM, 2000}, {SIGKILL, 0}, {0, 0}};
static const struct init_step timeout_ladder[] = {{SIGTERM, 2000}, {SIGKILL, 0}, {0, 0}};
static const struct init_step plain_ladders[][2] = {
	{{SIGKILL, 0}, {0, 0}}, {{SIGTERM, 0}, {0, 0}}, {{SIGINT, 0}, {0, 0}},
	{{SIGQUIT, 0}, {0, 0}}, {{SIGABRT, 0}, {0, 0}},
};

static const struct init_step *plain_ladder(int sig)
{
	for (unsigned i = 0; i < CUBE_COUNT(plain_ladders); i++) {
		if (plain_ladders[i][0].sig == sig)
			return plain_ladders[i];
	}
	return NULL;
}

bool init_sig_ends(int sig)
{
	return plain_ladder(sig) != NULL;
}

static void dying_poll(struct init_timer *t);

static void dying_again(struct init_job *job)
{
	uint64_t wait = POLL_FIRST << (job->dying.polls < 8 ? job->dying.polls : 8);

	job->dying.polls++;
	init_timer_set(&job->poll, init_now() + (wait < POLL_MAX ? wait : POLL_MAX), dying_poll);
}

/* Sends the present step's signal. */
static void dying_step(struct init_job *job)
{
	struct init_dying *d = &job->dying;
	struct init_group *g = init_job_group(job);
	uint64_t now = init_now();

	job->signals |= UINT64_C(1) << (d->step->sig - 1);
	d->next = d->step[1].sig != 0 ? now + d->step->ms * INIT_MS : 0;
	if (g == NULL)
		return;
	if (d->step->sig == SIGKILL) {
		d->give_up = now + GIVE_UP;
		if (job->session != NULL)
			init_session_note_cwd(job->session);
		init_group_kill(g);
		return;
	}
	if (job->session != NULL && g->main != 0) {
		init_session_note_cwd(job->session);
		(void)kill(g->main, SIGSTOP);
	}
	init_group_signal(g, d->step->sig, job->session != NULL);
}

static void dying_begin(struct init_job *job, enum cube_wire_how how, const struct init_step *ladder)
{
	struct init_dying *d = &job->dying;

	if (job->ended)
		return;
	/* Whoever came first says how it ended; what comes later still has its effect. */
	if (d->step == NULL)
		d->how = (uint8_t)how;
	d->step = ladder;
	d->whole = d->whole || ladder[1].sig != 0 || ladder->sig == SIGKILL;
	d->polls = 0;
	dying_step(job);
	init_job_check(job);
	if (!job->ended)
		dying_again(job);
}

/* The command's processes are gone: now the shell. */
static void dying_shell(struct init_job *job, struct init_group *g, uint64_t now)
{
	struct init_dying *d = &job->dying;

	if (g->main == 0 || job->gone)
		return;
	if (!d->told) {
		d->told = true;
		d->shell_kill = now + SHELL_TERM;
		(void)kill(g->main, SIGTERM);
		(void)kill(g->main, SIGCONT);
	} else if (now >= d->shell_kill) {
		init_group_kill(g);
	}
}

static void dying_look(struct init_job *job, struct init_group *g, uint64_t now)
{
	struct init_dying *d = &job->dying;

	if (d->step->sig == SIGKILL) {
		init_group_kill(g);
		if (now >= d->give_up)
			init_job_finish(job);
		return;
	}
	/* What was being born while the signal went round. */
	if (d->polls == 1)
		init_group_signal_again(g, job->session != NULL);
	if (job->session != NULL && !init_group_busy(g))
		dying_shell(job, g, now);
	if (d->next != 0 && now >= d->next) {
		d->step++;
		dying_step(job);
	}
}

static void dying_poll(struct init_timer *t)
{
	struct init_job *job = cube_container_of(t, struct init_job, poll);
	struct init_group *g = init_job_group(job);

	if (g != NULL)
		dying_look(job, g, init_now());
	init_job_check(job);
	if (!job->ended)
		dying_again(job);
}

void init_job_kill(struct init_job *job, int sig)
{
	const struct init_step *ladder = plain_ladder(sig);
	struct init_group *g = init_job_group(job);

	if (sig < 1 || sig > 64)
		return;
	if (ladder != NULL && !job->ended) {
		dying_begin(job, CUBE_WIRE_KILLED, ladder);
		return;
	}
	job->signals |= UINT64_C(1) << (sig - 1);
	if (g != NULL)
		init_group_signal(g, sig, job->session != NULL);
}

void init_job_interrupt(struct init_job *job)
{
	dying_begin(job, CUBE_WIRE_KILLED, interrupt_ladder);
}

static void timeout_reached(struct init_timer *t)
{
	struct init_job *job = cube_container_of(t, struct init_job, timeout);

	dying_begin(job, CUBE_WIRE_TIMED_OUT, timeout_ladder);
}

void init_job_timeout(struct init_job *job, uint32_t seconds)
{
	if (job->ended)
		return;
	init_timer_stop(&job->timeout);
	if (seconds > 0)
		init_timer_set(&job->timeout, init_now() + seconds * 1000 * INIT_MS, timeout_reached);
}

void init_job_stop_timers(struct init_job *job)
{
	init_timer_stop(&job->timeout);
	init_timer_stop(&job->poll);
}
