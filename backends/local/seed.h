/* SPDX-License-Identifier: Apache-2.0 */
/* The few files that are a sandbox's own from the start: its name, its resolver, its machine id. */
#ifndef CUBEFS_BACKENDS_LOCAL_SEED_H
#define CUBEFS_BACKENDS_LOCAL_SEED_H

#include "backends/base/err.h"
#include "backends/local/ids.h"

struct cube_local_seed {
	const char *id, *hostname;
	const char *resolv; /* content of /etc/resolv.conf */
	const struct cube_local_ids *ids;
};

/* Writes them in the mounted root @root, without following any link of it. */
int cube_local_seed(int root, const struct cube_local_seed *s, struct cube_err *err);

#endif
