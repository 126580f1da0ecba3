/* SPDX-License-Identifier: Apache-2.0 */
/* The head of an HTTP request: line by line, each kept, changed or left out. */
#include "ctl/ports/head.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "backends/base/macros.h"

struct span {
	const char *at;
	size_t len;
};

struct head_call {
	struct cube_head *head;
	const char *cookie;
	struct cube_buf *out;
	struct span line; /* with its end */
};

static bool span_is(struct span s, const char *text)
{
	return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

static bool span_begins(struct span s, const char *text)
{
	return s.len >= strlen(text) && memcmp(s.at, text, strlen(text)) == 0;
}

/* What is in front of the first @c, or all of it; @s goes on behind. */
static struct span span_cut(struct span *s, char c)
{
	const char *end = s->len > 0 ? memchr(s->at, c, s->len) : NULL;
	struct span first = {s->at, end != NULL ? (size_t)(end - s->at) : s->len};

	s->at += first.len + (end != NULL);
	s->len -= first.len + (end != NULL);
	return first;
}

static struct span span_trim(struct span s)
{
	while (s.len > 0 && (s.at[0] == ' ' || s.at[0] == '\t'))
		s.at++, s.len--;
	while (s.len > 0 && strchr(" \t\r\n", s.at[s.len - 1]) != NULL)
		s.len--;
	return s;
}

/* One that is too long is none. */
static void span_copy(struct span s, char *out, size_t size)
{
	if (s.len >= size)
		return;
	memcpy(out, s.at, s.len);
	out[s.len] = '\0';
}

static bool span_has(struct span s, const char *text)
{
	size_t n = strlen(text);

	for (size_t i = 0; i + n <= s.len; i++)
		if (strncasecmp(s.at + i, text, n) == 0)
			return true;
	return false;
}

/* ---- the parts ---- */

/* An address without our parameter, which goes to @token (NULL: nowhere). */
static int head_strip(struct span url, char *token, struct cube_buf *out)
{
	struct span path = span_cut(&url, '?');
	char before = '?';

	cube_buf_add(out, path.at, path.len);
	if (url.at == path.at + path.len) /* there was no query */
		return out->error;
	while (url.len > 0) {
		struct span one = span_cut(&url, '&'), value = one;

		if (span_is(span_cut(&value, '='), CUBE_HEAD_QUERY)) {
			if (token != NULL && token[0] == '\0')
				span_copy(value, token, CUBE_TOKEN_TEXT);
			continue;
		}
		cube_buf_addc(out, before);
		cube_buf_add(out, one.at, one.len);
		before = '&';
	}
	return out->error;
}

/* METHOD TARGET VERSION */
static int head_request(struct head_call *c)
{
	struct span rest = c->line, method = span_cut(&rest, ' '), target = span_cut(&rest, ' ');
	struct cube_head *h = c->head;

	if (method.len == 0 || target.len == 0 || rest.len == 0)
		return -EINVAL;
	h->get = span_is(method, "GET") || span_is(method, "HEAD");
	cube_buf_add(c->out, method.at, method.len + 1);
	int r = head_strip(target, h->query, &h->target);
	if (r < 0)
		return r;
	cube_buf_add(c->out, h->target.data, h->target.len);
	cube_buf_addc(c->out, ' ');
	return cube_buf_add(c->out, rest.at, rest.len);
}

static int head_cookie(struct head_call *c, struct span value)
{
	bool any = false;

	while (value.len > 0) {
		struct span one = span_trim(span_cut(&value, ';')), word = one;

		if (one.len == 0)
			continue;
		if (span_begins(one, CUBE_HEAD_COOKIE)) {
			if (span_is(span_cut(&word, '='), c->cookie))
				span_copy(word, c->head->cookie, CUBE_TOKEN_TEXT);
			continue;
		}
		cube_buf_adds(c->out, any ? "; " : "Cookie: ");
		cube_buf_add(c->out, one.at, one.len);
		any = true;
	}
	return any ? cube_buf_adds(c->out, "\r\n") : c->out->error;
}

static int head_field(struct head_call *c, struct span value)
{
	span_copy(value, c->head->field, CUBE_TOKEN_TEXT);
	return 0;
}

static int head_referer(struct head_call *c, struct span value)
{
	cube_buf_adds(c->out, "Referer: ");
	(void)head_strip(value, NULL, c->out);
	return cube_buf_adds(c->out, "\r\n");
}

static int head_keep(struct head_call *c)
{
	return cube_buf_add(c->out, c->line.at, c->line.len);
}

static int head_host(struct head_call *c, struct span value)
{
	span_copy(value, c->head->host, sizeof(c->head->host));
	return head_keep(c);
}

/* One that does not fit is foreign for certain. */
static int head_origin(struct head_call *c, struct span value)
{
	if (value.len >= sizeof(c->head->origin))
		c->head->foreign = true;
	span_copy(value, c->head->origin, sizeof(c->head->origin));
	return head_keep(c);
}

static int head_site(struct head_call *c, struct span value)
{
	c->head->foreign |= !span_is(value, "same-origin") && !span_is(value, "none");
	return head_keep(c);
}

static int head_mode(struct head_call *c, struct span value)
{
	c->head->navigates = span_is(value, "navigate");
	return head_keep(c);
}

static int head_accept(struct head_call *c, struct span value)
{
	c->head->html = span_has(value, "text/html");
	return head_keep(c);
}

static const struct {
	const char *name;
	int (*take)(struct head_call *c, struct span value);
} head_fields[] = {
	{"Cookie", head_cookie}, {CUBE_HEAD_FIELD, head_field}, {"Referer", head_referer},
	{"Host", head_host},     {"Origin", head_origin},       {"Sec-Fetch-Site", head_site},
	{"Accept", head_accept}, {"Sec-Fetch-Mode", head_mode},
};

/* A word of HTTP. Else others might read another name; what begins with a blank belongs to the line before. */
static bool head_is_name(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.at[i] <= ' ' || s.at[i] >= 0x7f || strchr("()<>@,;\\\"/[]?={}", s.at[i]) != NULL)
			return false;
	return s.len > 0;
}

