/* SPDX-License-Identifier: Apache-2.0 */
/* The codec of the agent protocol. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/agent/wire.h"

static void test_numbers(void **state)
{
	unsigned char data[15];
	struct cube_wire_out out;
	struct cube_wire_in in;

	(void)state;
	cube_wire_out_init(&out, data, sizeof(data));
	cube_wire_put_u8(&out, 0x12);
	cube_wire_put_u16(&out, 0x3456);
	cube_wire_put_u32(&out, 0x789abcde);
	cube_wire_put_u64(&out, UINT64_C(0x0123456789abcdef));
	assert_int_equal(out.len, 15);
	assert_false(out.full);
	assert_memory_equal(data, "\x12\x56\x34\xde\xbc\x9a\x78\xef\xcd\xab\x89\x67\x45\x23\x01", 15);
	cube_wire_put_u8(&out, 1);
	assert_true(out.full && out.len == 15);
	cube_wire_in_init(&in, data, sizeof(data));
	assert_int_equal(cube_wire_u8(&in), 0x12);
	assert_int_equal(cube_wire_u16(&in), 0x3456);
	assert_int_equal(cube_wire_u32(&in), 0x789abcde);
	assert_false(cube_wire_in_done(&in));
	assert_true(cube_wire_u64(&in) == UINT64_C(0x0123456789abcdef));
	assert_true(cube_wire_in_done(&in));
	assert_int_equal(cube_wire_u8(&in), 0);
	assert_true(in.bad);
	assert_false(cube_wire_in_done(&in));
}

/* Bad for good: what would fit is not given either. */
static void test_bad_stays(void **state)
{
	struct cube_wire_in in;

	(void)state;
	cube_wire_in_init(&in, "abc", 3);
	assert_int_equal(cube_wire_u32(&in), 0);
	assert_int_equal(cube_wire_u8(&in), 0);
	assert_null(cube_wire_bytes(&in, 1));
	cube_wire_in_init(&in, "abc", 3);
	assert_non_null(cube_wire_bytes(&in, 0));
	assert_memory_equal(cube_wire_bytes(&in, 3), "abc", 3);
	assert_null(cube_wire_bytes(&in, SIZE_MAX));
}

static void test_frame_taken_back(void **state)
{
	unsigned char data[40];
	struct cube_wire_out out;

	(void)state;
	cube_wire_out_init(&out, data, sizeof(data));
	assert_true(cube_wire_put_number(&out, CUBE_WIRE_KILL, 1, 9));
	assert_int_equal(out.len, 24);
	assert_false(cube_wire_put_number(&out, CUBE_WIRE_KILL, 2, 9));
	assert_true(out.len == 24 && !out.full);
	assert_true(cube_wire_put_plain(&out, CUBE_WIRE_EOF, 3));
	assert_int_equal(out.len, 40);
	assert_memory_equal(data + 24, "\0\0\0\0\x12\0\0\0\x03\0\0\0\0\0\0\0", 16);
}

static void feed_add(struct cube_wire_feed *f, const void *data, size_t len)
{
	size_t space;
	void *to = cube_wire_feed_space(f, &space);

	assert_true(len <= space);
	memcpy(to, data, len);
	f->len += len;
}

static void test_feed(void **state)
{
	struct cube_wire_feed *f = malloc(sizeof(*f));
	unsigned char data[64];
	struct cube_wire_out out;
	struct cube_wire_head head;
	const void *body = NULL;

	(void)state;
	assert_non_null(f);
	cube_wire_feed_init(f);
	cube_wire_out_init(&out, data, sizeof(data));
	assert_true(cube_wire_put_pair(&out, CUBE_WIRE_CREDIT, 7, 10, 20));
	assert_true(cube_wire_put_plain(&out, CUBE_WIRE_EOF, 8));
	/* Byte by byte, and both at once. */
	for (size_t i = 0; i < 32; i++) {
		assert_int_equal(cube_wire_feed_next(f, &head, &body), 0);
		feed_add(f, data + i, 1);
	}
	assert_int_equal(cube_wire_feed_next(f, &head, &body), 1);
	assert_true(head.len == 16 && head.type == CUBE_WIRE_CREDIT && head.id == 7 && head.flags == 0);
	assert_int_equal(cube_wire_feed_next(f, &head, &body), 0);
	feed_add(f, data + 32, 16);
	feed_add(f, data, 48);
	assert_int_equal(cube_wire_feed_next(f, &head, &body), 1);
	assert_int_equal(head.id, 8);
	assert_int_equal(cube_wire_feed_next(f, &head, &body), 1);
	assert_int_equal(cube_wire_feed_next(f, &head, &body), 1);
	assert_int_equal(cube_wire_feed_next(f, &head, &body), 0);
	free(f);
}

