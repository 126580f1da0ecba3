/* SPDX-License-Identifier: Apache-2.0 */
/* What `export -p` prints, read back: bash's `declare -x NAME="..."` (also $'...') and the POSIX shells'
 * `export NAME='...'`. */
#ifndef CUBEFS_CTL_EXPORTS_H
#define CUBEFS_CTL_EXPORTS_H

#include <stddef.h>

#include "backends/base/buf.h"

/* Adds NUL-ended NAME=VALUE for each exported variable that has a value; what cannot be understood is passed
 * over, since it comes from inside a sandbox. 0 or the buffer's error. */
int cube_exports_parse(const char *text, size_t len, struct cube_buf *ret);

#endif
