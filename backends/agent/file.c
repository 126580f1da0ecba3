/* SPDX-License-Identifier: Apache-2.0 */
/* Finds cube-init's binary. */
#include "backends/agent/file.h"

#include "backends/base/file.h"
#include "backends/base/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int agent_try(const char *path)
{
	cube_auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & S_IXUSR))
		return -ENOENT;
	return cube_steal_fd(&fd);
}

int cube_agent_file_open(struct cube_err *err)
{
	static const char *const beside[] = {"cube-init", "../cube-init", "../libexec/cubefs/cube-init"};
	const char *named = getenv("CUBEFS_AGENT"); /* nobody here calls setenv */
	char self[PATH_MAX], path[PATH_MAX + 32];
	ssize_t n;
	int fd;

	if (named && *named) {
		fd = agent_try(named);
		return fd >= 0 ? fd : cube_fail(err, -ENOENT, "CUBEFS_AGENT=%s is no program", named);
	}
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[n > 0 ? n : 0] = 0;
	for (size_t i = 0; strrchr(self, '/') && i < CUBE_COUNT(beside); i++) {
		(void)snprintf(path, sizeof(path), "%.*s/%s", (int)(strrchr(self, '/') - self), self,
			       beside[i]);
		fd = agent_try(path);
		if (fd >= 0)
			return fd;
	}
	fd = agent_try("/usr/libexec/cubefs/cube-init");
	return fd >= 0 ? fd
		       : cube_fail(err, -ENOENT,
				   "cube-init is not installed beside %s: install cubefs whole or set "
				   "CUBEFS_AGENT",
				   self);
}

int cube_agent_file_copy(int from, int to)
{
	char chunk[65536];
	ssize_t n;
	int rc = 0;

	while (rc == 0 && (n = read(from, chunk, sizeof(chunk))) != 0)
		rc = n < 0 ? -errno : cube_file_write_all(to, chunk, (size_t)n);
	return rc;
}
