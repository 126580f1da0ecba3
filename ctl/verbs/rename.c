/* SPDX-License-Identifier: Apache-2.0 */
/* rename OLD NEW */
#include <errno.h>

#include "ctl/cube.h"
#include "ctl/verbs/verbs.h"

static int rename_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_cube *c = cube_domain_find(call->domain, call->words[1]);

	if (c == NULL)
		return cube_fail(err, -ENOENT, "rename: no sandbox '%s'", call->words[1]);
	return cube_cube_rename(c, call->words[2], err);
}

const struct cube_verb cube_verb_rename = {
	.name = "rename",
	.args = "OLD NEW",
	.summary = "give a sandbox another name; what is open goes on",
	.min = 2,
	.max = 2,
	.run = rename_run,
};
