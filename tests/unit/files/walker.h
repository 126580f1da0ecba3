/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel that walks the mount: names by look-ups, links by their texts as shown, ".." by the way it came.
 */
#ifndef CUBEFS_TESTS_UNIT_FILES_WALKER_H
#define CUBEFS_TESTS_UNIT_FILES_WALKER_H

#include <limits.h>

#include "tests/unit/files/stage.h"

/* It knows where it stands as the real one does: by the directories it came through. Begin with at[0] =
 * stage.id. */
struct walker {
	struct stage *s;
	uint64_t at[512]; /* at[0] is `files/` */
	unsigned depth;
	int links;
	char rest[41 * PATH_MAX];
};

/* Follows @path from where @w stands, links at its end too. 0 or -errno; the test fails if a step leads above
 * `files/` or a text is absolute. */
int walker_run(struct walker *w, const char *path, struct cube_files_entry *ret);

#endif
