/* SPDX-License-Identifier: Apache-2.0 */
/* Between cgroup.c and cgroup_use.c. */
#ifndef CUBEFS_BACKENDS_LOCAL_CGROUP_PRIV_H
#define CUBEFS_BACKENDS_LOCAL_CGROUP_PRIV_H

#include <stdint.h>

/* A file of the group @id in the tree @tree (a directory `cubefs`, or -1: -ENOENT). Descriptor or -errno. */
int cube_local_group_file(int tree, const char *id, const char *file, int flags);

/* The number behind @key in a text of `key value` lines, or the first of it with ""; UINT64_MAX where there is none. */
uint64_t cube_local_group_read(int fd, const char *key);
/* The same of a file of a group. */
uint64_t cube_local_group_number(int tree, const char *id, const char *file, const char *key);

/* How deep a sandbox may divide its group. */
#define CUBE_GROUP_DEPTH 8

#endif
