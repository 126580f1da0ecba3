/* SPDX-License-Identifier: Apache-2.0 */
/* `cubefs sh NAME [COMMAND [ARG ...]]`: a shell, or a command, in a sandbox, as if it ran here.
 *
 * One job. With a terminal it gets one inside: keys go to its `stdin`, its `output` comes to the screen, each
 * change of the window goes to its `ctl`, and its exit code is ours. Without a terminal the streams stay
 * apart and our end of input is its. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/buf.h"
#include "backends/base/file.h"
#include "backends/base/num.h"
#include "ctl/cli/cli.h"
#include "ctl/cli/target.h"
#include "ctl/cli/terminal.h"

#define SH_BLOCK 65536
#define SH_LOST  255

static const char sh_shell[] = "if command -v bash >/dev/null 2>&1; then exec bash -i; else exec sh -i; fi\n";
static const char sh_plain[] = "if command -v bash >/dev/null 2>&1; then exec bash; else exec sh; fi\n";

enum { SH_IN, SH_OUT, SH_ERR, SH_SIGNAL, SH_FDS };

struct sh {
	int job; /* its directory */
	bool tty;
	int stdin_fd; /* the job's; -1 once ended */
	struct pollfd fds[SH_FDS];
};

/* Opens, writes all, closes; the error of each counts. */
static int sh_write(int dir, const char *name, int flags, const void *data, size_t len, struct cube_err *err)
{
	int fd = openat(dir, name, O_WRONLY | O_CLOEXEC | flags);
	int r;

	if (fd < 0)
		return cube_fail_errno(err, "%s", name);
	r = cube_file_write_all(fd, data, len);
	if (close(fd) < 0 && r == 0)
		r = -errno;
	return r < 0 ? cube_fail(err, r, "%s: %s", name, cube_errno_text(r)) : 0;
}

static int sh_ctl(const struct sh *s, struct cube_err *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int sh_ctl(const struct sh *s, struct cube_err *err, const char *fmt, ...)
{
	char line[64];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	return sh_write(s->job, "ctl", 0, line, (size_t)n, err);
}

/* A numbered job: *ret_clone must stay open until it has its command, else it is forgotten. */
static int sh_make_job(struct sh *s, int sandbox, int *ret_clone, struct cube_err *err)
{
	cube_auto_fd jobs = openat(sandbox, "jobs", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cube_auto_fd clone = jobs >= 0 ? openat(jobs, "clone", O_RDWR | O_CLOEXEC) : -1;
	char name[64];
	ssize_t n;

	if (clone < 0)
		return cube_fail_errno(err, "jobs/clone");
	n = read(clone, name, sizeof(name) - 1);
	if (n <= 0)
		return cube_fail(err, n < 0 ? -errno : -EIO,
				 "jobs/clone gave no job: see `error` of the sandbox");
	name[n] = '\0';
	name[strcspn(name, "\n")] = '\0';
	s->job = openat(jobs, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->job < 0)
		return cube_fail_errno(err, "jobs/%s", name);
	*ret_clone = cube_steal_fd(&clone);
	return 0;
}

static int sh_prepare_tty(struct sh *s, struct cube_err *err)
{
	const char *term = getenv("TERM");
	cube_auto_str line = cube_asprintf("TERM=%s\n", term != NULL && term[0] != '\0' ? term : "dumb");
	unsigned rows = 24, cols = 80;
	int r;

	(void)cube_terminal_size(&rows, &cols);
	r = sh_ctl(s, err, "tty %u %u\n", rows, cols);
	if (r == 0 && line != NULL)
		r = sh_write(s->job, "env", O_APPEND, line, strlen(line), err);
	return r;
}

static int sh_words(int argc, char **argv, struct cube_buf *out)
{
	cube_buf_init(out, 4 << 20);
	for (int i = 0; i < argc; i++)
		cube_buf_add(out, argv[i], strlen(argv[i]) + 1);
	return out->error;
}

/* Streams are opened before the start, so that nothing is missed; then the command goes in. */
static int sh_start(struct sh *s, int argc, char **argv, struct cube_err *err)
{
	struct cube_buf words;
	int r;

	s->stdin_fd = openat(s->job, "stdin", O_WRONLY | O_CLOEXEC);
	if (s->stdin_fd < 0)
		return cube_fail_errno(err, "stdin");
	if (argc == 0) {
		const char *text = s->tty ? sh_shell : sh_plain;

		return sh_write(s->job, "cmd", 0, text, strlen(text), err);
	}
	r = sh_words(argc, argv, &words);
	r = r < 0 ? cube_fail(err, r, "the command is too long")
		  : sh_write(s->job, "argv", 0, words.data, words.len, err);
	cube_buf_done(&words);
	return r;
}

static int sh_open_streams(struct sh *s, struct cube_err *err)
{
	s->fds[SH_IN] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
	s->fds[SH_OUT] = (struct pollfd){
		.fd = openat(s->job, s->tty ? "output" : "stdout", O_RDWR | O_CLOEXEC | O_NONBLOCK),
		.events = POLLIN};
	s->fds[SH_ERR] = (struct pollfd){.fd = -1};
	if (!s->tty)
		s->fds[SH_ERR] = (struct pollfd){
			.fd = openat(s->job, "stderr", O_RDWR | O_CLOEXEC | O_NONBLOCK), .events = POLLIN};
	if (s->fds[SH_OUT].fd < 0 || (!s->tty && s->fds[SH_ERR].fd < 0))
		return cube_fail_errno(err, "the output of the job");
	s->fds[SH_SIGNAL] = (struct pollfd){.fd = cube_terminal_signals(), .events = POLLIN};
	return 0;
}

static void sh_end_input(struct sh *s)
{
	cube_close_auto(&s->stdin_fd);
	s->fds[SH_IN].fd = -1;
}

/* What was typed, or piped in, goes to the job. A job that takes no more (it ended) ends our reading. */
static void sh_input(struct sh *s)
{
	static char block[SH_BLOCK];
	ssize_t n = read(STDIN_FILENO, block, sizeof(block));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0 || cube_file_write_all(s->stdin_fd, block, (size_t)n) < 0)
		sh_end_input(s);
}

/* One block from a channel to @to; a channel at its end is closed. */
static int sh_output(struct pollfd *from, int to, struct cube_err *err)
{
	static char block[SH_BLOCK];
	ssize_t n = read(from->fd, block, sizeof(block));
	int r;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n < 0)
		return cube_fail_errno(err, "the output of the job");
	if (n == 0) {
		cube_close_auto(&from->fd);
		return 0;
	}
	r = cube_file_write_all(to, block, (size_t)n);
	return r < 0 ? cube_fail(err, r, "our own output: %s", cube_errno_text(r)) : 0;
}

