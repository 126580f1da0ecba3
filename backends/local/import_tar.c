/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks an archive into a template.
 *
 * The archive is hostile until it is unpacked. Names that are absolute or have `..` are refused. The
 * directory of each entry is opened beneath the root by the kernel (RESOLVE_BENEATH), so that links that the
 * archive itself made lead nowhere else; the last name is never followed. Extended attributes are not
 * restored: among them are overlayfs's own marks. */
#include "backends/local/template_priv.h"

#include "backends/base/file.h"
#include "backends/base/macros.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TAR_BLOCK (256u << 10)

struct tar {
	struct cube_local_import *im;
	struct archive *a;
	enum cube_local_tar how;
	uint64_t size; /* of the archive, packed */
	struct cube_err *err;
};

/* ---- names ---- */

/* "./usr//bin/" is "usr/bin", "./" is "". -EINVAL for an absolute name or one with "..". */
static int tar_name(const char *raw, char *out, size_t size)
{
	size_t len = 0;

	if (!raw || *raw == '/')
		return -EINVAL;
	while (*raw) {
		size_t n = strcspn(raw, "/");

		if (n == 2 && raw[0] == '.' && raw[1] == '.')
			return -EINVAL;
		if (n > 0 && !(n == 1 && raw[0] == '.')) {
			if (len + n + 2 > size)
				return -ENAMETOOLONG;
			if (len > 0)
				out[len++] = '/';
			memcpy(out + len, raw, n);
			len += n;
		}
		raw += n + (raw[n] == '/');
	}
	out[len] = 0;
	return 0;
}

