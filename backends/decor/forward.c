/* SPDX-License-Identifier: Apache-2.0 */
/* Pass-through functions, so that a decorator has only what it changes. */
#include "backends/decor/forward.h"

#include <string.h>

#include "backends/base/alloc.h"

struct around {
	struct cube_forward *fw;
	const struct cube_backend_ops *ops; /* of the one inside */
	struct cube_backend *inner;
	struct cube_call call;
	struct cube_err *err;
};

static struct around around(struct cube_backend *b, const char *op, const char *on,
			    struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_forward *fw = cube_forward_of(b);

	return (struct around){
		.fw = fw,
		.ops = fw->inner->ops,
		.inner = fw->inner,
		.call = {.op = op, .on = on, .cancel = cancel},
		.err = err,
	};
}

static int before(struct around *a)
{
	return a->fw->before != NULL ? a->fw->before(a->fw, &a->call, a->err) : 0;
}

static int after(struct around *a, int r)
{
	return a->fw->after != NULL ? a->fw->after(a->fw, &a->call, r, a->err) : r;
}

static int forward_status(struct cube_backend *b, struct cube_cancel *cancel, struct cube_status *ret,
			  struct cube_err *err)
{
	struct around a = around(b, "status", NULL, cancel, err);
	struct cube_status st = *ret;
	int r = before(&a);

	if (r == 0)
		r = a.ops->status(a.inner, cancel, &st, err);
	r = after(&a, r);
	if (r == 0)
		*ret = st;
	return r;
}

static void forward_doctor(struct cube_backend *b,
			   void (*say)(void *ctx, bool ok, const char *what, const char *fix), void *ctx)
{
	struct around a = around(b, "doctor", NULL, NULL, NULL);

	a.ops->doctor(a.inner, say, ctx);
}

static int forward_create(struct cube_backend *b, const struct cube_spec *spec, struct cube_cancel *cancel,
			  char **ret_id, struct cube_err *err)
{
	struct around a = around(b, "create", spec->name, cancel, err);
	cube_auto_str id = NULL;
	int r = before(&a);

	if (r == 0)
		r = a.ops->create(a.inner, spec, cancel, &id, err);
	r = after(&a, r);
	if (r == 0)
		*ret_id = cube_steal(id);
	return r;
}

