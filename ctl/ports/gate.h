/* SPDX-License-Identifier: Apache-2.0 */
/* Who comes in through an exposed port: what a connection says before it is let through, and with HTTP before each
 * of its requests. Knows bytes, no sockets.
 *
 * A request of HTTP needs the port's word, in its query, a header or a cookie, and goes in without it; each one of
 * a connection is looked at, since a browser tells its cookies with each. A browser that brings the word in its
 * address is sent to the same address without, with a cookie, so that neither pages nor logs inside see it. After
 * an upgrade (WebSocket) bytes pass as they are.
 *
 * What is no HTTP can bring no word. It passes where the port is public, and where a process of this machine is
 * known to belong to the user who mounted (who can read the word anyway). */
#ifndef CUBEFS_CTL_PORTS_GATE_H
#define CUBEFS_CTL_PORTS_GATE_H

#include <stdbool.h>
#include <stddef.h>

#include "backends/base/buf.h"
#include "backends/base/relay.h"
#include "ctl/ports/head.h"

struct http_parser;

enum cube_gate_state {
	CUBE_GATE_FIRST, /* is it HTTP? */
	CUBE_GATE_HEAD,  /* of a request */
	CUBE_GATE_BODY,
	CUBE_GATE_THROUGH
};

struct cube_gate {
	bool open;                                  /* public: no word is needed */
	bool own;                                   /* the user's own process: what is no HTTP passes */
	char cookie[40];                            /* name of this port's */
	const char *port;                           /* for texts; borrowed */
	bool (*opens)(void *ctx, const char *word); /* is it the word? */
	void *ctx;
	/* private */
	enum cube_gate_state state;
	bool http;     /* it has made a request */
	bool blank;    /* head: at the start of a line */
	bool complete; /* the parser: the request is all there */
	bool swallow;  /* the request was answered here: its body goes nowhere */
	struct cube_buf head;
	struct http_parser *parser;
};

/* @g's public part is filled. -ENOMEM. */
int cube_gate_init(struct cube_gate *g);
void cube_gate_done(struct cube_gate *g);

/* As look in backends/base/relay.h. @len 0 with @end: nothing more comes; without: decide by what came. */
enum cube_relay_verdict cube_gate_look(struct cube_gate *g, const char *data, size_t len, bool end,
				       struct cube_buf *on, struct cube_buf *back);
/* It has said a part of a first line that may be of HTTP or not, and could go on as it is. */
bool cube_gate_hesitates(const struct cube_gate *g);
/* An answer for one that spoke HTTP; nothing for others. */
void cube_gate_answer(const struct cube_gate *g, const char *status, const char *text, struct cube_buf *back);

#endif
