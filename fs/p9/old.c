/* SPDX-License-Identifier: Apache-2.0 */
/* What 9P2000 and 9P2000.u do their own way: Topen, Tcreate, Tstat, Twstat, and directories that are read as
 * files of stat records. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "backends/base/alloc.h"
#include "fs/p9/priv.h"

/* ---- modes ---- */

/* Bits of mode that are a type of file in .u, and ours. */
static const struct {
	uint32_t p9;
	mode_t ours;
} old_types[] = {
	{CUBE_P9_DMSYMLINK, S_IFLNK},   {CUBE_P9_DMDEVICE, S_IFCHR},  {CUBE_P9_DMDEVICE, S_IFBLK},
	{CUBE_P9_DMNAMEDPIPE, S_IFIFO}, {CUBE_P9_DMSOCKET, S_IFSOCK},
};

static const struct {
	uint32_t p9;
	mode_t ours;
} old_bits[] = {
	{CUBE_P9_DMSETUID, S_ISUID},
	{CUBE_P9_DMSETGID, S_ISGID},
	{CUBE_P9_DMSETVTX, S_ISVTX},
};

static uint32_t old_mode(mode_t mode, enum cube_p9_dialect d)
{
	uint32_t m = mode & 0777;

	if (S_ISDIR(mode))
		m |= CUBE_P9_DMDIR;
	for (size_t i = 0; d == CUBE_P9_2000U && i < CUBE_COUNT(old_types); i++)
		m |= (mode & S_IFMT) == old_types[i].ours ? old_types[i].p9 : 0;
	for (size_t i = 0; d == CUBE_P9_2000U && i < CUBE_COUNT(old_bits); i++)
		m |= mode & old_bits[i].ours ? old_bits[i].p9 : 0;
	return m;
}

static mode_t old_permissions(uint32_t mode, enum cube_p9_dialect d)
{
	mode_t m = mode & 0777;

	for (size_t i = 0; d == CUBE_P9_2000U && i < CUBE_COUNT(old_bits); i++)
		m |= mode & old_bits[i].p9 ? old_bits[i].ours : 0;
	return m;
}

static int old_flags(uint8_t mode)
{
	static const int modes[] = {O_RDONLY, O_WRONLY, O_RDWR, O_RDONLY};

	return modes[mode & 3] | (mode & CUBE_P9_OTRUNC ? O_TRUNC : 0);
}

/* ---- stat records ---- */

struct old_names {
	char uid[16], gid[16], extension[PATH_MAX + 1];
};

static struct cube_p9_str old_str(const char *s)
{
	return (struct cube_p9_str){.s = s, .len = (uint16_t)strlen(s)};
}

/* The strings are in *n and @name. n->extension is the caller's. */
static void old_stat(struct cube_p9_stat *to, const struct stat *st, const char *name, struct old_names *n,
		     enum cube_p9_dialect d)
{
	(void)snprintf(n->uid, sizeof(n->uid), "%u", st->st_uid);
	(void)snprintf(n->gid, sizeof(n->gid), "%u", st->st_gid);
	if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode))
		(void)snprintf(n->extension, sizeof(n->extension), "%c %u %u",
			       S_ISCHR(st->st_mode) ? 'c' : 'b', major(st->st_rdev), minor(st->st_rdev));
	*to = (struct cube_p9_stat){.qid = cube_p9_qid(st),
				    .mode = old_mode(st->st_mode, d),
				    .atime = (uint32_t)st->st_atim.tv_sec,
				    .mtime = (uint32_t)st->st_mtim.tv_sec,
				    .length = S_ISDIR(st->st_mode) ? 0 : (uint64_t)st->st_size,
				    .name = old_str(name),
				    .uid = old_str(n->uid),
				    .gid = old_str(n->gid),
				    .muid = old_str(""),
				    .extension = old_str(n->extension),
				    .n_uid = st->st_uid,
				    .n_gid = st->st_gid,
				    .n_muid = CUBE_P9_NOUID};
}

/* ---- Tstat ---- */

static void stat_answer(struct p9_call *c, const char *target)
{
	struct old_names n = {0};
	char name[P9_NAME_MAX + 1];

	(void)snprintf(n.extension, sizeof(n.extension), "%s", target);
	(void)pthread_mutex_lock(&c->conn->lock);
	(void)snprintf(name, sizeof(name), "%s", c->fid->place->name);
	(void)pthread_mutex_unlock(&c->conn->lock);
	old_stat(&c->reply.stat, &c->st, name, &n, c->dialect);
	cube_p9_reply(c);
}

