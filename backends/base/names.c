/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of names. */
#include "backends/base/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"

void cube_names_done(struct cube_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		cube_free(names->at[i]);
	cube_free(names->at);
	*names = (struct cube_names)CUBE_NAMES;
}

int cube_names_add(struct cube_names *names, const char *name)
{
	if (names->n == names->room) {
		size_t room = names->room ? names->room * 2 : 32;
		char **at = cube_realloc(names->at, room * sizeof(*at));

		if (!at)
			return -ENOMEM;
		names->at = at;
		names->room = room;
	}
	names->at[names->n] = cube_strdup(name);
	return names->at[names->n] ? (names->n++, 0) : -ENOMEM;
}

static int names_take(void *ctx, int dir, const char *name)
{
	(void)dir;
	return cube_names_add(ctx, name);
}

int cube_names_list(struct cube_names *names, int dir)
{
	return cube_file_each(dir, ".", names_take, names);
}

static int names_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void cube_names_sort(struct cube_names *names)
{
	if (names->n > 1)
		qsort(names->at, names->n, sizeof(*names->at), names_compare);
}
