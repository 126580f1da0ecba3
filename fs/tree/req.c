/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a request: submitted, parked, woken, cancelled, answered once. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "ctl/changes.h"
#include "ctl/errlog.h"
#include "fs/tree/proc.h"
#include "fs/tree/tree_priv.h"

struct req_op {
	const char *what; /* in the `error` files */
	int (*run)(struct cube_req *r);
	bool noted;   /* a refusal goes there */
	bool changes; /* the handle; so the next worker is told */
	bool handle;  /* works on r->handle, not on a name */
};

static const struct req_op req_ops[CUBE_REQ_COUNT] = {
	[CUBE_REQ_LOOKUP] = {.what = "look up", .run = cube_dir_lookup},
	[CUBE_REQ_GETATTR] = {.what = "stat", .run = cube_attr_get},
	[CUBE_REQ_SETATTR] = {.what = "change attributes of",
			      .run = cube_attr_set,
			      .noted = true,
			      .changes = true},
	[CUBE_REQ_READLINK] = {.what = "read link", .run = cube_attr_readlink},
	[CUBE_REQ_MKNOD] = {.what = "mknod", .run = cube_dir_refuse, .noted = true},
	[CUBE_REQ_MKDIR] = {.what = "mkdir", .run = cube_dir_mkdir, .noted = true},
	[CUBE_REQ_SYMLINK] = {.what = "symlink", .run = cube_dir_refuse, .noted = true},
	[CUBE_REQ_LINK] = {.what = "link", .run = cube_dir_refuse, .noted = true},
	[CUBE_REQ_UNLINK] = {.what = "unlink", .run = cube_dir_unlink, .noted = true},
	[CUBE_REQ_RMDIR] = {.what = "rmdir", .run = cube_dir_rmdir, .noted = true},
	[CUBE_REQ_RENAME] = {.what = "rename", .run = cube_dir_rename, .noted = true},
	[CUBE_REQ_CREATE] = {.what = "create", .run = cube_dir_refuse, .noted = true},
	[CUBE_REQ_ACCESS] = {.what = "access", .run = cube_attr_access},
	[CUBE_REQ_STATFS] = {.what = "statfs", .run = cube_attr_statfs},
	[CUBE_REQ_XATTR] = {.what = "xattr", .run = cube_attr_xattr},
	[CUBE_REQ_OPEN] = {.what = "open", .run = cube_handle_open, .noted = true},
	[CUBE_REQ_READ] =
		{.what = "read", .run = cube_handle_read, .noted = true, .changes = true, .handle = true},
	[CUBE_REQ_WRITE] =
		{.what = "write", .run = cube_handle_write, .noted = true, .changes = true, .handle = true},
	[CUBE_REQ_FLUSH] =
		{.what = "close", .run = cube_handle_flush, .noted = true, .changes = true, .handle = true},
	[CUBE_REQ_RELEASE] = {.what = "close", .run = cube_handle_release, .handle = true},
	[CUBE_REQ_LSEEK] = {.what = "seek", .run = cube_handle_lseek, .handle = true},
	[CUBE_REQ_POLL] = {.what = "poll", .run = cube_handle_poll, .changes = true, .handle = true},
	[CUBE_REQ_OPENDIR] = {.what = "list", .run = cube_dir_opendir, .noted = true},
	[CUBE_REQ_READDIR] = {.what = "list", .run = cube_dir_readdir},
};

/* ---- refusals ---- */

void cube_tree_note(struct cube_tree *t, struct cube_obj *o, const struct cube_caller *by,
		    const char *operation, const struct cube_err *err)
{
	struct cube_cube *c = o == NULL ? NULL : o->type->cube(o->p);

	if (c != NULL)
		cube_errlog_add(c->errors, by, operation, err);
	cube_errlog_add(t->domain->errors, by, operation, err);
}

/* "sandbox/jobs/7/cmd" would need a walk; the thing and its entry say enough. */
static void req_place(const struct cube_req *r, char *out, size_t size)
{
	const struct cube_obj *o = r->n->obj;
	const struct cube_cube *c = o->type->cube(o->p);
	const char *entry = r->n->entry->name;
	bool own = c == NULL || o->type == &cube_type_cube;

	(void)snprintf(out, size, "%s%s%s%s%s%s%s", own ? "" : c->name, own ? "" : " ", o->type->name(o->p),
		       entry[0] ? "/" : "", entry, r->name != NULL ? "/" : "",
		       r->name != NULL ? r->name : "");
}

