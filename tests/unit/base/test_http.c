/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, to a server of our own on a unix socket: answers of every shape, bodies both ways, and a server that cuts
 * off, says nonsense, or nothing. */
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "backends/base/file.h"
#include "backends/base/http.h"
#include "backends/base/http_duplex.h"
#include "backends/base/macros.h"

struct server {
	pthread_t thread;
	int fd;
	char path[108];
	unsigned connections; /* read when no request is under way */
	char request[4096];
	pthread_mutex_t lock; /* of seen */
	char seen[4096];      /* the last request, whole */
};

static const struct {
	const char *path, *answer;
	bool close;
} scripts[] = {
	{"/ok", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-One:  1 \r\nX-One: two\r\n\r\nhello", false},
	{"/chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
	 false},
	{"/none", "HTTP/1.1 204 No Content\r\n\r\n", false},
	{"/refused", "HTTP/1.1 409 Conflict\r\nContent-Length: 3\r\n\r\nwhy", false},
	{"/moved", "HTTP/1.1 302 Found\r\nLocation: /ok\r\nContent-Length: 0\r\n\r\n", false},
	{"/twice", "HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	 false},
	{"/short", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", true},
	{"/cut", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", true},
	{"/badchunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n", true},
	{"/nonsense", "what do you want\n", true},
	{"/empty", "", true},
	{"/half", "HTTP/1.1 20", true},
	{"/stream", "HTTP/1.1 101 Here\r\nUpgrade: tcp\r\n\r\nearly", false},
	{"/silent", NULL, false},
	{"/stalls", NULL, false},
};

static size_t find_length(const char *head)
{
	const char *at = strstr(head, "Content-Length: ");

	return at != NULL ? strtoul(at + strlen("Content-Length: "), NULL, 10) : 0;
}

/* One request with its body; false: the other side has gone. */
static bool server_read(struct server *s, int fd)
{
	size_t len = 0;
	const char *end = NULL;

	s->request[0] = '\0';
	while (end == NULL || strlen(end + 4) < find_length(s->request)) {
		ssize_t n = recv(fd, s->request + len, sizeof(s->request) - 1 - len, 0);

		if (n <= 0)
			return false;
		len += (size_t)n;
		s->request[len] = '\0';
		end = strstr(s->request, "\r\n\r\n");
	}
	pthread_mutex_lock(&s->lock);
	memcpy(s->seen, s->request, sizeof(s->seen));
	pthread_mutex_unlock(&s->lock);
	return true;
}

/* "." ends it. */
static bool server_echo(int fd)
{
	char text[64];
	ssize_t n;

	while ((n = recv(fd, text, sizeof(text), 0)) > 0 && text[0] != '.')
		(void)!send(fd, text, (size_t)n, MSG_NOSIGNAL);
	return false;
}

/* False: the connection ends. */
static bool server_answer(struct server *s, int fd)
{
	char path[64] = "", rest[64];
	bool goes_on = true;

	(void)sscanf(s->request, "%*s %63[^? ]", path);
	if (strcmp(path, "/stalls") == 0)
		(void)!send(fd, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", 41, MSG_NOSIGNAL);
	for (size_t i = 0; i < CUBE_COUNT(scripts); i++) {
		if (strcmp(path, scripts[i].path) != 0)
			continue;
		if (scripts[i].answer == NULL) {
			while (recv(fd, rest, sizeof(rest), 0) > 0)
				; /* until the other side has gone */
			return false;
		}
		(void)!send(fd, scripts[i].answer, strlen(scripts[i].answer), MSG_NOSIGNAL);
		if (strcmp(path, "/stream") == 0)
			return server_echo(fd);
		goes_on = !scripts[i].close;
	}
	return goes_on;
}

static bool saw(struct server *s, const char *text)
{
	bool has;

	pthread_mutex_lock(&s->lock);
	has = strstr(s->seen, text) != NULL;
	pthread_mutex_unlock(&s->lock);
	return has;
}

static void *server_run(void *ctx)
{
	struct server *s = ctx;

	for (int fd = accept(s->fd, NULL, NULL); fd >= 0; fd = accept(s->fd, NULL, NULL)) {
		s->connections++;
		while (server_read(s, fd) && server_answer(s, fd))
			;
		close(fd);
	}
	return NULL;
}

static struct cube_http *server_start(struct server *s, const struct place *p)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct cube_http *h;
	struct cube_err err;

	*s = (struct server){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	pthread_mutex_init(&s->lock, NULL);
	(void)snprintf(s->path, sizeof(s->path), "%s/sock", p->path);
	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", s->path);
	(void)unlink(s->path);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(s->fd, 8), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, server_run, s), 0);
	if (cube_http_new(&(struct cube_http_conf){.url = "http://here",
						   .socket = s->path,
						   .who = "the test's server",
						   .timeout_s = 1},
			  &h, &err) < 0)
		fail_msg("%s", err.text);
	return h;
}

/* Kept connections end first, for which the server waits. */
static void server_stop(struct server *s, struct cube_http *h)
{
	cube_http_free(h);
	(void)shutdown(s->fd, SHUT_RDWR);
	assert_int_equal(pthread_join(s->thread, NULL), 0);
	close(s->fd);
	pthread_mutex_destroy(&s->lock);
}

static int get(struct cube_http *h, const char *path, struct cube_http_answer *a, struct cube_err *err)
{
	return cube_http_run(h, &(struct cube_http_call){.method = "GET", .path = path}, NULL, a, err);
}

static void test_answers(void **state)
{
	static const struct {
		const char *path, *body;
		long status;
	} cases[] = {
		{"/ok", "hello", 200},    {"/chunked", "abcde", 200}, {"/none", "", 204},
		{"/refused", "why", 409}, {"/moved", "", 302},        {"/twice", "", 200},
	};
	struct cube_http_answer a;
	struct cube_err err;
	struct server s;
	struct cube_http *h = server_start(&s, *state);
	char value[16] = "";

	cube_http_answer_init(&a, 100);
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		assert_int_equal(get(h, cases[i].path, &a, &err), 0);
		assert_int_equal(a.status, cases[i].status);
		assert_string_equal(cube_buf_str(&a.body), cases[i].body);
		assert_false(cube_http_header(&a, "x-early", value, sizeof(value)));
	}
	assert_int_equal(get(h, "/ok", &a, &err), 0);
	assert_true(cube_http_header(&a, "x-one", value, sizeof(value)));
	assert_string_equal(value, "two");
	assert_true(cube_http_header(&a, "content-length", value, 2));
	assert_string_equal(value, "5");
	cube_http_answer_done(&a);
	server_stop(&s, h);
	assert_int_equal(s.connections, 1); /* one after the other on one connection */
}

static void test_broken(void **state)
{
	static const char *const paths[] = {"/short", "/cut", "/badchunk", "/nonsense", "/empty", "/half"};
	struct cube_http_answer a;
	struct server s;
	struct cube_http *h = server_start(&s, *state);

	cube_http_answer_init(&a, 100);
	for (size_t i = 0; i < CUBE_COUNT(paths); i++) {
		struct cube_err err = {0};

		assert_int_equal(get(h, paths[i], &a, &err), -EREMOTEIO);
		assert_non_null(strstr(err.text, "the test's server: GET "));
		assert_non_null(strstr(err.text, paths[i]));
	}
	assert_int_equal(get(h, "/ok", &a, NULL), 0); /* and nothing of it stays */
	assert_string_equal(cube_buf_str(&a.body), "hello");
	cube_http_answer_done(&a);
	server_stop(&s, h);
}

static void test_too_long(void **state)
{
	struct cube_http_answer a;
	struct cube_err err;
	struct server s;
	struct cube_http *h = server_start(&s, *state);

	cube_http_answer_init(&a, 4);
	assert_int_equal(get(h, "/ok", &a, &err), -EMSGSIZE);
	assert_int_equal(get(h, "/refused", &a, &err), 0);
	cube_http_answer_done(&a);
	server_stop(&s, h);
}

static void test_no_answer(void **state)
{
	struct cube_http_answer a;
	struct server s;
	struct cube_http *h = server_start(&s, *state);

	cube_http_answer_init(&a, 100);
	for (const char *const *path = (const char *const[]){"/silent", "/stalls", NULL}; *path != NULL;
	     path++) {
		struct cube_err err = {0};

		assert_int_equal(get(h, *path, &a, &err), -ETIMEDOUT);
		assert_non_null(strstr(err.text, "in time"));
	}
	cube_http_answer_done(&a);
	server_stop(&s, h);
}

struct caller {
	struct cube_http *h;
	struct cube_cancel *cancel;
	int code;
};

static void *call_silent(void *ctx)
{
	struct caller *c = ctx;
	struct cube_http_answer a;

	cube_http_answer_init(&a, 100);
	c->code = cube_http_run(
		c->h,
		&(struct cube_http_call){.method = "GET", .path = "/silent", .timeout_s = CUBE_HTTP_EVER},
		c->cancel, &a, NULL);
	cube_http_answer_done(&a);
	return NULL;
}

static void test_cancelled(void **state)
{
	struct server s;
	struct caller c = {.h = server_start(&s, *state), .cancel = cube_cancel_new()};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, call_silent, &c), 0);
	cube_cancel_fire(c.cancel);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(c.code, -EINTR);
	(void)call_silent(&c); /* fired before: at once */
	assert_int_equal(c.code, -EINTR);
	cube_cancel_unref(c.cancel);
	server_stop(&s, c.h);
}

