/* SPDX-License-Identifier: Apache-2.0 */
/* Which cubefs can read what is in a state directory: STATE/format, a number in a line.
 *
 * The number is one more with each change that a cubefs before it would read wrongly; fields that it may pass over are none. A
 * directory without the file is of number 1. */
#ifndef CUBEFS_FS_STATE_FORMAT_H
#define CUBEFS_FS_STATE_FORMAT_H

#include "backends/base/err.h"

#define CUBE_STATE_FORMAT 1

/* -EPROTO: what is in the directory is of a cubefs later than this one, or the number cannot be read. Changes nothing. */
int cube_state_format_check(const char *path, struct cube_err *err);
/* From now on it is as this cubefs writes it: one before this is to keep away. */
int cube_state_format_mark(const char *path, struct cube_err *err);

#endif
