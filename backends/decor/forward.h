/* SPDX-License-Identifier: Apache-2.0 */
/* What every decorator shares: a backend that hands everything on to another one.
 *
 * A decorator embeds a cube_forward first, calls cube_forward_init in its constructor, and sets `before`
 * and `after`, which are called around each operation, or puts a function of its own into fw.ops in place
 * of one that it changes. It is not in the registry: constructors take over the backend inside on success
 * and close it in their own close. */
#ifndef CUBEFS_BACKENDS_DECOR_FORWARD_H
#define CUBEFS_BACKENDS_DECOR_FORWARD_H

#include <stdint.h>

#include "backends/backend.h"
#include "backends/base/macros.h"

struct cube_call {      /* one operation under way */
	const char *op; /* "create", as in struct cube_backend_ops */
	const char *on; /* id of the sandbox, name of the sandbox or template to be; NULL: none */
	struct cube_cancel *cancel;
	uint64_t since; /* `before`'s, for `after` */
};

struct cube_forward {
	struct cube_backend base;
	struct cube_backend_ops
		ops; /* its own: kind, keys and capabilities of the one inside, functions that forward */
	struct cube_backend *inner; /* owned */
	/* Both optional, on the caller's thread. A negative result of before takes the place of the
	 * operation, that of after the place of its result: what it gave is released. */
	int (*before)(struct cube_forward *fw, struct cube_call *call, struct cube_err *err);
	int (*after)(struct cube_forward *fw, struct cube_call *call, int r, struct cube_err *err);
};

/* The decorator behind a pointer that an operation was called with. */
#define cube_forward_of(b) cube_container_of((b), struct cube_forward, base)

/* Everything forwards; what the one inside lacks is lacking here. Takes over @inner. */
void cube_forward_init(struct cube_forward *fw, struct cube_backend *inner);
/* Closes the one inside. */
void cube_forward_done(struct cube_forward *fw);

#endif
