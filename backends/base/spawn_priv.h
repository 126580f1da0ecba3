/* SPDX-License-Identifier: Apache-2.0 */
/* What spawn.c (starting) and spawn_run.c (waiting) share. */
#ifndef CUBEFS_BACKENDS_BASE_SPAWN_PRIV_H
#define CUBEFS_BACKENDS_BASE_SPAWN_PRIV_H

#include "backends/base/spawn.h"

/* As cube_spawn_start, with @text_fd (-1: /dev/null) as the child's 2, and its 1 where @s->out is -1. */
int cube_spawn_start_on(const struct cube_spawn *s, int text_fd, pid_t *ret_pid, struct cube_err *err);

/* Waits for a child that ends for certain. */
void cube_spawn_reap(pid_t pid, int *ret_status);

#endif
