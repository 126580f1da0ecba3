/* SPDX-License-Identifier: Apache-2.0 */
/* cube-init: the daemon may vanish and come back. Commands go on, and nothing is lost or told twice. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/agent/link.h"
#include "backends/agent/wire.h"
#include "tests/unit/agent/rig.h"

/* In the middle of output, with a session, a background child and an end that nobody was there to see. */
static void vanish(struct rig *r)
{
	uint64_t boot = r->boot;
	uint64_t ended = rig_do(r, &(struct rig_run){.text = "echo known; exit 2"});
	uint64_t unseen = rig_start(r, &(struct rig_run){.text = "sleep 0.3; echo unseen; exit 7"});
	uint64_t running = rig_start(
		r, &(struct rig_run){.text = "for i in $(seq 200); do echo line $i; sleep 0.01; done"});
	uint64_t command, forgotten;
	char *out;
	unsigned at = 0;

	rig_expect(r, rig_say(r, "cd /usr; export A=1"), "", CUBE_END_EXIT, 0);
	forgotten = rig_do(r, &(struct rig_run){.text = "(sleep 0.8; echo late) & echo first"});
	cube_link_forget(r->link, forgotten);
	command =
		rig_start(r, &(struct rig_run){.text = "echo in session; sleep 0.5; echo end", .session = 1});
	rig_wait_total(r, running, 100);
	rig_wait_total(r, command, 11);
	rig_disconnect(r);
	(void)usleep(600000);
	for (unsigned i = 0; i < r->n_jobs; i++)
		r->jobs[i].starts = r->jobs[i].ends = 0; /* by the second life of the daemon */
	rig_session(r, 1)->reports = 0;
	rig_connect(r);
	assert_true(r->boot == boot && r->ups == 2);
	rig_expect(r, ended, "known\n", CUBE_END_EXIT, 2);
	rig_expect(r, unseen, "unseen\n", CUBE_END_EXIT, 7);
	rig_expect(r, command, "in session\nend\n", CUBE_END_EXIT, 0);
	assert_int_equal(rig_job(r, ended)->starts, 1);
	assert_int_equal(rig_job(r, forgotten)->starts, 0);
	assert_int_equal(rig_job(r, forgotten)->ends, 0);
	assert_int_equal(rig_session(r, 1)->reports, 1);
	rig_wait_total(r, forgotten, 11);
	rig_wait_end(r, running);
	out = rig_output(r, running, NULL);
	for (unsigned i = 1; i <= 200; i++) {
		char line[24];
		int n = snprintf(line, sizeof(line), "line %u\n", i);

		assert_memory_equal(out + at, line, (size_t)n);
		at += (unsigned)n;
	}
	assert_int_equal(rig_job(r, running)->total, at);
	free(out);
	rig_expect(r, rig_say(r, "echo $A; pwd"), "1\n/usr\n", CUBE_END_EXIT, 0);
}

static void test_vanish(void **state)
{
	(void)state;
	rig_each(vanish);
}

static bool is_gone(struct rig *r, void *ctx)
{
	(void)ctx;
	return r->downs > 0;
}

/* What is forgotten is not told again; what is not is, each time. */
static void test_forget(void **state)
{
	struct rig *r = rig_new(NULL, false, false);
	uint64_t a = rig_do(r, &(struct rig_run){.text = "echo a"});
	uint64_t b = rig_do(r, &(struct rig_run){.text = "echo b"});

	(void)state;
	cube_link_forget(r->link, a);
	for (int i = 0; i < 3; i++) {
		rig_disconnect(r);
		rig_job(r, a)->ends = rig_job(r, b)->ends = 0;
		rig_connect(r);
		assert_int_equal(rig_job(r, a)->ends, 0);
		assert_int_equal(rig_job(r, b)->ends, 1);
	}
	/* A job that runs is not forgotten before its end. */
	a = rig_start(r, &(struct rig_run){.text = "sleep 0.2"});
	rig_wait_started(r, a);
	cube_link_forget(r->link, a);
	rig_expect(r, a, "", CUBE_END_EXIT, 0);
	rig_free(r);
}

