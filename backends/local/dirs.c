/* SPDX-License-Identifier: Apache-2.0 */
/* A look at every directory in a directory. */
#include "backends/local/dirs.h"

#include "backends/base/macros.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int cube_local_dirs_each(int dirfd_, const char *path, int (*fn)(void *ctx, int dir, const char *name),
			 void *ctx)
{
	int fd = openat(dirfd_, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	while (rc == 0 && (e = readdir(d)) != NULL) {
		cube_auto_fd dir = -1;

		if (e->d_name[0] == '.')
			continue;
		dir = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (dir >= 0)
			rc = fn(ctx, dir, e->d_name);
	}
	closedir(d);
	return rc;
}
