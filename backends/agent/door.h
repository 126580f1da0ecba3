/* SPDX-License-Identifier: Apache-2.0 */
/* Our side of `cube-init --door`: an agent that an engine starts gets its listening socket from here.
 *
 * The door is the socket `door` in a directory that the sandbox sees, read only, and that has nothing else in it. It is
 * open for as long as an agent is awaited. Any process inside can knock; only process 1 is let in. */
#ifndef CUBEFS_BACKENDS_AGENT_DOOR_H
#define CUBEFS_BACKENDS_AGENT_DOOR_H

#include <sys/types.h>

#include "backends/base/cancel.h"
#include "backends/base/err.h"

#define CUBE_AGENT_DOOR "door"

/* Opens it in @dir, in place of an earlier one. */
int cube_agent_door_open(int dir, int *ret_fd, struct cube_err *err);
/* Hands @listener to the first who knocks and is process @who of this machine. -ETIMEDOUT: nobody did within @ms;
 * -EINTR. */
int cube_agent_door_hand(int door, pid_t who, int listener, int ms, struct cube_cancel *cancel,
			 struct cube_err *err);
/* Closes it and takes it away; -1 is harmless. */
void cube_agent_door_close(int dir, int door);

#endif
