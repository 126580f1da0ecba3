/* SPDX-License-Identifier: Apache-2.0 */
/* Pause without a freezer: STOP to every process of a sandbox but its first, until a look at them finds
 * nobody who runs. */
#ifndef CUBEFS_BACKENDS_LOCAL_STANDSTILL_H
#define CUBEFS_BACKENDS_LOCAL_STANDSTILL_H

#include <sys/types.h>

#include "backends/base/cancel.h"
#include "backends/base/err.h"

/* Those who had been stopped by others before are written to the file `stopped` of the directory @dir, so
 * that they are not woken. -EBUSY: somebody cannot be stopped; then all go on. */
int cube_local_standstill(pid_t init, int dir, struct cube_cancel *cancel, struct cube_err *err);
/* CONT for all but those. */
void cube_local_standstill_end(pid_t init, int dir);

#endif
