/* SPDX-License-Identifier: Apache-2.0 */
/* The link client against an agent that the test plays: what it believes, what it refuses, and that nothing
 * blocks. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/agent/link.h"
#include "backends/agent/wire.h"
#include "backends/base/alloc.h"
#include "backends/base/loop.h"

struct seen {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned calls, ups, syncs, starts, outputs, inputs, sessions, ends, lefts, downs;
	uint64_t left;
	bool still;
	uint64_t total, err_total, got;
	char cwd[64], exports[64];
	struct cube_end_record end;
	struct cube_err err, down;
};

struct peer {
	struct cube_loop *loop;
	pthread_t thread;
	struct cube_link *link;
	int fd; /* the agent's end */
	struct seen seen;
};

static struct seen *enter(void *ctx)
{
	struct seen *s = ctx;

	pthread_mutex_lock(&s->lock);
	s->calls++;
	pthread_cond_broadcast(&s->changed);
	return s;
}

static void on_up(void *ctx, uint64_t boot)
{
	struct seen *s = enter(ctx);

	assert_int_equal(boot, 4242);
	s->ups++;
	pthread_mutex_unlock(&s->lock);
}

static void on_synced(void *ctx)
{
	struct seen *s = enter(ctx);

	s->syncs++;
	pthread_mutex_unlock(&s->lock);
}

static void on_started(void *ctx, uint64_t job, int pid)
{
	struct seen *s = enter(ctx);

	(void)job;
	assert_int_equal(pid, 33);
	s->starts++;
	pthread_mutex_unlock(&s->lock);
}

static void on_output(void *ctx, uint64_t job, uint64_t total, uint64_t err_total)
{
	struct seen *s = enter(ctx);

	(void)job;
	s->outputs++;
	s->total = total;
	s->err_total = err_total;
	pthread_mutex_unlock(&s->lock);
}

static void on_input(void *ctx, uint64_t job, uint64_t got)
{
	struct seen *s = enter(ctx);

	(void)job;
	s->inputs++;
	s->got = got;
	pthread_mutex_unlock(&s->lock);
}

static void on_session(void *ctx, const struct cube_link_session *m)
{
	struct seen *s = enter(ctx);

	(void)snprintf(s->cwd, sizeof(s->cwd), "%s", m->cwd);
	(void)snprintf(s->exports, sizeof(s->exports), "%s", m->exports != NULL ? m->exports : "(unchanged)");
	s->sessions++;
	pthread_mutex_unlock(&s->lock);
}

static void on_ended(void *ctx, uint64_t job, const struct cube_end_record *end, const struct cube_err *err)
{
	struct seen *s = enter(ctx);

	(void)job;
	s->end = *end;
	s->err = err != NULL ? *err : (struct cube_err){0};
	s->ends++;
	pthread_mutex_unlock(&s->lock);
}

static void on_left(void *ctx, uint64_t n, bool still)
{
	struct seen *s = enter(ctx);

	s->left = n;
	s->still = still;
	s->lefts++;
	pthread_mutex_unlock(&s->lock);
}

static void on_down(void *ctx, const struct cube_err *err)
{
	struct seen *s = enter(ctx);

	s->down = *err;
	s->downs++;
	pthread_mutex_unlock(&s->lock);
}

static const struct cube_link_handler handler = {
	.up = on_up,
	.synced = on_synced,
	.started = on_started,
	.output = on_output,
	.input = on_input,
	.session = on_session,
	.ended = on_ended,
	.left = on_left,
	.down = on_down,
};

static void wait_count(struct peer *p, const unsigned *count, unsigned least)
{
	struct timespec until;
	int e = 0;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 20;
	pthread_mutex_lock(&p->seen.lock);
	while (e == 0 && *count < least)
		e = pthread_cond_timedwait(&p->seen.changed, &p->seen.lock, &until);
	pthread_mutex_unlock(&p->seen.lock);
	assert_int_equal(e, 0);
}

static void *run(void *loop)
{
	cube_loop_run(loop);
	return NULL;
}

static void peer_send(struct peer *p, const struct cube_wire_out *out)
{
	size_t done = 0;

	while (done < out->len) {
		ssize_t n = send(p->fd, out->p + done, out->len - done, MSG_NOSIGNAL);

		assert_true(n > 0);
		done += (size_t)n;
	}
}

