/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of sessions. */
#include "backends/agent/init/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/agent/init/error.h"
#include "backends/agent/init/report.h"
#include "backends/base/macros.h"

#define WORKSPACE "/workspace"

static struct cube_list sessions = {&sessions, &sessions};
static struct cube_list idle_list = {&idle_list, &idle_list};

struct init_session *init_session_find(uint64_t id)
{
	cube_list_each (i, &sessions) {
		struct init_session *s = cube_list_entry(i, struct init_session, link);

		if (s->id == id)
			return s;
	}
	return NULL;
}

void init_session_each(void (*fn)(struct init_session *s))
{
	cube_list_each (i, &sessions)
		fn(cube_list_entry(i, struct init_session, link));
}

struct init_group *init_session_group(const struct init_session *s)
{
	return s->group;
}

static void session_free(struct init_session *s)
{
	init_tell_nothing_session(s);
	init_session_unwatch(s);
	init_session_shell_drop(s);
	init_session_files_close(&s->files);
	cube_list_remove(&s->link);
	cube_list_remove(&s->idle);
	free(s->in);
	free(s->user);
	free(s->env);
	free(s->cwd);
	free(s->exports);
	init_session_next_done(s);
	free(s);
}

static struct init_session *session_new(uint64_t id, const struct cube_wire_start *m)
{
	struct init_session *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->id = id;
	s->failure = -1;
	init_session_files_init(&s->files);
	cube_list_init(&s->idle);
	cube_list_init(&s->tell);
	cube_list_push(&sessions, &s->link);
	s->user = strndup(m->user_len > 0 ? m->user : "", m->user_len);
	s->env = malloc(m->env_len + 1);
	s->in = calloc(1, sizeof(*s->in));
	if (s->user == NULL || s->env == NULL || s->in == NULL) {
		session_free(s);
		return NULL;
	}
	if (m->env_len > 0)
		memcpy(s->env, m->env, m->env_len);
	s->env_len = m->env_len;
	return s;
}

/* To be done before the next command, but not while somebody waits for the end of this one. */
static void session_put_off(struct init_session *s)
{
	if (cube_list_empty(&s->idle))
		cube_list_push(&idle_list, &s->idle);
}

static void session_idle(struct init_session *s)
{
	char name[64];

	cube_list_remove(&s->idle);
	if (s->closed) {
		session_free(s);
		return;
	}
	if (s->group == NULL)
		return;
	init_group_settle(s->group);
	if (s->probed)
		(void)init_session_files_probe(&s->files, name, sizeof(name));
	(void)init_session_files_output(&s->files); /* tried again, and then reported, by the next command */
}

void init_session_idle_work(void)
{
	while (!cube_list_empty(&idle_list))
		session_idle(cube_list_entry(idle_list.next, struct init_session, idle));
}

/* The command came to nothing before it ran. The shell may be anywhere, so the next one has a fresh one. */
void init_session_refuse(struct init_session *s, int err)
{
	struct init_job *job = s->job;

	init_session_shell_kill(s);
	if (job != NULL)
		init_job_failed(job, 126, err, "the session's shell cannot be reached: %s", init_error(err));
}

static const char *session_refusal(const struct init_session *s, const struct cube_wire_start *m)
{
	if ((m->what & CUBE_WIRE_START_TTY) != 0)
		return "a command of a session cannot have a terminal: run it as a job of its own";
	if ((m->what & CUBE_WIRE_START_ARGV) != 0)
		return "a command of a session is text for its shell: run argv as a job of its own";
	if (m->text_len > 0 && memchr(m->text, 0, m->text_len) != NULL)
		return "the text has a NUL byte, which no shell can read";
	return s != NULL && s->closed ? "the session is being closed" : NULL;
}

static void session_begin(struct init_session *s, struct init_job *job, const struct cube_wire_start *m,
			  bool first)
{
	bool live = s->group != NULL && init_group_alive(s->group) && init_session_files_intact(&s->files);
	char *cwd = m->cwd_len > 0 ? strndup(m->cwd, m->cwd_len) : NULL;
	const char *where;
	int r = 0;

	s->job = job;
	job->session = s;
	s->input = (m->what & CUBE_WIRE_START_STDIN) != 0;
	job->input.expected = s->input;
	if (s->group != NULL && !live) {
		init_session_note_cwd(s);
		init_session_shell_kill(s);
	}
	where = cwd != NULL ? cwd : s->cwd != NULL ? s->cwd : WORKSPACE;
	if (!live)
		r = init_session_shell_start(s, where, cwd != NULL);
	if (r == 0)
		r = init_session_command(s, m, first, live ? cwd : NULL);
	free(cwd);
	if (r < 0)
		init_session_refuse(s, r);
	else if (s->group->main != 0)
		init_job_running(job, s->group->main);
}

