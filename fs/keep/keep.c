/* SPDX-License-Identifier: Apache-2.0 */
/* What outlives a worker: shared memory in tables. */
#include "fs/keep/keep.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"

#define KEEP_MAGIC UINT64_C(0x3170656573756263)
#define KEEP_PAGE  ((size_t)4096)

struct keep_part {
	size_t table; /* in struct cube_keep */
	size_t size;
	uint32_t max;
};

#define KEEP_PART(name, type, max_)                                                                          \
	{                                                                                                    \
		offsetof(struct cube_keep, name), sizeof(struct type), max_                                  \
	}

static const struct keep_part keep_parts[] = {
	KEEP_PART(nodes, cube_keep_node, 1u << 20),     KEEP_PART(files, cube_keep_file, 1u << 22),
	KEEP_PART(names, cube_keep_name, 1u << 20),     KEEP_PART(roots, cube_keep_root, 1u << 16),
	KEEP_PART(locks, cube_keep_lock, 1u << 16),     KEEP_PART(marks, cube_keep_mark, 1u << 12),
	KEEP_PART(handles, cube_keep_handle, 1u << 18), KEEP_PART(calls, cube_keep_call, 1u << 13),
};

static size_t keep_round(size_t n)
{
	return (n + KEEP_PAGE - 1) / KEEP_PAGE * KEEP_PAGE;
}

static size_t keep_size(void)
{
	size_t size = keep_round(sizeof(struct cube_keep_head));

	for (size_t i = 0; i < CUBE_COUNT(keep_parts); i++)
		size += keep_round(keep_parts[i].size * keep_parts[i].max);
	return size;
}

int cube_keep_make(int *ret_fd, struct cube_err *err)
{
	struct cube_keep_head head = {
		.magic = KEEP_MAGIC, .version = CUBE_KEEP_VERSION, .head_size = sizeof(head)};
	int fd = memfd_create("cubefs", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)keep_size()) < 0 ||
	    pwrite(fd, &head, sizeof(head), 0) != sizeof(head)) {
		cube_fail_errno(err, "the memory that outlives a worker");
		if (fd >= 0)
			(void)close(fd);
		return err->code;
	}
	*ret_fd = fd;
	return 0;
}

static struct cube_keep_table *keep_table(struct cube_keep *k, size_t i)
{
	return (struct cube_keep_table *)(void *)((char *)k + keep_parts[i].table);
}

/* Free records below the highest one that was ever used. */
static int keep_find_gaps(struct cube_keep_table *t)
{
	uint32_t used = cube_keep_used(t);

	for (uint32_t i = 0; i < used; i++) {
		const _Atomic uint64_t *key = cube_keep_at(t, i);

		if (atomic_load(key) == 0)
			cube_keep_give(t, i);
	}
	return 0;
}

static void keep_lay_out(struct cube_keep *k)
{
	char *at = (char *)k->head + keep_round(sizeof(struct cube_keep_head));

	for (size_t i = 0; i < CUBE_COUNT(keep_parts); i++) {
		struct cube_keep_table *t = keep_table(k, i);

		*t = (struct cube_keep_table){.base = at,
					      .size = keep_parts[i].size,
					      .max = keep_parts[i].max,
					      .used = &k->head->used[i]};
		(void)pthread_mutex_init(&t->lock, NULL);
		at += keep_round(t->size * t->max);
		(void)keep_find_gaps(t);
	}
}

