/* SPDX-License-Identifier: Apache-2.0 */
/* Directory streams. */
#include "backends/agent/init/dir.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

DIR *init_dir_open(int fd)
{
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int e = errno;

	if (dir == NULL && fd >= 0)
		(void)close(fd);
	errno = e;
	return dir;
}

const char *init_dir_next(DIR *dir)
{
	/* cppcheck-suppress readdirCalled ; no stream is shared, and the agent has one thread */
	const struct dirent *e = readdir(dir); /* NOLINT(concurrency-mt-unsafe): the same */

	return e != NULL ? e->d_name : NULL;
}
