/* SPDX-License-Identifier: Apache-2.0 */
/* stdin: empty, fed, slow, large, and its end. */
#include <string.h>

#include "backends/base/alloc.h"
#include "tests/conformance/conformance.h"

static void empty(struct subject *s)
{
	struct bed b = bed_open(s);

	expect_output(&b, 0, "cat; echo done", "done\n");
	bed_close(&b);
}

static void fed(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r = cat_start(&b);

	assert_int_equal(cube_link_input(b.ear->link, r.start.job, "one\n", 4), 4);
	ear_wait_output(b.ear, r.start.job, 4); /* it comes out while stdin is open */
	assert_int_equal(cube_link_input(b.ear->link, r.start.job, "two", 3), 3);
	cube_link_eof(b.ear->link, r.start.job);
	run_wait(&r);
	assert_string_equal(r.out, "one\ntwo");
	assert_int_equal(r.ended->end.code, 0);
	run_done(&r);
	bed_close(&b);
}

static void closed_at_once(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r = cat_start(&b);

	cube_link_eof(b.ear->link, r.start.job);
	run_wait(&r);
	assert_string_equal(r.all, "");
	run_done(&r);
	bed_close(&b);
}

/* As much as it takes, then wait for room: nothing is lost and nothing comes twice. */
static void feed(struct bed *b, uint64_t job, const char *data, size_t len)
{
	const struct heard *space = NULL;

	for (size_t at = 0; at < len;) {
		ptrdiff_t n = cube_link_input(b->ear->link, job, data + at, len - at);

		assert_true(n >= 0 && (size_t)n <= len - at);
		at += (size_t)n;
		if (at < len)
			space = ear_wait_after(b->ear, space, HEARD_INPUT, job);
	}
}

static void large(struct subject *s)
{
	const size_t len = 2 << 20;
	struct bed b = bed_open(s);
	struct run r = cat_start(&b);
	char *data = cube_malloc(len);

	for (size_t i = 0; i < len; i++)
		data[i] = (char)('a' + i * 7 % 26);
	feed(&b, r.start.job, data, len);
	cube_link_eof(b.ear->link, r.start.job);
	run_wait(&r);
	assert_int_equal(r.ended->end.total, len);
	assert_memory_equal(r.out, data, len);
	cube_free(data);
	run_done(&r);
	bed_close(&b);
}

/* Nobody reads: the window fills, and that is all that is kept. */
static void unread(struct subject *s)
{
	const size_t len = 16 << 20;
	struct bed b = bed_open(s);
	char *data = cube_calloc(1, len);
	size_t taken = 0;
	struct run r;

	run_init(&r, b.ear, s->dialect->hang);
	r.start.in = CUBE_STDIN_PIPE;
	run_start(&r);
	(void)ear_wait(b.ear, HEARD_STARTED, r.start.job);
	for (;;) {
		ptrdiff_t n = cube_link_input(b.ear->link, r.start.job, data, len);

		assert_true(n >= 0);
		taken += (size_t)n;
		if (n == 0 && ear_listen(b.ear, HEARD_INPUT, r.start.job, 300) == NULL)
			break;
		assert_true(taken < len);
		if (n == 0)
			break;
	}
	cube_link_kill(b.ear->link, r.start.job, 9);
	run_wait(&r);
	run_done(&r);
	cube_free(data);
	bed_close(&b);
}

static void after_the_end(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r;

	run_init(&r, b.ear, "true");
	r.start.in = CUBE_STDIN_PIPE;
	run_start(&r);
	run_wait(&r);
	assert_int_equal(cube_link_input(b.ear->link, r.start.job, "x", 1), 0);
	assert_int_equal(cube_link_input(b.ear->link, 99999, "x", 1), 0);
	cube_link_eof(b.ear->link, r.start.job);
	cube_link_eof(b.ear->link, 99999);
	run_done(&r);
	cube_free(run_text(b.ear, "true"));
	bed_close(&b);
}

const struct check checks_input[] = {
	{"no input", CUBE_CAP_EXEC, 0, empty},
	{"input, bit by bit", CUBE_CAP_EXEC, 0, fed},
	{"input that ends at once", CUBE_CAP_EXEC, 0, closed_at_once},
	{"input larger than the window", CUBE_CAP_EXEC, 0, large},
	{"input that nobody reads", CUBE_CAP_EXEC, 0, unread},
	{"input for what has ended", CUBE_CAP_EXEC, 0, after_the_end},
	{.name = NULL},
};