/* A directory beneath the root: links on the way are followed as long as they stay inside. */
static int tar_open_dir(const struct tar *t, const char *path)
{
	/* The links of a layer mean what they mean inside; those of an archive that is given for itself must
	 * not lead out of it. */
	uint64_t bound = t->how == CUBE_TAR_PLAIN ? RESOLVE_BENEATH : RESOLVE_IN_ROOT;
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
			       .resolve = bound | RESOLVE_NO_MAGICLINKS};
	long fd = syscall(SYS_openat2, t->im->root, *path ? path : ".", &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

/* The directory of the name @path, and its last part; *path is cut there. */
static int tar_open_above(const struct tar *t, char *path, const char **ret_name)
{
	char *slash = strrchr(path, '/');

	*ret_name = slash ? slash + 1 : path;
	if (!slash)
		return tar_open_dir(t, "");
	*slash = 0;
	return tar_open_dir(t, path);
}

/* An archive need not have entries for the directories of its files. */
static int tar_make_dirs(const struct tar *t, const char *dir)
{
	char part[PATH_MAX];

	for (size_t n = strcspn(dir, "/");; n += 1 + strcspn(dir + n + 1, "/")) {
		cube_auto_fd above = -1;
		const char *name;

		(void)snprintf(part, sizeof(part), "%.*s", (int)n, dir);
		above = tar_open_above(t, part, &name);
		if (above < 0)
			return above;
		if (mkdirat(above, name, 0755) == 0) {
			if (fchownat(above, name, t->im->ids->uid, t->im->ids->gid, AT_SYMLINK_NOFOLLOW) < 0)
				return -errno;
		} else if (errno != EEXIST) {
			return -errno;
		}
		if (!dir[n])
			return 0;
	}
}

static int tar_open_parent(const struct tar *t, char *path, const char **ret_name)
{
	int fd = tar_open_above(t, path, ret_name), rc;

	if (fd != -ENOENT)
		return fd;
	rc = tar_make_dirs(t, path);
	return rc < 0 ? rc : tar_open_dir(t, path);
}

/* ---- entries ---- */

static const char *tar_pathname(struct archive_entry *e)
{
	const char *name = archive_entry_pathname(e);

	return name ? name : archive_entry_pathname_utf8(e);
}

static void tar_progress(const struct tar *t)
{
	int64_t done = archive_filter_bytes(t->a, -1);

	cube_local_import_progress(t->im, done > 0 ? (uint64_t)done : 0, t->size);
}

static uid_t tar_id(uint32_t base, uint32_t count, int64_t id)
{
	return base + (id >= 0 && id < (int64_t)count ? (uint32_t)id : 0);
}

/* Owner before mode, since chown takes setuid away. */
static int tar_attributes(const struct tar *t, int dir, const char *name, struct archive_entry *e)
{
	const struct cube_ns_ids *ids = t->im->ids;
	const struct timespec times[2] = {{archive_entry_mtime(e), archive_entry_mtime_nsec(e)},
					  {archive_entry_mtime(e), archive_entry_mtime_nsec(e)}};

	if (fchownat(dir, name, tar_id(ids->uid, ids->count, archive_entry_uid(e)),
		     tar_id(ids->gid, ids->count, archive_entry_gid(e)), AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (archive_entry_filetype(e) != AE_IFLNK &&
	    fchmodat(dir, name, archive_entry_perm(e) & 07777, 0) < 0)
		return -errno;
	return utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int tar_data(const struct tar *t, int fd)
{
	const void *data;
	size_t len;
	la_int64_t offset;
	int got, rc = 0;

	while (rc == 0 && (got = archive_read_data_block(t->a, &data, &len, &offset)) != ARCHIVE_EOF) {
		if (got < ARCHIVE_WARN)
			return -EBADMSG;
		if (cube_cancel_fired(t->im->cancel))
			return -EINTR;
		if (lseek(fd, offset, SEEK_SET) < 0)
			return -errno;
		rc = cube_file_write_all(fd, data, len);
		t->im->bytes += len;
		if (rc == 0)
			rc = cube_local_import_room(t->im);
		tar_progress(t);
	}
	return rc;
}

/* What is in the way of something else. */
static int tar_make_room(const struct tar *t, int dir, const char *name)
{
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno == EISDIR && t->how == CUBE_TAR_LAYER)
		return cube_file_remove_tree(dir, name);
	return -errno;
}

static int tar_file(const struct tar *t, int dir, const char *name, struct archive_entry *e)
{
	cube_auto_fd fd = -1;
	int rc;

	rc = tar_make_room(t, dir, name);
	if (rc < 0)
		return rc;
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = tar_data(t, fd);
	if (rc == 0 && ftruncate(fd, archive_entry_size(e)) < 0) /* a hole at the end */
		rc = -errno;
	return rc;
}

static int tar_directory(const struct tar *t, int dir, const char *name, struct archive_entry *e)
{
	struct stat st;

	(void)e;
	if (mkdirat(dir, name, 0755) == 0)
		return 0;
	if (errno != EEXIST || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode) || t->how != CUBE_TAR_LAYER)
		return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
	return unlinkat(dir, name, 0) < 0 || mkdirat(dir, name, 0755) < 0 ? -errno : 0;
}

static int tar_symlink(const struct tar *t, int dir, const char *name, struct archive_entry *e)
{
	const char *target = archive_entry_symlink(e);

	int rc;

	if (!target)
		target = archive_entry_symlink_utf8(e);
	if (!target || !*target)
		return -EBADMSG;
	rc = tar_make_room(t, dir, name);
	if (rc < 0)
		return rc;
	return symlinkat(target, dir, name) < 0 ? -errno : 0;
}

static int tar_hardlink(const struct tar *t, int dir, const char *name, const char *raw)
{
	char path[PATH_MAX];
	const char *from;
	cube_auto_fd other = -1;
	int rc = tar_name(raw, path, sizeof(path));

	if (rc < 0)
		return rc;
	other = tar_open_above(t, path, &from);
	if (other < 0)
		return other;
	rc = tar_make_room(t, dir, name);
	if (rc < 0)
		return rc;
	return linkat(other, from, dir, name, 0) < 0 ? -errno : 0;
}

static const struct {
	mode_t type;
	int (*make)(const struct tar *t, int dir, const char *name, struct archive_entry *e);
} tar_kinds[] = {
	{AE_IFREG, tar_file},
	{AE_IFDIR, tar_directory},
	{AE_IFLNK, tar_symlink},
};

/* Where roots of whole systems have devices and fifos. The sandbox has a /dev and a /run of its own. */
static bool tar_may_skip(const char *path)
{
	return strncmp(path, "dev/", 4) == 0 || strncmp(path, "run/", 4) == 0;
}

static int tar_make(struct tar *t, char *path, struct archive_entry *e)
{
	const char *link = archive_entry_hardlink(e), *name;
	cube_auto_fd dir = tar_open_parent(t, path, &name);
	int rc = -EMEDIUMTYPE;

	if (!link)
		link = archive_entry_hardlink_utf8(e);
	if (dir < 0)
		return dir;
	if (link)
		return tar_hardlink(t, dir, name, link);
	for (size_t i = 0; i < CUBE_COUNT(tar_kinds); i++)
		if (archive_entry_filetype(e) == tar_kinds[i].type)
			rc = tar_kinds[i].make(t, dir, name, e);
	return rc == 0 ? tar_attributes(t, dir, name, e) : rc;
}

/* ---- whiteouts ---- */

#define TAR_WHITEOUT ".wh."
#define TAR_OPAQUE   ".wh..wh..opq"

static const char *tar_last(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool tar_is_whiteout(const char *path)
{
	return strncmp(tar_last(path), TAR_WHITEOUT, strlen(TAR_WHITEOUT)) == 0;
}

static int tar_remove(void *ctx, int dir, const char *name)
{
	(void)ctx;
	return cube_file_remove_tree(dir, name);
}

/* Other names that begin so are notes of some old storage drivers. */
static int tar_whiteout(struct tar *t, char *path)
{
	const char *name;
	cube_auto_fd dir = tar_open_above(t, path, &name);

	if (dir < 0)
		return dir == -ENOENT || dir == -ENOTDIR ? 0 : dir;
	if (strcmp(name, TAR_OPAQUE) == 0)
		return cube_file_each(dir, ".", tar_remove, NULL);
	name += strlen(TAR_WHITEOUT);
	if (strncmp(name, TAR_WHITEOUT, strlen(TAR_WHITEOUT)) == 0)
		return 0;
	if (*name == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EINVAL;
	return cube_file_remove_tree(dir, name);
}

/* ---- refusals ---- */

static const struct {
	int code;
	const char *why;
} tar_reasons[] = {
	{-EINVAL, "it is absolute or has '..' in its name"},
	{-EXDEV, "a link in its path leads out of the template"},
	{-ELOOP, "a link in its path leads in circles"},
	{-ENOTDIR, "something in its path is no directory"},
	{-EISDIR, "it would replace a directory"},
	{-ENOENT, "what it is a link to is not there"},
	{-ENAMETOOLONG, "its name is too long"},
	{-EMEDIUMTYPE, "it is a device, a fifo or a socket"},
	{-EFBIG, "it is larger than a file can be"},
};

static int tar_refuse(const struct tar *t, const char *raw, int code)
{
	for (size_t i = 0; i < CUBE_COUNT(tar_reasons); i++)
		if (tar_reasons[i].code == code)
			return cube_fail(t->err, -EINVAL, "damaged archive: %.120s: %s",
					 raw ? raw : "(no name)", tar_reasons[i].why);
	if (code == -EDQUOT)
		return cube_fail(t->err, code,
				 "%.120s: the archive becomes more than a template may be: %" PRIu64
				 " bytes (template_size; 0: any) or %" PRIu64 " entries (template_files)",
				 raw ? raw : "(no name)", t->im->bounds.bytes, t->im->bounds.files);
	if (code == -EBADMSG)
		return cube_fail(t->err, -EINVAL, "damaged archive: %.120s: %s", raw ? raw : "(no name)",
				 archive_error_string(t->a) ? archive_error_string(t->a)
							    : "its data is incomplete");
	return cube_fail(t->err, code, "cannot unpack %.120s: %s", raw ? raw : "(no name)",
			 cube_errno_text(code));
}

static int tar_entry(struct tar *t, struct archive_entry *e)
{
	const char *raw = tar_pathname(e);
	char path[PATH_MAX];
	int rc = tar_name(raw, path, sizeof(path));

	t->im->entries += t->how != CUBE_TAR_WHITEOUTS; /* its names come again */
	if (rc == 0 && !*path)                          /* the root itself: its mode stays ours */
		return 0;
	if (t->how != CUBE_TAR_PLAIN && rc == 0 && tar_is_whiteout(path) != (t->how == CUBE_TAR_WHITEOUTS))
		return 0; /* it is the other pass's */
	if (rc == 0)
		rc = cube_local_import_room(t->im);
	if (rc == 0) {
		char cut[PATH_MAX];

		memcpy(cut, path, strlen(path) + 1);
		rc = t->how == CUBE_TAR_WHITEOUTS ? tar_whiteout(t, cut) : tar_make(t, cut, e);
	}
	if (rc == -EMEDIUMTYPE && tar_may_skip(path)) {
		t->im->skipped++;
		return 0;
	}
	if (rc < 0)
		return tar_refuse(t, raw, rc);
	t->im->files++;
	tar_progress(t);
	return 0;
}

static int tar_entries(struct tar *t)
{
	struct archive_entry *e;
	int got, rc = 0;

	while (rc == 0 && (got = archive_read_next_header(t->a, &e)) != ARCHIVE_EOF) {
		if (got < ARCHIVE_WARN)
			return cube_fail(t->err, -EINVAL, "damaged archive: %s", archive_error_string(t->a));
		rc = cube_cancel_fired(t->im->cancel) ? cube_fail(t->err, -EINTR, "interrupted")
						      : tar_entry(t, e);
	}
	return rc;
}

/* ---- the archive ---- */

static struct archive *tar_open(int fd, struct cube_err *err)
{
	static int (*const filters[])(struct archive *) = {
		archive_read_support_filter_none,  archive_read_support_filter_gzip,
		archive_read_support_filter_bzip2, archive_read_support_filter_xz,
		archive_read_support_filter_zstd,
	};
	struct archive *a = archive_read_new();

	for (size_t i = 0; a && i < CUBE_COUNT(filters); i++)
		(void)filters[i](a);
	if (!a || archive_read_support_format_tar(a) != ARCHIVE_OK) {
		archive_read_free(a);
		(void)cube_fail(err, -ENOMEM, "out of memory");
		return NULL;
	}
	if (archive_read_open_fd(a, fd, TAR_BLOCK) != ARCHIVE_OK) {
		(void)cube_fail(err, -EINVAL, "no tar archive: %s", archive_error_string(a));
		archive_read_free(a);
		return NULL;
	}
	return a;
}

int cube_local_import_tar(struct cube_local_import *im, int fd, enum cube_local_tar how, struct cube_err *err)
{
	struct cube_err inner = {0};
	struct tar t = {.im = im, .how = how, .err = &inner};
	struct stat st;
	int rc;

	if (lseek(fd, 0, SEEK_SET) < 0 || fstat(fd, &st) < 0)
		return cube_fail_errno(err, "cannot read the archive");
	t.size = (uint64_t)st.st_size;
	t.a = tar_open(fd, &inner);
	rc = t.a ? tar_entries(&t) : inner.code;
	if (t.a)
		archive_read_free(t.a);
	if (rc < 0)
		(void)cube_fail(err, rc, "%s", inner.text);
	return rc;
}
