/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a job: from the text to the link, with nothing slow on the way. Signals to what runs. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "ctl/ctl_priv.h"
#include "ctl/event.h"
#include "ctl/signal.h"
#include "ctl/transcript.h"

/* The far side gives back what the limit does not keep only as a last resort, when no daemon is there to do
 * it in regard of who reads (output.c). */
#define LINK_LIMIT_FACTOR 4u

static bool job_can_start(struct cube_job *j)
{
	if (j->state != CUBE_JOB_WAITING || j->forgotten)
		return false;
	if (j->session != NULL && (j->session->removed || j->session->queue.next != &j->in_session))
		return false; /* one after the other */
	if (cube_job_own(j)->at_boot && cube_own(j->cube)->op != NULL && cube_own(j->cube)->op->waits_boot)
		return cube_conn_ready(j->cube);
	return cube_cube_usable(j->cube, true, NULL) == 0;
}

/* ---- What it is started with ---- */

/* A terminal needs a name for what it can do. */
static int run_add_term(struct cube_buf *env)
{
	static const char term[] = "TERM=xterm-256color";

	for (size_t at = 0; at < env->len; at += strlen(env->data + at) + 1)
		if (strncmp(env->data + at, "TERM=", 5) == 0)
			return 0;
	if (env->len > 0 && env->data[env->len - 1] != '\0')
		cube_buf_addc(env, '\0');
	return cube_buf_add(env, term, sizeof(term));
}

static int run_env(struct cube_job *j, struct cube_buf *out)
{
	struct cube_env_text *env;
	int r;

	if (j->session != NULL)
		return cube_session_start_env(j->session, out);
	env = j->has_env ? cube_create_env_text(cube_buf_str(&j->env), j->env.len)
			 : cube_env_text_ref(cube_own(j->cube)->env_text);
	if (env == NULL)
		return -ENOMEM;
	r = cube_buf_add(out, env->data, env->len);
	cube_env_text_unref(env);
	return r == 0 && j->tty ? run_add_term(out) : r;
}

static void run_fill(struct cube_job *j, struct cube_link_start *s)
{
	struct cube_session *in = j->session;

	s->job = j->number;
	s->argv = j->argv;
	s->tty = j->tty;
	s->rows = j->rows;
	s->cols = j->cols;
	s->merge = j->merge || j->tty;
	s->timeout_s = j->timeout_s != 0                  ? j->timeout_s
		       : in != NULL && in->timeout_s != 0 ? in->timeout_s
							  : j->cube->command_timeout_s;
	s->cwd = j->cwd;
	s->user = j->user != NULL ? j->user : cube_inside_default_user(j->cube);
	if (in != NULL) {
		s->session = in->number;
		s->cwd = cube_session_own(in)->new_cwd;
		s->user = in->user != NULL ? in->user : cube_inside_default_user(j->cube);
	}
	s->out_fd = j->output->out_fd;
	s->order_fd = j->output->order_fd;
	s->limit = cube_job_own(j)->limit * LINK_LIMIT_FACTOR;
}

/* ---- The start ---- */

static void run_failed(struct cube_job *j, int code, const struct cube_err *err)
{
	struct cube_end_record end = {.how = CUBE_END_EXIT, .code = 126};
	struct cube_err why = *err;

	why.code = code;
	cube_job_ended(j, &end, &why);
	cube_job_settle(j);
}

/* For people: after it was sent. */
static void run_announce(struct cube_job *j, const char *text, size_t len)
{
	char source[32];

	(void)snprintf(source, sizeof(source), "%llu in", (unsigned long long)j->number);
	if (len > CUBE_TRANSCRIPT_JOB)
		len = CUBE_TRANSCRIPT_JOB;
	cube_transcript_add(j->cube->log, source, text, len, true);
	cube_event(j->cube->domain->events, j->cube->name, "job.started", "%s", j->name);
}

static int run_send(struct cube_job *j, const char *text, size_t len, struct cube_err *err)
{
	struct cube_buf env = CUBE_BUF(2 * CUBE_ENV_MAX + 4096);
	struct cube_link_start s = {.text = text, .text_len = len};
	int r = run_env(j, &env);

	if (r < 0)
		(void)cube_fail(err, r, "its environment: %s", cube_errno_text(r));
	else {
		s.env = cube_buf_str(&env);
		s.env_len = env.len;
		s.in = cube_job_own(j)->in_pipe ? CUBE_STDIN_PIPE : CUBE_STDIN_EMPTY;
		run_fill(j, &s);
		cube_use_starts(j->cube);
		r = cube_link_start(j->cube->agent, &s, err);
	}
	cube_buf_done(&env);
	return r;
}

/* The journal has it before it is sent: its number must not go out twice, and who comes after a worker that was killed
 * in between must know that it may run. */
