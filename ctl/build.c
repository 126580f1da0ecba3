/* SPDX-License-Identifier: Apache-2.0 */
/* Builds of templates: beginning, end, what is left of one that was cut off. */
#include "ctl/build.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/log.h"

static void build_free(struct cube_build *b)
{
	cube_recipe_done(&b->recipe);
	cube_template_config_done(&b->config);
	cube_buf_done(&b->layers);
	cube_cancel_unref(b->cancel);
	cube_free(b->context);
	cube_free(b);
}

/* ---- layers that no build has any more ---- */

static bool build_has(const struct cube_buf *layers, const char *name)
{
	return layers->len > 0 && strstr(cube_buf_str(layers), name) != NULL;
}

/* Those of @old that @now has not, the highest first; one that others are made of stays (-EBUSY). */
void cube_build_prune(struct cube_backend *backend, const struct cube_buf *old, const struct cube_buf *now)
{
	char name[CUBE_LAYER_NAME + 1];

	for (size_t n = old->len / (CUBE_LAYER_NAME + 1); n-- > 0;) {
		(void)snprintf(name, sizeof(name), "%.*s", CUBE_LAYER_NAME,
			       old->data + n * (CUBE_LAYER_NAME + 1));
		if (!build_has(now, name))
			(void)cube_backend_template_remove(backend, name, NULL);
	}
}

/* ---- the end ---- */

static void build_failed(struct cube_build *b)
{
	struct cube_template_entry *t = b->entry;

	t->failure = b->err;
	(void)snprintf(t->info.state, sizeof(t->info.state), "error");
	cube_template_say(t, b->err.text);
}

/* Layers of an earlier build stay where this one failed: the next may have them again. */
static void build_keep_layers(struct cube_build *b, struct cube_buf *ret_old)
{
	struct cube_template_entry *t = b->entry;

	*ret_old = CUBE_BUF(CUBE_LAYERS_TEXT);
	if (b->code == 0) {
		*ret_old = t->layers;
		t->layers = b->layers;
		b->layers = CUBE_BUF(CUBE_LAYERS_TEXT);
		return;
	}
	for (size_t at = 0; at < b->layers.len; at += CUBE_LAYER_NAME + 1) {
		char name[CUBE_LAYER_NAME + 1];

		(void)snprintf(name, sizeof(name), "%.*s", CUBE_LAYER_NAME, b->layers.data + at);
		if (!build_has(&t->layers, name))
			(void)cube_buf_add(&t->layers, b->layers.data + at, CUBE_LAYER_NAME + 1);
	}
}

static void build_end(struct cube_build *b)
{
	struct cube_template_entry *t = b->entry;

	cube_cancel_unref(cube_steal(t->import));
	t->stamp = cube_service_stamp(t->service);
	t->step[0] = '\0';
	t->box[0] = '\0';
	if (b->code == 0) {
		t->failure = (struct cube_err){0};
		t->keys = (struct cube_template_keys){0};
		cube_template_config_done(&t->config);
		t->config = b->config;
		cube_template_config_init(&b->config);
		(void)snprintf(t->info.state, sizeof(t->info.state), "ready");
		(void)snprintf(t->info.source, sizeof(t->info.source), "build");
		cube_template_say(t, "ready");
	} else {
		build_failed(b);
	}
	if (cube_template_record_save(t, NULL) < 0)
		cube_log(CUBE_LOG_WARNING, "ctl", "template '%s': its record cannot be written",
			 t->info.name);
	cube_wake(&t->changed);
	if (!b->domain->closing)
		(void)cube_service_refresh(b->domain, t->service, NULL, NULL);
}

static void build_work(struct cube_work *w)
{
	struct cube_build *b = cube_container_of(w, struct cube_build, work);
	struct cube_domain *d = b->domain;
	struct cube_template_entry *t = b->entry;
	struct cube_buf old;

	cube_build_run(b);
	cube_domain_enter(d);
	build_keep_layers(b, &old);
	build_end(b);
	cube_domain_leave(d);
	cube_build_prune(t->service->backend, &old, &t->layers);
	cube_buf_done(&old);
	cube_domain_enter(d);
	if (b->done != NULL)
		b->done(b);
	cube_template_unref(t);
	cube_task_end(d);
	cube_domain_leave(d);
	build_free(b);
}

/* ---- the beginning ---- */