/* The largest frame fits; a larger one is refused before any of its body came. */
static void test_feed_bounds(void **state)
{
	struct cube_wire_feed *f = malloc(sizeof(*f));
	struct cube_wire_head head;
	const void *body;
	size_t space;

	(void)state;
	assert_non_null(f);
	cube_wire_feed_init(f);
	feed_add(f, "\0\0\1\0\1\0\0\0\0\0\0\0\0\0\0\0", 16);
	assert_int_equal(cube_wire_feed_next(f, &head, &body), 0);
	(void)cube_wire_feed_space(f, &space);
	assert_int_equal(space, CUBE_WIRE_BODY_MAX);
	memset(f->data + f->len, 'x', space);
	f->len += space;
	assert_int_equal(cube_wire_feed_next(f, &head, &body), 1);
	assert_int_equal(head.len, CUBE_WIRE_BODY_MAX);
	feed_add(f, "\1\0\1\0\1\0\0\0\0\0\0\0\0\0\0\0", 16);
	assert_int_equal(cube_wire_feed_next(f, &head, &body), -EPROTO);
	free(f);
}

static void test_sync(void **state)
{
	struct cube_wire_feed *f = malloc(sizeof(*f));
	const struct cube_wire_hello m = {.min = 1, .max = 1, .boot = 5};
	unsigned char data[64];
	struct cube_wire_out out;
	struct cube_wire_head head;
	const void *body;

	(void)state;
	assert_non_null(f);
	cube_wire_feed_init(f);
	cube_wire_out_init(&out, data, sizeof(data));
	assert_true(cube_wire_put_hello(&out, &m));
	for (size_t i = 0; i < 5000; i++)
		feed_add(f, &"\0\0\1CUBE"[i % 7], 1);
	assert_false(cube_wire_feed_sync(f));
	feed_add(f, data, 10);
	assert_false(cube_wire_feed_sync(f));
	feed_add(f, data + 10, out.len - 10);
	assert_true(cube_wire_feed_sync(f));
	assert_int_equal(cube_wire_feed_next(f, &head, &body), 1);
	assert_int_equal(head.type, CUBE_WIRE_HELLO);
	free(f);
}

static unsigned live;

static void *count_alloc(size_t size)
{
	live++;
	return malloc(size);
}

static void count_free(void *p)
{
	live--;
	free(p);
}

static void *no_alloc(size_t size)
{
	(void)size;
	return NULL;
}

/* Cuts, and joins again by way of frames. Gives what the last frame gave. */
static int through(struct cube_wire_join *j, const void *data, size_t len, struct cube_wire_feed *f)
{
	struct cube_wire_head head;
	const unsigned char *p = data;
	const void *body;
	int r = 0;

	cube_wire_feed_init(f);
	while (r == 0 && len > 0) {
		size_t space;
		void *to = cube_wire_feed_space(f, &space);
		size_t n = len < space ? len : space;

		memcpy(to, p, n);
		f->len += n;
		p += n;
		len -= n;
		while (r == 0 && cube_wire_feed_next(f, &head, &body) > 0)
			r = cube_wire_join_add(j, &head, body);
	}
	return r;
}

