/* SPDX-License-Identifier: Apache-2.0 */
/* Two streams joined on the loop. */
#include "backends/base/relay.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"

#define RELAY_PIECE    (32u << 10) /* read at once, on the stack */
#define RELAY_MAX      (CUBE_RELAY_BYTES + RELAY_PIECE + (64u << 10))
#define RELAY_HALF_MS  600000u /* one way has ended and nothing moved on the other */
#define RELAY_LEAVE_MS 5000u   /* for the near side to take the last words */

struct relay_side {
	struct cube_relay *relay;
	int fd; /* -1: not there */
	struct cube_watch *watch;
	struct cube_buf out; /* waits for this side to take it */
	bool eof;            /* nothing more comes from it */
	bool shut;           /* nothing more goes to it */
};

struct cube_relay {
	struct cube_loop *loop;
	const struct cube_relay_handler *handler;
	void *ctx;
	struct relay_side near, far;
	struct cube_timer *timer; /* of the last phase */
	bool looks;
	bool connecting;
	bool leaving; /* the near side gets what waits for it, then the end */
	bool moved;   /* something did since the timer was set */
	bool broken;
};

static struct relay_side *relay_other(struct relay_side *s)
{
	return s == &s->relay->near ? &s->relay->far : &s->relay->near;
}

/* ---- the end ---- */

static void side_done(struct relay_side *s)
{
	cube_watch_free(cube_steal(s->watch));
	cube_close_auto(&s->fd);
	cube_buf_done(&s->out);
}

void cube_relay_cut(struct cube_relay *r)
{
	if (r == NULL)
		return;
	side_done(&r->near);
	side_done(&r->far);
	cube_timer_free(r->timer);
	cube_free(r);
}

static void relay_end(struct cube_relay *r)
{
	const struct cube_relay_handler *handler = r->handler;
	void *ctx = r->ctx;

	cube_relay_cut(r);
	handler->ended(ctx);
}

static void relay_late(void *ctx)
{
	struct cube_relay *r = ctx;

	if (r->leaving || !r->moved) {
		relay_end(r);
		return;
	}
	r->moved = false;
	cube_timer_start(r->timer, RELAY_HALF_MS);
}

/* Once one way has ended, the rest has a time; without memory for a timer it has none. */
static void relay_hurry(struct cube_relay *r, uint64_t ms)
{
	if (r->timer == NULL)
		r->timer = cube_timer_new(r->loop, relay_late, r);
	r->moved = false;
	if (r->timer != NULL)
		cube_timer_start(r->timer, ms);
}

/* ---- moving bytes ---- */

/* What @s takes of @data; the rest waits in its buffer. */
static void side_send(struct relay_side *s, const char *data, size_t len)
{
	ssize_t n = 0;

	if (s->fd >= 0 && s->out.len == 0 && len > 0 && !(s == &s->relay->far && s->relay->connecting)) {
		n = send(s->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			s->relay->broken = true;
			return;
		}
		n = n < 0 ? 0 : n;
	}
	if ((size_t)n < len && cube_buf_add(&s->out, data + n, len - (size_t)n) < 0)
		s->relay->broken = true;
}

static void side_flush(struct relay_side *s)
{
	ssize_t n = send(s->fd, s->out.data, s->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			s->relay->broken = true;
		return;
	}
	s->relay->moved = true;
	cube_buf_drop(&s->out, (size_t)n);
	if (s->out.len == 0)
		cube_buf_done(&s->out); /* an idle one holds none */
}

/* Last words to the near side, which may still be sending: those bytes are dropped, since closing over them
 * would take the words away. */
static void relay_leave(struct cube_relay *r)
{
	if (r->leaving)
		return;
	r->leaving = true;
	side_done(&r->far);
	relay_hurry(r, RELAY_LEAVE_MS);
}

static void relay_look(struct cube_relay *r, const char *data, size_t len)
{
	struct cube_buf on = CUBE_BUF(RELAY_MAX), back = CUBE_BUF(RELAY_MAX);
	enum cube_relay_verdict v = r->handler->look(r->ctx, data, len, &on, &back);

	if (on.error < 0 || back.error < 0)
		r->broken = true;
	side_send(&r->far, on.data, on.len);
	side_send(&r->near, back.data, back.len);
	cube_buf_done(&on);
	cube_buf_done(&back);
	if (v != CUBE_RELAY_LOOK)
		r->looks = false;
	if (v == CUBE_RELAY_LEAVE)
		relay_leave(r);
}

static void side_take(struct relay_side *s, const char *data, size_t len)
{
	struct cube_relay *r = s->relay;

	if (r->leaving)
		return;
	if (s == &r->near && r->looks)
		relay_look(r, data, len);
	else
		side_send(relay_other(s), data, len);
}

