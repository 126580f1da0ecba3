/* SPDX-License-Identifier: Apache-2.0 */
/* User namespaces for idmapped mounts: no process is in them. */
#ifndef CUBEFS_BACKENDS_NS_USERNS_H
#define CUBEFS_BACKENDS_NS_USERNS_H

#include <stdint.h>
#include <sys/types.h>

#include "backends/base/err.h"

/* uid + n and gid + n, as this process sees them, are n inside, for n < count. One range for all
 * sandboxes of this machine's user, so that files can be handed from one to another. */
struct cube_ns_ids {
	uint32_t uid, gid, count;
};

/* One that maps 0 to the range. */
int cube_ns_userns(const struct cube_ns_ids *ids, int *ret_fd, struct cube_err *err);

/* The same for one user: his @uid and @gid are the range's first ones, and nobody else has any. */
int cube_ns_userns_one(const struct cube_ns_ids *ids, uint32_t uid, uint32_t gid, int *ret_fd,
		       struct cube_err *err);

/* One of the files of process @pid that map its namespace's ids (uid_map, gid_map, setgroups): 0 or -errno. */
int cube_ns_userns_write(pid_t pid, const char *file, const char *text);

#endif
