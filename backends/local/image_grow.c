/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks for the image ahead of need.
 *
 * btrfs divides its device into chunks and takes the first gap for a new one, so all it has is below some height;
 * the file has blocks up to a stretch above that. A new chunk is a gibibyte at most and is written to after it was
 * made: a look four times a second is ahead of the fastest writer. The calls are those of linux/btrfs.h. */
#include "backends/local/image.h"

#include "backends/base/alloc.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>

#define GROW_AHEAD   (UINT64_C(2) << 30)
#define GROW_STEP    (UINT64_C(64) << 20) /* of a change of size */
#define GROW_LOOK_NS 250000000L
#define GROW_DEVICE  1 /* the only device of the image */
#define GROW_SPACE   65536

struct cube_local_grow {
	int file, root;
	uint64_t have; /* blocks from the start up to here; never less, since nothing is given back */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t end;
	bool stop;
};

/* ---- how high ---- */

static uint64_t top_of_items(const char *at, uint32_t n, uint64_t top, uint64_t *ret_last)
{
	for (uint32_t i = 0; i < n; i++) {
		struct btrfs_ioctl_search_header head;
		struct btrfs_dev_extent extent;

		memcpy(&head, at, sizeof(head));
		at += sizeof(head);
		*ret_last = head.offset;
		if (head.type == BTRFS_DEV_EXTENT_KEY && head.len >= sizeof(extent)) {
			memcpy(&extent, at, sizeof(extent));
			if (head.offset + le64toh(extent.length) > top)
				top = head.offset + le64toh(extent.length);
		}
		at += head.len;
	}
	return top;
}

int cube_local_grow_top(int root, uint64_t *ret)
{
	union {
		struct btrfs_ioctl_search_args_v2 args;
		char space[sizeof(struct btrfs_ioctl_search_args_v2) + GROW_SPACE];
	} *u = cube_calloc(1, sizeof(*u));
	uint64_t top = 0, last = 0;
	int rc = u ? 0 : -ENOMEM;

	while (rc == 0) {
		u->args.key = (struct btrfs_ioctl_search_key){
			.tree_id = BTRFS_DEV_TREE_OBJECTID,
			.min_objectid = GROW_DEVICE,
			.max_objectid = GROW_DEVICE,
			.min_type = BTRFS_DEV_EXTENT_KEY,
			.max_type = BTRFS_DEV_EXTENT_KEY,
			.min_offset = last,
			.max_offset = UINT64_MAX,
			.max_transid = UINT64_MAX,
			.nr_items = 512,
		};
		u->args.buf_size = GROW_SPACE;
		if (ioctl(root, BTRFS_IOC_TREE_SEARCH_V2, &u->args) < 0)
			rc = -errno;
		else if (u->args.key.nr_items == 0)
			break;
		else {
			top = top_of_items((const char *)u->args.buf, u->args.key.nr_items, top, &last);
			last++;
		}
	}
	cube_free(u);
	if (rc == 0)
		*ret = top;
	return rc;
}

/* ---- how much ---- */

static int grow_device_size(int root, uint64_t *ret)
{
	struct btrfs_ioctl_dev_info_args args = {.devid = GROW_DEVICE};

	if (ioctl(root, BTRFS_IOC_DEV_INFO, &args) < 0)
		return -errno;
	*ret = args.total_bytes;
	return 0;
}

static int grow_resize(int root, uint64_t size)
{
	struct btrfs_ioctl_vol_args args = {.fd = 0};

	(void)snprintf(args.name, sizeof(args.name), "%d:%" PRIu64, GROW_DEVICE, size);
	return ioctl(root, BTRFS_IOC_RESIZE, &args) < 0 ? -errno : 0;
}

/* Bytes that the disk below can give. */
static uint64_t grow_room(int file, uint64_t spare)
{
	struct statvfs vfs;
	uint64_t free_bytes;

	if (fstatvfs(file, &vfs) < 0)
		return 0;
	free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	return free_bytes > spare ? free_bytes - spare : 0;
}

/* Bytes of blocks that the file has, wherever; little of that is above what is divided. */
static uint64_t grow_blocks(const struct stat *st)
{
	return (uint64_t)st->st_blocks * 512;
}

/* Gives the file blocks from *have up to @want, or as far as there are; *have is how far it has them now. */
static void grow_fill(int file, const struct stat *st, uint64_t want, uint64_t spare, uint64_t *have)
{
	uint64_t there = grow_blocks(st) > *have ? grow_blocks(st) : *have, room;

	if (want <= *have)
		return;
	room = grow_room(file, spare);
	if (want > there && want - there > room)
		want = there + room;
	want = want / GROW_STEP * GROW_STEP;
	if (want > *have && fallocate(file, 0, (off_t)*have, (off_t)(want - *have)) == 0)
		*have = want;
}

