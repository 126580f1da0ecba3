/* SPDX-License-Identifier: Apache-2.0 */
/* Within decor/: what the pass-through functions are made of. */
#ifndef CUBEFS_BACKENDS_DECOR_FORWARD_PRIV_H
#define CUBEFS_BACKENDS_DECOR_FORWARD_PRIV_H

#include "backends/decor/forward.h"

/* One operation: what it goes to, and what is called around it. */
struct cube_around {
	struct cube_forward *fw;
	const struct cube_backend_ops *ops; /* of the one inside */
	struct cube_backend *inner;
	struct cube_call call;
	struct cube_err *err;
};

struct cube_around cube_forward_around(struct cube_backend *b, const char *op, const char *on,
				       struct cube_cancel *cancel, struct cube_err *err);
int cube_forward_before(struct cube_around *a);
int cube_forward_after(struct cube_around *a, int r); /* the operation's result, given @r */
/* @root, given the result @r of all that, becomes the caller's *ret or is closed. Returns @r. */
int cube_forward_root(struct cube_root *root, int r, struct cube_root *ret);

/* forward_kept.c: its part of the table @ops, as cube_forward_init has it. */
void cube_forward_kept(struct cube_backend_ops *ops, const struct cube_backend_ops *from);

#endif
