/* SPDX-License-Identifier: Apache-2.0 */
/* The output of a job: read to its present end, or followed to its true one. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "fs/tree/tree_priv.h"

#define OUTPUT_PIECE (64u << 10) /* at least so much is read for a channel, which the marker line fits in */

struct cube_job *cube_output_job(const struct cube_node *n)
{
	const struct cube_type *type = n->obj->type;

	if (type == &cube_type_job)
		return n->obj->p;
	if (type == &cube_type_session)
		return ((struct cube_session *)n->obj->p)->latest;
	return cube_session_main(n->obj->p)->latest;
}

/* ---- reading without the lock ---- */

static void output_after(struct cube_req *r, ssize_t n)
{
	cube_output_unref(cube_steal(r->output));
	r->out = r->own;
	r->out_len = n > 0 ? (size_t)n : 0;
}

static void output_read_plain(struct cube_req *r)
{
	ssize_t n = cube_spool_pread(&r->view, (enum cube_stream)r->handle->arg, r->own, r->size, r->offset);

	cube_domain_enter(r->tree->domain);
	output_after(r, n);
	cube_req_finish(r, (int)n);
	cube_domain_leave(r->tree->domain);
}

/* More than was asked for is kept in h->text for the next read. */
static void output_keep_rest(struct cube_req *r, struct cube_handle *h)
{
	if (r->out_len <= r->size)
		return;
	(void)cube_buf_add(&h->text, r->own + r->size, r->out_len - r->size);
	r->out_len = r->size;
	h->rests = true;
	h->rest_used = r->size;
}

/* What a read before had given of this piece, in the worker before. */
static ssize_t output_skip(struct cube_req *r, struct cube_handle *h, ssize_t n)
{
	size_t gone = n > 0 && h->skip > 0 ? (h->skip < (size_t)n ? (size_t)h->skip : (size_t)n) : 0;

	h->skip = 0;
	if (gone > 0)
		memmove(r->own, r->own + gone, (size_t)n - gone);
	return n - (ssize_t)gone;
}

static void output_read_channel(struct cube_req *r)
{
	struct cube_handle *h = r->handle;
	size_t room = r->size > OUTPUT_PIECE ? r->size : OUTPUT_PIECE;
	uint64_t pos = h->pos; /* nobody else moves it: busy */
	ssize_t n = cube_spool_follow(&r->view, (enum cube_stream)h->arg, r->own, room, &pos);

	cube_domain_enter(r->tree->domain);
	h->busy = false;
	h->rest_at = h->pos;
	h->pos = pos;
	n = output_skip(r, h, n);
	output_after(r, n);
	output_keep_rest(r, h);
	cube_wake(&h->idle);
	if (n == 0) {
		cube_free(cube_steal(r->own));
		cube_req_run(r);
	} else {
		cube_req_finish(r, n < 0 ? (int)n : (int)r->out_len);
	}
	cube_domain_leave(r->tree->domain);
}

/* ---- channels ---- */

bool cube_output_more(const struct cube_job *j, enum cube_stream stream, uint64_t pos)
{
	if (stream == CUBE_STREAM_OUTPUT || j->merge)
		return (stream == CUBE_STREAM_STDERR ? 0 : j->total) > pos;
	return (stream == CUBE_STREAM_STDERR ? j->err_total : j->total - j->err_total) > pos;
}

/* What an earlier read left over. */
static int output_give_rest(struct cube_req *r, struct cube_handle *h)
{
	size_t n = h->text.len < r->size ? h->text.len : r->size;

	r->own = cube_memdup(h->text.data, n);
	if (r->own == NULL)
		return -ENOMEM;
	cube_buf_drop(&h->text, n);
	h->rest_used += n;
	r->out = r->own;
	r->out_len = n;
	return (int)n;
}

