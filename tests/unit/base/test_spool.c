/* SPDX-License-Identifier: Apache-2.0 */
/* Spools: both streams of random output compared with a model, at every limit, read in every way; the hole;
 * an index that lies. */
#include "tests/unit/base/unit.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/buf.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/base/spool.h"

/* A spool and, beside it, whose every byte is. */
struct model {
	struct cube_spool_view v;
	char *bytes, *err; /* of the output; err[i]: byte i is stderr */
	size_t cap;
	int last;
};

static void model_init(struct model *m, struct place *p, bool merged)
{
	const int flags = O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC;

	*m = (struct model){.last = -1, .cap = 8 << 20};
	m->v.out_fd = openat(p->fd, "out", flags, 0600);
	m->v.order_fd = merged ? -1 : openat(p->fd, "order", flags, 0600);
	m->v.limit = UINT64_MAX;
	m->bytes = cube_calloc(1, m->cap);
	m->err = cube_calloc(1, m->cap);
	assert_true(m->v.out_fd >= 0 && m->bytes != NULL && m->err != NULL);
}

static void model_done(struct model *m)
{
	(void)close(m->v.out_fd);
	if (m->v.order_fd >= 0)
		(void)close(m->v.order_fd);
	cube_free(m->bytes);
	cube_free(m->err);
}

/* What the agent does with output that came. */
static void model_write(struct model *m, int err, const char *data, size_t len)
{
	struct cube_spool_view *v = &m->v;

	assert_true(v->total + len <= m->cap);
	if (v->order_fd >= 0)
		assert_int_equal(cube_spool_note(v->order_fd, &m->last, err, v->total,
						 err ? v->err_total : v->total - v->err_total),
				 0);
	assert_int_equal(pwrite(v->out_fd, data, len, (off_t)v->total), len);
	memcpy(m->bytes + v->total, data, len);
	memset(m->err + v->total, err, len);
	v->total += len;
	if (v->order_fd >= 0 && err)
		v->err_total += len;
}

static bool model_has(const struct model *m, enum cube_stream s, size_t i)
{
	return s == CUBE_STREAM_OUTPUT || (s == CUBE_STREAM_STDERR) == (m->v.order_fd >= 0 && m->err[i]);
}

static void marker_for(uint64_t missing, struct cube_buf *out)
{
	size_t before = out->len;

	(void)cube_buf_printf(out, "\n[cubefs: %020" PRIu64 " bytes are missing at this place]\n", missing);
	assert_int_equal(out->len - before, CUBE_SPOOL_MARKER);
}

/* The stream as it must be seen, told from the model alone. */
static void model_expect(const struct model *m, enum cube_stream s, struct cube_buf *out)
{
	uint64_t half = m->v.limit / 2, missing = 0;
	bool cut = m->v.total > m->v.limit;

	for (size_t i = 0; i < m->v.total; i++) {
		bool dropped = cut && i >= half && i < m->v.total - half;

		if (model_has(m, s, i) && dropped)
			missing++;
		if (missing > 0 && (!dropped || i + 1 == m->v.total)) {
			marker_for(missing, out);
			missing = 0;
		}
		if (model_has(m, s, i) && !dropped)
			(void)cube_buf_addc(out, m->bytes[i]);
	}
	assert_int_equal(out->error, 0);
}

/* Reads all of the stream in pieces of @piece bytes. */
static void read_in_pieces(const struct model *m, enum cube_stream s, size_t piece, struct cube_buf *out)
{
	char *data = cube_malloc(piece);
	ssize_t n;

	while ((n = cube_spool_pread(&m->v, s, data, piece, out->len)) > 0)
		(void)cube_buf_add(out, data, (size_t)n);
	assert_int_equal(n, 0);
	cube_free(data);
}

static void check_stream(const struct model *m, enum cube_stream s)
{
	static const size_t pieces[] = {1, 7, 64, 1000, 100000};
	struct cube_buf want = CUBE_BUF(m->cap), got = CUBE_BUF(m->cap);

	model_expect(m, s, &want);
	assert_true(cube_spool_size(&m->v, s) == want.len);
	for (size_t i = want.len > 5000 ? 3 : 0; i < CUBE_COUNT(pieces); i++) {
		cube_buf_reset(&got);
		read_in_pieces(m, s, pieces[i], &got);
		assert_int_equal(got.len, want.len);
		if (want.len > 0)
			assert_memory_equal(got.data, want.data, want.len);
	}
	cube_buf_done(&want);
	cube_buf_done(&got);
}

