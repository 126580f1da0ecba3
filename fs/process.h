/* SPDX-License-Identifier: Apache-2.0 */
/* What keeper, supervisor and worker have of their daemon; shared by supervise.c, worker.c and upgrade.c. */
#ifndef CUBEFS_FS_PROCESS_H
#define CUBEFS_FS_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

#include "fs/revive.h"
#include "fs/supervise.h"
#include "fs/upgrade.h"

struct cube_process {
	struct cube_start *start;
	int fuse_fd;
	int keeper_fd; /* worker's end of the line to the keeper */
	int keep_fd;   /* what outlives a worker */
	int mounts_fd; /* keeper's: mountinfo, open since before the mount was made, so that no end of it is missed */
	int boss_fd; /* this one's end of the line between keeper and supervisor */
	int door_fd; /* keeper's: who wants to upgrade comes in there; -1: nobody can */
	uid_t uid;   /* before any namespace was entered */
	gid_t gid;
	struct cube_upgrade upgrade; /* the supervisor's */
};

#define CUBE_PROCESS_READY  "ready" /* said when the mount can be used */
#define CUBE_PROCESS_FAILED 1       /* exit code of each of them */

/* On the line from the worker to the keeper. */
#define CUBE_KEEPER_UNMOUNT 'u'
#define CUBE_KEEPER_EXIT    'x' /* by which signal did this process end? the answer is an int32_t */
struct cube_keeper_ask {
	int32_t what;
	int32_t pid;
};

/* To who started us; nothing where he was told before. */
void cube_process_say(const struct cube_start *s, const char *text);
/* Says why, there and in the log. The exit code. */
int cube_process_fail(const struct cube_start *s, const struct cube_err *err);
/* In the worker: serves until its end. The exit code. */
int cube_worker_run(struct cube_process *p);
/* Serves, by workers, until the end. The namespaces are entered, what outlives a worker is there. The exit code. */
int cube_supervisor_go(struct cube_process *p);
/* Watches the supervisor until its end, then unmounts. @line: to the worker. The exit code. */
int cube_keeper_go(struct cube_process *p, int line, pid_t supervisor);
/* What the configured kinds of backend need. @entered: the namespaces are, by the program before this one. */
int cube_supervisor_prepare(const struct cube_process *p, bool entered, struct cube_err *err);

#endif
