/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a volume. */
#include "ctl/show_priv.h"

static void show_user(void *ctx, struct cube_cube *c)
{
	struct cube_buf *out = ctx;

	cube_buf_printf(out, " %s", c->name);
}

int cube_show_volume_info(struct cube_volume_entry *v, struct cube_buf *out)
{
	size_t before;

	cube_show_str(out, "backend", v->service->backend->name);
	cube_show_time(out, "created", v->created_wall);
	cube_show_num(out, "size", v->size);
	cube_buf_adds(out, "used_by");
	before = out->len;
	cube_volume_users(v, show_user, out);
	cube_buf_adds(out, out->len == before ? " -\n" : "\n");
	return out->error;
}
