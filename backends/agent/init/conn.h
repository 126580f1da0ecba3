/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the daemon: one at a time. A new one takes the place of the old one, and without one
 * everything goes on. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_CONN_H
#define CUBEFS_BACKENDS_AGENT_INIT_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/agent/init/dispatch.h"

/* Once. */
void init_conn_setup(const struct init_handler *handler);
/* Connections come from this listening unix socket. 0 or -errno. */
int init_conn_listen(int fd);
/* There is one stream for ever, that passes no descriptors: a socket, a terminal device or a port of a
 * virtual machine (then @out is the same), or a pair of pipes. Its end is the end of a daemon, not of the
 * stream: where it can be read again it is. 0 or -errno. */
int init_conn_stream(int in, int out);
/* Sends what is marked. After each round of the loop. */
void init_conn_flush(void);
/* Queues the agent's HELLO, in answer to the daemon's, and behind it all that the daemon has to know. 0 or
 * -ENOMEM. */
int init_conn_greet(const struct cube_wire_hello *m);
/* A daemon is connected, and has said HELLO. */
bool init_conn_up(void);
/* The daemon can pass descriptors. */
bool init_conn_passes_fds(void);

#endif
