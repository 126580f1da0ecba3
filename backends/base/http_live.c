/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl's multi handle on the loop: its sockets are watched, its timer is one of the loop's.
 *
 * Inside of its callbacks libcurl takes no transfer on or off. So what is begun or dropped there is noted in the
 * stream, and done by `live_settle` once libcurl has returned; the same function tells what has ended. */
#include "backends/base/http_live.h"

#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/http_priv.h"
#include "backends/base/list.h"
#include "backends/base/macros.h"

#define LIVE_TEXT    ((size_t)2 << 10) /* of an answer that is a refusal */
#define LIVE_REFUSED 400
#define LIVE_KEPT    64L /* connections */

enum stream_state { STREAM_NEW, STREAM_ON, STREAM_BROKEN, STREAM_DROPPED };

struct cube_http_live {
	struct cube_loop *loop;
	CURLM *multi;
	struct cube_timer *timer; /* libcurl's alone: it sets it only when it wants another time */
	struct cube_timer *kick;
	unsigned inside;          /* libcurl has been called and has not returned */
	struct cube_list streams; /* all */
};

struct live_socket {
	struct cube_http_live *live;
	curl_socket_t fd;
	struct cube_watch *watch;
};

struct cube_http_stream {
	struct cube_list link;
	struct cube_http_live *live;
	const struct cube_http *h;
	struct cube_http_call call; /* of what is behind it */
	char *method, *path, *base;
	void *body;
	const struct cube_http_stream_handler *handler;
	void *ctx;
	CURL *easy;
	struct curl_slist *headers;
	enum stream_state state;
	bool held;
	int code; /* what ended it from our side */
	struct cube_buf text;
	char why[CURL_ERROR_SIZE];
};

static void live_settle(struct cube_http_live *live);

/* ---- libcurl and the loop ---- */

static void live_act(struct cube_http_live *live, curl_socket_t fd, int what)
{
	int running;

	live->inside++;
	(void)curl_multi_socket_action(live->multi, fd, what, &running);
	live->inside--;
	live_settle(live);
}

static void live_ready(void *ctx, unsigned events)
{
	const struct live_socket *s = ctx;

	live_act(s->live, s->fd,
		 ((events & CUBE_WATCH_IN) != 0 ? CURL_CSELECT_IN : 0) |
			 ((events & CUBE_WATCH_OUT) != 0 ? CURL_CSELECT_OUT : 0));
}

static void live_late(void *ctx)
{
	live_act(ctx, CURL_SOCKET_TIMEOUT, 0);
}

static void live_kicked(void *ctx)
{
	live_settle(ctx);
}

static int live_socket_new(struct cube_http_live *live, curl_socket_t fd, unsigned events)
{
	struct live_socket *s = cube_calloc(1, sizeof(*s));

	if (s == NULL)
		return -1;
	s->live = live;
	s->fd = fd;
	s->watch = cube_watch_new(live->loop, fd, events, live_ready, s);
	if (s->watch == NULL) {
		cube_free(s);
		return -1;
	}
	(void)curl_multi_assign(live->multi, fd, s);
	return 0;
}

static int live_socket_change(CURL *easy, curl_socket_t fd, int what, void *ctx, void *known)
{
	struct live_socket *s = known;
	unsigned events = 0;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (s != NULL)
			cube_watch_free(s->watch);
		cube_free(s);
		return 0;
	}
	if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
		events |= CUBE_WATCH_IN;
	if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
		events |= CUBE_WATCH_OUT;
	if (s == NULL)
		return live_socket_new(ctx, fd, events);
	cube_watch_set(s->watch, events);
	return 0;
}

static int live_timer_change(CURLM *multi, long ms, void *ctx)
{
	struct cube_http_live *live = ctx;

	(void)multi;
	if (ms < 0)
		cube_timer_stop(live->timer);
	else
		cube_timer_start(live->timer, (uint64_t)ms);
	return 0;
}

