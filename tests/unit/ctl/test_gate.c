/* SPDX-License-Identifier: Apache-2.0 */
/* Who comes in through an exposed port: words, what is taken out, what is no HTTP; whole and byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"
#include "ctl/ports/gate.h"

static bool opens(void *ctx, const char *word)
{
	(void)ctx;
	return strcmp(word, "good") == 0;
}

struct outcome {
	struct cube_buf on, back;
	enum cube_relay_verdict v;
};

/* Says @text in pieces of @piece bytes, then the end if @end. */
static struct outcome say(bool open, bool own, const char *text, size_t len, size_t piece, bool end)
{
	struct cube_gate g = {.open = open, .own = own, .cookie = "cubefs_me", .port = "80", .opens = opens};
	struct outcome o = {CUBE_BUF(1 << 20), CUBE_BUF(1 << 20), CUBE_RELAY_LOOK};

	assert_int_equal(cube_gate_init(&g), 0);
	for (size_t at = 0; at < len; at += piece) {
		size_t n = len - at < piece ? len - at : piece;

		if (o.v == CUBE_RELAY_PASS)
			cube_buf_add(&o.on, text + at, n);
		else if (o.v == CUBE_RELAY_LOOK)
			o.v = cube_gate_look(&g, text + at, n, false, &o.on, &o.back);
	}
	if (end && o.v == CUBE_RELAY_LOOK)
		o.v = cube_gate_look(&g, NULL, 0, true, &o.on, &o.back);
	cube_gate_done(&g);
	return o;
}

static const size_t pieces[] = {1, 2, 7, 1 << 20};

static void expect(bool open, bool own, const char *text, const char *on, const char *back,
		   enum cube_relay_verdict v)
{
	for (size_t i = 0; i < CUBE_COUNT(pieces); i++) {
		struct outcome o = say(open, own, text, strlen(text), pieces[i], true);

		assert_string_equal(cube_buf_str(&o.on), on);
		if (strncmp(cube_buf_str(&o.back), back, strlen(back)) != 0 || (!*back && o.back.len > 0))
			fail_msg("'%s' is answered by '%s'", text, cube_buf_str(&o.back));
		assert_int_equal(o.v, v);
		cube_buf_done(&o.on);
		cube_buf_done(&o.back);
	}
}

#define WORD    "X-Cubefs-Token: good\r\n"
#define REFUSED "HTTP/1.1 401 "
#define BAD     "HTTP/1.1 400 "

static void words(void **state)
{
	static const struct {
		const char *text, *on, *back;
	} cases[] = {
		{"GET / HTTP/1.1\r\n\r\n", "", REFUSED},
		{"GET /?cubefs_token=good HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", ""},
		{"GET /?cubefs_token=bad HTTP/1.1\r\n\r\n", "", REFUSED},
		{"GET /?cubefs_token HTTP/1.1\r\n\r\n", "", REFUSED},
		{"GET /?cubefs_token=goodx HTTP/1.1\r\n\r\n", "", REFUSED},
		{"GET /?xcubefs_token=good HTTP/1.1\r\n\r\n", "", REFUSED},
		{"GET /a?b=1&cubefs_token=good&c=2 HTTP/1.0\r\nHost: x\r\n\r\n",
		 "GET /a?b=1&c=2 HTTP/1.0\r\nHost: x\r\n\r\n", ""},
		{"GET /a?cubefs_token=good&&c HTTP/1.1\r\n\r\n", "GET /a?&c HTTP/1.1\r\n\r\n", ""},
		{"GET /a? HTTP/1.1\r\n" WORD "\r\n", "GET /a HTTP/1.1\r\n\r\n", ""},
		{"GET /a HTTP/1.1\r\nx-cubefs-token:good\r\nA: b\r\n\r\n", "GET /a HTTP/1.1\r\nA: b\r\n\r\n",
		 ""},
		{"GET /a HTTP/1.1\r\nCookie: a=1; cubefs_me=good; cubefs_you=x;b=2\r\n\r\n",
		 "GET /a HTTP/1.1\r\nCookie: a=1; b=2\r\n\r\n", ""},
		{"GET /a HTTP/1.1\r\nCookie: cubefs_me=good\r\n\r\n", "GET /a HTTP/1.1\r\n\r\n", ""},
		{"GET /a HTTP/1.1\r\nCookie: cubefs_you=good\r\n\r\n", "", REFUSED},
		{"GET /a HTTP/1.1\r\n" WORD "Referer: http://x/?cubefs_token=good\r\n\r\n",
		 "GET /a HTTP/1.1\r\nReferer: http://x/\r\n\r\n", ""},
		{"OPTIONS * HTTP/1.1\r\n" WORD "\r\n", "OPTIONS * HTTP/1.1\r\n\r\n", ""},
		{"GET http://h/p?cubefs_token=good HTTP/1.1\r\n\r\n", "GET http://h/p HTTP/1.1\r\n\r\n", ""},
	};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(cases); i++)
		expect(false, i % 2 == 0, cases[i].text, cases[i].on, cases[i].back,
		       cases[i].back[0] ? CUBE_RELAY_LEAVE : CUBE_RELAY_LOOK);
}

