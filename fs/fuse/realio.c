/* SPDX-License-Identifier: Apache-2.0 */
/* Real files: what is done with an open one, and extended attributes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"
#include "fs/fuse/priv.h"

static struct cube_files_handle *io_handle(const struct cube_fuse_args *a)
{
	return cube_fuse_open_of(a);
}

/* What is open for writing alone cannot be mapped: to cache it would only be a copy more, and a question more (for file
 * capabilities) at its first write. */
bool cube_fuse_real_direct(struct cube_fuse *f, uint64_t node, int flags, int32_t id)
{
	const int mode = flags & O_ACCMODE;

	return id == 0 && (mode == O_WRONLY || (mode == O_RDWR && cube_tree_runs(f->tree, node)));
}

int cube_fuse_real_opened(const struct cube_fuse_args *a, uint64_t node, struct cube_files_handle *h,
			  struct cube_fuse_real_open *ret)
{
	struct cube_fh_real real = {.kind = CUBE_KEEP_FILE,
				    .node = node,
				    .unique = a->unique,
				    .flags = a->fi.flags,
				    .fd = cube_files_fd(h),
				    .what = h};
	int code = cube_fuse_pass_open(&a->f->pass, node, cube_files_fd(h), &real.backing);

	if (code < 0) {
		cube_files_release(h);
		return code;
	}
	/* The kernel gives a mapping the file behind, and closes ours while it goes on. */
	if (real.backing != 0 && (a->fi.flags & O_ACCMODE) == O_RDWR)
		cube_files_mapped(h);
	ret->id = real.backing;
	ret->direct = cube_fuse_real_direct(a->f, node, a->fi.flags, real.backing);
	ret->keep = real.backing == 0 && cube_files_holds_pages(a->f->files, node) && !ret->direct;
	ret->fh = cube_fh_add(&a->f->fh, &real);
	if (ret->fh != 0)
		return 0;
	cube_fuse_pass_close(&a->f->pass, node);
	cube_files_release(h);
	return -ENFILE;
}

/* The record first: its descriptor's number is another file's right after. */
void cube_fuse_real_closed(struct cube_fuse *f, uint64_t node, uint64_t fh)
{
	struct cube_files_handle *h = cube_fh_get(&f->fh, fh);

	cube_fh_give(&f->fh, fh);
	cube_fuse_pass_close(&f->pass, node);
	cube_files_release(h);
}

void cube_fuse_real_open(const struct cube_fuse_args *a)
{
	struct cube_files_cred cred = cube_fuse_cred(a);
	struct cube_caller by = cube_fuse_caller(a->req);
	struct cube_fuse_real_open open = {0};
	struct cube_files_handle *h = NULL;
	int code;

	cube_tree_uses(a->f->tree, NULL, &by, a->node);
	code = cube_files_open(a->f->files, a->node, a->fi.flags, &h);
	if (code == 0 && (a->fi.flags & O_TRUNC) != 0)
		cube_files_truncated(h, &cred);
	if (code == 0 && (a->fi.flags & O_ACCMODE) != O_RDONLY)
		cube_files_tell(a->f->files); /* what is done with it from now on need not come by */
	if (code == 0)
		code = cube_fuse_real_opened(a, a->node, h, &open);
	if (code < 0)
		(void)fuse_reply_err(a->req, -code);
	else if (cube_fuse_reply_real(a->req, &open) == -ENOENT)
		cube_fuse_real_closed(a->f, a->node, open.fh);
}

void cube_fuse_real_read(const struct cube_fuse_args *a)
{
	char *buf = cube_malloc(a->size > 0 ? a->size : 1);
	ssize_t n;

	if (buf == NULL) {
		(void)fuse_reply_err(a->req, ENOMEM);
		return;
	}
	n = cube_files_read(io_handle(a), buf, a->size, a->off);
	(void)(n < 0 ? fuse_reply_err(a->req, (int)-n) : fuse_reply_buf(a->req, buf, (size_t)n));
	cube_free(buf);
}

/* A write to the end, wherever that is, which the worker before had begun: what of it stands behind the former end is
 * not written again. */
