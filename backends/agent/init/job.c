/* SPDX-License-Identifier: Apache-2.0 */
/* The table of jobs and their ends. */
#include "backends/agent/init/job.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/agent/init/child.h"
#include "backends/agent/init/dispatch.h"
#include "backends/agent/init/error.h"
#include "backends/agent/init/report.h"
#include "backends/agent/init/session.h"
#include "backends/base/macros.h"

static struct cube_list jobs = {&jobs, &jobs};

struct init_job *init_job_find(uint64_t id)
{
	/* The newest are at the end, and are what is asked for. */
	for (struct cube_list *i = jobs.prev; i != &jobs; i = i->prev) {
		struct init_job *job = cube_list_entry(i, struct init_job, link);

		if (job->id == id)
			return job;
	}
	return NULL;
}

void init_job_each(void (*fn)(struct init_job *job))
{
	cube_list_each (i, &jobs)
		fn(cube_list_entry(i, struct init_job, link));
}

static void job_output_changed(struct init_output *o)
{
	struct init_job *job = cube_container_of(o, struct init_job, output);

	init_tell(job, INIT_TELL_OUTPUT);
	if (job->tail && !init_output_open(o))
		init_tell(job, INIT_TELL_GONE);
}

static void job_input_changed(struct init_input *in)
{
	struct init_job *job = cube_container_of(in, struct init_job, input);

	/* A message for each little piece would cost more than the piece. */
	if (in->taken == in->received || in->taken - in->told >= CUBE_WIRE_WINDOW / 4)
		init_tell(job, INIT_TELL_CREDIT);
}

/* Two pipes: not for a terminal, and not for a session, whose shell has one for both. */
static bool start_separate(const struct cube_wire_start *m)
{
	return (m->what & (CUBE_WIRE_START_MERGE | CUBE_WIRE_START_TTY)) == 0 && m->session == 0;
}

static struct init_job *job_new(uint64_t id, const struct cube_wire_start *m, int out_fd, int order_fd)
{
	struct init_job *job = calloc(1, sizeof(*job));

	if (job == NULL)
		return NULL;
	job->id = id;
	job->session_id = m->session;
	job->tty = job->failure = -1;
	cube_list_init(&job->tell);
	if (order_fd >= 0 && !start_separate(m)) {
		(void)close(order_fd);
		order_fd = -1;
	}
	init_output_init(&job->output, out_fd, order_fd, m->limit, job_output_changed);
	init_input_init(&job->input, job_input_changed);
	cube_list_push(&jobs, &job->link);
	return job;
}

/* Its record is there: gets it going, or ends it. */
static void start_known(struct init_job *job, const struct cube_wire_start *m, bool lost)
{
	int r = lost ? -EMFILE : 0;

	if (r == 0 && job->output.out_fd < 0)
		r = init_output_own(&job->output, start_separate(m));
	if (r < 0)
		init_job_failed(job, 126, r, "no place for the output: %s", init_error(r));
	else if (m->session != 0)
		init_session_run(job, m);
	else
		init_job_spawn(job, m);
	if (!job->ended && m->timeout_s > 0)
		init_job_timeout(job, m->timeout_s);
}

int init_job_start(uint64_t id, const struct cube_wire_start *m, void *message, int out_fd, int order_fd)
{
	bool used = init_job_find(id) != NULL;
	struct init_job *job = used ? NULL : job_new(id, m, out_fd, order_fd);

	if (job != NULL) {
		start_known(job, m, out_fd == INIT_FD_LOST);
	} else {
		if (out_fd >= 0)
			(void)close(out_fd);
		if (order_fd >= 0)
			(void)close(order_fd);
		/* No memory even for the record: the daemon is told, and nothing is kept. */
		if (!used)
			init_tell_refused(id);
	}
	free(message);
	return used ? -EPROTO : 0;
}

void init_job_running(struct init_job *job, pid_t pid)
{
	job->pid = pid;
	init_tell(job, INIT_TELL_STARTED);
}

void init_job_failed(struct init_job *job, int code, int err, const char *fmt, ...)
{
	char text[CUBE_WIRE_ERR_MAX + 1];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	free(job->why);
	job->why = strdup(text);
	job->end.how = CUBE_WIRE_EXIT;
	job->end.code = (uint8_t)code;
	job->end.err = err < 0 ? err : -EIO;
	job->gone = true;
	init_job_finish(job);
}

