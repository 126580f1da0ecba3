/* SPDX-License-Identifier: Apache-2.0 */
/* Pass-through functions, so that a decorator has only what it changes. */
#include "backends/decor/forward_priv.h"

#include "backends/base/alloc.h"

struct cube_around cube_forward_around(struct cube_backend *b, const char *op, const char *on,
				       struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_forward *fw = cube_forward_of(b);

	return (struct cube_around){
		.fw = fw,
		.ops = fw->inner->ops,
		.inner = fw->inner,
		.call = {.op = op, .on = on, .cancel = cancel},
		.err = err,
	};
}

int cube_forward_before(struct cube_around *a)
{
	return a->fw->before != NULL ? a->fw->before(a->fw, &a->call, a->err) : 0;
}

int cube_forward_after(struct cube_around *a, int r)
{
	return a->fw->after != NULL ? a->fw->after(a->fw, &a->call, r, a->err) : r;
}

int cube_forward_root(struct cube_root *root, int r, struct cube_root *ret)
{
	if (r == 0)
		*ret = *root;
	else
		cube_root_close(root);
	return r;
}

static int forward_status(struct cube_backend *b, struct cube_cancel *cancel, struct cube_status *ret,
			  struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "status", NULL, cancel, err);
	struct cube_status st = *ret;
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->status(a.inner, cancel, &st, err);
	r = cube_forward_after(&a, r);
	if (r == 0)
		*ret = st;
	return r;
}

static void forward_doctor(struct cube_backend *b,
			   void (*say)(void *ctx, bool ok, const char *what, const char *fix), void *ctx)
{
	struct cube_around a = cube_forward_around(b, "doctor", NULL, NULL, NULL);

	a.ops->doctor(a.inner, say, ctx);
}

static int forward_create(struct cube_backend *b, const struct cube_spec *spec, struct cube_cancel *cancel,
			  char **ret_id, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "create", spec->name, cancel, err);
	cube_auto_str id = NULL;
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->create(a.inner, spec, cancel, &id, err);
	r = cube_forward_after(&a, r);
	if (r == 0)
		*ret_id = cube_steal(id);
	return r;
}

static int forward_destroy(struct cube_backend *b, const char *id, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "destroy", id, NULL, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->destroy(a.inner, id, err);
	return cube_forward_after(&a, r);
}

static int forward_inspect(struct cube_backend *b, const char *id, struct cube_info *ret,
			   struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "inspect", id, NULL, err);
	struct cube_info info = *ret;
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->inspect(a.inner, id, &info, err);
	r = cube_forward_after(&a, r);
	if (r == 0)
		*ret = info;
	return r;
}

static int forward_list(struct cube_backend *b, struct cube_cancel *cancel,
			void (*each)(void *ctx, const struct cube_info *info), void *ctx,
			struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "list", NULL, cancel, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->list(a.inner, cancel, each, ctx, err);
	return cube_forward_after(&a, r);
}

static int forward_watch(struct cube_backend *b, const struct cube_news *news, struct cube_cancel *cancel,
			 struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "watch", NULL, cancel, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->watch(a.inner, news, cancel, err);
	return cube_forward_after(&a, r);
}

static int forward_adopt(struct cube_backend *b, const char *id, const char *uid, struct cube_cancel *cancel,
			 struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "adopt", id, cancel, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->adopt(a.inner, id, uid, cancel, err);
	return cube_forward_after(&a, r);
}

static int forward_let_go(struct cube_backend *b, const char *id, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "let_go", id, NULL, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->let_go(a.inner, id, err);
	return cube_forward_after(&a, r);
}

static int forward_start(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
			 struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "start", id, cancel, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->start(a.inner, id, cancel, err);
	return cube_forward_after(&a, r);
}

static int forward_stop(struct cube_backend *b, const char *id, uint32_t grace_s, struct cube_cancel *cancel,
			struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "stop", id, cancel, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->stop(a.inner, id, grace_s, cancel, err);
	return cube_forward_after(&a, r);
}

static int forward_pause(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
			 struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "pause", id, cancel, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->pause(a.inner, id, cancel, err);
	return cube_forward_after(&a, r);
}

static int forward_resume(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
			  struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "resume", id, cancel, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->resume(a.inner, id, cancel, err);
	return cube_forward_after(&a, r);
}

static int forward_limit(struct cube_backend *b, const char *id, const struct cube_limits *limits,
			 struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "limit", id, NULL, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->limit(a.inner, id, limits, err);
	return cube_forward_after(&a, r);
}

static int forward_rename(struct cube_backend *b, const char *id, const char *name, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "rename", id, NULL, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->rename(a.inner, id, name, err);
	return cube_forward_after(&a, r);
}

