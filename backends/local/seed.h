/* SPDX-License-Identifier: Apache-2.0 */
/* The few files that are a sandbox's own from the start: its name, its resolver, its machine id.
 *
 * They are put into the upper layer before it is mounted: through the mount each would cost a whiteout, a
 * copy and two renames. */
#ifndef CUBEFS_BACKENDS_LOCAL_SEED_H
#define CUBEFS_BACKENDS_LOCAL_SEED_H

#include <stdbool.h>

#include "backends/backend.h"
#include "backends/base/err.h"
#include "backends/local/ids.h"

struct cube_local_seed {
	const char *id, *hostname;
	const char *resolv; /* content of /etc/resolv.conf */
	const struct cube_ns_ids *ids;
	const struct cube_pair *hosts; /* name and address */
	size_t n_hosts;
};

/* Their names in /etc, NULL ended. */
extern const char *const cube_local_seed_names[];

/* Writes them into the fresh upper layer @upper, which will lie over @lower, topmost first. Where /etc of the template is a
 * link or no directory nothing is written: it would be hidden by ours. */
int cube_local_seed(int upper, const int *lower, unsigned n_lower, const struct cube_local_seed *s,
		    struct cube_err *err);
/* Is the file @name of the directory @dir, which is @path inside, one of them, as they were written? A resolv of
 * "" stands for any. */
bool cube_local_seed_wrote(int dir, const char *path, const char *name, const struct cube_local_seed *s);

#endif
