/* SPDX-License-Identifier: Apache-2.0 */
/* Tgetattr, Tsetattr, Tstatfs, Treadlink. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "fs/p9/priv.h"

#define ATTR_STATFS_TYPE 0x01021997 /* what Linux shows of 9P */

/* ---- Tgetattr ---- */

static void attr_fill(struct p9_call *c, int code, const struct stat *st)
{
	c->reply.mask = CUBE_P9_GETATTR_BASIC;
	c->reply.qid = cube_p9_qid(st);
	c->reply.attr = (struct cube_p9_attr){.mode = st->st_mode,
					      .uid = st->st_uid,
					      .gid = st->st_gid,
					      .nlink = st->st_nlink,
					      .rdev = st->st_rdev,
					      .size = (uint64_t)st->st_size,
					      .blksize = c->msize - CUBE_P9_IO_HEAD,
					      .blocks = (uint64_t)st->st_blocks,
					      .atime_s = (uint64_t)st->st_atim.tv_sec,
					      .atime_ns = (uint64_t)st->st_atim.tv_nsec,
					      .mtime_s = (uint64_t)st->st_mtim.tv_sec,
					      .mtime_ns = (uint64_t)st->st_mtim.tv_nsec,
					      .ctime_s = (uint64_t)st->st_ctim.tv_sec,
					      .ctime_ns = (uint64_t)st->st_ctim.tv_nsec};
	cube_p9_end(c, code);
}

static void attr_asked(struct p9_call *c, int result)
{
	c->got(c, result, &c->r.entry.st);
}

static void attr_real(struct p9_call *c)
{
	struct stat st = {0};
	int code = cube_files_getattr(c->conn->files, c->node, c->fid->real, &st);

	if (code == 0 && c->shown_ino != 0)
		st.st_ino = c->shown_ino;
	c->got(c, code, &st);
}

void cube_p9_getattr(struct p9_call *c, void (*got)(struct p9_call *, int, const struct stat *))
{
	c->got = got;
	cube_p9_begin(c);
	cube_p9_go(c, CUBE_REQ_GETATTR, c->fid->place->id, attr_asked, attr_real);
}

void cube_p9_op_getattr(struct p9_call *c)
{
	cube_p9_getattr(c, attr_fill);
}

/* ---- Tsetattr ---- */

static void set_asked(struct p9_call *c, int result)
{
	if (c->after != NULL)
		c->after(c, result);
	else
		cube_p9_end(c, result);
}

static void set_real(struct p9_call *c)
{
	struct stat now;

	set_asked(c, cube_files_setattr(c->conn->files, c->node, c->fid->real, &c->st, c->set, &now));
}

void cube_p9_setattr(struct p9_call *c)
{
	if (c->set == 0) {
		set_asked(c, 0);
		return;
	}
	cube_p9_begin(c);
	c->r.set = c->set;
	c->r.set_st = &c->st;
	c->r.handle = c->fid->handle;
	cube_p9_go(c, CUBE_REQ_SETATTR, c->fid->place->id, set_asked, set_real);
}

static const struct {
	uint32_t p9, with; /* @with: 0, or what must be there too (or, for @ours NOW, must not) */
	bool absent;
	unsigned ours;
} set_bits[] = {
	{CUBE_P9_SETATTR_MODE, 0, false, CUBE_SET_MODE},
	{CUBE_P9_SETATTR_UID, 0, false, CUBE_SET_UID},
	{CUBE_P9_SETATTR_GID, 0, false, CUBE_SET_GID},
	{CUBE_P9_SETATTR_SIZE, 0, false, CUBE_SET_SIZE},
	{CUBE_P9_SETATTR_ATIME, CUBE_P9_SETATTR_ATIME_SET, false, CUBE_SET_ATIME},
	{CUBE_P9_SETATTR_ATIME, CUBE_P9_SETATTR_ATIME_SET, true, CUBE_SET_ATIME_NOW},
	{CUBE_P9_SETATTR_MTIME, CUBE_P9_SETATTR_MTIME_SET, false, CUBE_SET_MTIME},
	{CUBE_P9_SETATTR_MTIME, CUBE_P9_SETATTR_MTIME_SET, true, CUBE_SET_MTIME_NOW},
};

void cube_p9_op_setattr(struct p9_call *c)
{
	const struct cube_p9_attr *a = &c->m.attr;

	if ((c->m.flags & ~CUBE_P9_SETATTR_KNOWN) || a->size > INT64_MAX || a->atime_ns >= 1000000000 ||
	    a->mtime_ns >= 1000000000) {
		cube_p9_fail(
			c, cube_fail(&c->r.err, -EINVAL, "Tsetattr: an unknown bit or a value that is none"));
		return;
	}
	for (size_t i = 0; i < CUBE_COUNT(set_bits); i++) {
		bool with =
			set_bits[i].with == 0 || ((c->m.flags & set_bits[i].with) != 0) != set_bits[i].absent;

		if ((c->m.flags & set_bits[i].p9) && with)
			c->set |= set_bits[i].ours;
	}
	c->st = (struct stat){.st_mode = a->mode & 07777,
			      .st_uid = a->uid,
			      .st_gid = a->gid,
			      .st_size = (off_t)a->size,
			      .st_atim = {(time_t)a->atime_s, (long)a->atime_ns},
			      .st_mtim = {(time_t)a->mtime_s, (long)a->mtime_ns}};
	cube_p9_setattr(c);
}

/* ---- Tstatfs ---- */

static void statfs_got(struct p9_call *c, int code, const struct statvfs *v)
{
	c->reply.statfs = (struct cube_p9_statfs){.type = ATTR_STATFS_TYPE,
						  .bsize = (uint32_t)v->f_frsize,
						  .blocks = v->f_blocks,
						  .bfree = v->f_bfree,
						  .bavail = v->f_bavail,
						  .files = v->f_files,
						  .ffree = v->f_ffree,
						  .fsid = v->f_fsid,
						  .namelen = P9_NAME_MAX};
	cube_p9_end(c, code);
}

static void statfs_asked(struct p9_call *c, int result)
{
	statfs_got(c, result, &c->r.vfs);
}

static void statfs_real(struct p9_call *c)
{
	struct statvfs v = {0};
	int code = cube_files_statfs(c->conn->files, c->node, &v);

	statfs_got(c, code, &v);
}

void cube_p9_op_statfs(struct p9_call *c)
{
	cube_p9_begin(c);
	cube_p9_go(c, CUBE_REQ_STATFS, c->fid->place->id, statfs_asked, statfs_real);
}

/* ---- Treadlink ---- */

static void link_got(struct p9_call *c, int code, const char *target, size_t len)
{
	if (code >= 0 && len > c->msize - CUBE_P9_IO_HEAD)
		code = -ENAMETOOLONG;
	if (code >= 0)
		c->reply.name = (struct cube_p9_str){.s = target, .len = (uint16_t)len};
	cube_p9_end(c, code);
}

static void link_asked(struct p9_call *c, int result)
{
	link_got(c, result, c->r.out, c->r.out_len);
}

static void link_real(struct p9_call *c)
{
	char target[PATH_MAX + 1];
	ssize_t n = cube_files_readlink(c->conn->files, c->node, target, sizeof(target));

	link_got(c, n < 0 ? (int)n : 0, target, n < 0 ? 0 : (size_t)n);
}

void cube_p9_op_readlink(struct p9_call *c)
{
	cube_p9_begin(c);
	cube_p9_go(c, CUBE_REQ_READLINK, c->fid->place->id, link_asked, link_real);
}
