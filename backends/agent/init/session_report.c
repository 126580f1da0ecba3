/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of a session's shell. */
#include "backends/agent/init/session_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

char *init_report_space(struct init_report_in *in, size_t *ret_space)
{
	/* Full and nothing complete: it is no report. */
	if (in->len == sizeof(in->data))
		in->len = 0;
	*ret_space = sizeof(in->data) - in->len;
	return in->data + in->len;
}

static void report_drop(struct init_report_in *in, size_t n)
{
	in->len -= n;
	memmove(in->data, in->data + n, in->len);
}

/* A number that ends at @stop; NULL when it is none. Gives what is behind. */
static const char *report_number(const char *at, const char *end, char stop, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;
	const char *p = at;

	for (; p < end && *p >= '0' && *p <= '9'; p++) {
		uint64_t digit = (uint64_t)(*p - '0');

		if (v > (max - digit) / 10)
			return NULL;
		v = v * 10 + digit;
	}
	if (p == at || p == end || *p != stop)
		return NULL;
	*ret = v;
	return p + 1;
}

/* Copies to @out what lies between @at and @end; false when it does not fit. */
static bool report_copy(const char *at, const char *end, char *out, size_t size)
{
	size_t len = (size_t)(end - at);

	if (at > end || len >= size || memchr(at, 0, len) != NULL)
		return false;
	memcpy(out, at, len);
	out[len] = '\0';
	return true;
}

static bool report_line(const char *line, const char *end, struct init_report *r)
{
	uint64_t first = 0, second = 0;
	const char *at = line + 2;

	switch (r->kind) {
	case 'i':
		return report_number(at, end, '\n', UINT64_MAX, &r->seq) == end;
	case 'v':
		at = report_number(at, end, ' ', UINT64_MAX, &r->seq);
		break;
	case 'u':
		at = report_number(at, end, ' ', UINT32_MAX, &first);
		break;
	default:
		return false;
	}
	if (at == NULL || report_number(at, end, '\n', UINT32_MAX, &second) != end)
		return false;
	r->a = (uint32_t)(r->kind == 'u' ? first : second);
	r->b = (uint32_t)second;
	return true;
}

/* "d SEQ STATUS OPTIONS PWD" or "x PWD", up to @end. */
static bool report_end(const char *line, const char *end, struct init_report *r)
{
	const char *at = line + 2;
	const char *blank;
	uint64_t status = 0;

	if (r->kind == 'd') {
		at = report_number(at, end, ' ', UINT64_MAX, &r->seq);
		at = at != NULL ? report_number(at, end, ' ', 255, &status) : NULL;
		blank = at != NULL ? memchr(at, ' ', (size_t)(end - at)) : NULL;
		if (blank == NULL || !report_copy(at, blank, r->options, sizeof(r->options)))
			return false;
		at = blank + 1;
	}
	r->a = (uint32_t)status;
	/* A directory that is no path is not known; the command has ended all the same. */
	if (at >= end || *at != '/' || !report_copy(at, end, r->pwd, sizeof(r->pwd)))
		r->pwd[0] = '\0';
	return true;
}

/* The line "e WORD" that ends the report in @in: where it begins and where it ends. */
static bool report_find_end(const struct init_report_in *in, const char *word, const char **begin,
			    const char **end)
{
	char mark[32];
	int n = snprintf(mark, sizeof(mark), "\ne %s\n", word);

	*begin = memmem(in->data, in->len, mark, (size_t)n);
	if (*begin == NULL)
		return false;
	*end = *begin + n;
	return true;
}

/* One report from the front: how many bytes of it, 0 when it is not complete; r->kind 0 when it is none. */
static size_t report_take(const struct init_report_in *in, uint64_t seq, struct init_report *r)
{
	const char *line = in->data;
	const char *newline = memchr(line, '\n', in->len);
	const char *end, *begin;
	char word[24];
	bool ok = false;
	int n;

	*r = (struct init_report){0};
	if (newline == NULL)
		return 0;
	end = newline + 1;
	if (newline - line > 2 && line[1] == ' ')
		r->kind = line[0];
	if (r->kind == 'd') {
		n = snprintf(word, sizeof(word), "%" PRIu64, seq);
		ok = strncmp(line + 2, word, (size_t)n) == 0 && line[2 + n] == ' ';
	} else if (r->kind == 'x') {
		(void)snprintf(word, sizeof(word), "x");
		ok = true;
	} else if (r->kind != 0) {
		ok = report_line(line, end, r);
	}
	if (ok && (r->kind == 'd' || r->kind == 'x')) {
		if (!report_find_end(in, word, &begin, &end))
			return 0;
		ok = report_end(line, begin, r);
	}
	if (!ok)
		r->kind = 0;
	return (size_t)(end - line);
}

bool init_report_next(struct init_report_in *in, uint64_t seq, struct init_report *ret)
{
	size_t n;

	while ((n = report_take(in, seq, ret)) > 0) {
		report_drop(in, n);
		if (ret->kind != 0)
			return true;
	}
	return false;
}
