/* SPDX-License-Identifier: Apache-2.0 */
/* Texts on disk of which the last part is kept: ring, transcript, events, error log. */
#include "ctl/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "ctl/errlog.h"
#include "ctl/event.h"
#include "ctl/linelog.h"
#include "ctl/transcript.h"

struct place {
	char path[64];
	int fd;
};

static int place_setup(void **state)
{
	static struct place p;

	(void)snprintf(p.path, sizeof(p.path), "/tmp/cubefs-ring-XXXXXX");
	if (mkdtemp(p.path) == NULL)
		return -1;
	p.fd = open(p.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = &p;
	return p.fd < 0 ? -1 : 0;
}

static int place_teardown(void **state)
{
	struct place *p = *state;

	close(p->fd);
	return cube_file_remove_tree(AT_FDCWD, p->path);
}

static void ring_open(struct cube_ring *r, const struct place *p, uint64_t limit)
{
	struct cube_err err = {0};

	assert_int_equal(cube_ring_open(r, p->fd, "x", limit, &err), 0);
}

static void ring_is(struct cube_ring *r, uint64_t pos, const char *want)
{
	char got[8192];
	ssize_t n = cube_ring_read(r, &pos, got, sizeof(got));

	assert_int_equal(n, (ssize_t)strlen(want));
	assert_memory_equal(got, want, (size_t)n);
}

/* More rings than open files: each has all of its own, whoever was used before. */
static void test_ring_shares(void **state)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	const struct place *p = *state;
	struct cube_ring rings[CUBE_COUNT(names)];
	struct cube_ring_set set;
	struct cube_err err;

	cube_ring_set_init(&set, 2);
	for (unsigned i = 0; i < CUBE_COUNT(names); i++) {
		assert_int_equal(cube_ring_open(&rings[i], p->fd, names[i], 1 << 20, &err), 0);
		cube_ring_share(&rings[i], &set);
		assert_true(set.n <= 2);
	}
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < CUBE_COUNT(names); i++) {
			assert_int_equal(cube_ring_add(&rings[i], names[i], 1), 0);
			assert_int_equal(cube_ring_add(&rings[i], "\n", 1), 0);
			assert_int_equal(set.n, 2);
		}
	}
	for (unsigned i = 0; i < CUBE_COUNT(names); i++) {
		char want[16];

		(void)snprintf(want, sizeof(want), "%s\n%s\n%s\n", names[i], names[i], names[i]);
		ring_is(&rings[i], 0, want);
		cube_ring_close(&rings[i]);
		cube_ring_close(&rings[i]);
	}
	assert_int_equal(set.n, 0);
}

static void test_ring_persists(void **state)
{
	struct cube_ring r;

	ring_open(&r, *state, 1 << 20);
	ring_is(&r, 0, "");
	assert_int_equal(cube_ring_add(&r, "one\n", 4), 0);
	assert_int_equal(cube_ring_add(&r, "two\n", 4), 0);
	ring_is(&r, 0, "one\ntwo\n");
	ring_is(&r, 4, "two\n");
	cube_ring_close(&r);
	ring_open(&r, *state, 1 << 20);
	ring_is(&r, 0, "one\ntwo\n");
	assert_int_equal(cube_ring_add(&r, "three\n", 6), 0);
	ring_is(&r, 8, "three\n");
	cube_ring_close(&r);
}

static void test_ring_half_a_line(void **state)
{
	struct place *p = *state;
	struct cube_ring r;
	int fd;

	ring_open(&r, p, 1 << 20);
	assert_int_equal(cube_ring_add(&r, "whole\n", 6), 0);
	cube_ring_close(&r);
	fd = openat(p->fd, "x.0", O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, "half", 4), 4);
	close(fd);
	ring_open(&r, p, 1 << 20);
	ring_is(&r, 0, "whole\n");
	assert_int_equal(cube_ring_add(&r, "next\n", 5), 0);
	ring_is(&r, 0, "whole\nnext\n");
	cube_ring_close(&r);
}

