/* SPDX-License-Identifier: Apache-2.0 */
/* From marks to messages. */
#include "backends/agent/init/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/agent/init/stream.h"

#define REPORT_LAZY  (1 * INIT_MS)
#define REPORT_SOFT  (128u << 10) /* more is not made while so much waits to be sent */
#define REPORT_SMALL 512u         /* more than any message without a body of free length */
#define REFUSED_MAX  64

static struct cube_list urgent = {&urgent, &urgent};
static struct cube_list lazy = {&lazy, &lazy};
static struct cube_list urgent_sessions = {&urgent_sessions, &urgent_sessions};
static struct init_timer lazy_timer;
static bool sync_pending;
static bool left_pending;
static uint64_t left;
static uint64_t refused[REFUSED_MAX];
static unsigned refused_len;

static void report_hurry(struct init_timer *t)
{
	struct cube_list *e;

	(void)t;
	while ((e = cube_list_pop(&lazy)) != NULL)
		cube_list_push(&urgent, e);
}

void init_tell(struct init_job *job, unsigned what)
{
	bool is_lazy = what == INIT_TELL_OUTPUT && !job->ended;

	job->telling |= what;
	if (is_lazy && !cube_list_empty(&job->tell))
		return;
	cube_list_remove(&job->tell);
	cube_list_push(is_lazy ? &lazy : &urgent, &job->tell);
	if (cube_list_empty(&lazy))
		init_timer_stop(&lazy_timer);
	else if (lazy_timer.at == 0)
		init_timer_set(&lazy_timer, init_now() + REPORT_LAZY, report_hurry);
}

void init_tell_session(struct init_session *s)
{
	s->telling = true;
	if (cube_list_empty(&s->tell))
		cube_list_push(&urgent_sessions, &s->tell);
}

void init_tell_nothing(struct init_job *job)
{
	cube_list_remove(&job->tell);
	job->telling = 0;
}

void init_tell_nothing_session(struct init_session *s)
{
	cube_list_remove(&s->tell);
	s->telling = false;
}

void init_tell_refused(uint64_t id)
{
	if (refused_len < REFUSED_MAX)
		refused[refused_len++] = id;
}

void init_tell_left(uint64_t n)
{
	left = n;
	left_pending = true;
}

/* What was forgotten and has ended meanwhile is there as well: its last output has not been told. */
static void report_job_anew(struct init_job *job)
{
	unsigned what = INIT_TELL_STARTED | INIT_TELL_CREDIT | INIT_TELL_OUTPUT;

	if (job->ended && !job->tail)
		what |= INIT_TELL_ENDED;
	if (job->tail && !init_output_open(&job->output))
		what |= INIT_TELL_GONE;
	init_stream_rewind(job);
	init_tell(job, what);
}

static void report_session_anew(struct init_session *s)
{
	s->exports_told = false;
	if (s->cwd != NULL)
		init_tell_session(s);
}

void init_report_all(void)
{
	init_job_each(report_job_anew);
	init_session_each(report_session_anew);
	sync_pending = true;
}

unsigned char *init_outbox_room(struct init_outbox *out, size_t more)
{
	size_t cap = out->cap > 0 ? out->cap : 4096;
	unsigned char *data;

	if (out->off > 0) {
		memmove(out->data, out->data + out->off, out->len - out->off);
		out->len -= out->off;
		out->off = 0;
	}
	while (cap < out->len + more)
		cap *= 2;
	if (cap > out->cap) {
		data = realloc(out->data, cap);
		if (data == NULL)
			return NULL;
		out->data = data;
		out->cap = cap;
	}
	return out->data + out->len;
}

void init_outbox_done(struct init_outbox *out)
{
	free(out->data);
	*out = (struct init_outbox){0};
}

/* A message of at most @max bytes can be written to *w. */
static bool report_open(struct init_outbox *out, struct cube_wire_out *w, size_t max)
{
	unsigned char *room = init_outbox_room(out, max);

	if (room == NULL)
		return false;
	cube_wire_out_init(w, room, max);
	return true;
}

static bool report_session(struct init_outbox *out, struct init_session *s)
{
	struct cube_wire_session m = {.what = s->group == NULL ? CUBE_WIRE_SESSION_FRESH : 0};
	struct cube_wire_out w;

	m.cwd = s->cwd != NULL ? s->cwd : "/";
	m.cwd_len = strlen(m.cwd);
	if (s->exports != NULL && !s->exports_told) {
		m.what |= CUBE_WIRE_SESSION_EXPORTS;
		m.exports = s->exports;
		m.exports_len = s->exports_len;
	}
	if (!report_open(out, &w, cube_wire_session_size(&m)))
		return false;
	(void)cube_wire_put_session(&w, s->id, &m);
	out->len += w.len;
	s->exports_told = true;
	init_tell_nothing_session(s);
	return true;
}

static void report_started(struct cube_wire_out *w, const struct init_job *job)
{
	const struct cube_wire_started m = {
		.pid = (uint32_t)job->pid,
		.tail = job->tail,
		.session = job->session_id,
		.received = job->input.received,
		.taken = job->input.taken,
	};

	(void)cube_wire_put_started(w, job->id, &m);
}

