/* SPDX-License-Identifier: Apache-2.0 */
/* `ctl`: a verb a line. A complete line runs when its newline arrives, and the write waits for its end; an
 * unfinished last one runs at the close. Opened for both, a read gives the answers. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"
#include "fs/tree/tree_priv.h"

#define CTL_ANSWERS (64u << 10) /* bytes of answers that are kept for a reader */

/* A running verb. It belongs to the request that waits for it, or (req NULL) to nobody: then it frees itself.
 */
struct ctl_run {
	struct cube_verb_call call;
	struct cube_deferred deferred;
	struct cube_tree *tree;
	struct cube_obj *obj;       /* referenced: keeps call.object */
	struct cube_handle *handle; /* NULL: nobody waits */
	struct cube_req *req;
	bool held; /* being started or cancelled: its end is only noted */
	bool ended;
	int code;
	bool again;     /* it may have been done by the worker before */
	char verb[12];  /* the first word, if it is that short */
	size_t line_at; /* bytes of the request in front of this line */
	char what[200]; /* for the `error` files */
};

struct ctl_scope {
	const struct cube_type *type;
	enum cube_scope scope;
};

static const struct ctl_scope ctl_scopes[] = {
	{&cube_type_root, CUBE_SCOPE_ROOT},
	{&cube_type_service, CUBE_SCOPE_BACKEND},
	{&cube_type_template, CUBE_SCOPE_TEMPLATE},
	{&cube_type_cube, CUBE_SCOPE_CUBE},
	{&cube_type_session, CUBE_SCOPE_SESSION},
	{&cube_type_job, CUBE_SCOPE_JOB},
	{&cube_type_stock, CUBE_SCOPE_POOL},
	{&cube_type_port, CUBE_SCOPE_PORT},
	{&cube_type_checkpoint, CUBE_SCOPE_CHECKPOINT},
};

static enum cube_scope ctl_scope(const struct cube_type *type)
{
	size_t i = 0;

	while (ctl_scopes[i].type != type)
		i++;
	return ctl_scopes[i].scope;
}

/* ---- a verb's life ---- */

static void ctl_run_freed(struct cube_deferred *d)
{
	struct ctl_run *u = cube_container_of(d, struct ctl_run, deferred);
	struct cube_domain *domain = u->tree->domain;

	cube_domain_enter(domain);
	cube_obj_unref(u->obj);
	cube_domain_leave(domain);
	cube_free(u);
}

/* Soon: whoever calls `done` may look at the call once more. */
static void ctl_run_free(struct ctl_run *u)
{
	u->deferred.fn = ctl_run_freed;
	cube_domain_defer(u->tree->domain, &u->deferred);
}

/* Nobody waits for it any more (or nobody ever did). */
static void ctl_orphan(struct ctl_run *u)
{
	struct cube_handle *h = cube_steal(u->handle);

	u->req = NULL;
	if (h != NULL) {
		h->verbs--;
		cube_wake(&h->idle);
	}
}

static void ctl_note(struct ctl_run *u)
{
	cube_tree_note(u->tree, u->obj, &u->call.by, u->what, &u->call.err);
}

static void ctl_done(struct cube_verb_call *call, int code)
{
	struct ctl_run *u = cube_container_of(call, struct ctl_run, call);

	u->ended = true;
	u->code = code;
	if (code < 0 && call->err.code != code)
		cube_fail(&call->err, code, "%s", cube_errno_text(code));
	if (u->held)
		return;
	if (u->req != NULL) {
		cube_req_unpark(u->req);
		cube_req_run(u->req);
		return;
	}
	if (code < 0)
		ctl_note(u);
	ctl_run_free(u);
}

static struct ctl_run *ctl_run_new(struct cube_handle *h, const struct cube_caller *by)
{
	struct ctl_run *u = cube_calloc(1, sizeof(*u));
	struct cube_buf what = CUBE_BUF(sizeof(u->what) - 1);
	size_t len = h->in.len < 120 ? h->in.len : 120;

	if (u == NULL)
		return NULL;
	u->tree = h->tree;
	u->obj = cube_obj_ref(h->node->obj);
	u->handle = h;
	h->verbs++;
	u->call = (struct cube_verb_call){.domain = h->tree->domain,
					  .scope = ctl_scope(u->obj->type),
					  .object = u->obj->parent == NULL ? NULL : u->obj->p,
					  .by = *by,
					  .done = ctl_done};
	(void)cube_buf_printf(&what, "write %s/ctl: ", u->obj->type->name(u->obj->p));
	(void)cube_buf_add_escaped(&what, h->in.data, len, false);
	(void)snprintf(u->what, sizeof(u->what), "%s", cube_buf_str(&what));
	cube_buf_done(&what);
	return u;
}