static void test_long(void **state)
{
	static const size_t sizes[] = {0,
				       1,
				       100,
				       CUBE_WIRE_BODY_MAX - 5,
				       CUBE_WIRE_BODY_MAX - 4,
				       CUBE_WIRE_BODY_MAX - 3,
				       CUBE_WIRE_BODY_MAX,
				       3 * CUBE_WIRE_BODY_MAX - 4,
				       CUBE_WIRE_TEXT_MAX};
	struct cube_wire_feed *f = malloc(sizeof(*f));
	unsigned char *body = malloc(CUBE_WIRE_TEXT_MAX);
	struct cube_wire_join j;

	(void)state;
	assert_non_null(f);
	assert_non_null(body);
	for (size_t i = 0; i < CUBE_WIRE_TEXT_MAX; i++)
		body[i] = (unsigned char)(i * 31 + i / 256);
	cube_wire_join_init(&j, CUBE_WIRE_LONG_MAX, count_alloc, count_free);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const struct cube_wire_piece pieces[] = {{body, sizes[i] / 3},
							 {body + sizes[i] / 3, sizes[i] - sizes[i] / 3}};
		size_t size = cube_wire_cut_size(pieces, 2);
		unsigned char *data = malloc(size);
		struct cube_wire_out out;

		assert_non_null(data);
		cube_wire_out_init(&out, data, size - 1);
		assert_false(cube_wire_cut(&out, CUBE_WIRE_START, 0, 1, pieces, 2));
		cube_wire_out_init(&out, data, size);
		assert_true(cube_wire_cut(&out, CUBE_WIRE_START, CUBE_WIRE_FD_OUT, 1, pieces, 2));
		assert_int_equal(out.len, size);
		assert_int_equal(through(&j, data, size, f), 1);
		assert_int_equal(j.len, sizes[i]);
		assert_memory_equal(j.data, body, sizes[i]);
		free(data);
	}
	cube_wire_join_done(&j);
	assert_int_equal(live, 0);
	free(f);
	free(body);
}

static int join_one(struct cube_wire_join *j, uint16_t type, uint64_t id, unsigned flags, const void *body,
		    uint32_t len)
{
	const struct cube_wire_head head = {.len = len, .type = type, .flags = (uint16_t)flags, .id = id};

	return cube_wire_join_add(j, &head, body);
}

static void test_join_refusals(void **state)
{
	struct cube_wire_join j;

	(void)state;
	cube_wire_join_init(&j, 100, count_alloc, count_free);
	assert_int_equal(join_one(&j, 1, 1, 0, "abc", 3), -EPROTO);
	assert_int_equal(join_one(&j, 1, 1, 0, "\x65\0\0\0", 4), -EMSGSIZE);
	assert_int_equal(join_one(&j, 1, 1, 0, "\x01\0\0\0ab", 6), -EPROTO); /* more than it said */
	cube_wire_join_done(&j);
	assert_int_equal(join_one(&j, 1, 1, 0, "\x03\0\0\0ab", 6), -EPROTO); /* less, and no more comes */
	cube_wire_join_done(&j);
	assert_int_equal(join_one(&j, 1, 1, CUBE_WIRE_MORE, "\x02\0\0\0ab", 6),
			 -EPROTO); /* all, and more comes */
	cube_wire_join_done(&j);
	assert_int_equal(join_one(&j, 1, 1, CUBE_WIRE_MORE, "\x03\0\0\0ab", 6), 0);
	assert_int_equal(join_one(&j, 1, 2, 0, "c", 1), -EPROTO); /* another one's */
	cube_wire_join_done(&j);
	assert_int_equal(join_one(&j, 1, 1, CUBE_WIRE_MORE, "\x03\0\0\0ab", 6), 0);
	assert_int_equal(join_one(&j, 1, 1, CUBE_WIRE_MORE, "", 0), -EPROTO); /* nothing, for ever */
	cube_wire_join_done(&j);
	assert_int_equal(join_one(&j, 1, 1, 0, "\0\0\0\0", 4), 1);
	assert_int_equal(j.len, 0);
	cube_wire_join_done(&j);
	assert_int_equal(live, 0);
	cube_wire_join_init(&j, 100, no_alloc, count_free);
	assert_int_equal(join_one(&j, 1, 1, 0, "\x01\0\0\0a", 5), -ENOMEM);
}

/* Every message that is shorter or longer than it should be is none. */
#define REFUSES(get, body, len, m)                                                                           \
	do {                                                                                                 \
		for (size_t cut_ = 0; cut_ < (len); cut_++)                                                  \
			assert_false(get((body), cut_, (m)));                                                \
		assert_true(get((body), (len), (m)));                                                        \
	} while (0)