static void check_all(const struct model *m)
{
	check_stream(m, CUBE_STREAM_OUTPUT);
	check_stream(m, CUBE_STREAM_STDOUT);
	check_stream(m, CUBE_STREAM_STDERR);
}

/* @runs pieces of random length and stream. */
static void write_random(struct model *m, unsigned *seed, int runs, int longest)
{
	char data[20000];

	for (int i = 0; i < runs; i++) {
		size_t len = (size_t)(rand_r(seed) % longest) + 1;

		for (size_t k = 0; k < len; k++)
			data[k] = (char)('a' + rand_r(seed) % 26);
		model_write(m, rand_r(seed) % 2, data, len);
	}
}

static void test_empty(void **state)
{
	struct model m;
	char c;

	model_init(&m, *state, false);
	check_all(&m);
	assert_int_equal(cube_spool_pread(&m.v, CUBE_STREAM_STDERR, &c, 1, 100), 0);
	assert_true(cube_spool_dropped(&m.v) == 0);
	m.v.limit = 0;
	check_all(&m);
	model_done(&m);
}

static void test_small(void **state)
{
	struct model m;
	char data[100];

	model_init(&m, *state, false);
	model_write(&m, 0, "out1 ", 5);
	model_write(&m, 0, "out2 ", 5);
	model_write(&m, 1, "err1 ", 5);
	model_write(&m, 0, "out3", 4);
	assert_int_equal(cube_spool_pread(&m.v, CUBE_STREAM_OUTPUT, data, 100, 0), 19);
	assert_memory_equal(data, "out1 out2 err1 out3", 19);
	assert_int_equal(cube_spool_pread(&m.v, CUBE_STREAM_STDOUT, data, 100, 3), 11);
	assert_memory_equal(data, "1 out2 out3", 11);
	assert_int_equal(cube_spool_pread(&m.v, CUBE_STREAM_STDERR, data, 3, 1), 3);
	assert_memory_equal(data, "rr1", 3);
	check_all(&m);
	model_done(&m);
}

static void test_format_of_the_index(void **state)
{
	struct model m;
	uint64_t records[8];

	model_init(&m, *state, false);
	model_write(&m, 0, "12345", 5);
	model_write(&m, 0, "67", 2); /* the same run */
	model_write(&m, 1, "abc", 3);
	model_write(&m, 0, "8", 1);
	assert_int_equal(pread(m.v.order_fd, records, sizeof(records), 0), 3 * CUBE_SPOOL_RECORD);
	assert_true(records[0] == 0 && records[1] == 0);
	assert_true(records[2] == htole64(7 | CUBE_SPOOL_STDERR) && records[3] == 0);
	assert_true(records[4] == htole64(10) && records[5] == htole64(7));
	model_done(&m);
}

/* Every limit from nothing to more than there is. */
static void test_every_limit(void **state)
{
	unsigned seed = 7;
	struct model m;

	model_init(&m, *state, false);
	write_random(&m, &seed, 20, 12);
	for (m.v.limit = 0; m.v.limit <= m.v.total + 2; m.v.limit++) {
		uint64_t kept = 2 * (m.v.limit / 2);

		assert_true(cube_spool_dropped(&m.v) == (m.v.total > m.v.limit ? m.v.total - kept : 0));
		check_all(&m);
	}
	model_done(&m);
}

static void test_merged(void **state)
{
	unsigned seed = 8;
	struct model m;

	model_init(&m, *state, true);
	write_random(&m, &seed, 10, 100);
	check_all(&m);
	m.v.limit = m.v.total / 2;
	check_all(&m);
	assert_true(cube_spool_size(&m.v, CUBE_STREAM_STDERR) == 0);
	model_done(&m);
}

static void test_many_runs(void **state)
{
	static const struct {
		int runs, longest;
	} shapes[] = {{3000, 1}, {1000, 30}, {60, 20000}, {64, 1}, {65, 2}};
	unsigned seed = 9;

	for (size_t i = 0; i < CUBE_COUNT(shapes); i++) {
		struct model m;

		model_init(&m, *state, false);
		write_random(&m, &seed, shapes[i].runs, shapes[i].longest);
		check_all(&m);
		m.v.limit = m.v.total / 3;
		check_all(&m);
		model_done(&m);
	}
}

