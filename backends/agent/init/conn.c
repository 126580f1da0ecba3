/* SPDX-License-Identifier: Apache-2.0 */
/* The connection: bytes and descriptors in, messages out. */
#include "backends/agent/init/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/agent/init/report.h"
#include "backends/agent/init/times.h"
#include "backends/base/macros.h"

#define CONN_RETRY  (250 * INIT_MS) /* a stream whose other side is away */
#define CONN_ROUNDS 8               /* reads before others have their turn */
#define CONN_FDS    8               /* more than any message has */
#define CONN_SHRINK (64u << 10)     /* an outbox that grew beyond this is not kept */

static struct {
	struct init_ev listener;
	struct init_ev in, out; /* out is not watched when it is the same descriptor */
	int in_fd, out_fd;      /* -1: no connection */
	bool same;              /* both are one descriptor */
	bool socket;            /* it passes descriptors */
	bool forever;           /* the stream is not to be closed */
	bool up;                /* the daemon has said HELLO */
	struct init_timer retry;
	struct init_outbox box;
} conn = {.in_fd = -1, .out_fd = -1};

static struct cube_wire_feed conn_feed;
static struct init_dispatch conn_dispatch;

void init_conn_setup(const struct init_handler *handler)
{
	init_dispatch_init(&conn_dispatch, handler);
	cube_wire_feed_init(&conn_feed);
}

bool init_conn_passes_fds(void)
{
	return conn.socket;
}

bool init_conn_up(void)
{
	return conn.up;
}

static int conn_open(int in, int out);

static void conn_again(struct init_timer *t)
{
	(void)t;
	(void)conn_open(conn.in_fd, conn.out_fd);
}

/* The daemon went, or does not keep to the protocol. */
static void conn_end(void)
{
	if (conn.in_fd < 0)
		return;
	init_ev_del(&conn.in);
	init_ev_del(&conn.out);
	conn.up = false;
	init_outbox_done(&conn.box);
	init_dispatch_done(&conn_dispatch);
	cube_wire_feed_init(&conn_feed);
	init_report_none();
	init_times_alone();
	if (conn.forever) {
		init_timer_set(&conn.retry, init_now() + CONN_RETRY, conn_again);
		return;
	}
	(void)close(conn.in_fd);
	conn.in_fd = conn.out_fd = -1;
}

/* The descriptors in a message. Where there was no room for them the START that they belong to ends with
 * that. */
static int conn_take_fds(struct msghdr *msg)
{
	bool lost = (msg->msg_flags & MSG_CTRUNC) != 0, seen = false;
	int fds[CONN_FDS];
	int r = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL && r == 0; c = CMSG_NXTHDR(msg, c)) {
		size_t len = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || len > sizeof(fds))
			continue;
		memcpy(fds, CMSG_DATA(c), len);
		seen = true;
		r = init_dispatch_fds(&conn_dispatch, fds, (unsigned)(len / sizeof(int)), lost);
	}
	if (lost && !seen)
		r = init_dispatch_fds(&conn_dispatch, NULL, 0, true);
	return r;
}

/* More of the stream and the descriptors in it: bytes, 0 at the end, -errno. */
static ssize_t conn_receive(void)
{
	size_t space;
	void *to = cube_wire_feed_space(&conn_feed, &space);
	union {
		char space[CMSG_SPACE(CONN_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = to, .iov_len = space};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.space,
			     .msg_controllen = sizeof(control)};
	ssize_t n;

	if (!conn.socket) {
		n = read(conn.in_fd, to, space);
		return n < 0 ? -errno : n;
	}
	n = recvmsg(conn.in_fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	return conn_take_fds(&msg) < 0 ? -EPROTO : n;
}

static int conn_frames(void)
{
	struct cube_wire_head head;
	const void *body;
	int r;

	/* A stream may still have the end of what an earlier daemon said. */
	if (conn.forever && !conn_dispatch.greeted && !cube_wire_feed_sync(&conn_feed))
		return 0;
	while ((r = cube_wire_feed_next(&conn_feed, &head, &body)) > 0) {
		r = init_dispatch_frame(&conn_dispatch, &head, body);
		if (r < 0)
			return r;
	}
	return r;
}

static void conn_readable(struct init_ev *ev, uint32_t events)
{
	(void)ev;
	if ((events & EPOLLOUT) != 0)
		init_conn_flush();
	for (int round = 0; round < CONN_ROUNDS && conn.in.fn != NULL; round++) {
		ssize_t n = conn_receive();

		if (n == -EAGAIN || n == -EINTR)
			return;
		if (n > 0)
			conn_feed.len += (size_t)n;
		if (n <= 0 || conn_frames() < 0) {
			conn_end();
			return;
		}
	}
}

static void conn_writable(struct init_ev *ev, uint32_t events)
{
	(void)ev;
	(void)events;
	init_conn_flush();
}

static void conn_want_out(bool want)
{
	if (conn.same)
		init_ev_mod(&conn.in, EPOLLIN | (want ? EPOLLOUT : 0u));
	else
		init_ev_mod(&conn.out, want ? EPOLLOUT : 0);
}

static int conn_open(int in, int out)
{
	int r;

	conn.in_fd = in;
	conn.out_fd = out;
	conn.same = in == out;
	(void)fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
	(void)fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
	r = init_ev_add(&conn.in, in, EPOLLIN, conn_readable);
	if (r == 0 && !conn.same)
		r = init_ev_add(&conn.out, out, 0, conn_writable);
	return r;
}

int init_conn_stream(int in, int out)
{
	conn.forever = conn_dispatch.again = true;
	return conn_open(in, out);
}

static void conn_accept(struct init_ev *ev, uint32_t events)
{
	/* cppcheck-suppress nullPointer ; whose address it is does not matter */
	int fd = accept4(ev->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd < 0)
		return;
	conn_end();
	conn.socket = true;
	if (conn_open(fd, fd) < 0)
		conn_end();
}

int init_conn_listen(int fd)
{
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	return init_ev_add(&conn.listener, fd, EPOLLIN, conn_accept);
}

static ssize_t conn_write(const void *data, size_t len)
{
	if (conn.socket)
		return send(conn.out_fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	return write(conn.out_fd, data, len);
}

/* All that is in the outbox: 1 when it is empty, 0 when it has to wait, -1 when the connection is broken. */
static int conn_send(void)
{
	struct init_outbox *box = &conn.box;

	while (box->off < box->len) {
		ssize_t n = conn_write(box->data + box->off, box->len - box->off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		box->off += (size_t)n;
	}
	box->off = box->len = 0;
	if (box->cap > CONN_SHRINK)
		init_outbox_done(box);
	return 1;
}

void init_conn_flush(void)
{
	int r = 1;

	if (!conn.up) {
		init_report_none();
		return;
	}
	while (r > 0) {
		init_report_fill(&conn.box);
		if (conn.box.len == conn.box.off)
			break;
		r = conn_send();
	}
	if (r < 0)
		conn_end();
	else
		conn_want_out(r == 0);
}

/* The agent's own HELLO, in answer to the daemon's. */
int init_conn_greet(const struct cube_wire_hello *m)
{
	struct cube_wire_out w;
	unsigned char *room = init_outbox_room(&conn.box, 64);

	if (room == NULL)
		return -ENOMEM;
	cube_wire_out_init(&w, room, 64);
	(void)cube_wire_put_hello(&w, m);
	conn.box.len += w.len;
	conn.up = true;
	init_report_all();
	return 0;
}