static unsigned char frame[4096];

static const unsigned char *body_of(struct cube_wire_out *out, size_t *len)
{
	*len = out->len - CUBE_WIRE_HEADER;
	return frame + CUBE_WIRE_HEADER;
}

static void test_hello(void **state)
{
	struct cube_wire_hello m = {.min = 1, .max = 3, .caps = 5, .boot = 77}, back;
	struct cube_wire_out out;
	const unsigned char *body;
	size_t len;

	(void)state;
	cube_wire_out_init(&out, frame, sizeof(frame));
	assert_true(cube_wire_put_hello(&out, &m));
	body = body_of(&out, &len);
	REFUSES(cube_wire_get_hello, body, len, &back);
	assert_true(back.min == 1 && back.max == 3 && back.caps == 5 && back.boot == 77);
	assert_true(cube_wire_get_hello(body, len + 8, &back)); /* of a later version */
	assert_int_equal(cube_wire_version(&back), 1);
	m = (struct cube_wire_hello){.min = 2, .max = 2};
	assert_int_equal(cube_wire_version(&m), 0);
	frame[CUBE_WIRE_HEADER] ^= 1;
	assert_false(cube_wire_get_hello(body, len, &back));
}

static void test_start(void **state)
{
	const struct cube_wire_start m = {
		.session = 9,
		.limit = UINT64_C(1) << 40,
		.timeout_s = 30,
		.what = CUBE_WIRE_START_TTY | CUBE_WIRE_START_CWD,
		.rows = 24,
		.cols = 80,
		.text = "text",
		.text_len = 4,
		.env = "A=1\0B=2",
		.env_len = 7,
		.cwd = "/x",
		.cwd_len = 2,
		.user = "me",
		.user_len = 2,
	};
	struct cube_wire_start back;
	struct cube_wire_out out;
	unsigned char *body = frame + CUBE_WIRE_HEADER + 4;
	size_t len;

	(void)state;
	cube_wire_out_init(&out, frame, sizeof(frame));
	assert_true(cube_wire_put_start(&out, 1, 0, &m));
	assert_int_equal(out.len, cube_wire_start_size(&m));
	len = out.len - CUBE_WIRE_HEADER - 4;
	REFUSES(cube_wire_get_start, body, len, &back);
	assert_false(cube_wire_get_start(body, len + 1, &back));
	assert_true(back.session == 9 && back.limit == UINT64_C(1) << 40 && back.timeout_s == 30 &&
		    back.rows == 24 && back.cols == 80 && back.what == m.what);
	assert_memory_equal(back.text, "text", 4);
	assert_memory_equal(back.env, "A=1\0B=2", 7);
	assert_memory_equal(back.cwd, "/x", 2);
	assert_memory_equal(back.user, "me", 2);
	body[40] = 0; /* in cwd */
	assert_false(cube_wire_get_start(body, len, &back));
	{
		struct cube_wire_start big = m;

		big.user_len = CUBE_WIRE_USER_MAX + 1;
		assert_false(cube_wire_put_start(&out, 1, 0, &big));
	}
}

