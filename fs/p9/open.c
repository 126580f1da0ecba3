/* SPDX-License-Identifier: Apache-2.0 */
/* Tlopen, Tlcreate: a fid becomes an open file. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "fs/p9/priv.h"

/* What is passed on of the protocol's flags; the rest means nothing here. */
static const struct {
	uint32_t p9;
	int ours;
} open_flags[] = {
	{CUBE_P9_OPEN_EXCL, O_EXCL},           {CUBE_P9_OPEN_TRUNC, O_TRUNC},
	{CUBE_P9_OPEN_APPEND, O_APPEND},       {CUBE_P9_OPEN_NONBLOCK, O_NONBLOCK},
	{CUBE_P9_OPEN_DSYNC, O_DSYNC},         {CUBE_P9_OPEN_SYNC, O_SYNC},
	{CUBE_P9_OPEN_DIRECTORY, O_DIRECTORY}, {CUBE_P9_OPEN_NOATIME, O_NOATIME},
};

static int open_translate(uint32_t p9)
{
	static const int modes[] = {O_RDONLY, O_WRONLY, O_RDWR, O_RDONLY};
	int flags = modes[p9 & CUBE_P9_OPEN_ACCMODE];

	for (size_t i = 0; i < CUBE_COUNT(open_flags); i++)
		flags |= p9 & open_flags[i].p9 ? open_flags[i].ours : 0;
	return flags;
}

struct cube_files_cred cube_p9_cred(const struct p9_call *c)
{
	const struct cube_files_options *o = &c->conn->server->o.files;

	return (struct cube_files_cred){.uid = o->uid, .gid = o->gid, .pid = c->conn->by.pid};
}

bool cube_p9_spared(struct p9_call *c)
{
	return cube_tree_removes(c->conn->server->o.tree, c->conn->view, &c->conn->by, c->node);
}

void cube_p9_uses(struct p9_call *c, uint64_t node)
{
	cube_tree_uses(c->conn->server->o.tree, c->conn->view, &c->conn->by, node);
}

/* ---- a file or directory that is there ---- */

void cube_p9_open_done(struct p9_call *c, int code, enum p9_state state)
{
	struct p9_fid *f = c->fid;

	if (code == 0 && (c->m.open_mode & CUBE_P9_ORCLOSE))
		f->remove = true; /* nobody closes it while this call has it */
	cube_p9_fid_open_end(c->conn, f, code == 0 ? state : P9_WALKED);
	c->reply.qid = f->place->qid;
	c->reply.iounit = c->msize - CUBE_P9_IO_HEAD;
	cube_p9_end(c, code);
}

static void open_asked(struct p9_call *c, int result)
{
	struct p9_fid *f = c->fid;

	if (result == 0)
		f->handle = c->r.opened;
	cube_p9_open_done(c, result, P9_FILE);
}

static void open_real(struct p9_call *c)
{
	cube_p9_uses(c, c->node);
	cube_p9_open_done(c, cube_files_open(c->conn->files, c->node, c->flags, &c->fid->real), P9_FILE);
}

static void open_dir_asked(struct p9_call *c, int result)
{
	cube_p9_open_done(c, result, P9_DIR);
}

static void open_dir_real(struct p9_call *c)
{
	int code = 0;

	c->fid->shown_ino = c->shown_ino;
	if (!cube_p9_spared(c))
		code = cube_files_opendir(c->conn->files, c->node, &c->fid->real);
	cube_p9_open_done(c, code, P9_DIR);
}

static void open_set(struct p9_fid *f, int flags)
{
	int how = flags & O_ACCMODE;

	f->reads = how != O_WRONLY;
	f->writes = how != O_RDONLY;
	f->nonblock = (flags & O_NONBLOCK) != 0;
}

void cube_p9_open_go(struct p9_call *c)
{
	struct p9_fid *f = c->fid;

	open_set(f, c->flags);
	cube_p9_begin(c);
	c->r.flags = (unsigned)c->flags;
	if (S_ISDIR(f->place->mode))
		cube_p9_go(c, CUBE_REQ_OPENDIR, f->place->id, open_dir_asked, open_dir_real);
	else
		cube_p9_go(c, CUBE_REQ_OPEN, f->place->id, open_asked, open_real);
}

