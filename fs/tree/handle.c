/* SPDX-License-Identifier: Apache-2.0 */
/* Open files: what all classes have in common, and the class of plain text. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "backends/base/alloc.h"
#include "ctl/changes.h"
#include "fs/tree/tree_priv.h"

#define HANDLE_READY (POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM)

const struct cube_class cube_class_text = {0};

/* ---- polling ---- */

static void handle_poller_done(struct cube_deferred *d)
{
	struct cube_poller *p = cube_container_of(d, struct cube_poller, deferred);

	p->fn(p);
}

static void handle_poller_leave(struct cube_handle *h, bool news)
{
	struct cube_poller *p = cube_steal(h->poller);

	if (p == NULL)
		return;
	cube_wait_remove(&h->poll_waiter);
	p->news = news;
	p->deferred.fn = handle_poller_done;
	cube_domain_defer(h->tree->domain, &p->deferred);
}

static void handle_poll_news(struct cube_waiter *w)
{
	handle_poller_leave(cube_container_of(w, struct cube_handle, poll_waiter), true);
}

int cube_handle_poll(struct cube_req *r)
{
	struct cube_handle *h = r->handle;
	struct cube_waitq *wait = NULL;
	unsigned events = HANDLE_READY;

	if (h->channel && h->class->poll != NULL)
		events = h->class->poll(h, r->flags, &wait);
	handle_poller_leave(h, false); /* one a file: the newest counts */
	h->poller = cube_steal(r->poller);
	if (wait != NULL && h->poller != NULL)
		cube_wait_add(wait, &h->poll_waiter);
	return (int)events;
}

/* ---- open ---- */

/* What can only be written may be opened for reading all the same, and is empty: tar and cp -r of a live tree
 * would else end with an error for each of them. */
static int handle_may(struct cube_req *r)
{
	const struct cube_obj *o = r->n->obj;
	const struct cube_cube *c = o->type->cube(o->p);
	const struct cube_entry *e = r->n->entry;
	unsigned how = r->flags & O_ACCMODE;

	if (S_ISDIR(e->mode))
		return -EISDIR;
	if (!S_ISREG(e->mode))
		return -ELOOP;
	if (o->type->gone(o->p) || (c != NULL && c->phase == CUBE_REMOVED))
		return -ESTALE;
	if (how != O_RDONLY && !(e->mode & S_IWUSR))
		return cube_fail(&r->err, -EACCES, "'%s' is read only", e->name);
	if (how == O_RDWR && !(e->mode & S_IRUSR))
		return cube_fail(&r->err, -EACCES, "'%s' can only be written", e->name);
	if (how != O_RDONLY && e->class->collects && !r->proc.known)
		return CUBE_PROC;
	return e->class->check == NULL ? 0 : e->class->check(r);
}

static void handle_fill(struct cube_handle *h, struct cube_req *r)
{
	unsigned how = r->flags & O_ACCMODE;

	h->tree = r->tree;
	h->class = r->n->entry->class;
	h->arg = r->n->entry->arg;
	h->by = r->caller;
	h->reads = how != O_WRONLY;
	h->writes = how != O_RDONLY;
	h->channel = how == O_RDWR && h->class->channel;
	h->appends = (r->flags & O_APPEND) != 0;
	h->truncated = h->writes && (r->flags & O_TRUNC) != 0;
	h->tgid = r->proc.visible ? r->proc.tgid : 0;
	cube_buf_init(&h->in, CUBE_COLLECT_ONE);
	cube_buf_init(&h->text, CUBE_RENDER_MAX);
	cube_waitq_init(&h->idle);
	cube_waiter_init(&h->poll_waiter, handle_poll_news);
	h->node = cube_node_ref(r->n);
	cube_list_push(&r->tree->handles, &h->link);
}

struct cube_handle *cube_handle_new(struct cube_req *r)
{
	struct cube_handle *h = cube_calloc(1, sizeof(*h));

	if (h != NULL)
		handle_fill(h, r);
	return h;
}

/* The text is that of the open: every read of this handle sees the same moment. */
int cube_handle_render(struct cube_handle *h)
{
	const struct cube_entry *e = h->node->entry;

	if (!h->reads || h->channel || h->class->stat != NULL || e->render == NULL)
		return 0;
	return e->render(h->node->obj->p, &h->text);
}

