/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of names, as of a directory. */
#ifndef CUBEFS_BACKENDS_BASE_NAMES_H
#define CUBEFS_BACKENDS_BASE_NAMES_H

#include <stddef.h>

struct cube_names {
	char **at; /* owned */
	size_t n, room;
};
#define CUBE_NAMES                                                                                           \
	{                                                                                                    \
		.at = NULL                                                                                   \
	}

int cube_names_add(struct cube_names *names, const char *name); /* -ENOMEM */
/* Adds what is in the directory @dir (which may be O_PATH), without `.` and `..`. -errno: a part may have been
 * added. */
int cube_names_list(struct cube_names *names, int dir);
void cube_names_sort(struct cube_names *names); /* by their bytes */
void cube_names_done(struct cube_names *names);

#endif