/* Starts the line in h->in, which is empty afterwards. */
static void ctl_start(struct ctl_run *u, struct cube_handle *h)
{
	size_t len = h->in.len;

	if (len > 0 && h->in.data[len - 1] == '\n')
		len--;
	u->held = true;
	cube_verb_start(&u->call, len > 0 ? h->in.data : "", len);
	u->held = false;
	cube_collect_drop(h);
}

/* ---- should this worker be killed before the line has ended ---- */

static void ctl_verb_note(struct cube_verb_call *call, uint64_t number)
{
	struct ctl_run *u = cube_container_of(call, struct ctl_run, call);

	if (u->req != NULL)
		cube_kept_intent(u->handle, u->req->unique, number);
}

/* Another line of the same request may have noted something. */
static void ctl_keep(struct ctl_run *u, const struct cube_req *r)
{
	u->again = r->again;
	u->call.noted = r->again ? cube_kept_noted(r) : 0;
	u->call.note = ctl_verb_note;
	if (!r->again)
		cube_kept_intent(u->handle, r->unique, 0);
}

/* ---- answers ---- */

static void ctl_answer(struct cube_handle *h, const struct ctl_run *u)
{
	size_t before;

	if (!h->channel)
		return;
	if (h->text.len > CTL_ANSWERS) {
		cube_buf_reset(&h->text); /* nobody reads them */
		h->text_off = h->text_end;
	}
	before = h->text.len;
	if (u->code == 0)
		(void)cube_buf_printf(&h->text, "ok%s%s\n", u->call.answer[0] ? " " : "", u->call.answer);
	else
		(void)cube_buf_printf(&h->text, "%s %s\n", cube_errno_name(u->code), u->call.err.text);
	cube_kept_answer(h, h->text.data + before, h->text.len - before);
}

/* ---- writing ---- */

static void ctl_call_off(struct cube_req *r, bool interrupted)
{
	struct ctl_run *u = r->state;

	if (u == NULL)
		return;
	if (interrupted)
		cube_verb_cancel(
			&u->call); /* ends the request by ctl_done, unless the verb cannot stop at once */
	if (!r->finished) {
		r->progress = u->line_at; /* what is behind it has not happened for the caller */
		r->state = NULL;
		ctl_orphan(u);
	}
}

static int ctl_step(struct cube_req *r);

/* Verbs that find what they are to do done already. */
static const struct {
	const char *verb;
	int code;
} ctl_was_done[] = {
	{"create", -EEXIST},     {"fork", -EEXIST},     {"mkdir", -EEXIST},
	{"checkpoint", -EEXIST}, {"template", -EEXIST}, {"rmdir", -ENOENT},
	{"rename", -ENOENT},     {"mv", -ENOENT},       {"unbind", -ENOENT},
};

static bool ctl_done_before(const struct ctl_run *u)
{
	if (!u->again)
		return false;
	for (size_t i = 0; i < CUBE_COUNT(ctl_was_done); i++)
		if (u->code == ctl_was_done[i].code && strcmp(u->verb, ctl_was_done[i].verb) == 0)
			return true;
	return false;
}

/* The verb of the request has ended. 1: go on with the next line; else the request's result. */
static int ctl_ended(struct cube_req *r, struct cube_handle *h)
{
	struct ctl_run *u = cube_steal(r->state);
	size_t done = u->line_at;
	int code;

	if (ctl_done_before(u))
		u->code = 0;
	code = u->code;
	if (code == 0 || done == 0)
		ctl_answer(h, u); /* else the caller writes the line again, and gets the answer then */
	ctl_orphan(u);            /* wakes who waits for the answer */
	if (code < 0) {
		r->err = u->call.err;
		r->noted = true;
		if (code != -EINTR)
			ctl_note(u);
	}
	ctl_run_free(u);
	if (code == 0) {
		cube_kept_save(h, r); /* this line is dealt with, whatever becomes of the next */
		return 1;
	}
	return done > 0 ? (int)done : code;
}

/* Runs what is in h->in for @r. 1: it has ended well; CUBE_PARK; or the request's result. */
static int ctl_line(struct cube_req *r, struct cube_handle *h, size_t line_at)
{
	struct ctl_run *u = ctl_run_new(h, &r->caller);
	int code;

	if (u == NULL)
		return cube_fail(&r->err, -ENOMEM, "out of memory");
	u->req = r;
	u->call.hold = h->channel ? &h->hold : NULL;
	ctl_keep(u, r);
	r->again = false; /* what follows it is new */
	(void)snprintf(u->verb, sizeof(u->verb), "%.*s", (int)strcspn(cube_buf_str(&h->in), " \t\n"),
		       cube_buf_str(&h->in));
	cube_kept_save(h, r); /* up to here, and this line to be run */
	u->line_at = line_at;
	r->state = u;
	r->step = ctl_step;
	r->on_cancel = ctl_call_off;
	ctl_start(u, h);
	if (u->ended)
		return ctl_ended(r, h);
	code = cube_req_park(r);
	if (code != CUBE_PARK) {
		ctl_orphan(u);
		r->state = NULL;
	}
	return code;
}

