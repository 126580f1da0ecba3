/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel can do and libfuse is too old to know of.
 *
 * Setuid bits (FUSE_HANDLE_KILLPRIV_V2, Linux 5.11): to take them from a file that another user than its owner writes
 * is our matter, and the kernel asks once whether a file has such bits or file capabilities, not before each write (by
 * which each write that passes us by would have become a request). It tells us by a SETATTR that sets nothing.
 *
 * TMPFILE (Linux 6.1) and STATX (6.6) begin as CREATE and GETATTR do: libfuse gets them as these, and whoever serves them
 * asks here what they were. */
#ifndef CUBEFS_FS_FUSE_NEWER_H
#define CUBEFS_FS_FUSE_NEWER_H

#include <stdatomic.h>
#include <stdint.h>

#include "fs/fuse/wire.h"

struct cube_fuse_newer {
	_Atomic uint64_t init; /* unique of the INIT that is to be answered */
	char body[CUBE_WIRE_INIT];
};

#define CUBE_FUSE_TMPFILE 51
#define CUBE_FUSE_STATX   52

/* The kernel's word for what this thread serves just now. */
uint32_t cube_fuse_newer_asked(void);

/* Adds its hooks to @w: before those that keep what was answered. */
void cube_fuse_newer_add(struct cube_fuse_newer *n, struct cube_wire *w);

#endif
