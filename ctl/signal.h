/* SPDX-License-Identifier: Apache-2.0 */
/* Signals as verbs name them: TERM, SIGTERM, term, 15. */
#ifndef CUBEFS_CTL_SIGNAL_H
#define CUBEFS_CTL_SIGNAL_H

#include <stdbool.h>

#include "backends/base/err.h"

/* -EINVAL with the names that are known. */
int cube_signal_parse(const char *word, int *ret, struct cube_err *err);
/* Does it end a process that does nothing about it? */
bool cube_signal_ends(int sig);

#endif
