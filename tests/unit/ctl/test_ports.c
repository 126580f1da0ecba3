/* SPDX-License-Identifier: Apache-2.0 */
/* Exposed ports: names, words, what is kept, connections to a socket that the test puts into a sandbox of `mem`. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "ctl/ctl_priv.h"
#include "ctl/ports/peer.h"
#include "ctl/ports/port.h"
#include "ctl/show.h"
#include "tests/unit/ctl/stage.h"

/* ---- words ---- */

static void tokens(void **state)
{
	unsigned char key[CUBE_TOKEN_KEY] = {1, 2, 3};
	struct cube_token t = {.key = key, .cube = "0123456789abcdef", .port = "80", .serial = 1}, other;
	char word[CUBE_TOKEN_TEXT], longer[CUBE_TOKEN_TEXT + 8];

	(void)state;
	assert_int_equal(cube_token_write(&t, word), 0);
	assert_memory_equal(word, "0-1-", 4);
	assert_int_equal(strlen(word), 4 + 64);
	assert_true(cube_token_is(&t, word, UINT64_MAX)); /* never ends */
	assert_false(cube_token_is(&t, "", 0));
	(void)snprintf(longer, sizeof(longer), "%s0", word);
	assert_false(cube_token_is(&t, longer, 0));
	for (size_t i = 0; word[i] != '\0'; i++) { /* each digit counts */
		word[i] ^= 1;
		assert_false(cube_token_is(&t, word, 0));
		word[i] ^= 1;
	}
	other = t;
	other.port = "81";
	assert_false(cube_token_is(&other, word, 0));
	other = t;
	other.cube = "0123456789abcdee";
	assert_false(cube_token_is(&other, word, 0));
	other = t;
	other.serial = 2;
	assert_false(cube_token_is(&other, word, 0));
	t.expires = 1000;
	assert_false(cube_token_is(&t, word, 0));
	assert_int_equal(cube_token_write(&t, word), 0);
	assert_true(cube_token_is(&t, word, 999));
	assert_false(cube_token_is(&t, word, 1000));
	t.expires = t.serial = UINT64_MAX;
	assert_int_equal(cube_token_write(&t, word), 0);
	assert_true(cube_token_is(&t, word, 1));
}

/* ---- names ---- */

static void names(void **state)
{
	static const char *const good[] = {
		"1", "65535", "unix:%2Frun%2Fa.sock", "unix:%2Fa%25b", "abstract:x", "abstract:%2F%0Ax"};
	static const char *const bad[] = {"",
					  "0",
					  "65536",
					  "01",
					  "+1",
					  "http",
					  "unix:",
					  "unix:%2F",
					  "unix:a",
					  "unix:%2fa",
					  "unix:%2F%",
					  "unix:%2Fa%00",
					  "unix:%2F%41",
					  "abstract:",
					  "abstract:\n",
					  "UNIX:%2Fa"};
	struct cube_target t;
	struct cube_err err;

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(good); i++) {
		struct cube_buf back = CUBE_BUF(400);

		assert_int_equal(cube_port_parse(good[i], &t, &err), 0);
		assert_int_equal(cube_port_spell(&t, &back), 0);
		assert_string_equal(cube_buf_str(&back), good[i]);
		cube_buf_done(&back);
	}
	for (size_t i = 0; i < CUBE_COUNT(bad); i++) {
		if (cube_port_parse(bad[i], &t, &err) != -EINVAL)
			fail_msg("'%s' is taken for a port", bad[i]);
		assert_true(err.text[0] != '\0');
	}
	assert_int_equal(cube_port_parse("unix:%2Frun%2Fx", &t, &err), 0);
	assert_string_equal(t.path, "/run/x");
}

/* ---- connections ---- */

static char *url(struct stage *s, struct cube_port *p)
{
	struct cube_buf text = CUBE_BUF(1000);

	cube_domain_enter(s->d);
	assert_int_equal(cube_port_url(p, &text), 0);
	cube_domain_leave(s->d);
	return cube_buf_steal(&text, NULL);
}

static struct cube_port *expose(struct stage *s, struct cube_cube *c, const char *name)
{
	struct cube_port *p = NULL;

	cube_domain_enter(s->d);
	if (cube_port_create(c, name, &p, &s->err) < 0)
		fail_msg("%s", s->err.text);
	cube_domain_leave(s->d);
	return p;
}

static int listen_inside(struct cube_cube *c, const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct cube_root root;

	assert_int_equal(cube_backend_root(c->service->backend, c->id, &root, NULL), 0);
	(void)mkdirat(root.fd, "run", 0755);
	(void)mkdirat(root.fd, "run/ports", 0755);
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/run/ports/%s", root.fd, name);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 5), 0);
	cube_root_close(&root);
	return fd;
}

static int connect_to(struct stage *s, const struct cube_port *p)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)s;
	a.sin_port = htons(p->at);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void hear(int fd, const char *what)
{
	char data[1000];
	size_t at = 0;

	while (at < strlen(what)) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t n;

		assert_int_equal(poll(&p, 1, 20000), 1);
		n = read(fd, data + at, strlen(what) - at);
		assert_true(n > 0);
		at += (size_t)n;
	}
	assert_memory_equal(data, what, at);
}

static void hear_end(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char data[1000];

	do
		assert_int_equal(poll(&p, 1, 20000), 1);
	while (read(fd, data, sizeof(data)) > 0);
}

static void say(int fd, const char *what)
{
	assert_int_equal(send(fd, what, strlen(what), MSG_NOSIGNAL), strlen(what));
}

