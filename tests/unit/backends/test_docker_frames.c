/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's framing of a stream, in pieces of every size. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/base/macros.h"
#include "backends/docker/stream.h"

static const unsigned char framed[] = "\1\0\0\0\0\0\0\3abc\2\0\0\0\0\0\0\4oops\1\0\0\0\0\0\0\0"
				      "\1\0\0\0\0\0\1\2";

/* Gives the frames to @f, @step bytes at a time. */
static size_t unframe(struct docker_frames *f, const unsigned char *data, size_t len, size_t step, char *out)
{
	size_t got = 0;

	for (size_t at = 0; at < len;) {
		size_t have = len - at < step ? len - at : step, skip;
		ssize_t n = docker_frames_next(f, data + at, have, &skip);

		assert_true(n >= 0 && skip + (size_t)n <= have && skip + (size_t)n > 0);
		memcpy(out + got, data + at + skip, (size_t)n);
		got += (size_t)n;
		at += skip + (size_t)n;
	}
	return got;
}

static void test_pieces(void **state)
{
	unsigned char long_one[258];
	char out[sizeof(long_one) + sizeof(framed)];

	(void)state;
	memset(long_one, 'x', sizeof(long_one));
	for (size_t step = 1; step < 40; step++) {
		struct docker_frames f = {.n_head = 0};

		assert_int_equal(unframe(&f, framed, sizeof(framed) - 1, step, out), 3);
		assert_memory_equal(out, "abc", 3);
		assert_int_equal(unframe(&f, long_one, sizeof(long_one), step, out), sizeof(long_one));
		assert_memory_equal(out, long_one, sizeof(long_one));
		assert_int_equal(f.left, 0);
	}
}

/* What is no such stream is not taken for one. */
static void test_nonsense(void **state)
{
	static const char *const bad[] = {"HTTP/1.1 ", "\4\0\0\0\0\0\0\1", "\1\1\0\0\0\0\0\1",
					  "\1\0\0\1\0\0\0\1"};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(bad); i++) {
		struct docker_frames f = {.n_head = 0};
		size_t skip;

		assert_int_equal(docker_frames_next(&f, (const unsigned char *)bad[i], 8, &skip), -EPROTO);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