int cube_local_grow_once(int file, int root, uint64_t spare, uint64_t *have)
{
	uint64_t size = 0, top = 0, want, limit;
	struct stat st = {0};
	int rc = cube_local_grow_top(root, &top);

	if (rc == 0)
		rc = grow_device_size(root, &size);
	if (rc == 0 && fstat(file, &st) < 0)
		rc = -errno;
	if (rc < 0)
		return rc;
	limit = (uint64_t)st.st_size / GROW_STEP * GROW_STEP;
	want = (top + GROW_AHEAD) / GROW_STEP * GROW_STEP;
	want = want < limit ? want : limit;
	grow_fill(file, &st, want, spare, have);
	if (*have >= want)
		return size < limit ? grow_resize(root, limit) : 0;
	return *have < size && *have >= top ? grow_resize(root, *have) : 0;
}

/* ---- the thread ---- */

/* What is left alone on the disk of @file: as the guard for a short disk has it (interface.md). */
static uint64_t grow_spare(int file)
{
	const uint64_t least = UINT64_C(1) << 30;
	struct statvfs vfs;
	uint64_t part;

	if (fstatvfs(file, &vfs) < 0)
		return least;
	part = (uint64_t)vfs.f_blocks * vfs.f_frsize / 20;
	return part > least ? part : least;
}

static void *grow_thread(void *arg)
{
	struct cube_local_grow *g = arg;
	struct timespec until;
	int last = 0;

	pthread_mutex_lock(&g->lock);
	while (!g->stop) {
		int rc;

		pthread_mutex_unlock(&g->lock);
		rc = cube_local_grow_once(g->file, g->root, grow_spare(g->file), &g->have);
		if (rc < 0 && rc != last)
			cube_log(CUBE_LOG_WARNING, "local", "the image of the store cannot grow: %s",
				 cube_errno_text(rc));
		last = rc;
		pthread_mutex_lock(&g->lock);
		(void)clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += GROW_LOOK_NS;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		if (!g->stop)
			(void)pthread_cond_timedwait(&g->end, &g->lock, &until);
	}
	pthread_mutex_unlock(&g->lock);
	return NULL;
}

/* What is divided already must have blocks, even the disk's last ones: a mount that could turn read only is none. */
static int grow_first(struct cube_local_grow *g)
{
	uint64_t top = 0;
	int rc = cube_local_grow_once(g->file, g->root, grow_spare(g->file), &g->have);

	if (rc == 0)
		rc = cube_local_grow_top(g->root, &top);
	if (rc == 0 && g->have < top + GROW_STEP)
		rc = cube_local_grow_once(g->file, g->root, 0, &g->have);
	return rc == 0 && g->have < top ? -ENOSPC : rc;
}

int cube_local_grow_start(int file, int root, struct cube_local_grow **ret, struct cube_err *err)
{
	struct cube_local_grow *g = cube_calloc(1, sizeof(*g));
	pthread_condattr_t attr;
	int rc;

	if (!g)
		return cube_fail(err, -ENOMEM, "out of memory");
	g->file = file;
	g->root = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* @root may be O_PATH */
	if (g->root < 0) {
		rc = cube_fail_errno(err, "cannot open the image of the store");
		cube_free(g);
		return rc;
	}
	pthread_mutex_init(&g->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&g->end, &attr);
	pthread_condattr_destroy(&attr);
	rc = grow_first(g);
	if (rc == 0)
		rc = -pthread_create(&g->thread, NULL, grow_thread, g);
	if (rc < 0) {
		pthread_cond_destroy(&g->end);
		pthread_mutex_destroy(&g->lock);
		close(g->root);
		cube_free(g);
		return cube_fail(err, rc, "the image of the store cannot be kept: %s", cube_errno_text(rc));
	}
	*ret = g;
	return 0;
}

/* Nobody looks after it from now on, and sandboxes go on: where the disk could not give all that the limit
 * promises, the file system ends where the blocks do. */
static void grow_leave(const struct cube_local_grow *g)
{
	uint64_t have = g->have, size = 0, top = 0;
	struct stat st;

	if (fstat(g->file, &st) == 0 && cube_local_grow_top(g->root, &top) == 0 &&
	    grow_device_size(g->root, &size) == 0 && have < size && have >= top &&
	    grow_room(g->file, grow_spare(g->file)) < (uint64_t)st.st_size - have)
		(void)grow_resize(g->root, have);
}

void cube_local_grow_stop(struct cube_local_grow *g)
{
	if (!g)
		return;
	pthread_mutex_lock(&g->lock);
	g->stop = true;
	pthread_cond_signal(&g->end);
	pthread_mutex_unlock(&g->lock);
	(void)pthread_join(g->thread, NULL);
	grow_leave(g);
	pthread_cond_destroy(&g->end);
	pthread_mutex_destroy(&g->lock);
	close(g->root);
	cube_free(g);
}
