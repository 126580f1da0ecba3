/* SPDX-License-Identifier: Apache-2.0 */
/* Tread, Twrite, Tfsync: what is in open files. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "fs/p9/priv.h"

static uint32_t data_most(const struct p9_call *c)
{
	uint32_t most = c->msize - CUBE_P9_IO_HEAD;

	return c->m.count < most ? c->m.count : most;
}

/* ---- reading ---- */

static void read_give(struct p9_call *c, const void *from, size_t len)
{
	if (!cube_p9_data(c, len))
		return;
	(void)cube_buf_add(&c->data, from, len);
	cube_p9_reply_data(c);
}

static void read_asked(struct p9_call *c, int result)
{
	if (result < 0)
		cube_p9_fail(c, result);
	else
		read_give(c, c->r.out, result > 0 ? c->r.out_len : 0);
}

static void read_real(struct p9_call *c)
{
	uint32_t most = data_most(c);
	ssize_t n;

	if (!cube_p9_data(c, most))
		return;
	n = cube_files_read(c->fid->real, c->data.data + CUBE_P9_DATA_HEAD, most, (off_t)c->m.offset);
	if (n < 0) {
		cube_p9_fail(c, (int)n);
		return;
	}
	c->data.len += (size_t)n;
	cube_p9_reply_data(c);
}

static void read_xattr(struct p9_call *c)
{
	const struct cube_buf *value = &c->fid->xattr->value;
	size_t at = c->m.offset < value->len ? (size_t)c->m.offset : value->len;
	size_t len = value->len - at < data_most(c) ? value->len - at : data_most(c);

	read_give(c, cube_buf_str(value) + at, len);
}

static void read_file(struct p9_call *c)
{
	struct p9_fid *f = c->fid;

	if (!f->reads) {
		cube_p9_fail(c, cube_fail(&c->r.err, -EBADF, "fid %u is not open for reading", f->number));
		return;
	}
	if (f->real != NULL) {
		cube_p9_block(c, read_real);
		return;
	}
	cube_p9_begin(c);
	c->r.handle = f->handle;
	c->r.size = data_most(c);
	c->r.offset = c->m.offset;
	c->r.flags = f->nonblock ? O_NONBLOCK : 0;
	cube_p9_go(c, CUBE_REQ_READ, f->place->id, read_asked, NULL);
}

void cube_p9_op_read(struct p9_call *c)
{
	if (c->m.offset > INT64_MAX) {
		cube_p9_fail(c, -EINVAL);
		return;
	}
	switch (c->fid->state) {
	case P9_FILE:
		read_file(c);
		break;
	case P9_XATTR_READ:
		read_xattr(c);
		break;
	case P9_DIR:
		if (c->dialect == CUBE_P9_2000L)
			cube_p9_fail(c, -EISDIR);
		else
			cube_p9_old_readdir(c);
		break;
	default:
		cube_p9_fail(c, cube_fail(&c->r.err, -EBADF, "fid %u is not open", c->fid->number));
	}
}

/* ---- writing ---- */

static void write_asked(struct p9_call *c, int result)
{
	c->reply.count = result > 0 ? (uint32_t)result : 0;
	cube_p9_end(c, result);
}

static void write_real(struct p9_call *c)
{
	write_asked(c, (int)cube_files_write(c->fid->real, c->m.data, c->m.count, (off_t)c->m.offset));
}

/* It comes in order, and not more of it than was announced. */
static void write_xattr(struct p9_call *c)
{
	struct p9_xattr *x = c->fid->xattr;
	int code = 0;

	(void)pthread_mutex_lock(&c->conn->lock);
	if (c->m.offset != x->value.len || c->m.count > x->size - x->value.len)
		code = -EINVAL;
	else
		code = c->conn->collected + c->m.count > P9_COLLECT
			       ? -ENOSPC
			       : cube_buf_add(&x->value, c->m.data, c->m.count);
	if (code == 0)
		c->conn->collected += c->m.count;
	(void)pthread_mutex_unlock(&c->conn->lock);
	write_asked(c, code < 0 ? code : (int)c->m.count);
}

void cube_p9_op_write(struct p9_call *c)
{
	struct p9_fid *f = c->fid;

	if (f->state == P9_XATTR_WRITE) {
		write_xattr(c);
		return;
	}
	if (f->state != P9_FILE || !f->writes) {
		cube_p9_fail(c, cube_fail(&c->r.err, -EBADF, "fid %u is not open for writing", f->number));
		return;
	}
	if (c->m.offset > (uint64_t)INT64_MAX - c->m.count) {
		cube_p9_fail(c, -EFBIG);
		return;
	}
	if (f->real != NULL) {
		cube_p9_block(c, write_real);
		return;
	}
	cube_p9_begin(c);
	c->r.handle = f->handle;
	c->r.data = c->m.data;
	c->r.size = c->m.count;
	c->r.offset = c->m.offset;
	cube_p9_go(c, CUBE_REQ_WRITE, f->place->id, write_asked, NULL);
}

/* ---- Tfsync ---- */

static void fsync_real(struct p9_call *c)
{
	struct p9_fid *f = c->fid;
	bool data_only = c->m.datasync != 0;

	cube_p9_end(c, f->state == P9_DIR ? cube_files_fsyncdir(f->real, data_only)
					  : cube_files_fsync(f->real, data_only));
}

/* The tree's own files have nothing to be written out. */
void cube_p9_op_fsync(struct p9_call *c)
{
	if (c->fid->state == P9_WALKED)
		cube_p9_fail(c, cube_fail(&c->r.err, -EBADF, "fid %u is not open", c->fid->number));
	else if (c->fid->real != NULL)
		cube_p9_block(c, fsync_real);
	else
		cube_p9_reply(c);
}
