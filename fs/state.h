/* SPDX-License-Identifier: Apache-2.0 */
/* The state directory of a daemon: made, locked, with the daemon's log in it. */
#ifndef CUBEFS_FS_STATE_H
#define CUBEFS_FS_STATE_H

#include <sys/types.h>

#include "backends/base/err.h"

struct cube_state_dir {
	char *path;  /* absolute; owned */
	int lock_fd; /* held as long as any process has it */
	int log_fd;  /* STATE/cubefs.log, for appending */
};

/* @given: --state, or NULL. -EBUSY: another daemon has it, with its number. -EPROTO: what is in it is of a later cubefs
 * (state_format.h). */
int cube_state_dir_open(const char *given, struct cube_state_dir *ret, struct cube_err *err);
/* Writes into the lock who is to be told to end. */
void cube_state_dir_sign(const struct cube_state_dir *s, pid_t pid);
void cube_state_dir_close(struct cube_state_dir *s);

#endif
