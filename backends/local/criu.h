/* SPDX-License-Identifier: Apache-2.0 */
/* Why memory is in no checkpoint here. */
#ifndef CUBEFS_BACKENDS_LOCAL_CRIU_H
#define CUBEFS_BACKENDS_LOCAL_CRIU_H

#include <stddef.h>

/* A sentence in @out: what is missing first, of criu in PATH, of what `criu check` says, and of @crun (an absolute
 * path); or, where nothing is, what cubefs itself cannot. Runs both programs, some milliseconds. */
void cube_local_criu_why(const char *crun, char *out, size_t size);

#endif
