/* SPDX-License-Identifier: Apache-2.0 */
/* FUSE passthrough: the data of an open file goes between the kernel and the file behind, without us.
 *
 * The kernel is told of a file behind by a backing id, and wants the same one for all opens of an inode; nor may one
 * open pass through and another one of the same inode be served. So an inode is open in one way: the first open says
 * which, the others follow, and with the last one the id is given back. What is registered is the path of the file
 * in its overlay: each open of the inode opens that again, so that a file of a lower layer is copied up by the first
 * who writes, and readers see the copy.
 *
 * Whether it can be had is found out once, when the connection begins: it takes Linux 6.9 and CAP_SYS_ADMIN outside of
 * any user namespace. A file whose file system cannot be behind (stacked too deep) is served. */
#ifndef CUBEFS_FS_FUSE_PASSTHROUGH_H
#define CUBEFS_FS_FUSE_PASSTHROUGH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/base/map.h"
#include "fs/fuse/wire.h"

struct cube_fuse_pass {
	int fd;                /* /dev/fuse, the caller's */
	atomic_int state;      /* not known yet, yes, no */
	const char *why;       /* no: why; constant */
	_Atomic uint64_t init; /* unique of the INIT that is to be answered */
	char body[CUBE_WIRE_INIT];
	pthread_mutex_t lock;
	struct cube_imap *open; /* node id -> struct pass_inode */
};

/* Adds its hooks to @w; 0 or -ENOMEM. */
int cube_fuse_pass_init(struct cube_fuse_pass *p, struct cube_wire *w, int fd);
void cube_fuse_pass_done(struct cube_fuse_pass *p); /* after the session ended; of a zeroed one too */
/* NULL: data passes through; else the reason why not. After INIT; any thread, blocks on nothing. */
const char *cube_fuse_pass_why_not(struct cube_fuse_pass *p);

/* One open more of the inode @node, of which @fd is a descriptor. *ret_id: the backing id that the answer is to give,
 * or 0: it is served. -ENOMEM: it must not be opened. */
int cube_fuse_pass_open(struct cube_fuse_pass *p, uint64_t node, int fd, int32_t *ret_id);
/* An open of the worker before, which had got @id. -ENOMEM: it is served from now on. */
int cube_fuse_pass_adopt(struct cube_fuse_pass *p, uint64_t node, int32_t id);
/* One less: after its RELEASE, or where the open was not answered. */
void cube_fuse_pass_close(struct cube_fuse_pass *p, uint64_t node);

#endif
