/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's streams. Each is moved between its connection, which may be one of TLS, and one end of a pair of sockets
 * whose other end is given out. At most one piece waits each way: who does not read is not read for. */
#include "backends/docker/docker_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/http_duplex.h"
#include "backends/base/loop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STREAM_PIECE  ((size_t)32 << 10)
#define STREAM_ROUNDS 16 /* before others have their turn */

struct stream {
	struct cube_list link; /* docker_streams.all */
	struct docker_streams *of;
	struct cube_loop *loop;
	struct cube_post post;
	struct cube_http_duplex *far;
	int near;
	struct cube_watch *near_watch, *far_watch; /* NULL until it was posted */
	bool left;                                 /* by the backend, before it was posted */
	struct docker_frames frames;
	struct cube_buf in, out; /* for the near side, for the engine */
};

/* ---- frames ---- */

ssize_t docker_frames_next(struct docker_frames *f, const unsigned char *data, size_t len, size_t *ret_skip)
{
	size_t at = 0, piece;

	while (f->left == 0 && at < len) {
		f->head[f->n_head++] = data[at++];
		if (f->n_head < sizeof(f->head))
			continue;
		f->n_head = 0;
		if (f->head[0] > 3 || f->head[1] != 0 || f->head[2] != 0 || f->head[3] != 0)
			return -EPROTO;
		f->left = (uint32_t)f->head[4] << 24 | (uint32_t)f->head[5] << 16 |
			  (uint32_t)f->head[6] << 8 | f->head[7];
	}
	piece = len - at < f->left ? len - at : f->left;
	f->left -= (uint32_t)piece;
	*ret_skip = f->head[0] == DOCKER_FRAME_OUT ? at : at + piece;
	return f->head[0] == DOCKER_FRAME_OUT ? (ssize_t)piece : 0;
}

/* ---- one ---- */

static void stream_free(struct stream *s)
{
	cube_watch_free(s->near_watch);
	cube_watch_free(s->far_watch);
	cube_close_auto(&s->near);
	cube_http_duplex_free(s->far);
	cube_buf_done(&s->in);
	cube_buf_done(&s->out);
	cube_free(s);
}

static void stream_end(struct stream *s)
{
	pthread_mutex_lock(&s->of->lock);
	cube_list_remove(&s->link);
	pthread_mutex_unlock(&s->of->lock);
	stream_free(s);
}

/* 0, -EAGAIN: not now, else it has ended. */
static int stream_flush_far(struct stream *s)
{
	while (s->out.len > 0) {
		ssize_t n = cube_http_duplex_send(s->far, s->out.data, s->out.len);

		if (n < 0)
			return (int)n;
		cube_buf_drop(&s->out, (size_t)n);
	}
	return 0;
}

static int stream_flush_near(struct stream *s)
{
	while (s->in.len > 0) {
		ssize_t n = send(s->near, s->in.data, s->in.len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0)
			return -errno;
		cube_buf_drop(&s->in, (size_t)n);
	}
	return 0;
}

static int stream_out(struct stream *s)
{
	int rc = stream_flush_far(s);

	for (int round = 0; rc == 0 && round < STREAM_ROUNDS; round++) {
		char *to = cube_buf_reserve(&s->out, STREAM_PIECE);
		ssize_t n = to != NULL ? recv(s->near, to, STREAM_PIECE, MSG_DONTWAIT) : 0;

		if (n <= 0)
			return n < 0 ? -errno : -EPIPE;
		s->out.len += (size_t)n;
		rc = stream_flush_far(s);
	}
	return rc;
}

/* What of a piece of the engine's stream the process printed. */
static int stream_take(struct stream *s, const unsigned char *data, size_t len)
{
	while (len > 0) {
		size_t skip;
		ssize_t n = docker_frames_next(&s->frames, data, len, &skip);

		if (n < 0 || (n > 0 && cube_buf_add(&s->in, data + skip, (size_t)n) < 0))
			return -EPIPE;
		data += skip + (size_t)n;
		len -= skip + (size_t)n;
	}
	return 0;
}

static int stream_in(struct stream *s)
{
	unsigned char piece[STREAM_PIECE];
	int rc = stream_flush_near(s);

	for (int round = 0; rc == 0 && round < STREAM_ROUNDS; round++) {
		ssize_t n = cube_http_duplex_recv(s->far, piece, sizeof(piece));

		if (n <= 0)
			return n < 0 ? (int)n : -EPIPE;
		rc = stream_take(s, piece, (size_t)n);
		if (rc == 0)
			rc = stream_flush_near(s);
	}
	return rc;
}

