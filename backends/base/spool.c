/* SPDX-License-Identifier: Apache-2.0 */
/* The reading side of a spool. Three levels: the order index (which bytes are whose), a stream's true bytes,
 * and the stream as it is seen, with the marker in the place of what the limit dropped.
 *
 * The index comes from inside the sandbox's reach: every number in it is checked before it is used, and a
 * wrong one is -EIO, never a read elsewhere. */
#include "backends/base/spool.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SPOOL_WINDOW 16384 /* bytes of `out` read at once when runs are short */
#define SPOOL_BATCH  64    /* records read at once */

/* ---- the order index ---- */

struct spool_record {
	uint64_t start, before;
	bool err;
};

/* Up to @max records from number @index on; how many, or -errno. Fewer than asked: the end. */
static int order_read(int fd, uint64_t index, struct spool_record *out, unsigned max)
{
	uint64_t raw[SPOOL_BATCH][2];
	ssize_t n;

	do
		n = pread(fd, raw, max * sizeof(raw[0]), (off_t)(index * CUBE_SPOOL_RECORD));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	for (size_t i = 0; i < (size_t)n / CUBE_SPOOL_RECORD; i++) {
		uint64_t start = le64toh(raw[i][0]);

		out[i] = (struct spool_record){.start = start & ~CUBE_SPOOL_STDERR,
					       .before = le64toh(raw[i][1]),
					       .err = (start & CUBE_SPOOL_STDERR) != 0};
		if (out[i].before > out[i].start)
			return -EIO;
	}
	return (int)((size_t)n / CUBE_SPOOL_RECORD);
}

static int order_count(int fd, uint64_t *ret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret = (uint64_t)st.st_size / CUBE_SPOOL_RECORD;
	return 0;
}

/* How many bytes of the stream lie before the record's run. The two streams add up to `start`. */
static uint64_t record_before(const struct spool_record *r, bool err)
{
	return r->err == err ? r->before : r->start - r->before;
}

/* What a search compares: a record's place in the output, or in one of the streams. */
static uint64_t record_place(const struct spool_record *r, enum cube_stream by)
{
	return by == CUBE_STREAM_OUTPUT ? r->start : record_before(r, by == CUBE_STREAM_STDERR);
}

/* The last record at or before @at, by the place @by. -EIO where there is none: the first one stands at 0. */
static int order_search(int fd, enum cube_stream by, uint64_t at, uint64_t *ret_index,
			struct spool_record *ret)
{
	uint64_t low = 0, high = 0; /* the record at low is at or before @at, the one at high is not */
	struct spool_record r = {.start = 0};
	int n = order_count(fd, &high);

	if (n < 0)
		return n;
	n = order_read(fd, 0, ret, 1);
	if (n != 1 || record_place(ret, by) > at)
		return n < 0 ? n : -EIO;
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		n = order_read(fd, middle, &r, 1);
		if (n != 1)
			return n < 0 ? n : -EIO;
		if (record_place(&r, by) > at) {
			high = middle;
		} else {
			low = middle;
			*ret = r;
		}
	}
	*ret_index = low;
	return 0;
}

/* ---- a stream's true bytes ---- */

static bool view_whole(const struct cube_spool_view *v, enum cube_stream stream)
{
	return stream == CUBE_STREAM_OUTPUT || (v->order_fd < 0 && stream == CUBE_STREAM_STDOUT);
}

static uint64_t stream_total(const struct cube_spool_view *v, enum cube_stream stream)
{
	uint64_t err = v->order_fd < 0 ? 0 : v->err_total < v->total ? v->err_total : v->total;

	switch (stream) {
	case CUBE_STREAM_STDOUT:
		return v->total - err;
	case CUBE_STREAM_STDERR:
		return err;
	default:
		return v->total;
	}
}

/* How many bytes of @stream there are in the first @at bytes of the output. */
static int stream_rank(const struct cube_spool_view *v, enum cube_stream stream, uint64_t at, uint64_t *ret)
{
	uint64_t total = stream_total(v, stream), rank, index = 0;
	bool err = stream == CUBE_STREAM_STDERR;
	struct spool_record r = {.start = 0};
	int e;

	if (view_whole(v, stream) || total == 0) {
		*ret = at < total ? at : total;
		return 0;
	}
	e = order_search(v->order_fd, CUBE_STREAM_OUTPUT, at, &index, &r);
	if (e < 0)
		return e;
	rank = record_before(&r, err) + (r.err == err ? at - r.start : 0);
	*ret = rank < total ? rank : total;
	return 0;
}

