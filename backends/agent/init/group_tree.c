/* SPDX-License-Identifier: Apache-2.0 */
/* Groups without cgroups: a wrapper process between the agent and the main process.
 *
 * The wrapper is a copy of the agent that did not exec anything, so it is not dumpable either. It is a child
 * subreaper: what is orphaned below it becomes its child, so that the members are exactly what descends
 * from it, however often they fork and call setsid. It tells the agent the main process's pid and wait
 * status through a pipe, reaps, and ends with its last child. Only a KILL that reaches it loses track, and
 * then its pipe tells the agent so. */
#include "backends/agent/init/group_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/agent/init/child.h"
#include "backends/base/macros.h"

/* Rounds of STOP until nothing new is found: a fork bomb is caught since whoever is stopped bears nobody. */
#define TREE_ROUNDS 64

enum tree_kind { TREE_PID = 1, TREE_EXIT, TREE_FAILED };

struct tree_report {
	int32_t kind;
	int32_t value;
};

static int tree_open(struct init_group *g)
{
	(void)g;
	return 0;
}

static void wrapper_tell(int fd, enum tree_kind kind, int value)
{
	struct tree_report r = {.kind = (int32_t)kind, .value = value};

	/* Fits into the pipe at once; the agent may be gone. */
	if (write(fd, &r, sizeof(r)) < 0)
		return;
}

/* The wrapper's life, after the main process was forked. */
static _Noreturn void wrapper_run(int fd, pid_t main)
{
	int status;
	pid_t pid;

	init_child_close_all_but(fd);
	wrapper_tell(fd, TREE_PID, main);
	for (;;) {
		pid = waitpid(-1, &status, 0);
		if (pid == main)
			wrapper_tell(fd, TREE_EXIT, status);
		if (pid < 0 && errno == ECHILD)
			_exit(0);
	}
}

/* In the wrapper: 0 in the main process, else it does not return. */
static int wrapper_begin(int fd)
{
	pid_t pid;

	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)prctl(PR_SET_NAME, "cube-job", 0, 0, 0);
	pid = fork();
	if (pid == 0)
		return 0;
	if (pid < 0) {
		wrapper_tell(fd, TREE_FAILED, errno);
		_exit(0);
	}
	wrapper_run(fd, pid);
}

static void tree_end_report(struct init_group *g)
{
	int fd = g->report.fd;

	init_ev_del(&g->report);
	if (fd >= 0)
		(void)close(fd);
	g->report.fd = -1;
}

/* Takes what the wrapper said. False when it will say nothing more. */
static bool tree_take(struct init_group *g)
{
	struct tree_report r;

	for (;;) {
		ssize_t n = read(g->report.fd, &r, sizeof(r));

		if (n != (ssize_t)sizeof(r))
			return n < 0 && errno == EAGAIN;
		if (r.kind == TREE_PID) {
			g->main = (pid_t)r.value;
			if (g->owner != NULL && g->handler->main_pid != NULL)
				g->handler->main_pid(g->owner, g->main);
		} else {
			g->failed = r.kind == TREE_FAILED ? r.value : 0;
			init_group_main_gone(g, r.kind == TREE_EXIT ? r.value : -1);
		}
	}
}

static void tree_report(struct init_ev *ev, uint32_t events)
{
	struct init_group *g = cube_container_of(ev, struct init_group, report);

	(void)events;
	if (!tree_take(g)) {
		tree_end_report(g);
		init_group_main_gone(g, -1);
	}
}

static int tree_fork(struct init_group *g)
{
	int fds[2];
	pid_t pid;
	int r;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	r = init_ev_add(&g->report, fds[0], EPOLLIN, tree_report);
	pid = r < 0 ? r : fork();
	if (pid == 0)
		return wrapper_begin(fds[1]);
	if (pid < 0 && r == 0)
		r = -errno;
	(void)close(fds[1]);
	g->report.fd = fds[0];
	if (r < 0) {
		tree_end_report(g);
		return r;
	}
	g->wrapper = pid;
	return 1;
}

static int tree_list(struct init_group *g, struct init_procs *out)
{
	size_t kept = 0;
	int r;

	out->len = 0;
	if (g->wrapper == 0)
		return 0;
	r = init_procs_read(out);
	if (r < 0)
		return r;
	init_procs_mark_below(out, g->wrapper);
	init_procs_unmark(out, &g->left);
	for (size_t i = 0; i < out->len; i++) {
		if (out->all[i].mark && init_proc_alive(&out->all[i]))
			out->all[kept++] = out->all[i];
	}
	out->len = kept;
	return 0;
}

/* STOP for members that did not have it: how many there were. */
static unsigned tree_stop_round(struct init_group *g, struct init_procs *members, struct init_procs *stopped)
{
	unsigned fresh = 0;

	if (tree_list(g, members) < 0)
		return 0;
	for (size_t i = 0; i < members->len; i++) {
		const struct init_proc *one = &members->all[i];

		if (init_procs_find(stopped, one->pid, one->start) != NULL)
			continue;
		(void)kill(one->pid, SIGSTOP);
		if (init_procs_add(stopped, one) == 0)
			fresh++;
	}
	return fresh;
}

static void tree_kill(struct init_group *g)
{
	struct init_procs members = {0}, stopped = {0};
	unsigned quiet = 0;

	/* A member whose parent died between being looked at and its own look shows in the next round only.
	 */
	for (int round = 0; round < TREE_ROUNDS && quiet < 2; round++)
		quiet = tree_stop_round(g, &members, &stopped) == 0 ? quiet + 1 : 0;
	for (size_t i = 0; i < stopped.len; i++)
		(void)kill(stopped.all[i].pid, SIGKILL);
	init_procs_done(&members);
	init_procs_done(&stopped);
}

/* The usual case, that nothing was left, is seen in two small files. */
static void tree_settle(struct init_group *g)
{
	struct init_procs members = {0};

	if (g->wrapper == 0 || g->main == 0)
		return;
	if (init_procs_childless(g->main) && init_procs_only_child(g->wrapper, g->main)) {
		g->left.len = 0;
		return;
	}
	if (init_procs_read(&members) == 0) {
		init_procs_mark_below(&members, g->wrapper);
		g->left.len = 0;
		for (size_t i = 0; i < members.len; i++) {
			if (members.all[i].mark && members.all[i].pid != g->main)
				(void)init_procs_add(&g->left, &members.all[i]);
		}
	}
	init_procs_done(&members);
}

static void tree_kill_left(struct init_group *g)
{
	g->left.len = 0;
	tree_kill(g);
}

void init_group_tree_wrapper_gone(struct init_group *g)
{
	if (g->report.fd >= 0)
		(void)tree_take(g);
	tree_end_report(g);
	g->wrapper = 0;
	init_group_main_gone(g, -1);
}

static bool tree_close(struct init_group *g)
{
	if (g->wrapper != 0)
		return false;
	tree_end_report(g);
	return true;
}

const struct init_group_ops init_group_tree = {
	.open = tree_open,
	.fork = tree_fork,
	.list = tree_list,
	.kill = tree_kill,
	.settle = tree_settle,
	.kill_left = tree_kill_left,
	.close = tree_close,
};
