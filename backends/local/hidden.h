/* SPDX-License-Identifier: Apache-2.0 */
/* What of /usr and /opt not everyone may read: the template `host` must not show it, since inside it
 * would belong to the sandbox's root.
 *
 * Finding it is a walk over all files there (a second for 150,000), so it is started beside the start of
 * the daemon, in a process of its own, and waited for by the first sandbox. */
#ifndef CUBEFS_BACKENDS_LOCAL_HIDDEN_H
#define CUBEFS_BACKENDS_LOCAL_HIDDEN_H

#include <stdbool.h>

#include "backends/base/buf.h"
#include "backends/base/cancel.h"
#include "backends/base/err.h"

#define CUBE_HIDDEN_MAX (16u << 20) /* bytes of the list */

/* Directories that are walked, NULL ended. */
extern const char *const cube_local_hidden_roots[];

/* Starts the walk in a process of its own, once. The process must have one thread. Where it cannot be
 * started, cube_local_hidden_get does the work. */
void cube_local_hidden_start(void);

/* Waits for what was started; 0, also when it takes too long or nothing was, or -EINTR: @cancel fired. */
int cube_local_hidden_wait(struct cube_cancel *cancel);

/* Adds the paths, each with its NUL, to @list. Waits for what was started, or walks itself; @fresh: walk
 * again, what was found earlier is out of date. */
int cube_local_hidden_get(bool fresh, struct cube_buf *list, struct cube_err *err);

/* The walk: adds paths below @root (absolute), without crossing into other file systems. */
int cube_local_hidden_walk(const char *root, struct cube_buf *list);

#endif
