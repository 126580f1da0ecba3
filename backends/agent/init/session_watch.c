/* SPDX-License-Identifier: Apache-2.0 */
/* Shells that will never report: a function named `command`, `set -n`, a removed directory.
 *
 * Whether a shell is still at a command or has come back to its own input cannot be seen from outside, but it
 * can be asked: a line that waits for it there is read only when it is back. The line is nothing but a
 * redirection, which no function can stand in for, and the name of the file that it makes holds the command's
 * number and its status. It is said once, a second into a command, and looked for every second. */
#include "backends/agent/init/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "backends/base/macros.h"

#define WATCH_EVERY  (1000 * INIT_MS)
#define WATCH_SILENT 2 /* looks after which a shell that read the line and did not obey is given up */

static void watch_look(struct init_timer *t);

/* The status in a file made for this command; -1: there is none. */
static int watch_found(struct init_session *s)
{
	char name[64], expect[32];
	int n = snprintf(expect, sizeof(expect), "%" PRIu64 ".", s->seq);
	int status = -1;

	while (status < 0 && init_session_files_probe(&s->files, name, sizeof(name))) {
		if (strncmp(name, expect, (size_t)n) == 0)
			status = (int)(strtoul(name + n, NULL, 10) & 255);
	}
	return status;
}

/* The shell is back and has not reported: the command has ended, and the shell is of no use. */
static void watch_broken(struct init_session *s, int status)
{
	struct init_job *job = s->job;

	init_session_note_cwd(s);
	init_session_shell_kill(s);
	if (s->phase == INIT_SESSION_RUN && status >= 0)
		init_session_command_over(s, (unsigned)status, NULL);
	else
		init_job_failed(
			job, 2, -EIO,
			"the session's shell no longer runs commands (set -n, or its files were removed): "
			"it was replaced");
}

static void watch_probe(struct init_session *s)
{
	char line[sizeof(s->files.path) + 64];
	int n = snprintf(line, sizeof(line), ">|%s/q/%" PRIu64 ".$__cube_s\n", s->files.path, s->seq);

	s->probed = init_session_shell_say(s, line, (size_t)n) == 0;
}

static void watch_look(struct init_timer *t)
{
	struct init_session *s = cube_container_of(t, struct init_session, watch);
	int waiting = 0, status;

	if (s->job == NULL || s->job->gone || s->group == NULL)
		return;
	init_timer_set(&s->watch, init_now() + WATCH_EVERY, watch_look);
	if (!s->probed) {
		watch_probe(s);
		return;
	}
	status = watch_found(s);
	if (status >= 0) {
		init_session_shell_listen(s); /* unless the report is there after all */
		if (s->job != NULL && !s->job->gone)
			watch_broken(s, status);
		return;
	}
	if (ioctl(s->files.command, FIONREAD, &waiting) == 0 && waiting == 0 && ++s->watched > WATCH_SILENT)
		watch_broken(s, -1);
}

void init_session_watch(struct init_session *s)
{
	s->watched = 0;
	s->probed = false;
	init_timer_set(&s->watch, init_now() + WATCH_EVERY, watch_look);
}

void init_session_unwatch(struct init_session *s)
{
	init_timer_stop(&s->watch);
}
