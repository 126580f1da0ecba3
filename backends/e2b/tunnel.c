/* SPDX-License-Identifier: Apache-2.0 */
/* A socket here and a process's standard input and output there. Its output is a stream that lasts; its input goes by
 * requests, one after the other, since their order is that of the bytes: what comes meanwhile waits for the next.
 *
 * Either way at most a piece waits in memory: a socket that does not take more has the stream held, a request under way
 * has the socket not read. Whatever breaks, the socket is closed, and the link at its other end takes up anew. */
#include "backends/e2b/e2b_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/base64.h"
#include "backends/base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TUNNEL_PIECE  ((size_t)128 << 10) /* of input, in one request */
#define TUNNEL_OUT    ((size_t)4 << 20)   /* more than one piece of a stream can be */
#define TUNNEL_SEND_S 15                  /* of silence, for one request */
#define TUNNEL_SILENT 150                 /* seconds: envd says that it lives every 50 */

struct tunnel {
	struct cube_list link; /* in e->tunnels */
	struct cube_e2b *e;    /* NULL: the instance was closed before this began */
	struct e2b_box box;
	int pid, fd;
	struct cube_post post;

	/* The loop's thread only. */
	bool posted;         /* and it has come */
	struct tunnel *next; /* the one that takes its place, and begins when this has ended */
	struct cube_watch *watch;
	struct cube_http_stream *stream, *sending;
	struct e2b_frames frames;
	struct cube_buf out; /* for the socket */
	bool begun;          /* the stream is there: from now on nothing that is said gets lost */
	bool over;           /* it has ended; what is in `out` is still for the socket */
	char *input;         /* a piece of it */
};

static void tunnel_free(struct tunnel *t)
{
	e2b_frames_done(&t->frames);
	cube_buf_done(&t->out);
	cube_free(t->input);
	cube_free(t);
}

static void tunnel_open(struct tunnel *t);

static void tunnel_end(struct tunnel *t)
{
	struct tunnel *next = t->next;

	cube_watch_free(t->watch);
	(void)close(t->fd);
	cube_http_stream_drop(t->stream);
	cube_http_stream_drop(t->sending);
	pthread_mutex_lock(&t->e->lock);
	cube_list_remove(&t->link);
	pthread_mutex_unlock(&t->e->lock);
	tunnel_free(t);
	if (next != NULL)
		tunnel_open(next);
}

static void tunnel_events(const struct tunnel *t)
{
	cube_watch_set(t->watch, (t->begun && t->sending == NULL && !t->over ? CUBE_WATCH_IN : 0) |
					 (t->out.len > 0 ? CUBE_WATCH_OUT : 0));
}

/* ---- out of the process ---- */

