/* SPDX-License-Identifier: Apache-2.0 */
/* How much disk sandboxes take: figures that a thread of its own finds by walking over their upper layers, so that
 * who asks never waits. */
#ifndef CUBEFS_BACKENDS_LOCAL_DISK_H
#define CUBEFS_BACKENDS_LOCAL_DISK_H

#include <stdint.h>

struct cube_local_disk;

/* @cubes: the directory of the sandboxes' directories, borrowed. The thread is started with the first question.
 * NULL: out of memory. */
struct cube_local_disk *cube_local_disk_new(int cubes);
void cube_local_disk_free(struct cube_local_disk *d); /* ends the thread; NULL is harmless */

/* The last figure in bytes; UINT64_MAX: none yet. Has a new one made where it is older than half a minute, or than
 * twenty times what it took to make. Any thread, does not block. */
uint64_t cube_local_disk_get(struct cube_local_disk *d, const char *id);
/* The sandbox is gone. */
void cube_local_disk_forget(struct cube_local_disk *d, const char *id);

#endif
