/* SPDX-License-Identifier: Apache-2.0 */
/* What a link has to tell: queued where it happens, delivered by the pump.
 *
 * An event is a copy, so that what it speaks of may be gone when it is delivered. Where memory for one
 * is out the connection breaks: its handler finds everything again over the next one. */
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/mem/mem_priv.h"

enum event_kind {
	EVENT_UP,
	EVENT_SYNCED,
	EVENT_STARTED,
	EVENT_OUTPUT,
	EVENT_INPUT,
	EVENT_SESSION,
	EVENT_ENDED,
	EVENT_LEFT,
};

struct mem_event {
	struct cube_list link;
	enum event_kind kind;
	uint64_t job; /* or the boot, or a number of processes */
	int pid;
	struct cube_end_record end; /* also the totals of an output, of an input */
	struct cube_err why;
	struct cube_link_session session;
	char *cwd, *exports;
};

static void event_free(struct mem_event *e)
{
	cube_list_remove(&e->link);
	cube_free(e->cwd);
	cube_free(e->exports);
	cube_free(e);
}

void mem_events_drop(struct mem_link *l)
{
	cube_list_each (i, &l->events)
		event_free(cube_list_entry(i, struct mem_event, link));
	cube_list_remove(&l->ready);
}

static void link_ready(struct mem_link *l)
{
	if (cube_list_empty(&l->ready))
		cube_list_push(&l->mem->ready, &l->ready);
	mem_kick(l->mem);
}

/* A new event at the end of the queue of @b's connection; NULL: there is none. */
static struct mem_event *event_add(struct mem_box *b, enum event_kind kind, uint64_t job)
{
	struct mem_event *e;

	if (b->link == NULL)
		return NULL;
	e = cube_calloc(1, sizeof(*e));
	if (e == NULL) {
		mem_link_break(b, -ENOMEM, "out of memory for what happens in the sandbox");
		return NULL;
	}
	e->kind = kind;
	e->job = job;
	cube_list_push(&b->link->events, &e->link);
	link_ready(b->link);
	return e;
}

void mem_tell_up(struct mem_box *b)
{
	(void)event_add(b, EVENT_UP, b->boot);
}

void mem_tell_synced(struct mem_box *b)
{
	(void)event_add(b, EVENT_SYNCED, 0);
}

void mem_tell_started(struct mem_proc *p)
{
	struct mem_event *e = event_add(p->box, EVENT_STARTED, p->job);

	if (e != NULL)
		e->pid = p->pid;
}

/* The latest event, if it is of that kind and job: it can take what came since. */
static struct mem_event *event_latest(const struct mem_box *b, enum event_kind kind, uint64_t job)
{
	struct mem_event *e;

	if (b->link == NULL || cube_list_empty(&b->link->events))
		return NULL;
	e = cube_list_entry(b->link->events.prev, struct mem_event, link);
	return e->kind == kind && e->job == job ? e : NULL;
}

void mem_tell_output(struct mem_proc *p)
{
	struct mem_event *e = event_latest(p->box, EVENT_OUTPUT, p->job);

	if (e == NULL)
		e = event_add(p->box, EVENT_OUTPUT, p->job);
	if (e == NULL)
		return;
	e->end.total = p->out.total;
	e->end.err_total = p->out.err_total;
}

void mem_tell_input(struct mem_proc *p)
{
	struct mem_event *e = event_latest(p->box, EVENT_INPUT, p->job);

	if (e == NULL)
		e = event_add(p->box, EVENT_INPUT, p->job);
	if (e != NULL)
		e->end.total = p->in_got;
}

/* The texts of a session; false: out of memory. */
static bool session_copy(struct mem_event *e, const struct mem_session *s, bool exports)
{
	struct cube_buf text = CUBE_BUF(2 * MEM_TEXT_MAX);

	e->cwd = cube_strdup(s->shell.cwd);
	if (exports && mem_shell_exports(&s->shell, &text) == 0)
		e->exports = cube_buf_steal(&text, &e->session.exports_len);
	cube_buf_done(&text);
	e->session.session = s->number;
	e->session.fresh = s->fresh;
	e->session.cwd = e->cwd;
	e->session.exports = e->exports;
	return e->cwd != NULL && (!exports || e->exports != NULL);
}

