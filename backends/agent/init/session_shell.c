/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a session's shell. */
#include "backends/agent/init/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "backends/agent/init/child.h"
#include "backends/agent/init/session_driver.h"
#include "backends/agent/init/shell.h"
#include "backends/base/macros.h"

/* Reads before others have their turn: a user can write to the fifo as fast as it likes. */
#define LISTEN_ROUNDS 16

static void shell_main_pid(void *owner, pid_t pid)
{
	struct init_session *s = owner;

	if (s->job != NULL)
		init_job_running(s->job, pid);
}

static void shell_main_gone(void *owner, int status)
{
	struct init_session *s = owner;

	init_session_shell_listen(s);
	if (s->group != NULL)
		init_session_shell_gone(s, status);
}

static const struct init_group_owner shell_owner = {
	.main_pid = shell_main_pid,
	.main_gone = shell_main_gone,
};

void init_session_shell_listen(struct init_session *s)
{
	struct init_report report;

	for (int round = 0; round < LISTEN_ROUNDS && s->status.fn != NULL; round++) {
		size_t space;
		char *to = init_report_space(s->in, &space);
		ssize_t n = read(s->files.status, to, space);

		if (n <= 0)
			return;
		s->in->len += (size_t)n;
		while (s->status.fn != NULL && init_report_next(s->in, s->seq, &report))
			init_session_reported(s, &report);
	}
}

static void shell_readable(struct init_ev *ev, uint32_t events)
{
	(void)events;
	init_session_shell_listen(cube_container_of(ev, struct init_session, status));
}

/* The text that a new shell begins with, and the exports that it takes over. */
static int shell_begin(struct init_session *s)
{
	struct init_driver d = {.path = s->files.path, .bash = s->bash};
	struct init_text text = {0};
	struct iovec part = {s->exports, s->exports_len};
	int r = s->exports != NULL ? init_session_files_make(&s->files, "e", &part, 1) : 0;

	init_driver_begin(&text, &d, s->exports != NULL);
	part = (struct iovec){text.data, text.len};
	if (r == 0)
		r = text.bad ? -ENOMEM : init_session_files_make(&s->files, "n", &part, 1);
	init_text_done(&text);
	return r;
}

static _Noreturn void shell_child(const struct init_session *s, const char *shell, int failure,
				  const char *cwd, bool cwd_must)
{
	char script[sizeof(s->files.path) + 4];
	struct init_child c = {
		.io = {-1, -1, -1},
		.tty = -1,
		.text = -1,
		.err = failure,
		.session = s->files.dir,
		.shell = shell,
		.script = script,
		.env = s->env,
		.env_len = s->exports == NULL ? s->env_len : 0,
		.cwd = cwd,
		.cwd_must = cwd_must,
		.user = s->user,
	};

	(void)snprintf(script, sizeof(script), "%s/c", s->files.path);
	init_child_run(&c);
}

static int shell_fork(struct init_session *s, const char *shell, const char *cwd, bool cwd_must)
{
	int fds[2];
	int r = init_job_pipe(fds);

	if (r < 0)
		return r;
	s->group = init_group_new(s->id, &shell_owner, s);
	r = s->group == NULL ? -errno : init_group_fork(s->group);
	if (s->group != NULL && r == 0)
		shell_child(s, shell, fds[1], cwd, cwd_must);
	(void)close(fds[1]);
	if (r < 0) {
		(void)close(fds[0]);
		return r;
	}
	s->failure = fds[0];
	return 0;
}

int init_session_shell_start(struct init_session *s, const char *cwd, bool cwd_must)
{
	const char *shell = init_shell();
	char line[sizeof(s->files.path) + 8];
	int r = init_session_files_open(&s->files);

	if (r < 0)
		return r;
	s->bash = init_shell_is_bash(shell);
	s->in->len = 0;
	r = shell_begin(s);
	if (r == 0)
		r = init_ev_add(&s->status, s->files.status, EPOLLIN, shell_readable);
	if (r == 0)
		r = shell_fork(s, shell, cwd, cwd_must);
	if (r == 0)
		r = init_session_shell_say(s, line,
					   (size_t)snprintf(line, sizeof(line), ". %s/n\n", s->files.path));
	if (r < 0)
		init_session_shell_drop(s);
	return r;
}

int init_session_shell_say(struct init_session *s, const char *line, size_t len)
{
	ssize_t n = write(s->files.command, line, len);

	/* All of it or nothing, as for any pipe at this length; full means that the shell has not read for
	 * long. */
	return n == (ssize_t)len ? 0 : n < 0 ? -errno : -EIO;
}

void init_session_shell_drop(struct init_session *s)
{
	struct init_group *g = s->group;

	init_ev_del(&s->status);
	init_session_files_close(&s->files);
	if (s->failure >= 0)
		(void)close(s->failure);
	s->failure = -1;
	s->group = NULL;
	init_group_release(g);
}

void init_session_shell_kill(struct init_session *s)
{
	if (s->group != NULL)
		init_group_kill(s->group);
	init_session_shell_drop(s);
	s->last = 0;
	s->options[0] = '\0';
}
