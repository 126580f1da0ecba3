/* SPDX-License-Identifier: Apache-2.0 */
/* Where the upper layers of sandboxes live. A store is a table; which one is used depends on the file
 * system that holds the state. A sandbox has two parts, kept apart, since each can be reset, copied and
 * checkpointed without the other. */
#ifndef CUBEFS_BACKENDS_LOCAL_STORE_H
#define CUBEFS_BACKENDS_LOCAL_STORE_H

#include "backends/base/err.h"
#include "backends/local/ids.h"

enum cube_local_part { CUBE_PART_ROOT, CUBE_PART_WORKSPACE };
#define CUBE_PART_COUNT 2

/* O_PATH descriptors of the two directories that an overlay wants. */
struct cube_local_layer {
	int upper, work;
};
#define CUBE_LOCAL_LAYER_NONE                                                                                \
	{                                                                                                    \
		-1, -1                                                                                       \
	}

struct cube_local_store_ops {
	const char *name;
	/* Makes an empty layer of @part in the sandbox's directory, owned by the ids' 0, mode 0755. */
	int (*make)(int cube, enum cube_local_part part, const struct cube_local_ids *ids,
		    struct cube_err *err);
	/* Opens it. -ENOENT: there is none. */
	int (*open)(int cube, enum cube_local_part part, struct cube_local_layer *ret, struct cube_err *err);
	/* Removes the directory @id of @cubes with all that is in it; nothing of it is mounted or in use any
	 * more. Not there is success; interrupted, it can be repeated. */
	int (*remove)(int cubes, const char *id, struct cube_err *err);
};

/* Plain directories. */
extern const struct cube_local_store_ops cube_local_store_dir;

void cube_local_layer_close(struct cube_local_layer *l);

#endif
