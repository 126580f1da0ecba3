/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that libcurl makes (with TLS, through a proxy) and on which the request is written by hand: it has no
 * function for answers that never end and are spoken to. The handle stays in its multi handle, which has the connection. */
#include "backends/base/http_duplex.h"

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/http_priv.h"
#include "backends/base/macros.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define STREAM_NS_S     UINT64_C(1000000000)
#define STREAM_SLICE_MS 1000

struct cube_http_duplex {
	struct cube_http_slot slot;
	curl_socket_t fd;
	struct cube_buf early; /* what came behind the head */
	size_t taken;          /* of it */
	char why[CURL_ERROR_SIZE];
};

struct stream_open {
	struct cube_http *h;
	const struct cube_http_call *call;
	struct cube_cancel *cancel;
	struct cube_http_answer *answer;
	struct cube_http_duplex *s;
	struct curl_slist *headers; /* none are sent: curl makes the connection alone */
	uint64_t end;               /* on the monotonic clock */
	char what[256];
};

void cube_http_duplex_free(struct cube_http_duplex *s)
{
	if (s == NULL)
		return;
	if (s->slot.multi != NULL && s->slot.easy != NULL)
		(void)curl_multi_remove_handle(s->slot.multi, s->slot.easy);
	curl_easy_cleanup(s->slot.easy);
	(void)curl_multi_cleanup(s->slot.multi);
	cube_buf_done(&s->early);
	cube_free(s);
}

int cube_http_duplex_fd(const struct cube_http_duplex *s)
{
	return s->fd;
}

static ssize_t stream_result(CURLcode got, size_t n)
{
	return got == CURLE_OK ? (ssize_t)n : got == CURLE_AGAIN ? -EAGAIN : -EPIPE;
}

ssize_t cube_http_duplex_recv(struct cube_http_duplex *s, void *data, size_t len)
{
	size_t left = s->early.len - s->taken, n = 0;

	if (left == 0) {
		CURLcode got = curl_easy_recv(s->slot.easy, data, len, &n);

		return stream_result(got, n);
	}
	n = left < len ? left : len;
	memcpy(data, s->early.data + s->taken, n);
	s->taken += n;
	return (ssize_t)n;
}

ssize_t cube_http_duplex_send(struct cube_http_duplex *s, const void *data, size_t len)
{
	size_t n = 0;
	CURLcode got = curl_easy_send(s->slot.easy, data, len, &n);

	return stream_result(got, n);
}

/* ---- the connection ---- */

#define OPT(option, value) (curl_easy_setopt(e, option, value) == CURLE_OK)

static bool stream_set(struct stream_open *o)
{
	struct cube_http_call bare = {
		.method = "GET", .path = "", .base = o->call->base, .timeout_s = o->call->timeout_s};
	CURL *e = o->s->slot.easy;

	return cube_http_set(o->h, &bare, e, &o->headers) && OPT(CURLOPT_CONNECT_ONLY, 1L) &&
	       OPT(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) &&
	       OPT(CURLOPT_ERRORBUFFER, o->s->why) &&
	       (o->h->proxy == NULL || OPT(CURLOPT_HTTPPROXYTUNNEL, 1L));
}

static int stream_connect(struct stream_open *o, struct cube_err *err)
{
	struct cube_http_duplex *s = o->s;
	CURLcode got;
	int code = 0;

	s->slot = (struct cube_http_slot){.multi = curl_multi_init(), .easy = curl_easy_init()};
	if (s->slot.multi == NULL || s->slot.easy == NULL || !stream_set(o) ||
	    curl_multi_add_handle(s->slot.multi, s->slot.easy) != CURLM_OK)
		return cube_fail(err, -ENOMEM, "out of memory");
	got = cube_curl_drive(s->slot.multi, o->cancel, &code);
	if (code == -EINTR)
		return cube_fail(err, code, "interrupted");
	if (got != CURLE_OK)
		return cube_http_failed(o->h, o->call, s->slot.easy, got, 0, s->why, err);
	if (curl_easy_getinfo(s->slot.easy, CURLINFO_ACTIVESOCKET, &s->fd) != CURLE_OK ||
	    s->fd == CURL_SOCKET_BAD)
		return cube_fail(err, -EREMOTEIO, "%s: %s: the connection has ended", o->h->who, o->what);
	return 0;
}

/* ---- the request, the head of the answer ---- */

static int stream_wait(const struct stream_open *o, short events, struct cube_err *err)
{
	struct pollfd p[] = {{.fd = o->s->fd, .events = events},
			     {.fd = cube_cancel_fd(o->cancel), .events = POLLIN}};

	(void)poll(p, CUBE_COUNT(p), STREAM_SLICE_MS);
	if (cube_cancel_fired(o->cancel))
		return cube_fail(err, -EINTR, "interrupted");
	if (cube_clock_mono() > o->end)
		return cube_fail(err, -ETIMEDOUT, "%s: %s: no answer in time", o->h->who, o->what);
	return 0;
}

static int stream_broke(const struct stream_open *o, struct cube_err *err)
{
	return cube_fail(err, -EREMOTEIO, "%s: %s: the connection has ended", o->h->who, o->what);
}

