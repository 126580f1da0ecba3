/* SPDX-License-Identifier: Apache-2.0 */
/* The head of an HTTP request, without what is for cubefs alone. A pure function. */
#ifndef CUBEFS_CTL_PORTS_HEAD_H
#define CUBEFS_CTL_PORTS_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "backends/base/buf.h"
#include "ctl/ports/token.h"

#define CUBE_HEAD_MAX    (32u << 10) /* bytes of a head */
#define CUBE_HEAD_QUERY  "cubefs_token"
#define CUBE_HEAD_FIELD  "X-Cubefs-Token"
#define CUBE_HEAD_COOKIE "cubefs_" /* in front of the cookies of all ports: a browser tells them to each */

/* What a head says to cubefs. */
struct cube_head {
	char query[CUBE_TOKEN_TEXT]; /* words that it brings, "" for none */
	char field[CUBE_TOKEN_TEXT];
	char cookie[CUBE_TOKEN_TEXT];
	char host[256], origin[256];
	bool get;               /* GET or HEAD */
	bool html;              /* wants a page: somebody sits before a browser */
	bool foreign;           /* a page of another origin makes it ... */
	bool navigates;         /* ... by leading here */
	struct cube_buf target; /* of the request, without the word */
};

/* Adds @head (complete, found sound by an HTTP parser) to @out, less the query parameter, the header and the
 * cookies that are ours, the word also taken out of a Referer. @cookie: the name of this port's. -EINVAL: folded or
 * otherwise not to be told apart; -EMSGSIZE, -ENOMEM. */
int cube_head_read(const char *head, size_t len, const char *cookie, struct cube_head *ret,
		   struct cube_buf *out);
void cube_head_done(struct cube_head *h);

#endif
