/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of `cubefs top`. */
#include "ctl/cli/top_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/macros.h"
#include "backends/base/num.h"

/* ---- Reading ---- */

static uint64_t top_number(const char *word)
{
	uint64_t n;

	return cube_num_u64(word, UINT64_MAX - 1, &n) == 0 ? n : TOP_UNKNOWN;
}

static void top_copy(char *to, size_t size, const char *from)
{
	size_t len = strcmp(from, "-") == 0 ? 0 : strnlen(from, size - 1); /* what is too long is cut */

	memcpy(to, from, len);
	to[len] = '\0';
}

/* NAME STATE BACKEND TEMPLATE IDLE LIFE PIDS CPU MEMORY DISK label.NAME=VALUE ... In place. */
static bool top_parse_line(char *line, struct top_row *row)
{
	enum { NAME, STATE, BACKEND, TEMPLATE, IDLE, LIFE, PIDS, CPU, MEMORY, DISK, WORDS };
	char *word[WORDS], *save = NULL;

	for (unsigned i = 0; i < WORDS; i++) {
		word[i] = strtok_r(i == 0 ? line : NULL, " ", &save);
		if (word[i] == NULL)
			return false;
	}
	if (!cube_name_ok(word[NAME]))
		return false;
	*row = (struct top_row){.idle_s = top_number(word[IDLE]),
				.pids = top_number(word[PIDS]),
				.commands = TOP_UNKNOWN,
				.memory = top_number(word[MEMORY]),
				.disk = top_number(word[DISK]),
				.cpu_ms = top_number(word[CPU]),
				.taken_ns = TOP_UNKNOWN,
				.cpu_pm = TOP_UNKNOWN};
	if (row->cpu_ms != TOP_UNKNOWN)
		row->cpu_ms *= 1000;
	top_copy(row->name, sizeof(row->name), word[NAME]);
	top_copy(row->state, sizeof(row->state), word[STATE]);
	top_copy(row->backend, sizeof(row->backend), word[BACKEND]);
	top_copy(row->template, sizeof(row->template), word[TEMPLATE]);
	top_copy(row->labels, sizeof(row->labels), save != NULL ? save : "");
	return true;
}

static int top_by_name(const void *a, const void *b)
{
	return strcmp(((const struct top_row *)a)->name, ((const struct top_row *)b)->name);
}

int top_parse_list(const char *text, struct top_table *ret)
{
	cube_auto_str copy = cube_strdup(text);
	char *save = NULL;
	size_t cap = 1;

	*ret = (struct top_table){0};
	for (const char *at = text; *at != '\0'; at++)
		cap += *at == '\n';
	ret->rows = cube_calloc(cap, sizeof(*ret->rows));
	if (copy == NULL || ret->rows == NULL) {
		top_free(ret);
		return -ENOMEM;
	}
	for (char *line = strtok_r(copy, "\n", &save); line != NULL && ret->n < cap;
	     line = strtok_r(NULL, "\n", &save))
		ret->n += top_parse_line(line, &ret->rows[ret->n]);
	qsort(ret->rows, ret->n, sizeof(*ret->rows), top_by_name);
	return 0;
}

void top_free(struct top_table *t)
{
	cube_free(t->rows);
	*t = (struct top_table){0};
}

static void top_take(struct top_row *row, const char *key, const char *value)
{
	uint64_t n;

	if (strcmp(key, "state") == 0)
		top_copy(row->state, sizeof(row->state), value);
	else if (strcmp(key, "doing") == 0)
		top_copy(row->doing, sizeof(row->doing), value);
	else if (strcmp(key, "commands") == 0)
		row->commands = top_number(value);
	else if (strcmp(key, "pids") == 0)
		row->pids = top_number(value);
	else if (strcmp(key, "memory") == 0)
		row->memory = top_number(value);
	else if (strcmp(key, "disk") == 0)
		row->disk = top_number(value);
	else if (strcmp(key, "cpu") == 0 && cube_num_milli(value, &n) == 0)
		row->cpu_ms = n;
	else if (strcmp(key, "usage_taken") == 0 && cube_clock_parse(value, &n) == 0)
		row->taken_ns = n;
}

void top_parse_status(const char *text, struct top_row *row)
{
	char key[32], value[160];

	for (const char *at = text; at != NULL && *at != '\0'; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (sscanf(at, "%31[^ \n] %159[^\n]", key, value) == 2)
			top_take(row, key, value);
	}
}

