/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between two merged views of layered files.
 *
 * Names come from the layers in which the two differ, so that the work is that of what was changed, not of what is there;
 * what they mean comes from the two views, so that whiteouts, opaque and renamed directories need no second explanation
 * here. Where a layer's directory stands for something else than what lies below its name (opaque, renamed), all names
 * of both views are looked at from there on. */
#ifndef CUBEFS_BACKENDS_BASE_DIFFER_H
#define CUBEFS_BACKENDS_BASE_DIFFER_H

#include <stdbool.h>

#include "backends/base/buf.h"
#include "backends/base/cancel.h"

#define CUBE_DIFFER_NONE (-1) /* instead of a directory: there is none */

struct cube_differ {
	int now, was; /* directories; borrowed, as all that follows. Without `now` there is nothing to tell */
	const int *layers; /* the layers' directories: each may have something here or not */
	unsigned n_layers;
	const char *path;   /* what is told begins with it: "" or "/workspace" */
	bool whole_seconds; /* one of them keeps no more of the time of a file's last change */
	/* 'A' it is new, 'D' it was there (what was in a directory is not told), 'M' content, owner or mode differ, 'T'
	 * it is of another type; in the order of names in each directory. */
	void (*each)(void *ctx, char kind, const char *path);
	/* The entry @name of the directory @dir, which is @path now, is not to be told, nor what is in it. May be NULL. */
	bool (*skip)(void *ctx, int dir, const char *path, const char *name);
	void *ctx;
};

/* 0, -EINTR, or another -errno: a part was told then. What changes meanwhile is told as before or after. */
int cube_differ_run(const struct cube_differ *d, struct cube_cancel *cancel);

#endif
