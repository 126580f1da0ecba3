/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox's own clock: what is done at the end of its life where no daemon is connected, and what ended commands
 * have left running, for a daemon that wants to know whether anybody still uses the sandbox. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_TIMES_H
#define CUBEFS_BACKENDS_AGENT_INIT_TIMES_H

#include <stdint.h>

#include "backends/agent/wire.h"

/* In @ns from now, or when a daemon goes after that. Replaces the one before. */
void init_times_deadline(uint64_t ns, enum cube_wire_end what);
/* The daemon went. */
void init_times_alone(void);
/* A daemon is there: what stood still for want of one goes on. */
void init_times_met(void);

/* Tells how many processes ended commands have left (init_tell_left), and once more when none is left. */
void init_times_look(void);

#endif
