/* SPDX-License-Identifier: Apache-2.0 */
/* Real files: names and attributes. One to one into fs/files. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include "fs/fuse/priv.h"

/* A change made inside must be seen: what the kernel keeps it asks for again, unless it will be told. */
static double real_timeout(bool keep)
{
	return keep ? CUBE_FUSE_KEEP : 0.0;
}

struct cube_files_cred cube_fuse_cred(const struct cube_fuse_args *a)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(a->req);

	return (struct cube_files_cred){.uid = ctx->uid, .gid = ctx->gid, .pid = ctx->pid};
}

static struct cube_files_handle *real_handle(const struct cube_fuse_args *a)
{
	return a->has_fi ? cube_fuse_open_of(a) : NULL;
}

static struct fuse_entry_param real_param(const struct cube_files_entry *e)
{
	return (struct fuse_entry_param){.ino = e->id,
					 .generation = e->generation,
					 .attr = e->st,
					 .entry_timeout = real_timeout(e->keep_name),
					 .attr_timeout = real_timeout(e->keep_attr)};
}

static void real_answer_entry(const struct cube_fuse_args *a, int code, const struct cube_files_entry *e)
{
	struct fuse_entry_param p;

	if (code < 0) {
		(void)fuse_reply_err(a->req, -code);
		return;
	}
	p = real_param(e);
	if (fuse_reply_entry(a->req, &p) == -ENOENT && e->id != 0)
		cube_files_forget(a->f->files, e->id, 1);
}

static void real_answer_attr(const struct cube_fuse_args *a, int code, struct stat *st, bool keep)
{
	struct timespec birth, *known = NULL;

	if (code < 0) {
		(void)fuse_reply_err(a->req, -code);
		return;
	}
	if (a->shown_ino != 0)
		st->st_ino = a->shown_ino;
	if (a->asked == CUBE_FUSE_STATX && cube_files_birth(a->f->files, a->node, &birth) == 0)
		known = &birth;
	(void)cube_fuse_reply_attr(a, st, real_timeout(keep), known);
}

void cube_fuse_real_lookup(const struct cube_fuse_args *a)
{
	struct cube_files_entry e;
	int code = cube_files_lookup(a->f->files, a->node, a->name, &e);

	if (code == -ENOENT && e.keep_name)
		code = 0; /* number 0: there is none, and that is to be kept */
	real_answer_entry(a, code, &e);
}

void cube_fuse_real_getattr(const struct cube_fuse_args *a)
{
	struct stat st;
	bool keep;
	int code = cube_files_getattr_keep(a->f->files, a->node, real_handle(a), &st, &keep);

	real_answer_attr(a, code, &st, keep);
}

void cube_fuse_real_setattr(const struct cube_fuse_args *a)
{
	struct cube_files_cred cred = cube_fuse_cred(a);
	struct stat st;
	int code = 0;

	if (a->set != 0)
		code = cube_files_setattr(a->f->files, a->node, real_handle(a), &a->st, a->set, &st);
	if (code == 0 && (a->set == 0 || (a->set & CUBE_SET_SIZE) != 0)) /* newer.h */
		code = cube_files_written(a->f->files, &cred, a->node, &st);
	real_answer_attr(a, code, &st, false);
}

void cube_fuse_real_readlink(const struct cube_fuse_args *a)
{
	char target[PATH_MAX + 1];
	ssize_t n = cube_files_readlink(a->f->files, a->node, target, sizeof(target));

	(void)(n < 0 ? fuse_reply_err(a->req, (int)-n) : fuse_reply_readlink(a->req, target));
}

/* Who makes something there is not removing it. */
static void real_uses(const struct cube_fuse_args *a, uint64_t node)
{
	struct cube_caller by = cube_fuse_caller(a->req);

	cube_tree_uses(a->f->tree, NULL, &by, node);
}

/* What is there already may have been made for this very request, by a worker that was killed before it could say so.
 * @type 0: it is another name of a->new_node. */
static int real_made(const struct cube_fuse_args *a, int code, mode_t type, struct cube_files_entry *e)
{
	if (code != -EEXIST || !a->again || cube_files_lookup(a->f->files, a->node, a->name, e) < 0)
		return code;
	if (type != 0 ? (e->st.st_mode & S_IFMT) == type : e->id == a->new_node)
		return 0;
	cube_files_forget(a->f->files, e->id, 1);
	return code;
}

static int real_went(const struct cube_fuse_args *a, int code)
{
	return code == -ENOENT && a->again ? 0 : code;
}

void cube_fuse_real_mknod(const struct cube_fuse_args *a)
{
	struct cube_files_cred cred = cube_fuse_cred(a);
	struct cube_files_entry e;
	struct cube_files_own own;
	int code;

	real_uses(a, a->node);
	cube_files_own_begin(a->f->files, &own, a->node, a->name, true);
	code = cube_files_mknod(a->f->files, &cred, a->node, a->name, a->mode, a->rdev, &e);
	cube_files_own_end(a->f->files, &own, code == 0);
	real_answer_entry(a, real_made(a, code, a->mode & S_IFMT, &e), &e);
}

void cube_fuse_real_mkdir(const struct cube_fuse_args *a)
{
	struct cube_files_cred cred = cube_fuse_cred(a);
	struct cube_files_entry e;
	struct cube_files_own own;
	int code;

	real_uses(a, a->node);
	cube_files_own_begin(a->f->files, &own, a->node, a->name, true);
	code = cube_files_mkdir(a->f->files, &cred, a->node, a->name, a->mode, &e);
	cube_files_own_end(a->f->files, &own, code == 0);
	real_answer_entry(a, real_made(a, code, S_IFDIR, &e), &e);
}

