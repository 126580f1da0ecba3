/* SPDX-License-Identifier: Apache-2.0 */
/* `metrics` of a sandbox: what it used, a line a sample, the last hour; on disk, and kept over the daemon's end.
 *
 * TIME CPU_SECONDS MEMORY MEMORY_LIMIT DISK DISK_LIMIT PROCESSES NET_IN NET_OUT, `-` for what is not known.
 * Running sandboxes are sampled, a batch at a time, so that a thousand are no burst. Under the domain lock. */
#ifndef CUBEFS_CTL_METRICS_H
#define CUBEFS_CTL_METRICS_H

#include "ctl/ring.h"

#define CUBE_METRICS_MS    15000u /* between two samples of one sandbox */
#define CUBE_METRICS_BATCH 32u    /* sandboxes that are asked for at once */
#define CUBE_METRICS_S     3600u  /* how long a sample is kept */

struct cube_cube;
struct cube_domain;

struct cube_metrics {
	struct cube_ring ring; /* fd -1: nothing was sampled yet */
	struct cube_waitq added;
};

void cube_metrics_init(struct cube_cube *c);
void cube_metrics_close(struct cube_cube *c);
/* A sample of its counters, which are fresh. A full disk loses it. */
void cube_metrics_add(struct cube_cube *c);
/* A sandbox runs: sampling goes on from here by itself, as long as one does. */
void cube_metrics_begin(struct cube_domain *d);

/* Positions as in ring.h; what is older than it is kept is given up first. */
uint64_t cube_metrics_first(struct cube_cube *c);
uint64_t cube_metrics_end(const struct cube_cube *c);
ssize_t cube_metrics_read(struct cube_cube *c, uint64_t *pos, void *data, size_t len);

#endif