/* Input goes on where the agent has it: what an earlier daemon sent counts against the window. */
static void test_input_again(void **state)
{
	struct rig *r = rig_new(NULL, false, false);
	uint64_t id = rig_start(r, &(struct rig_run){.text = "read a; read b; echo $a-$b", .input = true});

	(void)state;
	assert_int_equal(cube_link_input(r->link, id, "one\n", 4), 4);
	rig_wait_started(r, id);
	(void)usleep(50000);
	rig_disconnect(r);
	rig_connect(r);
	assert_int_equal(cube_link_input(r->link, id, "two\n", 4), 4);
	rig_expect(r, id, "one-two\n", CUBE_END_EXIT, 0);
	rig_free(r);
}

/* A second daemon takes the place of the first. */
static void test_replaced(void **state)
{
	struct rig *r = rig_new(NULL, false, false);
	struct cube_link *old = r->link;
	uint64_t id = rig_start(r, &(struct rig_run){.text = "sleep 0.5; echo x"});
	struct cube_err err;

	(void)state;
	rig_wait_started(r, id);
	rig_connect(r);
	rig_wait(r, is_gone, NULL);
	assert_int_equal(r->down.code, -EHOSTDOWN);
	assert_int_equal(
		cube_link_start(
			old,
			&(struct cube_link_start){
				.job = 77, .text = "true", .text_len = 4, .out_fd = 2, .order_fd = -1},
			&err),
		-EHOSTDOWN);
	cube_link_kill(old, id, 9); /* harmless */
	cube_link_close(old);
	rig_expect(r, id, "x\n", CUBE_END_EXIT, 0);
	rig_free(r);
}

/* The agent is killed: the link goes down and says so. */
static void test_agent_dies(void **state)
{
	struct rig *r = rig_new(NULL, false, false);
	struct cube_err err = {0};
	int status;

	(void)state;
	assert_int_equal(kill(r->agent, SIGKILL), 0);
	assert_int_equal(waitpid(r->agent, &status, 0), r->agent);
	rig_wait(r, is_gone, NULL);
	assert_int_equal(r->down.code, -EHOSTDOWN);
	assert_true(r->down.text[0] != '\0');
	assert_int_equal(rig_refused(r, &(struct rig_run){.text = "true"}), -EHOSTDOWN);
	(void)err;
	r->agent = 0;
	rig_free(r);
}

/* ---- the agent and a peer that does not keep to the protocol ---- */

static int raw_connect(struct rig *r)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = 20};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s/sock", r->dir);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	return fd;
}

static void raw_hello(int fd)
{
	const struct cube_wire_hello m = {.min = 1, .max = 1};
	unsigned char data[64];
	struct cube_wire_out out;

	cube_wire_out_init(&out, data, sizeof(data));
	assert_true(cube_wire_put_hello(&out, &m));
	assert_int_equal(write(fd, data, out.len), (ssize_t)out.len);
}

/* The connection ends; what was said before it did is of no interest. */
static void raw_expect_end(int fd)
{
	char data[4096];
	ssize_t n;

	while ((n = read(fd, data, sizeof(data))) > 0)
		;
	assert_true(n == 0 || errno == ECONNRESET);
	(void)close(fd);
}

static void raw_frame(int fd, uint32_t len, uint16_t type, uint16_t flags, const void *body, size_t body_len)
{
	unsigned char head[CUBE_WIRE_HEADER];
	struct cube_wire_out out;

	cube_wire_out_init(&out, head, sizeof(head));
	cube_wire_put_u32(&out, len);
	cube_wire_put_u16(&out, type);
	cube_wire_put_u16(&out, flags);
	cube_wire_put_u64(&out, 1);
	(void)!write(fd, head, sizeof(head));
	if (body_len > 0)
		(void)!write(fd, body, body_len);
}

