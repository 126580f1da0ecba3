/* SPDX-License-Identifier: Apache-2.0 */
/* Requests on the loop, to a server of our own: many at once, held back, dropped at every moment, answers that are
 * refusals and answers that are none. */
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "backends/base/http_live.h"
#include "backends/base/macros.h"

#define MANY 50
#define BIG  ((size_t)8 << 20)

/* ---- the server: a thread for each connection ---- */

struct server {
	int fd;
	pthread_t thread;
	char path[108];
	atomic_uint connections, open;
};

struct visit {
	struct server *server;
	int fd;
};

static void say(int fd, const char *text)
{
	(void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
}

static void serve_big(int fd)
{
	static const char zeros[65536];
	size_t sent = 0;

	say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n");
	while (sent < BIG && send(fd, zeros, sizeof(zeros), MSG_NOSIGNAL) == (ssize_t)sizeof(zeros))
		sent += sizeof(zeros);
}

/* Two pieces at once, and another one. */
static void serve_pieces(int fd)
{
	say(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nworld\r\n");
	(void)poll(NULL, 0, 100);
	say(fd, "5\r\nagain\r\n0\r\n\r\n");
}

static bool serve(int fd, const char *request)
{
	char path[64] = "", rest[64];

	(void)sscanf(request, "%*s %63[^ ]", path);
	if (strcmp(path, "/ok") == 0)
		say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
	else if (strcmp(path, "/pieces") == 0)
		serve_pieces(fd);
	else if (strcmp(path, "/echo") == 0)
		say(fd, strstr(request, "\r\n\r\nsaid") != NULL && strstr(request, "\r\nX-One: 1\r\n") != NULL
				? "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nsaid"
				: "HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n");
	else if (strcmp(path, "/refused") == 0)
		say(fd, "HTTP/1.1 409 Conflict\r\nContent-Length: 3\r\n\r\nwhy");
	else if (strcmp(path, "/big") == 0)
		serve_big(fd);
	else if (strcmp(path, "/cut") == 0)
		say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello");
	else if (strcmp(path, "/endless") == 0)
		say(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
	if (strcmp(path, "/endless") == 0 || strcmp(path, "/silent") == 0)
		while (recv(fd, rest, sizeof(rest), 0) > 0)
			; /* until the other side has gone */
	return strcmp(path, "/cut") != 0;
}

static void *visit_run(void *ctx)
{
	struct visit v = *(struct visit *)ctx;
	char request[4096];
	bool on = true;

	while (on) {
		ssize_t n = recv(v.fd, request, sizeof(request) - 1, 0);

		on = n > 0;
		request[on ? n : 0] = '\0';
		if (on)
			on = serve(v.fd, request);
	}
	close(v.fd);
	atomic_fetch_sub(&v.server->open, 1);
	return NULL;
}

static void *server_run(void *ctx)
{
	static struct visit visits[4 * MANY];
	struct server *s = ctx;
	int fd;

	while ((fd = accept(s->fd, NULL, NULL)) >= 0) {
		unsigned n = atomic_fetch_add(&s->connections, 1);
		pthread_t thread;

		assert_true(n < CUBE_COUNT(visits));
		visits[n] = (struct visit){.server = s, .fd = fd};
		atomic_fetch_add(&s->open, 1);
		assert_int_equal(pthread_create(&thread, NULL, visit_run, &visits[n]), 0);
		(void)pthread_detach(thread);
	}
	return NULL;
}

/* ---- a test ---- */

struct rig {
	struct server server;
	struct cube_loop *loop;
	struct cube_http *http;
	struct cube_http_live *live;
	struct cube_timer *later;
	unsigned left; /* answers that are awaited: the loop stops with the last */
};

struct asked {
	struct rig *rig;
	struct cube_http_stream *stream;
	size_t got;
	char first[8];
	int stop; /* what its handler says to data */
	bool drop, hold;
	unsigned ended;
	int code;
	long status;
	char text[64], why[CUBE_ERR_TEXT];
};

static int on_data(void *ctx, const void *data, size_t len)
{
	struct asked *a = ctx;

	if (a->got == 0)
		(void)snprintf(a->first, sizeof(a->first), "%.*s", (int)(len < 7 ? len : 7),
			       (const char *)data);
	a->got += len;
	if (a->hold)
		cube_http_stream_hold(a->stream, true);
	if (a->drop) {
		cube_http_stream_drop(a->stream);
		cube_timer_start(a->rig->later, 20);
	}
	return a->stop;
}

static void on_ended(void *ctx, int code, long status, const char *text, const struct cube_err *err)
{
	struct asked *a = ctx;

	a->ended++;
	a->code = code;
	a->status = status;
	(void)snprintf(a->text, sizeof(a->text), "%s", text);
	(void)snprintf(a->why, sizeof(a->why), "%s", err->text);
	if (--a->rig->left == 0)
		cube_loop_stop(a->rig->loop);
}

static const struct cube_http_stream_handler handler = {.data = on_data, .ended = on_ended};

static void on_later(void *ctx)
{
	const struct rig *r = ctx;

	cube_loop_stop(r->loop);
}

static void rig_open(struct rig *r, const struct place *p)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct server *s = &r->server;
	struct cube_err err;

	*r = (struct rig){.loop = cube_loop_new()};
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)snprintf(s->path, sizeof(s->path), "%s/sock", p->path);
	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", s->path);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(s->fd, MANY), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, server_run, s), 0);
	if (cube_http_new(&(struct cube_http_conf){.url = "http://here",
						   .socket = s->path,
						   .who = "the test's server",
						   .timeout_s = 1},
			  &r->http, &err) < 0)
		fail_msg("%s", err.text);
	r->live = cube_http_live_new(r->loop);
	r->later = cube_timer_new(r->loop, on_later, r);
	assert_non_null(r->live);
}

static void rig_close(struct rig *r)
{
	cube_http_live_free(r->live);
	cube_http_free(r->http);
	cube_timer_free(r->later);
	(void)shutdown(r->server.fd, SHUT_RDWR);
	assert_int_equal(pthread_join(r->server.thread, NULL), 0);
	close(r->server.fd);
	while (atomic_load(&r->server.open) > 0) /* its connections have ended with ours */
		(void)usleep(1000);
	cube_loop_free(r->loop);
}

static void ask(struct rig *r, struct asked *a, const char *path)
{
	a->rig = r;
	r->left++;
	a->stream = cube_http_stream_new(
		r->live, r->http, &(struct cube_http_call){.method = "GET", .path = path}, &handler, a);
	assert_non_null(a->stream);
}

static void test_many(void **state)
{
	struct asked a[MANY] = {0};
	struct rig r;

	rig_open(&r, *state);
	for (int round = 0; round < 2; round++) {
		memset(a, 0, sizeof(a));
		for (size_t i = 0; i < MANY; i++)
			ask(&r, &a[i], "/ok");
		cube_loop_run(r.loop);
		for (size_t i = 0; i < MANY; i++) {
			assert_int_equal(a[i].ended, 1);
			assert_int_equal(a[i].code, 0);
			assert_int_equal(a[i].status, 200);
			assert_string_equal(a[i].first, "hello");
		}
	}
	assert_true(atomic_load(&r.server.connections) <= MANY); /* kept for the second round */
	rig_close(&r);
}

static void test_answers(void **state)
{
	static const struct {
		const char *path;
		int code;
		long status;
		const char *first, *text;
	} cases[] = {
		{"/ok", 0, 200, "hello", ""},
		{"/refused", 0, 409, "", "why"},
		{"/cut", -EREMOTEIO, 200, "hello", ""},
		{"/silent", -ETIMEDOUT, 0, "", ""},
		{"/endless", -ETIMEDOUT, 200, "hello", ""},
	};
	struct asked a[CUBE_COUNT(cases)] = {0};
	struct rig r;

	rig_open(&r, *state);
	for (size_t i = 0; i < CUBE_COUNT(cases); i++)
		ask(&r, &a[i], cases[i].path);
	cube_loop_run(r.loop);
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		assert_int_equal(a[i].code, cases[i].code);
		assert_int_equal(a[i].status, cases[i].status);
		assert_string_equal(a[i].first, cases[i].first);
		assert_string_equal(a[i].text, cases[i].text);
		assert_true((a[i].code == 0) == (a[i].why[0] == '\0'));
	}
	rig_close(&r);
}

