/* SPDX-License-Identifier: Apache-2.0 */
/* A log of lines with their time: the last of them, whole, in memory and in a file that outlives the daemon. */
#ifndef CUBEFS_CTL_LINELOG_H
#define CUBEFS_CTL_LINELOG_H

#include "backends/base/buf.h"

#define CUBE_LINELOG_LINE 1024u /* bytes of a line, escaped; the rest is cut off */

struct cube_linelog {
	struct cube_buf text; /* for readers */
	size_t max;
	size_t unkept; /* bytes at its end that are not in the file yet */
	size_t file;   /* bytes that are */
};

/* For lines of @max bytes in all. */
void cube_linelog_init(struct cube_linelog *l, size_t max);
void cube_linelog_done(struct cube_linelog *l);
/* Adds `TIME LINE`; at the front whole lines go for it. */
void cube_linelog_add(struct cube_linelog *l, const char *line);
/* What was added since goes into the file @name in @dir, which never grows beyond twice the bytes of the log. A disk
 * that is full keeps nothing, and the next call tries all of it again. */
void cube_linelog_keep(struct cube_linelog *l, int dir, const char *name);
/* Begins with what that file has, if anything. */
void cube_linelog_load(struct cube_linelog *l, int dir, const char *name);

#endif
