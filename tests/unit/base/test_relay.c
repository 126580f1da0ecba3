/* SPDX-License-Identifier: Apache-2.0 */
/* Two joined streams: both ways, half-close, sides that do not read, last words. */
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"
#include "backends/base/relay.h"

struct rig {
	struct cube_loop *loop;
	struct cube_relay *relay;
	int client, server; /* the outer ends */
	int far;            /* the inner end of the server, not joined yet */
	unsigned ended, refused, looked, asked;
	int code;
	enum cube_relay_verdict verdict;
	struct cube_timer *timer;
	unsigned rounds;
	void (*round)(struct rig *r); /* called again and again until it ends the loop */
};

static void rig_ended(void *ctx)
{
	struct rig *r = ctx;

	r->ended++;
	r->relay = NULL;
}

static void rig_refused(void *ctx, int code, struct cube_buf *back)
{
	struct rig *r = ctx;

	r->refused++;
	r->code = code;
	(void)cube_buf_adds(back, "refused");
}

/* Capitals go on, digits are answered. */
static enum cube_relay_verdict rig_look(void *ctx, const char *data, size_t len, struct cube_buf *on,
					struct cube_buf *back)
{
	struct rig *r = ctx;

	r->looked++;
	r->asked += len == 0;
	for (size_t i = 0; i < len; i++) {
		if (data[i] >= 'A' && data[i] <= 'Z')
			(void)cube_buf_addc(on, data[i]);
		if (data[i] >= '0' && data[i] <= '9')
			(void)cube_buf_addc(back, data[i]);
	}
	return r->verdict;
}

static const struct cube_relay_handler plain = {.refused = rig_refused, .ended = rig_ended};
static const struct cube_relay_handler looking = {
	.look = rig_look, .refused = rig_refused, .ended = rig_ended};

static void rig_tick(void *ctx)
{
	struct rig *r = ctx;

	if (++r->rounds > 20000)
		fail_msg("it does not come");
	r->round(r);
	cube_timer_start(r->timer, 1);
}

static void rig_open(struct rig *r, const struct cube_relay_handler *h)
{
	int a[2], b[2];

	*r = (struct rig){.loop = cube_loop_new(), .verdict = CUBE_RELAY_LOOK};
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, a), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, b), 0);
	r->client = a[0];
	r->server = b[0];
	r->far = b[1];
	r->relay = cube_relay_new(r->loop, a[1], h, r);
	assert_non_null(r->relay);
	r->timer = cube_timer_new(r->loop, rig_tick, r);
}

static void rig_close(struct rig *r)
{
	cube_relay_cut(r->relay);
	cube_loop_free(r->loop);
	cube_close_auto(&r->client);
	cube_close_auto(&r->server);
	cube_close_auto(&r->far);
}

static void rig_join(struct rig *r)
{
	cube_relay_join(r->relay, cube_steal_fd(&r->far));
}

static void rig_run(struct rig *r, void (*round)(struct rig *r))
{
	r->rounds = 0;
	r->round = round;
	cube_timer_start(r->timer, 1);
	cube_loop_run(r->loop);
	cube_timer_stop(r->timer);
}

static void until_ended(struct rig *r)
{
	if (r->ended > 0)
		cube_loop_stop(r->loop);
}

static bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void until_client(struct rig *r)
{
	if (readable(r->client))
		cube_loop_stop(r->loop);
}

static void until_server(struct rig *r)
{
	if (readable(r->server))
		cube_loop_stop(r->loop);
}

static void say(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void hear(int fd, const char *text)
{
	char data[64] = "";

	assert_int_equal(read(fd, data, sizeof(data) - 1), strlen(text));
	assert_string_equal(data, text);
}

static void both_ways_and_half_close(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, &plain);
	say(r.client, "early"); /* before there is a far side */
	rig_join(&r);
	rig_run(&r, until_server);
	hear(r.server, "early");
	say(r.server, "answer");
	rig_run(&r, until_client);
	hear(r.client, "answer");
	assert_int_equal(shutdown(r.client, SHUT_WR), 0);
	rig_run(&r, until_server);
	hear(r.server, ""); /* its end */
	say(r.server, "still");
	rig_run(&r, until_client);
	hear(r.client, "still");
	assert_int_equal(r.ended, 0);
	assert_int_equal(shutdown(r.server, SHUT_WR), 0);
	rig_run(&r, until_ended);
	hear(r.client, "");
	rig_close(&r);
}

/* As much as goes into the sockets and no more; whoever reads gets all of it. */
static size_t flood(struct rig *r)
{
	static char data[65536];
	ssize_t n;
	size_t all = 0;

	while ((n = write(r->client, data, sizeof(data))) > 0)
		all += (size_t)n;
	assert_int_equal(errno, EAGAIN);
	return all;
}

