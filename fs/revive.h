/* SPDX-License-Identifier: Apache-2.0 */
/* Whether, and when, another worker follows one that ended. In the supervisor.
 *
 * One that was killed (SIGKILL: by somebody, or for want of memory) is followed at once. One that ends by itself is
 * followed too, later and later; after so many in a row that did not last, none is: then the mount ends. The first one
 * of all must have served. */
#ifndef CUBEFS_FS_REVIVE_H
#define CUBEFS_FS_REVIVE_H

#include <signal.h>

#include "fs/keep/keep.h"

#define CUBE_REVIVE_SILENT                                                                                   \
	SIGUSR1 /* from the keeper, with a number: for so many seconds the mount has been silent */

#define CUBE_REVIVE_QUICK_S 10 /* one that lasted less did not last */
#define CUBE_REVIVE_MOST    8  /* in a row */

struct cube_revive {
	struct cube_keep *keep;
	uint64_t began;    /* the worker's start, monotonic ns */
	unsigned in_a_row; /* that did not last */
	bool served;       /* there was one that did */
	uint64_t serves;   /* since when this one has been seen to serve, monotonic ns; 0: it does not */
};

int cube_revive_init(struct cube_revive *v, int keep_fd, struct cube_err *err);
void cube_revive_begin(struct cube_revive *v); /* a worker is about to be started */
void cube_revive_look(struct cube_revive *v);  /* several times a second: does it serve? */
/* For so long the mount has been silent: does the worker hang, and is to be ended? Not while it has yet to begin, and
 * not before it has been silent for as long as the setting `canary` says. The next worker will say so. Once true for
 * each worker. */
bool cube_revive_hung(struct cube_revive *v, unsigned seconds);
/* It ended with the wait status @status; @told: the supervisor has been told to end. May wait, and stops waiting when
 * @signal_fd (a signalfd without SIGCHLD news) says so: then false. */
bool cube_revive_again(struct cube_revive *v, int status, bool told, int signal_fd);
void cube_revive_done(struct cube_revive *v);

#endif
