/* SPDX-License-Identifier: Apache-2.0 */
/* The worker: domain, tree, FUSE, loop, from start to end. */
#ifndef CUBEFS_FS_DAEMON_H
#define CUBEFS_FS_DAEMON_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "backends/base/conf.h"
#include "backends/base/err.h"

struct cube_daemon_options {
	const char *state_dir;
	const struct cube_conf *conf;
	int fuse_fd; /* mounted; stays the caller's; -1: there is no mount */
	int keep_fd; /* what outlives a worker (keep/keep.h); stays the caller's. -1: nothing does */
	const char *const *p9; /* addresses to serve 9P on */
	unsigned n_p9;
	const char *p9_token_file; /* NULL: what the configuration says */
	uid_t uid;                 /* who mounted, as the kernel of this machine sees it */
	gid_t gid;
	bool symlinks_raw, owners_raw, debug;
	void (*ready)(void *ctx);   /* the mount can be used; once, on any thread */
	void (*unmount)(void *ctx); /* see to it that it is unmounted; must not wait for that */
	void *ctx;
};

/* SIGUSR1: comes to a point between requests, and ends with this code; another program takes over. */
#define CUBE_DAEMON_DRAIN   SIGUSR1
#define CUBE_DAEMON_DRAINED 3

/* Runs until the file system is unmounted, or SIGTERM or SIGINT comes (which, and SIGUSR1, must be blocked by the caller,
 * who has one thread). 0, or what went wrong. Sandboxes and their commands go on. */
int cube_daemon_run(const struct cube_daemon_options *o, struct cube_err *err);

#endif
