/* SPDX-License-Identifier: Apache-2.0 */
/* The live table of `cubefs top` on a terminal. */
#ifndef CUBEFS_CTL_CLI_TOP_SCREEN_H
#define CUBEFS_CTL_CLI_TOP_SCREEN_H

#include "ctl/cli/top_read.h"

/* Shows @reader's tables and takes keys until the user has enough: 0. -ENOTTY, -EINVAL: no terminal of which it can
 * make a screen. */
int top_screen(struct top_reader *reader, const char *mount, struct cube_err *err);

#endif