static void stat_link(struct p9_call *c, int result)
{
	char target[PATH_MAX + 1];

	(void)snprintf(target, sizeof(target), "%.*s", result < 0 ? 0 : (int)c->r.out_len,
		       result < 0 ? "" : c->r.out);
	stat_answer(c, target);
}

static void stat_link_real(struct p9_call *c)
{
	char target[PATH_MAX + 1];
	ssize_t len = cube_files_readlink(c->conn->files, c->node, target, sizeof(target));

	stat_answer(c, len < 0 ? "" : target);
}

static void stat_got(struct p9_call *c, int code, const struct stat *st)
{
	if (code < 0) {
		cube_p9_fail(c, code);
		return;
	}
	c->st = *st;
	if (c->dialect != CUBE_P9_2000U || !S_ISLNK(st->st_mode)) {
		stat_answer(c, "");
		return;
	}
	cube_p9_begin(c);
	cube_p9_go(c, CUBE_REQ_READLINK, c->fid->place->id, stat_link, stat_link_real);
}

void cube_p9_op_stat(struct p9_call *c)
{
	cube_p9_getattr(c, stat_got);
}

/* ---- a directory as a file ---- */

static int list_add(struct p9_call *c, const char *name, const struct stat *st, uint64_t id, uint64_t next)
{
	bool dot = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
	size_t before = c->data.len;
	struct cube_p9_stat record;
	struct old_names n;

	if (!dot) {
		n.extension[0] = '\0';
		if (c->dialect == CUBE_P9_2000U && S_ISLNK(st->st_mode) && (id & CUBE_FILES_ID) &&
		    cube_files_readlink(c->conn->files, id, n.extension, sizeof(n.extension)) < 0)
			n.extension[0] = '\0';
		old_stat(&record, st, name, &n, c->dialect);
		if (cube_p9_stat_add(&c->data, c->dialect, &record) < 0 ||
		    (id != 0 && cube_buf_add(&c->ids, &id, sizeof(id)) < 0)) {
			cube_buf_cut(&c->data, before);
			c->data.error = 0;
			c->code = -EINVAL;
			return 1;
		}
	}
	c->next_at = next;
	return 0;
}

static int list_add_asked(struct cube_req *r, const char *name, const struct cube_tree_entry *e,
			  uint64_t next)
{
	return list_add(cube_container_of(r, struct p9_call, r), name, &e->st, e->id, next);
}

static int list_add_real(void *ctx, const char *name, const struct cube_files_entry *e, off_t next)
{
	return list_add(ctx, name, &e->st, e->id, (uint64_t)next);
}

/* Whoever lists names gets the attributes too, and each was counted as a look-up. */
static void list_forget(struct p9_call *c)
{
	uint64_t id;

	for (size_t at = 0; at + sizeof(id) <= c->ids.len; at += sizeof(id)) {
		memcpy(&id, c->ids.data + at, sizeof(id));
		cube_p9_node_forget(c->conn, id);
	}
}

static void list_done(struct p9_call *c, int code)
{
	struct p9_fid *f = c->fid;

	list_forget(c);
	if (c->data.len > CUBE_P9_DATA_HEAD)
		code = 0;
	else if (code == 0)
		code = c->code;
	(void)pthread_mutex_lock(&c->conn->lock);
	if (code == 0) {
		f->dir_at += c->data.len - CUBE_P9_DATA_HEAD;
		f->dir_next = c->next_at;
	}
	f->listing = false;
	(void)pthread_mutex_unlock(&c->conn->lock);
	if (code < 0)
		cube_p9_fail(c, code);
	else
		cube_p9_reply_data(c);
}

static void list_real(struct p9_call *c)
{
	list_done(c, cube_files_readdir(c->conn->files, c->fid->real, (off_t)c->next_at, true, list_add_real,
					c));
}

/* The place of the listing belongs to the fid: from the start, or where the last read ended. */
static int list_begin(struct p9_call *c)
{
	struct p9_fid *f = c->fid;
	int code = 0;

	(void)pthread_mutex_lock(&c->conn->lock);
	if (f->listing || (c->m.offset != 0 && c->m.offset != f->dir_at))
		code = -EINVAL;
	if (code == 0 && c->m.offset == 0)
		f->dir_at = f->dir_next = 0;
	if (code == 0) {
		f->listing = true;
		c->next_at = f->dir_next;
	}
	(void)pthread_mutex_unlock(&c->conn->lock);
	return code;
}

