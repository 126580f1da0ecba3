/* SPDX-License-Identifier: Apache-2.0 */
/* Which shell commands are given to. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_SHELL_H
#define CUBEFS_BACKENDS_AGENT_INIT_SHELL_H

#include <stdbool.h>

/* Tests: always this one; NULL gives the choice back. Borrowed. */
void init_shell_force(const char *path);
/* bash where there is one, else sh. Looked up each time: it may be installed meanwhile. */
const char *init_shell(void);
bool init_shell_is_bash(const char *path);

#endif