struct cube_http_live *cube_http_live_new(struct cube_loop *loop)
{
	struct cube_http_live *live = cube_calloc(1, sizeof(*live));

	cube_curl_setup();
	if (live == NULL)
		return NULL;
	live->loop = loop;
	cube_list_init(&live->streams);
	live->timer = cube_timer_new(loop, live_late, live);
	live->kick = cube_timer_new(loop, live_kicked, live);
	live->multi = curl_multi_init();
	if (live->timer == NULL || live->kick == NULL || live->multi == NULL ||
	    curl_multi_setopt(live->multi, CURLMOPT_SOCKETFUNCTION, live_socket_change) != CURLM_OK ||
	    curl_multi_setopt(live->multi, CURLMOPT_SOCKETDATA, live) != CURLM_OK ||
	    curl_multi_setopt(live->multi, CURLMOPT_TIMERFUNCTION, live_timer_change) != CURLM_OK ||
	    curl_multi_setopt(live->multi, CURLMOPT_TIMERDATA, live) != CURLM_OK ||
	    curl_multi_setopt(live->multi, CURLMOPT_MAXCONNECTS, LIVE_KEPT) != CURLM_OK) {
		cube_http_live_free(live);
		return NULL;
	}
	return live;
}

/* ---- streams ---- */

static void stream_free(struct cube_http_stream *s)
{
	cube_list_remove(&s->link);
	curl_easy_cleanup(s->easy);
	curl_slist_free_all(s->headers);
	cube_buf_done(&s->text);
	cube_free(s->method);
	cube_free(s->path);
	cube_free(s->base);
	cube_free(s->body);
	cube_free(s);
}

static size_t stream_data(char *data, size_t size, size_t n, void *ctx)
{
	struct cube_http_stream *s = ctx;
	size_t len = size * n, room = LIVE_TEXT - s->text.len;
	long status = 0;

	if (s->state != STREAM_ON)
		return 0;
	(void)curl_easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status >= LIVE_REFUSED)
		(void)cube_buf_add(&s->text, data, len < room ? len : room);
	else if (s->handler->data != NULL)
		s->code = s->handler->data(s->ctx, data, len);
	return s->code < 0 ? 0 : len;
}

static bool stream_copy(struct cube_http_stream *s, const struct cube_http_call *call)
{
	s->method = cube_strdup(call->method);
	s->path = cube_strdup(call->path);
	s->base = call->base != NULL ? cube_strdup(call->base) : NULL;
	s->body = call->body != NULL ? cube_memdup(call->body, call->body_len) : NULL;
	s->call = (struct cube_http_call){.method = s->method,
					  .path = s->path,
					  .base = s->base,
					  .headers = call->headers, /* for the time of cube_http_set */
					  .body = s->body,
					  .body_len = call->body_len,
					  .timeout_s = call->timeout_s};
	return s->method != NULL && s->path != NULL && (s->base != NULL) == (call->base != NULL) &&
	       (s->body != NULL) == (call->body != NULL);
}

#define OPT(option, value) (curl_easy_setopt(s->easy, option, value) == CURLE_OK)

static bool stream_set(struct cube_http_stream *s)
{
	bool ok = s->easy != NULL && cube_http_set(s->h, &s->call, s->easy, &s->headers) &&
		  OPT(CURLOPT_ERRORBUFFER, s->why) && OPT(CURLOPT_WRITEFUNCTION, stream_data) &&
		  OPT(CURLOPT_WRITEDATA, s) && OPT(CURLOPT_PRIVATE, s);

	s->call.headers = NULL;
	return ok;
}

