/* SPDX-License-Identifier: Apache-2.0 */
/* libfuse's operations: each puts its arguments into one form and sends them on. Every operation has a
 * handler, since the kernel remembers an ENOSYS for the whole mount. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "fs/fuse/priv.h"

static const struct cube_fuse_op op_lookup = {CUBE_REQ_LOOKUP, true, cube_fuse_real_lookup};
static const struct cube_fuse_op op_getattr = {CUBE_REQ_GETATTR, false, cube_fuse_real_getattr};
static const struct cube_fuse_op op_setattr = {CUBE_REQ_SETATTR, false, cube_fuse_real_setattr};
static const struct cube_fuse_op op_readlink = {CUBE_REQ_READLINK, false, cube_fuse_real_readlink};
static const struct cube_fuse_op op_mknod = {CUBE_REQ_MKNOD, false, cube_fuse_real_mknod};
static const struct cube_fuse_op op_mkdir = {CUBE_REQ_MKDIR, true, cube_fuse_real_mkdir};
static const struct cube_fuse_op op_symlink = {CUBE_REQ_SYMLINK, false, cube_fuse_real_symlink};
static const struct cube_fuse_op op_link = {CUBE_REQ_LINK, false, cube_fuse_real_link};
static const struct cube_fuse_op op_unlink = {CUBE_REQ_UNLINK, false, cube_fuse_real_unlink};
static const struct cube_fuse_op op_rmdir = {CUBE_REQ_RMDIR, false, cube_fuse_real_rmdir};
static const struct cube_fuse_op op_rename = {CUBE_REQ_RENAME, false, cube_fuse_real_rename};
static const struct cube_fuse_op op_create = {CUBE_REQ_CREATE, false, cube_fuse_real_create};
static const struct cube_fuse_op op_access = {CUBE_REQ_ACCESS, false, cube_fuse_real_access};
static const struct cube_fuse_op op_statfs = {CUBE_REQ_STATFS, false, cube_fuse_real_statfs};
static const struct cube_fuse_op op_xattr = {CUBE_REQ_XATTR, false, cube_fuse_real_xattr};
static const struct cube_fuse_op op_open = {CUBE_REQ_OPEN, false, cube_fuse_real_open};
static const struct cube_fuse_op op_read = {CUBE_REQ_READ, false, cube_fuse_real_read};
static const struct cube_fuse_op op_write = {CUBE_REQ_WRITE, false, cube_fuse_real_write};
static const struct cube_fuse_op op_flush = {CUBE_REQ_FLUSH, false, cube_fuse_real_flush};
static const struct cube_fuse_op op_release = {CUBE_REQ_RELEASE, false, cube_fuse_real_release};
static const struct cube_fuse_op op_lseek = {CUBE_REQ_LSEEK, false, cube_fuse_real_lseek};
static const struct cube_fuse_op op_opendir = {CUBE_REQ_OPENDIR, false, cube_fuse_real_opendir};

static const struct cube_fuse_op op_poll = {CUBE_REQ_POLL, false, NULL}; /* of the tree's files only */

/* ---- names ---- */

static struct cube_fuse_args ops_named(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct cube_fuse_args a = cube_fuse_args_of(req, parent);

	a.name = name;
	return a;
}

static void ops_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct cube_fuse_args a = ops_named(req, parent, name);

	cube_fuse_dispatch(&a, &op_lookup);
}

static void ops_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	struct cube_fuse_args a = ops_named(req, parent, name);

	a.mode = mode;
	a.rdev = rdev;
	cube_fuse_dispatch(&a, &op_mknod);
}

static void ops_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct cube_fuse_args a = ops_named(req, parent, name);

	a.mode = mode;
	cube_fuse_dispatch(&a, &op_mkdir);
}

static void ops_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	struct cube_fuse_args a = ops_named(req, parent, name);

	a.data = target;
	a.size = strlen(target) + 1;
	cube_fuse_dispatch(&a, &op_symlink);
}

static void ops_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	struct cube_fuse_args a = ops_named(req, parent, name);

	a.new_node = ino;
	cube_fuse_dispatch(&a, &op_link);
}

static void ops_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct cube_fuse_args a = ops_named(req, parent, name);

	cube_fuse_dispatch(&a, &op_unlink);
}

static void ops_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct cube_fuse_args a = ops_named(req, parent, name);

	cube_fuse_dispatch(&a, &op_rmdir);
}

static void ops_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
		       const char *new_name, unsigned flags)
{
	struct cube_fuse_args a = ops_named(req, parent, name);

	a.new_node = new_parent;
	a.new_name = new_name;
	a.flags = flags;
	cube_fuse_dispatch(&a, &op_rename);
}

static void ops_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		       struct fuse_file_info *fi)
{
	struct cube_fuse_args a = ops_named(req, parent, name);

	a.mode = mode;
	a.fi = *fi;
	cube_fuse_dispatch(&a, &op_create);
}

static void ops_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
	struct fuse_forget_data one = {.ino = ino, .nlookup = n};
	struct cube_fuse *f = fuse_req_userdata(req);

	if (one.ino & CUBE_FILES_ID)
		cube_files_forget(f->files, one.ino, one.nlookup);
	else
		cube_tree_forget(f->tree, one.ino, one.nlookup);
	fuse_reply_none(req);
}