void cube_p9_old_readdir(struct p9_call *c)
{
	uint32_t most = c->msize - CUBE_P9_IO_HEAD;
	struct p9_fid *f = c->fid;
	int code;

	code = list_begin(c);
	if (code < 0) {
		cube_p9_fail(c, cube_fail(&c->r.err, code,
					  "a directory is read from its start on, piece by piece"));
		return;
	}
	cube_buf_init(&c->data, CUBE_P9_DATA_HEAD + (c->m.count < most ? c->m.count : most));
	cube_buf_init(&c->ids, SIZE_MAX / 2);
	if (cube_buf_add(&c->data, "\0\0\0\0\0\0\0\0\0\0", CUBE_P9_DATA_HEAD) < 0) {
		list_done(c, -ENOMEM);
	} else if (f->real != NULL) {
		cube_p9_block(c, list_real);
	} else if (f->place->id & CUBE_FILES_ID) {
		list_done(c, 0); /* it looks empty to one that removes */
	} else {
		cube_p9_begin(c);
		c->r.offset = c->next_at;
		c->r.plus = true;
		c->r.add = list_add_asked;
		cube_p9_go(c, CUBE_REQ_READDIR, f->place->id, list_done, NULL);
	}
}

/* ---- Topen, Tcreate ---- */

void cube_p9_op_open(struct p9_call *c)
{
	int flags = old_flags(c->m.open_mode);

	if (S_ISDIR(c->fid->place->mode) && (c->m.open_mode & 3) == CUBE_P9_OEXEC)
		flags = O_RDONLY;
	cube_p9_open(c, flags);
}

/* What was made becomes what the fid is at; a directory is opened too. */
static void create_made(struct p9_call *c, int code, uint64_t id, const struct stat *st)
{
	if (code == 0)
		code = cube_p9_create_move(c, id, st);
	if (code < 0 || !S_ISDIR(st->st_mode))
		cube_p9_open_done(c, code, P9_WALKED);
	else
		cube_p9_open_go(c);
}

static void create_asked(struct p9_call *c, int result)
{
	struct stat st = c->r.entry.st;

	create_made(c, result, c->r.entry.id, &st);
}

static void create_real(struct p9_call *c)
{
	struct cube_files_space *s = c->conn->files;
	struct cube_files_cred cred = cube_p9_cred(c);
	const char *name = c->m.name.s;
	struct cube_files_entry e = {0};
	int code;

	cube_p9_uses(c, c->node);
	if (c->m.mode & CUBE_P9_DMDIR)
		code = cube_files_mkdir(s, &cred, c->node, name, c->m.mode & 0777, &e);
	else if (c->m.mode & CUBE_P9_DMSYMLINK)
		code = cube_files_symlink(s, &cred, c->node, name, c->m.second.s, &e);
	else
		code = cube_files_mknod(s, &cred, c->node, name, c->st.st_mode, c->st.st_rdev, &e);
	create_made(c, code, e.id, &e.st);
}

/* The extension of a device: "b MAJOR MINOR". */
static int create_device(struct p9_call *c)
{
	unsigned major_no, minor_no;
	char kind;
	int end = 0;

	if (sscanf(c->m.second.s, "%c %u %u%n", &kind, &major_no, &minor_no, &end) != 3 ||
	    (kind != 'b' && kind != 'c') || c->m.second.s[end] != '\0')
		return cube_fail(&c->r.err, -EINVAL,
				 "a device is made as 'b MAJOR MINOR' or 'c MAJOR MINOR'");
	c->st.st_mode = (kind == 'b' ? S_IFBLK : S_IFCHR) | (c->m.mode & 0777);
	c->st.st_rdev = makedev(major_no, minor_no);
	return 0;
}

static int create_special(struct p9_call *c)
{
	if (c->dialect != CUBE_P9_2000U)
		return cube_fail(&c->r.err, -EINVAL, "9P2000 makes files and directories alone");
	if (c->m.mode & CUBE_P9_DMSYMLINK)
		return c->m.second.len == 0 || c->m.second.len >= PATH_MAX ? -EINVAL : 0;
	if (c->m.mode & CUBE_P9_DMDEVICE)
		return create_device(c);
	c->st.st_mode = (c->m.mode & CUBE_P9_DMSOCKET ? S_IFSOCK : S_IFIFO) | (c->m.mode & 0777);
	return 0;
}

