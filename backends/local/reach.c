/* SPDX-License-Identifier: Apache-2.0 */
/* Connections into a sandbox, and what listens there: by the namespaces of its process 1. */
#include "backends/local/local_priv.h"

#include "backends/base/macros.h"
#include "backends/ns/ns.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

int cube_local_cube_proc(const struct local_cube *c, struct cube_err *err)
{
	char path[32];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)c->rec.init.pid);
	/* The directory first: it stays with the process, whose number another one may get. */
	fd = cube_local_cube_runs(c) ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd >= 0 && cube_local_cube_runs(c))
		return fd;
	cube_close_auto(&fd);
	return cube_fail(err, -EHOSTDOWN, "sandbox %s does not run", c->id);
}

static int reach_proc(struct cube_backend *base, const char *id, struct cube_err *err)
{
	struct local_cube *c;
	int rc = cube_local_cube_get(cube_local_of(base), id, &c, err);

	return rc < 0 ? rc : cube_local_cube_proc(c, err);
}

int cube_local_dial(struct cube_backend *base, const char *id, const struct cube_target *target,
		    struct cube_cancel *cancel, int *ret_fd, struct cube_err *err)
{
	cube_auto_fd proc = reach_proc(base, id, err);

	return proc < 0 ? proc : cube_ns_dial(proc, id, target, cancel, ret_fd, err);
}

int cube_local_listening(struct cube_backend *base, const char *id,
			 void (*each)(void *ctx, const struct cube_listener *l), void *ctx,
			 struct cube_err *err)
{
	cube_auto_fd proc = reach_proc(base, id, err);

	return proc < 0 ? proc : cube_ns_listening(proc, each, ctx, err);
}
