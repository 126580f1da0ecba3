/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of users: which of ours stand for those of a sandbox, and the user namespaces that say so. */
#ifndef CUBEFS_BACKENDS_LOCAL_IDS_H
#define CUBEFS_BACKENDS_LOCAL_IDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/base/err.h"
#include "backends/ns/userns.h"

/* Is this the machine's own user namespace, or one like it: all numbers there, each standing for itself? */
bool cube_local_ids_initial(void);

/* The range in a user namespace that has another: what is mapped above 0, else 0 alone. */
void cube_local_ids_of_map(struct cube_ns_ids *ret);

/* An ordinary user: moves this process, which must have one thread, into a user and mount namespace of
 * its own in which it is 0, with the subordinate range of /etc/subuid and /etc/subgid where there is one
 * and newuidmap works, else alone. */
int cube_local_ids_enter(struct cube_err *err);

/* The same, into the user namespace below ours in which the sandbox of process @init was made; a mount
 * namespace of its own all the same. -ESRCH when that process is gone. */
int cube_local_ids_join(pid_t init, struct cube_err *err);

/* First range of @name or @id in a file like /etc/subuid. */
bool cube_local_ids_subordinate(const char *file, const char *name, uint32_t id, uint32_t *ret_first,
				uint32_t *ret_count);

#endif