static void test_sent(void **state)
{
	static const char *const headers[] = {"X-One: 1", NULL};
	struct asked a = {0};
	char body[] = "said", path[] = "/echo";
	struct rig r;

	rig_open(&r, *state);
	a.rig = &r;
	r.left = 1;
	a.stream = cube_http_stream_new(
		r.live, r.http,
		&(struct cube_http_call){
			.method = "POST", .path = path, .headers = headers, .body = body, .body_len = 4},
		&handler, &a);
	memset(body, 'x', 4); /* it has copies */
	memset(path, 'x', 5);
	cube_loop_run(r.loop);
	assert_int_equal(a.status, 200);
	assert_string_equal(a.first, "said");
	rig_close(&r);
}

/* A held answer stays with its sender, and goes on when it is let go. */
static void test_held(void **state)
{
	struct asked a = {.hold = true};
	struct rig r;
	size_t before = 0;

	rig_open(&r, *state);
	ask(&r, &a, "/big");
	for (int round = 0; round < 5; round++) {
		cube_timer_start(r.later, 30);
		cube_loop_run(r.loop);
		assert_int_equal(a.ended, 0);
		assert_true(a.got > before && a.got < BIG / 2);
		before = a.got;
		cube_http_stream_hold(a.stream, false); /* and it holds itself again */
	}
	a.hold = false;
	cube_http_stream_hold(a.stream, false);
	cube_loop_run(r.loop);
	assert_int_equal(a.code, 0);
	assert_int_equal(a.got, BIG);
	rig_close(&r);
}