bool init_job_take_failure(struct init_job *job, int fd)
{
	struct init_child_failure f;
	ssize_t n = fd < 0 ? -1 : read(fd, &f, sizeof(f));

	if (fd >= 0)
		(void)close(fd);
	if (n != (ssize_t)sizeof(f))
		return false;
	f.text[sizeof(f.text) - 1] = '\0';
	init_job_failed(job, f.code, f.err, "%s", f.text);
	return true;
}

void init_job_over_code(struct init_job *job, int code)
{
	if (job->gone)
		return;
	job->gone = true;
	job->end.how = CUBE_WIRE_EXIT;
	job->end.code = (uint8_t)code;
	init_job_check(job);
}

void init_job_over(struct init_job *job, int wait_status)
{
	if (job->gone)
		return;
	if (wait_status == -1) {
		job->gone = true;
		job->end.how = CUBE_WIRE_LOST;
		init_job_check(job);
	} else if (WIFSIGNALED(wait_status)) {
		job->gone = true;
		job->end.how = CUBE_WIRE_SIGNAL;
		job->end.signal = (uint8_t)WTERMSIG(wait_status);
		job->end.code = (uint8_t)(128 + WTERMSIG(wait_status));
		init_job_check(job);
	} else {
		init_job_over_code(job, WEXITSTATUS(wait_status));
	}
}

struct init_group *init_job_group(const struct init_job *job)
{
	return job->session != NULL ? init_session_group(job->session) : job->group;
}

void init_job_check(struct init_job *job)
{
	struct init_group *g = init_job_group(job);

	if (!job->gone || job->ended)
		return;
	if (job->dying.step != NULL && job->dying.whole && g != NULL && init_group_busy(g))
		return; /* job_kill.c looks again */
	init_job_finish(job);
}

/* A signal of ours ended it, directly or as a shell says it (128 + signal). */
static bool job_by_our_signal(const struct init_job *job)
{
	int sig = job->end.how == CUBE_WIRE_SIGNAL ? job->end.signal : job->end.code - 128;

	return sig > 0 && sig <= 64 && (job->signals >> (sig - 1) & 1) != 0;
}

static void job_decide(struct init_job *job)
{
	struct cube_wire_ended *end = &job->end;

	if (end->err != 0)
		return;
	if (job->dying.step != NULL && job->dying.how == CUBE_WIRE_TIMED_OUT) {
		end->how = CUBE_WIRE_TIMED_OUT;
		end->signal = 0;
		end->code = 124;
	} else if (job->dying.step != NULL) {
		end->how = CUBE_WIRE_KILLED;
		end->signal = (uint8_t)job->dying.step->sig;
		end->code = (uint8_t)(128 + end->signal);
	} else if (job_by_our_signal(job)) {
		end->signal = (uint8_t)(end->code - 128);
		end->how = CUBE_WIRE_KILLED;
	}
}

void init_job_finish(struct init_job *job)
{
	if (job->ended)
		return;
	init_job_stop_timers(job);
	job_decide(job);
	init_output_drain(&job->output);
	job->ended = true;
	job->end.wall_ns = init_wall();
	init_input_done(&job->input);
	if (job->session != NULL)
		init_session_release(job);
	init_tell(job, INIT_TELL_OUTPUT | INIT_TELL_ENDED);
}

static void job_free(struct init_job *job)
{
	init_tell_nothing(job);
	cube_list_remove(&job->link);
	init_job_stop_timers(job);
	init_group_release(job->group);
	init_output_done(&job->output);
	init_input_done(&job->input);
	if (job->tty >= 0)
		(void)close(job->tty);
	if (job->failure >= 0)
		(void)close(job->failure);
	free(job->why);
	free(job);
}

void init_job_forget(struct init_job *job)
{
	if (!job->ended)
		return;
	job->tail = true;
	if (!init_output_open(&job->output))
		init_tell(job, INIT_TELL_GONE);
}

void init_job_drop(struct init_job *job)
{
	job_free(job);
}

static uint64_t paused_ns;

static void job_paused(struct init_job *job)
{
	if (job->timeout.at != 0)
		job->timeout.at += paused_ns;
	if (job->dying.next != 0)
		job->dying.next += paused_ns;
}

void init_job_paused(uint64_t ns)
{
	paused_ns = ns;
	init_job_each(job_paused);
}
