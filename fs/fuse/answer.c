/* SPDX-License-Identifier: Apache-2.0 */
/* What the tree answers, in the kernel's words. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "backends/base/alloc.h"
#include "fs/fuse/priv.h"
#include "fs/fuse/raw.h"

/* A name that was looked up by a request that had to wait may be old news by now. */
static struct fuse_entry_param answer_entry(const struct cube_tree_entry *e, bool waited)
{
	return (struct fuse_entry_param){.ino = e->id,
					 .attr = e->st,
					 .entry_timeout = waited ? 0 : e->entry_timeout,
					 .attr_timeout = waited ? 0 : e->attr_timeout};
}

static void answer_name(struct cube_fuse_call *c)
{
	struct fuse_entry_param e = answer_entry(&c->r.entry, c->r.was_parked);

	if (fuse_reply_entry(c->a.req, &e) == -ENOENT)
		cube_tree_forget(c->a.f->tree, e.ino,
				 1); /* the caller is gone, nobody will forget it for us */
}

static void answer_attr(struct cube_fuse_call *c)
{
	(void)cube_fuse_reply_attr(&c->a, &c->r.entry.st, c->r.entry.attr_timeout, NULL);
}

static void answer_nothing(struct cube_fuse_call *c)
{
	(void)fuse_reply_err(c->a.req, 0);
}

static void answer_link(struct cube_fuse_call *c)
{
	(void)fuse_reply_buf(c->a.req, c->r.out, c->r.out_len);
}

static void answer_statfs(struct cube_fuse_call *c)
{
	(void)fuse_reply_statfs(c->a.req, &c->r.vfs);
}

/* A list of extended attributes: there are none. Asked for its size the answer is a number, else it is the list. */
static void answer_xattr(struct cube_fuse_call *c)
{
	if (c->a.size == 0)
		(void)fuse_reply_xattr(c->a.req, 0);
	else
		(void)fuse_reply_buf(c->a.req, NULL, 0);
}

int cube_fuse_reply_open(fuse_req_t req, uint64_t fh, uint32_t flags)
{
	struct cube_fuse_open_out out = {.fh = fh, .open_flags = flags};

	return fuse_reply_buf(req, (const char *)&out, sizeof(out));
}

static struct cube_fuse_open_out answer_real(const struct cube_fuse_real_open *o)
{
	return (struct cube_fuse_open_out){.fh = o->fh,
					   .open_flags = (o->id != 0 ? CUBE_FOPEN_PASSTHROUGH : 0) |
							 (o->direct ? CUBE_FOPEN_DIRECT_IO : 0) |
							 (o->keep ? CUBE_FOPEN_KEEP_CACHE : 0),
					   .backing_id = o->id};
}

int cube_fuse_reply_real(fuse_req_t req, const struct cube_fuse_real_open *o)
{
	struct cube_fuse_open_out out = answer_real(o);

	return fuse_reply_buf(req, (const char *)&out, sizeof(out));
}

static void answer_time(double seconds, uint64_t *ret_s, uint32_t *ret_ns)
{
	*ret_s = (uint64_t)seconds;
	*ret_ns = (uint32_t)((seconds - (double)*ret_s) * 1e9);
}

static struct cube_fuse_attr answer_stat(const struct stat *st)
{
	return (struct cube_fuse_attr){
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.blocks = (uint64_t)st->st_blocks,
		.atime = (uint64_t)st->st_atim.tv_sec,
		.mtime = (uint64_t)st->st_mtim.tv_sec,
		.ctime = (uint64_t)st->st_ctim.tv_sec,
		.atimensec = (uint32_t)st->st_atim.tv_nsec,
		.mtimensec = (uint32_t)st->st_mtim.tv_nsec,
		.ctimensec = (uint32_t)st->st_ctim.tv_nsec,
		.mode = st->st_mode,
		.nlink = (uint32_t)st->st_nlink,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.rdev = (uint32_t)st->st_rdev,
		.blksize = (uint32_t)st->st_blksize,
	};
}

static struct cube_fuse_time answer_sx_time(const struct timespec *t)
{
	return (struct cube_fuse_time){.sec = t->tv_sec, .nsec = (uint32_t)t->tv_nsec};
}