void init_session_run(struct init_job *job, const struct cube_wire_start *m)
{
	struct init_session *s = init_session_find(m->session);
	const char *refusal = session_refusal(s, m);
	bool first = s == NULL;

	/* A shell that was killed while it was idle must not get the command. */
	init_group_reap();

	if (refusal != NULL) {
		init_job_failed(job, 126, -EINVAL, "%s", refusal);
		return;
	}
	if (s != NULL && s->job != NULL) {
		init_job_failed(job, 126, -EBUSY, "the session has a command: wait for its end");
		return;
	}
	if (first)
		s = session_new(m->session, m);
	if (s == NULL) {
		init_job_failed(job, 126, -ENOMEM, "no memory for a session");
		return;
	}
	if (!cube_list_empty(&s->idle))
		session_idle(s);
	session_begin(s, job, m, first);
}

void init_session_release(struct init_job *job)
{
	struct init_session *s = job->session;

	job->session = NULL;
	s->job = NULL;
	s->phase = INIT_SESSION_IDLE;
	init_session_next_done(s);
	init_session_unwatch(s);
	/* A shell that was stopped on the way to the command's end, or hangs in it, is of no use any more. */
	if (job->dying.step != NULL && s->group != NULL)
		init_session_shell_kill(s);
	session_put_off(s);
}

/* Takes @copy (allocated) as the directory. */
static void session_set_cwd(struct init_session *s, char *copy)
{
	if (copy == NULL)
		return;
	if (s->cwd == NULL || strcmp(s->cwd, copy) != 0)
		init_tell_session(s);
	free(s->cwd);
	s->cwd = copy;
}

void init_session_note_cwd(struct init_session *s)
{
	char path[CUBE_WIRE_CWD_MAX + 1];

	if (s->group != NULL && s->group->main != 0 && init_procs_cwd(s->group->main, path, sizeof(path)))
		session_set_cwd(s, strdup(path));
}

static void session_learn(struct init_session *s, const char *pwd)
{
	size_t len = 0;
	char *exports = init_session_files_exports(&s->files, &len);

	if (pwd != NULL && pwd[0] != '\0')
		session_set_cwd(s, strdup(pwd));
	else
		init_session_note_cwd(s);
	if (exports == NULL)
		return;
	if (s->exports != NULL && s->exports_len == len && memcmp(s->exports, exports, len) == 0) {
		free(exports);
		return;
	}
	free(s->exports);
	s->exports = exports;
	s->exports_len = len;
	s->exports_told = false;
	init_tell_session(s);
	free(s->env);
	s->env = NULL;
	s->env_len = 0;
}

void init_session_command_over(struct init_session *s, unsigned status, const char *pwd)
{
	s->last = status;
	session_learn(s, pwd);
	init_job_over_code(s->job, (int)status);
}

/* Variables are set and the directory is right: the command itself. */
static void session_go_on(struct init_session *s, unsigned status)
{
	if (status != 0)
		init_job_failed(
			s->job, 126, -ENOENT,
			"the session cannot go to that directory: it is not there, or not open to its user");
	else
		init_session_next(s);
}

/* Whose the files are; a command that came before that was known waited for it. */
static void session_user(struct init_session *s, const struct init_report *r)
{
	init_session_files_given(&s->files, r->a, r->b);
	if (s->phase == INIT_SESSION_USER)
		init_session_next(s);
}

static void session_done(struct init_session *s, const struct init_report *r)
{
	bool useless = r->options[0] == '!';

	(void)snprintf(s->options, sizeof(s->options), "%s", r->options + useless);
	init_session_command_over(s, r->a, r->pwd);
	if (useless && s->job == NULL)
		init_session_shell_kill(s);
}

void init_session_reported(struct init_session *s, const struct init_report *r)
{
	switch (r->kind) {
	case 'u':
		session_user(s, r);
		break;
	case 'i':
		if (s->phase == INIT_SESSION_RUN && r->seq == s->seq)
			init_input_opened(&s->job->input);
		break;
	case 'v':
		if (s->phase == INIT_SESSION_VARS && r->seq == s->seq)
			session_go_on(s, r->a);
		break;
	case 'd':
		if (s->phase == INIT_SESSION_RUN && r->seq == s->seq && !s->job->gone) {
			session_done(s, r);
		}
		break;
	case 'x':
		session_learn(s, r->pwd);
		break;
	default:
		break;
	}
}

void init_session_shell_gone(struct init_session *s, int wait_status)
{
	struct init_job *job = s->job;
	int failure = s->failure;
	int failed = s->group != NULL ? s->group->failed : 0;

	s->failure = -1;
	s->last = 0;
	s->options[0] = '\0';
	init_tell_session(s);
	init_session_shell_drop(s);
	if (job == NULL || job->ended) {
		if (failure >= 0)
			(void)close(failure);
		return;
	}
	if (init_job_take_failure(job, failure))
		return;
	if (failed != 0)
		init_job_failed(job, 126, -failed, "no shell could be started: %s", init_error(failed));
	else
		init_job_over(job, wait_status);
}

void init_session_close(struct init_session *s, bool reset)
{
	struct init_job *job = s->job;

	init_session_note_cwd(s);
	/* A command's shell is ended with it. */
	if (job != NULL && !job->ended)
		init_job_kill(job, SIGKILL);
	else if (s->group != NULL)
		init_session_shell_kill(s);
	init_tell_session(s);
	if (reset)
		return;
	init_group_kill_session(s->id);
	s->closed = true;
	if (s->job == NULL)
		session_put_off(s);
}