static void side_read(struct relay_side *s)
{
	char data[RELAY_PIECE];
	ssize_t n = recv(s->fd, data, sizeof(data), MSG_DONTWAIT);

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			s->relay->broken = true;
		return;
	}
	s->relay->moved = true;
	if (n > 0) {
		side_take(s, data, (size_t)n);
		return;
	}
	s->eof = true;
	if (s == &s->relay->near && s->relay->looks && !s->relay->leaving)
		relay_look(s->relay, NULL, 0);
}

/* ---- what follows from where it is ---- */

static bool side_reads(struct relay_side *s)
{
	return !s->eof && relay_other(s)->out.len < CUBE_RELAY_BYTES;
}

static void side_settle(struct relay_side *s)
{
	struct cube_relay *r = s->relay;
	bool over = r->leaving || relay_other(s)->eof;

	if (s->fd < 0 || s->shut || !over || s->out.len > 0 || (s == &r->far && r->connecting))
		return;
	s->shut = true;
	(void)shutdown(s->fd, SHUT_WR);
	if (!r->leaving && !relay_other(s)->shut)
		relay_hurry(r, RELAY_HALF_MS);
}

static void side_watch(struct relay_side *s)
{
	bool connecting = s == &s->relay->far && s->relay->connecting;

	if (s->watch != NULL)
		cube_watch_set(s->watch, (side_reads(s) && !connecting ? CUBE_WATCH_IN : 0) |
						 (s->out.len > 0 || connecting ? CUBE_WATCH_OUT : 0));
}

/* Behind everything that happened; the relay may be gone afterwards. */
static void relay_settle(struct cube_relay *r)
{
	if (!r->broken) {
		side_settle(&r->near);
		side_settle(&r->far);
	}
	if (r->broken || (r->near.shut && (r->leaving ? r->near.eof : r->far.shut))) {
		relay_end(r);
		return;
	}
	side_watch(&r->near);
	side_watch(&r->far);
}

static void relay_give_up(struct cube_relay *r, int code)
{
	struct cube_buf back = CUBE_BUF(RELAY_MAX);

	if (r->handler->refused != NULL)
		r->handler->refused(r->ctx, code, &back);
	side_send(&r->near, back.data, back.len);
	cube_buf_done(&back);
	relay_leave(r);
}

static void relay_connected(struct cube_relay *r)
{
	socklen_t size = sizeof(int);
	int code = 0;

	r->connecting = false;
	if (getsockopt(r->far.fd, SOL_SOCKET, SO_ERROR, &code, &size) < 0)
		code = errno;
	if (code != 0)
		relay_give_up(r, -code);
}

static void side_event(void *ctx, unsigned events)
{
	struct relay_side *s = ctx;
	struct cube_relay *r = s->relay;

	if (s == &r->far && r->connecting)
		relay_connected(r);
	if (s->fd >= 0 && events & CUBE_WATCH_OUT && s->out.len > 0)
		side_flush(s);
	if (s->fd >= 0 && !r->broken && events & CUBE_WATCH_IN && side_reads(s))
		side_read(s);
	relay_settle(r);
}

/* ---- for callers ---- */

static void side_init(struct cube_relay *r, struct relay_side *s, int fd)
{
	s->relay = r;
	s->fd = fd;
	cube_buf_init(&s->out, RELAY_MAX);
}

struct cube_relay *cube_relay_new(struct cube_loop *l, int near_fd, const struct cube_relay_handler *handler,
				  void *ctx)
{
	struct cube_relay *r = cube_calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	*r = (struct cube_relay){.loop = l, .handler = handler, .ctx = ctx, .looks = handler->look != NULL};
	side_init(r, &r->near, near_fd);
	side_init(r, &r->far, -1);
	r->near.watch = cube_watch_new(l, near_fd, CUBE_WATCH_IN, side_event, &r->near);
	if (r->near.watch == NULL) {
		cube_free(r);
		return NULL;
	}
	return r;
}

void cube_relay_join(struct cube_relay *r, int far_fd)
{
	if (r->leaving) {
		(void)close(far_fd);
		return;
	}
	r->far.fd = far_fd;
	r->connecting = true;
	r->far.watch = cube_watch_new(r->loop, far_fd, CUBE_WATCH_OUT, side_event, &r->far);
	if (r->far.watch == NULL)
		relay_give_up(r, -ENOMEM);
	relay_settle(r);
}

void cube_relay_refuse(struct cube_relay *r, int code)
{
	if (!r->leaving)
		relay_give_up(r, code);
	relay_settle(r);
}

void cube_relay_ask(struct cube_relay *r)
{
	if (r->looks && !r->leaving)
		relay_look(r, NULL, 0);
	relay_settle(r);
}