void mem_tell_session(struct mem_box *b, struct mem_session *s, bool exports)
{
	struct mem_event *e = event_add(b, EVENT_SESSION, 0);

	if (e == NULL)
		return;
	if (session_copy(e, s, exports)) {
		s->shell.changed = false;
		return;
	}
	event_free(e);
	mem_link_break(b, -ENOMEM, "out of memory for what happens in the sandbox");
}

void mem_tell_ended(struct mem_proc *p)
{
	struct mem_event *e = event_add(p->box, EVENT_ENDED, p->job);

	if (e == NULL)
		return;
	e->end = p->end;
	e->why = p->why;
}

void mem_tell_left(struct mem_box *b)
{
	(void)event_add(b, EVENT_LEFT, b->lingering);
}

/* ---- Delivery ---- */

static void call_up(const struct mem_link *l, const struct mem_event *e)
{
	l->handler->up(l->ctx, e->job);
}

static void call_synced(const struct mem_link *l, const struct mem_event *e)
{
	(void)e;
	l->handler->synced(l->ctx);
}

static void call_started(const struct mem_link *l, const struct mem_event *e)
{
	l->handler->started(l->ctx, e->job, e->pid);
}

static void call_output(const struct mem_link *l, const struct mem_event *e)
{
	l->handler->output(l->ctx, e->job, e->end.total, e->end.err_total);
}

static void call_input(const struct mem_link *l, const struct mem_event *e)
{
	l->handler->input(l->ctx, e->job, e->end.total);
}

static void call_session(const struct mem_link *l, const struct mem_event *e)
{
	l->handler->session(l->ctx, &e->session);
}

static void call_ended(const struct mem_link *l, const struct mem_event *e)
{
	l->handler->ended(l->ctx, e->job, &e->end, e->why.text[0] != '\0' ? &e->why : NULL);
}

static void call_left(const struct mem_link *l, const struct mem_event *e)
{
	l->handler->left(l->ctx, e->job, e->job == 0); /* it has no shells that hold files */
}

static void (*const event_calls[])(const struct mem_link *l, const struct mem_event *e) = {
	[EVENT_UP] = call_up,         [EVENT_SYNCED] = call_synced, [EVENT_STARTED] = call_started,
	[EVENT_OUTPUT] = call_output, [EVENT_INPUT] = call_input,   [EVENT_SESSION] = call_session,
	[EVENT_ENDED] = call_ended,   [EVENT_LEFT] = call_left,
};

/* The lock is given back for the call, so nothing that was looked up before holds afterwards but @l. */
static void link_call(struct mem_link *l, const struct mem_event *e)
{
	struct mem *m = l->mem;

	l->calling = true;
	pthread_mutex_unlock(&m->lock);
	if (e != NULL)
		event_calls[e->kind](l, e);
	else
		l->handler->down(l->ctx, &l->why);
	pthread_mutex_lock(&m->lock);
	l->calling = false;
}

bool mem_events_deliver(struct mem *m)
{
	struct cube_list *first = cube_list_pop(&m->ready);
	struct mem_link *l = first != NULL ? cube_list_entry(first, struct mem_link, ready) : NULL;
	struct cube_list *item = l != NULL ? cube_list_pop(&l->events) : NULL;
	struct mem_event *e = item != NULL ? cube_list_entry(item, struct mem_event, link) : NULL;

	if (l == NULL)
		return false;
	if (e == NULL)
		l->told = true;
	link_call(l, e);
	if (e != NULL)
		event_free(e);
	if (l->closed)
		mem_link_free(l);
	else if (cube_list_empty(&l->ready) && (!cube_list_empty(&l->events) || (l->broken && !l->told)))
		cube_list_push(&m->ready, &l->ready);
	return true;
}
