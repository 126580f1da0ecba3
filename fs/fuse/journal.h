/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that must not be done twice.
 *
 * When a worker ends, the kernel sends again whatever it had no answer for. What was begun by the worker before is found
 * here: with its answer, if it had one, which is given again, so that nobody else hears of the request; or without, and
 * then whoever serves it is told that it may have been done (`again`) and looks.
 *
 * Each request takes one record of shared memory and two stores of a few bytes, on its own thread. */
#ifndef CUBEFS_FS_FUSE_JOURNAL_H
#define CUBEFS_FS_FUSE_JOURNAL_H

#include "fs/fuse/wire.h"
#include "fs/keep/keep.h"

struct cube_fuse_journal {
	struct cube_keep *keep;
	int fd; /* of the kernel */
};

/* What this thread serves just now. */
struct cube_fuse_journal_now {
	uint64_t unique; /* without the mark of one that is sent again */
	bool resent;     /* a worker before this one has read it, and has not answered */
	bool again;      /* ... and had begun with it */
};

void cube_fuse_journal_add(struct cube_fuse_journal *j, struct cube_keep *keep, int fd, struct cube_wire *w);
struct cube_fuse_journal_now cube_fuse_journal_now(void);
/* A number that is kept with the request @unique, for whoever serves it again. get: false, there is none. */
void cube_fuse_journal_note(struct cube_fuse_journal *j, uint64_t unique, uint64_t number);
bool cube_fuse_journal_noted(struct cube_fuse_journal *j, uint64_t unique, uint64_t *ret);

#endif
