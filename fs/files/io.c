/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with an open file: system calls on its descriptor. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fs/files/files_priv.h"

/* A file that is open, not a directory. */
static int io_file(const struct cube_files_handle *h)
{
	return h->is_dir ? -EISDIR : cube_fhandle_ok(h);
}

ssize_t cube_files_read(struct cube_files_handle *h, void *data, size_t len, off_t offset)
{
	ssize_t r = io_file(h);

	return r < 0 ? r : cube_fhandle_result(h, pread(h->fd->fd, data, len, offset));
}

ssize_t cube_files_write(struct cube_files_handle *h, const void *data, size_t len, off_t offset)
{
	return cube_files_write_flags(h, data, len, offset, h->flags);
}

/* The descriptor itself never appends, since that could not be ended: pwrite(2) would append too. */
ssize_t cube_files_write_flags(struct cube_files_handle *h, const void *data, size_t len, off_t offset,
			       int flags)
{
	struct iovec all = {.iov_len = len};
	ssize_t r = io_file(h);

	if (r < 0)
		return r;
	memcpy(&all.iov_base, &data, sizeof(data)); /* it has no const */
	if ((flags & O_APPEND) != 0)
		r = pwritev2(h->fd->fd, &all, 1, 0, RWF_APPEND);
	else
		r = pwrite(h->fd->fd, data, len, offset);
	return cube_fhandle_result(h, r);
}

void cube_files_truncated(struct cube_files_handle *h, const struct cube_files_cred *c)
{
	struct stat st;
	mode_t mode;

	if (io_file(h) < 0 || fstat(h->fd->fd, &st) < 0)
		return;
	mode = cube_fattr_written(h->n->tree, c, &st);
	if (mode != st.st_mode)
		(void)fchmod(h->fd->fd, mode & 07777);
}

static int io_sync(struct cube_files_handle *h, bool data_only)
{
	int r = cube_fhandle_ok(h);

	if (r < 0 || h->fd == NULL)
		return r;
	return (int)cube_fhandle_result(h, data_only ? fdatasync(h->fd->fd) : fsync(h->fd->fd));
}

int cube_files_fsync(struct cube_files_handle *h, bool data_only)
{
	return io_sync(h, data_only);
}

int cube_files_fsyncdir(struct cube_files_handle *h, bool data_only)
{
	return io_sync(h, data_only);
}

int cube_files_fallocate(struct cube_files_handle *h, int mode, off_t offset, off_t len)
{
	int r = io_file(h);

	return r < 0 ? r : (int)cube_fhandle_result(h, fallocate(h->fd->fd, mode, offset, len));
}

/* The descriptor's own position is used by nobody. */
off_t cube_files_lseek(struct cube_files_handle *h, off_t offset, int whence)
{
	int r = io_file(h);

	if (r == 0 && whence != SEEK_DATA && whence != SEEK_HOLE)
		r = -EINVAL;
	return r < 0 ? r : cube_fhandle_result(h, lseek(h->fd->fd, offset, whence));
}

ssize_t cube_files_copy_range(struct cube_files_handle *from, off_t from_off, struct cube_files_handle *to,
			      off_t to_off, size_t len, unsigned flags)
{
	ssize_t r = io_file(from);

	if (r == 0)
		r = io_file(to);
	if (r < 0)
		return r;
	r = cube_fhandle_result(from,
				copy_file_range(from->fd->fd, &from_off, to->fd->fd, &to_off, len, flags));
	return cube_fhandle_ok(to) < 0 ? -ESTALE : r;
}
