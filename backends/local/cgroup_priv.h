/* SPDX-License-Identifier: Apache-2.0 */
/* Between cgroup.c and cgroup_use.c. */
#ifndef CUBEFS_BACKENDS_LOCAL_CGROUP_PRIV_H
#define CUBEFS_BACKENDS_LOCAL_CGROUP_PRIV_H

#include <stdint.h>

/* The number behind @key in a file of `key value` lines, or the first of the file with ""; UINT64_MAX
 * where there is none. @dir may be -1. */
uint64_t cube_local_group_number(int dir, const char *file, const char *key);

/* How deep a sandbox may divide its group. */
#define CUBE_GROUP_DEPTH 8

#endif
