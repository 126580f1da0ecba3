/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon is told. Nothing is queued: jobs and sessions carry marks of what has changed, and messages
 * are made of their present state when there is room to send. So what is said stays small however slow the
 * daemon is, progress merges by itself, and a new connection is told everything by setting all marks. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_REPORT_H
#define CUBEFS_BACKENDS_AGENT_INIT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/agent/init/job.h"
#include "backends/agent/init/session.h"

/* Bytes to send, in memory that grows as needed. */
struct init_outbox {
	unsigned char *data;
	size_t off, len, cap;
};

/* Mark: @what is INIT_TELL_. Progress alone waits a millisecond, since the end is often right behind. */
void init_tell(struct init_job *job, unsigned what);
void init_tell_session(struct init_session *s);
/* It is being freed. */
void init_tell_nothing(struct init_job *job);
void init_tell_nothing_session(struct init_session *s);
/* A job for which there is no memory: its end is told, and no record is kept. */
void init_tell_refused(uint64_t id);

/* How many processes ended commands have left. */
void init_tell_left(uint64_t n);

/* A new daemon: everything, then SYNCED. */
void init_report_all(void);
/* There is no daemon: the marks are dropped. */
void init_report_none(void);
/* Makes messages while there is little in @out. */
void init_report_fill(struct init_outbox *out);
/* Room for @more bytes at the end, or NULL; the caller adds to len. */
unsigned char *init_outbox_room(struct init_outbox *out, size_t more);
void init_outbox_done(struct init_outbox *out);

#endif
