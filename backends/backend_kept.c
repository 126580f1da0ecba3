/* SPDX-License-Identifier: Apache-2.0 */
/* The checked wrappers, continued: what is kept beside sandboxes. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/log.h"
#include "backends/base/name.h"
#include "backends/call.h"
#include "backends/check.h"

/* ---- Templates ---- */

static int call_begin_template(struct cube_call *c)
{
	int r = cube_call_begin(c, CUBE_CAP_TEMPLATES);

	if (r == 0 && (c->on == NULL || !cube_name_template_ok(c->on)))
		return cube_fail(&c->why, -EINVAL, "'%s' is no template name", c->on != NULL ? c->on : "");
	return r;
}

struct template_call {
	const struct cube_backend *b;
	void (*each)(void *ctx, const struct cube_template *t);
	void *ctx;
};

static void template_each(void *ctx, const struct cube_template *t)
{
	const struct template_call *l = ctx;
	struct cube_template copy = *t;

	if (cube_check_template(&copy))
		l->each(l->ctx, &copy);
	else
		cube_log(CUBE_LOG_WARNING, "backend", "%s: lists a template with an unusable name: %s",
			 l->b->name, copy.name);
}

int cube_backend_template_list(struct cube_backend *b, void (*each)(void *ctx, const struct cube_template *t),
			       void *ctx, struct cube_err *err)
{
	struct cube_call c = CALL("template_list", NULL);
	struct template_call l = {.b = b, .each = each, .ctx = ctx};
	int r = cube_call_begin(&c, CUBE_CAP_TEMPLATES);

	if (r == 0)
		r = b->ops->template_list(b, template_each, &l, &c.why);
	return cube_call_end(&c, r, err);
}

int cube_backend_template_check(struct cube_backend *b, const struct cube_template_order *o,
				struct cube_err *err)
{
	struct cube_call c = CALL("template_check", o->name);
	int r = call_begin_template(&c);

	if (r == 0)
		r = b->ops->template_check(b, o, &c.why);
	return cube_call_end(&c, r, err);
}

int cube_backend_template_import(struct cube_backend *b, const struct cube_template_order *o,
				 struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_call c = CALL("template_import", o->name);
	int r = call_begin_template(&c);

	assert(o->log != NULL && o->progress != NULL);
	if (r == 0)
		r = b->ops->template_check(b, o, &c.why);
	if (r == 0)
		r = b->ops->template_import(b, o, cancel, &c.why);
	return cube_call_end(&c, r, err);
}

static int call_begin_template_or_layer(struct cube_call *c)
{
	if (c->on != NULL && cube_name_layer_ok(c->on))
		return cube_call_begin(c, CUBE_CAP_TEMPLATES);
	return call_begin_template(c);
}

int cube_backend_template_remove(struct cube_backend *b, const char *name, struct cube_err *err)
{
	struct cube_call c = CALL("template_remove", name);
	int r = call_begin_template_or_layer(&c);

	if (r == 0)
		r = b->ops->template_remove(b, name, &c.why);
	return cube_call_end(&c, r, err);
}

int cube_backend_template_config(struct cube_backend *b, const char *name, struct cube_template_config *ret,
				 struct cube_err *err)
{
	struct cube_call c = CALL("template_config", name);
	int r = call_begin_template_or_layer(&c);

	cube_template_config_init(ret);
	if (r == 0)
		r = b->ops->template_config(b, name, ret, &c.why);
	if (r == 0 && !cube_check_template_config(ret))
		r = cube_call_nonsense(&c, "an environment that is none");
	if (r < 0)
		cube_template_config_done(ret);
	return cube_call_end(&c, r, err);
}

int cube_backend_template_commit(struct cube_backend *b, const char *id, const char *name,
				 struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_call c = CALL("template_commit", id);
	int r = cube_call_begin_id(&c, CUBE_CAP_BUILD);

	if (r == 0 && !cube_name_layer_ok(name))
		r = cube_fail(&c.why, -EINVAL, "'%s' is no name of a layer", name);
	if (r == 0)
		r = b->ops->template_commit(b, id, name, cancel, &c.why);
	return cube_call_end(&c, r, err);
}

int cube_backend_template_derive(struct cube_backend *b, const char *base, const struct cube_template *t,
				 const struct cube_template_config *config, struct cube_err *err)
{
	struct cube_call c = CALL("template_derive", t->name);
	int r = call_begin_template(&c);

	if (r == 0)
		r = cube_backend_need(b, CUBE_CAP_BUILD, &c.why);
	if (r == 0 && !cube_name_template_ok(base) && !cube_name_layer_ok(base))
		r = cube_fail(&c.why, -EINVAL, "'%s' is no template name", base);
	if (r == 0)
		r = b->ops->template_derive(b, base, t, config, &c.why);
	return cube_call_end(&c, r, err);
}

