/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker was at that does not answer: written to STATE/hung.1 before it is ended.
 *
 * In the supervisor. What the kernel says of each of its threads comes first; then each thread gets a signal, writes
 * down where it is in memory that it shares with us, and we, of whom the worker is a copy, have the names. A thread that
 * waits in the kernel and cannot be woken has the kernel's words alone. */
#ifndef CUBEFS_FS_HUNG_H
#define CUBEFS_FS_HUNG_H

#include <stdint.h>
#include <sys/types.h>

#define CUBE_HUNG_KEPT 3 /* STATE/hung.1 is the latest */

/* Before any worker is forked: without it there are the kernel's words alone. */
void cube_hung_init(void);
/* In a new worker, which has one thread. */
void cube_hung_listen(void);
/* All that can be had of the process @pid, which may be stopped and goes on meanwhile; takes 2 s at most. */
void cube_hung_write(const char *state_dir, pid_t pid, unsigned seconds);

#endif
