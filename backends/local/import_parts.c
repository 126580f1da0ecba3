/* SPDX-License-Identifier: Apache-2.0 */
/* What the kinds of imports share: progress, room on the disk, checksums; and the two simplest of them. */
#include "backends/local/template_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/fetch.h"
#include "backends/base/macros.h"
#include "backends/local/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IMPORT_SAY_NS       UINT64_C(1000000000)
#define IMPORT_LOOK_ENTRIES 4096                 /* the same of entries, which may be empty */
#define IMPORT_LOOK         (UINT64_C(16) << 20) /* bytes between two looks at the disk */
#define IMPORT_FREE         (UINT64_C(1) << 30)  /* the larger of this and a 20th stays free */
#define IMPORT_BLOCK        ((size_t)256 << 10)

void cube_local_import_say(struct cube_local_import *im, const char *what)
{
	char line[200];

	(void)snprintf(line, sizeof(line), "%s: %" PRIu64 " files, %" PRIu64 " MiB", what, im->files,
		       im->bytes >> 20);
	im->order->log(im->order->ctx, line);
}

void cube_local_import_progress(struct cube_local_import *im, uint64_t done, uint64_t all)
{
	uint64_t now = cube_clock_mono();

	if (now - im->said < IMPORT_SAY_NS)
		return;
	im->said = now;
	if (all > 0)
		im->order->progress(im->order->ctx,
				    im->from + (unsigned)((im->to - im->from) *
							  ((double)(done < all ? done : all) / (double)all)));
	cube_local_import_say(im, im->files > 0 ? "importing" : "reading");
}

int cube_local_import_room(struct cube_local_import *im)
{
	struct statvfs v;
	uint64_t least, left;

	if ((im->bounds.bytes > 0 && im->bytes > im->bounds.bytes) ||
	    (im->bounds.files > 0 && im->entries > im->bounds.files))
		return -EDQUOT;
	if (im->bytes - im->looked < IMPORT_LOOK &&
	    (im->entries == 0 || im->entries % IMPORT_LOOK_ENTRIES != 0))
		return 0;
	im->looked = im->bytes;
	if (fstatvfs(im->root, &v) < 0)
		return -errno;
	if (v.f_files > 0 && v.f_favail < v.f_files / 20) /* names take room as well */
		return -ENOSPC;
	least = (uint64_t)v.f_blocks * v.f_frsize / 20;
	left = (uint64_t)v.f_bavail * v.f_frsize;
	return left < (least > IMPORT_FREE ? least : IMPORT_FREE) ? -ENOSPC : 0;
}

int cube_local_import_print(struct cube_local_import *im, int fd, char ret[CUBE_DIGEST_TEXT],
			    struct cube_err *err)
{
	struct cube_digest *d = cube_digest_new();
	char *block = cube_malloc(IMPORT_BLOCK);
	off_t at = 0;
	ssize_t n = 1;
	int rc = d && block ? 0 : -ENOMEM;

	while (rc == 0 && n > 0) {
		n = pread(fd, block, IMPORT_BLOCK, at);
		if (n < 0)
			rc = -errno;
		else if (cube_cancel_fired(im->cancel))
			rc = -EINTR;
		else
			cube_digest_add(d, block, (size_t)n);
		at += n;
	}
	if (rc == 0)
		(void)cube_digest_end(d, ret);
	cube_digest_free(d);
	cube_free(block);
	return rc < 0 ? cube_fail(err, rc, "cannot read the archive: %s", cube_errno_text(rc)) : 0;
}

int cube_local_import_open(const struct cube_local_import *im, int dir, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC | (flags & O_PATH ? 0 : O_NOCTTY)),
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	int fd;

	if (im->order->open != NULL && !im->own)
		return im->order->open(im->order->ctx, dir, path, flags, how.resolve);
	fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

/* ---- a directory ---- */

struct import_saw {
	struct cube_local_import *im;
	struct cube_digest *digest;
	const struct cube_local_tree *tree;
};

static int import_open(void *ctx, int dir, const char *path, int flags)
{
	const struct import_saw *s = ctx;

	return cube_local_import_open(s->im, dir, path, flags);
}

static void import_saw(void *ctx, const void *data, size_t len)
{
	struct import_saw *s = ctx;

	cube_digest_add(s->digest, data, len);
	s->im->bytes = s->tree->bytes;
	s->im->files = s->tree->files;
	cube_local_import_progress(s->im, 0, 0);
}

int cube_local_import_dir(struct cube_local_import *im, int fd, struct cube_err *err)
{
	struct cube_local_tree t = {.ids = im->ids,
				    .keep_owners = true,
				    .cancel = im->cancel,
				    .saw = import_saw,
				    .open = import_open};
	struct import_saw saw = {.im = im, .digest = cube_digest_new(), .tree = &t};
	cube_auto_fd from = -1;
	int rc;

	if (!saw.digest)
		return cube_fail(err, -ENOMEM, "out of memory");
	t.ctx = &saw;
	from = cube_local_import_open(im, fd, ".", O_RDONLY | O_DIRECTORY); /* may its files be looked at? */
	rc = from < 0 ? cube_fail(err, from, "%.200s: %s", im->order->source, cube_errno_text(from))
		      : cube_local_tree_copy(&t, from, im->root, err);
	(void)cube_digest_end(saw.digest, im->fingerprint);
	cube_digest_free(saw.digest);
	im->bytes = t.bytes;
	im->files = t.files;
	im->skipped = t.skipped;
	return rc;
}

/* ---- a URL ---- */

struct import_fetch {
	struct cube_local_import *im;
	struct cube_cancel *cancel; /* fired by the caller's, or for want of room */
	bool full;
};

static void import_fetched(void *ctx, uint64_t have, uint64_t total)
{
	struct import_fetch *f = ctx;

	f->im->bytes = have;
	cube_local_import_progress(f->im, have, total);
}

int cube_local_import_url(struct cube_local_import *im, int fd, struct cube_err *err)
{
	struct import_fetch f = {.im = im};
	const struct cube_fetch fetch = {
		.url = im->order->source, .fd = fd, .progress = import_fetched, .ctx = &f};
	int rc = cube_fetch(&fetch, im->cancel, err);

	if (rc == 0)
		cube_local_import_say(im, "downloaded");
	im->bytes = 0;
	im->looked = 0;
	return rc;
}
