/* SPDX-License-Identifier: Apache-2.0 */
/* Another program takes over: `cubefs upgrade`.
 *
 * Who asks for it (ctl/cli/upgrade.c) connects to STATE/upgrade and sends a descriptor of the program. The keeper looks who
 * that is and passes it on to the supervisor, which
 *   - has the new program look, in a child, at what it would take over: if it cannot, nothing has happened;
 *   - tells the worker to come to a point between requests and end;
 *   - becomes the new program (exec): the same process, with its namespaces, its children and its descriptors;
 *   - starts the new worker. If that one does not serve it becomes the old program again, of which it has a
 *     descriptor, so that it need not be anywhere any more;
 *   - tells the keeper to become the new program, too, and who asked what has come of it. */
#ifndef CUBEFS_FS_UPGRADE_H
#define CUBEFS_FS_UPGRADE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/base/err.h"
#include "fs/handover.h"

struct cube_canary;
struct cube_process;
struct cube_revive;

enum cube_upgrade_stage {
	CUBE_UPGRADE_NONE,
	CUBE_UPGRADE_ASKED,
	CUBE_UPGRADE_CHECKS,  /* the new program looks */
	CUBE_UPGRADE_CHECKED, /* it can take over from a worker that serves */
	CUBE_UPGRADE_DRAINS,  /* the worker comes to its end */
	CUBE_UPGRADE_TRIED,   /* this is the new program, whose worker has yet to serve */
};

/* The supervisor's. All zero but the descriptors: -1. */
struct cube_upgrade {
	enum cube_upgrade_stage stage;
	int program, before, client;
	struct cube_handover_check check;
	uint64_t until; /* monotonic ns: no longer in this stage */
};

void cube_upgrade_init(struct cube_upgrade *u);
void cube_upgrade_drop(struct cube_upgrade *u); /* closes what it has */
/* From the keeper: somebody asks. False: there was nothing to read. */
bool cube_upgrade_hear(struct cube_process *p);
/* Several times a second. */
void cube_upgrade_look(struct cube_process *p, struct cube_revive *v, pid_t worker);
/* The worker has ended. Does not return if another program takes over now; true: another worker is to be started;
 * false: this end was no matter of ours. */
bool cube_upgrade_ended(struct cube_process *p, struct cube_revive *v);

/* ---- in the keeper ---- */

/* Where one asks: a descriptor, or -errno. */
int cube_upgrade_door(const char *state_dir);
/* Somebody is at the door. */
bool cube_upgrade_knock(struct cube_process *p);
/* The supervisor is another program now. Does not return if this one becomes that, too. False: nothing to read. */
bool cube_upgrade_follow(struct cube_process *p, int line, pid_t supervisor, struct cube_canary *canary);

/* ---- the new program ---- */

/* `cubefs takeover ROLE NUMBER`, which nobody types: the exit code. */
int cube_upgrade_enter(int argc, char **argv);

#endif
