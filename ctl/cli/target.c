/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the directory of the sandbox that is meant. */
#include "ctl/cli/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "ctl/cli/mounts.h"

int cube_cli_target(const char *given, int *ret_fd, struct cube_err *err)
{
	const char *mount = getenv("CUBEFS_MOUNT");
	cube_auto_str only = NULL;
	cube_auto_str path = NULL;
	cube_auto_fd fd = -1;

	if (strchr(given, '/') != NULL) {
		path = cube_strdup(given);
	} else {
		if (mount == NULL || mount[0] == '\0') {
			int r = cube_mounts_only(&only, err);

			if (r < 0)
				return r;
			mount = only;
		}
		path = cube_asprintf("%s/%s", mount, given);
	}
	if (path == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return cube_fail(err, -errno, "%s: %s; `ls` of the mount shows what there is", path,
				 cube_errno_text(errno));
	if (faccessat(fd, "jobs/clone", F_OK, 0) < 0)
		return cube_fail(err, -EINVAL, "%s is no sandbox in which commands can run", path);
	*ret_fd = cube_steal_fd(&fd);
	return 0;
}