static int head_line(struct head_call *c)
{
	struct span value = c->line, name;

	if (span_trim(c->line).len == 0) /* the last one */
		return head_keep(c);
	name = span_cut(&value, ':');
	if (!head_is_name(name))
		return -EINVAL;
	for (size_t i = 0; i < CUBE_COUNT(head_fields); i++)
		if (name.len == strlen(head_fields[i].name) &&
		    strncasecmp(name.at, head_fields[i].name, name.len) == 0)
			return head_fields[i].take(c, span_trim(value));
	return head_keep(c);
}

/* "http://HOST" of the page that makes it, against where it goes. */
static bool head_is_own(const struct cube_head *h)
{
	const char *at = strstr(h->origin, "://");

	return h->origin[0] == '\0' || (at != NULL && strcasecmp(at + 3, h->host) == 0);
}

int cube_head_read(const char *head, size_t len, const char *cookie, struct cube_head *ret,
		   struct cube_buf *out)
{
	struct head_call c = {.head = ret, .cookie = cookie, .out = out};
	struct span rest = {head, len};
	bool first = true;
	int r = 0;

	*ret = (struct cube_head){.target = CUBE_BUF(CUBE_HEAD_MAX)};
	while (r == 0 && rest.len > 0) {
		c.line.at = rest.at;
		c.line.len = span_cut(&rest, '\n').len;
		c.line.len += c.line.at + c.line.len < head + len; /* with its newline */
		r = first ? head_request(&c) : head_line(&c);
		first = false;
	}
	ret->foreign |= !head_is_own(ret);
	return r < 0 ? r : out->error;
}

void cube_head_done(struct cube_head *h)
{
	cube_buf_done(&h->target);
}
