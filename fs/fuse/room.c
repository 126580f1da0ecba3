/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the kernel copies requests to. */
#include "fs/fuse/room.h"

#include <string.h>
#include <sys/mman.h>

void cube_rooms_init(struct cube_rooms *r)
{
	*r = (struct cube_rooms){.free = NULL};
	(void)pthread_mutex_init(&r->lock, NULL);
}

static void *room_next(const void *room)
{
	void *next;

	memcpy(&next, room, sizeof(next));
	return next;
}

void cube_rooms_done(struct cube_rooms *r)
{
	void *room;

	while ((room = r->free) != NULL) {
		r->free = room_next(room);
		(void)munmap(room, CUBE_ROOM_SIZE);
	}
	(void)pthread_mutex_destroy(&r->lock);
}

/* Huge pages are put together, and taken apart, behind our back. Locked is as much as the user may lock. */
static void *room_new(void)
{
	void *room = mmap(NULL, CUBE_ROOM_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED)
		return NULL;
	(void)madvise(room, CUBE_ROOM_SIZE, MADV_NOHUGEPAGE);
	if (madvise(room, CUBE_ROOM_SIZE, MADV_DONTFORK) < 0) {
		(void)munmap(room, CUBE_ROOM_SIZE);
		return NULL;
	}
	memset(room, 0, CUBE_ROOM_SIZE);
	(void)mlock(room, CUBE_ROOM_SIZE);
	return room;
}

void *cube_room_take(struct cube_rooms *r)
{
	void *room;

	(void)pthread_mutex_lock(&r->lock);
	room = r->free;
	if (room != NULL)
		r->free = room_next(room);
	(void)pthread_mutex_unlock(&r->lock);
	return room != NULL ? room : room_new();
}

void cube_room_give(struct cube_rooms *r, void *room)
{
	if (room == NULL)
		return;
	(void)pthread_mutex_lock(&r->lock);
	memcpy(room, &r->free, sizeof(r->free));
	r->free = room;
	(void)pthread_mutex_unlock(&r->lock);
}