static void req_note(struct cube_req *r, int code)
{
	const struct req_op *op = &req_ops[r->op];
	char place[200], text[256];

	/* To look for what is not there is no failure; to be told why one cannot look is. */
	if ((!op->noted && r->err.code != code) || r->noted || r->n == NULL || code == -EAGAIN ||
	    code == -EINTR || code == -ESTALE)
		return;
	if (r->err.code != code)
		cube_fail(&r->err, code, "%s", cube_errno_text(code));
	req_place(r, place, sizeof(place));
	(void)snprintf(text, sizeof(text), "%s %s", op->what, place);
	cube_tree_note(r->tree, r->n->obj, &r->caller, text, &r->err);
}

/* ---- answering ---- */

static void req_answer(struct cube_deferred *d)
{
	struct cube_req *r = cube_container_of(d, struct cube_req, deferred);

	if (r->real_id != 0 && r->result == 0)
		r->real(r);
	else
		r->done(r, r->result);
}

static void req_real_work(struct cube_work *w)
{
	struct cube_req *r = cube_container_of(w, struct cube_req, work);

	r->real(r);
}

/* A thread that woke a request (the loop, often) must not be held by a sandbox's files. */
static void req_real_elsewhere(struct cube_deferred *d)
{
	struct cube_req *r = cube_container_of(d, struct cube_req, deferred);

	cube_pool_submit(r->tree->domain->pool, &r->work);
}

void cube_req_unpark(struct cube_req *r)
{
	cube_wait_remove(&r->waiter);
	r->is_parked = false;
}

static void req_close(struct cube_req *r)
{
	assert(!r->finished);
	cube_req_unpark(r);
	r->finished = true;
	if (r->was_parked) {
		cube_alarm_off(&r->alarm);
		cube_imap_take(r->tree->parked, r->key);
	}
	if (r->job != NULL)
		cube_job_unref(cube_steal(r->job));
	cube_node_unref(cube_steal(r->n));
}

void cube_req_finish(struct cube_req *r, int result)
{
	r->result = result;
	if (r->handle != NULL && r->handle->kept != NULL && req_ops[r->op].changes)
		cube_kept_save(r->handle, r);
	if (result < 0) {
		r->real_id = 0;
		req_note(r, result);
	}
	req_close(r);
	r->deferred.fn = req_answer;
	if (r->real_id != 0 && r->was_parked) {
		r->work = (struct cube_work){.run = req_real_work};
		r->deferred.fn = req_real_elsewhere;
	}
	cube_domain_defer(r->tree->domain, &r->deferred);
}

void cube_req_fini(struct cube_req *r)
{
	cube_free(cube_steal(r->own));
	cube_changes_text_free(cube_steal(r->changes));
	if (r->files != NULL)
		cube_files_unref(cube_steal(r->files));
}

/* ---- running ---- */

static void req_look(struct cube_deferred *d)
{
	struct cube_req *r = cube_container_of(d, struct cube_req, deferred);
	struct cube_domain *dom = r->tree->domain;

	if (r->caller.local && r->caller.client == 0)
		cube_proc_look(r->caller.pid, &r->proc);
	r->proc.known = true;
	cube_domain_enter(dom);
	cube_req_run(r);
	cube_domain_leave(dom);
}

void cube_req_run(struct cube_req *r)
{
	int code = r->step(r);

	if (code == CUBE_PARK)
		return;
	if (code == CUBE_PROC) {
		assert(!r->proc.known);
		r->deferred.fn = req_look;
		cube_domain_defer(r->tree->domain, &r->deferred);
		return;
	}
	cube_req_finish(r, code == CUBE_REAL ? 0 : code);
}

static void req_unlocked(struct cube_deferred *d)
{
	struct cube_req *r = cube_container_of(d, struct cube_req, deferred);

	r->unlocked(r);
}

int cube_req_unlock(struct cube_req *r, void (*fn)(struct cube_req *r))
{
	r->unlocked = fn;
	r->deferred.fn = req_unlocked;
	cube_domain_defer(r->tree->domain, &r->deferred);
	return CUBE_PARK;
}

/* ---- waiting ---- */

