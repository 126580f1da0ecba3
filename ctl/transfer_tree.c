/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of directory trees, each side with the rights that it is to be touched with. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "ctl/transfer_priv.h"

#define COPY_DEPTH 200
#define COPY_CHUNK ((size_t)1 << 20)

/* ---- One step on one side ---- */

static int copy_open_as(const struct cube_caller *by, int dir, const char *name, int flags, mode_t mode)
{
	struct cube_caller_rights ours;
	int fd = cube_caller_enter(by, &ours);

	if (fd == 0) {
		fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
		fd = fd < 0 ? -errno : fd;
	}
	cube_caller_leave(&ours);
	return fd;
}

#define COPY_LOOK_BYTES (UINT64_C(16) << 20) /* between two looks at the disk */
#define COPY_LOOK_FILES 4096u

int cube_copy_go_on(struct cube_copying *c)
{
	struct cube_copy_room *room = c->room;
	struct statvfs v;
	uint64_t share;

	if (cube_cancel_fired(c->cancel))
		return -EINTR;
	if (room == NULL || (c->bytes - room->looked_bytes < COPY_LOOK_BYTES &&
			     c->files - room->looked_files < COPY_LOOK_FILES))
		return 0;
	room->looked_bytes = c->bytes;
	room->looked_files = c->files;
	if (fstatvfs(room->fd, &v) < 0)
		return -errno;
	share = (uint64_t)v.f_blocks * v.f_frsize / 100 * room->percent;
	return (uint64_t)v.f_bavail * v.f_frsize < (share > room->reserve ? share : room->reserve) ? -ENOSPC
												   : 0;
}

