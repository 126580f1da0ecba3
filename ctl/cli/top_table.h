/* SPDX-License-Identifier: Apache-2.0 */
/* The table of `cubefs top`: rows out of the mounted files, their order, how a row is written. Knows no terminal and
 * reads no file. */
#ifndef CUBEFS_CTL_CLI_TOP_TABLE_H
#define CUBEFS_CTL_CLI_TOP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/base/buf.h"
#include "backends/base/name.h"

#define TOP_UNKNOWN UINT64_MAX
#define TOP_LINE    512u /* bytes of a row as text */

struct top_row {
	char name[CUBE_NAME_MAX + 1];
	char state[16];
	char backend[CUBE_NAME_MAX + 1];
	char template[CUBE_NAME_MAX + 1];
	char labels[160]; /* "label.NAME=VALUE ..." as far as they fit */
	char doing[24];   /* "" for nothing */
	/* TOP_UNKNOWN where nobody knows */
	uint64_t idle_s, pids, commands, memory, disk;
	uint64_t cpu_ms;   /* in all */
	uint64_t taken_ns; /* when the counters were, wall clock */
	uint64_t cpu_pm;   /* per mille of a processor, since the table before */
};

struct top_table {
	struct top_row *rows; /* owned */
	size_t n;
};

enum top_sort {
	TOP_BY_NAME,
	TOP_BY_STATE,
	TOP_BY_BACKEND,
	TOP_BY_CPU,
	TOP_BY_MEMORY,
	TOP_BY_DISK,
	TOP_BY_COMMANDS,
	TOP_BY_PIDS,
	TOP_BY_IDLE,
	TOP_SORTS
};

/* The text of the root's `list`. -ENOMEM; lines that are none are left out. */
int top_parse_list(const char *text, struct top_table *ret);
/* The text of a sandbox's `status`: what it knows better than `list`. */
void top_parse_status(const char *text, struct top_row *row);
/* Processor use between two tables that were sorted by name. */
void top_rates(struct top_table *now, const struct top_table *before);
void top_free(struct top_table *t);

/* Numbers descending, words ascending; @reverse: the other way round. Equal rows by name. */
void top_order(struct top_table *t, enum top_sort by, bool reverse);
/* Is @text (lower or upper case) in its name, state, backend, template or labels? "" is in all. */
bool top_matches(const struct top_row *row, const char *text);
/* What begins with this letter in the keys of the screen, and heads the column; NULL beyond the last. */
const char *top_sort_name(enum top_sort by);
char top_sort_key(enum top_sort by);

/* The line above the rows, and a row, both @width bytes at most, no newline. Long names are cut with a `~`. */
void top_head(char out[TOP_LINE], size_t width, enum top_sort by);
void top_line(const struct top_row *row, char out[TOP_LINE], size_t width);

#endif
