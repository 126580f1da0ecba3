/* SPDX-License-Identifier: Apache-2.0 */
/* One command of a session: its pipes and texts, the round before it that sets variables, and what waits meanwhile. */
#include "backends/agent/init/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "backends/agent/init/session_driver.h"

/* The pipes of the command, by the fifos o and i. */
static int command_pipes(struct init_session *s, struct init_job *job, bool input)
{
	int fd, keep = -1;
	int r = init_session_files_output(&s->files);

	if (r < 0)
		return r;
	fd = s->files.output;
	s->files.output = -1;
	r = init_output_attach(&job->output, fd, false, false);
	if (r < 0 || !input)
		return r;
	r = init_session_files_input(&s->files, &fd, &keep);
	if (r < 0)
		return r;
	job->input.keep_fd = keep;
	return init_input_attach(&job->input, fd, false);
}

/* The texts t, d and, where it is needed, r. */
static int command_texts(struct init_session *s, const char *text, size_t len)
{
	struct init_driver d = {.path = s->files.path, .bash = s->bash};
	struct init_text driver = {0};
	char *prefix = strdup(init_driver_prefix(s->options));
	char back[32];
	struct iovec parts[2];
	int r = prefix == NULL ? -ENOMEM : 0;

	init_driver_run(&driver, &d, s->seq, s->last, s->input);
	if (driver.bad)
		r = -ENOMEM;
	if (r == 0) {
		char *body = NULL;

		memcpy(&body, &text, sizeof(body)); /* iov_base has no const */
		parts[0] = (struct iovec){prefix, strlen(prefix)};
		parts[1] = (struct iovec){body, len};
		r = init_session_files_put(s->files.text, parts, 2);
	}
	if (r == 0) {
		parts[0] = (struct iovec){driver.data, driver.len};
		r = init_session_files_put(s->files.driver[s->seq & 1], parts, 1);
	}
	if (r == 0 && s->last != 0) {
		parts[0] = (struct iovec){back, (size_t)snprintf(back, sizeof(back), "return %u\n", s->last)};
		r = init_session_files_make(&s->files, "r", parts, 1);
	}
	init_text_done(&driver);
	free(prefix);
	return r;
}

static int command_run(struct init_session *s, const char *text, size_t len)
{
	char line[sizeof(s->files.path) + 8];
	int r = command_pipes(s, s->job, s->input);

	if (r < 0)
		return r;
	s->seq++;
	r = command_texts(s, text, len);
	if (r < 0)
		return r;
	s->phase = INIT_SESSION_RUN;
	init_session_watch(s);
	return init_session_shell_say(
		s, line,
		(size_t)snprintf(line, sizeof(line), ". %s/%c\n", s->files.path, s->seq & 1 ? 'D' : 'd'));
}

/* Variables and directory first; the command waits until they are set. */
static int command_vars(struct init_session *s)
{
	struct init_driver d = {.path = s->files.path, .bash = s->bash};
	struct init_text vars = {0};
	char line[sizeof(s->files.path) + 8];
	struct iovec part;
	int r;

	s->seq++;
	init_driver_vars(&vars, &d, s->seq, s->next.env, s->next.env_len, s->next.cwd);
	part = (struct iovec){vars.data, vars.len};
	r = vars.bad ? -ENOMEM : init_session_files_make(&s->files, "v", &part, 1);
	init_text_done(&vars);
	if (r < 0)
		return r;
	s->next.vars = false;
	s->phase = INIT_SESSION_VARS;
	init_session_watch(s);
	return init_session_shell_say(s, line,
				      (size_t)snprintf(line, sizeof(line), ". %s/v\n", s->files.path));
}

static bool next_copy(char **ret, size_t *ret_len, const char *data, size_t len)
{
	*ret = malloc(len + 1);
	if (*ret == NULL)
		return false;
	if (len > 0)
		memcpy(*ret, data, len);
	(*ret)[len] = '\0';
	*ret_len = len;
	return true;
}

void init_session_next_done(struct init_session *s)
{
	free(s->next.text);
	free(s->next.env);
	free(s->next.cwd);
	s->next = (struct init_next){0};
}

/* Keeps what the message will no longer have. */
static int next_keep(struct init_session *s, const struct cube_wire_start *m, bool vars, const char *cwd)
{
	size_t len;

	init_session_next_done(s);
	s->next.vars = vars;
	if (!next_copy(&s->next.text, &s->next.text_len, m->text, m->text_len) ||
	    !next_copy(&s->next.env, &s->next.env_len, m->env, m->env_len) ||
	    (cwd != NULL && !next_copy(&s->next.cwd, &len, cwd, strlen(cwd))))
		return -ENOMEM;
	return 0;
}

void init_session_next(struct init_session *s)
{
	int r = s->next.vars ? command_vars(s) : command_run(s, s->next.text, s->next.text_len);

	if (r < 0)
		init_session_refuse(s, r);
}

int init_session_command(struct init_session *s, const struct cube_wire_start *m, bool first, const char *cwd)
{
	/* The environment of a session's first command is its shell's own. */
	bool vars = (!first && m->env_len > 0) || cwd != NULL;
	bool user = s->user[0] != '\0' && !s->files.given;
	int r = vars || user ? next_keep(s, m, vars, cwd) : 0;

	if (r < 0)
		return r;
	if (user) {
		/* The files made for this command must be that user's. */
		s->phase = INIT_SESSION_USER;
		init_session_watch(s);
		return 0;
	}
	return vars ? command_vars(s) : command_run(s, m->text, m->text_len);
}
