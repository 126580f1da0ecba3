/* SPDX-License-Identifier: Apache-2.0 */
/* import and cancel of a template. */
#include <errno.h>

#include "ctl/build.h"
#include "ctl/verbs/verbs.h"

#define IMPORT_KEYS 16

static void import_done(struct cube_import *i)
{
	struct cube_verb_call *call = i->ctx;

	call->state = NULL;
	call->err = i->err;
	cube_verb_finish(call, i->code);
}

/* Whoever gave up may write it again: it goes on where it was. */
static void import_cancel(struct cube_verb_call *call)
{
	struct cube_import *i = cube_steal(call->state);

	i->done = NULL;
	(void)cube_fail(&call->err, -EINTR, "%s: interrupted%s", call->verb->name,
			i->of == NULL ? "; the same again goes on where it was" : "");
	cube_template_cancel(i->entry); /* may be its end */
}

int cube_verb_import_wait(struct cube_verb_call *call, struct cube_import *i)
{
	i->done = import_done;
	i->ctx = call;
	call->state = i;
	call->cancel = import_cancel;
	return 1;
}

static int import_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_create_key keys[IMPORT_KEYS];
	struct cube_import *i;
	size_t n = 0;

	for (; n + 2 < call->n_words; n++) {
		keys[n].key = call->words[n + 2];
		keys[n].value = cube_verb_value("import", call->words[n + 2], err);
		if (keys[n].value == NULL)
			return -EINVAL;
	}
	int r = cube_template_import(call->domain, call->object, &call->by, call->words[1], keys, n, &i, err);
	if (r < 0)
		return r;
	return cube_verb_import_wait(call, i);
}

const struct cube_verb cube_verb_template_import = {
	.name = "import",
	.args = "SOURCE [sha256=HEX] [cpus=N] [memory=SIZE] [disk=SIZE] [os=WORD] [uefi=yes] [tpm=yes] "
		"[specialized=yes]",
	.summary = "make it of a directory, an archive or what else the backend takes; progress is in log",
	.min = 1,
	.max = 1 + IMPORT_KEYS,
	.needs = CUBE_CAP_TEMPLATES,
	.run = import_run,
};

static void build_done(struct cube_build *b)
{
	struct cube_verb_call *call = b->ctx;

	call->state = NULL;
	call->err = b->err;
	cube_verb_finish(call, b->code);
}

static void build_cancel(struct cube_verb_call *call)
{
	struct cube_build *b = cube_steal(call->state);

	b->done = NULL;
	cube_cancel_fire(b->cancel);
	(void)cube_fail(&call->err, -EINTR,
			"build: interrupted; the same again goes on with the steps that are done");
}

static int build_run(struct cube_verb_call *call, struct cube_err *err)
{
	const char *context = call->n_words > 1 ? call->words[1] : NULL;
	struct cube_build *b;

	if (context != NULL && context[0] != '/')
		return cube_fail(err, -EINVAL, "build '%s': an absolute path of this machine", context);
	int r = cube_template_build(call->domain, call->object, &call->by, context, &b, err);
	if (r < 0)
		return r;
	b->done = build_done;
	b->ctx = call;
	call->state = b;
	call->cancel = build_cancel;
	return 1;
}

const struct cube_verb cube_verb_template_build = {
	.name = "build",
	.args = "[HOSTDIR]",
	.summary = "make it of the steps in its file build; HOSTDIR has what a Dockerfile copies",
	.max = 1,
	.needs = CUBE_CAP_BUILD,
	.run = build_run,
};

static int cancel_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_template_entry *t = call->object;

	(void)err;
	if (t->import != NULL)
		cube_template_cancel(t);
	return 0; /* none is under way: that is what was wanted */
}

const struct cube_verb cube_verb_template_cancel = {
	.name = "cancel",
	.args = "",
	.summary = "end the import or the build that is under way",
	.needs = CUBE_CAP_TEMPLATES,
	.run = cancel_run,
};
