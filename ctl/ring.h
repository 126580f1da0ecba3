/* SPDX-License-Identifier: Apache-2.0 */
/* An endless text on disk of which the last part is kept: behind `logs` and `events`.
 *
 * One append-only file whose byte n lies at offset n - base; what is no longer kept is given back as a hole, and the
 * file is begun anew (base moves) at an open when more is hole than text, or where holes cannot be punched, when twice
 * the limit is reached. The name of the file carries the base: "NAME.BASE". Under the domain lock. */
#ifndef CUBEFS_CTL_RING_H
#define CUBEFS_CTL_RING_H

#include <stdint.h>
#include <sys/types.h>

#include "backends/base/err.h"
#include "backends/base/list.h"
#include "ctl/wait.h"

/* Rings that share a number of open files: the one that was used least lately gives its up, and opens it again
 * when it is needed. */
struct cube_ring_set {
	struct cube_list open; /* cube_ring.lru, the latest used last */
	unsigned n, max;
};
void cube_ring_set_init(struct cube_ring_set *s, unsigned max);

struct cube_ring {
	int dir_fd;                /* borrowed */
	int fd;                    /* -1: given up for others */
	struct cube_ring_set *set; /* NULL: keeps its file open */
	struct cube_list lru;
	const char *name;
	uint64_t base;  /* position of the file's first byte */
	uint64_t first; /* positions [first, end) are kept; first is the start of a line */
	uint64_t end;
	uint64_t limit;
	struct cube_waitq grown;
};

/* Opens what is there, or begins. @name is a constant string. */
int cube_ring_open(struct cube_ring *r, int dir_fd, const char *name, uint64_t limit, struct cube_err *err);
void cube_ring_close(struct cube_ring *r);
/* From now on it is one of @set, which outlives it. */
void cube_ring_share(struct cube_ring *r, struct cube_ring_set *set);
/* Adds whole lines and wakes who waits. A disk that is full loses them: 0 or -errno. */
int cube_ring_add(struct cube_ring *r, const void *text, size_t len);
/* Bytes from *pos on, which moves; a reader that lags is moved to `first`. 0 at the end. */
ssize_t cube_ring_read(struct cube_ring *r, uint64_t *pos, void *data, size_t len);
/* Gives up what lies before @first (the start of a line). */
void cube_ring_trim(struct cube_ring *r, uint64_t first);

#endif
