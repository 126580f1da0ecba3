/* SPDX-License-Identifier: Apache-2.0 */
/* `logs` and `events`: the last of something that has no end. A plain open reads to the present end, a
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

static bool ring_is_log(const struct cube_node *n)
{
	return n->obj->type == &cube_type_cube;
}

static struct cube_transcript *ring_log(const struct cube_node *n)
{
	return ((struct cube_cube *)n->obj->p)->log;
}

static struct cube_events *ring_events(const struct cube_node *n)
{
	return ((struct cube_domain *)n->obj->p)->events;
}

static uint64_t ring_first(const struct cube_node *n)
{
	return ring_is_log(n) ? cube_transcript_first(ring_log(n)) : cube_events_first(ring_events(n));
}

static uint64_t ring_end(const struct cube_node *n)
{
	return ring_is_log(n) ? cube_transcript_end(ring_log(n)) : cube_events_end(ring_events(n));
}

static struct cube_waitq *ring_waitq(const struct cube_node *n)
{
	return ring_is_log(n) ? cube_transcript_waitq(ring_log(n)) : cube_events_waitq(ring_events(n));
}

static ssize_t ring_take(const struct cube_node *n, uint64_t *pos, char *data, size_t len)
{
	return ring_is_log(n) ? cube_transcript_read(ring_log(n), pos, data, len)
			      : cube_events_read(ring_events(n), pos, data, len);
}

static void ring_stat(struct cube_node *n, uint64_t *size, uint64_t *mtime)
{
	struct cube_text_mark *mark = &n->obj->texts[n->entry->slot];
	uint64_t end = ring_end(n);

	*size = end - ring_first(n);
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

/* Nothing follows in the log of a sandbox that is gone. */
static bool ring_over(const struct cube_node *n)
{
	return ring_is_log(n) && n->obj->type->gone(n->obj->p);
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
