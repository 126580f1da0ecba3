/* SPDX-License-Identifier: Apache-2.0 */
/* A look at every directory in a directory. */
#ifndef CUBEFS_BACKENDS_LOCAL_DIRS_H
#define CUBEFS_BACKENDS_LOCAL_DIRS_H

/* Calls @fn for each directory in @path below @dirfd whose name does not begin with a dot, with a descriptor
 * of it that is closed afterwards. A result other than 0 ends the look and is returned; -errno where it
 * cannot begin. */
int cube_local_dirs_each(int dirfd, const char *path, int (*fn)(void *ctx, int dir, const char *name),
			 void *ctx);

#endif