/* A close of one that only reads means nothing. */
static bool handle_flushes(const struct cube_handle *h)
{
	return h->writes && h->class->flush != NULL;
}

int cube_handle_open(struct cube_req *r)
{
	struct cube_handle *h;
	int code = handle_may(r);

	if (code != 0)
		return code;
	cube_mark_end(r->tree, cube_mark_scope(r->n->obj), &r->caller);
	h = cube_handle_new(r);
	if (h == NULL)
		return cube_fail(&r->err, -ENOMEM, "out of memory");
	cube_kept_open(h, r);
	code = cube_handle_render(h);
	if (code == 0 && h->class->open != NULL)
		code = h->class->open(r, h);
	cube_kept_opened(h);
	if (code < 0) {
		cube_handle_free(h);
		return code;
	}
	r->opened = h;
	r->stream = h->channel;
	r->constant = r->n->entry->constant;
	r->flushes = handle_flushes(h);
	return 0;
}

/* ---- read, write, close ---- */

int cube_handle_give(struct cube_req *r, const struct cube_buf *text, uint64_t offset)
{
	size_t left = offset < text->len ? text->len - (size_t)offset : 0;

	r->out_len = left < r->size ? left : r->size;
	r->out = "";
	if (r->out_len > 0) {
		/* A copy: who is answered may close the file before the thread that answers is done. */
		r->own = cube_memdup(text->data + offset, r->out_len);
		if (r->own == NULL)
			return -ENOMEM;
		r->out = r->own;
	}
	return (int)r->out_len;
}

int cube_handle_read(struct cube_req *r)
{
	struct cube_handle *h = r->handle;

	if (!h->reads)
		return -EBADF;
	if (h->channel && !h->busy) {
		cube_kept_rewind(r, h);
		r->before = cube_kept_place(h);
	}
	if (h->class->read != NULL)
		return h->class->read(r, h);
	return cube_handle_give(r, &h->text, r->offset);
}

int cube_handle_write(struct cube_req *r)
{
	struct cube_handle *h = r->handle;

	if (!h->writes)
		return -EBADF;
	if (h->class->write == NULL)
		return cube_fail(&r->err, -EPERM, "'%s' takes no text", h->node->entry->name);
	return h->class->write(r, h);
}

int cube_handle_flush(struct cube_req *r)
{
	struct cube_handle *h = r->handle;

	return handle_flushes(h) ? h->class->flush(r, h) : 0;
}

void cube_handle_free(struct cube_handle *h)
{
	handle_poller_leave(h, false);
	cube_wake(&h->idle);
	cube_kept_closed(h);
	cube_hold_end(&h->hold);
	cube_cube_unref(h->made);
	cube_list_remove(&h->link);
	cube_collect_drop(h);
	cube_buf_done(&h->in);
	cube_buf_done(&h->text);
	cube_changes_text_free(h->changes);
	if (h->output != NULL) {
		cube_output_unpin(h->output, &h->view);
		cube_output_unref(h->output);
	}
	if (h->job != NULL)
		cube_job_unref(h->job);
	cube_node_unref(h->node);
	cube_free(h);
}

/* It was on its way out and will not be completed. */
static void handle_drop(struct cube_handle *h)
{
	struct cube_err err;

	if (!h->writes || !h->class->collects)
		return;
	h->failed = true;
	if (h->in.len == 0)
		return;
	cube_fail(&err, -EINTR, "the connection ended before '%s' was closed: what it had written is dropped",
		  h->node->entry->name);
	cube_tree_note(h->tree, h->node->obj, &h->by, "close", &err);
	cube_collect_drop(h);
}

int cube_handle_release(struct cube_req *r)
{
	struct cube_handle *h = r->handle;

	if (r->lost)
		handle_drop(h);

	if (h->class->release != NULL)
		h->class->release(h);
	cube_handle_free(h);
	r->handle = NULL;
	return 0;
}

int cube_handle_lseek(struct cube_req *r)
{
	struct cube_tree_entry e;
	uint64_t size;

	cube_node_attr(r->n, &e);
	size = (uint64_t)e.st.st_size;
	if (r->offset >= size)
		return -ENXIO;
	if (r->flags == SEEK_HOLE)
		r->offset = size;
	return r->flags == SEEK_HOLE || r->flags == SEEK_DATA ? 0 : -EINVAL;
}