static size_t flooded, drained;

static void until_stuck(struct rig *r)
{
	size_t n = flood(r);

	flooded += n;
	if (n == 0 && r->rounds > 100)
		cube_loop_stop(r->loop);
}

static void until_drained(struct rig *r)
{
	static char data[65536];
	ssize_t n;

	while ((n = read(r->server, data, sizeof(data))) > 0)
		drained += (size_t)n;
	if (n == 0)
		cube_loop_stop(r->loop);
}

static void a_side_that_does_not_read(void **state)
{
	struct rig r;

	(void)state;
	flooded = drained = 0;
	rig_open(&r, &plain);
	rig_join(&r);
	rig_run(&r, until_stuck);
	assert_true(flooded > CUBE_RELAY_BYTES && flooded < (4u << 20)); /* three sockets and one buffer */
	assert_int_equal(shutdown(r.client, SHUT_WR), 0);
	rig_run(&r, until_drained);
	assert_int_equal(drained, flooded);
	rig_close(&r);
}

/* Nothing that waits for a far side grows without end either. */
static void a_far_side_that_does_not_come(void **state)
{
	struct rig r;

	(void)state;
	flooded = drained = 0;
	rig_open(&r, &plain);
	rig_run(&r, until_stuck);
	assert_true(flooded < (4u << 20));
	assert_int_equal(shutdown(r.client, SHUT_WR), 0);
	rig_join(&r);
	rig_run(&r, until_drained);
	assert_int_equal(drained, flooded);
	rig_close(&r);
}

static void looked_at_until_it_passes(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, &looking);
	rig_join(&r);
	say(r.client, "aBc1D");
	rig_run(&r, until_server);
	hear(r.server, "BD");
	hear(r.client, "1");
	r.verdict = CUBE_RELAY_PASS;
	cube_relay_ask(r.relay);
	assert_int_equal(r.asked, 1);
	say(r.client, "aBc1D");
	rig_run(&r, until_server);
	hear(r.server, "aBc1D");
	assert_int_equal(r.looked, 2);
	rig_close(&r);
}

static void told_to_leave(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, &looking);
	r.verdict = CUBE_RELAY_LEAVE;
	say(r.client, "401");
	rig_run(&r, until_client);
	hear(r.client, "401");
	rig_run(&r, until_client);
	hear(r.client, "");
	say(r.client, "what comes late is dropped");
	assert_int_equal(close(cube_steal_fd(&r.client)), 0);
	rig_run(&r, until_ended);
	assert_int_equal(r.looked, 1);
	rig_close(&r);
}

static void refused(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, &plain);
	cube_relay_refuse(r.relay, -EHOSTDOWN);
	assert_int_equal(r.code, -EHOSTDOWN);
	rig_run(&r, until_client);
	hear(r.client, "refused");
	assert_int_equal(shutdown(r.client, SHUT_WR), 0);
	rig_run(&r, until_ended);
	rig_close(&r);
}

/* A socket whose connection fails only later. */
static void refused_later(void **state)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(a);
	struct rig r;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	assert_int_equal(close(fd), 0);
	rig_open(&r, &plain);
	cube_close_auto(&r.far);
	r.far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(connect(r.far, (struct sockaddr *)&a, sizeof(a)), -1);
	rig_join(&r);
	rig_run(&r, until_client);
	hear(r.client, "refused");
	assert_int_equal(r.refused, 1);
	rig_close(&r);
}

static void broken_by_a_side(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, &plain);
	rig_join(&r);
	assert_int_equal(close(cube_steal_fd(&r.server)), 0);
	rig_run(&r, until_client);
	hear(r.client, "");
	say(r.client, "into nothing");
	rig_run(&r, until_ended);
	assert_int_equal(r.ended, 1);
	rig_close(&r);
}

static void without_memory(void **state)
{
	(void)state;
	for (unsigned long n = 1;; n++) {
		int pair[2];
		struct cube_loop *l = cube_loop_new();
		struct cube_relay *r;

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		cube_alloc_fail_at(n);
		r = cube_relay_new(l, pair[1], &plain, NULL);
		cube_alloc_fail_at(0);
		if (r == NULL)
			assert_int_equal(close(pair[1]), 0); /* still the caller's */
		cube_relay_cut(r);
		cube_loop_free(l);
		assert_int_equal(close(pair[0]), 0);
		if (r != NULL)
			break;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ways_and_half_close),
		cmocka_unit_test(a_side_that_does_not_read),
		cmocka_unit_test(a_far_side_that_does_not_come),
		cmocka_unit_test(looked_at_until_it_passes),
		cmocka_unit_test(told_to_leave),
		cmocka_unit_test(refused),
		cmocka_unit_test(refused_later),
		cmocka_unit_test(broken_by_a_side),
		cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
