/* SPDX-License-Identifier: Apache-2.0 */
/* The way into a running sandbox: a link to its agent. */
#include "backends/local/local_priv.h"

#include "backends/agent/link.h"
#include "backends/agent/listener.h"
#include "backends/ns/oom.h"

#include <errno.h>
#include <unistd.h>

int cube_local_link(struct cube_backend *base, const char *id, const struct cube_link_handler *handler,
		    void *ctx, struct cube_cancel *cancel, struct cube_link **ret, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct cube_link *link;
	struct local_cube *c;
	int rc = cube_local_cube_get(b, id, &c, err), fd = -1;

	if (rc == 0 && !cube_local_cube_runs(c))
		rc = cube_fail(err, -EHOSTDOWN, "sandbox %s does not run", id);
	if (rc == 0)
		rc = cube_agent_listener_connect(c->dir, cancel, &fd, err);
	if (rc < 0)
		return rc;
	rc = cube_agent_link_new(b->loop, fd, true, handler, ctx, &link, err);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	if (!c->oom)
		c->oom = cube_ns_oom_watch(cube_local_group_oom_file(&b->cgroups, c->id));
	cube_agent_link_set_oom(link, &(struct cube_agent_oom){.count = cube_ns_oom_count,
							       .probe = cube_ns_oom_probe,
							       .ctx = c->oom});
	*ret = link;
	return 0;
}