/* Far more than the limit: what is kept are whole lines, the last ones, also after a restart, and the disk
 * does not hold what is gone. */
static void test_ring_limit(void **state)
{
	const uint64_t limit = 256 << 10;
	struct cube_ring r;
	struct stat st;
	char line[64];
	uint64_t pos = 0;
	ssize_t n;

	ring_open(&r, *state, limit);
	for (unsigned i = 0; i < 100000; i++) {
		int len = snprintf(line, sizeof(line), "line %020u\n", i);

		assert_int_equal(cube_ring_add(&r, line, (size_t)len), 0);
	}
	for (int again = 0; again < 2; again++) {
		assert_true(r.end - r.first >= limit - 64);
		assert_true(r.end - r.first <= limit + limit / 8 + 64);
		pos = 0;
		n = cube_ring_read(&r, &pos, line, 26);
		assert_int_equal(n, 26);
		assert_memory_equal(line, "line ", 5);
		assert_int_equal(line[25], '\n');
		pos = r.end - 26;
		n = cube_ring_read(&r, &pos, line, sizeof(line));
		assert_memory_equal(line, "line 00000000000000099999\n", (size_t)n);
		assert_int_equal(fstat(r.fd, &st), 0);
		assert_true((uint64_t)st.st_blocks * 512 <= 2 * limit);
		cube_ring_close(&r);
		ring_open(&r, *state, limit);
	}
	cube_ring_close(&r);
}

struct counted {
	struct cube_waiter waiter;
	unsigned wakes;
};

static void count_wake(struct cube_waiter *w)
{
	((struct counted *)w)->wakes++;
}

static void test_ring_wakes(void **state)
{
	struct counted c = {0};
	struct cube_ring r;

	ring_open(&r, *state, 1 << 20);
	cube_waiter_init(&c.waiter, count_wake);
	cube_wait_add(&r.grown, &c.waiter);
	assert_int_equal(cube_ring_add(&r, "a\n", 2), 0);
	assert_int_equal(cube_ring_add(&r, "b\n", 2), 0);
	assert_int_equal(c.wakes, 1);
	cube_wait_add(&r.grown, &c.waiter);
	cube_wait_remove(&c.waiter);
	assert_int_equal(cube_ring_add(&r, "c\n", 2), 0);
	assert_int_equal(c.wakes, 1);
	cube_ring_close(&r);
}

static void transcript_is(struct cube_transcript *t, const char *want)
{
	static char got[1 << 20];
	uint64_t pos = 0;
	ssize_t n = cube_transcript_read(t, &pos, got, sizeof(got));

	assert_int_equal(n, (ssize_t)strlen(want));
	assert_memory_equal(got, want, (size_t)n);
}

#define AT "2026-11-29T19:23:06.120Z "

static void test_transcript(void **state)
{
	struct place *p = *state;
	struct cube_transcript *t = NULL;
	struct cube_err err = {0};
	_Atomic uint64_t now;
	uint64_t then;

	assert_int_equal(cube_clock_parse("2026-11-29T19:23:06.120Z", &then), 0);
	now = then;
	cube_clock_fake(&now);
	assert_int_equal(cube_transcript_open(p->fd, &t, &err), 0);
	cube_transcript_add(t, "life", "running\n", 8, false);
	cube_transcript_add(t, "1 out", "a\nb", 3, false);
	transcript_is(t, AT "life running\n" AT "1 out a\n");
	cube_transcript_add(t, "2 out", "x\n", 2, false);
	cube_transcript_add(t, "1 out", "c\n\nd", 4, false);
	transcript_is(t, AT "life running\n" AT "1 out a\n" AT "2 out x\n" AT "1 out bc\n" AT "1 out \n");
	cube_transcript_add(t, "1 out", "", 0, true);
	cube_transcript_add(t, "3 err", "\xff\x01\xc3\xa4\n", 5, false);
	transcript_is(t, AT "life running\n" AT "1 out a\n" AT "2 out x\n" AT "1 out bc\n" AT "1 out \n" AT
			    "1 out d\n" AT "3 err \\xff\\x01\xc3\xa4\n");
	cube_clock_fake(NULL);
	cube_transcript_close(t);
}

