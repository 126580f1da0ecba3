/* SPDX-License-Identifier: Apache-2.0 */
/* Whole reads, atomic replacement and directories of our own state. Trees are removed in file_remove.c,
 * descriptors passed in file_fd.c. */
#include "backends/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"

#define FILE_CHUNK 16384

int cube_file_read(int dirfd, const char *name, struct cube_buf *out)
{
	cube_auto_fd fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char chunk[FILE_CHUNK];

	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return out->error;
		if (cube_buf_add(out, chunk, (size_t)n) < 0)
			return out->error;
	}
}

int cube_file_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Makes @name new and writes it to the disk. The rename must not overtake the data, hence fsync before it. */
static int file_write_new(int dir, const char *name, const void *data, size_t len, mode_t mode)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	cube_auto_fd fd = openat(dir, name, flags, 0600);
	int r;

	if (fd < 0 && errno == EEXIST) { /* left by a crash */
		if (unlinkat(dir, name, 0) < 0)
			return -errno;
		fd = openat(dir, name, flags, 0600);
	}
	if (fd < 0)
		return -errno;
	r = cube_file_write_all(fd, data, len);
	if (r < 0)
		return r;
	if (fchmod(fd, mode) < 0 || fsync(fd) < 0) /* fchmod: the umask shall not count */
		return -errno;
	return 0;
}

int cube_file_replace(int dirfd, const char *name, const void *data, size_t len, mode_t mode)
{
	cube_auto_fd dir = -1; /* @dirfd may be O_PATH, which cannot be synced */
	cube_auto_str temp = NULL;
	int r;

	if (*name == '\0' || strchr(name, '/') != NULL)
		return -EINVAL;
	/* The thread's number: two that replace the same file at once must not share the temporary one. */
	temp = cube_asprintf(".%s.new.%d", name, (int)gettid());
	if (temp == NULL)
		return -ENOMEM;
	dir = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	r = file_write_new(dir, temp, data, len, mode);
	if (r == 0 && renameat(dir, temp, dir, name) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlinkat(dir, temp, 0);
		return r;
	}
	return fsync(dir) < 0 ? -errno : 0;
}

int cube_file_mkdir(int dirfd, const char *name, mode_t mode, int *ret_fd)
{
	int fd;

	if (mkdirat(dirfd, name, mode) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (ret_fd != NULL)
		*ret_fd = fd;
	else
		(void)close(fd);
	return 0;
}

/* Makes the parent part of @path[0..len), which may be or lead through a link already. */
static int file_mkdir_parent(const char *path, size_t len)
{
	cube_auto_str part = cube_strndup(path, len);
	struct stat st;

	if (part == NULL)
		return -ENOMEM;
	if (mkdir(part, 0755) == 0)
		return 0;
	/* On a read-only file system mkdir says EROFS before EEXIST, below a foreign directory EACCES. */
	if (errno != EEXIST && errno != EROFS && errno != EACCES)
		return -errno;
	if (stat(part, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int cube_file_mkdir_path(const char *path, mode_t mode)
{
	size_t len = strlen(path);

	if (path[0] != '/')
		return -EINVAL;
	while (len > 1 && path[len - 1] == '/')
		len--;
	for (size_t i = 1; i < len; i++) {
		int r = path[i] == '/' && path[i - 1] != '/' ? file_mkdir_parent(path, i) : 0;

		if (r < 0)
			return r;
	}
	cube_auto_str last = cube_strndup(path, len);

	return last == NULL ? -ENOMEM : cube_file_mkdir(AT_FDCWD, last, mode, NULL);
}

int cube_file_each(int dirfd_, const char *name, int (*fn)(void *ctx, int dir, const char *name), void *ctx)
{
	int fd = openat(dirfd_, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (d == NULL) {
		r = -errno;
		cube_close_auto(&fd);
		return r;
	}
	while (r == 0 && (e = readdir(d)) != NULL) /* NOLINT(concurrency-mt-unsafe): a stream of our own */
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = fn(ctx, fd, e->d_name);
	(void)closedir(d);
	return r;
}
