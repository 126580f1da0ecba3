/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a job: who waits is woken at once; journal, transcript, events and trimming follow. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/base/log.h"
#include "ctl/ctl_priv.h"
#include "ctl/event.h"
#include "ctl/transcript.h"

void cube_job_output(struct cube_job *j, uint64_t total, uint64_t err_total)
{
	if (total <= j->total)
		return;
	j->total = total;
	j->err_total = err_total <= total ? err_total : total;
	if (j->state == CUBE_JOB_ENDED) { /* a background child of an ended command */
		j->end.total = j->total;
		j->end.err_total = j->err_total;
	}
	cube_wake(&j->changed);
	cube_output_account(j);
	cube_output_punch(j);
}

/* A signal that cubefs sent to the whole sandbox: the far side cannot know for which job it counts. */
static void end_fix(struct cube_job *j, const struct cube_end_record *end)
{
	j->end = *end;
	if (end->how == CUBE_END_SIGNAL && end->signal != 0 && end->signal == cube_job_own(j)->fatal)
		j->end.how = CUBE_END_KILLED;
	if (end->how == CUBE_END_LOST)
		j->end.code = -1;
}

static void end_totals(struct cube_job *j)
{
	if (j->end.total > j->total)
		cube_job_output(j, j->end.total, j->end.err_total);
	j->end.total = j->total;
	j->end.err_total = j->err_total;
}

void cube_job_ended(struct cube_job *j, const struct cube_end_record *end, const struct cube_err *why)
{
	end_fix(j, end);
	end_totals(j);
	if (why != NULL)
		j->why = *why;
	j->state = CUBE_JOB_ENDED;
	j->finished_wall = cube_clock_wall();
	cube_job_own(j)->unsettled = true;
	cube_job_ended_add(j);
	cube_wake(&j->changed);
	if (j->session != NULL)
		cube_session_dequeue(j);
}

void cube_job_end_without(struct cube_job *j, enum cube_end how, int sig, const struct cube_err *why)
{
	struct cube_end_record end = {
		.how = how, .code = how == CUBE_END_LOST ? -1 : 128 + sig, .signal = sig};

	if (j->state == CUBE_JOB_RUNNING) {
		cube_output_measure(j, &end.total, &end.err_total);
		cube_job_own(j)->unforgotten = true; /* should the far side still have it */
	}
	cube_job_ended(j, &end, why);
}

void cube_cube_end_jobs(struct cube_cube *c, enum cube_end how, const struct cube_err *why)
{
	uint64_t at = 0;

	for (struct cube_job *j = cube_job_next_live(c, at); j != NULL; j = cube_job_next_live(c, at)) {
		at = j->seq;
		if (j->state == CUBE_JOB_RUNNING || j->state == CUBE_JOB_WAITING)
			cube_job_end_without(j, how, how == CUBE_END_KILLED ? 9 : 0, why);
	}
	cube_jobs_settle(c);
}

/* ---- Behind ---- */

/* At most CUBE_TRANSCRIPT_JOB bytes of each job, both streams together. */
static void say_stream(struct cube_job *j, const struct cube_spool_view *v, enum cube_stream stream,
		       const char *what, uint64_t *pos, uint64_t room)
{
	char data[16384], source[32];
	ssize_t n;

	(void)snprintf(source, sizeof(source), "%llu %s", (unsigned long long)j->number, what);
	while (room >= CUBE_SPOOL_MARKER) {
		n = cube_spool_follow(v, stream, data, room < sizeof(data) ? (size_t)room : sizeof(data),
				      pos);
		if (n <= 0)
			break;
		cube_transcript_add(j->cube->log, source, data, (size_t)n, false);
		room -= (uint64_t)n < room ? (uint64_t)n : room;
	}
	if (j->state == CUBE_JOB_ENDED && *pos > 0)
		cube_transcript_add(j->cube->log, source, "", 0, true);
}

void cube_job_transcribe(struct cube_job *j)
{
	struct cube_job_own *own = cube_job_own(j);
	uint64_t said = own->said_out + own->said_err;
	struct cube_spool_view v;

	if (j->output == NULL || j->forgotten || j->cube->log == NULL ||
	    (said == j->total && j->state != CUBE_JOB_ENDED))
		return;
	v = (struct cube_spool_view){.out_fd = j->output->out_fd,
				     .order_fd = j->output->order_fd,
				     .total = j->total,
				     .err_total = j->err_total,
				     .limit = own->limit};
	say_stream(j, &v, CUBE_STREAM_STDOUT, "out", &own->said_out,
		   said < CUBE_TRANSCRIPT_JOB ? CUBE_TRANSCRIPT_JOB - said : 0);
	said = own->said_out + own->said_err;
	if (j->output->order_fd >= 0)
		say_stream(j, &v, CUBE_STREAM_STDERR, "err", &own->said_err,
			   said < CUBE_TRANSCRIPT_JOB ? CUBE_TRANSCRIPT_JOB - said : 0);
}

static void settle_one(struct cube_job *j)
{
	struct cube_job_own *own = cube_job_own(j);
	struct cube_cube *c = j->cube;

	own->unsettled = false;
	cube_job_input_done(j);
	cube_job_transcribe(j);
	cube_journal_end(j);
	if (j->end.code >= 0)
		cube_event(c->domain->events, c->name, "job.ended", "%s %s %d", j->name,
			   cube_end_name(j->end.how), j->end.code);
	else
		cube_event(c->domain->events, c->name, "job.ended", "%s %s", j->name,
			   cube_end_name(j->end.how));
	if (j->end.how == CUBE_END_OOM)
		cube_event(c->domain->events, c->name, "oom", "%s", j->name);
	cube_output_account(j);
	cube_output_unref(cube_steal(j->output));
}

static void settle_forget(struct cube_job *j)
{
	struct cube_job_own *own = cube_job_own(j);

	if (!own->unforgotten || j->cube->agent == NULL)
		return;
	own->unforgotten = false;
	cube_link_forget(j->cube->agent, j->number);
}

/* What was journalled may be forgotten at the far side; what could not be is kept there. */
static void settle_flush(struct cube_cube *c, struct cube_job *one)
{
	struct cube_err err;

	cube_jobs_trim(c);
	if (cube_journal_flush(c, &err) < 0) {
		cube_log(CUBE_LOG_ERROR, "ctl", "%s", err.text);
		return;
	}
	if (one != NULL)
		settle_forget(one);
	else
		cube_list_each (i, &c->jobs) {
			struct cube_job *j = cube_list_entry(i, struct cube_job, link);

			if (j->state == CUBE_JOB_ENDED)
				settle_forget(j);
		}
	cube_use_ended(c);
	cube_output_ahead(c);
}

void cube_job_settle(struct cube_job *j)
{
	if (!cube_job_own(j)->unsettled)
		return;
	settle_one(j);
	settle_flush(j->cube, j);
}

void cube_jobs_settle(struct cube_cube *c)
{
	bool any = false;

	cube_list_each (i, &c->jobs) {
		struct cube_job *j = cube_list_entry(i, struct cube_job, link);

		if (!cube_job_own(j)->unsettled)
			continue;
		settle_one(j);
		any = true;
	}
	if (any)
		settle_flush(c, NULL);
}