/* The window changed: tell. We are to end: hang up inside too. */
static int sh_signal(struct sh *s, struct cube_err *err)
{
	unsigned rows, cols;

	switch (cube_terminal_signal(s->fds[SH_SIGNAL].fd)) {
	case SIGWINCH:
		if (s->tty && cube_terminal_size(&rows, &cols))
			(void)sh_ctl(s, err, "winsize %u %u\n", rows, cols);
		return 0;
	case SIGHUP:
	case SIGTERM:
		(void)sh_ctl(s, err, "kill HUP\n");
		return cube_fail(err, -EINTR, "hung up");
	default:
		return 0;
	}
}

static int sh_pump(struct sh *s, struct cube_err *err)
{
	static const int to[SH_FDS] = {[SH_OUT] = STDOUT_FILENO, [SH_ERR] = STDERR_FILENO};

	while (s->fds[SH_OUT].fd >= 0 || s->fds[SH_ERR].fd >= 0) {
		int r = 0;

		if (poll(s->fds, SH_FDS, -1) < 0) {
			if (errno == EINTR)
				continue;
			return cube_fail_errno(err, "poll");
		}
		if (s->fds[SH_SIGNAL].revents != 0)
			r = sh_signal(s, err);
		for (int i = SH_OUT; i <= SH_ERR && r == 0; i++) {
			if (s->fds[i].fd >= 0 && s->fds[i].revents != 0)
				r = sh_output(&s->fds[i], to[i], err);
		}
		if (r < 0)
			return r;
		if (s->fds[SH_IN].fd >= 0 && s->fds[SH_IN].revents != 0)
			sh_input(s);
	}
	return 0;
}

/* The channel `exit` waits for the end. */
static int sh_exit_code(const struct sh *s)
{
	cube_auto_fd fd = openat(s->job, "exit", O_RDWR | O_CLOEXEC);
	char text[16] = "";
	uint64_t code;

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return SH_LOST;
	text[strcspn(text, "\n")] = '\0';
	return cube_num_u64(text, 255, &code) == 0 ? (int)code : SH_LOST;
}

static int sh_run(struct sh *s, int sandbox, int argc, char **argv, struct cube_err *err)
{
	cube_auto_fd clone = -1;
	int r = sh_make_job(s, sandbox, &clone, err);

	if (r == 0 && s->tty)
		r = sh_prepare_tty(s, err);
	if (r == 0)
		r = sh_open_streams(s, err);
	if (r == 0)
		r = sh_start(s, argc, argv, err);
	cube_close_auto(&clone);
	if (r == 0 && s->tty)
		r = cube_terminal_raw(err);
	if (r == 0)
		r = sh_pump(s, err);
	cube_terminal_restore();
	return r;
}

int cube_cli_sh(int argc, char **argv)
{
	struct sh s = {.job = -1, .stdin_fd = -1};
	struct cube_err err = {0};
	cube_auto_fd sandbox = -1;

	if (argc < 2 || argv[1][0] == '-') {
		(void)fprintf(stderr, "usage: cubefs sh NAME|PATH [COMMAND [ARG ...]]\n");
		return 2;
	}
	s.tty = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	(void)signal(SIGPIPE, SIG_IGN);
	if (cube_cli_target(argv[1], &sandbox, &err) < 0 || sh_run(&s, sandbox, argc - 2, argv + 2, &err) < 0)
		return cube_cli_fail(&err);
	return sh_exit_code(&s);
}
