/* SPDX-License-Identifier: Apache-2.0 */
/* `changes`: what differs from another state of a sandbox's files, as text. The backend is asked on a thread of the
 * pool, and what it says goes to a file without a name in the state directory: its length is the disk's business.
 * Under the domain lock. */
#ifndef CUBEFS_CTL_CHANGES_H
#define CUBEFS_CTL_CHANGES_H

#include <stdint.h>

#include "ctl/cube.h"

/* One line a path: A, M, D or T, a blank, the path with \n and \\ escaped. */
struct cube_changes_text {
	int fd; /* owned */
	uint64_t size;
	uint64_t hash; /* of the text: another one for another text */
};
void cube_changes_text_free(struct cube_changes_text *t); /* NULL is harmless */

/* A question under way. */
struct cube_changes_ask;

/* What differs in @c as it is, or (@cp not NULL) in a checkpoint of it, from @base (struct cube_changes). The answer
 * comes to @done, later, under the lock: with code 0 *text is the receiver's. -ENOMEM, -EHOSTDOWN: it will not. */
int cube_changes_begin(struct cube_cube *c, const char *cp, const char *base,
		       void (*done)(void *ctx, int code, struct cube_changes_text *text,
				    const struct cube_err *err),
		       void *ctx, struct cube_changes_ask **ret, struct cube_err *err);
/* Nobody waits any more: done does not come, the backend is told. */
void cube_changes_leave(struct cube_changes_ask *ask);

#endif
