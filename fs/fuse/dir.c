/* SPDX-License-Identifier: Apache-2.0 */
/* Open directories: a handle of fs/files, or a listing of the tree that is made as it is read. */
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "fs/fuse/priv.h"

/* NULL: the worker before had it open, and it could not be had. */
static struct cube_fuse_dir *dir_of(fuse_req_t req, const struct fuse_file_info *fi)
{
	struct cube_fuse *f = fuse_req_userdata(req);

	return cube_fh_get(&f->fh, fi->fh);
}

struct cube_fuse_dir *cube_fuse_dir_new(struct cube_files_handle *real, uint64_t shown_ino)
{
	struct cube_fuse_dir *d = cube_calloc(1, sizeof(*d));

	if (d != NULL)
		*d = (struct cube_fuse_dir){.real = real, .shown_ino = shown_ino};
	return d;
}

static void dir_free(struct cube_fuse_dir *d)
{
	if (d->real != NULL)
		cube_files_release(d->real);
	cube_free(d);
}

int cube_fuse_dir_open(const struct cube_fuse_args *a, struct cube_files_handle *real)
{
	struct cube_fuse_dir *d = cube_fuse_dir_new(real, a->shown_ino);
	struct cube_fh_real open = {.kind = CUBE_KEEP_DIR,
				    .node = a->node,
				    .unique = a->unique,
				    .shown_ino = a->shown_ino,
				    .fd = real != NULL ? cube_files_fd(real) : -1,
				    .what = d};
	struct fuse_file_info fi = {.fh = d != NULL ? cube_fh_add(&a->f->fh, &open) : 0};
	int code;

	if (fi.fh == 0) {
		if (d == NULL && real != NULL)
			cube_files_release(real);
		if (d != NULL)
			dir_free(d);
		return fuse_reply_err(a->req, ENFILE);
	}
	code = fuse_reply_open(a->req, &fi);
	if (code == -ENOENT) { /* the caller went: no RELEASEDIR will come */
		cube_fh_give(&a->f->fh, fi.fh);
		dir_free(d);
	}
	return code;
}

/* ---- real ones ---- */

struct dir_fill {
	fuse_req_t req;
	const struct cube_fuse_dir *dir;
	char *buf;
	size_t size, len;
	bool plus;
};

static int dir_fill_entry(void *ctx, const char *name, const struct cube_files_entry *e, off_t next)
{
	struct dir_fill *l = ctx;
	struct fuse_entry_param p = {.ino = e->id,
				     .generation = e->generation,
				     .attr = e->st,
				     .entry_timeout = e->keep_name ? CUBE_FUSE_KEEP : 0,
				     .attr_timeout = e->keep_attr ? CUBE_FUSE_KEEP : 0};
	size_t room = l->size - l->len, need;

	/* The directory itself has the number that its name in the tree has. */
	if (l->dir->shown_ino != 0 && strcmp(name, ".") == 0)
		p.attr.st_ino = l->dir->shown_ino;
	if (l->plus)
		need = fuse_add_direntry_plus(l->req, l->buf + l->len, room, name, &p, next);
	else
		need = fuse_add_direntry(l->req, l->buf + l->len, room, name, &p.attr, next);
	if (need > room)
		return 1;
	l->len += need;
	return 0;
}

static void dir_list_real(fuse_req_t req, const struct cube_fuse_dir *d, size_t size, off_t off, bool plus)
{
	const struct cube_fuse *f = fuse_req_userdata(req);
	struct dir_fill l = {.req = req, .dir = d, .size = size, .plus = plus, .buf = cube_malloc(size)};
	int code;

	if (l.buf == NULL) {
		(void)fuse_reply_err(req, ENOMEM);
		return;
	}
	code = cube_files_readdir(f->files, d->real, off, plus, dir_fill_entry, &l);
	if (code < 0 && l.len == 0)
		(void)fuse_reply_err(req, -code);
	else
		(void)fuse_reply_buf(req, l.buf, l.len);
	cube_free(l.buf);
}

/* ---- the tree's ---- */

static const struct cube_fuse_op dir_op_list = {.op = CUBE_REQ_READDIR};
static const struct cube_fuse_op dir_op_list_plus = {.op = CUBE_REQ_READDIR, .names = true};

static void dir_list_dots(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off)
{
	struct stat st = {.st_ino = ino, .st_mode = S_IFDIR};
	char buf[128];
	size_t len = 0;

	if (off < 1)
		len += fuse_add_direntry(req, buf, sizeof(buf), ".", &st, 1);
	if (off < 2)
		len += fuse_add_direntry(req, buf + len, sizeof(buf) - len, "..", &st, 2);
	(void)fuse_reply_buf(req, buf, len <= size ? len : 0);
}

static void dir_list(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi,
		     bool plus)
{
	const struct cube_fuse_dir *d = dir_of(req, fi);
	struct cube_fuse_args a;

	if (d == NULL) {
		(void)fuse_reply_err(req, ESTALE);
		return;
	}
	if (d->real != NULL) {
		dir_list_real(req, d, size, off, plus);
		return;
	}
	if (ino & CUBE_FILES_ID) {
		dir_list_dots(req, ino, size, off); /* it looks empty to one that removes */
		return;
	}
	a = cube_fuse_args_of(req, ino);
	a.size = size;
	a.off = off;
	cube_fuse_dispatch(&a, plus ? &dir_op_list_plus : &dir_op_list);
}

void cube_fuse_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	dir_list(req, ino, size, off, fi, false);
}

void cube_fuse_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	dir_list(req, ino, size, off, fi, true);
}

void cube_fuse_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct cube_fuse *f = fuse_req_userdata(req);
	struct cube_fuse_dir *d = dir_of(req, fi);

	(void)ino;
	if (d != NULL) { /* else the worker before has closed it */
		cube_fh_give(&f->fh,
			     fi->fh); /* first: its descriptor's number is another file's right after */
		dir_free(d);
	}
	(void)fuse_reply_err(req, 0);
}

void cube_fuse_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	const struct cube_fuse_dir *d = dir_of(req, fi);
	int code = d == NULL || d->real == NULL ? 0 : cube_files_fsyncdir(d->real, datasync != 0);

	(void)ino;
	(void)fuse_reply_err(req, -code);
}