/* Both ways as far as they go. What comes in by TLS may be here already without the socket telling, so that after a
 * full turn it is called again at once, which a near side with room does. */
static void stream_move(void *ctx, unsigned events)
{
	struct stream *s = ctx;
	int out = stream_out(s), in = stream_in(s);
	bool again = out == 0 || in == 0;

	(void)events;
	if ((out < 0 && out != -EAGAIN && out != -EINTR) || (in < 0 && in != -EAGAIN && in != -EINTR)) {
		stream_end(s);
		return;
	}
	cube_watch_set(s->near_watch,
		       (s->out.len == 0 ? CUBE_WATCH_IN : 0) | (s->in.len > 0 || again ? CUBE_WATCH_OUT : 0));
	cube_watch_set(s->far_watch,
		       (s->in.len == 0 ? CUBE_WATCH_IN : 0) | (s->out.len > 0 ? CUBE_WATCH_OUT : 0));
}

static void stream_posted(struct cube_post *post)
{
	struct stream *s = cube_container_of(post, struct stream, post);

	if (s->left) {
		stream_free(s);
		return;
	}
	s->near_watch = cube_watch_new(s->loop, s->near, CUBE_WATCH_IN, stream_move, s);
	s->far_watch = s->near_watch == NULL ? NULL
					     : cube_watch_new(s->loop, cube_http_duplex_fd(s->far),
							      CUBE_WATCH_IN, stream_move, s);
	if (s->far_watch == NULL)
		stream_end(s); /* without memory: the other end sees that nobody is there */
	else
		stream_move(s, 0);
}

/* ---- all ---- */

void docker_streams_init(struct docker_streams *s)
{
	pthread_mutex_init(&s->lock, NULL);
	cube_list_init(&s->all);
}

void docker_streams_done(struct docker_streams *all)
{
	for (struct cube_list *i = cube_list_pop(&all->all); i != NULL; i = cube_list_pop(&all->all)) {
		struct stream *s = cube_list_entry(i, struct stream, link);

		if (s->near_watch != NULL)
			stream_free(s);
		else
			s->left = true;
	}
	pthread_mutex_destroy(&all->lock);
}

/* Takes @far in any case. */
static int stream_new(struct cube_docker *d, struct cube_http_duplex *far, int *ret_fd, struct cube_err *err)
{
	struct stream *s = cube_calloc(1, sizeof(*s));
	int pair[2];

	if (s == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		int rc = s == NULL ? -ENOMEM : -errno;

		cube_http_duplex_free(far);
		cube_free(s);
		return cube_fail(err, rc, "a stream of the engine: %s", cube_errno_text(rc));
	}
	*s = (struct stream){.of = &d->streams, .loop = d->loop, .far = far, .near = pair[0]};
	cube_buf_init(&s->in, STREAM_PIECE);
	cube_buf_init(&s->out, STREAM_PIECE);
	s->post.fn = stream_posted;
	pthread_mutex_lock(&d->streams.lock);
	cube_list_push(&d->streams.all, &s->link);
	pthread_mutex_unlock(&d->streams.lock);
	cube_loop_post(d->loop, &s->post);
	*ret_fd = pair[1];
	return 0;
}

int docker_stream_attach(struct cube_docker *d, const char *id, struct cube_cancel *cancel, int *ret_fd,
			 struct cube_err *err)
{
	struct cube_http_duplex *far = NULL;
	struct cube_http_answer answer;
	char ref[DOCKER_REF], path[DOCKER_REF + 96];
	struct cube_err why = {0};
	int rc = docker_ref(id, ref, err);

	if (rc < 0)
		return rc;
	(void)snprintf(path, sizeof(path), "/v%s/containers/%s/attach?stream=1&stdin=1&stdout=1",
		       d->engine.api, ref);
	cube_http_answer_init(&answer, CUBE_HTTP_HEAD);
	rc = cube_http_duplex_open(d->http, &(struct cube_http_call){.method = "POST", .path = path}, cancel,
				   &answer, &far, &why);
	if (rc < 0)
		rc = cube_fail(err, answer.status == 404 ? -ENOENT : rc,
			       "cannot attach to sandbox %s: %.200s%s%.200s", id, why.text,
			       answer.body.len > 0 ? ": " : "", cube_buf_str(&answer.body));
	cube_http_answer_done(&answer);
	return rc == 0 ? stream_new(d, far, ret_fd, err) : rc;
}