/* Takes lines from the write until one waits, one fails, or all is dealt with. */
static int ctl_lines(struct cube_req *r, struct cube_handle *h)
{
	while (r->progress < r->size) {
		const char *at = r->data + r->progress;
		const char *end = memchr(at, '\n', r->size - r->progress);
		size_t line_at = r->progress, len = end == NULL ? r->size - line_at : (size_t)(end + 1 - at);
		int code = cube_collect_add(r, h, at, len);

		if (code < 0) {
			cube_collect_drop(h);
			return line_at > 0 ? (int)line_at : code;
		}
		r->progress += len;
		if (end == NULL)
			break;
		code = ctl_line(r, h, line_at);
		if (code != 1)
			return code;
	}
	return (int)r->size;
}

/* Every step of a write or a close behind the first. */
static int ctl_step(struct cube_req *r)
{
	struct cube_handle *h = r->handle;
	int code;

	code = r->state != NULL ? ctl_ended(r, h) : 1;
	if (r->op == CUBE_REQ_READ)
		return h->class->read(r, h); /* the answer says how it ended */
	if (code != 1)
		return code;
	return r->op == CUBE_REQ_WRITE ? ctl_lines(r, h) : 0;
}

/* The worker before had begun with this write: what it had dealt with is not done again. True: the line in h->in was
 * about to run, or has. */
static bool ctl_resumes(struct cube_req *r, struct cube_handle *h)
{
	if (!r->again || h->last_unique == 0 || h->last_unique != r->unique)
		return false;
	h->last_unique = 0;
	r->progress = h->last_progress < r->size ? h->last_progress : r->size;
	return h->in.len > 0 && h->in.data[h->in.len - 1] == '\n';
}

static int ctl_write(struct cube_req *r, struct cube_handle *h)
{
	int code;

	if (h->verbs > 0)
		return cube_req_wait(r, &h->idle); /* the lines of one open run in order */
	if (ctl_resumes(r, h)) {
		code = ctl_line(r, h, r->progress - (h->in.len < r->progress ? h->in.len : r->progress));
		if (code != 1)
			return code;
	}
	return ctl_lines(r, h);
}

static int ctl_flush(struct cube_req *r, struct cube_handle *h)
{
	int code;

	if (h->channel || h->in.len == 0 || h->verbs > 0)
		return 0;
	code = cube_collect_closes(r, h);
	if (code != 1)
		return code;
	code = ctl_line(r, h, 0);
	return code == 1 ? 0 : code;
}

static void ctl_release(struct cube_handle *h)
{
	struct ctl_run *u;

	if (h->in.len == 0 || h->tree->closing)
		return;
	u = ctl_run_new(h, &h->by);
	if (u == NULL)
		return;
	ctl_orphan(u);
	ctl_start(u, h);
	if (!u->ended)
		return;
	if (u->code < 0)
		ctl_note(u);
	ctl_run_free(u);
}

/* ---- reading the answers ---- */

static int ctl_read(struct cube_req *r, struct cube_handle *h)
{
	int code;

	if (!h->channel)
		return cube_handle_give(r, &h->text, r->offset);
	if (h->verbs > 0)
		return cube_req_wait(r, &h->idle);
	if (h->in.len > 0) {
		code = ctl_line(r, h, 0);
		if (code == CUBE_PARK)
			return code;
	}
	if (h->text.len == 0)
		return 0;
	r->out_len = h->text.len < r->size ? h->text.len : r->size;
	r->own = cube_memdup(h->text.data, r->out_len);
	if (r->own == NULL)
		return cube_fail(&r->err, -ENOMEM, "out of memory");
	cube_buf_drop(&h->text, r->out_len);
	h->text_off += (uint32_t)r->out_len;
	r->out = r->own;
	return (int)r->out_len;
}

static unsigned ctl_poll(struct cube_handle *h, unsigned events, struct cube_waitq **wait)
{
	(void)events;
	if (h->verbs == 0)
		return POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM;
	*wait = &h->idle;
	return POLLOUT | POLLWRNORM;
}

static int ctl_adopt(struct cube_handle *h)
{
	if (h->channel)
		cube_kept_read_text(h);
	return 0;
}

const struct cube_class cube_class_ctl = {
	.adopt = ctl_adopt,
	.channel = true,
	.collects = true,
	.read = ctl_read,
	.write = ctl_write,
	.flush = ctl_flush,
	.release = ctl_release,
	.poll = ctl_poll,
};
