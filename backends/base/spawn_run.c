/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a helper program: its text, its end, the time-out, the cancel. */
#include "backends/base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/macros.h"
#include "backends/base/spawn_priv.h"

struct spawn_wait {
	const struct cube_spawn *s;
	struct cube_cancel *cancel;
	pid_t pid;
	int pidfd;
	int text;            /* our end of the pipe, non-blocking; -1: none, or at its end */
	int64_t deadline_ms; /* -1: none */
};

/* Real time, not cube_clock_mono: a test's clock that stands must not keep a child alive. */
static int64_t wait_now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Takes what is there. What the ceiling does not allow is read and dropped: the child shall not hang on a
 * full pipe. */
static void wait_read_text(struct spawn_wait *w)
{
	struct cube_buf *b = w->s->text;
	char chunk[4096];
	ssize_t n;

	while (w->text >= 0 && (n = read(w->text, chunk, sizeof(chunk))) != 0) {
		size_t room = b->max > b->len ? b->max - b->len : 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return; /* EAGAIN: nothing more for now */
		(void)cube_buf_add(b, chunk, (size_t)n < room ? (size_t)n : room);
	}
	if (w->text >= 0)
		(void)close(cube_steal_fd(&w->text));
}

/* Milliseconds for poll; 0 when the time is over. */
static int wait_left_ms(const struct spawn_wait *w)
{
	int64_t left = w->deadline_ms - wait_now_ms();

	if (w->deadline_ms < 0)
		return -1;
	return left > 0 ? (int)(left < 60000 ? left : 60000) : 0;
}

/* Until the child ended (0), @cancel fired (-EINTR) or the time is over (-ETIMEDOUT). */
static int wait_for_end(struct spawn_wait *w)
{
	for (;;) {
		struct pollfd fds[] = {
			{.fd = w->pidfd, .events = POLLIN},
			{.fd = cube_cancel_fd(w->cancel), .events = POLLIN},
			{.fd = w->text, .events = POLLIN},
		};
		int left = wait_left_ms(w);

		if (poll(fds, CUBE_COUNT(fds), left) < 0 && errno != EINTR)
			return -errno;
		wait_read_text(
			w); /* after it ended: all of its own text; a grandchild may keep the pipe open */
		if (fds[0].revents != 0)
			return 0;
		if (cube_cancel_fired(w->cancel))
			return -EINTR;
		if (left == 0)
			return -ETIMEDOUT;
	}
}

static int wait_explain(int r, const struct cube_spawn *s, struct cube_err *err)
{
	switch (r) {
	case -EINTR:
		return cube_fail(err, r, "%s: cancelled", s->argv[0]);
	case -ETIMEDOUT:
		return cube_fail(err, r, "%s: did not finish within %u ms and was killed", s->argv[0],
				 s->timeout_ms);
	default:
		return cube_fail(err, r, "%s: %s", s->argv[0], cube_errno_text(r));
	}
}

/* Waits for the started child and reaps it in any case. */
static int run_wait(struct spawn_wait *w, int *ret_status, struct cube_err *err)
{
	int status = 0, r;

	w->pidfd = pidfd_open(w->pid, 0);
	r = w->pidfd < 0 ? -errno : wait_for_end(w);
	if (r < 0)
		(void)kill(-w->pid, SIGKILL); /* its group: it became the leader before its exec */
	cube_spawn_reap(w->pid, &status);
	if (w->pidfd >= 0)
		(void)close(w->pidfd);
	if (r < 0)
		return wait_explain(r, w->s, err);
	*ret_status = status;
	return 0;
}

int cube_spawn_run(const struct cube_spawn *s, struct cube_cancel *cancel, int *ret_status,
		   struct cube_err *err)
{
	cube_auto_fd read_end = -1;
	struct spawn_wait w = {.s = s, .cancel = cancel, .text = -1, .deadline_ms = -1};
	int fds[2] = {-1, -1}, r;

	if (cube_cancel_fired(cancel))
		return wait_explain(-EINTR, s, err);
	if (s->text != NULL) {
		if (pipe2(fds, O_CLOEXEC) < 0)
			return cube_fail_errno(err, "%s", s->argv[0]);
		(void)fcntl(fds[0], F_SETFL, O_NONBLOCK); /* our end only: the child's shall block */
	}
	w.text = fds[0];
	if (s->timeout_ms > 0)
		w.deadline_ms = wait_now_ms() + s->timeout_ms;
	r = cube_spawn_start_on(s, fds[1], &w.pid, err);
	if (fds[1] >= 0)
		(void)close(fds[1]);
	if (r == 0)
		r = run_wait(&w, ret_status, err);
	if (w.text >= 0)
		(void)close(w.text);
	return r;
}

/* The last line of the text that is not empty; its length in *ret_len. */
static const char *text_last_line(const struct cube_buf *text, size_t *ret_len)
{
	const char *s = cube_buf_str(text);
	size_t end = text->len, start;

	while (end > 0 && strchr(" \t\r\n", s[end - 1]) != NULL)
		end--;
	for (start = end; start > 0 && s[start - 1] != '\n'; start--)
		;
	*ret_len = end - start;
	return s + start;
}

void cube_spawn_describe(int status, const struct cube_buf *text, char *out, size_t size)
{
	const char *line = "", *name;
	size_t len = 0;
	char how[32];

	if (WIFSIGNALED(status)) {
		name = sigabbrev_np(WTERMSIG(status));
		if (name != NULL)
			(void)snprintf(how, sizeof(how), "signal %s", name);
		else
			(void)snprintf(how, sizeof(how), "signal %d", WTERMSIG(status));
	} else {
		(void)snprintf(how, sizeof(how), "exit code %d", WEXITSTATUS(status));
	}
	if (text != NULL)
		line = text_last_line(text, &len);
	(void)snprintf(out, size, "%s%s%.*s", how, len > 0 ? ": " : "", len < 4096 ? (int)len : 4096, line);
}