static void ops_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *all)
{
	struct cube_fuse *f = fuse_req_userdata(req);

	for (size_t i = 0; i < count; i++) {
		if (all[i].ino & CUBE_FILES_ID)
			cube_files_forget(f->files, all[i].ino, all[i].nlookup);
		else
			cube_tree_forget(f->tree, all[i].ino, all[i].nlookup);
	}
	fuse_reply_none(req);
}

/* ---- attributes ---- */

static void ops_set_fi(struct cube_fuse_args *a, const struct fuse_file_info *fi)
{
	if (fi == NULL)
		return;
	a->fi = *fi;
	a->has_fi = true;
}

static void ops_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct cube_fuse_args a = cube_fuse_args_of(req, ino);

	ops_set_fi(&a, fi);
	cube_fuse_dispatch(&a, &op_getattr);
}

static const struct {
	int fuse;
	unsigned ours;
} ops_set_bits[] = {
	{FUSE_SET_ATTR_MODE, CUBE_SET_MODE},
	{FUSE_SET_ATTR_UID, CUBE_SET_UID},
	{FUSE_SET_ATTR_GID, CUBE_SET_GID},
	{FUSE_SET_ATTR_SIZE, CUBE_SET_SIZE},
	{FUSE_SET_ATTR_ATIME, CUBE_SET_ATIME},
	{FUSE_SET_ATTR_MTIME, CUBE_SET_MTIME},
	{FUSE_SET_ATTR_ATIME_NOW, CUBE_SET_ATIME_NOW},
	{FUSE_SET_ATTR_MTIME_NOW, CUBE_SET_MTIME_NOW},
};

static void ops_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int set, struct fuse_file_info *fi)
{
	struct cube_fuse_args a = cube_fuse_args_of(req, ino);

	ops_set_fi(&a, fi);
	a.st = *st;
	for (size_t i = 0; i < CUBE_COUNT(ops_set_bits); i++)
		a.set |= set & ops_set_bits[i].fuse ? ops_set_bits[i].ours : 0;
	cube_fuse_dispatch(&a, &op_setattr);
}

static void ops_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct cube_fuse_args a = cube_fuse_args_of(req, ino);

	cube_fuse_dispatch(&a, &op_readlink);
}

static void ops_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
	struct cube_fuse_args a = cube_fuse_args_of(req, ino);

	a.flags = (unsigned)mask;
	cube_fuse_dispatch(&a, &op_access);
}

static void ops_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct cube_fuse_args a = cube_fuse_args_of(req, ino);

	cube_fuse_dispatch(&a, &op_statfs);
}

static void ops_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size,
			 int flags)
{
	struct cube_fuse_args a = ops_named(req, ino, name);

	a.set = 1;
	a.data = value;
	a.size = size;
	a.flags = (unsigned)flags;
	cube_fuse_dispatch(&a, &op_xattr);
}

static void ops_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct cube_fuse_args a = ops_named(req, ino, name);

	a.size = size;
	cube_fuse_dispatch(&a, &op_xattr);
}

static void ops_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct cube_fuse_args a = cube_fuse_args_of(req, ino);

	a.size = size;
	cube_fuse_dispatch(&a, &op_xattr);
}

static void ops_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct cube_fuse_args a = ops_named(req, ino, name);

	a.set = 1;
	cube_fuse_dispatch(&a, &op_xattr);
}

/* ---- open files ---- */

static struct cube_fuse_args ops_opened(fuse_req_t req, fuse_ino_t ino, const struct fuse_file_info *fi)
{
	struct cube_fuse_args a = cube_fuse_args_of(req, ino);

	ops_set_fi(&a, fi);
	return a;
}

static void ops_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct cube_fuse_args a = ops_opened(req, ino, fi);

	cube_fuse_dispatch(&a, &op_open);
}

static void ops_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct cube_fuse_args a = ops_opened(req, ino, fi);

	a.size = size;
	a.off = off;
	cube_fuse_dispatch(&a, &op_read);
}

static void ops_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
		      struct fuse_file_info *fi)
{
	struct cube_fuse_args a = ops_opened(req, ino, fi);

	a.data = data;
	a.size = size;
	a.off = off;
	cube_fuse_dispatch(&a, &op_write);
}

static void ops_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct cube_fuse_args a = ops_opened(req, ino, fi);

	cube_fuse_dispatch(&a, &op_flush);
}

static void ops_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct cube_fuse_args a = ops_opened(req, ino, fi);

	cube_fuse_dispatch(&a, &op_release);
}

static void ops_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi)
{
	struct cube_fuse_args a = ops_opened(req, ino, fi);

	a.off = off;
	a.flags = (unsigned)whence;
	a.fi.flags = whence; /* what the tree looks at */
	cube_fuse_dispatch(&a, &op_lseek);
}