static void connections(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "a");
	struct cube_port *p = expose(s, c, "80");
	int inside = listen_inside(c, "80"), out, in;

	out = connect_to(s, p);
	/* cppcheck-suppress nullPointer ; whose address it is does not matter */
	in = accept4(inside, NULL, NULL, SOCK_CLOEXEC);
	say(in, "first");
	hear(out, "first");
	say(out, "SSH-2.0\n");
	hear(in, "SSH-2.0\n");
	assert_int_equal(shutdown(out, SHUT_WR), 0);
	hear_end(in);
	say(in, "last");
	hear(out, "last");
	(void)close(in);
	hear_end(out);
	(void)close(out);
	/* HTTP needs the word, in spite of whose process this is. */
	out = connect_to(s, p);
	say(out, "GET / HTTP/1.1\r\n\r\n");
	hear(out, "HTTP/1.1 401 ");
	(void)close(out);
	/* rmdir cuts. */
	out = connect_to(s, p);
	say(out, "\x01");
	cube_domain_enter(s->d);
	assert_int_equal(cube_port_remove(p, &s->err), 0);
	cube_domain_leave(s->d);
	hear_end(out);
	(void)close(out);
	(void)close(inside);
	assert_int_equal(stage_root(s, "destroy a"), 0);
}

static bool has_connections(void *ctx)
{
	return cube_own(ctx)->uses > 0; /* a connection is use */
}

/* In all its stages, when the daemon ends: in order, and as SIGKILL does it. */
static void ends_with_the_daemon(void **state)
{
	struct stage *s = *state;

	for (unsigned killed = 0; killed < 2; killed++) {
		struct cube_cube *c = stage_make(s, "a");
		struct cube_port *p = expose(s, c, "80");
		int inside = listen_inside(c, "80"), joined = connect_to(s, p), silent;

		say(joined, "\x01");
		assert_true(stage_until(s, has_connections, c));
		silent = connect_to(s, p);
		if (killed)
			stage_killed(s);
		else
			stage_down(s);
		(void)close(joined);
		(void)close(silent);
		(void)close(inside);
		stage_up(s);
		(void)stage_root(s, "destroy a");
	}
}

/* ---- what is kept ---- */

static struct cube_port *found(struct stage *s, const char *cube, const char *name)
{
	struct cube_cube *c;
	struct cube_port *p;

	cube_domain_enter(s->d);
	c = cube_domain_find(s->d, cube);
	assert_non_null(c);
	p = cube_port_find(c, name);
	cube_domain_leave(s->d);
	return p;
}

static void kept(void **state)
{
	struct stage *s = *state;
	struct cube_port *p;
	char *before, *after;

	(void)stage_make(s, "b ports=80,abstract:x");
	p = found(s, "b", "80");
	assert_non_null(found(s, "b", "abstract:x"));
	assert_int_equal(stage_verb(s, CUBE_SCOPE_PORT, p, "sign 5000"), 0);
	assert_memory_equal(s->answer, "url=http://127.0.0.1:", 21);
	assert_int_equal(stage_verb(s, CUBE_SCOPE_PORT, p, "name web"), 0);
	before = url(s, p);
	assert_string_equal(s->answer, "");
	stage_killed(s);
	stage_up(s);
	if (cube_domain_find(s->d, "b") == NULL)
		fail_msg("it is gone");
	p = found(s, "b", "80");
	assert_non_null(p);
	assert_string_equal(p->word, "web");
	after = url(s, p);
	assert_string_equal(after, before);
	assert_int_equal(stage_verb(s, CUBE_SCOPE_PORT, p, "revoke"), 0);
	assert_int_equal(stage_verb(s, CUBE_SCOPE_PORT, p, "sign 0"), -EINVAL);
	cube_free(before);
	cube_free(after);
	assert_int_equal(stage_root(s, "destroy b"), 0);
}

static void refused(void **state)
{
	static const char *const bad[] = {"ports=", "ports=80,", "ports=80,80", "ports=0", "ports=unix:/a"};
	struct stage *s = *state;
	char line[64];

	for (size_t i = 0; i < CUBE_COUNT(bad); i++) {
		(void)snprintf(line, sizeof(line), "create c %s", bad[i]);
		assert_int_equal(stage_root(s, line), -EINVAL);
	}
	cube_domain_enter(s->d);
	assert_null(cube_domain_find(s->d, "c"));
	cube_domain_leave(s->d);
}

/* ---- who it is ---- */

static void peers(void **state)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(a);
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), out, in, pair[2];

	(void)state;
	assert_int_equal(bind(l, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(l, 1), 0);
	assert_int_equal(getsockname(l, (struct sockaddr *)&a, &len), 0);
	out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(out, (struct sockaddr *)&a, sizeof(a)), 0);
	/* cppcheck-suppress nullPointer ; whose address it is does not matter */
	in = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	assert_true(cube_peer_is_own(in));
	(void)close(out); /* whose it was is not known any more */
	assert_false(cube_peer_is_own(in));
	(void)close(in);
	(void)close(l);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_false(cube_peer_is_own(pair[0]));
	(void)close(pair[0]);
	(void)close(pair[1]);
	assert_false(cube_peer_is_own(-1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens), cmocka_unit_test(names),   cmocka_unit_test(connections),
		cmocka_unit_test(kept),   cmocka_unit_test(refused), cmocka_unit_test(ends_with_the_daemon),
		cmocka_unit_test(peers),
	};

	return cmocka_run_group_tests(tests, stage_setup, stage_teardown);
}
