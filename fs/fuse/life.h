/* SPDX-License-Identifier: Apache-2.0 */
/* One file system for several workers, one after the other.
 *
 * The first worker's INIT and its reply are kept. A later one gets the same request again before any other, so that
 * libfuse knows what was agreed; the reply is not sent. Then the kernel is asked to send again what has no answer. */
#ifndef CUBEFS_FS_FUSE_LIFE_H
#define CUBEFS_FS_FUSE_LIFE_H

#include "fs/fuse/wire.h"
#include "fs/keep/keep.h"

struct cube_fuse_life {
	struct cube_keep *keep;
	int fd;
	uint64_t init; /* the number of the INIT that is served */
	bool replays;  /* this is not the first worker */
	bool given;    /* it got its INIT */
};

/* Its hook is the last of @w, so that the reply is kept as it is sent. */
void cube_fuse_life_add(struct cube_fuse_life *l, struct cube_keep *keep, int fd, struct cube_wire *w);
/* After the INIT of a later worker was served, and all is ready for requests. -errno: the kernel does not know how. */
int cube_fuse_life_go_on(struct cube_fuse_life *l);

#endif
