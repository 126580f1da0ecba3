/* SPDX-License-Identifier: Apache-2.0 */
/* The import of a template: on a pool thread, its progress in the template's log. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "ctl/ctl_priv.h"
#include "ctl/event.h"

#define IMPORT_LOG_MAX  ((size_t)256 << 10)
#define IMPORT_LINE_MAX 900

/* Whole lines go at the front when it is full. */
static void import_say(struct cube_template_entry *t, const char *line)
{
	char time[CUBE_TIME_TEXT];
	struct cube_buf *log = &t->log;

	while (log->len > IMPORT_LOG_MAX) {
		const char *end = memchr(log->data, '\n', log->len);

		cube_buf_drop(log, end != NULL ? (size_t)(end + 1 - log->data) : log->len);
	}
	cube_buf_printf(log, "%s ", cube_clock_text(cube_clock_wall(), time));
	cube_buf_add_escaped(log, line, strnlen(line, IMPORT_LINE_MAX), false);
	cube_buf_addc(log, '\n');
	cube_wake(&t->changed);
}

static void import_log(void *ctx, const char *line)
{
	struct cube_import *i = ctx;

	cube_domain_enter(i->domain);
	import_say(i->entry, line);
	cube_domain_leave(i->domain);
}

/* A path of this machine is opened with the rights of whoever wrote the verb. */
static int import_open(struct cube_import *i, int *ret_fd)
{
	if (i->source[0] == '/')
		return cube_caller_open(&i->by, i->source, O_RDONLY | O_CLOEXEC | O_NONBLOCK, ret_fd,
					&i->err);
	if (strchr(i->source, ':') != NULL)
		return 0;
	return cube_fail(&i->err, -EINVAL,
			 "import '%s': an absolute path, or SCHEME:NAME where the backend has such",
			 i->source);
}

static void import_end(struct cube_import *i)
{
	struct cube_template_entry *t = i->entry;

	cube_cancel_unref(cube_steal(t->import));
	t->stamp = cube_service_stamp(t->service);
	if (i->code == 0) {
		t->failure = (struct cube_err){0};
		(void)snprintf(t->info.state, sizeof(t->info.state), "ready");
		(void)snprintf(t->info.source, sizeof(t->info.source), "%s", i->source);
		import_say(t, "ready");
	} else {
		t->failure = i->err;
		(void)snprintf(t->info.state, sizeof(t->info.state), "error");
		import_say(t, i->err.text);
	}
	cube_wake(&t->changed);
	if (!i->domain->closing)
		(void)cube_service_refresh(i->domain, t->service, NULL, NULL); /* size, fingerprint */
}

static void import_run(struct cube_work *w)
{
	struct cube_import *i = cube_container_of(w, struct cube_import, work);
	struct cube_domain *d = i->domain;
	cube_auto_fd fd = -1;

	i->code = import_open(i, &fd);
	if (i->code == 0)
		i->code = cube_backend_template_import(i->entry->service->backend, i->entry->info.name,
						       i->source, fd, import_log, i, i->cancel, &i->err);
	cube_domain_enter(d);
	import_end(i);
	if (i->done != NULL)
		i->done(i);
	cube_template_unref(i->entry);
	cube_task_end(d);
	cube_domain_leave(d);
	cube_cancel_unref(i->cancel);
	cube_free(i->source);
	cube_free(i);
}

static struct cube_import *import_new(struct cube_domain *d, struct cube_template_entry *t,
				      const struct cube_caller *by, const char *source)
{
	struct cube_import *i = cube_calloc(1, sizeof(*i));

	if (i == NULL)
		return NULL;
	i->source = cube_strdup(source);
	i->cancel = cube_cancel_new();
	if (i->source == NULL || i->cancel == NULL) {
		cube_cancel_unref(i->cancel);
		cube_free(i->source);
		cube_free(i);
		return NULL;
	}
	i->domain = d;
	i->by = *by;
	i->entry = cube_template_ref(t);
	i->work.run = import_run;
	i->work.key = cube_backend_queue_key(t->service->backend, t->service);
	return i;
}

int cube_template_import(struct cube_domain *d, struct cube_template_entry *t, const struct cube_caller *by,
			 const char *source, struct cube_import **ret, struct cube_err *err)
{
	struct cube_import *i;
	char line[IMPORT_LINE_MAX];

	if (t->removed || d->closing)
		return cube_fail(err, -ENOENT, "template '%s' is removed", t->info.name);
	if (t->import != NULL)
		return cube_fail(err, -EBUSY, "template '%s': an import is under way", t->info.name);
	i = import_new(d, t, by, source);
	if (i == NULL)
		return cube_fail(err, -ENOMEM, "template '%s': out of memory", t->info.name);
	t->import = cube_cancel_ref(i->cancel);
	(void)snprintf(t->info.state, sizeof(t->info.state), "importing");
	(void)snprintf(line, sizeof(line), "import %s", source);
	import_say(t, line);
	*ret = i;
	cube_task_submit(d, &i->work);
	return 0;
}