void top_rates(struct top_table *now, const struct top_table *before)
{
	for (size_t i = 0; before->n > 0 && i < now->n; i++) {
		struct top_row *row = &now->rows[i];
		const struct top_row *old =
			bsearch(row, before->rows, before->n, sizeof(*before->rows), top_by_name);

		if (old == NULL || row->taken_ns == TOP_UNKNOWN || old->taken_ns == TOP_UNKNOWN ||
		    row->cpu_ms == TOP_UNKNOWN || old->cpu_ms == TOP_UNKNOWN || row->cpu_ms < old->cpu_ms)
			continue;
		if (row->taken_ns > old->taken_ns)
			row->cpu_pm = (row->cpu_ms - old->cpu_ms) * UINT64_C(1000000000) /
				      (row->taken_ns - old->taken_ns);
		else
			row->cpu_pm = old->cpu_pm; /* the same counters, seen again */
	}
}

/* ---- Order ---- */

struct top_column {
	const char *name;
	char key;
	int width;           /* negative: to the left */
	size_t word, number; /* where in a row: one of them; TOP_NO_FIELD */
};

#define TOP_NO_FIELD   SIZE_MAX
#define TOP_WORD(f)    offsetof(struct top_row, f), TOP_NO_FIELD
#define TOP_NUMBER(f)  TOP_NO_FIELD, offsetof(struct top_row, f)
#define TOP_NAME_WIDTH 20

static const struct top_column top_columns[TOP_SORTS] = {
	[TOP_BY_NAME] = {"NAME", 'N', -TOP_NAME_WIDTH, TOP_WORD(name)},
	[TOP_BY_STATE] = {"STATE", 'S', -9, TOP_WORD(state)},
	[TOP_BY_BACKEND] = {"BACKEND", 'B', -8, TOP_WORD(backend)},
	[TOP_BY_CPU] = {"%CPU", 'C', 6, TOP_NUMBER(cpu_pm)},
	[TOP_BY_MEMORY] = {"MEMORY", 'M', 7, TOP_NUMBER(memory)},
	[TOP_BY_DISK] = {"DISK", 'D', 7, TOP_NUMBER(disk)},
	[TOP_BY_COMMANDS] = {"COMMANDS", 'O', 8, TOP_NUMBER(commands)},
	[TOP_BY_PIDS] = {"PIDS", 'P', 5, TOP_NUMBER(pids)},
	[TOP_BY_IDLE] = {"IDLE", 'I', 7, TOP_NUMBER(idle_s)},
};

const char *top_sort_name(enum top_sort by)
{
	return by < TOP_SORTS ? top_columns[by].name : NULL;
}

char top_sort_key(enum top_sort by)
{
	return top_columns[by].key;
}

static const char *top_word(const struct top_row *row, const struct top_column *c)
{
	return (const char *)row + c->word;
}

static uint64_t top_value(const struct top_row *row, const struct top_column *c)
{
	uint64_t n;

	memcpy(&n, (const char *)row + c->number, sizeof(n));
	return n;
}

struct top_comparison {
	const struct top_column *column;
	bool reverse;
};

static int top_compare(const void *a, const void *b, void *ctx)
{
	const struct top_comparison *how = ctx;
	int r;

	if (how->column->word != TOP_NO_FIELD) {
		r = strcmp(top_word(a, how->column), top_word(b, how->column));
	} else {
		uint64_t x = top_value(a, how->column), y = top_value(b, how->column);

		/* Not known is less than all that is known. */
		x += 1;
		y += 1;
		r = x > y ? -1 : x < y;
	}
	if (how->reverse)
		r = -r;
	return r != 0 ? r : top_by_name(a, b);
}

void top_order(struct top_table *t, enum top_sort by, bool reverse)
{
	struct top_comparison how = {&top_columns[by], reverse};

	qsort_r(t->rows, t->n, sizeof(*t->rows), top_compare, &how);
}

bool top_matches(const struct top_row *row, const char *text)
{
	return strcasestr(row->name, text) != NULL || strcasestr(row->state, text) != NULL ||
	       strcasestr(row->backend, text) != NULL || strcasestr(row->template, text) != NULL ||
	       strcasestr(row->labels, text) != NULL;
}

/* ---- Writing ---- */

