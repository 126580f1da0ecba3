/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch may leave behind whose end nobody saw: crun on its way, or a process 1 that is not written
 * down.
 *
 * crun writes the number of process 1 when that runs already, so after a kill at the wrong moment only a look
 * at all processes finds it: by the last word of crun's command line, which is the sandbox's id (and that of
 * process 1 until its exec), or by the source of the file system that is its root, which is the same id. */
#ifndef CUBEFS_BACKENDS_LOCAL_LEFTOVER_H
#define CUBEFS_BACKENDS_LOCAL_LEFTOVER_H

#include <sys/types.h>

/* A process of the sandbox @id; 0: there is none. */
pid_t cube_local_leftover_find(const char *id);

/* Ends all processes of the sandbox @id that can be found, until none is. */
void cube_local_leftover_end(const char *id);

#endif