static int run_journal(struct cube_job *j, struct cube_err *err)
{
	cube_journal_job(j);
	return cube_journal_flush(j->cube, err);
}

static void run_started(struct cube_job *j, const char *text, size_t len)
{
	if (j->session != NULL) {
		cube_session_started(j->session);
		if (j->of_exec)
			cube_session_show(j->session, j);
	}
	run_announce(j, text, len);
	cube_wake(&j->changed);
	cube_job_feed(j);
}

/* The link broke at this moment: it goes out over the next one. Or the session is still busy with a command
 * that was removed here: it goes out when that one's end comes (conn.c). */
static void run_hold(struct cube_job *j)
{
	j->state = CUBE_JOB_WAITING;
	j->started_wall = 0;
	cube_job_own(j)->boot = 0;
	cube_output_unref(cube_steal(j->output));
}

void cube_job_start(struct cube_job *j, const char *text, size_t len)
{
	struct cube_job_own *own = cube_job_own(j);
	struct cube_err err = {0};
	int r;

	if (!job_can_start(j))
		return;
	own->limit = j->cube->domain->output_limit;
	r = cube_output_start(j, &err);
	if (r == 0) {
		j->state = CUBE_JOB_RUNNING;
		j->started_wall = cube_clock_wall();
		own->boot = cube_own(j->cube)->boot;
		cube_job_input_start(j);
		r = run_journal(j, &err);
	}
	if (r == 0)
		r = run_send(j, text, len, &err);
	if (r == -EHOSTDOWN || (r == -EBUSY && j->session != NULL))
		run_hold(j);
	else if (r < 0)
		run_failed(j, r, &err);
	else
		run_started(j, text, len);
}

void cube_job_try(struct cube_job *j)
{
	struct cube_job_own *own = cube_job_own(j);
	struct cube_buf text = CUBE_BUF(CUBE_TEXT_MAX);
	struct cube_err err;

	if (!job_can_start(j))
		return;
	if (!own->text_on_disk) {
		cube_job_start(j, own->text != NULL ? own->text : "", own->text_len);
		return;
	}
	int r = cube_job_text(j, j->argv, &text);
	if (r == 0)
		cube_job_start(j, cube_buf_str(&text), text.len);
	else {
		(void)cube_fail(&err, r, "its text on disk: %s", cube_errno_text(r));
		run_failed(j, r, &err);
	}
	cube_buf_done(&text);
}

void cube_job_again(struct cube_job *j)
{
	run_hold(j);
	cube_job_input_again(j);
}

static void run_go_on(struct cube_job *j)
{
	if (cube_job_own(j)->interrupted)
		cube_link_interrupt(j->cube->agent, j->number);
	cube_job_feed(j);
}

/* A start may end at once and so change the lists: the walk goes by number. */
void cube_jobs_kick(struct cube_cube *c)
{
	uint64_t at = 0;

	if (cube_list_empty(&c->jobs) || c->phase == CUBE_REMOVED)
		return;
	for (struct cube_job *j = cube_job_next_live(c, at); j != NULL; j = cube_job_next_live(c, at)) {
		at = j->seq;
		if (j->state == CUBE_JOB_RUNNING && cube_conn_ready(c))
			run_go_on(j);
		else if (j->state == CUBE_JOB_WAITING)
			cube_job_try(j);
	}
}

/* ---- Signals ---- */

static void run_cancel(struct cube_job *j, int sig)
{
	static const struct cube_err never = {.text = "it was ended before its start"};

	cube_job_end_without(j, CUBE_END_KILLED, sig, &never);
	cube_job_settle(j);
}

int cube_job_kill(struct cube_job *j, int sig, struct cube_err *err)
{
	switch (j->state) {
	case CUBE_JOB_NEW:
		return cube_fail(err, -EBUSY, "job '%s' has no command yet", j->name);
	case CUBE_JOB_WAITING:
		if (cube_signal_ends(sig))
			run_cancel(j, sig);
		return 0;
	case CUBE_JOB_ENDED:
		return 0;
	case CUBE_JOB_RUNNING:
		break;
	}
	if (j->cube->agent == NULL)
		return cube_fail(err, -EHOSTUNREACH,
				 "job '%s': the agent of sandbox '%s' is not connected; try again", j->name,
				 j->cube->name);
	if (cube_signal_ends(sig))
		cube_job_own(j)->fatal = sig;
	cube_link_kill(j->cube->agent, j->number, sig);
	return 0;
}

void cube_job_interrupt(struct cube_job *j)
{
	if (j->state == CUBE_JOB_WAITING)
		run_cancel(j, SIGINT);
	else if (j->state == CUBE_JOB_RUNNING) {
		cube_job_own(j)->interrupted = true;
		if (cube_conn_ready(j->cube))
			cube_link_interrupt(j->cube->agent, j->number);
	}
}
