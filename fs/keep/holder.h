/* SPDX-License-Identifier: Apache-2.0 */
/* A process that keeps a worker's descriptors open beyond its end.
 *
 * It shares the worker's table of descriptors (CLONE_FILES) and does nothing. So whatever the worker opens it has too,
 * at no cost, and when the worker ends, its open files, locks and positions are all still there: the next worker takes
 * those that it wants, under their old numbers, and then lets the holder go, and with it the rest. */
#ifndef CUBEFS_FS_KEEP_HOLDER_H
#define CUBEFS_FS_KEEP_HOLDER_H

#include <sys/types.h>

#include "backends/base/err.h"

/* A holder of this process's descriptors: a child of this one's parent, which must wait for it. To be called while
 * there is one thread. *ret is its number as soon as there is one, so that who shares that memory knows of a holder
 * whose maker was killed at that instant. When this returns its descriptors can be taken. */
int cube_holder_start(pid_t *ret, struct cube_err *err);
/* From the holder @pidfd: its descriptor @fd, here under the same number (which must be free here). 0 or -errno. */
int cube_holder_take(int pidfd, int fd);
/* It is ended, and so is what only it had. */
void cube_holder_end(int pidfd);

#endif
