/* SPDX-License-Identifier: Apache-2.0 */
/* import and cancel of a template. */
#include <errno.h>

#include "ctl/ctl_priv.h"
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
	cube_cancel_fire(i->cancel);
	(void)cube_fail(&call->err, -EINTR, "import: interrupted; the same again goes on where it was");
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
	i->done = import_done;
	i->ctx = call;
	call->state = i;
	call->cancel = import_cancel;
	return 1;
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

static int cancel_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_template_entry *t = call->object;

	(void)err;
	if (t->import != NULL)
		cube_cancel_fire(t->import);
	return 0; /* none is under way: that is what was wanted */
}

const struct cube_verb cube_verb_template_cancel = {
	.name = "cancel",
	.args = "",
	.summary = "end the import or the build that is under way",
	.needs = CUBE_CAP_TEMPLATES,
	.run = cancel_run,
};
