/* SPDX-License-Identifier: Apache-2.0 */
/* Pass-through functions of what is kept beside sandboxes: templates, volumes, checkpoints. */
#include "backends/decor/forward_priv.h"

static int forward_template_list(struct cube_backend *b,
				 void (*each)(void *ctx, const struct cube_template *t), void *ctx,
				 struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "template_list", NULL, NULL, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->template_list(a.inner, each, ctx, err);
	return cube_forward_after(&a, r);
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
	struct cube_around a = cube_forward_around(b, "template_import", o->name, cancel, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->template_import(a.inner, o, cancel, err);
	return cube_forward_after(&a, r);
}

static int forward_template_remove(struct cube_backend *b, const char *name, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "template_remove", name, NULL, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->template_remove(a.inner, name, err);
	return cube_forward_after(&a, r);
}

static int forward_template_config(struct cube_backend *b, const char *name, struct cube_template_config *ret,
				   struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "template_config", name, NULL, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->template_config(a.inner, name, ret, err);
	return cube_forward_after(&a, r);
}

static int forward_template_commit(struct cube_backend *b, const char *id, const char *name,
				   struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "template_commit", id, cancel, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->template_commit(a.inner, id, name, cancel, err);
	return cube_forward_after(&a, r);
}

static int forward_template_derive(struct cube_backend *b, const char *base, const struct cube_template *t,
				   const struct cube_template_config *config, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "template_derive", t->name, NULL, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->template_derive(a.inner, base, t, config, err);
	return cube_forward_after(&a, r);
}

static int forward_template_keep(struct cube_backend *b, const char *cp, const struct cube_template *t,
				 struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "template_keep", t->name, cancel, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->template_keep(a.inner, cp, t, cancel, err);
	return cube_forward_after(&a, r);
}

static int forward_volume_make(struct cube_backend *b, const char *uid, const char *name,
			       struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "volume_make", uid, cancel, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->volume_make(a.inner, uid, name, cancel, err);
	return cube_forward_after(&a, r);
}

static int forward_volume_remove(struct cube_backend *b, const char *uid, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "volume_remove", uid, NULL, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->volume_remove(a.inner, uid, err);
	return cube_forward_after(&a, r);
}

static int forward_volume_list(struct cube_backend *b, void (*each)(void *ctx, const struct cube_volume *v),
			       void *ctx, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "volume_list", NULL, NULL, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->volume_list(a.inner, each, ctx, err);
	return cube_forward_after(&a, r);
}

static int forward_volume_root(struct cube_backend *b, const char *uid, struct cube_root *ret,
			       struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "volume_root", uid, NULL, err);
	struct cube_root root = {.fd = -1};
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->volume_root(a.inner, uid, &root, err);
	return cube_forward_root(&root, cube_forward_after(&a, r), ret);
}

static int forward_volume_copy(struct cube_backend *b, const char *cp, const char *from, const char *to,
			       struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "volume_copy", to, cancel, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->volume_copy(a.inner, cp, from, to, cancel, err);
	return cube_forward_after(&a, r);
}

static int forward_checkpoint(struct cube_backend *b, const char *id, const struct cube_take *take,
			      struct cube_cancel *cancel, uint32_t *ret_still_ms, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "checkpoint", id, cancel, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->checkpoint(a.inner, id, take, cancel, ret_still_ms, err);
	return cube_forward_after(&a, r);
}

static int forward_checkpoint_list(struct cube_backend *b,
				   void (*each)(void *ctx, const struct cube_checkpoint *c), void *ctx,
				   struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "checkpoint_list", NULL, NULL, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->checkpoint_list(a.inner, each, ctx, err);
	return cube_forward_after(&a, r);
}

static int forward_checkpoint_remove(struct cube_backend *b, const char *cp, struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "checkpoint_remove", cp, NULL, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->checkpoint_remove(a.inner, cp, err);
	return cube_forward_after(&a, r);
}

static int forward_checkpoint_root(struct cube_backend *b, const char *cp, struct cube_root *ret,
				   struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "checkpoint_root", cp, NULL, err);
	struct cube_root root = {.fd = -1};
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->checkpoint_root(a.inner, cp, &root, err);
	return cube_forward_root(&root, cube_forward_after(&a, r), ret);
}

static int forward_restore(struct cube_backend *b, const char *id, const char *cp, struct cube_cancel *cancel,
			   struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "restore", id, cancel, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->restore(a.inner, id, cp, cancel, err);
	return cube_forward_after(&a, r);
}

static int forward_reset(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
			 struct cube_err *err)
{
	struct cube_around a = cube_forward_around(b, "reset", id, cancel, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->reset(a.inner, id, cancel, err);
	return cube_forward_after(&a, r);
}

static int forward_changes(struct cube_backend *b, const struct cube_changes *what,
			   struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_around a =
		cube_forward_around(b, "changes", what->cp != NULL ? what->cp : what->id, cancel, err);
	int r = cube_forward_before(&a);

	if (r == 0)
		r = a.ops->changes(a.inner, what, cancel, err);
	return cube_forward_after(&a, r);
}

#define KEEP(field) ops->field = from->field != NULL ? forward_##field : NULL

void cube_forward_kept(struct cube_backend_ops *ops, const struct cube_backend_ops *from)
{
	KEEP(template_list);
	KEEP(template_check);
	KEEP(template_import);
	KEEP(template_remove);
	KEEP(template_config);
	KEEP(template_commit);
	KEEP(template_derive);
	KEEP(template_keep);
	KEEP(volume_make);
	KEEP(volume_remove);
	KEEP(volume_list);
	KEEP(volume_root);
	KEEP(volume_copy);
	KEEP(checkpoint);
	KEEP(checkpoint_list);
	KEEP(checkpoint_remove);
	KEEP(checkpoint_root);
	KEEP(restore);
	KEEP(reset);
	KEEP(changes);
}
