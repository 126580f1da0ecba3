/* SPDX-License-Identifier: Apache-2.0 */
/* What runs, by /proc: a snapshot of all processes that are visible here and who descends from whom. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_PROCS_H
#define CUBEFS_BACKENDS_AGENT_INIT_PROCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct init_proc {
	pid_t pid, ppid;
	char state;     /* as in /proc/PID/stat: R S D T t Z X I */
	bool mark;      /* false after reading; see below */
	bool left;      /* for init_procs_unmark */
	uint64_t start; /* with the pid, who it is: pids are used again */
};

struct init_procs {
	struct init_proc *all;
	size_t len, cap;
};

/* Keeps a descriptor of /proc, so that what is mounted there later changes nothing. 0 or -errno. */
int init_procs_open(void);
/* 0 or -errno. Replaces what @p holds. */
int init_procs_read(struct init_procs *p);
/* All that descend from @pid (without itself) are marked. */
void init_procs_mark_below(struct init_procs *p, pid_t pid);
/* Takes the marks away from those in @who (by pid and start) and from all below them. */
void init_procs_unmark(struct init_procs *p, const struct init_procs *who);
/* Adds one; -ENOMEM. */
int init_procs_add(struct init_procs *p, const struct init_proc *one);
const struct init_proc *init_procs_find(const struct init_procs *p, pid_t pid, uint64_t start);
void init_procs_done(struct init_procs *p);
bool init_proc_alive(const struct init_proc *one);

/* True when @pid surely has no children (false where the kernel does not say). */
bool init_procs_childless(pid_t pid);
/* True when @child is surely its only one. */
bool init_procs_only_child(pid_t pid, pid_t child);
/* The directory that process @pid is in; false where that is not allowed or it has none. */
bool init_procs_cwd(pid_t pid, char *out, size_t size);

/* The directory of process @pid, for the caller to close; negative: there is none. */
int init_procs_dir(pid_t pid);
/* Reads a small file of it whole, NUL ended. */
bool init_procs_slurp(int dir, const char *name, char *out, size_t size);

#endif
