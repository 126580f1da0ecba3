/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in PATH. */
#include "backends/local/find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIND_USUAL "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

bool cube_local_find_program(const char *name, char *out, size_t size)
{
	const char *path = getenv("PATH"); /* nobody here calls setenv */

	if (!path || !*path)
		path = FIND_USUAL;
	while (*path) {
		int n = (int)strcspn(path, ":");

		if (*path == '/' && (size_t)snprintf(out, size, "%.*s/%s", n, path, name) < size &&
		    access(out, X_OK) == 0)
			return true;
		path += n + (path[n] == ':');
	}
	*out = 0;
	return false;
}