/* The file is named by the fid in the extension; the fid of the directory stays what it is. */
static void create_link(struct p9_call *c)
{
	char *end;
	unsigned long fid = strtoul(c->m.second.s, &end, 10);

	if (c->m.second.len == 0 || *end != '\0' || fid > UINT32_MAX) {
		cube_p9_fail(c,
			     cube_fail(&c->r.err, -EINVAL, "a link is made as the number of the file's fid"));
		return;
	}
	c->fid2 = cube_p9_fid_use(c->conn, (uint32_t)fid);
	if (c->fid2 == NULL)
		cube_p9_fail(c, cube_fail(&c->r.err, -EBADF, "fid %lu is not known", fid));
	else
		cube_p9_op_link(c);
}

void cube_p9_op_create(struct p9_call *c)
{
	const uint32_t special =
		CUBE_P9_DMSYMLINK | CUBE_P9_DMDEVICE | CUBE_P9_DMNAMEDPIPE | CUBE_P9_DMSOCKET;
	bool dir = (c->m.mode & CUBE_P9_DMDIR) != 0;
	int code = 0;

	if ((c->m.mode & CUBE_P9_DMLINK) && c->dialect == CUBE_P9_2000U) {
		create_link(c);
		return;
	}
	if (!dir && !(c->m.mode & special)) {
		c->m.mode = old_permissions(c->m.mode, c->dialect);
		cube_p9_create(c, old_flags(c->m.open_mode) | O_EXCL);
		return;
	}
	if (!dir)
		code = create_special(c);
	if (code == 0)
		code = cube_p9_fid_open_begin(c->conn, c->fid);
	if (code < 0) {
		cube_p9_fail(c, code);
		return;
	}
	c->flags = O_RDONLY;
	cube_p9_begin(c);
	c->r.name = c->m.name.s;
	cube_p9_go(c,
		   dir                             ? CUBE_REQ_MKDIR
		   : c->m.mode & CUBE_P9_DMSYMLINK ? CUBE_REQ_SYMLINK
						   : CUBE_REQ_MKNOD,
		   c->fid->place->id, create_asked, create_real);
}

/* ---- Twstat ---- */

static void wstat_rename(struct p9_call *c, int code)
{
	if (code == 0 && c->m.stat.name.len > 0)
		code = cube_p9_fid_where(c->conn, c->fid, &c->place, c->name);
	if (code < 0 || c->m.stat.name.len == 0 || strcmp(c->name, c->m.stat.name.s) == 0) {
		cube_p9_end(c, code);
		return;
	}
	c->to = cube_p9_place_ref(c->place);
	c->new_name = c->m.stat.name.s;
	cube_p9_rename(c);
}

/* All ones: leave it. */
static void wstat_set(struct p9_call *c)
{
	const struct cube_p9_stat *s = &c->m.stat;
	bool ids = c->dialect == CUBE_P9_2000U;

	c->st = (struct stat){.st_mode = old_permissions(s->mode, c->dialect),
			      .st_uid = s->n_uid,
			      .st_gid = s->n_gid,
			      .st_size = (off_t)s->length,
			      .st_atim = {.tv_sec = s->atime},
			      .st_mtim = {.tv_sec = s->mtime}};
	c->set |= s->mode != UINT32_MAX ? CUBE_SET_MODE : 0;
	c->set |= s->length != UINT64_MAX ? CUBE_SET_SIZE : 0;
	c->set |= s->atime != UINT32_MAX ? CUBE_SET_ATIME : 0;
	c->set |= s->mtime != UINT32_MAX ? CUBE_SET_MTIME : 0;
	c->set |= ids && s->n_uid != UINT32_MAX ? CUBE_SET_UID : 0;
	c->set |= ids && s->n_gid != UINT32_MAX ? CUBE_SET_GID : 0;
}

void cube_p9_op_wstat(struct p9_call *c)
{
	const struct cube_p9_stat *s = &c->m.stat;
	bool dir = S_ISDIR(c->fid->place->mode);
	int code = s->name.len > 0 ? cube_p9_name_check(&s->name) : 0;

	if (code == 0 && s->length != UINT64_MAX && s->length > INT64_MAX)
		code = -EFBIG;
	if (code == 0 && s->length != UINT64_MAX && dir)
		code = s->length == 0 ? 0 : -EISDIR;
	if (code == 0 && s->mode != UINT32_MAX && ((s->mode & CUBE_P9_DMDIR) != 0) != dir)
		code = cube_fail(&c->r.err, -EPERM,
				 "a file does not become a directory, nor the other way round");
	if (code < 0) {
		cube_p9_fail(c, code);
		return;
	}
	wstat_set(c);
	if (dir)
		c->set &= ~CUBE_SET_SIZE;
	c->after = wstat_rename;
	cube_p9_setattr(c);
}
