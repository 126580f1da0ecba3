/* SPDX-License-Identifier: Apache-2.0 */
/* "Everything that a job started": the processes of one job or of one shell of a session.
 *
 * Two ways behind one interface, chosen once at start-up. With a cgroup v2 directory that is ours
 * (group_cgroup.c) each group is a cgroup that its first process is born into; its members are known to
 * the kernel. Without (group_tree.c) a small wrapper process adopts whatever loses its parent
 * (PR_SET_CHILD_SUBREAPER), and the members are those that descend from it.
 *
 * The first process is the *main* one: a job's command, a session's shell. What a session's command left
 * running when it ended is set aside (init_group_settle) and not touched on behalf of later commands. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_GROUP_H
#define CUBEFS_BACKENDS_AGENT_INIT_GROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/agent/init/ev.h"
#include "backends/agent/init/procs.h"

struct init_group_owner {
	/* The pid of the main process is known. Never called from inside init_group_fork. */
	void (*main_pid)(void *owner, pid_t pid);
	/* The main process ended: a wait status, or -1 when nobody saw it. Called once. */
	void (*main_gone)(void *owner, int status);
};

struct init_group {
	struct cube_list link;
	const struct init_group_owner *handler;
	void *owner;            /* NULL: released */
	uint64_t session;       /* 0: a job's own */
	pid_t main;             /* 0: not known yet, or gone */
	bool gone;              /* the main process */
	int failed;             /* errno why there never was one; 0 */
	int sig;                /* what init_group_signal sent last ... */
	struct init_procs sent; /* ... to whom */

	int dir;      /* cgroup: its directory */
	int left_dir; /* cgroup: that of what was set aside; -1: none yet */
	char name[24];

	pid_t wrapper; /* tree; 0: gone */
	struct init_ev report;
	struct init_procs left; /* tree: what was set aside */
};

/* Once, before all else. @cgroup_fd: a directory that may be ours, or -1. */
void init_group_setup(int cgroup_fd);
/* By cgroups. */
bool init_group_exact(void);

/* NULL: no memory, no descriptors (errno). */
struct init_group *init_group_new(uint64_t session, const struct init_group_owner *handler, void *owner);
/* As fork(2), once for each group: 0 in the child, which is the main process; 1 in the agent; -errno. */
int init_group_fork(struct init_group *g);
/* The owner lets go; no more calls. What runs goes on, and the group goes when it is empty. NULL is harmless.
 */
void init_group_release(struct init_group *g);

/* To every member (without the main process if @spare_main) and, with fatal ones, CONT behind it. */
void init_group_signal(struct init_group *g, int sig, bool spare_main);
/* The same signal to those that appeared since. */
void init_group_signal_again(struct init_group *g, bool spare_main);
/* KILL for every member, the main process too. What is left afterwards, if a member was just being born,
 * another call finds: call it until init_group_busy says no. */
void init_group_kill(struct init_group *g);
/* Is there a living member besides the main process? */
bool init_group_busy(struct init_group *g);
/* Sets aside all but the main process. */
void init_group_settle(struct init_group *g);
/* KILL for all groups of a session, also released ones and what was set aside. */
void init_group_kill_session(uint64_t session);
/* True for a wrapper, which belongs to the agent. */
bool init_group_is_ours(pid_t pid);

/* True for the shell of a session that is still the agent's. */
bool init_group_is_shell(pid_t pid);

/* Reaps what has ended, orphans too, tells the owners, and drops released groups that are empty. */
void init_group_reap(void);
/* The main process is there, as far as is known. */
bool init_group_alive(const struct init_group *g);

#endif
