/* SPDX-License-Identifier: Apache-2.0 */
/* A log of lines in memory, with their time: the last of them, whole. */
#ifndef CUBEFS_CTL_LINELOG_H
#define CUBEFS_CTL_LINELOG_H

#include "backends/base/buf.h"

#define CUBE_LINELOG_LINE 1024u /* bytes of a line, escaped; the rest is cut off */

/* A buffer for lines of @max bytes in all. */
void cube_linelog_init(struct cube_buf *log, size_t max);
/* Adds `TIME LINE`; at the front whole lines go for it. */
void cube_linelog_add(struct cube_buf *log, const char *line);

#endif
