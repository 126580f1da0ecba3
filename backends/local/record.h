/* SPDX-License-Identifier: Apache-2.0 */
/* What is written down of each sandbox: STATE/INSTANCE/cubes/ID/local.json.
 *
 * Replaced in one step. Not forced to the disk: a daemon that is killed loses nothing by that, and after a
 * loss of power no sandbox runs and the kernel keeps either text of a file that was replaced. */
#ifndef CUBEFS_BACKENDS_LOCAL_RECORD_H
#define CUBEFS_BACKENDS_LOCAL_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/backend.h"
#include "backends/base/err.h"
#include "backends/base/name.h"

/* A process that can be told from a later one with its number. */
struct cube_local_proc {
	pid_t pid;      /* 0: none */
	uint64_t start; /* ticks since the machine's start */
};

enum cube_local_stage {
	CUBE_STAGE_STOPPED,
	CUBE_STAGE_STARTING, /* half made, or half started: processes may run that are not written down
				(leftover.h) */
	CUBE_STAGE_RUNNING,
};

/* What is in a sandbox besides its root and its workspace, parents before what is in them. */
#define CUBE_LOCAL_MOUNTS (CUBE_MOUNTS_MAX - 1)
struct cube_local_mount {
	char path[CUBE_INSIDE_MAX + 1];
	char volume[CUBE_ID_MAX + 1]; /* its uid; "": a bind */
	bool read_only;
	uint64_t number; /* a bind's: of its mount inside, while process 1 runs; 0: not there */
};

struct cube_local_record {
	enum cube_local_stage stage;
	char template[CUBE_ID_MAX + 1];
	char hostname[CUBE_ID_MAX + 1];
	char reason[32];           /* why it is stopped */
	struct cube_limits limits; /* those in force, defaults included */
	enum cube_net net;
	uint64_t created_wall;
	uint64_t generation;
	bool still;                 /* paused without a freezer (standstill.h) */
	bool taking;                /* it stands still for a checkpoint */
	char base[CUBE_ID_MAX + 1]; /* the checkpoint whose files it got last; "": its template's */
	/* What template and base are once the set that a restore has made is in its place; "": there is none. */
	char next_template[CUBE_ID_MAX + 1];
	char next_base[CUBE_ID_MAX + 1];
	char boot[40]; /* of the machine, when the processes were started */
	struct cube_local_proc init, net_helper;
	unsigned n_mounts;
	struct cube_local_mount mounts[CUBE_LOCAL_MOUNTS];
};

/* Reads or writes the record in a sandbox's directory. -ENOENT: none; -EINVAL: damaged. */
int cube_local_record_read(int dir, struct cube_local_record *ret, struct cube_err *err);
int cube_local_record_write(int dir, const struct cube_local_record *r, struct cube_err *err);

/* When it started; 0 if there is no such process, or a zombie. */
uint64_t cube_local_proc_start(pid_t pid);
/* Is it the process that was written down, in this life of the machine? */
bool cube_local_proc_alive(const struct cube_local_record *r, const struct cube_local_proc *p);
/* The machine's boot id. Returns @out. */
const char *cube_local_boot_id(char out[40]);

/* A process of some sandbox that runs, of the instance in @state_dir or one of those beside it; 0: there is
 * none. */
pid_t cube_local_record_any_running(const char *state_dir);

#endif
