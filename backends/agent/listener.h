/* SPDX-License-Identifier: Apache-2.0 */
/* The socket on which cube-init listens: made outside and passed in, so that no path of it is inside; any
 * later daemon connects to it. */
#ifndef CUBEFS_BACKENDS_AGENT_LISTENER_H
#define CUBEFS_BACKENDS_AGENT_LISTENER_H

#include <stddef.h>

#include "backends/base/cancel.h"
#include "backends/base/err.h"

/* A listening socket `agent.sock` (mode 0600) in the directory @dir, in place of an earlier one. */
int cube_agent_listener_make(int dir, int *ret_fd, struct cube_err *err);

/* Connects to it. -EHOSTDOWN: nobody listens. -ETIMEDOUT: the queue of connections was full for five seconds.
 */
int cube_agent_listener_connect(int dir, struct cube_cancel *cancel, int *ret_fd, struct cube_err *err);

/* Where it is on this machine, for other tools; the directory was opened by a path. -errno. */
int cube_agent_listener_path(int dir, char *out, size_t size);

#endif
