/* SPDX-License-Identifier: Apache-2.0 */
/* DATA from the agent's own spool. */
#include "backends/agent/init/stream.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "backends/agent/init/report.h"
#include "backends/base/spool.h"

#define STREAM_ROOM (256u << 10) /* of unsent bytes; other messages must get through as well */
#define STREAM_FREE ((uint64_t)1 << 20)

struct stream_run {
	bool err;
	uint64_t start, before;
};

/* Record @index of the index. False when there is none. */
static bool stream_record(const struct init_job *job, uint64_t index, struct stream_run *ret)
{
	uint64_t raw[2];

	if (pread(job->output.order_fd, raw, sizeof(raw), (off_t)(index * CUBE_SPOOL_RECORD)) !=
	    (ssize_t)sizeof(raw))
		return false;
	ret->start = le64toh(raw[0]) & ~CUBE_SPOOL_STDERR;
	ret->err = (le64toh(raw[0]) & CUBE_SPOOL_STDERR) != 0;
	ret->before = le64toh(raw[1]);
	return true;
}

/* Whose the byte at `sent` is, and where its run ends. */
static bool stream_find(struct init_job *job, struct stream_run *run, uint64_t *ret_end)
{
	struct stream_run next;

	*run = (struct stream_run){0};
	*ret_end = job->output.count.total;
	if (job->output.order_fd < 0)
		return true;
	if (!stream_record(job, job->run, run))
		return false;
	while (stream_record(job, job->run + 1, &next)) {
		if (next.start > job->sent) {
			if (next.start < *ret_end)
				*ret_end = next.start;
			break;
		}
		job->run++;
		*run = next;
	}
	return true;
}

/* What the limit took away from the spool before it could be sent is left out. */
static void stream_skip(struct init_job *job)
{
	uint64_t hole_end = job->output.punched;

	if (job->sent >= job->output.limit / 2 && job->sent < hole_end)
		job->sent = job->acked = hole_end;
}

/* The disk does not give back what was written to it: the rest is lost, the job goes on. */
static bool stream_damaged(struct init_job *job)
{
	job->output.count.lost += job->output.count.total - job->sent;
	job->sent = job->acked = job->output.count.total;
	return false;
}

/* One DATA. False when nothing was added. */
static bool stream_chunk(struct init_outbox *out, struct init_job *job)
{
	unsigned char bytes[CUBE_WIRE_INPUT_MAX];
	struct cube_wire_out w;
	struct stream_run run;
	struct cube_wire_data m = {.offset = job->sent, .bytes = bytes};
	unsigned char *room;
	uint64_t end;
	ssize_t n;

	if (!stream_find(job, &run, &end))
		return stream_damaged(job);
	m.len = end - job->sent < sizeof(bytes) ? (size_t)(end - job->sent) : sizeof(bytes);
	n = pread(job->output.out_fd, bytes, m.len, (off_t)job->sent);
	if (n <= 0)
		return stream_damaged(job);
	room = init_outbox_room(out, (size_t)n + 64);
	if (room == NULL)
		return false;
	m.len = (size_t)n;
	m.err = run.err;
	m.before = run.before + (job->sent - run.start);
	cube_wire_out_init(&w, room, (size_t)n + 64);
	(void)cube_wire_put_data(&w, job->id, &m);
	out->len += w.len;
	job->sent += (uint64_t)n;
	return true;
}

bool init_stream_pump(struct init_outbox *out, struct init_job *job)
{
	stream_skip(job);
	while (job->sent < job->output.count.total && job->sent - job->acked < CUBE_WIRE_DATA_WINDOW &&
	       out->len - out->off < STREAM_ROOM) {
		if (!stream_chunk(out, job))
			break;
	}
	return job->sent == job->output.count.total;
}

bool init_stream_waits(const struct init_job *job)
{
	return job->output.own && job->sent < job->output.count.total &&
	       job->sent - job->acked >= CUBE_WIRE_DATA_WINDOW;
}

void init_stream_ack(struct init_job *job, uint64_t upto)
{
	if (!job->output.own || upto <= job->acked || upto > job->sent)
		return;
	job->acked = upto;
	if (job->acked - job->freed >= STREAM_FREE) {
		(void)fallocate(job->output.out_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)job->freed, (off_t)(job->acked - job->freed));
		job->freed = job->acked;
	}
	if (job->telling != 0 && cube_list_empty(&job->tell))
		init_tell(job, job->telling);
}

void init_stream_resume(struct init_job *job, uint64_t from)
{
	if (!job->output.own || from < job->acked || from > job->output.count.total)
		return;
	job->acked = job->sent = from;
	job->run = 0;
	init_tell(job, job->telling | INIT_TELL_OUTPUT);
}

void init_stream_rewind(struct init_job *job)
{
	job->sent = job->acked;
	job->run = 0;
}