static void report_credit(struct cube_wire_out *w, struct init_job *job)
{
	job->input.told = job->input.taken;
	(void)cube_wire_put_pair(w, CUBE_WIRE_CREDIT, job->id, job->input.received, job->input.taken);
}

static void report_ended(struct cube_wire_out *w, struct init_job *job)
{
	job->end.output = job->output.count;
	job->end.text = job->why != NULL ? job->why : "";
	job->end.text_len = strlen(job->end.text);
	(void)cube_wire_put_ended(w, job->id, &job->end);
}

/* The session's message comes before the end of the command that changed it. */
static bool report_session_of(struct init_outbox *out, const struct init_job *job)
{
	struct init_session *s = job->session_id != 0 ? init_session_find(job->session_id) : NULL;

	return s == NULL || !s->telling || report_session(out, s);
}

static bool report_first(struct init_outbox *out, struct init_job *job)
{
	struct cube_wire_out w;

	if (!report_open(out, &w, REPORT_SMALL))
		return false;
	if ((job->telling & INIT_TELL_STARTED) != 0)
		report_started(&w, job);
	if ((job->telling & INIT_TELL_CREDIT) != 0)
		report_credit(&w, job);
	job->telling &= ~(INIT_TELL_STARTED | INIT_TELL_CREDIT);
	out->len += w.len;
	return true;
}

static bool report_last(struct init_outbox *out, struct init_job *job)
{
	struct cube_wire_out w;

	if ((job->telling & INIT_TELL_ENDED) != 0 && !report_session_of(out, job))
		return false;
	if (!report_open(out, &w, 2 * (size_t)REPORT_SMALL))
		return false;
	if ((job->telling & INIT_TELL_OUTPUT) != 0)
		(void)cube_wire_put_output(&w, job->id, &job->output.count);
	if ((job->telling & INIT_TELL_ENDED) != 0)
		report_ended(&w, job);
	if ((job->telling & INIT_TELL_GONE) != 0)
		(void)cube_wire_put_plain(&w, CUBE_WIRE_GONE, job->id);
	out->len += w.len;
	return true;
}

/* The first in the list. False when memory is out: its marks stay. */
static bool report_next_job(struct init_outbox *out)
{
	struct init_job *job = cube_list_entry(urgent.next, struct init_job, tell);
	bool gone;

	if (!report_first(out, job))
		return false;
	if (job->output.own && !init_stream_pump(out, job)) {
		/* The rest has to wait: for the daemon's ACK, or for its turn. */
		cube_list_remove(&job->tell);
		if (!init_stream_waits(job))
			cube_list_push(&urgent, &job->tell);
		return true;
	}
	if (!report_last(out, job))
		return false;
	cube_list_remove(&job->tell);
	gone = (job->telling & INIT_TELL_GONE) != 0;
	job->telling = 0;
	if (gone)
		init_job_drop(job);
	return true;
}

static void report_refused(struct init_outbox *out)
{
	static const char why[] = "no memory for a job inside the sandbox";
	struct cube_wire_ended m = {.code = 126,
				    .err = -ENOMEM,
				    .wall_ns = init_wall(),
				    .text = why,
				    .text_len = sizeof(why) - 1};
	struct cube_wire_out w;

	while (refused_len > 0 && report_open(out, &w, REPORT_SMALL)) {
		(void)cube_wire_put_ended(&w, refused[--refused_len], &m);
		out->len += w.len;
	}
}

static void report_synced(struct init_outbox *out)
{
	struct cube_wire_out w;

	if (!report_open(out, &w, REPORT_SMALL))
		return;
	(void)cube_wire_put_plain(&w, CUBE_WIRE_SYNCED, 0);
	out->len += w.len;
	sync_pending = false;
}

static void report_left(struct init_outbox *out)
{
	struct cube_wire_out w;

	if (!report_open(out, &w, REPORT_SMALL))
		return;
	(void)cube_wire_put_number(&w, CUBE_WIRE_LEFT, 0, left);
	out->len += w.len;
	left_pending = false;
}

static bool report_room(const struct init_outbox *out)
{
	return out->len - out->off < REPORT_SOFT;
}

void init_report_fill(struct init_outbox *out)
{
	report_refused(out);
	if (sync_pending)
		report_hurry(NULL);
	while (report_room(out) && !cube_list_empty(&urgent)) {
		if (!report_next_job(out))
			return;
	}
	while (report_room(out) && !cube_list_empty(&urgent_sessions)) {
		if (!report_session(out, cube_list_entry(urgent_sessions.next, struct init_session, tell)))
			return;
	}
	if (sync_pending && cube_list_empty(&urgent) && cube_list_empty(&urgent_sessions))
		report_synced(out);
	if (left_pending && !sync_pending)
		report_left(out);
}

void init_report_none(void)
{
	struct cube_list *e;

	report_hurry(NULL);
	init_timer_stop(&lazy_timer);
	refused_len = 0;
	sync_pending = left_pending = false;
	while ((e = cube_list_pop(&urgent)) != NULL)
		cube_list_entry(e, struct init_job, tell)->telling = 0;
	while ((e = cube_list_pop(&urgent_sessions)) != NULL)
		cube_list_entry(e, struct init_session, tell)->telling = false;
}
