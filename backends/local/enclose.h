/* SPDX-License-Identifier: Apache-2.0 */
/* A limit on processes without control groups: a user namespace around the sandbox's.
 *
 * Since Linux 5.14 RLIMIT_NPROC holds for a user namespace as a whole: it counts what was made below it
 * against the limit that its maker had. What is counted is the maker's, and one user makes all sandboxes; so
 * each gets a namespace of its own between, whose root is a maker that nobody else is. */
#ifndef CUBEFS_BACKENDS_LOCAL_ENCLOSE_H
#define CUBEFS_BACKENDS_LOCAL_ENCLOSE_H

#include <stdint.h>

#include "backends/local/ids.h"

struct cube_local_enclose {
	uint32_t nproc;
	char map[32]; /* every id stays what it is */
};

void cube_local_enclose_init(struct cube_local_enclose *e, const struct cube_ns_ids *ids, bool trusted,
			     uint32_t nproc);

/* In a child between fork and exec: enters the namespace and takes the limit. System calls only. 0 or -errno.
 */
int cube_local_enclose_enter(const struct cube_local_enclose *e);

#endif
