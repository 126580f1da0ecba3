/* SPDX-License-Identifier: Apache-2.0 */
/* The mounts of a sandbox that runs already: after a restart of the daemon they are only in its own mount
 * namespace, and mounting the same upper layer a second time is undefined. */
#ifndef CUBEFS_BACKENDS_LOCAL_ADOPT_H
#define CUBEFS_BACKENDS_LOCAL_ADOPT_H

#include <stdbool.h>
#include <sys/types.h>

#include "backends/base/err.h"

/* Is the root of process @init the overlay of sandbox @id? (Its source in mountinfo is the id.) */
bool cube_local_adopt_is(pid_t init, const char *id);

/* Clones of / and /workspace of process @init, without what is mounted below them, kept (keep.h). @dir is the
 * sandbox's directory. -EIO where these are not the
 * overlays of @id. */
int cube_local_adopt_mounts(pid_t init, const char *id, int dir, int *ret_root, int *ret_workspace,
			    struct cube_err *err);

#endif
