/* SPDX-License-Identifier: Apache-2.0 */
/* Was it the memory limit? Asked by a link when something inside was killed by nobody that it knows.
 *
 * A link may live longer than its sandbox's object here, so what it holds is a number in a table of the
 * process. */
#ifndef CUBEFS_BACKENDS_LOCAL_OOM_H
#define CUBEFS_BACKENDS_LOCAL_OOM_H

#include <stdbool.h>

#include "backends/local/cgroup.h"

/* Watches the group of @id: NULL when that is not possible, else what the two others take. Any thread. */
void *cube_local_oom_watch(const struct cube_local_cgroups *c, const char *id);
void cube_local_oom_forget(void *watch); /* NULL is harmless */

/* Has the memory killer taken a process there that was not asked for before? Each counts once. false where
 * the watch was forgotten. Any thread, does not block. */
bool cube_local_oom_probe(void *watch);

#endif