int cube_backend_template_keep(struct cube_backend *b, const char *cp, const struct cube_template *t,
			       struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_call c = CALL("template_keep", t->name);
	int r = call_begin_template(&c);

	if (r == 0)
		r = cube_backend_need(b, CUBE_CAP_KEEP, &c.why);
	if (r == 0 && !cube_check_uid(cp))
		r = cube_fail(&c.why, -EINVAL, "'%s' is no id of a checkpoint", cp);
	if (r == 0)
		r = b->ops->template_keep(b, cp, t, cancel, &c.why);
	return cube_call_end(&c, r, err);
}

/* ---- Volumes ---- */

static int call_begin_volume(struct cube_call *c, uint32_t caps)
{
	int r = cube_call_begin(c, CUBE_CAP_VOLUMES);

	if (r == 0 && caps != 0)
		r = cube_call_begin(c, caps);
	if (r == 0 && !cube_check_uid(c->on))
		return cube_fail(&c->why, -EINVAL, "'%s' is no uid of a volume", c->on != NULL ? c->on : "");
	return r;
}

int cube_backend_volume_make(struct cube_backend *b, const char *uid, const char *name,
			     struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_call c = CALL("volume_make", uid);
	int r = call_begin_volume(&c, 0);

	if (r == 0)
		r = b->ops->volume_make(b, uid, name, cancel, &c.why);
	return cube_call_end(&c, r, err);
}

int cube_backend_volume_remove(struct cube_backend *b, const char *uid, struct cube_err *err)
{
	struct cube_call c = CALL("volume_remove", uid);
	int r = call_begin_volume(&c, 0);

	if (r == 0)
		r = b->ops->volume_remove(b, uid, &c.why);
	return cube_call_end(&c, r, err);
}

struct volume_call {
	void (*each)(void *ctx, const struct cube_volume *v);
	void *ctx;
};

/* One that is not ours is nobody's business. */
static void volume_each(void *ctx, const struct cube_volume *v)
{
	const struct volume_call *l = ctx;
	struct cube_volume copy = *v;

	copy.uid[sizeof(copy.uid) - 1] = '\0';
	if (cube_check_uid(copy.uid))
		l->each(l->ctx, &copy);
}

int cube_backend_volume_list(struct cube_backend *b, void (*each)(void *ctx, const struct cube_volume *v),
			     void *ctx, struct cube_err *err)
{
	struct cube_call c = CALL("volume_list", NULL);
	struct volume_call l = {.each = each, .ctx = ctx};
	int r = cube_call_begin(&c, CUBE_CAP_VOLUMES);

	if (r == 0)
		r = b->ops->volume_list(b, volume_each, &l, &c.why);
	return cube_call_end(&c, r, err);
}

int cube_backend_volume_root(struct cube_backend *b, const char *uid, struct cube_root *ret,
			     struct cube_err *err)
{
	struct cube_call c = CALL("volume_root", uid);
	struct cube_root root = {.fd = -1};
	int r = call_begin_volume(&c, CUBE_CAP_FILES);

	if (r == 0)
		r = b->ops->volume_root(b, uid, &root, &c.why);
	if (r == 0 && !cube_check_root(&root)) {
		cube_root_close(&root);
		r = cube_call_nonsense(&c, "a root that is none");
	}
	if (r == 0)
		*ret = root;
	return cube_call_end(&c, r, err);
}

/* ---- Checkpoints ---- */

static int check_checkpoint(struct cube_call *c, const char *cp)
{
	return cube_check_uid(cp)
		       ? 0
		       : cube_fail(&c->why, -EINVAL, "'%s' is no id of a checkpoint", cp != NULL ? cp : "");
}

int cube_backend_volume_copy(struct cube_backend *b, const char *cp, const char *from, const char *to,
			     struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_call c = CALL("volume_copy", to);
	int r = call_begin_volume(&c, CUBE_CAP_CHECKPOINTS);

	if (r == 0 && b->ops->volume_copy == NULL)
		r = cube_fail(&c.why, -EOPNOTSUPP, "backend '%s' cannot copy volumes", b->name);
	if (r == 0)
		r = check_checkpoint(&c, cp);
	if (r == 0 && !cube_check_uid(from))
		r = cube_fail(&c.why, -EINVAL, "'%s' is no uid of a volume", from);
	if (r == 0)
		r = b->ops->volume_copy(b, cp, from, to, cancel, &c.why);
	return cube_call_end(&c, r, err);
}

static int check_take(struct cube_call *c, const struct cube_take *take)
{
	int r = check_checkpoint(c, take->cp);

	for (unsigned i = 0; r == 0 && i < take->n_volumes; i++)
		if (!cube_check_uid(take->volumes[i]))
			r = cube_fail(&c->why, -EINVAL, "'%s' is no uid of a volume", take->volumes[i]);
	return r;
}

