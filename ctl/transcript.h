/* SPDX-License-Identifier: Apache-2.0 */
/* `logs` of a sandbox: `TIME SOURCE TEXT`, a line a line, the last 64 MiB, on disk. Under the domain lock (each
 * call is one or two short system calls on our own file). */
#ifndef CUBEFS_CTL_TRANSCRIPT_H
#define CUBEFS_CTL_TRANSCRIPT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/base/err.h"
#include "ctl/wait.h"

#define CUBE_TRANSCRIPT_MAX (UINT64_C(64) << 20)
#define CUBE_TRANSCRIPT_JOB (UINT64_C(64) << 10) /* bytes of each job's output that it repeats */

struct cube_transcript;

int cube_transcript_open(int dir_fd, struct cube_transcript **ret, struct cube_err *err);
void cube_transcript_close(struct cube_transcript *t);
/* Its file is one of a number that are open (ring.h). */
struct cube_ring_set;
void cube_transcript_share(struct cube_transcript *t, struct cube_ring_set *set);

/* Adds @len bytes of text from @source ("life", "7 out"): one line for each line, bytes that are not printable
 * UTF-8 as \xHH. A last line without newline is kept back until it is completed, or @final. */
void cube_transcript_add(struct cube_transcript *t, const char *source, const char *text, size_t len,
			 bool final);

/* Positions as in event.h. */
uint64_t cube_transcript_first(const struct cube_transcript *t);
uint64_t cube_transcript_end(const struct cube_transcript *t);
ssize_t cube_transcript_read(struct cube_transcript *t, uint64_t *pos, void *data, size_t len);
struct cube_waitq *cube_transcript_waitq(struct cube_transcript *t);

#endif
