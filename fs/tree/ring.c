/* SPDX-License-Identifier: Apache-2.0 */
/* `logs`, `events` and `metrics`: the last of something that has no end. A plain open reads to the present end, a
 * channel what comes from then on. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "ctl/event.h"
#include "ctl/transcript.h"
#include "fs/tree/tree_priv.h"

#define RING_PIECE (256u << 10) /* read at once, under the lock */

/* What differs between them. */
struct ring_kind {
	uint64_t (*first)(void *p);
	uint64_t (*end)(void *p);
	ssize_t (*read)(void *p, uint64_t *pos, void *data, size_t len);
	struct cube_waitq *(*waitq)(void *p);
};

/* NOLINTBEGIN(bugprone-macro-parentheses): a type cannot stand in parentheses. */
#define RING_KIND(name, type, first_, end_, read_, waitq_)                                                   \
	static uint64_t name##_first(void *p)                                                                \
	{                                                                                                    \
		type *o = p;                                                                                 \
                                                                                                             \
		return first_;                                                                               \
	}                                                                                                    \
	static uint64_t name##_end(void *p)                                                                  \
	{                                                                                                    \
		type *o = p;                                                                                 \
                                                                                                             \
		return end_;                                                                                 \
	}                                                                                                    \
	static ssize_t name##_read(void *p, uint64_t *pos, void *data, size_t len)                           \
	{                                                                                                    \
		type *o = p;                                                                                 \
                                                                                                             \
		return read_;                                                                                \
	}                                                                                                    \
	static struct cube_waitq *name##_waitq(void *p)                                                      \
	{                                                                                                    \
		type *o = p;                                                                                 \
                                                                                                             \
		return waitq_;                                                                               \
	}

RING_KIND(log, struct cube_cube, cube_transcript_first(o->log), cube_transcript_end(o->log),
	  cube_transcript_read(o->log, pos, data, len), cube_transcript_waitq(o->log))
RING_KIND(events, struct cube_domain, cube_events_first(o->events), cube_events_end(o->events),
	  cube_events_read(o->events, pos, data, len), cube_events_waitq(o->events))
RING_KIND(metrics, struct cube_cube, cube_metrics_first(o), cube_metrics_end(o),
	  cube_metrics_read(o, pos, data, len), &o->metrics.added)
/* NOLINTEND(bugprone-macro-parentheses) */

static const struct ring_kind ring_kinds[] = {
	[CUBE_RING_LOG] = {log_first, log_end, log_read, log_waitq},
	[CUBE_RING_EVENTS] = {events_first, events_end, events_read, events_waitq},
	[CUBE_RING_METRICS] = {metrics_first, metrics_end, metrics_read, metrics_waitq},
};

static const struct ring_kind *ring_kind(const struct cube_node *n)
{
	return &ring_kinds[n->entry->arg];
}

static uint64_t ring_first(const struct cube_node *n)
{
	return ring_kind(n)->first(n->obj->p);
}

static uint64_t ring_end(const struct cube_node *n)
{
	return ring_kind(n)->end(n->obj->p);
}

static struct cube_waitq *ring_waitq(const struct cube_node *n)
{
	return ring_kind(n)->waitq(n->obj->p);
}

static ssize_t ring_take(const struct cube_node *n, uint64_t *pos, char *data, size_t len)
{
	return ring_kind(n)->read(n->obj->p, pos, data, len);
}

static void ring_stat(struct cube_node *n, uint64_t *size, uint64_t *mtime)
{
	struct cube_text_mark *mark = &n->obj->texts[n->entry->slot];
	uint64_t first = ring_first(n), end = ring_end(n);

	*size = end - first;
	if (mark->changed == 0 || mark->hash != end)
		*mark = (struct cube_text_mark){.hash = end, .changed = cube_clock_wall()};
	*mtime = mark->changed;
}

static int ring_open(struct cube_req *r, struct cube_handle *h)
{
	h->base = ring_first(r->n);
	h->pos = ring_end(r->n);
	return 0;
}

/* Nothing follows of a sandbox that is gone. */
static bool ring_over(const struct cube_node *n)
{
	return n->entry->arg != CUBE_RING_EVENTS && n->obj->type->gone(n->obj->p);
}

static int ring_read(struct cube_req *r, struct cube_handle *h)
{
	uint64_t pos = h->channel ? h->pos : h->base + r->offset;
	size_t room = r->size < RING_PIECE ? r->size : RING_PIECE;
	ssize_t n;

	if (pos >= ring_end(h->node)) {
		if (!h->channel || ring_over(h->node))
			return 0;
		return r->flags & O_NONBLOCK ? -EAGAIN : cube_req_wait(r, ring_waitq(h->node));
	}
	r->own = cube_malloc(room > 0 ? room : 1);
	if (r->own == NULL)
		return cube_fail(&r->err, -ENOMEM, "out of memory");
	n = ring_take(h->node, &pos, r->own, room);
	if (n < 0)
		return cube_fail(&r->err, (int)n, "%s", cube_errno_text((int)n));
	if (h->channel)
		h->pos = pos;
	r->out = r->own;
	r->out_len = (size_t)n;
	return (int)n;
}

static unsigned ring_poll(struct cube_handle *h, unsigned events, struct cube_waitq **wait)
{
	(void)events;
	if (h->pos < ring_end(h->node) || ring_over(h->node))
		return POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM;
	*wait = ring_waitq(h->node);
	return POLLOUT | POLLWRNORM;
}

const struct cube_class cube_class_ring = {
	.channel = true,
	.stat = ring_stat,
	.open = ring_open,
	.read = ring_read,
	.poll = ring_poll,
};
