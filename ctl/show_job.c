/* SPDX-License-Identifier: Apache-2.0 */
/* The files of jobs and sessions. */
#include "ctl/show_priv.h"

#include <inttypes.h>

static const char *const show_job_states[] = {
	[CUBE_JOB_NEW] = "new",
	[CUBE_JOB_WAITING] = "waiting",
	[CUBE_JOB_RUNNING] = "running",
	[CUBE_JOB_ENDED] = "ended",
};

const char *cube_show_job_state(const struct cube_job *j)
{
	return show_job_states[j->state];
}

static bool show_has_end(const struct cube_job *j)
{
	return j->state == CUBE_JOB_ENDED;
}

int cube_show_job_exit(struct cube_job *j, struct cube_buf *out)
{
	if (j == NULL || !show_has_end(j))
		return cube_buf_adds(out, "-\n");
	if (j->end.how == CUBE_END_LOST)
		return cube_buf_adds(out, "lost\n");
	return cube_buf_printf(out, "%d\n", j->end.code);
}

static uint64_t show_dropped(struct cube_job *j)
{
	struct cube_spool_view v;
	struct cube_output *o = cube_job_view(j, &v);
	uint64_t dropped;

	if (o == NULL)
		return 0;
	dropped = cube_spool_dropped(&v);
	cube_output_unref(o);
	return dropped;
}

static void show_end(struct cube_job *j, struct cube_buf *out)
{
	bool ended = show_has_end(j);

	cube_show_str(out, "ended", ended ? cube_end_name(j->end.how) : NULL);
	cube_buf_adds(out, "exit ");
	(void)cube_show_job_exit(j, out);
	if (ended && j->end.signal != 0)
		cube_show_num(out, "signal", (uint64_t)j->end.signal);
	else
		cube_show_str(out, "signal", NULL);
	if (j->why.code != 0)
		cube_show_str(out, "error", j->why.text);
}

int cube_show_job_status(struct cube_job *j, struct cube_buf *out)
{
	cube_show_str(out, "state", cube_show_job_state(j));
	cube_show_str(out, "session", j->session != NULL ? j->session->name : NULL);
	cube_show_num(out, "number", j->number);
	cube_show_num(out, "pid", j->pid > 0 ? (uint64_t)j->pid : UINT64_MAX);
	cube_show_time(out, "created", j->created_wall);
	cube_show_time(out, "started", j->started_wall);
	cube_show_time(out, "finished", j->finished_wall);
	show_end(j, out);
	cube_show_num(out, "timeout", j->timeout_s);
	if (j->tty)
		cube_buf_printf(out, "tty %u %u\n", j->rows, j->cols);
	if (j->state != CUBE_JOB_ENDED)
		cube_show_num(out, "input", cube_job_input_total(j));
	cube_show_num(out, "bytes", j->total);
	cube_show_num(out, "dropped", show_dropped(j));
	return out->error;
}

int cube_show_job_ctl(struct cube_job *j, struct cube_buf *out)
{
	cube_show_str(out, "state", cube_show_job_state(j));
	return cube_show_usage(CUBE_SCOPE_JOB, j, out);
}

int cube_show_session_status(struct cube_session *s, struct cube_buf *out)
{
	struct cube_job *running = NULL;
	uint64_t waiting = 0;

	cube_list_each (at, &s->queue) {
		struct cube_job *j = cube_list_entry(at, struct cube_job, in_session);

		if (j->state == CUBE_JOB_RUNNING)
			running = j;
		else
			waiting++;
	}
	cube_show_str(out, "state", running != NULL ? "busy" : waiting > 0 ? "waiting" : "idle");
	cube_show_str(out, "shell", s->open ? "started" : "not started");
	cube_show_str(out, "job", running != NULL ? running->name : NULL);
	cube_show_num(out, "waiting", waiting);
	cube_show_str(out, "cwd", s->cwd);
	cube_show_str(out, "user", s->user);
	cube_show_num(out, "patience", s->patience_s);
	cube_show_num(out, "timeout", s->timeout_s);
	return out->error;
}

int cube_show_session_ctl(struct cube_session *s, struct cube_buf *out)
{
	cube_show_str(out, "session", s->name);
	return cube_show_usage(CUBE_SCOPE_SESSION, s, out);
}