static unsigned char bytes[1 << 21];

static struct cube_wire_out begin(void)
{
	struct cube_wire_out out;

	cube_wire_out_init(&out, bytes, sizeof(bytes));
	return out;
}

static void hello(struct peer *p)
{
	const struct cube_wire_hello m = {.min = 1, .max = 1, .caps = CUBE_WIRE_CAP_FDS, .boot = 4242};
	struct cube_wire_out out = begin();

	assert_true(cube_wire_put_hello(&out, &m));
	peer_send(p, &out);
}

static void read_all(int fd, void *data, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = read(fd, (char *)data + done, len - done);

		assert_true(n > 0);
		done += (size_t)n;
	}
}

static struct peer *peer_new(bool pass_fds)
{
	struct peer *p = calloc(1, sizeof(*p));
	struct cube_err err;
	unsigned char greeting[40];
	int fds[2];

	assert_non_null(p);
	(void)pthread_mutex_init(&p->seen.lock, NULL);
	(void)pthread_cond_init(&p->seen.changed, NULL);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	p->fd = fds[1];
	p->loop = cube_loop_new();
	assert_non_null(p->loop);
	assert_int_equal(pthread_create(&p->thread, NULL, run, p->loop), 0);
	assert_int_equal(cube_agent_link_new(p->loop, fds[0], pass_fds, &handler, &p->seen, &p->link, &err),
			 0);
	read_all(p->fd, greeting, sizeof(greeting));
	return p;
}

static struct peer *peer_up(bool pass_fds)
{
	struct peer *p = peer_new(pass_fds);

	hello(p);
	wait_count(p, &p->seen.ups, 1);
	return p;
}

static void peer_free(struct peer *p)
{
	cube_link_close(p->link);
	cube_loop_stop(p->loop);
	(void)pthread_join(p->thread, NULL);
	cube_loop_free(p->loop);
	if (p->fd >= 0)
		(void)close(p->fd);
	(void)pthread_mutex_destroy(&p->seen.lock);
	(void)pthread_cond_destroy(&p->seen.changed);
	free(p);
}