static int stream_write(struct stream_open *o, const void *data, size_t len, struct cube_err *err)
{
	const char *at = data;
	int rc = 0;

	while (rc == 0 && len > 0) {
		ssize_t n = cube_http_duplex_send(o->s, at, len);

		if (n == -EAGAIN)
			rc = stream_wait(o, POLLOUT, err);
		else if (n < 0)
			rc = stream_broke(o, err);
		else
			at += n;
		if (n > 0)
			len -= (size_t)n;
	}
	return rc;
}

static int stream_ask(struct stream_open *o, struct cube_err *err)
{
	const struct cube_http_call *c = o->call;
	const char *host = strstr(c->base != NULL ? c->base : o->h->url, "://") + 3,
		   *prefix = strchr(host, '/');
	struct cube_buf head = CUBE_BUF(CUBE_HTTP_HEAD);
	int rc;

	(void)cube_buf_printf(&head,
			      "%s %s%s HTTP/1.1\r\nHost: %.*s\r\nUser-Agent: cubefs\r\n"
			      "Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: %zu\r\n",
			      c->method, prefix != NULL ? prefix : "", c->path, (int)strcspn(host, "/"), host,
			      c->body_len);
	for (size_t i = 0; c->headers != NULL && c->headers[i] != NULL; i++)
		(void)cube_buf_printf(&head, "%s\r\n", c->headers[i]);
	(void)cube_buf_adds(&head, "\r\n");
	rc = head.error < 0 ? cube_fail(err, head.error, "%s: %s: %s", o->h->who, o->what,
					cube_errno_text(head.error))
			    : stream_write(o, head.data, head.len, err);
	if (rc == 0 && c->body_len > 0)
		rc = stream_write(o, c->body, c->body_len, err);
	cube_buf_done(&head);
	return rc;
}

/* More of the answer into @to; -ENODATA: it has ended. */
static int stream_more(struct stream_open *o, struct cube_buf *to, struct cube_err *err)
{
	char chunk[4096];
	ssize_t n;

	while ((n = cube_http_duplex_recv(o->s, chunk, sizeof(chunk))) == -EAGAIN) {
		int rc = stream_wait(o, POLLIN, err);

		if (rc < 0)
			return rc;
	}
	if (n <= 0)
		return -ENODATA;
	n = cube_buf_add(to, chunk, (size_t)n);
	return n < 0 ? cube_fail(err, (int)n, "%s: %s: the answer is too long", o->h->who, o->what) : 0;
}

/* Its lines go to answer->head, what is behind them to the stream. */
static int stream_head(struct stream_open *o, struct cube_err *err)
{
	struct cube_buf *head = &o->answer->head;
	const char *end = NULL;
	int rc = 0;
	size_t len;

	while (rc == 0 && end == NULL) {
		rc = stream_more(o, head, err);
		if (rc == 0) /* cube_buf_str ends it */
			end = strstr(cube_buf_str(head), "\r\n\r\n");
	}
	if (rc == -ENODATA)
		return stream_broke(o, err);
	if (rc < 0)
		return rc;
	len = (size_t)(end + 4 - head->data);
	if (sscanf(head->data, "HTTP/1.%*1[01] %3ld", &o->answer->status) != 1)
		return cube_fail(err, -EREMOTEIO, "%s: %s: what it answers is no HTTP", o->h->who, o->what);
	if (cube_buf_add(&o->s->early, head->data + len, head->len - len) < 0)
		return cube_fail(err, -ENOMEM, "out of memory");
	head->len = len;
	head->data[len] = '\0';
	return 0;
}

/* What a server that refuses says, as far as it says how long that is. */
static int stream_refused(struct stream_open *o, struct cube_err *err)
{
	struct cube_buf *body = &o->answer->body;
	char length[24] = "";
	size_t want;
	int rc = 0;

	(void)cube_http_header(o->answer, "Content-Length", length, sizeof(length));
	want = strtoul(length, NULL, 10);
	while (rc == 0 && body->len < want)
		rc = stream_more(o, body, err);
	if (rc < 0 && rc != -ENODATA)
		return rc;
	return cube_fail(err, -EREMOTEIO, "%s: %s: it answers %ld", o->h->who, o->what, o->answer->status);
}

int cube_http_duplex_open(struct cube_http *h, const struct cube_http_call *call, struct cube_cancel *cancel,
			  struct cube_http_answer *answer, struct cube_http_duplex **ret,
			  struct cube_err *err)
{
	struct stream_open o = {.h = h,
				.call = call,
				.cancel = cancel,
				.answer = answer,
				.s = cube_calloc(1, sizeof(*o.s)),
				.end = cube_clock_mono() +
				       (call->timeout_s != 0 ? call->timeout_s : h->timeout_s) * STREAM_NS_S};
	int rc;

	if (o.s == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	(void)snprintf(o.what, sizeof(o.what), "%s %.200s", call->method, call->path);
	cube_buf_init(&o.s->early, CUBE_HTTP_HEAD);
	cube_buf_reset(&answer->head);
	cube_buf_reset(&answer->body);
	answer->status = 0;
	rc = stream_connect(&o, err);
	(void)curl_easy_setopt(o.s->slot.easy, CURLOPT_HTTPHEADER, NULL);
	curl_slist_free_all(o.headers);
	if (rc == 0)
		rc = stream_ask(&o, err);
	if (rc == 0)
		rc = stream_head(&o, err);
	if (rc == 0 && answer->status != 101 && answer->status != 200)
		rc = stream_refused(&o, err);
	if (rc < 0)
		cube_http_duplex_free(o.s);
	else
		*ret = o.s;
	return rc;
}
