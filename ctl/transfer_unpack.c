/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks an archive, which is hostile, into a directory that nobody else knows: every name is walked part by part
 * beneath it and never through a link, not even one that the archive itself has made. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "ctl/transfer_priv.h"

#define UNPACK_BLOCK (256u << 10)

struct unpack {
	struct cube_copying *c;
	struct archive *a;
	int to;
};

/* "./a//b/" is "a/b"; -EINVAL for what is absolute or has "..". *ret_depth: directories above it. */
static int unpack_name(const char *raw, char out[PATH_MAX], unsigned *ret_depth)
{
	size_t len = 0;
	unsigned parts = 0;

	if (raw == NULL || *raw == '/')
		return -EINVAL;
	for (; *raw != '\0'; raw += strspn(raw, "/")) {
		size_t n = strcspn(raw, "/");

		if (n == 2 && strncmp(raw, "..", 2) == 0)
			return -EINVAL;
		if (n != 1 || *raw != '.') {
			if (len + n + 2 > PATH_MAX || n > NAME_MAX)
				return -ENAMETOOLONG;
			if (parts++ > 0)
				out[len++] = '/';
			memcpy(out + len, raw, n);
			len += n;
		}
		raw += n;
	}
	out[len] = '\0';
	*ret_depth = parts > 0 ? parts - 1 : 0;
	return 0;
}

/* The directory of @path, made where the archive has none for it, and the last part. */
static int unpack_above(const struct unpack *u, char *path, const char **ret_name)
{
	const struct cube_file_owner make = {.uid = u->c->own ? u->c->uid : (uid_t)-1,
					     .gid = u->c->own ? u->c->gid : (gid_t)-1,
					     .mode = 0755};
	char *slash = strrchr(path, '/');

	*ret_name = slash != NULL ? slash + 1 : path;
	if (slash != NULL)
		*slash = '\0';
	return cube_file_beneath(u->to, slash != NULL ? path : "", &make);
}

static int unpack_data(const struct unpack *u, int fd, struct archive_entry *e)
{
	const void *data;
	la_int64_t offset;
	size_t len;
	int got, r = 0;

	while (r == 0 && (got = archive_read_data_block(u->a, &data, &len, &offset)) != ARCHIVE_EOF) {
		if (got < ARCHIVE_WARN)
			return -EBADMSG;
		r = cube_copy_go_on(u->c);
		if (r < 0)
			return r;
		if (lseek(fd, offset, SEEK_SET) < 0)
			return -errno;
		r = cube_file_write_all(fd, data, len);
		u->c->bytes += len;
	}
	if (r == 0 && archive_entry_size_is_set(e) && ftruncate(fd, archive_entry_size(e)) < 0)
		r = -errno; /* a hole at the end */
	return r;
}

static int unpack_finish(const struct unpack *u, int fd, bool dir, struct archive_entry *e)
{
	const struct timespec mtime = {.tv_sec = archive_entry_mtime(e),
				       .tv_nsec = archive_entry_mtime_nsec(e)};

	return cube_copy_finish(u->c, fd, dir, archive_entry_perm(e), &mtime);
}

/* A later one of the same name counts. */
static int unpack_file(const struct unpack *u, int dir, const char *name, struct archive_entry *e)
{
	cube_auto_fd fd = -1;
	int r;

	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = cube_copy_create(u->c, dir, name);
	if (fd < 0)
		return fd;
	r = unpack_data(u, fd, e);
	u->c->files++;
	return r == 0 ? unpack_finish(u, fd, false, e) : r;
}

static int unpack_directory(const struct unpack *u, int dir, const char *name, struct archive_entry *e)
{
	cube_auto_fd fd = cube_copy_mkdir(u->c, dir, name);

	if (fd == -EEXIST) {
		fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
	}
	if (fd < 0)
		return fd;
	u->c->files++;
	return unpack_finish(u, fd, true, e);
}

static int unpack_hardlink(const struct unpack *u, int dir, const char *name, const char *raw)
{
	char path[PATH_MAX];
	cube_auto_fd other = -1;
	const char *from;
	unsigned depth;
	int r = unpack_name(raw, path, &depth);

	if (r < 0)
		return r;
	other = unpack_above(u, path, &from);
	if (other < 0)
		return other;
	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return -errno;
	u->c->files++;
	return linkat(other, from, dir, name, 0) < 0 ? -errno : 0;
}