static int spool(size_t size)
{
	int fd = memfd_create("spool", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	return fd;
}

static int start(struct peer *p, uint64_t job, uint64_t session, int out_fd)
{
	const struct cube_link_start s = {.job = job,
					  .session = session,
					  .text = "true",
					  .text_len = 4,
					  .merge = true,
					  .in = CUBE_STDIN_PIPE,
					  .out_fd = out_fd,
					  .order_fd = -1};
	struct cube_err err;

	return cube_link_start(p->link, &s, &err);
}

static void put_output(struct peer *p, uint64_t job, uint64_t total, uint64_t err_total)
{
	const struct cube_wire_output m = {.total = total, .err_total = err_total};
	struct cube_wire_out out = begin();

	assert_true(cube_wire_put_output(&out, job, &m));
	peer_send(p, &out);
}

static void put_ended(struct peer *p, uint64_t job, uint64_t total)
{
	const struct cube_wire_ended m = {.code = 3, .output = {.total = total, .lost = 5}};
	struct cube_wire_out out = begin();

	assert_true(cube_wire_put_ended(&out, job, &m));
	peer_send(p, &out);
}

/* Says SYNCED and waits until it has been heard, and with it all that was said before. */
static void settle(struct peer *p)
{
	struct cube_wire_out out = begin();
	unsigned before = p->seen.syncs;

	assert_true(cube_wire_put_plain(&out, CUBE_WIRE_SYNCED, 0));
	peer_send(p, &out);
	wait_count(p, &p->seen.syncs, before + 1);
}

/* Totals never go back, and are never more than the spool has; jobs that nobody knows are passed over. */
static void test_totals(void **state)
{
	struct peer *p = peer_up(true);
	int fd = spool(100);

	(void)state;
	assert_int_equal(start(p, 1, 0, fd), 0);
	put_output(p, 1, 50, 0);
	settle(p);
	assert_true(p->seen.outputs == 1 && p->seen.total == 50);
	put_output(p, 1, 40, 0);
	put_output(p, 1, 50, 0);
	put_output(p, 99, 50, 0);
	put_ended(p, 99, 50);
	settle(p);
	assert_true(p->seen.outputs == 1 && p->seen.ends == 0);
	put_output(p, 1, 1000000, 0);
	settle(p);
	assert_true(p->seen.outputs == 2 && p->seen.total == 100);
	put_ended(p, 1, 1000000);
	put_ended(p, 1, 1000000);
	settle(p);
	assert_int_equal(p->seen.ends, 1);
	assert_true(p->seen.end.total == 100 && p->seen.end.code == 3 && p->seen.end.lost == 5);
	/* What a child prints later. */
	put_output(p, 1, 120, 0);
	settle(p);
	assert_int_equal(p->seen.outputs, 3);
	{
		struct cube_wire_out out = begin();

		assert_true(cube_wire_put_plain(&out, CUBE_WIRE_GONE, 1));
		assert_true(cube_wire_put_plain(&out, CUBE_WIRE_GONE, 7));
		peer_send(p, &out);
	}
	put_output(p, 1, 130, 0);
	settle(p);
	assert_int_equal(p->seen.outputs, 3);
	(void)close(fd);
	peer_free(p);
}

static void test_busy(void **state)
{
	struct peer *p = peer_up(true);
	int fd = spool(0);

	(void)state;
	assert_int_equal(start(p, 1, 5, fd), 0);
	assert_int_equal(start(p, 2, 5, fd), -EBUSY);
	assert_int_equal(start(p, 3, 6, fd), 0);
	put_ended(p, 1, 0);
	settle(p);
	assert_int_equal(start(p, 4, 5, fd), 0);
	/* Also what the agent reports from an earlier life. */
	{
		const struct cube_wire_started m = {.pid = 33, .session = 7};
		struct cube_wire_out out = begin();

		assert_true(cube_wire_put_started(&out, 50, &m));
		peer_send(p, &out);
	}
	settle(p);
	assert_int_equal(p->seen.starts, 1);
	assert_int_equal(start(p, 5, 7, fd), -EBUSY);
	put_ended(p, 50, 0);
	settle(p);
	assert_int_equal(start(p, 6, 7, fd), 0);
	(void)close(fd);
	peer_free(p);
}

/* Each of these takes the link down, with a sentence, and nothing else happens. */
static void test_malformed(void **state)
{
	static const struct {
		bool hello;
		uint32_t len;
		uint16_t type, flags;
	} bad[] = {
		{false, 0, CUBE_WIRE_SYNCED, 0},
		{false, 24, CUBE_WIRE_HELLO, 0},
		{true, 24, CUBE_WIRE_HELLO, 0},
		{true, CUBE_WIRE_BODY_MAX + 1, CUBE_WIRE_DATA, 0},
		{true, 1, CUBE_WIRE_SYNCED, 0},
		{true, 1, CUBE_WIRE_STARTED, 0},
		{true, 23, CUBE_WIRE_OUTPUT, 0},
		{true, 15, CUBE_WIRE_CREDIT, 0},
		{true, 40, CUBE_WIRE_DATA, 0}, /* not asked for */
		{true, 40, CUBE_WIRE_SESSION, 0},
		{true, 2, CUBE_WIRE_ENDED, 0},
		{true, 1, CUBE_WIRE_GONE, 0},
		{true, 8, CUBE_WIRE_START, 0},
		{true, 0, 5000, 0},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct peer *p = bad[i].hello ? peer_up(true) : peer_new(true);
		struct cube_wire_out out = begin();

		cube_wire_put_u32(&out, bad[i].len);
		cube_wire_put_u16(&out, bad[i].type);
		cube_wire_put_u16(&out, bad[i].flags);
		cube_wire_put_u64(&out, 1);
		for (unsigned k = 0; k < bad[i].len && k < 64; k++)
			cube_wire_put_u8(&out, 0);
		peer_send(p, &out);
		wait_count(p, &p->seen.downs, 1);
		assert_int_equal(p->seen.down.code, -EPROTO);
		assert_true(strlen(p->seen.down.text) > 10);
		assert_int_equal(p->seen.calls, bad[i].hello ? 2 : 1);
		assert_int_equal(start(p, 1, 0, 2), -EHOSTDOWN);
		peer_free(p);
	}
}

static void test_optional(void **state)
{
	struct peer *p = peer_up(true);
	struct cube_wire_out out = begin();
	size_t at = cube_wire_begin(&out, (enum cube_wire_type)5000, CUBE_WIRE_OPTIONAL, 1);

	(void)state;
	cube_wire_put_u64(&out, 1);
	assert_true(cube_wire_end(&out, at));
	peer_send(p, &out);
	settle(p);
	assert_int_equal(p->seen.downs, 0);
	peer_free(p);
}

static void test_version(void **state)
{
	struct peer *p = peer_new(true);
	const struct cube_wire_hello m = {.min = 7, .max = 9, .boot = 1};
	struct cube_wire_out out = begin();

	(void)state;
	assert_true(cube_wire_put_hello(&out, &m));
	peer_send(p, &out);
	wait_count(p, &p->seen.downs, 1);
	assert_non_null(strstr(p->seen.down.text, "7 to 9"));
	peer_free(p);
}

static void test_session(void **state)
{
	struct peer *p = peer_up(true);
	struct cube_wire_out out = begin();
	char *big = malloc(CUBE_WIRE_EXPORTS_MAX);
	struct cube_wire_session m = {.what = CUBE_WIRE_SESSION_EXPORTS,
				      .cwd = "/here",
				      .cwd_len = 5,
				      .exports = big,
				      .exports_len = CUBE_WIRE_EXPORTS_MAX};

	(void)state;
	assert_non_null(big);
	memset(big, 'x', CUBE_WIRE_EXPORTS_MAX);
	assert_true(cube_wire_put_session(&out, 3, &m));
	m = (struct cube_wire_session){.cwd = "no/path", .cwd_len = 7};
	assert_true(cube_wire_put_session(&out, 3, &m));
	m = (struct cube_wire_session){.cwd = "/there", .cwd_len = 6};
	assert_true(cube_wire_put_session(&out, 3, &m));
	peer_send(p, &out);
	settle(p);
	assert_int_equal(p->seen.sessions, 2);
	assert_string_equal(p->seen.cwd, "/there");
	assert_string_equal(p->seen.exports, "(unchanged)");
	free(big);
	peer_free(p);
}

/* What has come to the peer. */
struct arrived {
	struct cube_wire_feed feed;
	unsigned starts, fds, kills;
	size_t got; /* of the present START */
};

/* The next part of the stream, and the descriptors in it: each has the size of its number. */
static void arrive(struct peer *p, struct arrived *a)
{
	size_t space;
	void *to = cube_wire_feed_space(&a->feed, &space);
	union {
		char room[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {to, space};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.room,
			     .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(p->fd, &msg, MSG_CMSG_CLOEXEC);

	assert_true(n > 0);
	a->feed.len += (size_t)n;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c)) {
		int fd;

		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		assert_int_equal(lseek(fd, 0, SEEK_END), ++a->fds);
		(void)close(fd);
	}
}

/* START in frames, its descriptor not later than its first byte, and behind it its KILL. */
static void arrived_frame(struct arrived *a, const struct cube_wire_head *head, size_t len)
{
	if (head->type == CUBE_WIRE_KILL) {
		assert_int_equal(head->id, ++a->kills);
		assert_true(a->got > len);
		a->got = 0;
		return;
	}
	assert_int_equal(head->type, CUBE_WIRE_START);
	assert_int_equal(head->id, a->kills + 1);
	a->starts += (head->flags & CUBE_WIRE_FD_OUT) != 0;
	assert_true(a->fds >= a->starts);
	a->got += head->len;
}

/* Long messages and a peer that reads slowly: start returns at once, and all arrives in order, descriptors
 * too. */
static void test_slow_peer(void **state)
{
	struct peer *p = peer_up(true);
	size_t len = 4u << 20;
	char *text = calloc(1, len);
	struct arrived *a = calloc(1, sizeof(*a));
	struct cube_link_start s = {.text = text, .text_len = len, .merge = true, .order_fd = -1};
	struct cube_wire_head head;
	const void *body;

	(void)state;
	assert_non_null(text);
	assert_non_null(a);
	for (s.job = 1; s.job <= 4; s.job++) {
		s.out_fd = spool(s.job);
		assert_int_equal(cube_link_start(p->link, &s, NULL), 0);
		cube_link_kill(p->link, s.job, 15);
		(void)close(s.out_fd);
	}
	while (a->kills < 4) {
		arrive(p, a);
		while (cube_wire_feed_next(&a->feed, &head, &body) > 0)
			arrived_frame(a, &head, len);
	}
	assert_true(a->starts == 4 && a->fds == 4);
	free(a);
	free(text);
	peer_free(p);
}

static void test_input_window(void **state)
{
	struct peer *p = peer_up(true);
	int fd = spool(0);
	char *data = calloc(1, CUBE_WIRE_WINDOW + 1);
	struct cube_wire_out out;

	(void)state;
	assert_non_null(data);
	assert_int_equal(cube_link_input(p->link, 1, data, 1), 0);
	assert_int_equal(start(p, 1, 0, fd), 0);
	assert_int_equal(cube_link_input(p->link, 1, data, CUBE_WIRE_WINDOW + 1), CUBE_WIRE_WINDOW);
	assert_int_equal(cube_link_input(p->link, 1, data, 1), 0);
	out = begin();
	assert_true(cube_wire_put_pair(&out, CUBE_WIRE_CREDIT, 1, CUBE_WIRE_WINDOW, 1000));
	assert_true(cube_wire_put_pair(&out, CUBE_WIRE_CREDIT, 1, CUBE_WIRE_WINDOW * 9,
				       CUBE_WIRE_WINDOW * 8)); /* never sent */
	peer_send(p, &out);
	wait_count(p, &p->seen.inputs, 1);
	settle(p);
	assert_int_equal(cube_link_input(p->link, 1, data, CUBE_WIRE_WINDOW), 1000);
	assert_int_equal(p->seen.inputs, 1);
	free(data);
	(void)close(fd);
	peer_free(p);
}

/* An input goes on where the agent is, as an earlier link left it; what cannot be is not believed. */
static void test_input_adopted(void **state)
{
	struct peer *p = peer_up(true);
	struct cube_wire_started m = {
		.pid = 33, .received = 1000000, .taken = 1000000 - CUBE_WIRE_WINDOW + 10};
	struct cube_wire_out out = begin();
	static char data[CUBE_WIRE_WINDOW];

	(void)state;
	assert_true(cube_wire_put_started(&out, 1, &m));
	peer_send(p, &out);
	wait_count(p, &p->seen.inputs, 1);
	assert_int_equal(p->seen.got, 1000000);
	assert_int_equal(cube_link_input(p->link, 1, data, sizeof(data)), 10);
	out = begin();
	assert_true(cube_wire_put_pair(&out, CUBE_WIRE_CREDIT, 1, 1000011, 1000000)); /* one was never sent */
	assert_true(cube_wire_put_pair(&out, CUBE_WIRE_CREDIT, 1, 1000010, 1000000));
	peer_send(p, &out);
	wait_count(p, &p->seen.inputs, 2);
	assert_int_equal(p->seen.got, 1000010);
	settle(p);
	assert_int_equal(p->seen.inputs, 2);
	out = begin();
	m.taken = 1000000 - CUBE_WIRE_WINDOW - 1;
	assert_true(cube_wire_put_started(&out, 2, &m));
	peer_send(p, &out);
	wait_count(p, &p->seen.downs, 1);
	assert_int_equal(p->seen.down.code, -EPROTO);
	peer_free(p);
}

/* Without descriptors passed this end writes; what comes twice is written once, what is missing is a gap. */
static void test_data(void **state)
{
	struct peer *p = peer_up(false);
	int fd = spool(0);
	struct cube_wire_data m = {.bytes = "hello ", .len = 6};
	struct cube_wire_out out = begin();
	char text[32] = "";

	(void)state;
	assert_int_equal(start(p, 1, 0, fd), 0);
	assert_true(cube_wire_put_data(&out, 1, &m));
	m = (struct cube_wire_data){.offset = 3, .before = 3, .bytes = "lo world", .len = 8};
	assert_true(cube_wire_put_data(&out, 1, &m));
	assert_true(cube_wire_put_data(&out, 1, &m));
	m = (struct cube_wire_data){.offset = 100, .before = 100, .bytes = "gap", .len = 3};
	assert_true(cube_wire_put_data(&out, 77, &m));
	peer_send(p, &out);
	settle(p);
	assert_int_equal(p->seen.total, 11);
	put_ended(p, 1, 103);
	settle(p);
	assert_int_equal(p->seen.ends, 0); /* not before its output is here */
	out = begin();
	assert_true(cube_wire_put_data(&out, 1, &m));
	peer_send(p, &out);
	wait_count(p, &p->seen.ends, 1);
	assert_int_equal(p->seen.end.total, 103);
	assert_int_equal(pread(fd, text, 11, 0), 11);
	assert_string_equal(text, "hello world");
	assert_int_equal(pread(fd, text, 3, 100), 3);
	assert_memory_equal(text, "gap", 3);
	(void)close(fd);
	peer_free(p);
}

/* After close nothing is called, whatever the peer says. */
static void test_close(void **state)
{
	struct peer *p = peer_up(true);
	struct cube_wire_out out = begin();
	unsigned calls;

	(void)state;
	cube_link_close(p->link);
	p->link = NULL;
	(void)usleep(10000);
	pthread_mutex_lock(&p->seen.lock);
	calls = p->seen.calls;
	pthread_mutex_unlock(&p->seen.lock);
	assert_true(cube_wire_put_plain(&out, CUBE_WIRE_SYNCED, 0));
	(void)!send(p->fd, bytes, out.len, MSG_NOSIGNAL);
	(void)close(p->fd);
	p->fd = -1;
	(void)usleep(50000);
	assert_int_equal(p->seen.calls, calls);
	cube_link_close(NULL);
	peer_free(p);
}

static void *hammer(void *ctx)
{
	struct peer *p = ctx;

	for (uint64_t i = 0; i < 2000; i++) {
		cube_link_kill(p->link, i, 15);
		cube_link_winsize(p->link, i, 24, 80);
		(void)cube_link_input(p->link, 1, "x", 1);
	}
	return NULL;
}

/* Methods of several threads at once, with a peer that goes away in the middle. */
static void test_threads(void **state)
{
	struct peer *p = peer_up(true);
	pthread_t threads[4];
	int fd = spool(0);

	(void)state;
	assert_int_equal(start(p, 1, 0, fd), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hammer, p), 0);
	(void)usleep(20000);
	(void)close(p->fd);
	p->fd = -1;
	for (unsigned i = 0; i < 4; i++)
		(void)pthread_join(threads[i], NULL);
	wait_count(p, &p->seen.downs, 1);
	assert_int_equal(start(p, 2, 0, fd), -EHOSTDOWN);
	(void)close(fd);
	peer_free(p);
}

