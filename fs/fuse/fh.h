/* SPDX-License-Identifier: Apache-2.0 */
/* Open files as the kernel knows them: numbers that the next worker understands too (fs/keep). */
#ifndef CUBEFS_FS_FUSE_FH_H
#define CUBEFS_FS_FUSE_FH_H

#include <pthread.h>

#include "fs/keep/keep.h"

#define CUBE_FH_CHUNK  1024
#define CUBE_FH_CHUNKS 256

struct cube_fh_chunk {
	void *_Atomic what[CUBE_FH_CHUNK];
};

struct cube_fh {
	struct cube_keep *keep;
	pthread_mutex_t lock;                                 /* of making chunks */
	struct cube_fh_chunk *_Atomic chunks[CUBE_FH_CHUNKS]; /* by the record's number: what is open */
};

void cube_fh_init(struct cube_fh *t, struct cube_keep *keep);
void cube_fh_done(struct cube_fh *t);

/* A free number and its record, whose key is 0. 0: no more. */
uint64_t cube_fh_take(struct cube_fh *t, struct cube_keep_handle **ret);
/* Given back: it was never told, or it is closed. */
void cube_fh_give(struct cube_fh *t, uint64_t fh);
/* What is open under it; get: NULL where there is nothing. */
void cube_fh_set(struct cube_fh *t, uint64_t fh, void *what);
void *cube_fh_get(struct cube_fh *t, uint64_t fh);
void cube_fh_adopt(struct cube_fh *t, uint32_t record, void *what);
struct cube_keep_handle *cube_fh_record(struct cube_fh *t, uint64_t fh);
/* What was opened by the request @unique; 0: nothing. */
uint64_t cube_fh_opened(struct cube_fh *t, uint64_t unique);
/* A real file or a directory is open: fills the record and makes it valid. */
struct cube_fh_real {
	enum cube_keep_kind kind;
	uint64_t node, unique, shown_ino;
	int flags, fd;
	int32_t backing; /* of one whose data passes through; 0 */
	void *what;
};
uint64_t cube_fh_add(struct cube_fh *t, const struct cube_fh_real *real);

#endif