static void each_request(void **state)
{
	(void)state;
	expect(false, false,
	       "POST /a HTTP/1.1\r\n" WORD "Content-Length: 5\r\n\r\nhello"
	       "\r\nPOST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" WORD "\r\n3\r\nabc\r\n0\r\n\r\n"
	       "GET /c HTTP/1.1\r\n" WORD "\r\nGET /d HTTP/1.1\r\n\r\n",
	       "POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"
	       "POST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
	       "GET /c HTTP/1.1\r\n\r\n",
	       REFUSED, CUBE_RELAY_LEAVE);
}

static void upgrade(void **state)
{
	(void)state;
	expect(false, false,
	       "GET /ws?cubefs_token=good HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	       "\x81\x85 GET / HTTP/1.1\r\n\r\n",
	       "GET /ws HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	       "\x81\x85 GET / HTTP/1.1\r\n\r\n",
	       "", CUBE_RELAY_PASS);
	expect(false, false, "GET /ws HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81", "",
	       REFUSED, CUBE_RELAY_LEAVE);
}

/* Two readings of one head are none. */
static void smuggling(void **state)
{
	static const char *const cases[] = {
		"GET / HTTP/1.1\r\n" WORD "A: b\r\n folded\r\n\r\n",
		"GET / HTTP/1.1\r\n" WORD "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"POST / HTTP/1.1\r\n" WORD "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET / HTTP/1.1\r\n" WORD "No colon\r\n\r\n",
		"GET / HTTP/1.1\r\n" WORD "Content-Length : 1\r\n\r\n",
		"G(T / HTTP/1.1\r\n" WORD "\r\n",
		"GET  / HTTP/1.1\r\n" WORD "\r\n",
		"GET / HTTP/1.9x\r\n" WORD "\r\n",
	};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		struct outcome o = say(false, false, cases[i], strlen(cases[i]), 1 << 20, false);

		assert_int_equal(o.on.len, 0);
		assert_int_equal(o.v, CUBE_RELAY_LEAVE);
		cube_buf_done(&o.on);
		cube_buf_done(&o.back);
	}
}

static void browsers(void **state)
{
	static const char page[] = "GET /p?cubefs_token=good&q=1 HTTP/1.1\r\nAccept: text/html,*/*\r\n\r\n"
				   "GET /next HTTP/1.1\r\nCookie: cubefs_me=good\r\n\r\n";

	(void)state;
	expect(false, false, page, "GET /next HTTP/1.1\r\n\r\n",
	       "HTTP/1.1 303 See Other\r\nLocation: /p?q=1\r\nSet-Cookie: cubefs_me=good; Path=/; HttpOnly; "
	       "SameSite=Lax\r\n",
	       CUBE_RELAY_LOOK);
	/* Never to another host. */
	expect(false, false, "GET //evil/?cubefs_token=good HTTP/1.1\r\nAccept: text/html\r\n\r\n",
	       "GET //evil/ HTTP/1.1\r\nAccept: text/html\r\n\r\n", "", CUBE_RELAY_LOOK);
	/* The body of what is answered here goes nowhere. */
	expect(false, false,
	       "GET /?cubefs_token=good HTTP/1.1\r\nAccept: text/html\r\nContent-Length: 3\r\n\r\nabc", "",
	       "HTTP/1.1 303 ", CUBE_RELAY_LOOK);
}

/* A cookie comes by itself; it counts only for pages of the port itself, and for being led here. */
static void foreign_pages(void **state)
{
#define COOKIE "Cookie: cubefs_me=good\r\n"
	static const struct {
		const char *fields;
		bool opens;
	} cases[] = {
		{"Host: a:1\r\nOrigin: http://a:1\r\n", true},
		{"Host: a:1\r\nOrigin: http://a:2\r\n", false},
		{"Host: a:1\r\nOrigin: null\r\n", false},
		{"Sec-Fetch-Site: same-origin\r\n", true},
		{"Sec-Fetch-Site: none\r\n", true},
		{"Sec-Fetch-Site: same-site\r\n", false},
		{"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n", false},
		{"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n", true},
	};
	char text[400];

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		struct outcome o;

		(void)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n" COOKIE "%s\r\n", cases[i].fields);
		o = say(false, false, text, strlen(text), 1 << 20, false);
		assert_int_equal(o.on.len > 0, cases[i].opens);
		cube_buf_done(&o.on);
		cube_buf_done(&o.back);
		(void)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n" WORD "%s\r\n", cases[i].fields);
		o = say(false, false, text, strlen(text), 1 << 20, false);
		assert_true(o.on.len > 0); /* what does not come by itself counts */
		cube_buf_done(&o.on);
		cube_buf_done(&o.back);
	}
