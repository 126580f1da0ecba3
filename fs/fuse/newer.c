/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel can do and libfuse is too old to know of. */
#include "fs/fuse/newer.h"

#include <linux/fuse.h>
#include <stddef.h>

static void newer_init(struct cube_fuse_newer *n, const struct cube_wire_in *m)
{
	const struct fuse_init_in *in = (const void *)(m->head + 1);
	size_t need = sizeof(*m->head) + offsetof(struct fuse_init_in, flags) + sizeof(in->flags);

	if (m->len >= need && (in->flags & FUSE_HANDLE_KILLPRIV_V2) != 0)
		atomic_store(&n->init, m->head->unique);
}

static _Thread_local uint32_t newer_opcode;

uint32_t cube_fuse_newer_asked(void)
{
	return newer_opcode;
}

/* Before others look at it: to them it is the older one. */
static bool newer_in(void *ctx, struct cube_wire_in *m)
{
	newer_opcode = m->head->opcode;
	if (newer_opcode == FUSE_INIT)
		newer_init(ctx, m);
	else if (newer_opcode == CUBE_FUSE_TMPFILE)
		m->head->opcode = FUSE_CREATE;
	else if (newer_opcode == CUBE_FUSE_STATX)
		m->head->opcode = FUSE_GETATTR;
	return true;
}

static bool newer_out(void *ctx, struct cube_wire_out *m)
{
	struct cube_fuse_newer *n = ctx;
	struct fuse_init_out *out = cube_wire_init_answer(m, &n->init, n->body);

	if (out != NULL)
		out->flags |= FUSE_HANDLE_KILLPRIV_V2;
	return true;
}

void cube_fuse_newer_add(struct cube_fuse_newer *n, struct cube_wire *w)
{
	cube_wire_add(w, &(struct cube_wire_hook){.ctx = n, .in = newer_in, .out = newer_out});
}
