/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a daemon.
 *
 *   keeper      stays in this machine's own namespaces; mounts, and unmounts when the others have ended,
 *               however that was. Its number is the daemon's
 *   supervisor  enters the namespaces that the configured kinds of backend need, holds what must outlive
 *               a worker, watches it
 *   worker      serves (daemon.h)
 *
 * Each ends when the one above it does. */
#ifndef CUBEFS_FS_SUPERVISE_H
#define CUBEFS_FS_SUPERVISE_H

#include "backends/base/conf.h"
#include "fs/mount.h"
#include "fs/opts.h"
#include "fs/state.h"

struct cube_start {
	const struct cube_opts *opts;
	struct cube_conf *conf;
	struct cube_state_dir state;
	struct cube_mount mount;
	int ready_fd; /* where "the mount can be used" or what is wrong is written; -1: what is wrong goes to
			 stderr */
};

/* Becomes the keeper: mounts and runs the rest. The exit code of the program; what was wrong has been said.
 */
int cube_supervise(struct cube_start *s);

/* What the starting process reads from ready_fd before its end: 0 the mount can be used. */
int cube_supervise_wait(int ready_fd, const struct cube_state_dir *state, struct cube_err *err);

#endif
