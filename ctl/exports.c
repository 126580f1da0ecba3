/* SPDX-License-Identifier: Apache-2.0 */
/* Reading what a shell printed of its exported variables. */
#include "ctl/exports.h"

#include <stdbool.h>
#include <string.h>

#include "backends/base/macros.h"
#include "backends/base/name.h"

struct reader {
	const char *at, *end;
};

static bool exports_skip(struct reader *r, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
		return false;
	r->at += n;
	return true;
}

static void exports_skip_line(struct reader *r)
{
	const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));

	r->at = newline != NULL ? newline + 1 : r->end;
}

/* "...": a backslash takes the meaning of \ " $ ` away, before anything else it stands for itself. */
static bool exports_double(struct reader *r, struct cube_buf *out)
{
	while (r->at < r->end && *r->at != '"') {
		if (*r->at == '\\' && r->end - r->at > 1) {
			if (strchr("\\\"$`", r->at[1]) != NULL && r->at[1] != '\0')
				r->at++;
		}
		cube_buf_addc(out, *r->at++);
	}
	return r->at < r->end && *r->at++ == '"';
}

static bool exports_single(struct reader *r, struct cube_buf *out)
{
	const char *quote = memchr(r->at, '\'', (size_t)(r->end - r->at));

	if (quote == NULL)
		return false;
	cube_buf_add(out, r->at, (size_t)(quote - r->at));
	r->at = quote + 1;
	return true;
}

static int exports_digit(char c)
{
	const char *digits = "0123456789abcdef";
	const char *found = c != '\0' ? strchr(digits, c | 0x20) : NULL;

	if (c >= '0' && c <= '9')
		return c - '0';
	return found != NULL && found - digits > 9 ? (int)(found - digits) : -1;
}

/* Up to @max digits of @base. */
static char exports_number(struct reader *r, int base, int max)
{
	int value = 0;

	for (int d; max > 0 && r->at < r->end && (d = exports_digit(*r->at)) >= 0 && d < base; max--, r->at++)
		value = value * base + d;
	return (char)value;
}

/* $'...': bash's way with control characters: \n \t \E \ooo \xHH and so on. */
static bool exports_ansi(struct reader *r, struct cube_buf *out)
{
	static const char from[] = "abeEfnrtv\\'\"?", to[] = "\a\b\033\033\f\n\r\t\v\\'\"?";

	while (r->at < r->end && *r->at != '\'') {
		const char *found;
		char c = *r->at++;

		if (c == '\\' && r->at < r->end) {
			c = *r->at;
			found = c != '\0' ? strchr(from, c) : NULL;
			if (c >= '0' && c <= '7') {
				c = exports_number(r, 8, 3);
			} else {
				r->at++;
				if (c == 'x')
					c = exports_number(r, 16, 2);
				else if (found != NULL)
					c = to[found - from];
			}
		}
		cube_buf_addc(out, c);
	}
	return r->at < r->end && *r->at++ == '\'';
}

/* A value as a shell word: quoted and unquoted parts one after the other, up to the end of the line. */
static bool exports_value(struct reader *r, struct cube_buf *out)
{
	while (r->at < r->end && *r->at != '\n') {
		bool ok = true;

		if (exports_skip(r, "$'"))
			ok = exports_ansi(r, out);
		else if (exports_skip(r, "'"))
			ok = exports_single(r, out);
		else if (exports_skip(r, "\""))
			ok = exports_double(r, out);
		else if (!exports_skip(r, "\\") || r->at < r->end) /* what is behind it stands for itself */
			cube_buf_addc(out, *r->at++);
		if (!ok)
			return false;
	}
	return true;
}

/* One `declare -x NAME="..."`, with whatever other flags. */
static bool exports_head(struct reader *r)
{
	if (exports_skip(r, "export "))
		return true;
	if (!exports_skip(r, "declare -"))
		return false;
	while (r->at < r->end && *r->at != ' ' && *r->at != '\n')
		r->at++;
	return exports_skip(r, " ");
}

static void exports_variable(struct reader *r, struct cube_buf *out)
{
	const char *name = r->at;
	size_t before = out->len, n;

	while (r->at < r->end && *r->at != '=' && *r->at != '\n')
		r->at++;
	n = (size_t)(r->at - name);
	if (r->at == r->end || *r->at != '=' || !cube_name_env_ok(name, n))
		return;
	r->at++;
	cube_buf_add(out, name, n);
	cube_buf_addc(out, '=');
	if (exports_value(r, out) && out->error == 0 &&
	    memchr(out->data + before, '\0', out->len - before) == NULL)
		cube_buf_addc(out, '\0');
	else if (out->error == 0)
		out->len = before;
}

int cube_exports_parse(const char *text, size_t len, struct cube_buf *ret)
{
	struct reader r = {.at = text, .end = text + len};

	while (r.at < r.end && ret->error == 0) {
		if (exports_head(&r))
			exports_variable(&r, ret);
		exports_skip_line(&r);
	}
	return ret->error;
}
