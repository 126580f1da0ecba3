/* SPDX-License-Identifier: Apache-2.0 */
/* The way into a running sandbox: a link to its agent. */
#include "backends/local/local_priv.h"

#include "backends/local/listener.h"
#if __has_include("backends/agent/link.h")
#include "backends/agent/link.h"
#endif

#include <errno.h>

int cube_local_link(struct cube_backend *base, const char *id, const struct cube_link_handler *handler,
		    void *ctx, struct cube_cancel *cancel, struct cube_link **ret, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct local_cube *c;
	int rc = cube_local_cube_get(b, id, &c, err), fd = -1;

	if (rc == 0 && !cube_local_cube_runs(c))
		rc = cube_fail(err, -EHOSTDOWN, "sandbox %s does not run", id);
	if (rc == 0)
		rc = cube_local_listener_connect(c->dir, cancel, &fd, err);
#if __has_include("backends/agent/link.h")
	return rc == 0 ? cube_agent_link_new(b->loop, fd, true, handler, ctx, ret, err) : rc;
#else
	(void)handler;
	(void)ctx;
	(void)ret;
	return rc == 0 ? -EIO : rc;
#endif
}