void cube_fuse_real_symlink(const struct cube_fuse_args *a)
{
	struct cube_files_cred cred = cube_fuse_cred(a);
	struct cube_files_entry e;
	struct cube_files_own own;
	int code;

	cube_files_own_begin(a->f->files, &own, a->node, a->name, true);
	code = cube_files_symlink(a->f->files, &cred, a->node, a->name, a->data, &e);
	cube_files_own_end(a->f->files, &own, code == 0);
	real_answer_entry(a, real_made(a, code, S_IFLNK, &e), &e);
}

/* node: the new parent, new_node: the file. */
void cube_fuse_real_link(const struct cube_fuse_args *a)
{
	struct cube_files_entry e;
	struct cube_files_own own;
	int code;

	if (!(a->new_node & CUBE_FILES_ID)) {
		(void)fuse_reply_err(a->req, EPERM);
		return;
	}
	cube_files_own_begin(a->f->files, &own, a->node, a->name, true);
	code = cube_files_link(a->f->files, a->new_node, a->node, a->name, &e);
	cube_files_own_end(a->f->files, &own, code == 0);
	real_answer_entry(a, real_made(a, code, 0, &e), &e);
}

/* What one that removes had listed before it was known to: its walk must not touch it. */
static bool real_spared(const struct cube_fuse_args *a)
{
	struct cube_caller by = cube_fuse_caller(a->req);

	return cube_tree_removes(a->f->tree, NULL, &by, a->node);
}

static void real_remove(const struct cube_fuse_args *a,
			int (*remove)(struct cube_files_space *s, uint64_t parent, const char *name))
{
	struct cube_files_own own;
	int code = 0;

	if (!real_spared(a)) {
		cube_files_own_begin(a->f->files, &own, a->node, a->name, false);
		code = remove(a->f->files, a->node, a->name);
		cube_files_own_end(a->f->files, &own, code == 0);
	}
	(void)fuse_reply_err(a->req, -real_went(a, code));
}

void cube_fuse_real_unlink(const struct cube_fuse_args *a)
{
	real_remove(a, cube_files_unlink);
}

void cube_fuse_real_rmdir(const struct cube_fuse_args *a)
{
	real_remove(a, cube_files_rmdir);
}

void cube_fuse_real_rename(const struct cube_fuse_args *a)
{
	struct cube_files_own from, to;
	int code;

	if (a->again && (a->flags & RENAME_EXCHANGE)) {
		(void)fuse_reply_err(a->req, EIO); /* whether they have changed places nobody can tell */
		return;
	}
	cube_files_own_begin(a->f->files, &from, a->node, a->name, false);
	cube_files_own_begin(a->f->files, &to, a->new_node, a->new_name, true);
	code = cube_files_rename(a->f->files, a->node, a->name, a->new_node, a->new_name, a->flags);
	if (code == -ENOENT && a->again)
		code = cube_files_renamed(a->f->files, a->node, a->name, a->new_node, a->new_name);
	cube_files_own_end(a->f->files, &from, code == 0);
	cube_files_own_end(a->f->files, &to, code == 0);
	(void)fuse_reply_err(a->req, -code);
}

void cube_fuse_real_create(const struct cube_fuse_args *a)
{
	struct cube_files_cred cred = cube_fuse_cred(a);
	struct cube_files_handle *h;
	struct fuse_entry_param p;
	struct cube_files_entry e;
	struct cube_fuse_real_open open = {0};
	struct cube_files_own own;
	int flags = a->fi.flags;
	int code;

	real_uses(a, a->node);
	if (a->again)
		flags &= ~O_EXCL; /* it may be there since it was made for this very request */
	if (a->asked == CUBE_FUSE_TMPFILE) {
		code = cube_files_tmpfile(a->f->files, &cred, a->node, a->fi.flags, a->mode, &e, &h);
	} else {
		cube_files_own_begin(a->f->files, &own, a->node, a->name, true);
		code = cube_files_create(a->f->files, &cred, a->node, a->name, flags, a->mode, &e, &h);
		cube_files_own_end(a->f->files, &own, code == 0);
	}
	if (code == 0) {
		code = cube_fuse_real_opened(a, e.id, h, &open);
		if (code < 0)
			cube_files_forget(a->f->files, e.id, 1);
	}
	if (code < 0) {
		(void)fuse_reply_err(a->req, -code);
		return;
	}
	if ((a->fi.flags & O_TRUNC) != 0)
		cube_files_truncated(h, &cred);
	p = real_param(&e);
	if (cube_fuse_reply_created(a->req, &p, &open) == -ENOENT) {
		cube_fuse_real_closed(a->f, e.id, open.fh);
		cube_files_forget(a->f->files, e.id, 1);
	}
}

void cube_fuse_real_access(const struct cube_fuse_args *a)
{
	struct cube_files_cred cred = cube_fuse_cred(a);
	int code = cube_files_access(a->f->files, &cred, a->node, (int)a->flags);

	(void)fuse_reply_err(a->req, -code);
}

void cube_fuse_real_statfs(const struct cube_fuse_args *a)
{
	struct statvfs vfs;
	int code = cube_files_statfs(a->f->files, a->node, &vfs);

	(void)(code < 0 ? fuse_reply_err(a->req, -code) : fuse_reply_statfs(a->req, &vfs));
}
