/* SPDX-License-Identifier: Apache-2.0 */
/* Downloads, from a server of our own: whole, resumed, cut off, refused, redirected, cancelled. */
#include "tests/unit/base/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/base/fetch.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"

#define FILE_TEXT "0123456789"

struct server {
	pthread_t thread;
	int fd;
	unsigned port, requests, ranges; /* the last two: read when no request is under way */
};

static void answer(int fd, const char *head, const char *body)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "HTTP/1.1 %s\r\nConnection: close\r\n\r\n%s", head, body);

	(void)!send(fd, text, (size_t)n, MSG_NOSIGNAL);
}

/* The file, or what of it the request asks for. */
static void answer_file(struct server *s, int fd, const char *range)
{
	char head[128];
	unsigned long from = range != NULL ? strtoul(range, NULL, 10) : 0;

	s->ranges += range != NULL;
	if (from >= strlen(FILE_TEXT)) {
		answer(fd, "416 Range Not Satisfiable\r\nContent-Length: 0", "");
		return;
	}
	(void)snprintf(head, sizeof(head), "%s\r\nContent-Length: %zu\r\nContent-Range: bytes %lu-9/10",
		       range != NULL ? "206 Partial Content" : "200 OK", strlen(FILE_TEXT) - from, from);
	answer(fd, head, &FILE_TEXT[from]);
}

static void answer_path(struct server *s, int fd, const char *path, const char *range)
{
	static const struct {
		const char *path, *head, *body;
	} fixed[] = {
		{"/plain", "200 OK\r\nContent-Length: 10", FILE_TEXT},
		{"/short", "200 OK\r\nContent-Length: 10", "0123"},
		{"/open", "200 OK", FILE_TEXT},
		{"/secret", "403 Forbidden\r\nContent-Length: 4", "none"},
		{"/login", "401 Unauthorized\r\nContent-Length: 4", "none"},
		{"/gone", "410 Gone\r\nContent-Length: 4", "none"},
		{"/broken", "500 Oops\r\nContent-Length: 4", "none"},
		{"/moved", "302 Found\r\nLocation: /file\r\nContent-Length: 0", ""},
		{"/loop", "302 Found\r\nLocation: /loop\r\nContent-Length: 0", ""},
		{"/away", "302 Found\r\nLocation: ftp://127.0.0.1/x\r\nContent-Length: 0", ""},
		{"/local", "302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0", ""},
		{"/hang", "200 OK\r\nContent-Length: 10", "0123"},
	};
	char rest[64];

	if (strcmp(path, "/file") == 0) {
		answer_file(s, fd, range);
		return;
	}
	for (size_t i = 0; i < CUBE_COUNT(fixed); i++)
		if (strcmp(path, fixed[i].path) == 0) {
			answer(fd, fixed[i].head, fixed[i].body);
			while (strcmp(path, "/hang") == 0 && recv(fd, rest, sizeof(rest), 0) > 0)
				; /* until the other side has gone */
			return;
		}
	answer(fd, "404 Not Found\r\nContent-Length: 4", "none");
}

static void serve(struct server *s, int fd)
{
	char text[2048], path[64] = "";
	size_t len = 0;
	ssize_t n;

	text[0] = '\0';
	while (strstr(text, "\r\n\r\n") == NULL && len < sizeof(text) - 1) {
		n = recv(fd, text + len, sizeof(text) - 1 - len, 0);
		if (n <= 0)
			return;
		len += (size_t)n;
		text[len] = '\0';
	}
	const char *range = strstr(text, "Range: bytes=");

	s->requests++;
	if (sscanf(text, "GET %63s ", path) == 1)
		answer_path(s, fd, path, range != NULL ? range + strlen("Range: bytes=") : NULL);
}

static void *server_run(void *ctx)
{
	struct server *s = ctx;

	for (int fd = accept(s->fd, NULL, NULL); fd >= 0; fd = accept(s->fd, NULL, NULL)) {
		serve(s, fd);
		close(fd);
	}
	return NULL;
}

static void server_start(struct server *s)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);

	*s = (struct server){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	assert_int_equal(bind(s->fd, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(s->fd, 16), 0);
	assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &len), 0);
	s->port = ntohs(at.sin_port);
	assert_int_equal(pthread_create(&s->thread, NULL, server_run, s), 0);
}

static void server_stop(struct server *s)
{
	(void)shutdown(s->fd, SHUT_RDWR);
	assert_int_equal(pthread_join(s->thread, NULL), 0);
	close(s->fd);
}

struct told {
	uint64_t have, total;
	struct cube_cancel *cancel; /* fired when something has come */
};

static void told(void *ctx, uint64_t have, uint64_t total)
{
	struct told *t = ctx;

	t->have = have;
	t->total = total;
	cube_cancel_fire(t->cancel);
}