static void test_stopped(void **state)
{
	struct asked a = {.stop = -ENOSPC};
	struct rig r;

	rig_open(&r, *state);
	ask(&r, &a, "/big");
	cube_loop_run(r.loop);
	assert_int_equal(a.code, -ENOSPC);
	assert_true(a.why[0] != '\0');
	rig_close(&r);
}

/* What was kept while it was held is refused: it ends, and nothing behind that is told. */
static void test_held_stopped(void **state)
{
	struct asked a = {.hold = true};
	struct rig r;

	rig_open(&r, *state);
	ask(&r, &a, "/pieces");
	cube_timer_start(r.later, 30);
	cube_loop_run(r.loop);
	assert_int_equal(a.ended, 0);
	assert_string_equal(a.first, "hello");
	a.hold = false;
	a.stop = -ENOSPC;
	cube_http_stream_hold(a.stream, false);
	cube_loop_run(r.loop);
	assert_int_equal(a.ended, 1);
	assert_int_equal(a.code, -ENOSPC);
	assert_int_equal(a.got, strlen("helloworld"));
	rig_close(&r);
}

/* Before it began, in the middle, out of its own handler, and with the last of all. */
static void test_dropped(void **state)
{
	struct asked fresh = {0}, within = {.drop = true}, waiting = {0}, other = {0};
	struct rig r;

	rig_open(&r, *state);
	ask(&r, &fresh, "/ok");
	cube_http_stream_drop(fresh.stream);
	ask(&r, &within, "/endless");
	ask(&r, &waiting, "/silent");
	cube_loop_run(r.loop); /* until `later` */
	cube_http_stream_drop(waiting.stream);
	r.left = 1;
	other.rig = &r;
	other.stream = cube_http_stream_new(
		r.live, r.http, &(struct cube_http_call){.method = "GET", .path = "/ok"}, &handler, &other);
	cube_loop_run(r.loop);
	assert_int_equal(other.status, 200);
	assert_int_equal(fresh.ended + within.ended + waiting.ended, 0);
	assert_string_equal(within.first, "hello");
	ask(&r, &waiting, "/silent");
	cube_timer_start(r.later, 20);
	cube_loop_run(r.loop);
	cube_http_stream_drop(waiting.stream);
	cube_http_stream_drop(NULL);
	rig_close(&r);
	assert_int_equal(waiting.ended, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_many, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_answers, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_sent, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_held, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_stopped, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_held_stopped, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_dropped, place_setup, place_teardown),
	};

	return cmocka_run_group_tests_name("http_live", tests, NULL, NULL);
}