static void test_nobody_there(void **state)
{
	struct cube_http_answer a;
	struct cube_err err;
	struct server s;
	struct cube_http *h = server_start(&s, *state);

	(void)shutdown(s.fd, SHUT_RDWR);
	cube_http_answer_init(&a, 100);
	assert_int_equal(get(h, "/ok", &a, &err), -EHOSTUNREACH);
	assert_non_null(strstr(err.text, s.path));
	(void)unlink(s.path);
	assert_int_equal(get(h, "/ok", &a, &err), -EHOSTUNREACH);
	cube_http_answer_done(&a);
	server_stop(&s, h);
}

/* ---- bodies ---- */

static void test_bodies(void **state)
{
	static const char *const headers[] = {"Content-Type: application/json", "Authorization: Bearer k3y",
					      NULL};
	const struct place *p = *state;
	cube_auto_fd fd = openat(p->fd, "body", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct cube_http_answer a;
	struct cube_err err = {0};
	struct server s;
	struct cube_http *h = server_start(&s, p);

	cube_http_answer_init(&a, 100);
	assert_int_equal(cube_http_run(h,
				       &(struct cube_http_call){.method = "POST",
								.path = "/ok?a=1",
								.headers = headers,
								.body = "{\"a\":1}",
								.body_len = 7},
				       NULL, &a, &err),
			 0);
	assert_true(saw(&s, "POST /ok?a=1 HTTP/1.1\r\n"));
	assert_true(saw(&s, "Content-Type: application/json\r\n"));
	assert_true(saw(&s, "\r\n\r\n{\"a\":1}"));
	assert_false(saw(&s, "Expect"));
	assert_null(strstr(err.text, "k3y"));
	assert_int_equal(
		cube_http_run(h, &(struct cube_http_call){.method = "POST", .path = "/ok"}, NULL, &a, &err),
		0);
	assert_true(saw(&s, "Content-Length: 0\r\n"));
	assert_false(saw(&s, "Content-Type"));
	assert_int_equal(cube_file_write_all(fd, "0123456789", 10), 0);
	assert_int_equal(lseek(fd, 4, SEEK_SET), 4);
	assert_int_equal(cube_http_run(h,
				       &(struct cube_http_call){
					       .method = "PUT", .path = "/ok", .body_fd = fd, .has_fd = true},
				       NULL, &a, &err),
			 0);
	assert_true(saw(&s, "PUT /ok HTTP/1.1\r\n"));
	assert_true(saw(&s, "\r\n\r\n456789"));
	cube_http_answer_done(&a);
	server_stop(&s, h);
}

struct sunk {
	char text[32];
	int code;
};

static int sink(void *ctx, const void *data, size_t len)
{
	struct sunk *t = ctx;
	size_t at = strlen(t->text);

	assert_true(at + len < sizeof(t->text));
	memcpy(t->text + at, data, len);
	return t->code;
}

static void test_streamed(void **state)
{
	struct sunk t = {0};
	struct cube_http_call call = {.method = "GET", .path = "/chunked", .sink = sink, .ctx = &t};
	struct cube_http_answer a;
	struct cube_err err;
	struct server s;
	struct cube_http *h = server_start(&s, *state);

	cube_http_answer_init(&a, 100);
	assert_int_equal(cube_http_run(h, &call, NULL, &a, &err), 0);
	assert_string_equal(t.text, "abcde");
	assert_int_equal(a.body.len, 0);
	call.path = "/refused"; /* what is no answer to the question is kept */
	assert_int_equal(cube_http_run(h, &call, NULL, &a, &err), 0);
	assert_string_equal(cube_buf_str(&a.body), "why");
	call.path = "/chunked";
	t = (struct sunk){.code = -ENOSPC};
	assert_int_equal(cube_http_run(h, &call, NULL, &a, &err), -ENOSPC);
	cube_http_answer_done(&a);
	server_stop(&s, h);
}

/* What comes next, as text; "" at the end. */
static void stream_next(struct cube_http_duplex *st, char out[64])
{
	struct pollfd p = {.fd = cube_http_duplex_fd(st), .events = POLLIN};
	ssize_t n;

	while ((n = cube_http_duplex_recv(st, out, 63)) == -EAGAIN)
		assert_int_equal(poll(&p, 1, 20000), 1);
	assert_true(n >= 0);
	out[n] = '\0';
}

static void test_streams(void **state)
{
	static const struct {
		const char *path;
		long status;
		int code;
	} bad[] = {{"/refused", 409, -EREMOTEIO},
		   {"/nonsense", 0, -EREMOTEIO},
		   {"/half", 0, -EREMOTEIO},
		   {"/empty", 0, -EREMOTEIO},
		   {"/silent", 0, -ETIMEDOUT}};
	struct cube_http_call call = {.method = "POST", .path = "/stream", .body = "{}", .body_len = 2};
	struct cube_http_duplex *st = NULL;
	struct cube_http_answer a;
	struct cube_err err;
	struct server s;
	struct cube_http *h = server_start(&s, *state);
	char text[64];

	cube_http_answer_init(&a, 100);
	assert_int_equal(cube_http_duplex_open(h, &call, NULL, &a, &st, &err), 0);
	assert_true(saw(&s, "Upgrade: tcp\r\n") && saw(&s, "Content-Length: 2\r\n"));
	stream_next(st, text);
	assert_string_equal(text, "early");
	assert_int_equal(cube_http_duplex_recv(st, text, sizeof(text)), -EAGAIN);
	assert_int_equal(cube_http_duplex_send(st, "abc", 3), 3);
	stream_next(st, text);
	assert_string_equal(text, "abc");
	assert_int_equal(cube_http_duplex_send(st, ".", 1), 1);
	stream_next(st, text);
	assert_string_equal(text, "");
	cube_http_duplex_free(st);
	for (size_t i = 0; i < CUBE_COUNT(bad); i++) {
		call.path = bad[i].path;
		assert_int_equal(cube_http_duplex_open(h, &call, NULL, &a, &st, &err), bad[i].code);
		assert_int_equal(a.status, bad[i].status);
		assert_non_null(strstr(err.text, bad[i].path));
	}
	call.path = "/refused";
	(void)cube_http_duplex_open(h, &call, NULL, &a, &st, &err);
	assert_string_equal(cube_buf_str(&a.body), "why");
	cube_http_answer_done(&a);
	server_stop(&s, h);
}

static void test_addresses(void **state)
{
	static const char *const bad[] = {"",
					  "host",
					  "ftp://host",
					  "http://",
					  "http://a:b@host",
					  "http://host/",
					  "http://host?a=1",
					  "http://ho st",
					  "http://h\r\nX: y",
					  "https://host#f"};
	struct cube_buf text = CUBE_BUF(100);
	struct cube_http *h = NULL;
	struct cube_err err;

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(bad); i++) {
		assert_int_equal(cube_http_new(&(struct cube_http_conf){.url = bad[i]}, &h, &err), -EINVAL);
		assert_null(h);
	}
	assert_int_equal(cube_http_new(&(struct cube_http_conf){.url = NULL}, &h, &err), -EINVAL);
	assert_int_equal(cube_http_new(&(struct cube_http_conf){.url = "https://host:2376/v1"}, &h, &err), 0);
	cube_http_free(h);
	cube_http_free(NULL);
	assert_int_equal(cube_http_escape(&text, "aZ9._~-/ ?&=%\"\xc3\xa9"), 0);
	assert_string_equal(cube_buf_str(&text), "aZ9._~-%2F%20%3F%26%3D%25%22%C3%A9");
	cube_buf_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_answers, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_broken, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_too_long, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_no_answer, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_cancelled, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_nobody_there, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_bodies, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_streamed, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_streams, place_setup, place_teardown),
		cmocka_unit_test(test_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