static int answer_statx(fuse_req_t req, const struct stat *st, double timeout, const struct timespec *birth)
{
	struct cube_fuse_statx_out out = {
		.mask = STATX_BASIC_STATS | (birth != NULL ? STATX_BTIME : 0),
		.blksize = (uint32_t)st->st_blksize,
		.nlink = (uint32_t)st->st_nlink,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.mode = (uint16_t)st->st_mode,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.blocks = (uint64_t)st->st_blocks,
		.atime = answer_sx_time(&st->st_atim),
		.ctime = answer_sx_time(&st->st_ctim),
		.mtime = answer_sx_time(&st->st_mtim),
		.rdev_major = major(st->st_rdev),
		.rdev_minor = minor(st->st_rdev),
	};

	_Static_assert(sizeof(out) == 288, "the kernel's fuse_statx_out");
	if (birth != NULL)
		out.btime = answer_sx_time(birth);
	answer_time(timeout, &out.attr_valid, &out.attr_valid_nsec);
	return fuse_reply_buf(req, (const char *)&out, sizeof(out));
}

int cube_fuse_reply_attr(const struct cube_fuse_args *a, const struct stat *st, double timeout,
			 const struct timespec *birth)
{
	if (a->asked == CUBE_FUSE_STATX)
		return answer_statx(a->req, st, timeout, birth);
	return fuse_reply_attr(a->req, st, timeout);
}

int cube_fuse_reply_created(fuse_req_t req, const struct fuse_entry_param *e,
			    const struct cube_fuse_real_open *o)
{
	struct {
		struct cube_fuse_entry_out entry;
		struct cube_fuse_open_out open;
	} out = {
		.entry = {.nodeid = e->ino, .generation = e->generation, .attr = answer_stat(&e->attr)},
		.open = answer_real(o),
	};

	answer_time(e->entry_timeout, &out.entry.entry_valid, &out.entry.entry_valid_nsec);
	answer_time(e->attr_timeout, &out.entry.attr_valid, &out.entry.attr_valid_nsec);
	return fuse_reply_buf(req, (const char *)&out, sizeof(out));
}

static void answer_released(struct cube_req *r, int result)
{
	(void)result;
	cube_req_fini(r);
	cube_free(r);
}

/* The caller went while its open was answered: no RELEASE will come. */
static void answer_give_up(struct cube_fuse *f, uint64_t fh, struct cube_handle *h)
{
	struct cube_req *r = cube_calloc(1, sizeof(*r));

	cube_fh_set(&f->fh, fh, NULL); /* the record stays taken until the tree has closed it */
	if (r == NULL)
		return; /* it is freed with the tree */
	r->op = CUBE_REQ_RELEASE;
	r->handle = h;
	r->done = answer_released;
	cube_tree_submit(f->tree, r);
}

bool cube_fuse_opened_before(const struct cube_fuse_args *a)
{
	uint64_t fh = cube_fh_opened(&a->f->fh, a->unique);
	const struct cube_keep_handle *k = cube_fh_record(&a->f->fh, fh);
	struct cube_fuse_real_open open = {.fh = fh};
	uint32_t flags = 0;

	if (k == NULL || cube_fh_get(&a->f->fh, fh) == NULL)
		return false;
	if (k->kind == CUBE_KEEP_TREE)
		flags = CUBE_FOPEN_DIRECT_IO | ((k->flags & O_ACCMODE) == O_RDWR ? CUBE_FOPEN_STREAM : 0);
	open.id = k->backing;
	open.direct = k->kind == CUBE_KEEP_FILE && cube_fuse_real_direct(a->f, k->key, k->flags, k->backing);
	if (k->kind == CUBE_KEEP_FILE)
		(void)cube_fuse_reply_real(a->req, &open);
	else
		(void)cube_fuse_reply_open(a->req, fh, flags);
	return true;
}

