/* SPDX-License-Identifier: Apache-2.0 */
/* Real files: what is done with an open one, and extended attributes. */
#include <errno.h>
#include <fcntl.h>

#include "backends/base/alloc.h"
#include "fs/fuse/priv.h"

static struct cube_files_handle *io_handle(const struct cube_fuse_args *a)
{
	return (struct cube_files_handle *)(uintptr_t)a->fi.fh;
}

int cube_fuse_real_opened(struct cube_fuse *f, uint64_t node, struct cube_files_handle *h, int32_t *ret_id)
{
	int code = cube_fuse_pass_open(&f->pass, node, cube_files_fd(h), ret_id);

	if (code < 0)
		cube_files_release(h);
	return code;
}

void cube_fuse_real_closed(struct cube_fuse *f, uint64_t node, struct cube_files_handle *h)
{
	cube_fuse_pass_close(&f->pass, node);
	cube_files_release(h);
}

void cube_fuse_real_open(const struct cube_fuse_args *a)
{
	struct cube_files_cred cred = cube_fuse_cred(a);
	struct cube_caller by = cube_fuse_caller(a->req);
	struct cube_files_handle *h;
	int32_t id;
	int code;

	cube_tree_uses(a->f->tree, NULL, &by, a->node);
	code = cube_files_open(a->f->files, a->node, a->fi.flags, &h);
	if (code == 0 && (a->fi.flags & O_TRUNC) != 0)
		cube_files_truncated(h, &cred);
	if (code == 0)
		code = cube_fuse_real_opened(a->f, a->node, h, &id);
	if (code < 0)
		(void)fuse_reply_err(a->req, -code);
	else if (cube_fuse_reply_passing(a->req, (uintptr_t)h, id) == -ENOENT)
		cube_fuse_real_closed(a->f, a->node, h);
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

void cube_fuse_real_write(const struct cube_fuse_args *a)
{
	ssize_t n = cube_files_write_flags(io_handle(a), a->data, a->size, a->off, a->fi.flags);

	(void)(n < 0 ? fuse_reply_err(a->req, (int)-n) : fuse_reply_write(a->req, (size_t)n));
}

void cube_fuse_real_flush(const struct cube_fuse_args *a)
{
	(void)fuse_reply_err(a->req, -cube_files_flush(io_handle(a), a->fi.lock_owner));
}

void cube_fuse_real_release(const struct cube_fuse_args *a)
{
	cube_fuse_real_closed(a->f, a->node, io_handle(a));
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
		(void)cube_fuse_dir_open(a->req, h, a->shown_ino);
}

/* ---- extended attributes ---- */

static void io_xattr_change(const struct cube_fuse_args *a)
{
	int code = a->data == NULL ? cube_files_removexattr(a->f->files, a->node, a->name)
				   : cube_files_setxattr(a->f->files, a->node, a->name, a->data, a->size,
							 (int)a->flags);

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