static void test_bad_frames(void **state)
{
	static const unsigned char zeros[100];
	static const struct {
		bool hello;
		uint32_t len;
		uint16_t type, flags;
		size_t body;
	} bad[] = {
		{false, 0, CUBE_WIRE_EOF, 0, 0},            /* before HELLO */
		{false, 24, CUBE_WIRE_HELLO, 0, 24},        /* no HELLO at all */
		{false, 0xffffffff, CUBE_WIRE_HELLO, 0, 0}, /* too long */
		{true, CUBE_WIRE_BODY_MAX + 1, CUBE_WIRE_INPUT, 0, 0},
		{true, 0, 9999, 0, 0},                           /* unknown, and not optional */
		{true, 8, CUBE_WIRE_KILL, 0, 8},                 /* signal 0 */
		{true, 7, CUBE_WIRE_KILL, 0, 7},                 /* short */
		{true, 9, CUBE_WIRE_TIMEOUT, 0, 9},              /* long */
		{true, 3, CUBE_WIRE_START, 0, 3},                /* no length */
		{true, 4, CUBE_WIRE_START, CUBE_WIRE_FD_OUT, 4}, /* descriptors that did not come */
		{true, 60, CUBE_WIRE_START, 0, 60},              /* more than it says */
		{true, 1, CUBE_WIRE_EOF, 0, 1},
		{true, 24, CUBE_WIRE_HELLO, 0, 24}, /* twice */
	};
	struct rig *r = rig_new(NULL, false, false);

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int fd = raw_connect(r);

		if (bad[i].hello)
			raw_hello(fd);
		raw_frame(fd, bad[i].len, bad[i].type, bad[i].flags, zeros, bad[i].body);
		raw_expect_end(fd);
	}
	cube_link_close(r->link);
	rig_connect(r);
	rig_expect(r, rig_do(r, &(struct rig_run){.text = "echo unharmed"}), "unharmed\n", CUBE_END_EXIT, 0);
	rig_free(r);
}

/* What is unknown but says that it may be is passed over. Input beyond the window is not. */
static void test_rules(void **state)
{
	static unsigned char data[CUBE_WIRE_INPUT_MAX];
	struct rig *r = rig_new(NULL, false, false);
	int fd = raw_connect(r);

	(void)state;
	raw_hello(fd);
	raw_frame(fd, 5, 9999, CUBE_WIRE_OPTIONAL, "hello", 5);
	raw_frame(fd, 8, CUBE_WIRE_KILL, 0, "\011\0\0\0\0\0\0", 8); /* a job that is not there */
	{
		const struct cube_wire_start m = {.text = "sleep 300",
						  .text_len = 9,
						  .cwd = "/",
						  .cwd_len = 1,
						  .what = CUBE_WIRE_START_STDIN | CUBE_WIRE_START_MERGE};
		unsigned char frame[256];
		struct cube_wire_out out;

		cube_wire_out_init(&out, frame, sizeof(frame));
		assert_true(cube_wire_put_start(&out, 1, 0, &m));
		assert_int_equal(write(fd, frame, out.len), (ssize_t)out.len);
	}
	for (unsigned i = 0; i < 16; i++)
		raw_frame(fd, sizeof(data), CUBE_WIRE_INPUT, 0, data, sizeof(data));
	raw_expect_end(fd);
	cube_link_close(r->link);
	rig_connect(r);
	cube_link_kill_all(r->link, SIGKILL);
	rig_free(r);
}

/* ---- a stream that passes no descriptors ---- */

static void test_stream(void **state)
{
	struct rig *r = rig_new(NULL, true, false);
	uint64_t id;

	(void)state;
	assert_int_equal(cube_agent_link_caps(r->link) & CUBE_WIRE_CAP_FDS, 0);
	rig_expect(r, rig_do(r, &(struct rig_run){.text = "echo a; echo b >&2; exit 3"}), "a\nb\n",
		   CUBE_END_EXIT, 3);
	rig_expect(r, rig_say(r, "echo session"), "session\n", CUBE_END_EXIT, 0);
	id = rig_do(r, &(struct rig_run){.text = "(sleep 0.2; echo late) & echo first"});
	cube_link_forget(r->link, id);
	rig_wait_total(r, id, 11);
	/* Two at once, each with more than a window. */
	{
		uint64_t a = rig_start(r, &(struct rig_run){.text = "seq 1000000"});
		uint64_t b = rig_start(r, &(struct rig_run){.text = "seq 1000000"});

		rig_wait_end(r, a);
		rig_wait_end(r, b);
		assert_int_equal(rig_job(r, a)->total, 6888896);
		assert_int_equal(rig_job(r, b)->total, 6888896);
		assert_true(rig_has(r, a, "\n1000000\n") && rig_has(r, b, "\n999999\n"));
	}
	rig_free(r);
}

/* The limit applies to what is kept while it cannot be sent as well: the two halves arrive, at their places.
 */
static void test_stream_limit(void **state)
{
	struct rig *r = rig_new(NULL, true, false);
	uint64_t id = rig_do(
		r, &(struct rig_run){
			   .text = "printf begin; head -c 100000000 /dev/zero | tr '\\0' x; printf end",
			   .limit = 8u << 20});
	char text[8] = "";

	(void)state;
	assert_int_equal(rig_job(r, id)->end.total, 100000008);
	assert_int_equal(pread(rig_job(r, id)->out_fd, text, 5, 0), 5);
	assert_string_equal(text, "begin");
	assert_int_equal(pread(rig_job(r, id)->out_fd, text, 4, 100000004), 4);
	assert_memory_equal(text, "xend", 4);
	rig_free(r);
}

