/* SPDX-License-Identifier: Apache-2.0 */
/* A worker comes after another: whose open files it takes over. */
#ifndef CUBEFS_FS_TAKEOVER_H
#define CUBEFS_FS_TAKEOVER_H

#include "fs/keep/keep.h"

/* Gets a holder of its own for this process, takes from the one before what the records say is open, and ends that one.
 * What cannot be had is -1 in its record from then on. What it listened at is there for who listens at the same again
 * (backends/base/heir.h). Before anything else is opened and threads are started. */
int cube_takeover(struct cube_keep *k, struct cube_err *err);
/* In the supervisor, after a worker ended: ends a holder that is nobody's. */
void cube_takeover_tidy(struct cube_keep *k);
/* In the supervisor, at the end: no holder is left. */
void cube_takeover_end(struct cube_keep *k);

#endif
