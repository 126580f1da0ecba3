/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a directory tree, and makes a fingerprint of it on the way.
 *
 * The walk is fts(3): no recursion, and no descriptor for each level. Directories of the copy were made by
 * us just before and nobody else knows them, so names below @to can be used as they are. */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/mem/mem_priv.h"

#define CHUNK     65536
#define FNV_START UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

struct copy {
	int to;
	const char *name; /* of the entry at hand, relative to the top */
	const char *source;
	const struct stat *st;
	struct mem_copied *sum;
};

static void hash_add(struct copy *c, const void *data, size_t len)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < len; i++)
		c->sum->hash = (c->sum->hash ^ p[i]) * FNV_PRIME;
}

static int copy_bytes(struct copy *c, int in, int out)
{
	char data[CHUNK];

	for (;;) {
		ssize_t n = read(in, data, sizeof(data));
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		r = cube_file_write_all(out, data, (size_t)n);
		if (r < 0)
			return r;
		hash_add(c, data, (size_t)n);
		c->sum->bytes += (uint64_t)n;
	}
}

static int copy_file(struct copy *c)
{
	cube_auto_fd in = open(c->source, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	cube_auto_fd out = -1;

	if (in < 0)
		return -errno;
	out = openat(c->to, c->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		return -errno;
	c->sum->files++;
	return copy_bytes(c, in, out);
}

static int copy_link(struct copy *c)
{
	char target[4096];
	ssize_t n = readlink(c->source, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	hash_add(c, target, (size_t)n);
	return symlinkat(target, c->to, c->name) < 0 ? -errno : 0;
}

static int copy_dir(struct copy *c)
{
	return mkdirat(c->to, c->name, 0700) < 0 ? -errno : 0;
}

static int copy_fifo(struct copy *c)
{
	return mkfifoat(c->to, c->name, 0600) < 0 ? -errno : 0;
}

/* Owner (root alone can), mode and times; of a directory when all in it is there. */
static int copy_attributes(const struct copy *c)
{
	const struct timespec times[2] = {c->st->st_atim, c->st->st_mtim};
	bool is_link = S_ISLNK(c->st->st_mode);

	if (geteuid() == 0 && fchownat(c->to, c->name, c->st->st_uid, c->st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!is_link && fchmodat(c->to, c->name, c->st->st_mode & 07777, 0) < 0)
		return -errno;
	return utimensat(c->to, c->name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int copy_entry(struct copy *c)
{
	int (*const makers[])(struct copy * c) = {
		[S_IFREG >> 12] = copy_file,
		[S_IFLNK >> 12] = copy_link,
		[S_IFDIR >> 12] = copy_dir,
		[S_IFIFO >> 12] = copy_fifo,
	};
	unsigned type = (c->st->st_mode & S_IFMT) >> 12;
	uint32_t mode = c->st->st_mode;
	int r;

	if (type >= CUBE_COUNT(makers) || makers[type] == NULL) {
		c->sum->skipped++;
		return 0;
	}
	hash_add(c, c->name, strlen(c->name) + 1);
	hash_add(c, &mode, sizeof(mode));
	r = makers[type](c);
	return r == 0 && !S_ISDIR(c->st->st_mode) ? copy_attributes(c) : r;
}

/* One step of the walk; @prefix is the length of the top's path. */
static int copy_step(struct copy *c, const FTSENT *e, size_t prefix)
{
	if (e->fts_level <= 0)
		return e->fts_info == FTS_DNR || e->fts_info == FTS_ERR ? -e->fts_errno : 0;
	c->source = e->fts_accpath;
	c->name = e->fts_path + prefix + 1;
	c->st = e->fts_statp;
	switch (e->fts_info) {
	case FTS_DP:
		return copy_attributes(c);
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		return -e->fts_errno;
	default:
		return copy_entry(c);
	}
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int copy_walk(struct copy *c, FTS *walk, size_t prefix, struct cube_cancel *cancel,
		     struct cube_err *err)
{
	for (;;) {
		FTSENT *e;
		int r;

		errno = 0;
		e = fts_read(walk);
		if (e == NULL)
			return errno != 0 ? cube_fail_errno(err, "read the directory") : 0;
		if (cube_cancel_fired(cancel))
			return cube_fail(err, -EINTR, "copying was cancelled");
		r = copy_step(c, e, prefix);
		if (r < 0)
			return cube_fail(err, r, "copy '%s': %s", e->fts_level > 0 ? c->name : ".",
					 cube_errno_text(r));
	}
}

int mem_copy_tree(int from, int to, struct cube_cancel *cancel, struct mem_copied *ret, struct cube_err *err)
{
	char top[64];
	char *roots[] = {top, NULL};
	struct copy c = {.to = to, .sum = ret};
	FTS *walk;
	int r;

	(void)snprintf(top, sizeof(top), "/proc/self/fd/%d/.", from);
	*ret = (struct mem_copied){.hash = FNV_START};
	walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR,
			by_name); /* sorted: the hash depends on the order */
	if (walk == NULL)
		return cube_fail_errno(err, "read the directory");
	r = copy_walk(&c, walk, strlen(top), cancel, err);
	(void)fts_close(walk);
	return r;
}
