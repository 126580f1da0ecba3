/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox whose first process is one of this machine, seen by that process's namespaces: what backends have in common
 * that start such a process, or have it started.
 *
 * @proc is the directory of that process in /proc, O_PATH: it stays with the process, whose number another one may
 * get, and is empty once that has ended. Any thread; nothing here asks the inside, and what the inside has put in the way
 * leads nowhere but inside. The caller may enter the namespaces: it is root, or they belong to its user namespace. */
#ifndef CUBEFS_BACKENDS_NS_NS_H
#define CUBEFS_BACKENDS_NS_NS_H

#include <stdint.h>

#include "backends/backend.h"

/* As `dial` and `listening` of backend.h; @id for sentences. */
int cube_ns_dial(int proc, const char *id, const struct cube_target *target, struct cube_cancel *cancel,
		 int *ret_fd, struct cube_err *err);
int cube_ns_listening(int proc, void (*each)(void *ctx, const struct cube_listener *l), void *ctx,
		      struct cube_err *err);

/* What its network devices but the loopback have seen; untouched where that is not known. */
void cube_ns_net_bytes(int proc, uint64_t *ret_in, uint64_t *ret_out);

#endif
