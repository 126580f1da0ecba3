/* SPDX-License-Identifier: Apache-2.0 */
/* cubefs of another version of what outlives a worker. */
#include "fs/keep/keep.h"

#undef CUBE_KEEP_VERSION
#define CUBE_KEEP_VERSION 4711
#include "fs/keep/keep.c" /* NOLINT(bugprone-suspicious-include): all of it, with another number */
