/* SPDX-License-Identifier: Apache-2.0 */
/* Requests on the loop: any number at once, without a thread for any of them. For answers that come bit by bit for as
 * long as something lives, and for what is sent to it meanwhile.
 *
 * All of it on the loop's thread. Handler functions are called there as well, never from inside a function of this
 * header. What http.h says of addresses, bounds, keys and sentences holds here too. */
#ifndef CUBEFS_BACKENDS_BASE_HTTP_LIVE_H
#define CUBEFS_BACKENDS_BASE_HTTP_LIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "backends/base/err.h"
#include "backends/base/http.h"
#include "backends/base/loop.h"

struct cube_http_live; /* keeps connections, for all requests that are made with it */
struct cube_http_stream;

struct cube_http_stream_handler {
	/* More of the answer, whose status is below 400; @len is at most 16 KiB or what the library thinks fit. A negative
	 * result ends it with that code. */
	int (*data)(void *ctx, const void *data, size_t len);
	/* It is over. @code 0: there is a whole answer with @status, and if that is 400 or more @text is what it says (cut);
	 * else -errno with a sentence, as cube_http_run has them. The stream is gone when this returns. */
	void (*ended)(void *ctx, int code, long status, const char *text, const struct cube_err *err);
};

/* May be called before the loop runs. NULL: out of memory. */
struct cube_http_live *cube_http_live_new(struct cube_loop *loop);
/* No request is under way. NULL is harmless. */
void cube_http_live_free(struct cube_http_live *live);

/* Begins one. @call is copied, bodies of memory only (no body_fd, no sink, no ctx). @h must live on until it has ended.
 * NULL: out of memory. */
struct cube_http_stream *cube_http_stream_new(struct cube_http_live *live, const struct cube_http *h,
					      const struct cube_http_call *call,
					      const struct cube_http_stream_handler *handler, void *ctx);
/* @on: nothing more is taken from the server (one more piece may come), until it is off again. */
void cube_http_stream_hold(struct cube_http_stream *s, bool on);
/* Gives it up: no handler function is called any more, whatever became of it at the server. NULL is harmless. */
void cube_http_stream_drop(struct cube_http_stream *s);

#endif
