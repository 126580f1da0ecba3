/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of processes: what both kinds have in common. */
#include "backends/agent/init/group.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/agent/init/group_priv.h"

/* Passes over the members until none was new: each finds what was born during the one before. */
#define GROUP_PASSES 16

static const struct init_group_ops *ops = &init_group_tree;
static struct cube_list groups = {&groups, &groups};

void init_group_setup(int cgroup_fd)
{
	if (cgroup_fd >= 0 && init_group_cgroup_probe(cgroup_fd))
		ops = &init_group_cgroup;
}

bool init_group_exact(void)
{
	return ops == &init_group_cgroup;
}

struct init_group *init_group_new(uint64_t session, const struct init_group_owner *handler, void *owner)
{
	struct init_group *g = calloc(1, sizeof(*g));
	int r;

	if (g == NULL)
		return NULL;
	g->handler = handler;
	g->owner = owner;
	g->session = session;
	g->dir = g->left_dir = -1;
	g->report.fd = -1;
	r = ops->open(g);
	if (r < 0) {
		free(g);
		errno = -r;
		return NULL;
	}
	cube_list_push(&groups, &g->link);
	return g;
}

int init_group_fork(struct init_group *g)
{
	return ops->fork(g);
}

static void group_free(struct init_group *g)
{
	cube_list_remove(&g->link);
	init_procs_done(&g->sent);
	init_procs_done(&g->left);
	free(g);
}

void init_group_release(struct init_group *g)
{
	if (g == NULL)
		return;
	g->owner = NULL;
	if (ops->close(g))
		group_free(g);
}

static bool sig_is_fatal(int sig)
{
	return sig == SIGTERM || sig == SIGINT || sig == SIGQUIT || sig == SIGHUP;
}

/* One pass: how many got the signal that had not had it. */
static unsigned group_pass(struct init_group *g, struct init_procs *members, bool spare_main)
{
	unsigned fresh = 0;

	if (ops->list(g, members) < 0)
		return 0;
	for (size_t i = 0; i < members->len; i++) {
		const struct init_proc *one = &members->all[i];

		if ((spare_main && one->pid == g->main) ||
		    init_procs_find(&g->sent, one->pid, one->start) != NULL)
			continue;
		(void)kill(one->pid, g->sig);
		if (sig_is_fatal(g->sig))
			(void)kill(one->pid, SIGCONT);
		if (init_procs_add(&g->sent, one) == 0)
			fresh++;
	}
	return fresh;
}

void init_group_signal_again(struct init_group *g, bool spare_main)
{
	struct init_procs members = {0};
	unsigned passes = 0;

	while (group_pass(g, &members, spare_main) > 0 && ++passes < GROUP_PASSES)
		;
	init_procs_done(&members);
}

void init_group_signal(struct init_group *g, int sig, bool spare_main)
{
	if (sig == SIGKILL && !spare_main) {
		init_group_kill(g);
		return;
	}
	g->sig = sig;
	g->sent.len = 0;
	init_group_signal_again(g, spare_main);
}

void init_group_kill(struct init_group *g)
{
	ops->kill(g);
}

bool init_group_busy(struct init_group *g)
{
	struct init_procs members = {0};
	bool busy = false;

	/* Where it cannot be told (no memory) it is taken to be busy: the caller has a time limit. */
	if (ops->list(g, &members) < 0)
		busy = true;
	for (size_t i = 0; i < members.len && !busy; i++)
		busy = members.all[i].pid != g->main || g->gone;
	init_procs_done(&members);
	return busy;
}

void init_group_settle(struct init_group *g)
{
	ops->settle(g);
}

void init_group_kill_session(uint64_t session)
{
	cube_list_each (i, &groups) {
		struct init_group *g = cube_list_entry(i, struct init_group, link);

		if (g->session == session) {
			ops->kill(g);
			ops->kill_left(g);
		}
	}
}

bool init_group_is_ours(pid_t pid)
{
	cube_list_each (i, &groups) {
		if (cube_list_entry(i, struct init_group, link)->wrapper == pid)
			return true;
	}
	return false;
}

bool init_group_is_shell(pid_t pid)
{
	cube_list_each (i, &groups) {
		const struct init_group *g = cube_list_entry(i, struct init_group, link);

		if (g->session != 0 && g->owner != NULL && g->main == pid)
			return true;
	}
	return false;
}

void init_group_main_gone(struct init_group *g, int status)
{
	if (g->gone)
		return;
	g->gone = true;
	g->main = 0;
	if (g->owner != NULL)
		g->handler->main_gone(g->owner, status);
}

static void group_reaped(pid_t pid, int status)
{
	cube_list_each (i, &groups) {
		struct init_group *g = cube_list_entry(i, struct init_group, link);

		if (g->wrapper == pid) {
			init_group_tree_wrapper_gone(g);
			return;
		}
		if (g->wrapper == 0 && g->main == pid) {
			init_group_main_gone(g, status);
			return;
		}
	}
}

bool init_group_alive(const struct init_group *g)
{
	return !g->gone && (g->main == 0 || kill(g->main, 0) == 0 || errno != ESRCH);
}

void init_group_reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		group_reaped(pid, status);
	cube_list_each (i, &groups) {
		struct init_group *g = cube_list_entry(i, struct init_group, link);

		if (g->owner == NULL && ops->close(g))
			group_free(g);
	}
}
