/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon's messages do. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_ACTIONS_H
#define CUBEFS_BACKENDS_AGENT_INIT_ACTIONS_H

#include "backends/agent/init/dispatch.h"

extern const struct init_handler init_actions;

/* A number that no other life of this sandbox has. Once. */
void init_actions_setup(void);
/* The sandbox is being stopped: TERM for all (and HUP for what has a terminal), KILL after @grace (init_now's unit), then
 * the loop ends. Once more: KILL no later than that. */
void init_actions_shutdown(uint64_t grace);

#endif
