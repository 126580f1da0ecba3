/* SPDX-License-Identifier: Apache-2.0 */
/* From text to commands: words, quotes, comments, variables.
 *
 * The language is a corner of the shell's, so that what it can say means the same in both. What it
 * cannot say (pipes, redirections, background) is a syntax error rather than something else. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/buf.h"
#include "backends/base/name.h"
#include "backends/mem/mem_priv.h"

#define WORDS_MAX 4096

void mem_args_done(struct mem_args *a)
{
	for (unsigned i = 0; i < a->n; i++)
		cube_free(a->v[i]);
	cube_free(a->v);
	*a = (struct mem_args){.v = NULL};
}

/* Takes over @word, which may be NULL after a failed allocation. */
static int args_push(struct mem_args *a, char *word)
{
	char **grown =
		word != NULL && a->n < WORDS_MAX ? cube_realloc(a->v, (a->n + 2) * sizeof(*a->v)) : NULL;

	if (grown == NULL) {
		cube_free(word);
		return -ENOMEM;
	}
	a->v = grown;
	a->v[a->n++] = word;
	a->v[a->n] = NULL;
	return 0;
}

int mem_args_split(struct mem_args *a, const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		size_t n = strnlen(text + at, len - at);

		if (args_push(a, cube_strndup(text + at, n)) < 0)
			return -ENOMEM;
		at += n + 1;
	}
	return 0;
}

struct scan {
	const char *text;
	size_t len, at;
	const struct mem_shell *shell;
	struct cube_buf word;
	bool in_word; /* something of it was seen, an empty quote perhaps */
	struct mem_args *args;
	struct cube_err *err;
};

static int scan_peek(const struct scan *s)
{
	return s->at < s->len ? (unsigned char)s->text[s->at] : -1;
}

static int scan_add(struct scan *s, char c)
{
	s->in_word = true;
	return cube_buf_addc(&s->word, c);
}

static int scan_unended(struct scan *s, char quote)
{
	return cube_fail(s->err, -EINVAL, "syntax error: no end of the quote %c", quote);
}

/* `$NAME`, `${NAME}`, `$?`; a lone `$` is one. Behind the dollar. */
static int scan_variable(struct scan *s)
{
	bool braces = scan_peek(s) == '{';
	size_t from = s->at + (braces ? 1 : 0);
	size_t end = from;
	const char *value;

	if (scan_peek(s) == '?') {
		s->at++;
		s->in_word = true;
		return cube_buf_printf(&s->word, "%d", s->shell->status);
	}
	while (end < s->len && (isalnum((unsigned char)s->text[end]) || s->text[end] == '_'))
		end++;
	if (!cube_name_env_ok(s->text + from, end - from) ||
	    (braces && (end == s->len || s->text[end] != '}')))
		return braces ? cube_fail(s->err, -EINVAL, "syntax error: bad name in ${}")
			      : scan_add(s, '$');
	value = mem_shell_get(s->shell, s->text + from, end - from);
	s->at = end + (braces ? 1 : 0);
	if (value == NULL || value[0] == '\0')
		return 0; /* outside of quotes that alone is no word */
	s->in_word = true;
	return cube_buf_adds(&s->word, value);
}

static int scan_single(struct scan *s)
{
	const char *end = memchr(s->text + s->at, '\'', s->len - s->at);
	size_t n;

	if (end == NULL)
		return scan_unended(s, '\'');
	n = (size_t)(end - (s->text + s->at));
	s->in_word = true;
	s->at += n + 1;
	return cube_buf_add(&s->word, end - n, n);
}

static int scan_double(struct scan *s)
{
	s->in_word = true;
	for (;;) {
		int c = scan_peek(s);
		int r;

		if (c < 0)
			return scan_unended(s, '"');
		s->at++;
		if (c == '"')
			return 0;
		if (c == '\\' && scan_peek(s) > 0 && strchr("\"\\$`", scan_peek(s)) != NULL)
			c = (unsigned char)s->text[s->at++];
		else if (c == '$') {
			r = scan_variable(s);
			if (r < 0)
				return r;
			continue;
		}
		r = scan_add(s, (char)c);
		if (r < 0)
			return r;
	}
}

static int scan_escape(struct scan *s)
{
	int c = scan_peek(s);

	if (c < 0)
		return scan_add(s, '\\');
	s->at++;
	return c == '\n' ? 0 : scan_add(s, (char)c); /* a line that goes on */
}

static int scan_no_meaning(struct scan *s, char c)
{
	return cube_fail(s->err, -EINVAL, "syntax error: '%c' means nothing here, quote it", c);
}

/* One character that is not the end of a word, or what begins with it. */
static int scan_char(struct scan *s)
{
	char c = s->text[s->at++];

	switch (c) {
	case '\'':
		return scan_single(s);
	case '"':
		return scan_double(s);
	case '\\':
		return scan_escape(s);
	case '$':
		return scan_variable(s);
	default:
		break;
	}
	return strchr("|&<>()`", c) != NULL && c != '\0' ? scan_no_meaning(s, c) : scan_add(s, c);
}

static int scan_end_word(struct scan *s)
{
	char *word;
	size_t len;

	if (!s->in_word)
		return s->word.error;
	s->in_word = false;
	word = cube_buf_steal(&s->word, &len);
	return args_push(s->args, word);
}

static void scan_comment(struct scan *s)
{
	while (scan_peek(s) >= 0 && scan_peek(s) != '\n')
		s->at++;
}

/* Words up to the end of the command; what ends it is consumed. */
static int scan_command(struct scan *s)
{
	for (;;) {
		int c = scan_peek(s);
		int r = 0;

		if (c == '#' && !s->in_word) {
			scan_comment(s);
		} else if (c < 0 || strchr(" \t\n;", c) != NULL) {
			r = scan_end_word(s);
			s->at += c < 0 ? 0 : 1;
			if (r < 0 || c < 0 || c == '\n' || c == ';')
				return r;
		} else {
			r = scan_char(s);
		}
		if (r < 0)
			return r;
	}
}

int mem_parse(const char *text, size_t len, size_t *pos, const struct mem_shell *shell, struct mem_args *ret,
	      struct cube_err *err)
{
	struct scan s = {.text = text, .len = len, .at = *pos, .shell = shell, .args = ret, .err = err};
	int r = 0;

	cube_buf_init(&s.word, MEM_TEXT_MAX);
	while (r == 0 && ret->n == 0 && s.at < s.len)
		r = scan_command(&s);
	cube_buf_done(&s.word);
	*pos = s.at;
	if (r < 0) {
		mem_args_done(ret);
		return r;
	}
	return ret->n > 0 ? 1 : 0;
}
