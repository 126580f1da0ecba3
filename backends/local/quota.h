/* SPDX-License-Identifier: Apache-2.0 */
/* How much a set may take: the quotas of btrfs, where each set is a subvolume (store.h).
 *
 * In a file system of our own these are simple quotas (Linux 6.7): a block is charged to the subvolume that wrote it,
 * until it is free, whoever shares it meanwhile. So a set that is a copy begins at nothing, and what a copy keeps of
 * a set that has changed since goes on counting for that set. In anybody else's file system they are what its
 * owner has enabled. Who writes past his limit gets EDQUOT. */
#ifndef CUBEFS_BACKENDS_LOCAL_QUOTA_H
#define CUBEFS_BACKENDS_LOCAL_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/err.h"

struct cube_local_quota;

/* Of the file system with the directory @sets, borrowed. @ours: quotas are enabled where they are not; else it is only
 * looked whether they are. -EOPNOTSUPP: there are none, and why. May write to the disk. */
int cube_local_quota_open(int sets, bool ours, struct cube_local_quota **ret, struct cube_err *err);
void cube_local_quota_free(struct cube_local_quota *q); /* NULL is harmless */
/* Can they be enabled in a file system of our own, as far as that can be told without one: 0 or -EOPNOTSUPP. */
int cube_local_quota_possible(struct cube_err *err);

/* The set @name may take @bytes, 0: anything. Less than it has is no error: it cannot grow then. Any thread; waits
 * for the file system no longer than to make a file. */
int cube_local_quota_limit(const struct cube_local_quota *q, const char *name, uint64_t bytes,
			   struct cube_err *err);
/* What is charged to it, as of the last commit of the file system (half a minute at most); UINT64_MAX: not known. */
uint64_t cube_local_quota_used(const struct cube_local_quota *q, const char *name);
/* A set was removed. Its account outlives it where a copy still has blocks of it; now and then those that are empty
 * are closed. */
void cube_local_quota_removed(struct cube_local_quota *q);

#endif