static struct cube_files_handle *ops_real_handle(fuse_req_t req, fuse_ino_t ino,
						 const struct fuse_file_info *fi)
{
	struct cube_fuse *f = fuse_req_userdata(req);

	return ino & CUBE_FILES_ID ? cube_fh_get(&f->fh, fi->fh) : NULL;
}

/* The tree's files have nothing to write out. */
static void ops_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct cube_files_handle *h = ops_real_handle(req, ino, fi);
	int code = h == NULL ? 0 : cube_files_fsync(h, datasync != 0);

	(void)fuse_reply_err(req, -code);
}

static void ops_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
			  struct fuse_file_info *fi)
{
	struct cube_files_handle *h = ops_real_handle(req, ino, fi);
	int code = h == NULL ? -EOPNOTSUPP : cube_files_fallocate(h, mode, off, len);

	(void)fuse_reply_err(req, -code);
}

/* NOLINTNEXTLINE(readability-function-size): libfuse says what the arguments are. */
static void ops_copy_range(fuse_req_t req, fuse_ino_t from, off_t from_off, struct fuse_file_info *from_fi,
			   fuse_ino_t to, off_t to_off, struct fuse_file_info *to_fi, size_t len, int flags)
{
	struct cube_files_handle *in = ops_real_handle(req, from, from_fi),
				 *out = ops_real_handle(req, to, to_fi);
	ssize_t n = -EOPNOTSUPP; /* the kernel copies by itself then */

	if (in != NULL && out != NULL)
		n = cube_files_copy_range(in, from_off, out, to_off, len, (unsigned)flags);
	(void)(n < 0 ? fuse_reply_err(req, (int)-n) : fuse_reply_write(req, (size_t)n));
}

/* NOLINTNEXTLINE(readability-function-size): libfuse says what the arguments are. */
static void ops_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned cmd, void *arg, struct fuse_file_info *fi,
		      unsigned flags, const void *in, size_t in_size, size_t out_size)
{
	(void)ino;
	(void)cmd;
	(void)arg;
	(void)fi;
	(void)flags;
	(void)in;
	(void)in_size;
	(void)out_size;
	(void)fuse_reply_err(req, ENOTTY);
}

/* ---- polling ---- */

struct ops_poller {
	struct cube_poller p;
	struct fuse_pollhandle *handle;
};

static void ops_poller_done(struct cube_poller *p)
{
	struct ops_poller *o = cube_container_of(p, struct ops_poller, p);

	if (p->news)
		(void)fuse_lowlevel_notify_poll(o->handle);
	fuse_pollhandle_destroy(o->handle);
	cube_free(o);
}

static void ops_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
		     struct fuse_pollhandle *handle)
{
	struct cube_fuse_args a = ops_opened(req, ino, fi);
	struct ops_poller *o;

	a.fi.flags = (int)fi->poll_events;
	if (handle != NULL) {
		o = cube_calloc(1, sizeof(*o));
		if (o == NULL) {
			fuse_pollhandle_destroy(handle);
			(void)fuse_reply_err(req, ENOMEM);
			return;
		}
		*o = (struct ops_poller){.p.fn = ops_poller_done, .handle = handle};
		a.poller = &o->p;
	}
	if (!(ino & CUBE_FILES_ID)) {
		cube_fuse_dispatch(&a, &op_poll);
		return;
	}
	if (a.poller != NULL)
		ops_poller_done(a.poller);
	(void)fuse_reply_poll(req, fi->poll_events & (POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM));
}

/* ---- directories ---- */

static void ops_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct cube_fuse_args a = cube_fuse_args_of(req, ino);

	(void)fi;
	if (!a.again || !cube_fuse_opened_before(&a))
		cube_fuse_dispatch(&a, &op_opendir);
}

const struct fuse_lowlevel_ops cube_fuse_ops = {
	.init = cube_fuse_init_conn,
	.lookup = ops_lookup,
	.forget = ops_forget,
	.getattr = ops_getattr,
	.setattr = ops_setattr,
	.readlink = ops_readlink,
	.mknod = ops_mknod,
	.mkdir = ops_mkdir,
	.unlink = ops_unlink,
	.rmdir = ops_rmdir,
	.symlink = ops_symlink,
	.rename = ops_rename,
	.link = ops_link,
	.open = ops_open,
	.read = ops_read,
	.write = ops_write,
	.flush = ops_flush,
	.release = ops_release,
	.fsync = ops_fsync,
	.opendir = ops_opendir,
	.readdir = cube_fuse_readdir,
	.releasedir = cube_fuse_releasedir,
	.fsyncdir = cube_fuse_fsyncdir,
	.statfs = ops_statfs,
	.setxattr = ops_setxattr,
	.getxattr = ops_getxattr,
	.listxattr = ops_listxattr,
	.removexattr = ops_removexattr,
	.access = ops_access,
	.create = ops_create,
	.getlk = cube_fuse_getlk,
	.setlk = cube_fuse_setlk,
	.ioctl = ops_ioctl,
	.poll = ops_poll,
	.forget_multi = ops_forget_multi,
	.flock = cube_fuse_flock,
	.fallocate = ops_fallocate,
	.readdirplus = cube_fuse_readdirplus,
	.copy_file_range = ops_copy_range,
	.lseek = ops_lseek,
};