int cube_backend_checkpoint(struct cube_backend *b, const char *id, const struct cube_take *take,
			    struct cube_cancel *cancel, uint32_t *ret_still_ms, struct cube_err *err)
{
	struct cube_call c = CALL("checkpoint", id);
	uint32_t still = 0;
	int r = cube_call_begin_id(&c, CUBE_CAP_CHECKPOINTS);

	if (r == 0)
		r = check_take(&c, take);
	if (r == 0)
		r = b->ops->checkpoint(b, id, take, cancel, &still, &c.why);
	if (r == 0)
		*ret_still_ms = still;
	return cube_call_end(&c, r, err);
}

struct checkpoint_call {
	void (*each)(void *ctx, const struct cube_checkpoint *c);
	void *ctx;
};

/* One that is not ours is nobody's business. */
static void checkpoint_each(void *ctx, const struct cube_checkpoint *cp)
{
	const struct checkpoint_call *l = ctx;
	struct cube_checkpoint copy = *cp;

	cube_check_checkpoint(&copy);
	if (cube_check_uid(copy.id))
		l->each(l->ctx, &copy);
}

int cube_backend_checkpoint_list(struct cube_backend *b,
				 void (*each)(void *ctx, const struct cube_checkpoint *c), void *ctx,
				 struct cube_err *err)
{
	struct cube_call c = CALL("checkpoint_list", NULL);
	struct checkpoint_call l = {.each = each, .ctx = ctx};
	int r = cube_call_begin(&c, CUBE_CAP_CHECKPOINTS);

	if (r == 0)
		r = b->ops->checkpoint_list(b, checkpoint_each, &l, &c.why);
	return cube_call_end(&c, r, err);
}

int cube_backend_checkpoint_remove(struct cube_backend *b, const char *cp, struct cube_err *err)
{
	struct cube_call c = CALL("checkpoint_remove", cp);
	int r = cube_call_begin(&c, CUBE_CAP_CHECKPOINTS);

	if (r == 0)
		r = check_checkpoint(&c, cp);
	if (r == 0)
		r = b->ops->checkpoint_remove(b, cp, &c.why);
	return cube_call_end(&c, r, err);
}

int cube_backend_checkpoint_root(struct cube_backend *b, const char *cp, struct cube_root *ret,
				 struct cube_err *err)
{
	struct cube_call c = CALL("checkpoint_root", cp);
	struct cube_root root = {.fd = -1};
	int r = cube_call_begin(&c, CUBE_CAP_CHECKPOINTS);

	if (r == 0)
		r = cube_call_begin(&c, CUBE_CAP_FILES);
	if (r == 0)
		r = check_checkpoint(&c, cp);
	if (r == 0)
		r = b->ops->checkpoint_root(b, cp, &root, &c.why);
	if (r == 0 && !cube_check_root(&root)) {
		cube_root_close(&root);
		r = cube_call_nonsense(&c, "a root that is none");
	}
	if (r == 0)
		*ret = root;
	return cube_call_end(&c, r, err);
}

int cube_backend_restore(struct cube_backend *b, const char *id, const char *cp, struct cube_cancel *cancel,
			 struct cube_err *err)
{
	struct cube_call c = CALL("restore", id);
	int r = cube_call_begin_id(&c, CUBE_CAP_CHECKPOINTS);

	if (r == 0)
		r = check_checkpoint(&c, cp);
	if (r == 0)
		r = b->ops->restore(b, id, cp, cancel, &c.why);
	return cube_call_end(&c, r, err);
}

int cube_backend_reset(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
		       struct cube_err *err)
{
	struct cube_call c = CALL("reset", id);
	int r = cube_call_begin_id(&c, CUBE_CAP_RESET);

	if (r == 0)
		r = b->ops->reset(b, id, cancel, &c.why);
	return cube_call_end(&c, r, err);
}

int cube_backend_changes(struct cube_backend *b, const struct cube_changes *what, struct cube_cancel *cancel,
			 struct cube_err *err)
{
	struct cube_call c = CALL("changes", what->cp != NULL ? what->cp : what->id);
	int r = what->cp != NULL ? cube_call_begin(&c, CUBE_CAP_CHANGES)
				 : cube_call_begin_id(&c, CUBE_CAP_CHANGES);

	if (r == 0 && what->cp != NULL)
		r = check_checkpoint(&c, what->cp);
	if (r == 0 && what->base != NULL)
		r = check_checkpoint(&c, what->base);
	if (r == 0)
		r = b->ops->changes(b, what, cancel, &c.why);
	return cube_call_end(&c, r, err);
}