/* A stream without a byte in the hole has no marker; one with all of its bytes there is nothing else. */
static void test_one_sided(void **state)
{
	struct cube_buf want = CUBE_BUF(100);
	char data[200];
	struct model m;

	model_init(&m, *state, false);
	model_write(&m, 0, "0123456789", 10);
	model_write(&m, 1, "eeeeeeeeee", 10);
	model_write(&m, 0, "abcdefghij", 10);
	m.v.limit = 20;
	assert_int_equal(cube_spool_pread(&m.v, CUBE_STREAM_STDOUT, data, 200, 0), 20);
	assert_memory_equal(data, "0123456789abcdefghij", 20);
	assert_int_equal(cube_spool_pread(&m.v, CUBE_STREAM_STDERR, data, 200, 0), CUBE_SPOOL_MARKER);
	marker_for(10, &want);
	assert_memory_equal(data, want.data, CUBE_SPOOL_MARKER);
	check_all(&m);
	cube_buf_done(&want);
	model_done(&m);
}

/* An old view of files that have grown since. */
static void test_view_of_a_moment(void **state)
{
	struct model m, then;
	unsigned seed = 10;

	model_init(&m, *state, false);
	write_random(&m, &seed, 30, 20);
	then = m;
	write_random(&m, &seed, 30, 20);
	check_all(&then);
	then.v.limit = then.v.total / 2;
	check_all(&then);
	model_done(&m);
}

static void test_follow(void **state)
{
	static const enum cube_stream streams[] = {CUBE_STREAM_OUTPUT, CUBE_STREAM_STDOUT,
						   CUBE_STREAM_STDERR};
	unsigned seed = 11;
	struct model m;
	struct cube_buf got[3];
	uint64_t pos[3] = {0};
	char data[CUBE_SPOOL_MARKER + 3];

	model_init(&m, *state, false);
	for (size_t s = 0; s < 3; s++)
		cube_buf_init(&got[s], m.cap);
	for (int round = 0; round < 200; round++) {
		write_random(&m, &seed, 3, 50);
		m.v.limit = 400; /* these readers never lag behind that */
		for (size_t s = 0; s < 3; s++) {
			ssize_t n;

			while ((n = cube_spool_follow(&m.v, streams[s], data, sizeof(data), &pos[s])) > 0)
				(void)cube_buf_add(&got[s], data, (size_t)n);
			assert_int_equal(n, 0);
		}
	}
	m.v.limit = UINT64_MAX;
	for (size_t s = 0; s < 3; s++) {
		struct cube_buf want = CUBE_BUF(m.cap);

		model_expect(&m, streams[s], &want); /* all of it, without a marker */
		assert_int_equal(got[s].len, want.len);
		assert_memory_equal(got[s].data, want.data, want.len);
		cube_buf_done(&want);
		cube_buf_done(&got[s]);
	}
	model_done(&m);
}

static void test_follow_lagging(void **state)
{
	struct cube_buf want = CUBE_BUF(1000), got = CUBE_BUF(1000);
	char data[200];
	uint64_t pos = 0;
	struct model m;

	model_init(&m, *state, true);
	m.v.limit = 10;
	model_write(&m, 0, "0123456", 7);
	assert_int_equal(cube_spool_follow(&m.v, CUBE_STREAM_OUTPUT, data, CUBE_SPOOL_MARKER - 1, &pos),
			 -EINVAL);
	assert_int_equal(cube_spool_follow(&m.v, CUBE_STREAM_OUTPUT, data, 200, &pos), 7);
	(void)cube_buf_add(&got, data, 7);
	model_write(&m, 0, "789abcdefghijklmno", 18);
	for (ssize_t n; (n = cube_spool_follow(&m.v, CUBE_STREAM_OUTPUT, data, 200, &pos)) > 0;)
		(void)cube_buf_add(&got, data, (size_t)n);
	(void)cube_buf_adds(&want, "0123456");
	marker_for(25 - 5 - 7, &want); /* from where it was to the tail */
	(void)cube_buf_adds(&want, "klmno");
	assert_string_equal(cube_buf_str(&got), cube_buf_str(&want));
	assert_true(pos == 25);
	/* one that comes late gets the head, the marker and the tail: what a plain reader sees */
	cube_buf_reset(&got);
	cube_buf_reset(&want);
	pos = 0;
	for (ssize_t n; (n = cube_spool_follow(&m.v, CUBE_STREAM_OUTPUT, data, 200, &pos)) > 0;)
		(void)cube_buf_add(&got, data, (size_t)n);
	model_expect(&m, CUBE_STREAM_OUTPUT, &want);
	assert_string_equal(cube_buf_str(&got), cube_buf_str(&want));
	pos = 1000; /* beyond the end */
	assert_int_equal(cube_spool_follow(&m.v, CUBE_STREAM_OUTPUT, data, 200, &pos), 0);
	cube_buf_done(&want);
	cube_buf_done(&got);
	model_done(&m);
}