/* Reads all of @len bytes of the file or less at its end. */
static ssize_t out_read(int fd, char *data, size_t len, uint64_t at)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, data + done, len - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* A walk over the runs of one stream. */
struct spool_walk {
	const struct cube_spool_view *v;
	bool err;
	uint64_t index; /* of records[0] */
	unsigned count, at;
	struct spool_record records[SPOOL_BATCH];
	uint64_t window_at; /* of `out`, what window holds */
	size_t window_len;
	char window[SPOOL_WINDOW];
};

/* Makes records[at] and, where there is one, records[at + 1] those of number @index on. */
static int walk_load(struct spool_walk *w, uint64_t index)
{
	int n = order_read(w->v->order_fd, index, w->records, SPOOL_BATCH);

	if (n < 1)
		return n < 0 ? n : -EIO;
	w->index = index;
	w->count = (unsigned)n;
	w->at = 0;
	return 0;
}

/* Where in `out` byte @pos of the stream is, and how many of its bytes stand there together. Moves on to the
 * run that holds it. */
static int walk_run(struct spool_walk *w, uint64_t pos, uint64_t *ret_out, uint64_t *ret_len)
{
	for (;;) {
		const struct spool_record *r;
		uint64_t end = w->v->total, into;

		if (w->at + 1 >= w->count && w->count == SPOOL_BATCH) {
			int e = walk_load(w, w->index + w->at);

			if (e < 0)
				return e;
		}
		r = &w->records[w->at];
		if (w->at + 1 < w->count && r[1].start < end)
			end = r[1].start;
		if (r->start >= end || record_before(r, w->err) > pos)
			return -EIO;
		into = pos - record_before(r, w->err);
		if (r->err == w->err && into < end - r->start) {
			*ret_out = r->start + into;
			*ret_len = end - *ret_out;
			return 0;
		}
		if (w->at + 1 >= w->count)
			return -EIO;
		w->at++;
	}
}

/* @len bytes of `out` at @at: long ones directly, short ones out of the window, since the next run is near.
 */
static int walk_copy(struct spool_walk *w, char *data, size_t len, uint64_t at)
{
	ssize_t n;

	if (len >= sizeof(w->window)) {
		n = out_read(w->v->out_fd, data, len, at);
		return n == (ssize_t)len ? 0 : n < 0 ? (int)n : -EIO;
	}
	if (at < w->window_at || at + len > w->window_at + w->window_len) {
		uint64_t left = w->v->total - at;

		n = out_read(w->v->out_fd, w->window,
			     left < sizeof(w->window) ? (size_t)left : sizeof(w->window), at);
		if (n < (ssize_t)len)
			return n < 0 ? (int)n : -EIO;
		w->window_at = at;
		w->window_len = (size_t)n;
	}
	memcpy(data, w->window + (at - w->window_at), len);
	return 0;
}

static ssize_t stream_read_runs(const struct cube_spool_view *v, bool err, char *data, size_t len,
				uint64_t pos)
{
	struct spool_walk w = {.v = v, .err = err};
	uint64_t index = 0;
	size_t done = 0;
	int r;

	/* The last record at or before: runs of the other stream stand at the same place as the run behind
	 * them. */
	r = order_search(v->order_fd, err ? CUBE_STREAM_STDERR : CUBE_STREAM_STDOUT, pos, &index,
			 &w.records[0]);
	if (r == 0)
		r = walk_load(&w, index);
	while (r == 0 && done < len) {
		uint64_t at = 0, run = 0;

		r = walk_run(&w, pos + done, &at, &run);
		if (r == 0) {
			size_t n = run < len - done ? (size_t)run : len - done;

			r = walk_copy(&w, data + done, n, at);
			done += r == 0 ? n : 0;
		}
	}
	return r < 0 && done == 0 ? r : (ssize_t)done;
}

/* Bytes of @stream from @pos on, which with @len does not go beyond its end. */
static ssize_t stream_read(const struct cube_spool_view *v, enum cube_stream stream, char *data, size_t len,
			   uint64_t pos)
{
	ssize_t n;

	if (len == 0)
		return 0;
	if (!view_whole(v, stream))
		return stream_read_runs(v, stream == CUBE_STREAM_STDERR, data, len, pos);
	n = out_read(v->out_fd, data, len, pos);
	return n == 0 ? -EIO : n; /* shorter than whoever wrote it said */
}