static int forward_destroy(struct cube_backend *b, const char *id, struct cube_err *err)
{
	struct around a = around(b, "destroy", id, NULL, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->destroy(a.inner, id, err);
	return after(&a, r);
}

static int forward_inspect(struct cube_backend *b, const char *id, struct cube_info *ret,
			   struct cube_err *err)
{
	struct around a = around(b, "inspect", id, NULL, err);
	struct cube_info info = *ret;
	int r = before(&a);

	if (r == 0)
		r = a.ops->inspect(a.inner, id, &info, err);
	r = after(&a, r);
	if (r == 0)
		*ret = info;
	return r;
}

static int forward_list(struct cube_backend *b, struct cube_cancel *cancel,
			void (*each)(void *ctx, const struct cube_info *info), void *ctx,
			struct cube_err *err)
{
	struct around a = around(b, "list", NULL, cancel, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->list(a.inner, cancel, each, ctx, err);
	return after(&a, r);
}

static int forward_adopt(struct cube_backend *b, const char *id, const char *uid, struct cube_cancel *cancel,
			 struct cube_err *err)
{
	struct around a = around(b, "adopt", id, cancel, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->adopt(a.inner, id, uid, cancel, err);
	return after(&a, r);
}

static int forward_let_go(struct cube_backend *b, const char *id, struct cube_err *err)
{
	struct around a = around(b, "let_go", id, NULL, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->let_go(a.inner, id, err);
	return after(&a, r);
}

static int forward_start(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
			 struct cube_err *err)
{
	struct around a = around(b, "start", id, cancel, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->start(a.inner, id, cancel, err);
	return after(&a, r);
}

static int forward_stop(struct cube_backend *b, const char *id, uint32_t grace_s, struct cube_cancel *cancel,
			struct cube_err *err)
{
	struct around a = around(b, "stop", id, cancel, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->stop(a.inner, id, grace_s, cancel, err);
	return after(&a, r);
}

static int forward_pause(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
			 struct cube_err *err)
{
	struct around a = around(b, "pause", id, cancel, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->pause(a.inner, id, cancel, err);
	return after(&a, r);
}

static int forward_resume(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
			  struct cube_err *err)
{
	struct around a = around(b, "resume", id, cancel, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->resume(a.inner, id, cancel, err);
	return after(&a, r);
}

static int forward_limit(struct cube_backend *b, const char *id, const struct cube_limits *limits,
			 struct cube_err *err)
{
	struct around a = around(b, "limit", id, NULL, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->limit(a.inner, id, limits, err);
	return after(&a, r);
}

static int forward_rename(struct cube_backend *b, const char *id, const char *name, struct cube_err *err)
{
	struct around a = around(b, "rename", id, NULL, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->rename(a.inner, id, name, err);
	return after(&a, r);
}

static int forward_link(struct cube_backend *b, const char *id, const struct cube_link_handler *handler,
			void *ctx, struct cube_cancel *cancel, struct cube_link **ret, struct cube_err *err)
{
	struct around a = around(b, "link", id, cancel, err);
	struct cube_link *l = NULL;
	int r = before(&a);

	if (r == 0)
		r = a.ops->link(a.inner, id, handler, ctx, cancel, &l, err);
	r = after(&a, r);
	if (r == 0)
		*ret = l;
	else
		cube_link_close(l);
	return r;
}

static int give_root(struct cube_root *root, int r, struct cube_root *ret)
{
	if (r == 0)
		*ret = *root;
	else
		cube_root_close(root);
	return r;
}

static int forward_root(struct cube_backend *b, const char *id, struct cube_root *ret, struct cube_err *err)
{
	struct around a = around(b, "root", id, NULL, err);
	struct cube_root root = {.fd = -1};
	int r = before(&a);

	if (r == 0)
		r = a.ops->root(a.inner, id, &root, err);
	return give_root(&root, after(&a, r), ret);
}

static int forward_usage(struct cube_backend *b, const char *id, struct cube_usage *ret, struct cube_err *err)
{
	struct around a = around(b, "usage", id, NULL, err);
	struct cube_usage usage = *ret;
	int r = before(&a);

	if (r == 0)
		r = a.ops->usage(a.inner, id, &usage, err);
	r = after(&a, r);
	if (r == 0)
		*ret = usage;
	return r;
}

static int forward_expire(struct cube_backend *b, const char *id, uint64_t wall_ns, enum cube_expiry what,
			  struct cube_err *err)
{
	struct around a = around(b, "expire", id, NULL, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->expire(a.inner, id, wall_ns, what, err);
	return after(&a, r);
}

static int forward_written(struct cube_backend *b, const char *id, uint64_t *ret, struct cube_err *err)
{
	struct around a = around(b, "written", id, NULL, err);
	uint64_t n = 0;
	int r = before(&a);

	if (r == 0)
		r = a.ops->written(a.inner, id, &n, err);
	r = after(&a, r);
	if (r == 0)
		*ret = n;
	return r;
}

static int forward_dial(struct cube_backend *b, const char *id, const struct cube_target *target,
			struct cube_cancel *cancel, int *ret_fd, struct cube_err *err)
{
	struct around a = around(b, "dial", id, cancel, err);
	cube_auto_fd fd = -1;
	int r = before(&a);

	if (r == 0)
		r = a.ops->dial(a.inner, id, target, cancel, &fd, err);
	r = after(&a, r);
	if (r == 0)
		*ret_fd = cube_steal_fd(&fd);
	return r;
}

static int forward_listening(struct cube_backend *b, const char *id,
			     void (*each)(void *ctx, const struct cube_listener *l), void *ctx,
			     struct cube_err *err)
{
	struct around a = around(b, "listening", id, NULL, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->listening(a.inner, id, each, ctx, err);
	return after(&a, r);
}

static int forward_access(struct cube_backend *b, const char *id, void (*each)(void *ctx, const char *line),
			  void *ctx, struct cube_err *err)
{
	struct around a = around(b, "access", id, NULL, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->access(a.inner, id, each, ctx, err);
	return after(&a, r);
}

static int forward_template_list(struct cube_backend *b,
				 void (*each)(void *ctx, const struct cube_template *t), void *ctx,
				 struct cube_err *err)
{
	struct around a = around(b, "template_list", NULL, NULL, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->template_list(a.inner, each, ctx, err);
	return after(&a, r);
}

/* Looks at words alone, so that nothing can go wrong with it. */
static int forward_template_check(struct cube_backend *b, const struct cube_template_order *o,
				  struct cube_err *err)
{
	struct cube_forward *fw = cube_forward_of(b);

	return fw->inner->ops->template_check(fw->inner, o, err);
}

static int forward_template_import(struct cube_backend *b, const struct cube_template_order *o,
				   struct cube_cancel *cancel, struct cube_err *err)
{
	struct around a = around(b, "template_import", o->name, cancel, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->template_import(a.inner, o, cancel, err);
	return after(&a, r);
}

static int forward_template_remove(struct cube_backend *b, const char *name, struct cube_err *err)
{
	struct around a = around(b, "template_remove", name, NULL, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->template_remove(a.inner, name, err);
	return after(&a, r);
}

static int forward_template_config(struct cube_backend *b, const char *name, struct cube_template_config *ret,
				   struct cube_err *err)
{
	struct around a = around(b, "template_config", name, NULL, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->template_config(a.inner, name, ret, err);
	return after(&a, r);
}

static int forward_template_commit(struct cube_backend *b, const char *id, const char *name,
				   struct cube_cancel *cancel, struct cube_err *err)
{
	struct around a = around(b, "template_commit", id, cancel, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->template_commit(a.inner, id, name, cancel, err);
	return after(&a, r);
}

static int forward_template_derive(struct cube_backend *b, const char *base, const struct cube_template *t,
				   const struct cube_template_config *config, struct cube_err *err)
{
	struct around a = around(b, "template_derive", t->name, NULL, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->template_derive(a.inner, base, t, config, err);
	return after(&a, r);
}

static int forward_template_keep(struct cube_backend *b, const char *cp, const struct cube_template *t,
				 struct cube_cancel *cancel, struct cube_err *err)
{
	struct around a = around(b, "template_keep", t->name, cancel, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->template_keep(a.inner, cp, t, cancel, err);
	return after(&a, r);
}

static int forward_volume_make(struct cube_backend *b, const char *uid, const char *name,
			       struct cube_cancel *cancel, struct cube_err *err)
{
	struct around a = around(b, "volume_make", uid, cancel, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->volume_make(a.inner, uid, name, cancel, err);
	return after(&a, r);
}

static int forward_volume_remove(struct cube_backend *b, const char *uid, struct cube_err *err)
{
	struct around a = around(b, "volume_remove", uid, NULL, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->volume_remove(a.inner, uid, err);
	return after(&a, r);
}

static int forward_volume_list(struct cube_backend *b, void (*each)(void *ctx, const struct cube_volume *v),
			       void *ctx, struct cube_err *err)
{
	struct around a = around(b, "volume_list", NULL, NULL, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->volume_list(a.inner, each, ctx, err);
	return after(&a, r);
}

static int forward_volume_root(struct cube_backend *b, const char *uid, struct cube_root *ret,
			       struct cube_err *err)
{
	struct around a = around(b, "volume_root", uid, NULL, err);
	struct cube_root root = {.fd = -1};
	int r = before(&a);

	if (r == 0)
		r = a.ops->volume_root(a.inner, uid, &root, err);
	return give_root(&root, after(&a, r), ret);
}

static int forward_volume_copy(struct cube_backend *b, const char *cp, const char *from, const char *to,
			       struct cube_cancel *cancel, struct cube_err *err)
{
	struct around a = around(b, "volume_copy", to, cancel, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->volume_copy(a.inner, cp, from, to, cancel, err);
	return after(&a, r);
}

static int forward_checkpoint(struct cube_backend *b, const char *id, const struct cube_take *take,
			      struct cube_cancel *cancel, uint32_t *ret_still_ms, struct cube_err *err)
{
	struct around a = around(b, "checkpoint", id, cancel, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->checkpoint(a.inner, id, take, cancel, ret_still_ms, err);
	return after(&a, r);
}

static int forward_checkpoint_list(struct cube_backend *b,
				   void (*each)(void *ctx, const struct cube_checkpoint *c), void *ctx,
				   struct cube_err *err)
{
	struct around a = around(b, "checkpoint_list", NULL, NULL, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->checkpoint_list(a.inner, each, ctx, err);
	return after(&a, r);
}

static int forward_checkpoint_remove(struct cube_backend *b, const char *cp, struct cube_err *err)
{
	struct around a = around(b, "checkpoint_remove", cp, NULL, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->checkpoint_remove(a.inner, cp, err);
	return after(&a, r);
}

static int forward_checkpoint_root(struct cube_backend *b, const char *cp, struct cube_root *ret,
				   struct cube_err *err)
{
	struct around a = around(b, "checkpoint_root", cp, NULL, err);
	struct cube_root root = {.fd = -1};
	int r = before(&a);

	if (r == 0)
		r = a.ops->checkpoint_root(a.inner, cp, &root, err);
	return give_root(&root, after(&a, r), ret);
}

static int forward_restore(struct cube_backend *b, const char *id, const char *cp, struct cube_cancel *cancel,
			   struct cube_err *err)
{
	struct around a = around(b, "restore", id, cancel, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->restore(a.inner, id, cp, cancel, err);
	return after(&a, r);
}

static int forward_reset(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
			 struct cube_err *err)
{
	struct around a = around(b, "reset", id, cancel, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->reset(a.inner, id, cancel, err);
	return after(&a, r);
}

static int forward_changes(struct cube_backend *b, const struct cube_changes *what,
			   struct cube_cancel *cancel, struct cube_err *err)
{
	struct around a = around(b, "changes", what->cp != NULL ? what->cp : what->id, cancel, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->changes(a.inner, what, cancel, err);
	return after(&a, r);
}

static int forward_bind(struct cube_backend *b, const char *id, const struct cube_bind *bind,
			struct cube_cancel *cancel, struct cube_err *err)
{
	struct around a = around(b, "bind", id, cancel, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->bind(a.inner, id, bind, cancel, err);
	return after(&a, r);
}

static int forward_unbind(struct cube_backend *b, const char *id, const char *path, struct cube_err *err)
{
	struct around a = around(b, "unbind", id, NULL, err);
	int r = before(&a);

	if (r == 0)
		r = a.ops->unbind(a.inner, id, path, err);
	return after(&a, r);
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
		.prepare = from->prepare,
		.open = from->open,
		.close = forward_close,
		KEEP(status),
		KEEP(doctor),
		KEEP(create),
		KEEP(destroy),
		KEEP(inspect),
		KEEP(list),
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
		KEEP(template_list),
		KEEP(template_import),
		KEEP(template_check),
		KEEP(template_remove),
		KEEP(volume_make),
		KEEP(volume_remove),
		KEEP(volume_list),
		KEEP(volume_copy),
		KEEP(volume_root),
		KEEP(checkpoint),
		KEEP(checkpoint_list),
		KEEP(checkpoint_remove),
		KEEP(checkpoint_root),
		KEEP(restore),
		KEEP(reset),
		KEEP(changes),
		KEEP(bind),
		KEEP(unbind),
		KEEP(template_config),
		KEEP(template_commit),
		KEEP(template_derive),
		KEEP(template_keep),
	};
}

void cube_forward_init(struct cube_forward *fw, struct cube_backend *inner)
{
	fw->ops = forward_ops(inner->ops);
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
