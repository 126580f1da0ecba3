/* SPDX-License-Identifier: Apache-2.0 */
/* The side of `cubefs top` that touches the mount: a thread that reads it again and again, and one for each verb.
 * A mount that does not answer holds them and nobody else: the screen goes on, and the end of the process ends
 * them (the kernel lets go of who waits for a file system and is killed). */
#ifndef CUBEFS_CTL_CLI_TOP_READ_H
#define CUBEFS_CTL_CLI_TOP_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/err.h"
#include "ctl/cli/top_table.h"

struct top_reader;

/* Reads @mount (copied) every @ms, at once for the first time. Lives until the process ends. NULL: @err. */
struct top_reader *top_reader_start(const char *mount, uint32_t ms, struct cube_err *err);
/* Read again now. */
void top_reader_again(struct top_reader *r);
/* A newer table than the last one taken: true, and it is the caller's (ordered by name). Then, or when nothing can be
 * read: *ret_err has the reason, code 0 if there is none; *ret_silent_ms since when it has not answered. */
bool top_reader_take(struct top_reader *r, struct top_table *ret, struct cube_err *ret_err,
		     uint64_t *ret_silent_ms);

/* Writes a verb to the sandbox's ctl, or (NULL) removes the sandbox; behind. */
void top_reader_act(struct top_reader *r, const char *name, const char *verb);
/* What became of the last one: a line for people, "" when there is nothing new. */
void top_reader_news(struct top_reader *r, char *out, size_t size);

#endif