static int build_prepare(struct cube_build *b, const char *context, struct cube_err *err)
{
	const struct cube_buf *text = &b->entry->texts[CUBE_TEMPLATE_BUILD];
	int r = cube_recipe_parse(cube_buf_str(text), text->len, true, &b->recipe, err);

	if (r == 0 && b->recipe.n == 0)
		r = cube_fail(err, -EINVAL, "template '%s': its file build has no steps yet",
			      b->entry->info.name);
	if (r == 0 && b->recipe.docker && b->recipe.context && context == NULL)
		r = cube_fail(
			err, -EINVAL,
			"this Dockerfile copies files: `build DIRECTORY` says which directory they are in");
	if (r < 0)
		return r;
	b->context = context != NULL ? cube_strdup(context) : NULL;
	b->cancel = cube_cancel_new();
	return b->cancel == NULL || (context != NULL && b->context == NULL)
		       ? cube_fail(err, -ENOMEM, "out of memory")
		       : 0;
}

int cube_template_build(struct cube_domain *d, struct cube_template_entry *t, const struct cube_caller *by,
			const char *context, struct cube_build **ret, struct cube_err *err)
{
	struct cube_build *b;
	int r = cube_backend_need(t->service->backend, CUBE_CAP_BUILD, err);

	if (r < 0)
		return r;
	if (t->removed || d->closing)
		return cube_fail(err, -ENOENT, "template '%s' is removed", t->info.name);
	if (t->import != NULL)
		return cube_fail(err, -EBUSY, "template '%s': an import or a build is under way",
				 t->info.name);
	b = cube_calloc(1, sizeof(*b));
	if (b == NULL)
		return cube_fail(err, -ENOMEM, "template '%s': out of memory", t->info.name);
	b->entry = t;
	b->domain = d;
	b->by = *by;
	b->layers = CUBE_BUF(CUBE_LAYERS_TEXT);
	cube_template_config_init(&b->config);
	r = build_prepare(b, context, err);
	if (r < 0) {
		build_free(b);
		return r;
	}
	cube_template_ref(t);
	t->import = cube_cancel_ref(b->cancel);
	(void)snprintf(t->step, sizeof(t->step), "0/%zu", b->recipe.n);
	cube_template_say(t, "build");
	b->work.run = build_work;
	b->work.key = cube_backend_queue_key(t->service->backend, t);
	*ret = b;
	cube_task_submit(d, &b->work);
	return 0;
}

/* ---- what was cut off ---- */

struct recover {
	struct cube_work work;
	struct cube_domain *domain;
	struct cube_backend *backend;
	char uid[17];
	char id[CUBE_ID_MAX + 1];
};

static void recover_look(void *ctx, const struct cube_info *info)
{
	struct recover *r = ctx;

	if (strcmp(info->uid, r->uid) == 0)
		(void)snprintf(r->id, sizeof(r->id), "%s", info->id);
}

static void recover_run(struct cube_work *w)
{
	struct recover *r = cube_container_of(w, struct recover, work);
	struct cube_domain *d = r->domain;
	struct cube_err err;
	int code = cube_backend_list(r->backend, NULL, recover_look, r, &err);

	if (code == 0 && r->id[0] != '\0')
		code = cube_backend_destroy(r->backend, r->id, &err);
	if (code < 0)
		cube_log(CUBE_LOG_WARNING, "ctl", "what a build left: %s", err.text);
	cube_domain_enter(d);
	cube_task_end(d);
	cube_domain_leave(d);
	cube_free(r);
}

static void recover_one(struct cube_domain *d, struct cube_template_entry *t)
{
	struct recover *r = t->box[0] != '\0' ? cube_calloc(1, sizeof(*r)) : NULL;

	if (r == NULL)
		return;
	(void)cube_fail(&t->failure, -EINTR,
			"its build was interrupted; `build` goes on with the steps that are done");
	r->work.run = recover_run;
	r->domain = d;
	r->backend = t->service->backend;
	memcpy(r->uid, t->box, sizeof(r->uid));
	t->box[0] = '\0';
	(void)cube_template_record_save(t, NULL);
	cube_task_submit(d, &r->work);
}

void cube_builds_recover(struct cube_domain *d)
{
	cube_list_each (i, &d->services) {
		struct cube_service *s = cube_list_entry(i, struct cube_service, link);

		cube_list_each (k, &s->templates)
			recover_one(d, cube_list_entry(k, struct cube_template_entry, link));
	}
}
