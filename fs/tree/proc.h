/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at the process behind a request, through /proc. A few short system calls; no lock of ours needed.
 */
#ifndef CUBEFS_FS_TREE_PROC_H
#define CUBEFS_FS_TREE_PROC_H

#include <stdbool.h>
#include <sys/types.h>

#include "fs/tree/req.h"

/* Fills *ret. @pid is a process or thread as this pid namespace sees it; 0, or one that cannot be read
 * (another pid namespace, hidepid): not visible. Never touches what a process in execve holds. */
void cube_proc_look(pid_t pid, struct cube_proc *ret);

/* Does a signal wait for it that ends its waiting? HUP, INT, QUIT, TERM, ALRM, KILL; not @lasting (only a
 * read is at stake): also USR1, USR2 and the real-time ones. CHLD, WINCH, CONT, URG, a tracer, suspend: no.
 * One that is not visible: yes. */
bool cube_proc_interrupted(pid_t pid, bool lasting);

/* The signal that ended a process which is on its way out (no memory any more); 0: none, or not to be seen.
 */
int cube_proc_exit_signal(pid_t pid);

/* From a user namespace of its own a daemon cannot see how the processes outside end: then @ask is called
 * instead of reading, on any thread, with no lock held; it must answer soon. Before any request; NULL: read.
 */
void cube_proc_ask(int (*ask)(void *ctx, pid_t pid), void *ctx);

#endif