/* Every allocation of a start fails once; each time it says so and nothing is left behind. */
static void test_no_memory(void **state)
{
	struct peer *p = peer_up(true);
	int fd = spool(0);
	unsigned long n = 1;
	int r;

	(void)state;
	do {
		cube_alloc_fail_at(n);
		r = start(p, 100 + n, 100 + n, fd);
		cube_alloc_fail_at(0);
		assert_true(r == 0 || r == -ENOMEM);
		n++;
	} while (r != 0 && n < 50);
	assert_int_equal(r, 0);
	assert_true(n > 2);
	(void)close(fd);
	peer_free(p);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(cube_end_name(CUBE_END_EXIT), "exit");
	assert_string_equal(cube_end_name(CUBE_END_SIGNAL), "signal");
	assert_string_equal(cube_end_name(CUBE_END_TIMEOUT), "timeout");
	assert_string_equal(cube_end_name(CUBE_END_OOM), "oom");
	assert_string_equal(cube_end_name(CUBE_END_KILLED), "killed");
	assert_string_equal(cube_end_name(CUBE_END_LOST), "lost");
	assert_string_equal(cube_end_name((enum cube_end)99), "lost");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_totals),        cmocka_unit_test(test_busy),
		cmocka_unit_test(test_malformed),     cmocka_unit_test(test_optional),
		cmocka_unit_test(test_version),       cmocka_unit_test(test_session),
		cmocka_unit_test(test_slow_peer),     cmocka_unit_test(test_input_window),
		cmocka_unit_test(test_input_adopted), cmocka_unit_test(test_data),
		cmocka_unit_test(test_close),         cmocka_unit_test(test_threads),
		cmocka_unit_test(test_no_memory),     cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