/* ---- a stream as it is seen ---- */

/* [0, head) marker [resume, total) in the stream's own bytes; head == resume: nothing is missing, no marker.
 */
struct spool_shape {
	uint64_t head, resume, total;
};

static int view_shape(const struct cube_spool_view *v, enum cube_stream stream, struct spool_shape *ret)
{
	struct spool_shape s = {.total = stream_total(v, stream)};
	uint64_t half = v->limit / 2;
	int r;

	s.head = s.resume = s.total;
	if (v->total > v->limit) {
		r = stream_rank(v, stream, half, &s.head);
		if (r == 0)
			r = stream_rank(v, stream, v->total - half, &s.resume);
		if (r < 0)
			return r;
		if (s.resume < s.head)
			return -EIO;
	}
	*ret = s;
	return 0;
}

static uint64_t shape_marker(const struct spool_shape *s)
{
	return s->resume > s->head ? CUBE_SPOOL_MARKER : 0;
}

static void marker_text(uint64_t missing, char out[CUBE_SPOOL_MARKER + 1])
{
	static const char sample[] = "\n[cubefs: 00000000000000000000 bytes are missing at this place]\n";

	_Static_assert(sizeof(sample) == CUBE_SPOOL_MARKER + 1, "the marker has a fixed width");
	(void)snprintf(out, CUBE_SPOOL_MARKER + 1,
		       "\n[cubefs: %020" PRIu64 " bytes are missing at this place]\n", missing);
}

uint64_t cube_spool_size(const struct cube_spool_view *v, enum cube_stream stream)
{
	struct spool_shape s;

	if (view_shape(v, stream, &s) < 0)
		return stream_total(v, stream);
	return s.head + shape_marker(&s) + (s.total - s.resume);
}

/* One piece of the stream as seen: of the head, of the marker or of the tail. */
static ssize_t shape_read(const struct cube_spool_view *v, enum cube_stream stream,
			  const struct spool_shape *s, char *data, size_t len, uint64_t offset)
{
	uint64_t marker = shape_marker(s), left;
	char text[CUBE_SPOOL_MARKER + 1];

	if (offset < s->head) {
		left = s->head - offset;
		return stream_read(v, stream, data, left < len ? (size_t)left : len, offset);
	}
	offset -= s->head;
	if (offset < marker) {
		left = marker - offset;
		marker_text(s->resume - s->head, text);
		len = left < len ? (size_t)left : len;
		memcpy(data, text + offset, len);
		return (ssize_t)len;
	}
	offset -= marker;
	left = s->total - s->resume;
	left = offset < left ? left - offset : 0;
	return stream_read(v, stream, data, left < len ? (size_t)left : len, s->resume + offset);
}

ssize_t cube_spool_pread(const struct cube_spool_view *v, enum cube_stream stream, void *data, size_t len,
			 uint64_t offset)
{
	struct spool_shape s;
	size_t done = 0;
	int r = view_shape(v, stream, &s);

	if (r < 0)
		return r;
	while (done < len) {
		ssize_t n = shape_read(v, stream, &s, (char *)data + done, len - done, offset + done);

		if (n < 0)
			return done > 0 ? (ssize_t)done : n;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

ssize_t cube_spool_follow(const struct cube_spool_view *v, enum cube_stream stream, void *data, size_t len,
			  uint64_t *pos)
{
	char text[CUBE_SPOOL_MARKER + 1];
	struct spool_shape s;
	uint64_t end;
	ssize_t n;
	int r;

	if (len < CUBE_SPOOL_MARKER)
		return -EINVAL;
	r = view_shape(v, stream, &s);
	if (r < 0)
		return r;
	if (*pos >= s.head && *pos < s.resume) {
		marker_text(s.resume - *pos, text);
		memcpy(data, text, CUBE_SPOOL_MARKER);
		*pos = s.resume;
		return CUBE_SPOOL_MARKER;
	}
	end = *pos < s.head ? s.head : s.total;
	if (*pos >= end)
		return 0;
	n = stream_read(v, stream, data, end - *pos < len ? (size_t)(end - *pos) : len, *pos);
	if (n > 0)
		*pos += (uint64_t)n;
	return n;
}

uint64_t cube_spool_dropped(const struct cube_spool_view *v)
{
	return v->total > v->limit ? v->total - 2 * (v->limit / 2) : 0;
}
