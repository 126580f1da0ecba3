/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that are processes of their own. */
#include "backends/agent/init/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "backends/agent/init/child.h"
#include "backends/agent/init/error.h"
#include "backends/agent/init/memfile.h"
#include "backends/agent/init/pty.h"
#include "backends/agent/init/shell.h"

#define WORKSPACE "/workspace"

/* What the child gets; closed on our side in any case. */
struct start_ends {
	int in, out, err, text, failure;
};

int init_job_pipe(int fds[2])
{
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
	return 0;
}

static int start_output(struct init_job *job, bool err, int *ret_end)
{
	int fds[2];
	int r = init_job_pipe(fds);

	if (r < 0)
		return r;
	*ret_end = fds[1];
	return init_output_attach(&job->output, fds[0], err, false);
}

static int start_input(struct init_job *job, int *ret_end)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	(void)fcntl(fds[1], F_SETFL, O_NONBLOCK);
	*ret_end = fds[0];
	return init_input_attach(&job->input, fds[1], false);
}

static int start_terminal(struct init_job *job, const struct cube_wire_start *m)
{
	int r = init_pty_open(m->rows, m->cols);
	int fd;

	if (r < 0)
		return r;
	job->tty = r;
	fd = fcntl(job->tty, F_DUPFD_CLOEXEC, 0);
	r = fd < 0 ? -errno : init_output_attach(&job->output, fd, false, true);
	if (r < 0 || (m->what & CUBE_WIRE_START_STDIN) == 0)
		return r;
	fd = fcntl(job->tty, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : init_input_attach(&job->input, fd, true);
}

/* The shell finds the text behind descriptor 3, opens it anew for itself and is told on the way, on the
 * text's own first line, to close that one: the commands in it see 0, 1 and 2 alone. */
static int start_text(const struct cube_wire_start *m, int *ret_end)
{
	static char close_it[] = "exec 3<&-;";
	int fd = init_memfile("text");
	size_t done = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	*ret_end = fd;
	if (write(fd, close_it, sizeof(close_it) - 1) < 0)
		return -errno;
	while (done < m->text_len) {
		n = write(fd, m->text + done, m->text_len - done);
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		done += (size_t)n;
	}
	return 0;
}

static int start_failure(struct init_job *job, int *ret_end)
{
	int fds[2];
	int r = init_job_pipe(fds);

	if (r < 0)
		return r;
	job->failure = fds[0];
	*ret_end = fds[1];
	return 0;
}

static int start_ends_open(struct init_job *job, const struct cube_wire_start *m, struct start_ends *e)
{
	bool merge = job->output.order_fd < 0;
	int r = start_failure(job, &e->failure);

	if (r == 0 && (m->what & CUBE_WIRE_START_ARGV) == 0)
		r = start_text(m, &e->text);
	if (r == 0 && (m->what & CUBE_WIRE_START_TTY) != 0)
		return start_terminal(job, m);
	if (r == 0 && (m->what & CUBE_WIRE_START_STDIN) != 0)
		r = start_input(job, &e->in);
	if (r == 0)
		r = start_output(job, false, &e->out);
	if (r == 0 && !merge)
		r = start_output(job, true, &e->err);
	return r;
}

static void start_ends_close(const struct start_ends *e)
{
	const int fds[] = {e->in, e->out, e->err, e->text, e->failure};

	for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]);
	}
}

static void start_main_pid(void *owner, pid_t pid)
{
	init_job_running(owner, pid);
}

static void start_main_gone(void *owner, int status)
{
	struct init_job *job = owner;
	int failure = job->failure;

	job->failure = -1;
	if (init_job_take_failure(job, failure))
		return;
	if (job->group->failed != 0)
		init_job_failed(job, 126, -job->group->failed, "no process could be started: %s",
				init_error(job->group->failed));
	else
		init_job_over(job, status);
}

static const struct init_group_owner start_owner = {
	.main_pid = start_main_pid,
	.main_gone = start_main_gone,
};

/* NUL ended copies of what the message has without. */
static _Noreturn void start_child(const struct init_job *job, const struct cube_wire_start *m,
				  const struct start_ends *e)
{
	char *cwd = strndup(m->cwd_len > 0 ? m->cwd : WORKSPACE,
			    m->cwd_len > 0 ? m->cwd_len : sizeof(WORKSPACE) - 1);
	char *user = strndup(m->user_len > 0 ? m->user : "", m->user_len);
	bool argv = (m->what & CUBE_WIRE_START_ARGV) != 0;
	struct init_child c = {
		.io = {e->in, e->out, e->err >= 0 ? e->err : e->out},
		.tty = job->tty,
		.text = e->text,
		.err = e->failure,
		.session = -1,
		.shell = argv ? NULL : init_shell(),
		.script = "/proc/self/fd/3",
		.argv = m->text,
		.argv_len = m->text_len,
		.env = m->env,
		.env_len = m->env_len,
		.pwd = true,
		.cwd = cwd,
		.cwd_must = (m->what & CUBE_WIRE_START_CWD) != 0,
		.user = user,
	};

	if (cwd == NULL || user == NULL)
		_exit(126);
	init_child_run(&c);
}

void init_job_spawn(struct init_job *job, const struct cube_wire_start *m)
{
	struct start_ends e = {-1, -1, -1, -1, -1};
	int r = start_ends_open(job, m, &e);

	if (r == 0) {
		job->group = init_group_new(0, &start_owner, job);
		r = job->group == NULL ? -errno : init_group_fork(job->group);
		if (r == 0)
			start_child(job, m, &e);
	}
	start_ends_close(&e);
	if (r < 0)
		init_job_failed(job, 126, r, "no process could be started: %s", init_error(r));
	else if (job->group != NULL && job->group->main != 0)
		init_job_running(job, job->group->main);
}
