/* SPDX-License-Identifier: Apache-2.0 */
/* Templates made of sandboxes: `template T` of a checkpoint and `import sandbox:NAME[/CHECKPOINT]` of a template. Of a
 * sandbox as it is a checkpoint without a name is taken, as a fork does, and goes when the template is made. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/checkpoint.h"
#include "ctl/ctl_priv.h"

#define KEEP_SCHEME "sandbox:"

void cube_template_cancel(struct cube_template_entry *t)
{
	if (t->import != NULL)
		cube_cancel_fire(t->import);
	if (t->taking != NULL)
		cube_checkpoint_leave(t->taking);
}

/* ---- What it is made of ---- */

static int keep_check(const struct cube_import *i, struct cube_err *err)
{
	if (i->sha256 != NULL || i->keys.os[0] != '\0' || i->uefi || i->tpm || i->specialized)
		return cube_fail(err, -EINVAL,
				 "import %s: of a sandbox only cpus, memory and disk can be said", i->source);
	return cube_backend_need(i->entry->service->backend, CUBE_CAP_KEEP, err);
}

static int keep_on_backend(const struct cube_import *i, const struct cube_cube *c, struct cube_err *err)
{
	const struct cube_service *s = i->entry->service;

	return c->service == s ? 0
			       : cube_fail(err, -EINVAL, "import %s: it is on backend '%s', not on '%s'",
					   i->source, c->service->backend->name, s->backend->name);
}

/* The pin is what keeps one that has no name. */
static int keep_live(struct cube_import *i, const char *name, struct cube_err *err)
{
	struct cube_cube *c = cube_domain_find(i->domain, name);
	struct cube_checkpoint_entry *e;
	int r = c != NULL ? keep_on_backend(i, c, err)
			  : cube_fail(err, -ENOENT, "import %s: there is no sandbox '%s'", i->source, name);

	if (r == 0)
		r = cube_checkpoint_take(c, NULL, &e, err);
	if (r < 0)
		return r;
	cube_checkpoint_pin(e);
	cube_checkpoint_unref(e);
	i->of = e;
	return 0;
}

int cube_keep_source(struct cube_import *i, struct cube_err *err)
{
	const char *name = i->source + strlen(KEEP_SCHEME);
	struct cube_checkpoint_entry *e;
	int r = keep_check(i, err);

	if (r < 0)
		return r;
	if (strchr(name, '/') == NULL)
		return keep_live(i, name, err);
	r = cube_checkpoint_named(i->domain, NULL, name, &e, err);
	if (r == 0)
		r = keep_on_backend(i, e->cube, err);
	if (r < 0)
		return r;
	cube_checkpoint_pin(e);
	i->of = e;
	return 0;
}

void cube_keep_done(struct cube_import *i)
{
	cube_checkpoint_let_go(cube_steal(i->of));
}

int cube_template_keep(struct cube_checkpoint_entry *e, const char *name, const struct cube_caller *by,
		       struct cube_import **ret, struct cube_err *err)
{
	cube_auto_str source = cube_asprintf(KEEP_SCHEME "%s/%s", e->cube->name, e->name);
	struct cube_template_entry *t = NULL;
	int r = source != NULL ? cube_backend_need(e->cube->service->backend, CUBE_CAP_KEEP, err)
			       : cube_fail(err, -ENOMEM, "template: out of memory");

	if (r == 0)
		r = cube_template_create_unsaved(e->cube->service, name, &t, err);
	if (r < 0 || t == NULL)
		return r;
	r = cube_template_import_of(t, by, source, e, ret, err);
	if (r < 0)
		(void)cube_template_remove(t, NULL);
	return r;
}

/* ---- Making it ---- */

int cube_keep_run(struct cube_import *i)
{
	struct cube_template t = {.size = UINT64_MAX};

	(void)snprintf(t.name, sizeof(t.name), "%s", i->entry->info.name);
	(void)snprintf(t.source, sizeof(t.source), "%s", i->source);
	(void)snprintf(t.fingerprint, sizeof(t.fingerprint), "checkpoint:%s", i->of->id);
	return cube_backend_template_keep(i->entry->service->backend, i->of->id, &t, i->cancel, &i->err);
}

void cube_keep_texts(struct cube_import *i)
{
	static const enum cube_template_text texts[] = {CUBE_TEMPLATE_START, CUBE_TEMPLATE_READY,
							CUBE_TEMPLATE_SERVICES};
	struct cube_template_entry *t = i->entry;
	const struct cube_checkpoint_entry *e = i->of;
	const char *name = e == NULL             ? NULL
			   : e->template != NULL ? e->template
						 : t->service->backend->template;
	struct cube_template_entry *from = name != NULL ? cube_template_find(t->service, name) : NULL;

	for (size_t n = 0; from != NULL && from != t && n < CUBE_COUNT(texts); n++) {
		const struct cube_buf *text = &from->texts[texts[n]];

		if (t->texts[texts[n]].len == 0) /* what was written for it before stays */
			(void)cube_buf_add(&t->texts[texts[n]], text->data, text->len);
	}
}
