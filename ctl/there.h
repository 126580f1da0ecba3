/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend says it has: a list that is collected without the lock and looked at under it. */
#ifndef CUBEFS_CTL_THERE_H
#define CUBEFS_CTL_THERE_H

#include "backends/backend.h"

struct cube_there {
	struct cube_info *all; /* their labels are the list's own */
	size_t n;
};

/* Asks @b. On failure *ret is untouched. Blocks: not under the lock. */
int cube_there_ask(struct cube_backend *b, struct cube_cancel *cancel, struct cube_there *ret,
		   struct cube_err *err);
void cube_there_done(struct cube_there *t);
/* Was it made with that label? */
bool cube_there_is(const struct cube_info *info, const struct cube_pair *label);

#endif
