/* SPDX-License-Identifier: Apache-2.0 */
/* A request whose answer is a stream of bytes both ways: the connection has an end of being HTTP (101, or an engine's
 * plain 200). Over TCP, TLS or a unix socket, as the server is reached. */
#ifndef CUBEFS_BACKENDS_BASE_HTTP_DUPLEX_H
#define CUBEFS_BACKENDS_BASE_HTTP_DUPLEX_H

#include <sys/types.h>

#include "backends/base/http.h"

struct cube_http_duplex;

/* Blocks until the answer's head is there, interrupted by @cancel and bounded by the call's time. Of @call method, path,
 * headers, body and timeout_s count. 0: a stream. Else as cube_http_run, where the server refused with its status and
 * what it said in @answer, and -EREMOTEIO. Connects anew each time. */
int cube_http_duplex_open(struct cube_http *h, const struct cube_http_call *call, struct cube_cancel *cancel,
			  struct cube_http_answer *answer, struct cube_http_duplex **ret,
			  struct cube_err *err);
/* One thread at a time, from here on. */
void cube_http_duplex_free(struct cube_http_duplex *s);

/* For poll(2) and the like. Read until -EAGAIN before waiting for it: bytes may have been taken from it already. */
int cube_http_duplex_fd(const struct cube_http_duplex *s);
/* Never block: how many bytes; 0 at the end (recv); -EAGAIN; -EPIPE it is broken. */
ssize_t cube_http_duplex_recv(struct cube_http_duplex *s, void *data, size_t len);
ssize_t cube_http_duplex_send(struct cube_http_duplex *s, const void *data, size_t len);

#endif