static int forward_link(struct cube_backend *b, const char *id, const struct cube_link_handler *handler,
			void *ctx, struct cube_cancel *cancel, struct cube_link **ret, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "link", id, cancel, err);
	struct cube_link *l = NULL;
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->link(a.inner, id, handler, ctx, cancel, &l, err);
	r = cube_forward_after(&a, r);
	if (r == 0)
		*ret = l;
	else
		cube_link_close(l);
	return r;
}

static int forward_root(struct cube_backend *b, const char *id, struct cube_root *ret, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "root", id, NULL, err);
	struct cube_root root = {.fd = -1};
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->root(a.inner, id, &root, err);
	return cube_forward_root(&root, cube_forward_after(&a, r), ret);
}

static int forward_usage(struct cube_backend *b, const char *id, struct cube_usage *ret, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "usage", id, NULL, err);
	struct cube_usage usage = *ret;
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->usage(a.inner, id, &usage, err);
	r = cube_forward_after(&a, r);
	if (r == 0)
		*ret = usage;
	return r;
}

static int forward_expire(struct cube_backend *b, const char *id, uint64_t wall_ns, enum cube_expiry what,
			  struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "expire", id, NULL, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->expire(a.inner, id, wall_ns, what, err);
	return cube_forward_after(&a, r);
}

static int forward_written(struct cube_backend *b, const char *id, uint64_t *ret, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "written", id, NULL, err);
	uint64_t n = 0;
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->written(a.inner, id, &n, err);
	r = cube_forward_after(&a, r);
	if (r == 0)
		*ret = n;
	return r;
}

static int forward_dial(struct cube_backend *b, const char *id, const struct cube_target *target,
			struct cube_cancel *cancel, int *ret_fd, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "dial", id, cancel, err);
	cube_auto_fd fd = -1;
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->dial(a.inner, id, target, cancel, &fd, err);
	r = cube_forward_after(&a, r);
	if (r == 0)
		*ret_fd = cube_steal_fd(&fd);
	return r;
}

static int forward_listening(struct cube_backend *b, const char *id,
			     void (*each)(void *ctx, const struct cube_listener *l), void *ctx,
			     struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "listening", id, NULL, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->listening(a.inner, id, each, ctx, err);
	return cube_forward_after(&a, r);
}

static int forward_access(struct cube_backend *b, const char *id, void (*each)(void *ctx, const char *line),
			  void *ctx, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "access", id, NULL, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->access(a.inner, id, each, ctx, err);
	return cube_forward_after(&a, r);
}

static int forward_bind(struct cube_backend *b, const char *id, const struct cube_bind *bind,
			struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "bind", id, cancel, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->bind(a.inner, id, bind, cancel, err);
	return cube_forward_after(&a, r);
}

static int forward_unbind(struct cube_backend *b, const char *id, const char *path, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "unbind", id, NULL, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->unbind(a.inner, id, path, err);
	return cube_forward_after(&a, r);
}

static void forward_close(struct cube_backend *b)
{
	cube_forward_done(cube_forward_of(b));
}

#define KEEP(field) .field = from->field != NULL ? forward_##field : NULL

/* Capability and pointer agree in a decorator as they do in what it wraps. */
static struct cube_backend_ops forward_ops(const struct cube_backend_ops *from)
{
	return (struct cube_backend_ops){
		.abi = from->abi,
		.kind = from->kind,
		.summary = from->summary,
		.caps = from->caps,
		.par = from->par,
		.keys = from->keys,
		.beside_state = from->beside_state,
		.root_by_run = from->root_by_run,
		.own_checkpoints = from->own_checkpoints,
		.prepare = from->prepare,
		.entered = from->entered,
		.open = from->open,
		.close = forward_close,
		KEEP(status),
		KEEP(doctor),
		KEEP(create),
		KEEP(destroy),
		KEEP(inspect),
		KEEP(list),
		KEEP(watch),
		KEEP(start),
		KEEP(stop),
		KEEP(pause),
		KEEP(resume),
		KEEP(limit),
		KEEP(rename),
		KEEP(adopt),
		KEEP(let_go),
		KEEP(link),
		KEEP(root),
		KEEP(usage),
		KEEP(written),
		KEEP(expire),
		KEEP(dial),
		KEEP(listening),
		KEEP(access),
		KEEP(bind),
		KEEP(unbind),
	};
}

void cube_forward_init(struct cube_forward *fw, struct cube_backend *inner)
{
	fw->ops = forward_ops(inner->ops);
	cube_forward_kept(&fw->ops, inner->ops);
	fw->base = *inner;
	fw->base.ops = &fw->ops;
	fw->inner = inner;
	fw->before = NULL;
	fw->after = NULL;
}

void cube_forward_done(struct cube_forward *fw)
{
	fw->inner->ops->close(fw->inner);
	fw->inner = NULL;
}
