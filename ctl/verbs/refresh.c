/* SPDX-License-Identifier: Apache-2.0 */
/* refresh: asks a backend for its status and its templates now. */
#include <errno.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"
#include "ctl/verbs/verbs.h"

static void refresh_done(struct cube_refresh *r)
{
	struct cube_verb_call *call = r->ctx;

	if (call != NULL) {
		call->state = NULL;
		call->err = r->err;
		cube_verb_finish(call, r->code);
	}
	cube_free(r);
}

static void refresh_cancel(struct cube_verb_call *call)
{
	struct cube_refresh *r = cube_steal(call->state);

	r->ctx = NULL;
}

static int refresh_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_refresh *r;
	int code = cube_service_refresh(call->domain, call->object, &r, err);

	if (code < 0)
		return code;
	r->done = refresh_done;
	r->ctx = call;
	call->state = r;
	call->cancel = refresh_cancel;
	return 1;
}

const struct cube_verb cube_verb_refresh = {
	.name = "refresh",
	.args = "",
	.summary = "ask the backend for its status and templates now",
	.run = refresh_run,
};
