/* SPDX-License-Identifier: Apache-2.0 */
/* An account in a sandbox that has not run yet. */
#ifndef CUBEFS_BACKENDS_NS_ACCOUNT_H
#define CUBEFS_BACKENDS_NS_ACCOUNT_H

#include <stdint.h>

#include "backends/base/err.h"
#include "backends/ns/userns.h"

/* A file or directory below the mounted @root, through no link and into no other mount; -1 with errno. */
int cube_ns_open(int root, const char *path, int flags);

/* Sees to it that the user @name is there: in /etc/passwd and /etc/group, with a home, as the owner of @workspace.
 * @uid 0: its own, or the first that is free from 1000 on. -EINVAL: it has another number, or that is taken. */
int cube_ns_account(int root, int workspace, const char *name, uint32_t uid, const struct cube_ns_ids *ids,
		    struct cube_err *err);

#endif
