/* SPDX-License-Identifier: Apache-2.0 */
/* Who comes in through an exposed port. */
#include "ctl/ports/gate.h"

#include <errno.h>
#include <http_parser.h>
#include <string.h>

#include "backends/base/alloc.h"

#define GATE_METHOD 64u /* longest word in front of a request's first blank */
#define GATE_PIECE  4096u
#define GATE_FIRST  (8u << 10) /* longest first line */

static int gate_complete(http_parser *p)
{
	((struct cube_gate *)p->data)->complete = true;
	http_parser_pause(p, 1); /* what follows is the next request's */
	return 0;
}

int cube_gate_init(struct cube_gate *g)
{
	g->state = CUBE_GATE_FIRST;
	cube_buf_init(&g->head, CUBE_HEAD_MAX);
	g->parser = cube_calloc(1, sizeof(*g->parser));
	return g->parser != NULL ? 0 : -ENOMEM;
}

void cube_gate_done(struct cube_gate *g)
{
	cube_buf_done(&g->head);
	cube_free(cube_steal(g->parser));
}

void cube_gate_answer(const struct cube_gate *g, const char *status, const char *text, struct cube_buf *back)
{
	if (!g->http)
		return;
	cube_buf_printf(back,
			"HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\n"
			"Cache-Control: no-store\r\nConnection: close\r\n\r\n%s",
			status, strlen(text), text);
}

static enum cube_relay_verdict gate_refuse(struct cube_gate *g, const char *status, const char *text,
					   struct cube_buf *back)
{
	g->http = true;
	cube_gate_answer(g, status, text, back);
	return CUBE_RELAY_LEAVE;
}

/* ---- the first line ---- */

enum gate_kind { GATE_UNKNOWN, GATE_HTTP, GATE_OTHER };

/* What a browser sends begins with a word, a blank, no byte that cannot be printed, and ends in HTTP/1.N. */
static enum gate_kind gate_kind(const char *data, size_t len)
{
	const char *end = memchr(data, '\n', len), *blank;
	size_t line = end != NULL ? (size_t)(end - data) : len;

	if (line > 0 && data[line - 1] == '\r')
		line--;
	blank = memchr(data, ' ', line);
	for (size_t i = 0; i < line; i++)
		if (data[i] < 0x20 || data[i] > 0x7e)
			return GATE_OTHER;
	if ((blank != NULL ? (size_t)(blank - data) : line) > GATE_METHOD || blank == data ||
	    line > GATE_FIRST)
		return GATE_OTHER;
	if (end == NULL)
		return GATE_UNKNOWN;
	return line > 9 && memcmp(data + line - 9, " HTTP/1.", 8) == 0 ? GATE_HTTP : GATE_OTHER;
}

/* As it is, from here on; what was kept back first. */
static enum cube_relay_verdict gate_through(struct cube_gate *g, const char *data, size_t len,
					    struct cube_buf *on)
{
	cube_buf_add(on, g->head.data, g->head.len);
	cube_buf_add(on, data, len);
	cube_buf_done(&g->head);
	g->state = CUBE_GATE_THROUGH;
	return CUBE_RELAY_PASS;
}

static enum cube_relay_verdict gate_other(struct cube_gate *g, struct cube_buf *on)
{
	return g->open || g->own ? gate_through(g, NULL, 0, on) : CUBE_RELAY_LEAVE;
}

/* ---- a head ---- */

static bool gate_opens(const struct cube_gate *g, const struct cube_head *h)
{
	const char *const words[] = {h->query, h->field};

	if (g->open)
		return true;
	for (size_t i = 0; i < CUBE_COUNT(words); i++)
		if (words[i][0] != '\0' && g->opens(g->ctx, words[i]))
			return true;
	/* A cookie comes by itself, also when a page of somebody else makes the request. */
	if (h->foreign && !(h->get && h->navigates))
		return false;
	return h->cookie[0] != '\0' && g->opens(g->ctx, h->cookie);
}

/* A page that is asked for with the word in its address; not `//host/`, which would lead away. */
static bool gate_redirects(const struct cube_gate *g, const struct cube_head *h)
{
	const char *target = cube_buf_str(&h->target);

	return !g->open && h->get && h->html && h->query[0] != '\0' && target[0] == '/' && target[1] != '/' &&
	       g->opens(g->ctx, h->query);
}

static void gate_redirect(const struct cube_gate *g, const struct cube_head *h, struct cube_buf *back)
{
	cube_buf_printf(
		back,
		"HTTP/1.1 303 See Other\r\nLocation: %s\r\n"
		"Set-Cookie: %s=%s; Path=/; HttpOnly; SameSite=Lax\r\n"
		"Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nContent-Length: 0\r\n\r\n",
		cube_buf_str(&h->target), g->cookie, h->query);
}

static enum cube_relay_verdict gate_next(struct cube_gate *g, struct cube_buf *on)
{
	cube_buf_done(&g->head);
	if (g->parser->upgrade)
		return g->swallow ? CUBE_RELAY_LEAVE : gate_through(g, NULL, 0, on);
	g->state = g->complete ? CUBE_GATE_HEAD : CUBE_GATE_BODY;
	return CUBE_RELAY_LOOK;
}

static enum cube_relay_verdict gate_request(struct cube_gate *g, struct cube_buf *on, struct cube_buf *back)
{
	struct cube_buf head = CUBE_BUF(2 * CUBE_HEAD_MAX);
	enum cube_relay_verdict v;
	struct cube_head h;
	int r = cube_head_read(g->head.data, g->head.len, g->cookie, &h, &head);

