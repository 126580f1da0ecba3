/* SPDX-License-Identifier: Apache-2.0 */
/* cubefs of another version, which shows in `ctl`. */
#undef CUBEFS_VERSION
#define CUBEFS_VERSION "next"
#include "ctl/show.c" /* NOLINT(bugprone-suspicious-include): all of it, with another version */
