/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting a verb line: one pass, one block of memory for the words and their index. */
#include "ctl/words.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"

struct splitter {
	const char *at, *end;
	char *out; /* where the next byte of a word goes */
	struct cube_err *err;
};

static bool words_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* '...', with '' for one quote inside. @s->at is behind the opening quote. */
static int words_single(struct splitter *s)
{
	while (s->at < s->end) {
		char c = *s->at++;

		if (c == '\'') {
			if (s->at == s->end || *s->at != '\'')
				return 0;
			s->at++;
		}
		*s->out++ = c;
	}
	return cube_fail(s->err, -EINVAL, "a quote (') is not closed: end it on the same line");
}

static int words_escape(struct splitter *s)
{
	static const char from[] = "\"\\nt", to[] = "\"\\\n\t";
	const char *found;

	if (s->at == s->end)
		return cube_fail(s->err, -EINVAL, "a quote (\") is not closed: end it on the same line");
	found = memchr(from, *s->at, sizeof(from) - 1);
	if (found == NULL)
		return cube_fail(s->err, -EINVAL,
				 "unknown escape \\%c: in \"...\" there are \\\" \\\\ \\n \\t", *s->at);
	s->at++;
	*s->out++ = to[found - from];
	return 0;
}

/* "..." with escapes. */
static int words_double(struct splitter *s)
{
	while (s->at < s->end) {
		char c = *s->at++;

		if (c == '"')
			return 0;
		if (c == '\\') {
			int r = words_escape(s);

			if (r < 0)
				return r;
		} else {
			*s->out++ = c;
		}
	}
	return cube_fail(s->err, -EINVAL, "a quote (\") is not closed: end it on the same line");
}

static int words_one(struct splitter *s)
{
	while (s->at < s->end && !words_is_blank(*s->at)) {
		char c = *s->at++;
		int r = 0;

		if (c == '\'')
			r = words_single(s);
		else if (c == '"')
			r = words_double(s);
		else
			*s->out++ = c;
		if (r < 0)
			return r;
	}
	*s->out++ = '\0';
	return 0;
}

static unsigned words_bound(const char *line, size_t len)
{
	unsigned n = 1;

	for (size_t i = 0; i < len; i++)
		n += words_is_blank(line[i]);
	return n < CUBE_WORDS_MAX ? n : CUBE_WORDS_MAX;
}

int cube_words_split(const char *line, size_t len, char ***ret, unsigned *ret_n, struct cube_err *err)
{
	unsigned max = words_bound(line, len), n = 0;
	size_t index = (max + 1) * sizeof(char *);
	struct splitter s = {.at = line, .end = line + len, .err = err};
	cube_auto(cube_free_auto) char **words = NULL;

	if (memchr(line, '\0', len) != NULL)
		return cube_fail(err, -EINVAL, "a line must not hold a NUL byte");
	/* A word's bytes never exceed its text's, and each needs its NUL where a blank stood. */
	words = cube_malloc(index + len + 2);
	if (words == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	s.out = (char *)words + index;
	for (;;) {
		int r;

		while (s.at < s.end && words_is_blank(*s.at))
			s.at++;
		if (s.at == s.end || *s.at == '#')
			break;
		if (n == max)
			return cube_fail(err, -EINVAL, "more than %u words in one line", CUBE_WORDS_MAX);
		words[n++] = s.out;
		r = words_one(&s);
		if (r < 0)
			return r;
	}
	words[n] = NULL;
	*ret = cube_steal(words);
	*ret_n = n;
	return 0;
}
