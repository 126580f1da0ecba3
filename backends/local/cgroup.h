/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups: what this machine has of them, and the group of one sandbox.
 *
 * v2, v1 and both at once look alike from here. Freezing, killing and groups for jobs are of the v2
 * tree where there is one (they need no controller); limits are where the controllers are. The groups
 * are `cubefs/ID` at the top of each hierarchy for root, in the delegated part of the v2 tree for an
 * ordinary user. Sandboxes outlive the daemon, so they are never below its own group.
 *
 * A group is named by its sandbox's id; no descriptor of it is kept. Where a sandbox has no group the functions do
 * nothing, or say that they cannot. */
#ifndef CUBEFS_BACKENDS_LOCAL_CGROUP_H
#define CUBEFS_BACKENDS_LOCAL_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"
#include "backends/base/err.h"
#include "backends/local/ids.h"

/* The v2 tree itself does what the last two do. */
enum cube_local_ctl { CUBE_CTL_MEMORY, CUBE_CTL_PIDS, CUBE_CTL_CPU, CUBE_CTL_FREEZER, CUBE_CTL_CPUACCT };
#define CUBE_CTL_COUNT 5

/* What the machine has: directories `cubefs`, or -1. */
struct cube_local_cgroups {
	int v2;
	int v1[CUBE_CTL_COUNT];      /* hierarchies of their own; the last two only where there is no v2 */
	bool v2_has[CUBE_CTL_COUNT]; /* controllers of the v2 tree */
	char why[160];               /* where something is missing: why */
};

/* Finds them and makes the directories; what cannot be had is missing. */
void cube_local_cgroups_open(struct cube_local_cgroups *c);
void cube_local_cgroups_close(struct cube_local_cgroups *c);
bool cube_local_cgroups_has(const struct cube_local_cgroups *c, enum cube_local_ctl what);

/* Makes the group of @id, which may be there; its v2 directory may be divided further by the ids' 0. */
int cube_local_group_make(const struct cube_local_cgroups *c, const char *id, const struct cube_ns_ids *ids,
			  struct cube_err *err);

/* Sets what is not 0. -EBUSY: more memory is in use. */
int cube_local_group_limit(const struct cube_local_cgroups *c, const char *id,
			   const struct cube_limits *limits, struct cube_err *err);

/* The way in for a child that is made for it: it is born in the v2 directory (cube_spawn.group, where there is
 * one) and enters those of v1 by cube_local_doors_enter. Close in any case. */
struct cube_local_doors {
	int v2;                 /* -1: no such tree */
	int v1[CUBE_CTL_COUNT]; /* -1 behind the last */
};
#define CUBE_LOCAL_DOORS_NONE                                                                                \
	{                                                                                                    \
		.v2 = -1, .v1 = { -1, -1, -1, -1, -1 }                                                       \
	}
int cube_local_group_doors(const struct cube_local_cgroups *c, const char *id, struct cube_local_doors *ret,
			   struct cube_err *err);
int cube_local_doors_enter(const struct cube_local_doors *d); /* in the child, which has one thread */
void cube_local_doors_close(struct cube_local_doors *d);

/* The v2 directory as a mount of its own, which nobody who holds it can leave upwards; -1: there is no v2 tree;
 * another negative errno. */
int cube_local_group_delegate(const struct cube_local_cgroups *c, const char *id);

/* Stops or continues all processes; waits five seconds at most, then undoes it, -EBUSY. */
int cube_local_group_freeze(const struct cube_local_cgroups *c, const char *id, bool on,
			    struct cube_cancel *cancel, struct cube_err *err);
bool cube_local_group_frozen(const struct cube_local_cgroups *c, const char *id);

/* Ends all processes, frozen ones too, where the tree can (v2, Linux 5.14). */
void cube_local_group_kill(const struct cube_local_cgroups *c, const char *id);

/* Removes the group of a sandbox whose processes are dying or gone; waits for them a while. */
int cube_local_group_remove(const struct cube_local_cgroups *c, const char *id, struct cube_err *err);

/* pids, cpu, memory, oom_kills; UINT64_MAX what is not known. */
void cube_local_group_usage(const struct cube_local_cgroups *c, const char *id, struct cube_usage *ret);

/* The file that counts kills by the memory limit (ns/oom.h), opened for reading; -1: there is none. */
int cube_local_group_oom_file(const struct cube_local_cgroups *c, const char *id);

#endif
