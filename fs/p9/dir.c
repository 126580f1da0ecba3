/* SPDX-License-Identifier: Apache-2.0 */
/* Treaddir, and what names are made, moved and removed. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "backends/base/alloc.h"
#include "fs/p9/priv.h"

/* ---- listing ---- */

static int list_add(struct p9_call *c, const char *name, const struct stat *st, uint64_t next)
{
	struct stat shown = *st;
	struct cube_p9_dirent e = {.offset = next,
				   .type = (uint8_t)((st->st_mode & S_IFMT) >> 12),
				   .name = {.s = name, .len = (uint16_t)strlen(name)}};

	/* The directory itself has the number that its name in the tree has. */
	if (c->fid->shown_ino != 0 && strcmp(name, ".") == 0)
		shown.st_ino = c->fid->shown_ino;
	e.qid = cube_p9_qid(&shown);
	e.qid.version = 0;
	if (cube_p9_dirent_add(&c->data, &e) == 0)
		return 0;
	c->code = -EINVAL; /* of those that fit in nowhere */
	return 1;
}

static int list_add_asked(struct cube_req *r, const char *name, const struct cube_tree_entry *e,
			  uint64_t next)
{
	return list_add(cube_container_of(r, struct p9_call, r), name, &e->st, next);
}

static int list_add_real(void *ctx, const char *name, const struct cube_files_entry *e, off_t next)
{
	return list_add(ctx, name, &e->st, (uint64_t)next);
}

static void list_done(struct p9_call *c, int code)
{
	if (c->data.len > CUBE_P9_DATA_HEAD)
		code = 0;
	else if (code == 0)
		code = c->code;
	if (code < 0)
		cube_p9_fail(c, code);
	else
		cube_p9_reply_data(c);
}

static void list_real(struct p9_call *c)
{
	list_done(c, cube_files_readdir(c->conn->files, c->fid->real, (off_t)c->m.offset, false,
					list_add_real, c));
}

/* What looks empty to one that removes. */
static void list_dots(struct p9_call *c)
{
	struct stat st = {.st_mode = S_IFDIR, .st_ino = c->fid->place->qid.path};
	int full = 0;

	if (c->m.offset < 1)
		full = list_add(c, ".", &st, 1);
	if (full == 0 && c->m.offset < 2)
		list_add(c, "..", &st, 2);
	list_done(c, 0);
}

void cube_p9_op_readdir(struct p9_call *c)
{
	struct p9_fid *f = c->fid;
	uint32_t most = c->msize - CUBE_P9_IO_HEAD;

	if (f->state != P9_DIR || c->m.offset > INT64_MAX) {
		cube_p9_fail(c, f->state == P9_FILE ? -ENOTDIR : f->state == P9_DIR ? -EINVAL : -EBADF);
		return;
	}
	if (!cube_p9_data(c, c->m.count < most ? c->m.count : most))
		return;
	if (f->real != NULL) {
		cube_p9_block(c, list_real);
		return;
	}
	if (f->place->id & CUBE_FILES_ID) {
		list_dots(c);
		return;
	}
	cube_p9_begin(c);
	c->r.offset = c->m.offset;
	c->r.add = list_add_asked;
	cube_p9_go(c, CUBE_REQ_READDIR, f->place->id, list_done, NULL);
}

/* ---- making ---- */

static void made_done(struct p9_call *c, int code, uint64_t id, const struct stat *st)
{
	if (code == 0) {
		c->reply.qid = cube_p9_qid(st);
		cube_p9_node_forget(c->conn, id);
	}
	cube_p9_end(c, code);
}

static void made_asked(struct p9_call *c, int result)
{
	made_done(c, result, c->r.entry.id, &c->r.entry.st);
}

static void mkdir_real(struct p9_call *c)
{
	struct cube_files_cred cred = cube_p9_cred(c);
	struct cube_files_entry e = {0};
	int code;

	cube_p9_uses(c, c->node);
	code = cube_files_mkdir(c->conn->files, &cred, c->node, c->m.name.s, c->m.mode & 07777, &e);
	made_done(c, code, e.id, &e.st);
}

static void symlink_real(struct p9_call *c)
{
	struct cube_files_cred cred = cube_p9_cred(c);
	struct cube_files_entry e = {0};
	int code = cube_files_symlink(c->conn->files, &cred, c->node, c->m.name.s, c->m.second.s, &e);

	made_done(c, code, e.id, &e.st);
}

static void mknod_real(struct p9_call *c)
{
	struct cube_files_cred cred = cube_p9_cred(c);
	struct cube_files_entry e = {0};
	int code;

	cube_p9_uses(c, c->node);
	code = cube_files_mknod(c->conn->files, &cred, c->node, c->m.name.s, c->m.mode,
				makedev(c->m.major, c->m.minor), &e);
	made_done(c, code, e.id, &e.st);
}

