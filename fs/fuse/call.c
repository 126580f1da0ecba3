/* SPDX-License-Identifier: Apache-2.0 */
/* A FUSE request on its way: to fs/files at once, or through the tree. */
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "fs/fuse/priv.h"

struct cube_caller cube_fuse_caller(fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	const struct cube_fuse *f = fuse_req_userdata(req);

	return (struct cube_caller){.pid = ctx->pid,
				    .uid = ctx->uid,
				    .gid = ctx->gid,
				    .local = true,
				    .owner = ctx->uid == f->o.uid};
}

struct cube_fuse_args cube_fuse_args_of(fuse_req_t req, uint64_t node)
{
	struct cube_fuse_journal_now now = cube_fuse_journal_now();

	return (struct cube_fuse_args){.f = fuse_req_userdata(req),
				       .req = req,
				       .node = node,
				       .unique = now.unique,
				       .asked = cube_fuse_newer_asked(),
				       .again = now.again};
}

void *cube_fuse_open_of(const struct cube_fuse_args *a)
{
	return cube_fh_get(&a->f->fh, a->fi.fh);
}

static void call_free(struct cube_fuse_call *c)
{
	cube_req_fini(&c->r);
	cube_free(c->buf);
	cube_free(c);
}

void cube_fuse_call_end(struct cube_fuse_call *c)
{
	cube_fuse_answer(c, c->r.result);
	call_free(c);
}

static void call_told(void *arg)
{
	cube_fuse_call_end(arg);
}

/* A verb may have taken names away, and who is told that it is done must not find them in the kernel's cache. Nor, where
 * it keeps what real files were like, what was so before a command, of whose end anyone may learn by the others. Not
 * those for which the kernel holds a directory, since the news may be about that one. */
static bool call_waits(const struct cube_fuse *f, enum cube_req_op op)
{
	if (op == CUBE_REQ_WRITE || op == CUBE_REQ_FLUSH)
		return true;
	return cube_fuse_watch_keeps(&f->watch) &&
	       (op == CUBE_REQ_READ || op == CUBE_REQ_POLL || op == CUBE_REQ_GETATTR);
}

static void call_done(struct cube_req *r, int result)
{
	struct cube_fuse_call *c = cube_container_of(r, struct cube_fuse_call, r);

	(void)result; /* it is in *r too */
	cube_files_tell(c->a.f->files);
	if (call_waits(c->a.f, r->op) && cube_fuse_notify_first(c->a.f->notify, call_told, c))
		return;
	cube_fuse_call_end(c);
}

static void call_real(struct cube_req *r)
{
	struct cube_fuse_call *c = cube_container_of(r, struct cube_fuse_call, r);

	c->a.node = r->real_id;
	if (r->real_new_id != 0)
		c->a.new_node = r->real_new_id;
	c->a.shown_ino = r->entry.st.st_ino;
	c->op->real(&c->a);
	call_free(c);
}

static const char *call_copy(char **at, const void *from, size_t size)
{
	char *to = *at;

	if (from == NULL)
		return NULL;
	memcpy(to, from, size);
	*at += size;
	return to;
}

/* The request with everything that it points to in one piece. */
static struct cube_fuse_call *call_new(const struct cube_fuse_args *a, const struct cube_fuse_op *op)
{
	size_t name = a->name == NULL ? 0 : strlen(a->name) + 1;
	size_t new_name = a->new_name == NULL ? 0 : strlen(a->new_name) + 1;
	size_t data = a->data == NULL ? 0 : a->size;
	struct cube_fuse_call *c = cube_malloc(sizeof(*c) + name + new_name + data);
	char *at;

	if (c == NULL)
		return NULL;
	memset(c, 0, sizeof(*c));
	at = (char *)(c + 1);
	c->a = *a;
	c->op = op;
	c->a.name = call_copy(&at, a->name, name);
	c->a.new_name = call_copy(&at, a->new_name, new_name);
	c->a.data = call_copy(&at, a->data, data);
	return c;
}

static void call_fill(struct cube_fuse_call *c)
{
	const struct cube_fuse_args *a = &c->a;
	struct cube_req *r = &c->r;

	r->op = c->op->op;
	r->caller = cube_fuse_caller(a->req);
	r->node = a->node;
	r->new_parent = a->new_node;
	r->name = a->name;
	r->new_name = a->new_name;
	r->flags = a->has_fi ? (unsigned)a->fi.flags : a->flags;
	r->handle = a->has_fi ? cube_fuse_open_of(a) : NULL;
	r->unique = a->unique;
	r->again = a->again;
	r->offset = (uint64_t)a->off;
	r->data = a->data;
	r->size = a->size;
	r->lock_owner = a->fi.lock_owner;
	r->set_st = &a->st;
	r->set = a->set;
	r->caches = true;
	r->done = call_done;
	r->real = call_real;
	r->parked = cube_fuse_parked;
	if (r->op == CUBE_REQ_READDIR) {
		c->buf = cube_malloc(a->size);
		r->plus = c->op->names;
		r->add = cube_fuse_list_entry;
	}
	if (r->op == CUBE_REQ_POLL)
		r->poller = c->a.poller;
}

/* A close that was done, and not answered, by the worker before; an open likewise; what is open no more. */
static bool call_is_over(const struct cube_fuse_args *a, const struct cube_fuse_op *op)
{
	if (a->has_fi && a->fi.fh != 0 && cube_fuse_open_of(a) == NULL) {
		(void)fuse_reply_err(a->req,
				     op->op == CUBE_REQ_RELEASE || op->op == CUBE_REQ_FLUSH ? 0 : ESTALE);
		return true;
	}
	return a->again && op->op == CUBE_REQ_OPEN && cube_fuse_opened_before(a);
}

void cube_fuse_dispatch(const struct cube_fuse_args *a, const struct cube_fuse_op *op)
{
	struct cube_fuse_call *c;
	struct cube_fuse *f = a->f;

	if (call_is_over(a, op))
		return;
	if ((a->node & CUBE_FILES_ID) && (a->new_name == NULL || (a->new_node & CUBE_FILES_ID))) {
		op->real(a);
		return;
	}
	c = call_new(a, op);
	if (c == NULL) {
		(void)fuse_reply_err(a->req, ENOMEM);
		return;
	}
	call_fill(c);
	if (c->r.op == CUBE_REQ_READDIR && c->buf == NULL) {
		c->r.result = -ENOMEM;
		cube_fuse_call_end(c);
		return;
	}
	if (c->r.op == CUBE_REQ_OPEN)
		c->fh = cube_fh_take(&f->fh, &c->r.kept);
	if (op->names)
		(void)pthread_rwlock_rdlock(&f->answering);
	cube_tree_submit(f->tree, &c->r);
	if (op->names)
		(void)pthread_rwlock_unlock(&f->answering);
}