static void test_reports(void **state)
{
	const struct cube_wire_started started = {
		.pid = 5, .tail = true, .session = 3, .received = 9, .taken = 4};
	const struct cube_wire_output output = {.total = 100, .err_total = 40, .lost = 7};
	const struct cube_wire_ended ended = {.how = CUBE_WIRE_SIGNAL,
					      .code = 137,
					      .signal = 9,
					      .output = {.total = 1},
					      .wall_ns = 3,
					      .err = -2,
					      .text = "why",
					      .text_len = 3};
	struct cube_wire_started started2;
	struct cube_wire_output output2;
	struct cube_wire_ended ended2;
	struct cube_wire_out out;
	const unsigned char *body;
	size_t len;

	(void)state;
	cube_wire_out_init(&out, frame, sizeof(frame));
	assert_true(cube_wire_put_started(&out, 1, &started));
	body = body_of(&out, &len);
	REFUSES(cube_wire_get_started, body, len, &started2);
	assert_true(started2.pid == 5 && started2.tail && started2.session == 3 && started2.received == 9 &&
		    started2.taken == 4);
	frame[CUBE_WIRE_HEADER + 4] = 2;
	assert_false(cube_wire_get_started(body, len, &started2));

	cube_wire_out_init(&out, frame, sizeof(frame));
	assert_true(cube_wire_put_output(&out, 1, &output));
	body = body_of(&out, &len);
	REFUSES(cube_wire_get_output, body, len, &output2);
	assert_true(output2.total == 100 && output2.err_total == 40 && output2.lost == 7);
	frame[CUBE_WIRE_HEADER + 8] = 101; /* more on stderr than in all */
	assert_false(cube_wire_get_output(body, len, &output2));

	cube_wire_out_init(&out, frame, sizeof(frame));
	assert_true(cube_wire_put_ended(&out, 1, &ended));
	body = body_of(&out, &len);
	assert_true(cube_wire_get_ended(body, len, &ended2));
	assert_true(ended2.how == CUBE_WIRE_SIGNAL && ended2.code == 137 && ended2.signal == 9 &&
		    ended2.err == -2);
	assert_int_equal(ended2.text_len, 3);
	assert_memory_equal(ended2.text, "why", 3);
	for (size_t cut = 0; cut < len - 3; cut++)
		assert_false(cube_wire_get_ended(body, cut, &ended2));
	frame[CUBE_WIRE_HEADER] = CUBE_WIRE_HOWS;
	assert_false(cube_wire_get_ended(body, len, &ended2));
}

static void test_data(void **state)
{
	struct cube_wire_data m = {.err = true, .offset = 10, .before = 4, .bytes = "bytes", .len = 5}, back;
	struct cube_wire_out out;
	const unsigned char *body;
	size_t len;

	(void)state;
	cube_wire_out_init(&out, frame, sizeof(frame));
	assert_true(cube_wire_put_data(&out, 1, &m));
	body = body_of(&out, &len);
	assert_true(cube_wire_get_data(body, len, &back));
	assert_true(back.err && back.offset == 10 && back.before == 4 && back.len == 5);
	assert_memory_equal(back.bytes, "bytes", 5);
	assert_false(cube_wire_get_data(body, len - 5, &back));
	m.before = 11; /* more of one stream than of both */
	cube_wire_out_init(&out, frame, sizeof(frame));
	assert_true(cube_wire_put_data(&out, 1, &m));
	assert_false(cube_wire_get_data(body, len, &back));
	m.offset = m.before = INT64_MAX;
	cube_wire_out_init(&out, frame, sizeof(frame));
	assert_true(cube_wire_put_data(&out, 1, &m));
	assert_false(cube_wire_get_data(body, len, &back));
}

static void test_session(void **state)
{
	const struct cube_wire_session m = {.what = CUBE_WIRE_SESSION_FRESH,
					    .cwd = "/here",
					    .cwd_len = 5,
					    .exports = "export A",
					    .exports_len = 8};
	struct cube_wire_session back;
	struct cube_wire_out out;
	unsigned char *body = frame + CUBE_WIRE_HEADER + 4;
	size_t len;

	(void)state;
	cube_wire_out_init(&out, frame, sizeof(frame));
	assert_true(cube_wire_put_session(&out, 1, &m));
	assert_int_equal(out.len, cube_wire_session_size(&m));
	len = out.len - CUBE_WIRE_HEADER - 4;
	REFUSES(cube_wire_get_session, body, len, &back);
	assert_memory_equal(back.cwd, "/here", 5);
	assert_memory_equal(back.exports, "export A", 8);
	body[len - 1] = 0;
	assert_false(cube_wire_get_session(body, len, &back));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_bad_stays),
		cmocka_unit_test(test_frame_taken_back),
		cmocka_unit_test(test_feed),
		cmocka_unit_test(test_feed_bounds),
		cmocka_unit_test(test_sync),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_join_refusals),
		cmocka_unit_test(test_hello),
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_reports),
		cmocka_unit_test(test_data),
		cmocka_unit_test(test_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