static int unpack_symlink(const struct unpack *u, int dir, const char *name, struct archive_entry *e,
			  unsigned depth)
{
	const char *target = archive_entry_symlink(e);

	if (target == NULL)
		target = archive_entry_symlink_utf8(e);
	if (target == NULL || *target == '\0')
		return -EBADMSG;
	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return -errno;
	return cube_copy_symlink(u->c, dir, name, target, depth);
}

static int unpack_make(struct unpack *u, char *path, unsigned depth, struct archive_entry *e)
{
	const char *link = archive_entry_hardlink(e), *name;
	cube_auto_fd dir = unpack_above(u, path, &name);

	if (dir < 0)
		return dir;
	if (link == NULL)
		link = archive_entry_hardlink_utf8(e);
	if (link != NULL)
		return unpack_hardlink(u, dir, name, link);
	switch (archive_entry_filetype(e)) {
	case AE_IFREG:
		return unpack_file(u, dir, name, e);
	case AE_IFDIR:
		return unpack_directory(u, dir, name, e);
	case AE_IFLNK:
		return unpack_symlink(u, dir, name, e, depth);
	default:
		u->c->skipped++;
		return 0;
	}
}

static int unpack_refuse(const struct unpack *u, const char *raw, int code, struct cube_err *err)
{
	const char *name = raw != NULL ? raw : "(no name)";

	if (code == -EINVAL)
		return cube_fail(err, code, "'%.120s' is absolute or has '..' in it", name);
	if (code == -ELOOP || code == -ENOTDIR)
		return cube_fail(err, -EINVAL, "'%.120s' lies beyond a link or a file", name);
	if (code == -EBADMSG)
		return cube_fail(err, -EINVAL, "'%.120s': damaged archive: %s", name,
				 archive_error_string(u->a) != NULL ? archive_error_string(u->a) : "cut off");
	return cube_fail(err, code, "'%.120s': %s", name, cube_errno_text(code));
}

static int unpack_entry(struct unpack *u, struct archive_entry *e, struct cube_err *err)
{
	const char *raw = archive_entry_pathname(e);
	char path[PATH_MAX];
	unsigned depth;
	int r;

	if (raw == NULL)
		raw = archive_entry_pathname_utf8(e);
	r = unpack_name(raw, path, &depth);
	if (r == 0)
		r = cube_copy_go_on(u->c);
	if (r == 0 && path[0] != '\0') /* the top itself has its owner and mode */
		r = unpack_make(u, path, depth, e);
	return r < 0 ? unpack_refuse(u, raw, r, err) : 0;
}

static int unpack_all(struct unpack *u, struct cube_err *err)
{
	struct archive_entry *e;
	int got, r = 0;

	while (r == 0 && (got = archive_read_next_header(u->a, &e)) != ARCHIVE_EOF) {
		if (got < ARCHIVE_WARN)
			return cube_fail(err, -EINVAL, "no archive (tar, gz, xz, zst, zip), or damaged: %s",
					 archive_error_string(u->a) != NULL ? archive_error_string(u->a)
									    : "cut off");
		r = cube_cancel_fired(u->c->cancel) ? cube_fail(err, -EINTR, "interrupted")
						    : unpack_entry(u, e, err);
	}
	return r;
}

int cube_copy_archive(struct cube_copying *c, int from, int to, struct cube_err *err)
{
	struct unpack u = {.c = c, .to = to, .a = archive_read_new()};
	int r = -ENOMEM;

	if (u.a == NULL)
		return cube_fail(err, r, "out of memory");
	(void)archive_read_support_filter_gzip(u.a);
	(void)archive_read_support_filter_bzip2(u.a);
	(void)archive_read_support_filter_xz(u.a);
	(void)archive_read_support_filter_zstd(u.a);
	(void)archive_read_support_format_tar(u.a);
	(void)archive_read_support_format_zip(u.a);
	if (archive_read_open_fd(u.a, from, UNPACK_BLOCK) != ARCHIVE_OK)
		r = cube_fail(err, -EINVAL, "no archive (tar, gz, xz, zst, zip): %s",
			      archive_error_string(u.a) != NULL ? archive_error_string(u.a) : "empty");
	else
		r = unpack_all(&u, err);
	archive_read_free(u.a);
	return r;
}
