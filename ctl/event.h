/* SPDX-License-Identifier: Apache-2.0 */
/* The last 10,000 events: one JSON object a line, kept on disk, with a place for each reader. Under the lock. */
#ifndef CUBEFS_CTL_EVENT_H
#define CUBEFS_CTL_EVENT_H

#include <stdint.h>
#include <sys/types.h>

#include "backends/base/err.h"
#include "ctl/wait.h"

#define CUBE_EVENTS_KEPT 10000

struct cube_events;

/* The log in the directory @dir_fd (borrowed); what is there is read. */
int cube_events_open(int dir_fd, struct cube_events **ret, struct cube_err *err);
void cube_events_close(struct cube_events *e);

/* {"time":..., "sandbox":..., "event":..., "detail":...}; @sandbox and the detail may be NULL/empty. */
void cube_event(struct cube_events *e, const char *sandbox, const char *event, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Positions are bytes since the beginning of time and only grow: [first, end) can be read. */
uint64_t cube_events_first(const struct cube_events *e);
uint64_t cube_events_end(const struct cube_events *e);
/* Bytes from *pos on (moved up to `first` if they are gone; *pos is advanced). 0 at the end. */
ssize_t cube_events_read(struct cube_events *e, uint64_t *pos, void *data, size_t len);
struct cube_waitq *cube_events_waitq(struct cube_events *e);

#endif
