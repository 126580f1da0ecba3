/* SPDX-License-Identifier: Apache-2.0 */
/* hold: a sandbox lives as long as somebody has a channel of it open. */
#include <errno.h>

#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "ctl/ctl_priv.h"

int cube_hold_take(struct cube_hold *h, struct cube_cube *c, struct cube_err *err)
{
	struct cube_own *own = cube_own(c);
	bool before = own->held;

	if (h->cube != NULL)
		return 0;
	if (c->phase == CUBE_REMOVED)
		return cube_fail(err, -EHOSTDOWN, "hold: sandbox '%s' is being destroyed", c->name);
	own->held = true;
	if (!before) {
		int r = cube_state_save(c, err);

		if (r < 0) {
			own->held = false;
			return r;
		}
	}
	own->holders++;
	h->cube = cube_cube_ref(c);
	return 0;
}

/* When the daemon ends it stays `held` on disk, and the next one finds that nobody holds it any more. */
void cube_hold_end(struct cube_hold *h)
{
	struct cube_cube *c = cube_steal(h->cube);
	struct cube_err err = {0};

	if (c == NULL)
		return;
	if (--cube_own(c)->holders == 0 && c->phase != CUBE_REMOVED && !c->domain->closing &&
	    cube_cube_remove(c, NULL, &err) < 0)
		cube_log(CUBE_LOG_ERROR, "ctl", "nobody holds sandbox '%s' any more: %s", c->name, err.text);
	cube_cube_unref(c);
}