static void req_woken(struct cube_waiter *w)
{
	struct cube_req *r = cube_container_of(w, struct cube_req, waiter);

	r->is_parked = false;
	cube_req_run(r);
}

int cube_req_park(struct cube_req *r)
{
	if (r->tree->closing)
		return cube_fail(&r->err, -EHOSTDOWN, "cubefs is ending");
	if (!r->was_parked) {
		if (cube_imap_put(r->tree->parked, r->key, r) < 0)
			return cube_fail(&r->err, -ENOMEM, "out of memory");
		r->was_parked = true;
		if (r->parked != NULL)
			r->parked(r);
	}
	r->is_parked = true;
	return CUBE_PARK;
}

int cube_req_wait(struct cube_req *r, struct cube_waitq *q)
{
	int code = cube_req_park(r);

	if (code == CUBE_PARK)
		cube_wait_add(q, &r->waiter);
	return code;
}

static void req_alarm(struct cube_alarm *a)
{
	struct cube_req *r = cube_container_of(a, struct cube_req, alarm);

	r->late = true;
	if (!r->is_parked)
		return; /* it is being served: it looks at `late` before it parks again */
	cube_req_unpark(r);
	cube_req_run(r);
}

void cube_req_timeout(struct cube_req *r, uint64_t ms)
{
	r->alarm.fn = req_alarm;
	cube_alarm_set(r->tree->domain, &r->alarm, ms);
}

/* ---- coming in, being called off ---- */

void cube_req_submit(struct cube_tree *t, struct cube_req *r)
{
	const struct req_op *op = &req_ops[r->op];
	uint64_t id = r->node & CUBE_FILES_ID ? r->new_parent : r->node;

	r->tree = t;
	if (r->files_view == NULL)
		r->files_view = t->view;
	r->step = op->run;
	cube_waiter_init(&r->waiter, req_woken);
	cube_alarm_init(&r->alarm, req_alarm);
	r->key = ++t->next_key;
	r->n = op->handle ? r->handle->node : cube_node_find(t, id);
	if (r->n != NULL) {
		cube_node_ref(r->n);
		cube_req_run(r);
	} else {
		cube_req_finish(r, -ESTALE);
	}
}

void cube_tree_submit(struct cube_tree *t, struct cube_req *r)
{
	cube_domain_enter(t->domain);
	cube_req_submit(t, r);
	cube_domain_leave(t->domain);
}

void cube_req_call_off(struct cube_req *r, int code)
{
	if (!r->is_parked)
		return; /* it is being served this moment */
	cube_req_unpark(r);
	if (r->on_cancel != NULL)
		r->on_cancel(r, code == -EINTR);
	if (!r->finished)
		cube_req_finish(r, r->progress > 0 ? (int)r->progress : code);
}

bool cube_tree_cancel(struct cube_tree *t, uint64_t key)
{
	struct cube_req *r;
	bool over = true;

	cube_domain_enter(t->domain);
	r = cube_imap_get(t->parked, key);
	if (r != NULL) {
		over = r->is_parked;
		cube_req_call_off(r, -EINTR);
	}
	cube_domain_leave(t->domain);
	return over;
}

bool cube_tree_waiting(struct cube_tree *t, uint64_t key, pid_t *ret_pid, bool *ret_lasting)
{
	struct cube_req *r;

	cube_domain_enter(t->domain);
	r = cube_imap_get(t->parked, key);
	if (r != NULL) {
		*ret_pid = r->caller.pid;
		*ret_lasting = r->op == CUBE_REQ_FLUSH || r->op == CUBE_REQ_WRITE;
	}
	cube_domain_leave(t->domain);
	return r != NULL;
}

static int req_first(void *ctx, uint64_t key, void *value)
{
	struct cube_req *r = value;

	(void)key;
	if (!r->is_parked)
		return 0;
	*(struct cube_req **)ctx = r;
	return 1;
}

void cube_tree_shutdown(struct cube_tree *t)
{
	struct cube_req *r;

	cube_domain_enter(t->domain);
	t->closing = true;
	while (r = NULL, cube_imap_each(t->parked, req_first, &r) != 0) {
		if (r->err.code == 0)
			cube_fail(&r->err, -EHOSTDOWN, "cubefs is ending");
		cube_req_call_off(r, -EHOSTDOWN);
	}
	cube_domain_leave(t->domain);
}
