/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel can do and libfuse is too old to know of.
 *
 * Setuid bits (FUSE_HANDLE_KILLPRIV_V2, Linux 5.11): to take them from a file that another user than its owner writes
 * is our matter, and the kernel asks once whether a file has such bits or file capabilities, not before each write (by
 * which each write that passes us by would have become a request). It tells us by a SETATTR that sets nothing. */
#ifndef CUBEFS_FS_FUSE_NEWER_H
#define CUBEFS_FS_FUSE_NEWER_H

#include <stdatomic.h>
#include <stdint.h>

#include "fs/fuse/wire.h"

struct cube_fuse_newer {
	_Atomic uint64_t init; /* unique of the INIT that is to be answered */
	char body[CUBE_WIRE_INIT];
};

/* Adds its hooks to @w: before those that keep what was answered. */
void cube_fuse_newer_add(struct cube_fuse_newer *n, struct cube_wire *w);

#endif