/* False: the socket is broken. */
static bool tunnel_flush(struct tunnel *t)
{
	while (t->out.len > 0) {
		ssize_t n = send(t->fd, t->out.data, t->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		cube_buf_drop(&t->out, (size_t)n);
	}
	return true;
}

static int tunnel_message(void *ctx, const json_t *message)
{
	struct tunnel *t = ctx;
	const json_t *event = json_object_get(message, "event"), *data = json_object_get(event, "data"),
		     *text = json_object_get(data, "stdout");

	if (json_object_get(event, "start") != NULL)
		t->begun = true;
	if (json_object_get(event, "end") != NULL)
		t->over = true;
	if (!json_is_string(text))
		return 0;
	return cube_base64_decode(&t->out, json_string_value(text), json_string_length(text));
}

static int tunnel_data(void *ctx, const void *data, size_t len)
{
	struct tunnel *t = ctx;
	struct cube_err err = {0};
	int rc = e2b_frames_feed(&t->frames, data, len, tunnel_message, t, &err);

	if (rc < 0)
		return rc;
	if (!tunnel_flush(t))
		return -EPIPE;
	if (t->out.len > 0)
		cube_http_stream_hold(t->stream, true);
	tunnel_events(t);
	return 0;
}

/* What was said before is passed on yet, if it is taken at once or soon. */
static void tunnel_ended(void *ctx, int code, long status, const char *text, const struct cube_err *err)
{
	struct tunnel *t = ctx;
	struct cube_err why = {0};

	t->stream = NULL;
	t->over = true;
	if (code == 0)
		code = e2b_envd_refused(&t->box, "reach the agent", status, text, strlen(text), &why);
	else
		why = *err;
	if (code < 0)
		cube_log(CUBE_LOG_DEBUG, "e2b", "sandbox %s: %s", t->box.id, why.text);
	if (code < 0 || t->out.len == 0)
		tunnel_end(t);
	else
		tunnel_events(t);
}

static const struct cube_http_stream_handler tunnel_stream = {.data = tunnel_data, .ended = tunnel_ended};

/* ---- into it ---- */

static void tunnel_sent(void *ctx, int code, long status, const char *text, const struct cube_err *err)
{
	struct tunnel *t = ctx;

	(void)text, (void)err;
	t->sending = NULL;
	if (code < 0 || status >= 300)
		tunnel_end(t); /* how much of it has arrived, only the agent can tell */
	else
		tunnel_events(t);
}

static const struct cube_http_stream_handler tunnel_input = {.ended = tunnel_sent};

static struct cube_http_stream *tunnel_ask(struct tunnel *t, const char *path, const char *type,
					   const struct cube_buf *body, uint32_t timeout_s,
					   const struct cube_http_stream_handler *handler)
{
	struct e2b_door door;

	if (body->error < 0 || e2b_door(t->e, &t->box, type, &door, NULL) < 0)
		return NULL;
	return cube_http_stream_new(t->e->live, t->e->data,
				    &(struct cube_http_call){.method = "POST",
							     .path = path,
							     .base = door.base,
							     .headers = door.headers,
							     .body = body->data,
							     .body_len = body->len,
							     .timeout_s = timeout_s},
				    handler, t);
}

static void tunnel_send(struct tunnel *t)
{
	struct cube_buf body = CUBE_BUF(2 * TUNNEL_PIECE);
	ssize_t n = recv(t->fd, t->input, TUNNEL_PIECE, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		(void)cube_buf_printf(&body, "{\"process\":{\"pid\":%d},\"input\":{\"stdin\":\"", t->pid);
		(void)cube_base64_add(&body, t->input, (size_t)n);
		(void)cube_buf_adds(&body, "\"}}");
		t->sending = tunnel_ask(t, "/process.Process/SendInput", "application/json", &body,
					TUNNEL_SEND_S, &tunnel_input);
	}
	cube_buf_done(&body);
	if (t->sending == NULL)
		tunnel_end(t);
	else
		tunnel_events(t);
}

/* ---- its life ---- */

static void tunnel_ready(void *ctx, unsigned events)
{
	struct tunnel *t = ctx;
	bool was_full = t->out.len > 0;

	if ((events & CUBE_WATCH_OUT) != 0 && (!tunnel_flush(t) || (t->stream == NULL && t->out.len == 0))) {
		tunnel_end(t);
		return;
	}
	if (was_full && t->out.len == 0 && t->stream != NULL)
		cube_http_stream_hold(t->stream, false);
	if ((events & CUBE_WATCH_IN) != 0 && t->begun && t->sending == NULL)
		tunnel_send(t);
	else
		tunnel_events(t);
}

/* The latest other one to the same sandbox; NULL: none. */
static struct tunnel *tunnel_before(const struct tunnel *t)
{
	struct tunnel *before = NULL;

	pthread_mutex_lock(&t->e->lock);
	cube_list_each (i, &t->e->tunnels) {
		struct tunnel *one = cube_list_entry(i, struct tunnel, link);

		if (one != t && one->posted && one->next == NULL && strcmp(one->box.id, t->box.id) == 0)
			before = one;
	}
	pthread_mutex_unlock(&t->e->lock);
	return before;
}

static bool tunnel_open_stream(struct tunnel *t)
{
	cube_auto(cube_json_auto) json_t *message = json_pack("{s:{s:i}}", "process", "pid", t->pid);
	struct cube_buf body = CUBE_BUF(4096);

	if (message != NULL && e2b_frame(message, &body) == 0)
		t->stream = tunnel_ask(t, "/process.Process/Connect", "application/connect+json", &body,
				       TUNNEL_SILENT, &tunnel_stream);
	cube_buf_done(&body);
	return t->stream != NULL;
}

static void tunnel_open(struct tunnel *t)
{
	t->watch = cube_watch_new(t->e->loop, t->fd, 0, tunnel_ready, t);
	if (t->watch == NULL || !tunnel_open_stream(t))
		tunnel_end(t);
}

/* What was said over the one before is passed on yet, and then it ends. */
static void tunnel_begin(struct cube_post *post)
{
	struct tunnel *t = cube_container_of(post, struct tunnel, post), *before;

	if (t->e == NULL) {
		(void)close(t->fd);
		tunnel_free(t);
		return;
	}
	t->posted = true;
	before = tunnel_before(t);
	if (before == NULL) {
		tunnel_open(t);
		return;
	}
	before->next = t;
	(void)shutdown(before->fd, SHUT_RDWR);
	if (before->watch != NULL && !before->begun)
		tunnel_end(before);
}

int e2b_tunnel_new(struct cube_e2b *e, const struct e2b_box *box, int pid, int fd, struct cube_err *err)
{
	struct tunnel *t = cube_calloc(1, sizeof(*t));
	char *input = cube_malloc(TUNNEL_PIECE);

	if (t == NULL || input == NULL) {
		cube_free(t);
		cube_free(input);
		return cube_fail(err, -ENOMEM, "out of memory");
	}
	t->e = e;
	t->box = *box;
	t->pid = pid;
	t->fd = fd;
	t->input = input;
	t->post.fn = tunnel_begin;
	e2b_frames_init(&t->frames);
	cube_buf_init(&t->out, TUNNEL_OUT);
	pthread_mutex_lock(&e->lock);
	cube_list_push(&e->tunnels, &t->link);
	pthread_mutex_unlock(&e->lock);
	cube_loop_post(e->loop, &t->post);
	return 0;
}

void e2b_tunnels_end(struct cube_e2b *e)
{
	while (!cube_list_empty(&e->tunnels)) {
		struct tunnel *t = cube_list_entry(e->tunnels.next, struct tunnel, link);

		t->next = NULL;
		if (t->posted) {
			tunnel_end(t);
		} else {
			cube_list_remove(&t->link);
			t->e = NULL;
		}
	}
}
