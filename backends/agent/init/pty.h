/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals. The master side is made here; the child opens the other one through it (child.c). */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_PTY_H
#define CUBEFS_BACKENDS_AGENT_INIT_PTY_H

#include <stdbool.h>
#include <stdint.h>

/* Once, before anything hostile runs: keeps the directory of terminals, so that what is put in its place
 * later changes nothing. */
void init_pty_setup(void);
bool init_pty_there(void);
/* A nonblocking master of that size; -errno. */
int init_pty_open(uint16_t rows, uint16_t cols);
void init_pty_size(int master, uint16_t rows, uint16_t cols);

#endif
