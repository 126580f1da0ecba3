/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to one server that speaks HTTP: over TCP, TLS or a unix socket, on connections that are kept.
 *
 * Every call blocks its thread and is interrupted by its cancel object; any number of threads may call at once, each has
 * a connection of its own for the time of the call. What the server says is bounded and not believed: an answer that is
 * cut off, malformed or too long is a failure. Nothing of the headers of a request, in which keys are, gets into a
 * sentence. Redirections are not followed: an API has no use for them. */
#ifndef CUBEFS_BACKENDS_BASE_HTTP_H
#define CUBEFS_BACKENDS_BASE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/base/buf.h"
#include "backends/base/cancel.h"
#include "backends/base/err.h"

struct cube_http;

struct cube_http_conf {  /* strings are copied */
	const char *url; /* "http://HOST[:PORT][/PREFIX]" or https, without a slash at the end */
	const char
		*socket; /* absolute path of a unix socket; then the host of url is a mere word. NULL: TCP */
	/* PEM files; NULL: what the system trusts, no certificate of our own. */
	const char *ca_file, *cert_file, *key_file;
	const char *proxy;  /* NULL: none, whatever the environment says */
	const char *who;    /* what sentences call the server: "the engine" */
	uint32_t timeout_s; /* for which nothing may come or go; 0: 60 */
	uint32_t connect_s; /* until a connection is there; 0: 20 */
	bool http2;         /* where it is offered (TLS) */
};

/* Connects to nothing yet. -EINVAL no such URL; -ENOMEM. */
int cube_http_new(const struct cube_http_conf *conf, struct cube_http **ret, struct cube_err *err);
/* No call is under way. NULL is harmless. */
void cube_http_free(struct cube_http *h);

struct cube_http_call {
	const char *method;         /* "GET" */
	const char *path;           /* behind the url, with its query: "/v1.41/info" */
	const char *base;           /* instead of the url: one of another host of the same service; NULL */
	const char *const *headers; /* "Name: value", NULL ended; may be NULL */
	const void *body;           /* NULL: none, or from body_fd */
	size_t body_len;
	int body_fd; /* sent from where it stands to its end; looked at where has_fd is set */
	bool has_fd;
	/* Takes an answer that is no failure (below 400) as it comes, instead of the buffer; a negative result ends the call
	 * with it. May be NULL. */
	int (*sink)(void *ctx, const void *data, size_t len);
	void *ctx;
	uint32_t
		timeout_s; /* 0: the server's; CUBE_HTTP_EVER: none, for answers that come when something happens */
};
#define CUBE_HTTP_EVER UINT32_MAX

#define CUBE_HTTP_HEAD ((size_t)64 << 10) /* bytes of an answer's headers */

struct cube_http_answer {
	long status;          /* 200 */
	struct cube_buf head; /* its lines */
	struct cube_buf body; /* its ceiling is the caller's to set */
};

/* An empty one that takes up to @max bytes of body. */
void cube_http_answer_init(struct cube_http_answer *a, size_t max);
void cube_http_answer_done(struct cube_http_answer *a);
/* The value of the last header @name, without blanks around, in @out, cut there; false: none. */
bool cube_http_header(const struct cube_http_answer *a, const char *name, char *out, size_t size);

/* 0: there is an answer, whatever its status. Else there is none, or a part of one: -EINTR cancelled; -EHOSTUNREACH
 * nobody there; -EACCES the socket is not ours to open, or the certificate is not trusted; -ETIMEDOUT; -EMSGSIZE too
 * long; -EREMOTEIO cut off or malformed; what sink said; -ENOMEM. What was safe to repeat was repeated when a kept
 * connection turned out to be closed. */
int cube_http_run(struct cube_http *h, const struct cube_http_call *call, struct cube_cancel *cancel,
		  struct cube_http_answer *answer, struct cube_err *err);

/* Adds @text for a place in a path or a query, with %XX for all but A-Z a-z 0-9 . _ ~ -. */
int cube_http_escape(struct cube_buf *b, const char *text);

#endif