/* A line without end is cut in pieces, none of its bytes is lost. */
static void test_transcript_long_line(void **state)
{
	struct place *p = *state;
	struct cube_transcript *t = NULL;
	static char got[1 << 20];
	struct cube_err err = {0};
	uint64_t pos = 0;
	size_t letters = 0;
	ssize_t n;

	assert_int_equal(cube_transcript_open(p->fd, &t, &err), 0);
	for (unsigned i = 0; i < 1000; i++)
		cube_transcript_add(t, "1 out", "zzzzzzzzzzzzz", 13, false);
	cube_transcript_add(t, "1 out", NULL, 0, true);
	n = cube_transcript_read(t, &pos, got, sizeof(got));
	for (ssize_t i = 0; i < n; i++)
		letters += got[i] == 'z';
	assert_int_equal(letters, 13000);
	assert_int_equal(got[n - 1], '\n');
	cube_transcript_close(t);
}

static unsigned count_lines(struct cube_events *e, char *first, size_t first_size)
{
	uint64_t pos = 0;
	unsigned lines = 0;
	char block[8192];
	ssize_t n;

	while ((n = cube_events_read(e, &pos, block, sizeof(block))) > 0) {
		if (lines == 0)
			(void)snprintf(first, first_size, "%.*s", (int)strcspn(block, "\n"), block);
		for (ssize_t i = 0; i < n; i++)
			lines += block[i] == '\n';
	}
	return lines;
}

static void test_events(void **state)
{
	struct place *p = *state;
	struct cube_events *e = NULL;
	struct cube_err err = {0};
	char first[512];

	assert_int_equal(cube_events_open(p->fd, &e, &err), 0);
	cube_event(e, "dev", "created", "%s", "");
	assert_int_equal(count_lines(e, first, sizeof(first)), 1);
	assert_non_null(strstr(first, "\"sandbox\":\"dev\""));
	assert_non_null(strstr(first, "\"event\":\"created\""));
	assert_null(strstr(first, "detail"));
	for (unsigned i = 1; i < CUBE_EVENTS_KEPT + 5; i++)
		cube_event(e, "dev", "verb", "number %u", i);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(count_lines(e, first, sizeof(first)), CUBE_EVENTS_KEPT);
		assert_non_null(strstr(first, "\"detail\":\"number 5\""));
		cube_events_close(e);
		assert_int_equal(cube_events_open(p->fd, &e, &err), 0);
	}
	cube_events_close(e);
}

static void test_errlog(void **state)
{
	struct cube_errlog *e = cube_errlog_new();
	struct cube_caller by = {.pid = getpid(), .local = true};
	struct cube_buf out = CUBE_BUF(1 << 20);
	struct cube_err err = {0};
	unsigned lines = 0;

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		(void)cube_fail(&err, -EBUSY, "number %u", i);
		cube_errlog_add(e, i % 2 ? &by : NULL, "write ctl: stop\n", &err);
	}
	assert_int_equal(cube_errlog_text(e, &out), 0);
	for (size_t i = 0; i < out.len; i++)
		lines += out.data[i] == '\n';
	assert_int_equal(lines, 64);
	assert_null(strstr(out.data, "number 35\n"));
	assert_non_null(strstr(out.data, " cubefs write ctl: stop: EBUSY: number 36\n"));
	assert_non_null(strstr(out.data, "] write ctl: stop: EBUSY: number 37\n"));
	assert_string_equal(out.data + out.len - strlen("EBUSY: number 99\n"), "EBUSY: number 99\n");
	cube_buf_done(&out);
	cube_errlog_free(e);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, place_setup, place_teardown)

/* ---- logs of lines ---- */

#define LINES_MAX 4096u

static off_t lines_size(const struct place *p)
{
	struct stat st;

	return fstatat(p->fd, "lines", &st, 0) == 0 ? st.st_size : -1;
}

