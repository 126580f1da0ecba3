/* SPDX-License-Identifier: Apache-2.0 */
/* An endless text on disk of which the last part is kept. */
#include "ctl/ring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/file.h"
#include "backends/base/num.h"

#define RING_BLOCK UINT64_C(65536)
#define RING_PATH  96

static void ring_path(const struct cube_ring *r, uint64_t base, char out[RING_PATH])
{
	(void)snprintf(out, RING_PATH, "%s.%" PRIu64, r->name, base);
}

/* The newest file of ours in the directory: the largest base. Older ones are left-overs of a crash in
 * ring_renew. */
static int ring_find(const struct cube_ring *r, uint64_t *ret_base)
{
	size_t prefix = strlen(r->name);
	int fd = openat(r->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int found = 0;
	struct dirent *e;
	DIR *dir;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (dir == NULL) {
		close(fd);
		return -ENOMEM;
	}
	while ((e = readdir(dir)) != NULL) {
		uint64_t base;

		if (strncmp(e->d_name, r->name, prefix) != 0 || e->d_name[prefix] != '.' ||
		    cube_num_u64(e->d_name + prefix + 1, UINT64_MAX / 4, &base) < 0)
			continue;
		if (!found || base > *ret_base)
			*ret_base = base;
		found = 1;
	}
	closedir(dir);
	return found;
}

static int ring_open_file(struct cube_ring *r, uint64_t base, int flags)
{
	char path[RING_PATH];

	ring_path(r, base, path);
	return openat(r->dir_fd, path, flags | O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* Offset of the first byte that is no hole, as far as the file system tells. */
static uint64_t ring_data_start(int fd, uint64_t size)
{
	off_t at = size > 0 ? lseek(fd, 0, SEEK_DATA) : 0;

	return at < 0 ? size : (uint64_t)at;
}

/* Moves *at (in [base, end)) behind the next newline. */
static uint64_t ring_line_after(const struct cube_ring *r, uint64_t at)
{
	char block[4096];

	while (at < r->end) {
		ssize_t n = pread(r->fd, block, sizeof(block), (off_t)(at - r->base));
		const char *newline;

		if (n <= 0)
			break;
		newline = memchr(block, '\n', (size_t)n);
		if (newline != NULL)
			return at + (uint64_t)(newline - block) + 1;
		at += (uint64_t)n;
	}
	return r->end;
}

/* A crash may have left half a line at the end: it was promised to nobody. */
static void ring_cut_tail(struct cube_ring *r)
{
	char c = '\n';

	while (r->end > r->first) {
		if (pread(r->fd, &c, 1, (off_t)(r->end - r->base - 1)) != 1 || c == '\n')
			break;
		r->end--;
	}
	(void)!ftruncate(r->fd, (off_t)(r->end - r->base));
}

int cube_ring_open(struct cube_ring *r, int dir_fd, const char *name, uint64_t limit, struct cube_err *err)
{
	uint64_t base = 0, start;
	struct stat st;
	int found;

	*r = (struct cube_ring){.dir_fd = dir_fd, .fd = -1, .name = name, .limit = limit};
	cube_waitq_init(&r->grown);
	cube_list_init(&r->lru);
	found = ring_find(r, &base);
	if (found < 0)
		return cube_fail(err, found, "%s: %s", name, cube_errno_text(found));
	r->fd = ring_open_file(r, base, O_CREAT);
	if (r->fd < 0 || fstat(r->fd, &st) < 0)
		return cube_fail_errno(err, "%s: cannot be opened in the state directory", name);
	start = ring_data_start(r->fd, (uint64_t)st.st_size);
	r->base = base;
	r->first = base + start;
	r->end = base + (uint64_t)st.st_size;
	if (start > 0)
		r->first = ring_line_after(r, r->first);
	ring_cut_tail(r);
	if (r->end - r->first > limit)
		cube_ring_trim(r, ring_line_after(r, r->end - limit));
	return 0;
}

/* ---- Open files ---- */

void cube_ring_set_init(struct cube_ring_set *s, unsigned max)
{
	*s = (struct cube_ring_set){.max = max};
	cube_list_init(&s->open);
}

static void ring_leave_set(struct cube_ring *r)
{
	if (r->set == NULL || r->fd < 0)
		return;
	cube_list_remove(&r->lru);
	r->set->n--;
}

static void ring_enter_set(struct cube_ring *r)
{
	struct cube_ring_set *s = r->set;

	if (s == NULL)
		return;
	cube_list_push(&s->open, &r->lru);
	if (++s->n <= s->max)
		return;
	cube_ring_close(cube_list_entry(s->open.next, struct cube_ring, lru));
}

/* Before each use of its file. */
static int ring_need(struct cube_ring *r)
{
	if (r->fd >= 0) {
		ring_leave_set(r);
	} else {
		r->fd = ring_open_file(r, r->base, 0);
		if (r->fd < 0)
			return -errno;
	}
	ring_enter_set(r);
	return 0;
}

void cube_ring_share(struct cube_ring *r, struct cube_ring_set *set)
{
	r->set = set;
	if (r->fd >= 0)
		ring_enter_set(r);
}

void cube_ring_close(struct cube_ring *r)
{
	ring_leave_set(r);
	cube_close_auto(&r->fd);
	r->fd = -1;
}

/* Begin a new file with what is kept. The old one goes only when the new one is whole. */
static int ring_renew(struct cube_ring *r)
{
	uint64_t base = r->first, at = r->first;
	char block[16384], old[RING_PATH];
	cube_auto_fd fd = ring_open_file(r, base, O_CREAT | O_TRUNC);

	if (fd < 0)
		return -errno;
	while (at < r->end) {
		ssize_t n = cube_ring_read(r, &at, block, sizeof(block));
		int w = n > 0 ? cube_file_write_all(fd, block, (size_t)n) : -EIO;

		if (w < 0) {
			ring_path(r, base, old);
			(void)unlinkat(r->dir_fd, old, 0);
			return w;
		}
	}
	ring_path(r, r->base, old);
	(void)unlinkat(r->dir_fd, old, 0);
	close(r->fd);
	r->fd = cube_steal_fd(&fd);
	r->base = base;
	return 0;
}

void cube_ring_trim(struct cube_ring *r, uint64_t first)
{
	uint64_t hole = (first - r->base) / RING_BLOCK * RING_BLOCK;

	r->first = first;
	if (hole > 0 && fallocate(r->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)hole) < 0 &&
	    first - r->base > r->limit)
		(void)ring_renew(r);
}

int cube_ring_add(struct cube_ring *r, const void *text, size_t len)
{
	int w = ring_need(r);

	if (w < 0)
		return w;
	w = cube_file_write_all(r->fd, text, len);
	if (w < 0) {
		(void)!ftruncate(r->fd, (off_t)(r->end - r->base));
		return w;
	}
	r->end += len;
	/* Late and a piece at a time, so that the cost of the hole is spread over many lines. */
	if (r->end - r->first > r->limit + r->limit / 8)
		cube_ring_trim(r, ring_line_after(r, r->end - r->limit));
	cube_wake(&r->grown);
	return 0;
}

ssize_t cube_ring_read(struct cube_ring *r, uint64_t *pos, void *data, size_t len)
{
	uint64_t left;
	ssize_t n;

	if (*pos < r->first)
		*pos = r->first;
	if (*pos >= r->end)
		return 0;
	left = r->end - *pos;
	n = ring_need(r);
	if (n < 0)
		return n;
	n = pread(r->fd, data, len < left ? len : left, (off_t)(*pos - r->base));
	if (n < 0)
		return -errno;
	*pos += (uint64_t)n;
	return n;
}