int cube_output_follow(struct cube_req *r, struct cube_handle *h)
{
	struct cube_job *j = h->job;

	if (h->busy)
		return cube_req_wait(r, &h->idle);
	if (h->text.len > 0)
		return output_give_rest(r, h);
	if (cube_output_more(j, (enum cube_stream)h->arg, h->pos)) {
		r->output = cube_job_view(j, &r->view);
		r->own = r->output == NULL ? NULL
					   : cube_malloc(r->size > OUTPUT_PIECE ? r->size : OUTPUT_PIECE);
		if (r->output != NULL && r->own != NULL) {
			h->busy = true;
			return cube_req_unlock(r, output_read_channel);
		}
		if (r->output != NULL) {
			cube_output_unref(cube_steal(r->output));
			return cube_fail(&r->err, -ENOMEM, "out of memory");
		}
	}
	if (j->state == CUBE_JOB_ENDED || j->forgotten) {
		h->ended = true;
		return 0;
	}
	return r->flags & O_NONBLOCK ? -EAGAIN : cube_req_wait(r, &j->changed);
}

static unsigned output_poll(struct cube_handle *h, unsigned events, struct cube_waitq **wait)
{
	struct cube_job *j = h->job;

	(void)events;
	if (h->text.len > 0 || cube_output_more(j, (enum cube_stream)h->arg, h->pos) ||
	    j->state == CUBE_JOB_ENDED)
		return POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM;
	*wait = &j->changed;
	return POLLOUT | POLLWRNORM;
}

/* ---- plain reads ---- */

/* Up to the limit the file only grows, so each read sees what there is. Above it the middle goes and the tail
 * moves: then this handle goes on with what it saw last, which stays on the disk as long as it is pinned. */
static int output_look(struct cube_req *r, struct cube_handle *h)
{
	struct cube_spool_view v;
	struct cube_output *o = cube_job_view(h->job, &v);

	if (o != NULL && (v.total <= v.limit || h->output == NULL)) {
		if (h->output != NULL) {
			cube_output_unpin(h->output, &h->view);
			cube_output_unref(h->output);
		}
		h->output = o;
		h->view = v;
		cube_output_pin(h->output, &h->view);
	} else {
		cube_output_unref(o);
	}
	if (r == NULL || h->output == NULL)
		return 0;
	r->output = cube_job_view(h->job, &v); /* holds the descriptors while the lock is not held */
	r->view = h->view;
	return 1;
}

static int output_read(struct cube_req *r, struct cube_handle *h)
{
	if (h->job == NULL)
		return 0;
	if (h->channel)
		return cube_output_follow(r, h);
	if (output_look(r, h) == 0)
		return 0;
	r->own = cube_malloc(r->size > 0 ? r->size : 1);
	if (r->own == NULL) {
		cube_output_unref(cube_steal(r->output));
		return cube_fail(&r->err, -ENOMEM, "out of memory");
	}
	return cube_req_unlock(r, output_read_plain);
}

static int output_open(struct cube_req *r, struct cube_handle *h)
{
	struct cube_job *j = cube_output_job(r->n);

	if (j == NULL || !h->reads)
		return 0;
	h->job = cube_job_ref(j);
	return h->channel ? 0 : output_look(NULL, h);
}

static int output_adopt(struct cube_handle *h)
{
	if (h->job == NULL || !h->reads || h->channel)
		return 0;
	return output_look(NULL, h);
}

static void output_stat(struct cube_node *n, uint64_t *size, uint64_t *mtime)
{
	struct cube_text_mark *mark = &n->obj->texts[n->entry->slot];
	struct cube_job *j = cube_output_job(n);
	struct cube_spool_view v;
	struct cube_output *o;

	*size = 0;
	*mtime = n->obj->type->born(n->obj->p);
	o = j == NULL ? NULL : cube_job_view(j, &v);
	if (o == NULL)
		return;
	*size = cube_spool_size(&v, (enum cube_stream)n->entry->arg);
	cube_output_unref(o);
	if (mark->changed == 0 || mark->hash != (v.total ^ (j->seq << 48)))
		*mark = (struct cube_text_mark){.hash = v.total ^ (j->seq << 48),
						.changed = cube_clock_wall()};
	*mtime = j->state == CUBE_JOB_ENDED && mark->changed > j->finished_wall ? j->finished_wall
										: mark->changed;
}

const struct cube_class cube_class_output = {
	.channel = true,
	.stat = output_stat,
	.open = output_open,
	.adopt = output_adopt,
	.read = output_read,
	.poll = output_poll,
};