static void top_size(uint64_t n, char out[16])
{
	static const char units[] = "BKMGTPE";
	unsigned unit = 0;
	double value = (double)n;

	while (value >= 1000 && units[unit + 1] != '\0') {
		value /= 1024;
		unit++;
	}
	if (n == TOP_UNKNOWN)
		(void)snprintf(out, 16, "-");
	else if (unit == 0)
		(void)snprintf(out, 16, "%u", (unsigned)n);
	else
		(void)snprintf(out, 16, value < 10 ? "%.1f%c" : "%.0f%c", value, units[unit]);
}

static void top_time(uint64_t s, char out[16])
{
	if (s == TOP_UNKNOWN)
		(void)snprintf(out, 16, "-");
	else if (s < 60)
		(void)snprintf(out, 16, "%us", (unsigned)s);
	else if (s < 3600)
		(void)snprintf(out, 16, "%um%02us", (unsigned)s / 60, (unsigned)s % 60);
	else if (s < 86400)
		(void)snprintf(out, 16, "%uh%02um", (unsigned)s / 3600, (unsigned)s / 60 % 60);
	else
		(void)snprintf(out, 16, "%ud%02uh", (unsigned)(s / 86400 % 10000), (unsigned)(s / 3600 % 24));
}

static void top_count(uint64_t n, char out[16])
{
	if (n == TOP_UNKNOWN)
		(void)snprintf(out, 16, "-");
	else
		(void)snprintf(out, 16, "%u", (unsigned)(n % 1000000000));
}

static void top_percent(uint64_t pm, char out[16])
{
	if (pm == TOP_UNKNOWN)
		(void)snprintf(out, 16, "-");
	else
		(void)snprintf(out, 16, "%u.%u", (unsigned)(pm / 10 % 1000000), (unsigned)(pm % 10));
}

static void (*const top_writers[TOP_SORTS])(uint64_t n, char out[16]) = {
	[TOP_BY_CPU] = top_percent,    [TOP_BY_MEMORY] = top_size, [TOP_BY_DISK] = top_size,
	[TOP_BY_COMMANDS] = top_count, [TOP_BY_PIDS] = top_count,  [TOP_BY_IDLE] = top_time,
};

/* Adds a cell at *len; what is too long for it is cut. */
static void top_cell(char out[TOP_LINE], size_t *len, size_t width, int cell, const char *text)
{
	size_t room = (size_t)(cell < 0 ? -cell : cell), n = strlen(text);
	char cut[CUBE_NAME_MAX + 1];

	(void)snprintf(cut, sizeof(cut), "%.*s%s", (int)(n > room ? room - 1 : n), text, n > room ? "~" : "");
	if (*len + room + 1 > width || *len + room + 2 > TOP_LINE)
		return;
	*len += (size_t)snprintf(out + *len, TOP_LINE - *len, "%s%*s", *len > 0 ? " " : "", cell, cut);
}

/* The name takes what the others leave. */
static int top_width(enum top_sort column, size_t width)
{
	int others = 0;

	if (column != TOP_BY_NAME)
		return top_columns[column].width;
	for (unsigned i = TOP_BY_NAME + 1; i < TOP_SORTS; i++)
		others += abs(top_columns[i].width) + 1;
	if (width <= (size_t)others + TOP_NAME_WIDTH + 1)
		return -TOP_NAME_WIDTH;
	return width - (size_t)others - 1 > CUBE_NAME_MAX ? -CUBE_NAME_MAX
							  : -(int)(width - (size_t)others - 1);
}

void top_head(char out[TOP_LINE], size_t width, enum top_sort by)
{
	size_t len = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < TOP_SORTS; i++) {
		char title[16];

		/* The column that orders the rows is marked, where there is room for that. */
		(void)snprintf(title, sizeof(title), "%s%s", top_columns[i].name,
			       i == by && (int)strlen(top_columns[i].name) < abs(top_columns[i].width) ? "*"
												       : "");
		top_cell(out, &len, width, top_width(i, width), title);
	}
}

void top_line(const struct top_row *row, char out[TOP_LINE], size_t width)
{
	size_t len = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < TOP_SORTS; i++) {
		const struct top_column *c = &top_columns[i];
		char number[16];
		const char *text = number;

		if (top_writers[i] != NULL)
			top_writers[i](top_value(row, c), number);
		else
			text = i == TOP_BY_STATE && row->doing[0] != '\0' ? row->doing : top_word(row, c);
		top_cell(out, &len, width, top_width(i, width), text[0] != '\0' ? text : "-");
	}
}
