/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of a checkpoint. */
#include <string.h>

#include "ctl/checkpoint.h"
#include "ctl/show_priv.h"

/* "NAME", "SANDBOX/NAME" of another one's; what was deleted is none. */
static void show_parent(const struct cube_checkpoint_entry *e, struct cube_buf *out)
{
	const struct cube_checkpoint_entry *p =
		e->parent[0] != '\0' ? cube_checkpoint_by_id(e->cube->domain, e->parent) : NULL;

	if (p == NULL) {
		cube_show_str(out, "parent", NULL);
		return;
	}
	cube_buf_adds(out, "parent ");
	if (p->cube != e->cube)
		cube_buf_printf(out, "%s/", p->cube->name);
	cube_buf_add_escaped(out, p->name, strlen(p->name), false);
	cube_buf_addc(out, '\n');
}

int cube_show_checkpoint_info(struct cube_checkpoint_entry *e, struct cube_buf *out)
{
	if (e->cube == NULL)
		return 0;
	cube_show_time(out, "created", e->created_wall);
	show_parent(e, out);
	cube_show_str(out, "backend", e->cube->service->backend->name);
	cube_show_str(out, "template",
		      e->template != NULL ? e->template : e->cube->service->backend->template);
	cube_show_str(out, "memory", "no");
	cube_show_num(out, "size", e->size);
	cube_show_labels(e->labels, cube_show_label_line, out);
	return out->error;
}

int cube_show_checkpoint_ctl(struct cube_checkpoint_entry *e, struct cube_buf *out)
{
	if (e->cube == NULL)
		return 0;
	cube_show_str(out, "sandbox", e->cube->name);
	cube_show_time(out, "created", e->created_wall);
	return cube_show_usage(CUBE_SCOPE_CHECKPOINT, e, out);
}
