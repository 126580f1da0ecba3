/* SPDX-License-Identifier: Apache-2.0 */
/* What the two kinds of groups give to group.c. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_GROUP_PRIV_H
#define CUBEFS_BACKENDS_AGENT_INIT_GROUP_PRIV_H

#include "backends/agent/init/group.h"

struct init_group_ops {
	int (*open)(struct init_group *g); /* 0 or -errno */
	int (*fork)(struct init_group *g); /* as init_group_fork */
	/* The members, alive, without what was set aside: into @out, which it replaces. 0 or -errno. */
	int (*list)(struct init_group *g, struct init_procs *out);
	void (*kill)(struct init_group *g);
	void (*settle)(struct init_group *g);
	void (*kill_left)(struct init_group *g);
	/* Empty for good: its resources are released and true is given. */
	bool (*close)(struct init_group *g);
};

extern const struct init_group_ops init_group_cgroup;
extern const struct init_group_ops init_group_tree;

/* True when a child can be born into a group below @fd; it becomes the place of all groups. */
bool init_group_cgroup_probe(int fd);
/* The wrapper's end (group_tree.c), from init_group_reap. */
void init_group_tree_wrapper_gone(struct init_group *g);
/* The main process ended; tells the owner once. */
void init_group_main_gone(struct init_group *g, int status);

#endif
