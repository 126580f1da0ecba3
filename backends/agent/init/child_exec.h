/* SPDX-License-Identifier: Apache-2.0 */
/* The last step of a child: its arguments and environment as arrays, and exec. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_CHILD_EXEC_H
#define CUBEFS_BACKENDS_AGENT_INIT_CHILD_EXEC_H

#include "backends/agent/init/child.h"

/* A failure goes to @err. */
_Noreturn void init_child_exec(const struct init_child *c, int err);

/* Writes the record and ends the process. */
_Noreturn void init_child_fail(int fd, int code, int err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