struct cube_http_stream *cube_http_stream_new(struct cube_http_live *live, const struct cube_http *h,
					      const struct cube_http_call *call,
					      const struct cube_http_stream_handler *handler, void *ctx)
{
	struct cube_http_stream *s = cube_calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	cube_list_init(&s->link);
	s->live = live;
	s->h = h;
	s->handler = handler;
	s->ctx = ctx;
	cube_buf_init(&s->text, LIVE_TEXT);
	s->easy = curl_easy_init();
	if (!stream_copy(s, call) || !stream_set(s)) {
		stream_free(s);
		return NULL;
	}
	cube_list_push(&live->streams, &s->link);
	cube_timer_start(live->kick, 0);
	return s;
}

void cube_http_stream_hold(struct cube_http_stream *s, bool on)
{
	CURLcode got;

	if (s->held == on || s->state != STREAM_ON)
		return;
	s->held = on;
	s->live->inside++; /* what libcurl has kept is handed over at once */
	got = curl_easy_pause(s->easy, on ? CURLPAUSE_RECV : CURLPAUSE_CONT);
	s->live->inside--;
	if (got == CURLE_OK || s->state != STREAM_ON)
		return;
	s->state = STREAM_BROKEN; /* libcurl says it here alone, and would go on behind what was refused */
	cube_timer_start(s->live->kick, 0);
}

void cube_http_stream_drop(struct cube_http_stream *s)
{
	if (s == NULL)
		return;
	if (s->state == STREAM_NEW) {
		stream_free(s);
		return;
	}
	s->state = STREAM_DROPPED;
	cube_timer_start(s->live->kick, 0);
}

static void stream_end(struct cube_http_stream *s, CURLcode got)
{
	const struct cube_http_stream_handler *handler = s->handler;
	struct cube_err err = {0};
	long status = 0;
	int code = 0;

	(void)curl_easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
	if (got != CURLE_OK)
		code = cube_http_failed(s->h, &s->call, s->easy, got, s->code, s->why, &err);
	(void)curl_multi_remove_handle(s->live->multi, s->easy);
	handler->ended(s->ctx, code, status, cube_buf_str(&s->text), &err);
	stream_free(s);
}

static void live_changes(struct cube_http_live *live)
{
	cube_list_each (i, &live->streams) {
		struct cube_http_stream *s = cube_list_entry(i, struct cube_http_stream, link);

		if (s->state == STREAM_NEW) {
			s->state = STREAM_ON;
			if (curl_multi_add_handle(live->multi, s->easy) != CURLM_OK) {
				s->state = STREAM_BROKEN; /* nothing else would say so */
				s->code = -ENOMEM;
			}
		} else if (s->state == STREAM_DROPPED) {
			(void)curl_multi_remove_handle(live->multi, s->easy);
			stream_free(s);
		}
	}
}

/* NULL: none is. Looked for anew each time, since whoever is told that one has ended may drop others. */
static struct cube_http_stream *live_broken(const struct cube_http_live *live)
{
	cube_list_each (i, &live->streams) {
		struct cube_http_stream *s = cube_list_entry(i, struct cube_http_stream, link);

		if (s->state == STREAM_BROKEN)
			return s;
	}
	return NULL;
}

/* Only where libcurl is not further up. */
static void live_settle(struct cube_http_live *live)
{
	struct cube_http_stream *broken;
	const CURLMsg *m;
	int left;

	if (live->inside > 0)
		return;
	live_changes(live);
	while ((broken = live_broken(live)) != NULL)
		stream_end(broken, CURLE_WRITE_ERROR);
	while ((m = curl_multi_info_read(live->multi, &left)) != NULL) {
		CURLcode got = m->data.result;
		struct cube_http_stream *s = NULL;

		if (m->msg != CURLMSG_DONE)
			continue;
		(void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &s);
		if (s->state == STREAM_ON)
			stream_end(s, got);
	}
}

void cube_http_live_free(struct cube_http_live *live)
{
	if (live == NULL)
		return;
	if (live->multi != NULL)
		live_settle(live); /* those that were dropped */
	(void)curl_multi_cleanup(live->multi);
	cube_timer_free(live->timer);
	cube_timer_free(live->kick);
	cube_free(live);
}
