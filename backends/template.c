/* SPDX-License-Identifier: Apache-2.0 */
/* What templates say of the programs in them. */
#include <errno.h>

#include "backends/backend.h"

void cube_template_config_init(struct cube_template_config *c)
{
	*c = (struct cube_template_config){.env = CUBE_BUF(CUBE_TEMPLATE_TEXT),
					   .entrypoint = CUBE_BUF(CUBE_TEMPLATE_TEXT)};
}

void cube_template_config_done(struct cube_template_config *c)
{
	cube_buf_done(&c->env);
	cube_buf_done(&c->entrypoint);
	cube_template_config_init(c);
}

int cube_template_config_copy(struct cube_template_config *to, const struct cube_template_config *from)
{
	struct cube_template_config c = *from;

	c.env = CUBE_BUF(CUBE_TEMPLATE_TEXT);
	c.entrypoint = CUBE_BUF(CUBE_TEMPLATE_TEXT);
	if ((from->env.len > 0 && cube_buf_add(&c.env, from->env.data, from->env.len) < 0) ||
	    (from->entrypoint.len > 0 &&
	     cube_buf_add(&c.entrypoint, from->entrypoint.data, from->entrypoint.len) < 0)) {
		cube_template_config_done(&c);
		return -ENOMEM;
	}
	*to = c;
	return 0;
}