static void lines_outlive(void **state)
{
	struct cube_linelog l, again;
	struct place *p = *state;
	int fd;

	cube_linelog_init(&l, LINES_MAX);
	cube_linelog_load(&l, p->fd, "lines"); /* nothing is there */
	cube_linelog_keep(&l, p->fd, "lines");
	assert_int_equal(lines_size(p), -1);
	cube_linelog_add(&l, "one");
	cube_linelog_add(&l, "two\x01");
	cube_linelog_keep(&l, p->fd, "lines");
	cube_linelog_keep(&l, p->fd, "lines"); /* once */
	assert_int_equal(lines_size(p), l.text.len);
	fd = openat(p->fd, "lines", O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(write(fd, "cut", 3), 3); /* the machine failed in the middle of a line */
	assert_int_equal(close(fd), 0);

	cube_linelog_init(&again, LINES_MAX);
	cube_linelog_load(&again, p->fd, "lines");
	assert_non_null(strstr(cube_buf_str(&again.text), "Z one\n"));
	assert_non_null(strstr(cube_buf_str(&again.text), "Z two\\x01\ncut\n"));
	cube_linelog_done(&l);
	cube_linelog_done(&again);
	assert_int_equal(unlinkat(p->fd, "lines", 0), 0);
}

/* Whole lines, the last ones; neither memory nor file grows. */
static void lines_bounded(void **state)
{
	struct cube_linelog l, again;
	struct place *p = *state;
	char line[64];

	cube_linelog_init(&l, LINES_MAX);
	for (unsigned i = 0; i < 1000; i++) {
		(void)snprintf(line, sizeof(line), "line %u", i);
		cube_linelog_add(&l, line);
		cube_linelog_keep(&l, p->fd, "lines");
		assert_true(lines_size(p) <= (off_t)(2 * LINES_MAX));
		assert_true(l.text.len <= LINES_MAX + 64);
	}
	cube_linelog_init(&again, LINES_MAX);
	cube_linelog_load(&again, p->fd, "lines");
	assert_in_range(again.text.len, LINES_MAX - 64, LINES_MAX);
	assert_memory_equal(again.text.data, l.text.data + (l.text.len - again.text.len), again.text.len);
	assert_memory_equal(again.text.data, "20", 2); /* begins with a time */
	cube_linelog_add(&again, "after");             /* goes on where it was */
	cube_linelog_keep(&again, p->fd, "lines");
	cube_linelog_done(&l);
	cube_linelog_init(&l, LINES_MAX);
	cube_linelog_load(&l, p->fd, "lines");
	assert_non_null(strstr(cube_buf_str(&l.text), "line 999\n"));
	assert_non_null(strstr(cube_buf_str(&l.text), "after\n"));
	cube_linelog_done(&l);
	cube_linelog_done(&again);
	assert_int_equal(unlinkat(p->fd, "lines", 0), 0);
}

/* What the file cannot take is tried again; what is no file is none. */
static void lines_refused(void **state)
{
	struct cube_linelog l;
	struct place *p = *state;

	cube_linelog_init(&l, LINES_MAX);
	assert_int_equal(mkdirat(p->fd, "lines", 0700), 0);
	cube_linelog_load(&l, p->fd, "lines");
	cube_linelog_add(&l, "kept");
	cube_linelog_keep(&l, p->fd, "lines");
	assert_int_equal(unlinkat(p->fd, "lines", AT_REMOVEDIR), 0);
	cube_linelog_keep(&l, p->fd, "lines");
	assert_int_equal(lines_size(p), l.text.len);
	cube_linelog_done(&l);
	assert_int_equal(unlinkat(p->fd, "lines", 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_ring_persists), TEST(test_ring_half_a_line), TEST(test_ring_limit),
		TEST(test_ring_wakes),    TEST(test_transcript),       TEST(test_transcript_long_line),
		TEST(test_ring_shares),   TEST(test_events),           cmocka_unit_test(test_errlog),
		TEST(lines_outlive),      TEST(lines_bounded),         TEST(lines_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