static size_t io_written(const struct cube_fuse_args *a, struct cube_files_handle *h)
{
	cube_auto_fd fd = -1;
	char path[32], *buf;
	size_t have = 0;
	uint64_t end;
	ssize_t n;

	if (!a->again || !cube_fuse_journal_noted(&a->f->journal, a->unique, &end))
		return 0;
	buf = cube_malloc(a->size > 0 ? a->size : 1);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", cube_files_fd(h));
	fd = open(path, O_RDONLY | O_CLOEXEC); /* the handle may only write */
	n = buf == NULL ? -1 : pread(fd, buf, a->size, (off_t)end);
	if (n > 0 && memcmp(buf, a->data, (size_t)n) == 0)
		have = (size_t)n;
	cube_free(buf);
	return have;
}

static ssize_t io_append(const struct cube_fuse_args *a, struct cube_files_handle *h)
{
	size_t have = io_written(a, h);
	struct stat st;
	ssize_t n;

	if (have == a->size)
		return (ssize_t)have;
	if (!a->again && fstat(cube_files_fd(h), &st) == 0)
		cube_fuse_journal_note(&a->f->journal, a->unique, (uint64_t)st.st_size);
	n = cube_files_write_flags(h, a->data + have, a->size - have, a->off + (off_t)have, a->fi.flags);
	return n < 0 ? n : n + (ssize_t)have;
}

void cube_fuse_real_write(const struct cube_fuse_args *a)
{
	struct cube_files_handle *h = io_handle(a);
	ssize_t n = a->fi.flags & O_APPEND ? io_append(a, h)
					   : cube_files_write_flags(h, a->data, a->size, a->off, a->fi.flags);

	(void)(n < 0 ? fuse_reply_err(a->req, (int)-n) : fuse_reply_write(a->req, (size_t)n));
}

void cube_fuse_real_flush(const struct cube_fuse_args *a)
{
	(void)fuse_reply_err(a->req, -cube_files_flush(io_handle(a), a->fi.lock_owner));
}

void cube_fuse_real_release(const struct cube_fuse_args *a)
{
	cube_fuse_real_closed(a->f, a->node, a->fi.fh);
	(void)fuse_reply_err(a->req, 0);
}

void cube_fuse_real_lseek(const struct cube_fuse_args *a)
{
	off_t at = cube_files_lseek(io_handle(a), a->off, (int)a->flags);

	(void)(at < 0 ? fuse_reply_err(a->req, (int)-at) : fuse_reply_lseek(a->req, at));
}

void cube_fuse_real_opendir(const struct cube_fuse_args *a)
{
	struct cube_caller by = cube_fuse_caller(a->req);
	struct cube_files_handle *h = NULL;
	int code = 0;

	if (!cube_tree_removes(a->f->tree, NULL, &by, a->node))
		code = cube_files_opendir(a->f->files, a->node, &h);
	if (code < 0)
		(void)fuse_reply_err(a->req, -code);
	else
		(void)cube_fuse_dir_open(a, h);
}

/* ---- extended attributes ---- */

static void io_xattr_change(const struct cube_fuse_args *a)
{
	int flags = a->again ? 0 : (int)a->flags; /* again: it may be there, or gone, by this very request */
	int code = a->data == NULL
			   ? cube_files_removexattr(a->f->files, a->node, a->name)
			   : cube_files_setxattr(a->f->files, a->node, a->name, a->data, a->size, flags);

	if (a->again && a->data == NULL && code == -ENODATA)
		code = 0;

	(void)fuse_reply_err(a->req, -code);
}

/* name: one of them; NULL: the list. Size 0 asks how long it is. */
void cube_fuse_real_xattr(const struct cube_fuse_args *a)
{
	char *buf;
	ssize_t n;

	if (a->set) {
		io_xattr_change(a);
		return;
	}
	buf = a->size > 0 ? cube_malloc(a->size) : NULL;
	if (a->size > 0 && buf == NULL)
		n = -ENOMEM;
	else if (a->name == NULL)
		n = cube_files_listxattr(a->f->files, a->node, buf, a->size);
	else
		n = cube_files_getxattr(a->f->files, a->node, a->name, buf, a->size);
	if (n < 0)
		(void)fuse_reply_err(a->req, (int)-n);
	else if (a->size == 0)
		(void)fuse_reply_xattr(a->req, (size_t)n);
	else
		(void)fuse_reply_buf(a->req, buf, (size_t)n);
	cube_free(buf);
}
