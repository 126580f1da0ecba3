/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the kernel copies requests to.
 *
 * A thread that is killed while it takes a request fails it (EIO) if the kernel has to fault a page of its buffer in, since
 * a page fault is given up at once for who is being killed; where the pages are there and may be written it goes on, and
 * the next worker gets the request. So these are there from the beginning, are kept there as far as one may, and do not
 * become copies-on-write when this process forks: a child does not have them at all. */
#ifndef CUBEFS_FS_FUSE_ROOM_H
#define CUBEFS_FS_FUSE_ROOM_H

#include <pthread.h>
#include <stddef.h>

#define CUBE_ROOM_DATA ((size_t)1 << 20)           /* the most that is written by one request */
#define CUBE_ROOM_SIZE (CUBE_ROOM_DATA + 2 * 4096) /* and what stands before it */

struct cube_rooms {
	pthread_mutex_t lock;
	void *free; /* chained through their first bytes */
};

void cube_rooms_init(struct cube_rooms *r);
void cube_rooms_done(struct cube_rooms *r); /* those that were given back */
/* CUBE_ROOM_SIZE bytes, zero or what was there before; NULL: no memory. */
void *cube_room_take(struct cube_rooms *r);
void cube_room_give(struct cube_rooms *r, void *room); /* NULL is harmless */

#endif
