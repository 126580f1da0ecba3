/* SPDX-License-Identifier: Apache-2.0 */
/* Which cubefs mounts there are, from /proc/self/mountinfo. */
#ifndef CUBEFS_CTL_CLI_MOUNTS_H
#define CUBEFS_CTL_CLI_MOUNTS_H

#include <stdbool.h>
#include <sys/types.h>

#include "backends/base/err.h"

/* Who mounted it. The kernel lets in whoever is both, and nobody else, root included (fuse(8)). */
struct cube_mounts_owner {
	uid_t user;
	gid_t group;
};

/* Calls @each for every mount of type fuse.cubefs with its (unescaped) mount point and who mounted it, in the order of
 * mounting; a non-zero result ends the walk and is returned. -errno where the list cannot be read. */
int cube_mounts_each(int (*each)(void *ctx, const char *path, const struct cube_mounts_owner *owner),
		     void *ctx);

/* Is @path (absolute, no link in it) one? */
bool cube_mounts_has(const char *path);

/* The mount of the calling user if there is exactly one: *ret is the caller's. -ENOENT none, -EINVAL several. */
int cube_mounts_only(char **ret, struct cube_err *err);

#endif
