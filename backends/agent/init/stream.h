/* SPDX-License-Identifier: Apache-2.0 */
/* Output over a connection that passes no descriptors: from the agent's own spool as DATA, as far ahead of
 * the daemon's acknowledgements as the window allows, and given back to the disk behind them. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_STREAM_H
#define CUBEFS_BACKENDS_AGENT_INIT_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/agent/init/job.h"

struct init_outbox;

/* Adds DATA while there is something, window and room; true when all that there is was sent. */
bool init_stream_pump(struct init_outbox *out, struct init_job *job);
/* Something is left to send, and the window is full: an ACK must come first. */
bool init_stream_waits(const struct init_job *job);
/* Everything below @upto is safe with the daemon. */
void init_stream_ack(struct init_job *job, uint64_t upto);
/* Send again from there on, where that much is still known. */
void init_stream_resume(struct init_job *job, uint64_t from);
/* A new daemon: what was not acknowledged is sent again. */
void init_stream_rewind(struct init_job *job);

#endif
