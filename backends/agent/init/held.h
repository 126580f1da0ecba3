/* SPDX-License-Identifier: Apache-2.0 */
/* What a process could write without opening it. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_HELD_H
#define CUBEFS_BACKENDS_AGENT_INIT_HELD_H

#include <stdbool.h>
#include <sys/types.h>

/* Has @pid a file mapped shared for writing, or open in a way that whom it starts could map it so? Of neither does
 * anybody outside see when it is written. Waits for no file system; true where it cannot be found out. */
bool init_held(pid_t pid);

#endif