/* ---- the hole ---- */

#define MIB (UINT64_C(1) << 20)

static uint64_t blocks(const struct model *m)
{
	struct stat st;

	assert_int_equal(fstat(m->v.out_fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static void write_mib(struct model *m, unsigned count)
{
	char *data = cube_malloc(MIB);

	for (size_t i = 0; i < MIB; i++)
		data[i] = (char)('A' + i % 23);
	while (count-- > 0)
		model_write(m, 0, data, MIB);
	cube_free(data);
}

static void test_punch(void **state)
{
	uint64_t punched = 0;
	struct model m;

	model_init(&m, *state, true);
	m.v.limit = MIB + 3;
	write_mib(&m, 7);
	cube_spool_punch(m.v.out_fd, m.v.total, m.v.limit, UINT64_MAX, &punched);
	/* [half, total - half - the slack), whole blocks of 64 KiB */
	assert_true(punched == (7 * MIB - MIB / 2 - 1 - MIB) / 65536 * 65536);
	check_all(&m);            /* nothing of what is shown was lost */
	if (blocks(&m) < 7 * MIB) /* a file system with holes */
		assert_true(blocks(&m) <= 7 * MIB - (punched - MIB / 2 - 65536));
	model_done(&m);
}

static void test_punch_is_lazy(void **state)
{
	uint64_t punched = 0;
	struct model m;

	model_init(&m, *state, true);
	m.v.limit = 2 * MIB;
	cube_spool_punch(m.v.out_fd, 2 * MIB, m.v.limit, UINT64_MAX, &punched); /* at the limit */
	assert_true(punched == 0);
	cube_spool_punch(m.v.out_fd, 4 * MIB - 1, m.v.limit, UINT64_MAX,
			 &punched); /* a byte less than is worth it */
	assert_true(punched == 0);
	cube_spool_punch(m.v.out_fd, 4 * MIB, m.v.limit, UINT64_MAX, &punched);
	assert_true(punched == 2 * MIB);
	cube_spool_punch(m.v.out_fd, 4 * MIB + MIB / 2, m.v.limit, UINT64_MAX, &punched); /* not yet again */
	assert_true(punched == 2 * MIB);
	cube_spool_punch(m.v.out_fd, 5 * MIB, m.v.limit, UINT64_MAX, &punched);
	assert_true(punched == 3 * MIB);
	model_done(&m);
}

static void test_punch_keeps(void **state)
{
	uint64_t punched = 0;
	struct model m;

	model_init(&m, *state, true);
	m.v.limit = 0;
	cube_spool_punch(m.v.out_fd, 8 * MIB, 0, 3 * MIB + 5, &punched); /* for a reader of an old view */
	assert_true(punched == 3 * MIB);
	cube_spool_punch(m.v.out_fd, 8 * MIB, 0, 0, &punched);
	assert_true(punched == 3 * MIB);
	cube_spool_punch(m.v.out_fd, 8 * MIB, 0, UINT64_MAX, &punched);
	assert_true(punched == 7 * MIB);
	cube_spool_punch(m.v.out_fd, UINT64_MAX, UINT64_MAX, UINT64_MAX, &punched); /* no limit */
	cube_spool_punch(m.v.out_fd, 100, 10, UINT64_MAX, &punched);                /* less than the slack */
	assert_true(punched == 7 * MIB);
	model_done(&m);
}

static void test_punch_not_possible(void **state)
{
	uint64_t punched = 0;
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	cube_spool_punch(fds[1], 8 * MIB, 0, UINT64_MAX, &punched); /* silent */
	assert_true(punched == 7 * MIB);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

/* ---- an index that lies ---- */

static void test_note_after_a_torn_record(void **state)
{
	struct model m;

	model_init(&m, *state, false);
	model_write(&m, 0, "out", 3);
	assert_int_equal(pwrite(m.v.order_fd, "torn", 4, CUBE_SPOOL_RECORD), 4);
	model_write(&m, 1, "err", 3);
	check_all(&m);
	model_done(&m);
}

static void test_note_fails(void **state)
{
	cube_auto_fd full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	int last = -1;

	(void)state;
	assert_int_equal(cube_spool_note(full, &last, 1, 0, 0), -ENOSPC);
	assert_int_equal(last, -1);
	assert_int_equal(cube_spool_note(-1, &last, 1, 0, 0), -EBADF);
}

/* Numbers that make no sense: an error or fewer bytes, but never a read that the sanitizers see, and an end.
 */
static void test_garbage(void **state)
{
	unsigned seed = 12;
	char data[5000];

	for (int round = 0; round < 300; round++) {
		struct model m;

		model_init(&m, *state, false);
		write_random(&m, &seed, 20, 50);
		for (int i = 0; i < 4; i++) {
			uint64_t wrong = (uint64_t)rand_r(&seed) << (rand_r(&seed) % 40);

			if (rand_r(&seed) % 3 == 0)
				wrong = htole64((uint64_t)(rand_r(&seed) % 600) |
						(rand_r(&seed) % 2 ? CUBE_SPOOL_STDERR : 0));
			assert_int_equal(pwrite(m.v.order_fd, &wrong, 8, rand_r(&seed) % 40 * 8), 8);
		}
		m.v.limit = (uint64_t)(rand_r(&seed) % 1000);
		for (int s = CUBE_STREAM_STDOUT; s <= CUBE_STREAM_STDERR; s++) {
			uint64_t pos = 0, offset = (uint64_t)(rand_r(&seed) % 600);
			ssize_t n = cube_spool_pread(&m.v, (enum cube_stream)s, data, sizeof(data), offset);

			assert_true(n >= 0 || n == -EIO);
			while ((n = cube_spool_follow(&m.v, (enum cube_stream)s, data, 100, &pos)) > 0)
				;
			assert_true(n == 0 || n == -EIO);
			assert_true(cube_spool_size(&m.v, (enum cube_stream)s) <=
				    m.v.total + CUBE_SPOOL_MARKER);
		}
		model_done(&m);
	}
}

static void test_missing(void **state)
{
	struct model m;
	char data[10];

	model_init(&m, *state, false);
	model_write(&m, 0, "12345", 5);
	assert_int_equal(ftruncate(m.v.out_fd, 2), 0);
	assert_int_equal(cube_spool_pread(&m.v, CUBE_STREAM_OUTPUT, data, 10, 0), 2);
	assert_int_equal(cube_spool_pread(&m.v, CUBE_STREAM_OUTPUT, data, 10, 2), -EIO);
	assert_int_equal(ftruncate(m.v.order_fd, 8), 0);
	assert_int_equal(cube_spool_pread(&m.v, CUBE_STREAM_STDOUT, data, 10, 0), -EIO);
	assert_true(cube_spool_size(&m.v, CUBE_STREAM_STDOUT) == 5);
	m.v.limit = 2;
	assert_int_equal(cube_spool_pread(&m.v, CUBE_STREAM_STDOUT, data, 10, 0), -EIO);
	assert_true(cube_spool_size(&m.v, CUBE_STREAM_STDOUT) == 5);
	m.v.err_total = 99; /* more than there is in all */
	assert_true(cube_spool_size(&m.v, CUBE_STREAM_STDERR) <= 5);
	model_done(&m);
}

#define IN_PLACE(fn) cmocka_unit_test_setup_teardown(fn, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(test_empty),
		IN_PLACE(test_small),
		IN_PLACE(test_format_of_the_index),
		IN_PLACE(test_every_limit),
		IN_PLACE(test_merged),
		IN_PLACE(test_many_runs),
		IN_PLACE(test_one_sided),
		IN_PLACE(test_view_of_a_moment),
		IN_PLACE(test_follow),
		IN_PLACE(test_follow_lagging),
		IN_PLACE(test_punch),
		IN_PLACE(test_punch_is_lazy),
		IN_PLACE(test_punch_keeps),
		IN_PLACE(test_punch_not_possible),
		IN_PLACE(test_note_after_a_torn_record),
		IN_PLACE(test_note_fails),
		IN_PLACE(test_garbage),
		IN_PLACE(test_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