int cube_copy_create(const struct cube_copying *c, int to, const char *name)
{
	return copy_open_as(c->to, to, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
}

int cube_copy_mkdir(const struct cube_copying *c, int to, const char *name)
{
	struct cube_caller_rights ours;
	int r = cube_caller_enter(c->to, &ours);

	if (r == 0)
		r = mkdirat(to, name, 0700) < 0 ? -errno : 0;
	cube_caller_leave(&ours);
	return r < 0 ? r : copy_open_as(c->to, to, name, O_RDONLY | O_DIRECTORY, 0);
}

/* Owner before mode: chown takes setuid away. */
int cube_copy_finish(const struct cube_copying *c, int fd, bool dir, mode_t mode,
		     const struct timespec *mtime)
{
	const struct timespec times[2] = {*mtime, *mtime};

	if (c->mode >= 0)
		mode = dir ? (mode_t)c->mode | ((mode_t)c->mode & 0444) >> 2 : (mode_t)c->mode;
	if (c->own && fchown(fd, c->uid, c->gid) < 0)
		return -errno;
	if (fchmod(fd, mode & c->keep) < 0 || futimens(fd, times) < 0)
		return -errno;
	return 0;
}

/* "../" so often as there are directories above it, then names without "..": that cannot lead out, whatever the links
 * on the way are, as long as they are such links too. */
static bool copy_link_stays(const char *target, unsigned depth)
{
	bool below = false;

	if (*target == '/')
		return false;
	for (; *target != '\0'; target += strspn(target, "/")) {
		size_t n = strcspn(target, "/");

		if (n == 2 && strncmp(target, "..", 2) == 0) {
			if (below || depth-- == 0)
				return false;
		} else if (n != 1 || *target != '.') {
			below = true;
		}
		target += n;
	}
	return true;
}

int cube_copy_symlink(struct cube_copying *c, int to, const char *name, const char *target, unsigned depth)
{
	struct cube_caller_rights ours;
	int r;

	if (c->links_stay && !copy_link_stays(target, depth)) {
		c->skipped++;
		return 0;
	}
	r = cube_caller_enter(c->to, &ours);
	if (r == 0)
		r = symlinkat(target, to, name) < 0 ? -errno : 0;
	cube_caller_leave(&ours);
	/* A link has no descriptor to change its owner by; the directory is known to nobody else. */
	if (r == 0 && c->own && fchownat(to, name, c->uid, c->gid, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	c->files += r == 0;
	return r;
}

/* ---- Bytes ---- */

static int copy_range(struct cube_copying *c, int from, int to, off_t at, off_t end)
{
	char *data = cube_malloc(COPY_CHUNK);
	int r = data != NULL ? 0 : -ENOMEM;

	while (r == 0 && at < end) {
		size_t want = (size_t)(end - at) < COPY_CHUNK ? (size_t)(end - at) : COPY_CHUNK;
		ssize_t n = pread(from, data, want, at);

		if (n <= 0) {
			r = n < 0 ? -errno : 0;
			break; /* it became shorter meanwhile */
		}
		r = cube_copy_go_on(c);
		if (r == 0 && lseek(to, at, SEEK_SET) < 0)
			r = -errno;
		if (r == 0)
			r = cube_file_write_all(to, data, (size_t)n);
		at += n;
		c->bytes += (uint64_t)n;
	}
	cube_free(data);
	return r;
}

/* Holes stay holes. Where the file system does not know of them there is one piece. */
static int copy_bytes(struct cube_copying *c, int from, int to, off_t size)
{
	int r = 0;

	for (off_t at = 0, end; r == 0 && at < size; at = end) {
		off_t data = lseek(from, at, SEEK_DATA);

		if (data < 0 && errno == ENXIO)
			break;
		at = data < 0 ? at : data;
		end = data < 0 ? size : lseek(from, at, SEEK_HOLE);
		end = end < 0 || end > size ? size : end;
		r = copy_range(c, from, to, at, end);
	}
	return r == 0 && ftruncate(to, size) < 0 ? -errno : r;
}

int cube_copy_file(struct cube_copying *c, int from, int to, const char *name)
{
	cube_auto_fd out = -1;
	struct stat st;
	int r;

	if (fstat(from, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode)) {
		c->skipped++;
		return 0;
	}
	out = cube_copy_create(c, to, name);
	if (out < 0)
		return out;
	r = copy_bytes(c, from, out, st.st_size);
	if (r == 0)
		r = cube_copy_finish(c, out, false, st.st_mode, &st.st_mtim);
	c->files++;
	return r;
}

/* ---- Directories ---- */

static int copy_level(struct cube_copying *c, int from, int to, unsigned depth, struct cube_err *err);

static int copy_dir(struct cube_copying *c, int from, int to, const char *name, unsigned depth,
		    struct cube_err *err)
{
	cube_auto_fd in = copy_open_as(c->from, from, name, O_RDONLY | O_DIRECTORY, 0), out = -1;
	struct stat st;
	int r;

	if (in < 0 || fstat(in, &st) < 0)
		return in < 0 ? in : -errno;
	out = cube_copy_mkdir(c, to, name);
	if (out < 0)
		return out;
	c->files++;
	r = copy_level(c, in, out, depth + 1, err);
	return r == 0 ? cube_copy_finish(c, out, true, st.st_mode, &st.st_mtim) : r;
}

static int copy_link(struct cube_copying *c, int from, int to, const char *name, unsigned depth)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return cube_copy_symlink(c, to, name, target, depth);
}

static int copy_regular(struct cube_copying *c, int from, int to, const char *name)
{
	cube_auto_fd in = copy_open_as(c->from, from, name, O_RDONLY | O_NONBLOCK, 0);

	return in < 0 ? in : cube_copy_file(c, in, to, name);
}

/* What went away since it was listed is not missed; what is mounted there is something else. */
static int copy_entry(struct cube_copying *c, int from, int to, const char *name, unsigned depth,
		      struct cube_err *err)
{
	struct stat st, dir;
	int r = cube_copy_go_on(c);

	if (r < 0)
		return r;
	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISREG(st.st_mode))
		r = copy_regular(c, from, to, name);
	else if (S_ISLNK(st.st_mode))
		r = copy_link(c, from, to, name, depth);
	else if (!S_ISDIR(st.st_mode) || fstat(from, &dir) < 0 || dir.st_dev != st.st_dev)
		c->skipped++;
	else
		r = copy_dir(c, from, to, name, depth, err);
	if (r == -ENOENT)
		r = 0;
	if (r < 0 && err->code == 0)
		(void)cube_fail(err, r, "'%s': %s", name, cube_errno_text(r));
	return r;
}

static int copy_level(struct cube_copying *c, int from, int to, unsigned depth, struct cube_err *err)
{
	int fd = depth < COPY_DEPTH ? copy_open_as(c->from, from, ".", O_RDONLY | O_DIRECTORY, 0) : -ELOOP;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;
	int r = 0;

	if (dir == NULL) {
		r = fd < 0 ? fd : -errno;
		cube_close_auto(&fd);
		return r;
	}
	while (r == 0 && (e = readdir(dir)) != NULL) /* NOLINT(concurrency-mt-unsafe): a stream of our own */
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = copy_entry(c, from, to, e->d_name, depth, err);
	(void)closedir(dir);
	return r;
}

int cube_copy_tree(struct cube_copying *c, int from, int to, struct cube_err *err)
{
	struct cube_err why = {0};
	int r = copy_level(c, from, to, 0, &why);

	return r < 0 ? cube_fail(err, r, "%s", why.code != 0 ? why.text : cube_errno_text(r)) : 0;
}
