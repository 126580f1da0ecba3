/* SPDX-License-Identifier: Apache-2.0 */
/* The user's terminal: raw while a shell inside has it, its size, and the news that the size changed. */
#ifndef CUBEFS_CTL_CLI_TERMINAL_H
#define CUBEFS_CTL_CLI_TERMINAL_H

#include <stdbool.h>

#include "backends/base/err.h"

/* Keys go through as bytes (Ctrl-C too). Given back at cube_terminal_restore, at exit, and when a signal ends us. */
int cube_terminal_raw(struct cube_err *err);
void cube_terminal_restore(void);
/* Rows and columns; false where the terminal does not know. */
bool cube_terminal_size(unsigned *ret_rows, unsigned *ret_cols);
/* A descriptor that becomes readable at each SIGWINCH (eat it), and one at HUP or TERM; -1 on failure. */
int cube_terminal_signals(void);
/* What came: SIGWINCH, SIGHUP, SIGTERM; 0 for nothing. */
int cube_terminal_signal(int fd);

#endif
