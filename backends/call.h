/* SPDX-License-Identifier: Apache-2.0 */
/* One call of a backend's operation, for the files of the checked wrappers (backend*.c). */
#ifndef CUBEFS_BACKENDS_CALL_H
#define CUBEFS_BACKENDS_CALL_H

#include "backends/backend.h"

struct cube_call {
	const struct cube_backend *b;
	const char *op;
	const char *on; /* the sandbox, template, ...; NULL: none */
	struct cube_err why;
};
#define CALL(op_, on_)                                                                                       \
	{                                                                                                    \
		.b = b, .op = (op_), .on = (on_)                                                             \
	}

/* 0, or the capability @cap is missing. @cap 0: the operation is required, so it is there. */
int cube_call_begin(struct cube_call *c, uint32_t cap);
/* The same for one on a sandbox, whose id is checked. */
int cube_call_begin_id(struct cube_call *c, uint32_t cap);
/* An answer that cannot be true: -EREMOTEIO. */
int cube_call_nonsense(struct cube_call *c, const char *what);
/* Every failure leaves with an errno and a sentence, whatever the backend thought of: @r, and why in @err. */
int cube_call_end(struct cube_call *c, int r, struct cube_err *err);

#endif