/* Fetches @path to a file that begins with @there, which is to be @want then: the code. */
static int fetch(struct place *p, struct server *s, const char *path, const char *there, const char *want,
		 struct told *t, struct cube_err *err)
{
	cube_auto_fd fd = openat(p->fd, "f", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct cube_buf got = CUBE_BUF(1000);
	char url[64];

	assert_true(fd >= 0);
	assert_int_equal(cube_file_write_all(fd, there, strlen(there)), 0);
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", s->port, path);
	int r = cube_fetch(&(struct cube_fetch){.url = url, .fd = fd, .progress = told, .ctx = t}, t->cancel,
			   err);

	assert_int_equal(cube_file_read(p->fd, "f", &got), 0);
	assert_string_equal(cube_buf_str(&got), want);
	cube_buf_done(&got);
	return r;
}

static void test_whole_and_resumed(void **state)
{
	struct cube_err err = {0};
	struct told t = {0};
	struct server s;

	server_start(&s);
	assert_int_equal(fetch(*state, &s, "/file", "", FILE_TEXT, &t, &err), 0);
	assert_int_equal(t.have, 10);
	assert_int_equal(t.total, 10);
	assert_int_equal(s.ranges, 0);
	assert_int_equal(fetch(*state, &s, "/file", "0123", FILE_TEXT, &t, &err), 0);
	assert_int_equal(s.ranges, 1);
	assert_int_equal(t.have, 10);
	assert_int_equal(t.total, 10);
	/* All of it is there already: nothing comes, nothing is lost. */
	assert_int_equal(fetch(*state, &s, "/file", FILE_TEXT, FILE_TEXT, &t, &err), 0);
	/* Who gives no part gives all, in the place of what was there. */
	assert_int_equal(fetch(*state, &s, "/plain", "01xx", FILE_TEXT, &t, &err), 0);
	/* No length: what came until the end is the file. */
	assert_int_equal(fetch(*state, &s, "/open", "", FILE_TEXT, &t, &err), 0);
	assert_int_equal(t.total, 0);
	server_stop(&s);
}

static void test_cut_off(void **state)
{
	struct cube_err err = {0};
	struct told t = {0};
	struct server s;

	server_start(&s);
	assert_int_equal(fetch(*state, &s, "/short", "", "0123", &t, &err), -EREMOTEIO);
	assert_non_null(strstr(err.text, "/short: "));
	assert_int_equal(t.have, 4);
	assert_int_equal(t.total, 10);
	server_stop(&s);
}

static void test_refused(void **state)
{
	static const struct {
		const char *path;
		int code;
		const char *says;
	} cases[] = {
		{"/none", -ENOENT, "404"},      {"/gone", -ENOENT, "410"},
		{"/secret", -EACCES, "403"},    {"/login", -EACCES, "401"},
		{"/broken", -EREMOTEIO, "500"}, {"/loop", -EREMOTEIO, "edirect"},
		{"/away", -EINVAL, "rotocol"},  {"/local", -EINVAL, "rotocol"},
	};
	struct told t = {0};
	struct server s;

	server_start(&s);
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		struct cube_err err = {0};

		assert_int_equal(fetch(*state, &s, cases[i].path, "", "", &t, &err), cases[i].code);
		assert_non_null(strstr(err.text, cases[i].says));
	}
	struct cube_err err = {0};

	assert_int_equal(fetch(*state, &s, "/moved", "", FILE_TEXT, &t, &err), 0);
	assert_int_equal(fetch(*state, &s, "/moved", "012", FILE_TEXT, &t, &err), 0);
	server_stop(&s);
	assert_int_equal(fetch(*state, &s, "/file", "01", "01", &t, &err), -EHOSTUNREACH);
}

static void test_cancelled(void **state)
{
	struct told t = {.cancel = cube_cancel_new()};
	struct cube_err err = {0};
	struct server s;

	server_start(&s);
	assert_int_equal(fetch(*state, &s, "/hang", "", "0123", &t, &err), -EINTR);
	assert_non_null(strstr(err.text, "goes on where it was"));
	/* One that was fired before: not even asked for. */
	unsigned before = s.requests;

	assert_int_equal(fetch(*state, &s, "/file", "", "", &t, &err), -EINTR);
	server_stop(&s);
	assert_int_equal(s.requests, before);
	cube_cancel_unref(t.cancel);
}

static void test_urls(void **state)
{
	static const char *const bad[] = {"",          "http://",       "http:///x",          "ftp://h/x",
					  "file:///x", "https://?x",    "http://me:word@h/x", "HTTP//h",
					  "h/x",       "http://a@h:80/"};
	struct cube_err err = {0};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(bad); i++) {
		assert_false(cube_fetch_url_ok(bad[i]));
		assert_int_equal(cube_fetch(&(struct cube_fetch){.url = bad[i], .fd = -1}, NULL, &err),
				 -EINVAL);
	}
	assert_true(cube_fetch_url_ok("http://h"));
	assert_true(cube_fetch_url_ok("https://h:1/x@y?z"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_whole_and_resumed, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_cut_off, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_refused, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_cancelled, place_setup, place_teardown),
		cmocka_unit_test(test_urls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