void cube_p9_open(struct p9_call *c, int flags)
{
	struct p9_fid *f = c->fid;
	int code = cube_p9_fid_open_begin(c->conn, f);

	if (code < 0) {
		cube_p9_fail(c, cube_fail(&c->r.err, code, "fid %u is open", f->number));
		return;
	}
	if (S_ISDIR(f->place->mode) && ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC)))
		code = -EISDIR;
	else if (!S_ISDIR(f->place->mode) && (flags & O_DIRECTORY))
		code = -ENOTDIR;
	else if (S_ISLNK(f->place->mode))
		code = -ELOOP;
	if (code < 0) {
		cube_p9_open_done(c, code, P9_WALKED);
		return;
	}
	c->flags = flags;
	cube_p9_open_go(c);
}

void cube_p9_op_lopen(struct p9_call *c)
{
	cube_p9_open(c, open_translate(c->m.flags) & ~O_EXCL);
}

/* ---- one that is made, or is there already ---- */

/* The fid of the directory becomes that of the file. */
int cube_p9_create_move(struct p9_call *c, uint64_t id, const struct stat *st)
{
	struct p9_fid *f = c->fid;
	struct p9_place *to = cube_p9_place_new(f->place, id, st, c->m.name.s);

	if (to == NULL) {
		cube_p9_node_forget(c->conn, id);
		return -ENOMEM;
	}
	(void)pthread_mutex_lock(&c->conn->lock);
	f->before = f->place; /* others may be looking at it */
	f->place = to;
	(void)pthread_mutex_unlock(&c->conn->lock);
	return 0;
}

static void create_refused(struct p9_call *c, int result)
{
	cube_p9_open_done(c, result < 0 ? result : -EIO, P9_WALKED);
}

static void create_real(struct p9_call *c)
{
	struct cube_files_cred cred = cube_p9_cred(c);
	struct cube_files_handle *h = NULL;
	struct cube_files_entry e = {0};
	int code;

	cube_p9_uses(c, c->node);
	code = cube_files_create(c->conn->files, &cred, c->node, c->m.name.s, c->flags | O_CREAT,
				 c->m.mode & 07777, &e, &h);
	if (code == 0) {
		code = cube_p9_create_move(c, e.id, &e.st);
		if (code < 0)
			cube_files_release(h);
		else
			c->fid->real = h;
	}
	cube_p9_open_done(c, code, P9_FILE);
}

/* Of the tree's own files none is made so; one that is there is opened. */
static void create_found(struct p9_call *c, int result)
{
	struct stat st = c->r.entry.st;
	uint64_t id = c->r.entry.id;

	if (result == -ENOENT) {
		cube_p9_begin(c);
		c->r.name = c->m.name.s;
		cube_p9_go(c, CUBE_REQ_CREATE, c->fid->place->id, create_refused, create_real);
		return;
	}
	if (result == 0 && ((c->flags & O_EXCL) || !S_ISREG(st.st_mode))) {
		cube_p9_node_forget(c->conn, id);
		result = c->flags & O_EXCL ? -EEXIST : S_ISDIR(st.st_mode) ? -EISDIR : -ELOOP;
	}
	if (result == 0)
		result = cube_p9_create_move(c, id, &st);
	if (result < 0) {
		cube_p9_open_done(c, result, P9_WALKED);
		return;
	}
	cube_p9_open_go(c);
}

void cube_p9_create(struct p9_call *c, int flags)
{
	struct p9_fid *f = c->fid;
	int code = cube_p9_fid_open_begin(c->conn, f);

	if (code < 0) {
		cube_p9_fail(c, cube_fail(&c->r.err, code, "fid %u is open", f->number));
		return;
	}
	if (!S_ISDIR(f->place->mode)) {
		cube_p9_open_done(c, -ENOTDIR, P9_WALKED);
		return;
	}
	open_set(f, flags);
	c->flags = flags;
	cube_p9_begin(c);
	c->r.name = c->m.name.s;
	cube_p9_go(c, CUBE_REQ_LOOKUP, f->place->id, create_found, create_real);
}

void cube_p9_op_lcreate(struct p9_call *c)
{
	cube_p9_create(c, open_translate(c->m.flags) & ~O_DIRECTORY);
}