int cube_keep_open(int fd, struct cube_keep **ret, struct cube_err *err)
{
	struct cube_keep *k = cube_calloc(1, sizeof(*k));
	struct stat st;

	if (k == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	k->fd = fd;
	k->size = keep_size();
	if (fstat(fd, &st) < 0 || st.st_size != (off_t)k->size) {
		cube_free(k);
		return cube_fail(err, -EPROTO, "the memory of the worker before is that of another version");
	}
	k->head = mmap(NULL, k->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (k->head == MAP_FAILED) {
		cube_free(k);
		return cube_fail_errno(err, "the memory that outlives a worker");
	}
	if (k->head->magic != KEEP_MAGIC || k->head->version != CUBE_KEEP_VERSION) {
		(void)munmap(k->head, k->size);
		cube_free(k);
		return cube_fail(err, -EPROTO, "the memory of the worker before is that of another version");
	}
	keep_lay_out(k);
	*ret = k;
	return 0;
}

void cube_keep_close(struct cube_keep *k)
{
	if (k == NULL)
		return;
	for (size_t i = 0; i < CUBE_COUNT(keep_parts); i++) {
		struct cube_keep_table *t = keep_table(k, i);

		(void)pthread_mutex_destroy(&t->lock);
		cube_free(t->gaps);
	}
	(void)munmap(k->head, k->size);
	cube_free(k);
}

/* ---- records ---- */

uint32_t cube_keep_used(const struct cube_keep_table *t)
{
	uint32_t used = atomic_load(t->used);

	return used < t->max ? used : t->max;
}

void *cube_keep_at(const struct cube_keep_table *t, uint32_t i)
{
	return t->base + t->size * i;
}

uint32_t cube_keep_take(struct cube_keep_table *t)
{
	uint32_t i = CUBE_KEEP_NONE, used;

	(void)pthread_mutex_lock(&t->lock);
	used = atomic_load_explicit(t->used, memory_order_relaxed);
	if (t->n_gaps > 0) {
		i = t->gaps[--t->n_gaps];
	} else if (used < t->max) {
		i = used;
		atomic_store(t->used, used + 1);
	}
	(void)pthread_mutex_unlock(&t->lock);
	return i;
}

void cube_keep_give(struct cube_keep_table *t, uint32_t i)
{
	uint32_t room;
	void *more;

	if (i == CUBE_KEEP_NONE)
		return;
	atomic_store((_Atomic uint64_t *)cube_keep_at(t, i), 0);
	(void)pthread_mutex_lock(&t->lock);
	if (t->n_gaps == t->room) {
		room = t->room > 0 ? 2 * t->room : 64;
		more = cube_realloc(t->gaps, room * sizeof(*t->gaps));
		if (more != NULL) {
			t->gaps = more;
			t->room = room;
		}
	}
	if (t->n_gaps < t->room) /* else it is found by the next worker */
		t->gaps[t->n_gaps++] = i;
	(void)pthread_mutex_unlock(&t->lock);
}

/* ---- settings ---- */

void cube_keep_set(struct cube_keep *k, const char *key, uint64_t value)
{
	for (size_t i = 0; i < CUBE_KEEP_SETTINGS; i++) {
		struct cube_keep_setting *s = &k->head->settings[i];
		bool there = atomic_load(&s->there) != 0;

		if (there && strcmp(s->key, key) != 0)
			continue;
		if (!there && strlen(key) >= sizeof(s->key))
			return;
		atomic_store(&s->value, value);
		if (!there)
			memcpy(s->key, key, strlen(key) + 1);
		atomic_store(&s->there, 1);
		return;
	}
}

/* ---- texts ---- */

static int text_to_file(struct cube_keep_text *t)
{
	int fd = memfd_create("cubefs-text", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (pwrite(fd, t->small, sizeof(t->small), 0) != sizeof(t->small)) {
		(void)close(fd);
		return -ENOSPC;
	}
	t->fd = fd;
	return 0;
}

int cube_keep_text_put(struct cube_keep_text *t, size_t at, const void *data, size_t len)
{
	int r;

	if (t->fd < 0 && at + len <= sizeof(t->small)) {
		if (len > 0)
			memcpy(t->small + at, data, len);
		return 0;
	}
	r = t->fd < 0 ? text_to_file(t) : 0;
	if (r < 0)
		return r;
	return pwrite(t->fd, data, len, (off_t)at) == (ssize_t)len ? 0 : -ENOSPC;
}

int cube_keep_text_get(const struct cube_keep_text *t, size_t at, void *data, size_t len)
{
	if (t->fd >= 0)
		return pread(t->fd, data, len, (off_t)at) == (ssize_t)len ? 0 : -EIO;
	if (t->fd == CUBE_KEEP_LOST || at + len > sizeof(t->small))
		return -EIO;
	memcpy(data, t->small + at, len);
	return 0;
}

void cube_keep_text_drop(struct cube_keep_text *t)
{
	int fd = t->fd;

	t->fd = -1;
	if (fd >= 0)
		(void)close(fd);
}
