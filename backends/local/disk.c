/* SPDX-License-Identifier: Apache-2.0 */
/* How much disk sandboxes take. */
#include "backends/local/disk.h"

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/list.h"
#include "backends/base/macros.h"
#include "backends/base/map.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define DISK_AGE_NS UINT64_C(30000000000)
#define DISK_FACTOR 20
#define DISK_MANY   64
#define DISK_DEPTH  512
#define DISK_ID     72

struct disk_figure {
	char id[DISK_ID];
	uint64_t bytes;        /* UINT64_MAX: none yet */
	uint64_t made, took;   /* when it was made, how long it took; nanoseconds */
	bool queued;           /* in the queue, or being made */
	bool gone;             /* forgotten while it was being made: the thread frees it */
	struct cube_list link; /* of the queue */
};

struct cube_local_disk {
	int cubes;
	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t more;
	struct cube_map *map; /* id to disk_figure */
	struct cube_list queue;
	bool started;
	atomic_bool stop; /* also looked at during a walk */
	pthread_t thread;
};

/* ---- the walk ---- */

/* Of a hard link only the part that falls on one name. */
static uint64_t walk_dir(const struct cube_local_disk *d, int parent, const char *name, unsigned depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	uint64_t sum = 0;
	struct stat st;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while (!atomic_load(&d->stop) && (e = readdir(dir)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (!S_ISDIR(st.st_mode))
			sum += (uint64_t)st.st_blocks * 512 / (st.st_nlink ? st.st_nlink : 1);
		else if (depth < DISK_DEPTH)
			sum += (uint64_t)st.st_blocks * 512 + walk_dir(d, fd, e->d_name, depth + 1);
	}
	closedir(dir);
	return sum;
}

static void disk_measure(struct cube_local_disk *d, struct disk_figure *f)
{
	uint64_t begin = cube_clock_mono();
	uint64_t bytes = walk_dir(d, d->cubes, f->id, 0);

	pthread_mutex_lock(&d->lock);
	f->bytes = bytes;
	f->made = cube_clock_mono();
	f->took = f->made - begin;
	f->queued = false;
	if (f->gone)
		cube_free(f);
	pthread_mutex_unlock(&d->lock);
}

static void *disk_thread(void *arg)
{
	struct cube_local_disk *d = arg;
	struct cube_list *next;

	(void)setpriority(PRIO_PROCESS, 0, 10); /* of this thread alone, on Linux */
	pthread_mutex_lock(&d->lock);
	while (!atomic_load(&d->stop)) {
		next = cube_list_pop(&d->queue);
		if (!next) {
			pthread_cond_wait(&d->more, &d->lock);
			continue;
		}
		pthread_mutex_unlock(&d->lock);
		disk_measure(d, cube_list_entry(next, struct disk_figure, link));
		pthread_mutex_lock(&d->lock);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

/* ---- questions ---- */

struct cube_local_disk *cube_local_disk_new(int cubes)
{
	struct cube_local_disk *d = cube_calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->map = cube_map_new();
	if (!d->map) {
		cube_free(d);
		return NULL;
	}
	d->cubes = cubes;
	cube_list_init(&d->queue);
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->more, NULL);
	return d;
}

static int disk_take_first(void *ctx, const char *key, void *value)
{
	(void)value;
	(void)snprintf(ctx, DISK_ID, "%s", key);
	return 1;
}

void cube_local_disk_free(struct cube_local_disk *d)
{
	char id[DISK_ID];

	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	atomic_store(&d->stop, true);
	pthread_cond_signal(&d->more);
	pthread_mutex_unlock(&d->lock);
	if (d->started)
		(void)pthread_join(d->thread, NULL);
	while (cube_map_each(d->map, disk_take_first, id) != 0)
		cube_free(cube_map_take(d->map, id));
	cube_map_free(d->map);
	pthread_cond_destroy(&d->more);
	pthread_mutex_destroy(&d->lock);
	cube_free(d);
}

static struct disk_figure *disk_find_locked(struct cube_local_disk *d, const char *id)
{
	struct disk_figure *f = cube_map_get(d->map, id);

	if (f)
		return f;
	f = cube_calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	(void)snprintf(f->id, sizeof(f->id), "%s", id);
	f->bytes = UINT64_MAX;
	cube_list_init(&f->link);
	if (cube_map_put(d->map, id, f) < 0) {
		cube_free(f);
		return NULL;
	}
	return f;
}

/* The more there are, the older they may be: a thousand that are asked for all the time cost as one. */
static bool disk_is_old(const struct cube_local_disk *d, const struct disk_figure *f)
{
	uint64_t age = cube_clock_mono() - f->made,
		 may = DISK_AGE_NS * (1 + cube_map_count(d->map) / DISK_MANY);

	return f->bytes == UINT64_MAX || (age > may && age / DISK_FACTOR > f->took);
}

static void disk_ask_locked(struct cube_local_disk *d, struct disk_figure *f)
{
	if (!d->started)
		d->started = pthread_create(&d->thread, NULL, disk_thread, d) == 0;
	if (!d->started)
		return;
	f->queued = true;
	cube_list_push(&d->queue, &f->link);
	pthread_cond_signal(&d->more);
}

uint64_t cube_local_disk_get(struct cube_local_disk *d, const char *id)
{
	uint64_t bytes = UINT64_MAX;
	struct disk_figure *f;

	pthread_mutex_lock(&d->lock);
	f = disk_find_locked(d, id);
	if (f) {
		bytes = f->bytes;
		if (!f->queued && disk_is_old(d, f))
			disk_ask_locked(d, f);
	}
	pthread_mutex_unlock(&d->lock);
	return bytes;
}

void cube_local_disk_forget(struct cube_local_disk *d, const char *id)
{
	struct disk_figure *f;

	pthread_mutex_lock(&d->lock);
	f = cube_map_take(d->map, id);
	if (f && f->queued && cube_list_empty(&f->link)) {
		f->gone = true; /* the thread has it */
	} else if (f) {
		cube_list_remove(&f->link);
		cube_free(f);
	}
	pthread_mutex_unlock(&d->lock);
}