/* A daemon that comes back takes the output up where it has it; until it says where, the agent keeps it. */
static void test_stream_again(void **state)
{
	struct rig *r = rig_new_terminal();
	uint64_t id = rig_start(
		r, &(struct rig_run){.text = "for i in $(seq 300); do echo line $i; sleep 0.01; done"});
	uint64_t both = rig_start(
		r, &(struct rig_run){
			   .text = "for i in 1 2 3 4; do echo o; sleep 0.2; echo e >&2; sleep 0.2; done",
			   .separate = true});
	const struct rig_job *jobs[] = {rig_job(r, id), rig_job(r, both)};
	char *out;
	unsigned at = 0;

	(void)state;
	rig_wait_total(r, id, 300);
	rig_disconnect(r);
	(void)usleep(300000);
	rig_connect(r);
	assert_int_equal(jobs[0]->starts, 2);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(cube_link_adopt(r->link, jobs[i]->id, jobs[i]->out_fd, jobs[i]->order_fd,
						 jobs[i]->total, jobs[i]->err_total),
				 0);
	rig_wait_end(r, id);
	rig_wait_end(r, both);
	out = rig_output(r, id, NULL);
	for (unsigned i = 1; i <= 300; i++) {
		char line[24];
		int n = snprintf(line, sizeof(line), "line %u\n", i);

		assert_memory_equal(out + at, line, (size_t)n);
		at += (unsigned)n;
	}
	assert_int_equal(jobs[0]->total, at);
	free(out);
	rig_expect(r, both, "o\ne\no\ne\no\ne\no\ne\n", CUBE_END_EXIT, 0);
	assert_int_equal(jobs[1]->err_total, 8);
	rig_expect(r, rig_do(r, &(struct rig_run){.text = "seq 300000 | tail -n 1"}), "300000\n",
		   CUBE_END_EXIT, 0);
	rig_free(r);
}

/* The count of kills that a job was started at is what is asked with at its end. */
struct killer {
	unsigned asked;
	uint64_t count, then;
	bool answer;
};

static uint64_t killer_count(void *ctx)
{
	return ((struct killer *)ctx)->count;
}

static bool killer_probe(void *ctx, uint64_t then)
{
	struct killer *k = ctx;

	k->asked++;
	k->then = then;
	return k->answer;
}

/* Killed by nobody that we know: then it is asked whether memory was short. */
static void test_oom(void **state)
{
	struct rig *r = rig_new(NULL, false, false);
	struct killer k = {.count = 5, .answer = true};
	uint64_t id;

	(void)state;
	cube_agent_link_set_oom(
		r->link, &(struct cube_agent_oom){.count = killer_count, .probe = killer_probe, .ctx = &k});
	rig_expect(r, rig_do(r, &(struct rig_run){.text = "kill -9 $$"}), "", CUBE_END_OOM, 137);
	rig_expect(r, rig_say(r, "sh -c 'kill -9 $$'"), NULL, CUBE_END_OOM, 137);
	assert_int_equal(k.asked, 2);
	assert_int_equal(k.then, 5);
	id = rig_start(r, &(struct rig_run){.text = "sleep 300"});
	cube_link_kill(r->link, id, SIGKILL);
	rig_expect(r, id, "", CUBE_END_KILLED, 137);
	rig_expect(r, rig_do(r, &(struct rig_run){.text = "kill -TERM $$"}), "", CUBE_END_SIGNAL, 143);
	assert_int_equal(k.asked, 2);
	k.count = 7;
	k.answer = false;
	rig_expect(r, rig_do(r, &(struct rig_run){.text = "kill -9 $$"}), "", CUBE_END_SIGNAL, 137);
	assert_int_equal(k.asked, 3);
	assert_int_equal(k.then, 7);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vanish),       cmocka_unit_test(test_forget),
		cmocka_unit_test(test_input_again),  cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_agent_dies),   cmocka_unit_test(test_bad_frames),
		cmocka_unit_test(test_rules),        cmocka_unit_test(test_stream),
		cmocka_unit_test(test_stream_limit), cmocka_unit_test(test_stream_again),
		cmocka_unit_test(test_oom),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
