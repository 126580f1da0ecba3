/* SPDX-License-Identifier: Apache-2.0 */
/* Every process of the sandbox but the agent and its wrappers: one signal for all, and standing still where
 * nothing outside can freeze the sandbox. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_EVERYONE_H
#define CUBEFS_BACKENDS_AGENT_INIT_EVERYONE_H

#include <stdbool.h>
#include <stdint.h>

void init_everyone_signal(int sig);
/* @on: STOP, until a look finds nobody who runs; remembers who had been stopped before. Else CONT for the
 * others. */
void init_everyone_freeze(bool on);
/* Is there anybody alive? */
bool init_everyone_left(void);

/* How many there are besides the shells of sessions: while no command runs, what ended ones left. */
uint64_t init_everyone_count(void);
/* Could the shells, or whom they start, write a file without opening it first? */
bool init_everyone_holds(void);

#endif