static void answer_open(struct cube_fuse_call *c)
{
	uint32_t flags = c->r.constant ? CUBE_FOPEN_KEEP_CACHE : CUBE_FOPEN_DIRECT_IO;

	if (c->r.stream)
		flags |= CUBE_FOPEN_STREAM;
	if (!c->r.flushes)
		flags |= CUBE_FOPEN_NOFLUSH;
	cube_fh_set(&c->a.f->fh, c->fh, c->r.opened);
	if (cube_fuse_reply_open(c->a.req, c->fh, flags) == -ENOENT)
		answer_give_up(c->a.f, c->fh, c->r.opened);
}

static void answer_read(struct cube_fuse_call *c)
{
	(void)fuse_reply_buf(c->a.req, c->r.out, c->r.out_len);
}

static void answer_write(struct cube_fuse_call *c)
{
	(void)fuse_reply_write(c->a.req, (size_t)c->r.result);
}

static void answer_lseek(struct cube_fuse_call *c)
{
	(void)fuse_reply_lseek(c->a.req, (off_t)c->r.offset);
}

static void answer_poll(struct cube_fuse_call *c)
{
	(void)fuse_reply_poll(c->a.req, (unsigned)c->r.result);
}

static void answer_opendir(struct cube_fuse_call *c)
{
	(void)cube_fuse_dir_open(&c->a, NULL);
}

static void answer_listing(struct cube_fuse_call *c)
{
	(void)fuse_reply_buf(c->a.req, c->buf, c->len);
}

static void (*const answer_ops[CUBE_REQ_COUNT])(struct cube_fuse_call *) = {
	[CUBE_REQ_LOOKUP] = answer_name,     [CUBE_REQ_GETATTR] = answer_attr,
	[CUBE_REQ_SETATTR] = answer_attr,    [CUBE_REQ_READLINK] = answer_link,
	[CUBE_REQ_MKNOD] = answer_name,      [CUBE_REQ_MKDIR] = answer_name,
	[CUBE_REQ_SYMLINK] = answer_name,    [CUBE_REQ_LINK] = answer_name,
	[CUBE_REQ_UNLINK] = answer_nothing,  [CUBE_REQ_RMDIR] = answer_nothing,
	[CUBE_REQ_RENAME] = answer_nothing,  [CUBE_REQ_CREATE] = answer_name,
	[CUBE_REQ_ACCESS] = answer_nothing,  [CUBE_REQ_STATFS] = answer_statfs,
	[CUBE_REQ_XATTR] = answer_xattr,     [CUBE_REQ_OPEN] = answer_open,
	[CUBE_REQ_READ] = answer_read,       [CUBE_REQ_WRITE] = answer_write,
	[CUBE_REQ_FLUSH] = answer_nothing,   [CUBE_REQ_RELEASE] = answer_nothing,
	[CUBE_REQ_LSEEK] = answer_lseek,     [CUBE_REQ_POLL] = answer_poll,
	[CUBE_REQ_OPENDIR] = answer_opendir, [CUBE_REQ_READDIR] = answer_listing,
};

void cube_fuse_answer(struct cube_fuse_call *c, int result)
{
	if (c->r.op == CUBE_REQ_RELEASE)
		cube_fh_give(&c->a.f->fh, c->a.fi.fh);
	if (result < 0 && c->a.asked == CUBE_FUSE_TMPFILE)
		result = -EOPNOTSUPP; /* nothing of ours is without a name */
	if (result < 0 && c->fh != 0)
		cube_fh_give(&c->a.f->fh, c->fh);
	if (result < 0)
		(void)fuse_reply_err(c->a.req, -result);
	else
		answer_ops[c->r.op](c);
}

int cube_fuse_list_entry(struct cube_req *r, const char *name, const struct cube_tree_entry *e, uint64_t next)
{
	struct cube_fuse_call *c = cube_container_of(r, struct cube_fuse_call, r);
	struct fuse_entry_param p = answer_entry(e, false);
	size_t room = c->a.size - c->len, need;

	if (r->plus)
		need = fuse_add_direntry_plus(c->a.req, c->buf + c->len, room, name, &p, (off_t)next);
	else
		need = fuse_add_direntry(c->a.req, c->buf + c->len, room, name, &e->st, (off_t)next);
	if (need > room)
		return 1;
	c->len += need;
	return 0;
}