	g->http = true;
	g->swallow = r == 0 && gate_redirects(g, &h);
	if (r < 0)
		v = gate_refuse(g, "400 Bad Request", "cubefs: this request cannot be understood\n", back);
	else if (!gate_opens(g, &h))
		v = gate_refuse(
			g, "401 Unauthorized",
			"cubefs: this port wants its word: take the address in its url file, which has "
			"it, or send it in the header " CUBE_HEAD_FIELD
			"; `sign` in its ctl makes a new one\n",
			back);
	else {
		if (g->swallow)
			gate_redirect(g, &h, back);
		else
			cube_buf_add(on, head.data, head.len);
		v = gate_next(g, on);
	}
	cube_head_done(&h);
	cube_buf_done(&head);
	return v;
}

static const http_parser_settings gate_settings = {.on_message_complete = gate_complete};

/* The head is all there. The parser has to agree about where it ends. */
static enum cube_relay_verdict gate_head_done(struct cube_gate *g, struct cube_buf *on, struct cube_buf *back)
{
	enum http_errno e;
	size_t n;

	http_parser_init(g->parser, HTTP_REQUEST);
	g->parser->data = g;
	g->complete = false;
	n = http_parser_execute(g->parser, &gate_settings, g->head.data, g->head.len);
	e = HTTP_PARSER_ERRNO(g->parser);
	if (n == g->head.len && (e == HPE_OK || e == HPE_PAUSED))
		return gate_request(g, on, back);
	if (g->open) /* nobody who could be kept out */
		return gate_through(g, NULL, 0, on);
	return gate_refuse(g, "400 Bad Request", "cubefs: this request cannot be understood\n", back);
}

/* How many of the bytes belong to the head; *ret_end: it ends with them. */
static size_t gate_measure(struct cube_gate *g, const char *data, size_t len, bool *ret_end)
{
	for (size_t i = 0; i < len; i++) {
		if (data[i] == '\n' && g->blank) {
			*ret_end = true;
			return i + 1;
		}
		if (data[i] != '\r')
			g->blank = data[i] == '\n';
	}
	return len;
}

/* Takes some of the bytes; *ret_n: how many. */
static enum cube_relay_verdict gate_head(struct cube_gate *g, const char *data, size_t len, size_t *ret_n,
					 struct cube_buf *on, struct cube_buf *back)
{
	enum gate_kind kind = GATE_HTTP;
	bool end = false;

	if (g->state == CUBE_GATE_HEAD && g->head.len == 0)
		g->blank = false;
	if (g->state == CUBE_GATE_FIRST && len > GATE_PIECE)
		len = GATE_PIECE; /* what is no HTTP is not kept for long */
	*ret_n = gate_measure(g, data, len, &end);
	if (cube_buf_add(&g->head, data, *ret_n) < 0)
		return gate_refuse(g, "431 Request Header Fields Too Large",
				   "cubefs: the head of this request is too large\n", back);
	if (g->state == CUBE_GATE_FIRST)
		kind = gate_kind(g->head.data, g->head.len);
	if (kind == GATE_OTHER)
		return gate_other(g, on);
	if (kind == GATE_HTTP)
		g->state = CUBE_GATE_HEAD;
	return end && kind == GATE_HTTP ? gate_head_done(g, on, back) : CUBE_RELAY_LOOK;
}

/* ---- a body ---- */

static enum cube_relay_verdict gate_body(struct cube_gate *g, const char *data, size_t len, size_t *ret_n,
					 struct cube_buf *on)
{
	size_t n = http_parser_execute(g->parser, &gate_settings, data, len);
	enum http_errno e = HTTP_PARSER_ERRNO(g->parser);

	*ret_n = n;
	if (!g->swallow)
		cube_buf_add(on, data, n);
	if (e != HPE_OK && e != HPE_PAUSED)
		return CUBE_RELAY_LEAVE;
	if (g->complete)
		g->state = CUBE_GATE_HEAD;
	return CUBE_RELAY_LOOK;
}

/* ---- all of it ---- */

/* Nothing more comes, or somebody waits for long. A browser may open a connection and say nothing for a while. */
static enum cube_relay_verdict gate_decide(struct cube_gate *g, bool end, struct cube_buf *on)
{
	if (g->state != CUBE_GATE_FIRST || (!end && g->head.len == 0))
		return CUBE_RELAY_LOOK;
	return gate_other(g, on);
}

bool cube_gate_hesitates(const struct cube_gate *g)
{
	return g->state == CUBE_GATE_FIRST && g->head.len > 0 && (g->open || g->own);
}

enum cube_relay_verdict cube_gate_look(struct cube_gate *g, const char *data, size_t len, bool end,
				       struct cube_buf *on, struct cube_buf *back)
{
	enum cube_relay_verdict v = len == 0 ? gate_decide(g, end, on) : CUBE_RELAY_LOOK;

	while (v == CUBE_RELAY_LOOK && len > 0) {
		size_t n = 0;

		if (g->state == CUBE_GATE_HEAD && g->head.len == 0 && (*data == '\r' || *data == '\n'))
			n = 1; /* empty lines between requests are allowed, and mean nothing */
		else if (g->state == CUBE_GATE_BODY)
			v = gate_body(g, data, len, &n, on);
		else
			v = gate_head(g, data, len, &n, on, back);
		data += n;
		len -= n;
	}
	if (v == CUBE_RELAY_PASS)
		cube_buf_add(on, data, len);
	return v;
}
