/* SPDX-License-Identifier: Apache-2.0 */
/* Directories below one that somebody else may change at any moment. */
#include "backends/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/macros.h"

static int beneath_open(int dirfd, const char *name)
{
	struct stat st;
	int fd = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	if (errno == ENOTDIR && fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
		return -ELOOP;
	return -errno;
}

/* -1 for @uid and @gid leaves the owner as it comes. */
static int beneath_make(int dirfd, const char *name, const struct cube_file_owner *make)
{
	if (mkdirat(dirfd, name, 0700) < 0)
		return errno == EEXIST ? 0 : -errno;
	if (fchownat(dirfd, name, make->uid, make->gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchmodat(dirfd, name, make->mode, 0) < 0)
		return -errno;
	return 0;
}

int cube_file_beneath(int dirfd, const char *path, const struct cube_file_owner *make)
{
	cube_auto_fd at = openat(dirfd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_MAX + 1];

	if (at < 0)
		return -errno;
	for (path += strspn(path, "/"); *path != '\0'; path += strspn(path, "/")) {
		size_t n = strcspn(path, "/");
		int next, r;

		if (n > NAME_MAX)
			return -ENAMETOOLONG;
		if (n <= 2 && strncmp(path, "..", n) == 0)
			return -EINVAL;
		memcpy(name, path, n);
		name[n] = '\0';
		next = beneath_open(at, name);
		if (next == -ENOENT && make != NULL) {
			r = beneath_make(at, name, make);
			next = r < 0 ? r : beneath_open(at, name);
		}
		if (next < 0)
			return next;
		close(at);
		at = next;
		path += n;
	}
	return cube_steal_fd(&at);
}