static void make(struct p9_call *c, enum cube_req_op op, void (*real)(struct p9_call *))
{
	cube_p9_begin(c);
	c->r.name = c->m.name.s;
	cube_p9_go(c, op, c->fid->place->id, made_asked, real);
}

void cube_p9_op_mkdir(struct p9_call *c)
{
	make(c, CUBE_REQ_MKDIR, mkdir_real);
}

void cube_p9_op_symlink(struct p9_call *c)
{
	if (c->m.second.len == 0 || c->m.second.len >= PATH_MAX ||
	    memchr(c->m.second.s, '\0', c->m.second.len) != NULL)
		cube_p9_fail(c, c->m.second.len == 0          ? -ENOENT
				: c->m.second.len >= PATH_MAX ? -ENAMETOOLONG
							      : -EINVAL);
	else
		make(c, CUBE_REQ_SYMLINK, symlink_real);
}

void cube_p9_op_mknod(struct p9_call *c)
{
	make(c, CUBE_REQ_MKNOD, mknod_real);
}

/* ---- Tlink ---- */

static void link_real(struct p9_call *c)
{
	struct cube_files_entry e = {0};
	int code = -EPERM;

	if (c->new_node & CUBE_FILES_ID)
		code = cube_files_link(c->conn->files, c->new_node, c->node, c->m.name.s, &e);
	if (code == 0)
		cube_p9_node_forget(c->conn, e.id);
	cube_p9_end(c, code);
}

static void link_asked(struct p9_call *c, int result)
{
	if (result == 0)
		cube_p9_node_forget(c->conn, c->r.entry.id);
	cube_p9_end(c, result);
}

void cube_p9_op_link(struct p9_call *c)
{
	cube_p9_begin(c);
	c->r.name = c->m.name.s;
	c->r.new_parent = c->fid2->place->id;
	cube_p9_go(c, CUBE_REQ_LINK, c->fid->place->id, link_asked, link_real);
}

/* ---- Tunlinkat ---- */

static void plain_asked(struct p9_call *c, int result)
{
	cube_p9_end(c, result);
}

static void unlink_real(struct p9_call *c)
{
	cube_p9_end(c, cube_p9_spared(c) ? 0 : cube_files_unlink(c->conn->files, c->node, c->m.name.s));
}

static void rmdir_real(struct p9_call *c)
{
	cube_p9_end(c, cube_p9_spared(c) ? 0 : cube_files_rmdir(c->conn->files, c->node, c->m.name.s));
}

void cube_p9_op_unlinkat(struct p9_call *c)
{
	bool dir = (c->m.flags & CUBE_P9_AT_REMOVEDIR) != 0;

	if (c->m.flags & ~CUBE_P9_AT_REMOVEDIR) {
		cube_p9_fail(c, cube_fail(&c->r.err, -EINVAL, "Tunlinkat: unknown flags 0x%x", c->m.flags));
		return;
	}
	cube_p9_begin(c);
	c->r.name = c->m.name.s;
	cube_p9_go(c, dir ? CUBE_REQ_RMDIR : CUBE_REQ_UNLINK, c->fid->place->id, plain_asked,
		   dir ? rmdir_real : unlink_real);
}

/* ---- renaming: from c->name in c->place to c->new_name in fid2 ---- */

static void rename_done(struct p9_call *c, int code)
{
	if (code == 0)
		cube_p9_renamed(c->conn, c->place->id, c->name, c->to, c->new_name);
	cube_p9_end(c, code);
}

static void rename_real(struct p9_call *c)
{
	rename_done(c, cube_files_rename(c->conn->files, c->node, c->name, c->new_node, c->new_name, 0));
}

void cube_p9_rename(struct p9_call *c)
{
	cube_p9_begin(c);
	c->r.name = c->name;
	c->r.new_name = c->new_name;
	c->r.new_parent = c->to->id;
	cube_p9_go(c, CUBE_REQ_RENAME, c->place->id, rename_done, rename_real);
}

static struct p9_place *rename_place(struct p9_call *c, struct p9_fid *f)
{
	struct p9_place *p;

	(void)pthread_mutex_lock(&c->conn->lock);
	p = cube_p9_place_ref(f->place);
	(void)pthread_mutex_unlock(&c->conn->lock);
	return p;
}

void cube_p9_op_rename(struct p9_call *c)
{
	int code = cube_p9_fid_where(c->conn, c->fid, &c->place, c->name);

	if (code < 0) {
		cube_p9_fail(c, code);
		return;
	}
	c->to = rename_place(c, c->fid2);
	c->new_name = c->m.name.s;
	cube_p9_rename(c);
}

void cube_p9_op_renameat(struct p9_call *c)
{
	(void)snprintf(c->name, sizeof(c->name), "%s", c->m.name.s);
	c->place = rename_place(c, c->fid);
	c->to = rename_place(c, c->fid2);
	c->new_name = c->m.second.s;
	cube_p9_rename(c);
}