#undef COOKIE
}

static void no_http(void **state)
{
	static const char *const cases[] = {
		"\x16\x03\x01\x02 GET / HTTP/1.1\r\n\r\n",
		"SSH-2.0-x\r\nmore",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"PING",
		"PING\r\n",
		"GET key\r\n",
		"\n",
		"\r\n\r\n",
		" GET / HTTP/1.1\r\n\r\n",
		"averylongwordthatisnomethodofanyprotocolthatwasevermadebyanybodyatall",
	};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		expect(false, true, cases[i], cases[i], "", CUBE_RELAY_PASS);
		expect(true, false, cases[i], cases[i], "", CUBE_RELAY_PASS);
		expect(false, false, cases[i], "", "", CUBE_RELAY_LEAVE);
	}
	expect(false, true, "", "", "", CUBE_RELAY_PASS);
	expect(false, false, "", "", "", CUBE_RELAY_LEAVE);
}

/* A NUL is no end. */
static void binary(void **state)
{
	static const char data[] = "\0\0\0\1GET / HTTP/1.1\r\n\r\n";

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(pieces); i++) {
		struct outcome o = say(false, true, data, sizeof(data), pieces[i], false);

		assert_int_equal(o.on.len, sizeof(data));
		assert_memory_equal(o.on.data, data, sizeof(data));
		cube_buf_done(&o.on);
		cube_buf_done(&o.back);
	}
}

/* Everybody may come in; the cookies of other ports stay outside all the same. */
static void public_ports(void **state)
{
	(void)state;
	expect(true, false, "GET /?a HTTP/1.1\r\nCookie: a=1; cubefs_you=good\r\n\r\n",
	       "GET /?a HTTP/1.1\r\nCookie: a=1\r\n\r\n", "", CUBE_RELAY_LOOK);
	expect(true, false, "GET / HTTP/1.1\r\nbad line\r\n\r\nmore",
	       "GET / HTTP/1.1\r\nbad line\r\n\r\nmore", "", CUBE_RELAY_PASS);
}

static void asked_while_it_waits(void **state)
{
	struct cube_gate g = {.own = true, .cookie = "c", .port = "1", .opens = opens};
	struct cube_buf on = CUBE_BUF(100), back = CUBE_BUF(100);

	(void)state;
	assert_int_equal(cube_gate_init(&g), 0);
	/* A browser may say nothing for a while. */
	assert_int_equal(cube_gate_look(&g, NULL, 0, false, &on, &back), CUBE_RELAY_LOOK);
	assert_false(cube_gate_hesitates(&g));
	assert_int_equal(cube_gate_look(&g, "HEL", 3, false, &on, &back), CUBE_RELAY_LOOK);
	assert_true(cube_gate_hesitates(&g));
	assert_int_equal(cube_gate_look(&g, NULL, 0, false, &on, &back), CUBE_RELAY_PASS);
	assert_string_equal(cube_buf_str(&on), "HEL");
	cube_gate_done(&g);
	cube_buf_done(&on);
}

static void too_large(void **state)
{
	size_t len = CUBE_HEAD_MAX + 100;
	char *text = malloc(len);

	(void)state;
	assert_non_null(text);
	memset(text, 'a', len);
	memcpy(text, "GET / HTTP/1.1\r\nA: ", 19);
	for (size_t i = 1; i < CUBE_COUNT(pieces); i++) {
		struct outcome o = say(false, false, text, len, pieces[i], false);

		assert_int_equal(o.v, CUBE_RELAY_LEAVE);
		assert_memory_equal(cube_buf_str(&o.back), "HTTP/1.1 431 ", 13);
		assert_int_equal(o.on.len, 0);
		cube_buf_done(&o.on);
		cube_buf_done(&o.back);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words),        cmocka_unit_test(each_request),
		cmocka_unit_test(upgrade),      cmocka_unit_test(smuggling),
		cmocka_unit_test(browsers),     cmocka_unit_test(foreign_pages),
		cmocka_unit_test(no_http),      cmocka_unit_test(binary),
		cmocka_unit_test(public_ports), cmocka_unit_test(asked_while_it_waits),
		cmocka_unit_test(too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
