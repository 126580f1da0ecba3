/* SPDX-License-Identifier: Apache-2.0 */
/* The import of a template: on a pool thread, its progress in the template's log. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/num.h"
#include "ctl/checkpoint.h"
#include "ctl/ctl_priv.h"
#include "ctl/event.h"

#define IMPORT_LINE_MAX CUBE_LINELOG_LINE

static void import_log(void *ctx, const char *line)
{
	struct cube_import *i = ctx;

	cube_domain_enter(i->domain);
	cube_template_say(i->entry, line);
	cube_domain_leave(i->domain);
}

static void import_progress(void *ctx, unsigned percent)
{
	struct cube_import *i = ctx;

	cube_domain_enter(i->domain);
	i->entry->percent = percent < 100 ? percent : 99;
	cube_domain_leave(i->domain);
}

static int import_open(void *ctx, int dir, const char *path, int flags, uint64_t resolve)
{
	const struct cube_import *i = ctx;

	return cube_caller_openat(&i->by, dir, path, flags, resolve);
}

static struct cube_template_order import_order(struct cube_import *i, int fd)
{
	return (struct cube_template_order){
		.name = i->entry->info.name,
		.source = i->source,
		.fd = fd,
		.sha256 = i->sha256,
		.os = i->keys.os[0] != '\0' ? i->keys.os : NULL,
		.uefi = i->uefi,
		.tpm = i->tpm,
		.specialized = i->specialized,
		.open = import_open,
		.log = import_log,
		.progress = import_progress,
		.ctx = i,
	};
}

/* Under the lock. */
static void import_end(struct cube_import *i)
{
	struct cube_template_entry *t = i->entry;
	struct cube_err err;

	cube_cancel_unref(cube_steal(t->import));
	t->stamp = cube_service_stamp(t->service);
	if (i->code == 0) {
		t->keys = i->keys;
		cube_keep_texts(i);
		t->failure = (struct cube_err){0};
		i->code = cube_template_record_save(t, &i->err);
	}
	if (i->code == 0) {
		t->unsaved = false;
		if (i->made.name[0] != '\0')
			t->info = i->made;
		(void)snprintf(t->info.state, sizeof(t->info.state), "ready");
		(void)snprintf(t->info.source, sizeof(t->info.source), "%s", i->source);
		cube_template_say(t, "ready");
	} else {
		t->failure = i->err;
		(void)snprintf(t->info.state, sizeof(t->info.state), "error");
		if (!t->unsaved && !i->domain->closing)
			(void)cube_template_record_save(t, &err); /* else the next daemon calls it none */
		cube_template_say(t, i->err.text);
	}
	cube_wake(&t->changed);
	cube_keep_done(i);
	if (i->domain->closing)
		return;
	if (i->code < 0 && t->unsaved)
		(void)cube_template_remove(t, &err);
	else
		(void)cube_service_refresh(i->domain, t->service, NULL, &err); /* what else is new there */
}

static void import_free(struct cube_import *i)
{
	cube_cancel_unref(i->cancel);
	cube_free(i->source);
	cube_free(i->sha256);
	cube_free(i);
}

static void import_listed(void *ctx, const struct cube_template *t)
{
	struct cube_import *i = ctx;

	if (strcmp(t->name, i->entry->info.name) == 0)
		i->made = *t;
}

/* What it says of its programs, its size and its fingerprint, known before anybody who waits for it is woken. */
static void import_learn(struct cube_import *i, struct cube_template_config *config)
{
	struct cube_backend *b = i->entry->service->backend;

	if (i->code == 0)
		i->code = cube_backend_template_config(b, i->entry->info.name, config, &i->err);
	if (i->code == 0)
		(void)cube_backend_template_list(b, import_listed, i, NULL);
}

static int import_make(struct cube_import *i)
{
	struct cube_template_order order;
	cube_auto_fd fd = -1;
	int r = i->source[0] == '/'
			? cube_caller_open(&i->by, i->source, O_RDONLY | O_CLOEXEC | O_NONBLOCK, &fd, &i->err)
			: 0;

	order = import_order(i, fd);
	return r == 0 ? cube_backend_template_import(i->entry->service->backend, &order, i->cancel, &i->err)
		      : r;
}

/* Under the lock. */
static void import_finish(struct cube_import *i)
{
	import_end(i);
	if (i->done != NULL)
		i->done(i);
	cube_template_unref(i->entry);
	import_free(i);
}

static void import_run(struct cube_work *w)
{
	struct cube_import *i = cube_container_of(w, struct cube_import, work);
	struct cube_domain *d = i->domain;
	struct cube_template_config config;

	cube_template_config_init(&config);
	i->code = i->of != NULL ? cube_keep_run(i) : import_make(i);
	import_learn(i, &config);
	cube_domain_enter(d);
	cube_template_config_done(&i->entry->config);
	i->entry->config = config;
	import_finish(i);
	cube_task_end(d);
	cube_domain_leave(d);
}

/* Begins when what it is made of is there, and nothing of that name is being removed any more. */
static void import_begin(struct cube_waiter *w)
{
	struct cube_import *i = cube_container_of(w, struct cube_import, waits);
	struct cube_template_entry *t = i->entry;

	t->taking = i->of != NULL && i->of->phase == CUBE_CHECKPOINT_TAKING ? i->of : NULL;
	if (t->taking != NULL) {
		cube_wait_add(&i->of->changed, w);
	} else if (i->domain->closing) {
		i->code = cube_fail(&i->err, -EHOSTDOWN, "import: the daemon is ending");
		import_finish(i);
	} else if (i->of != NULL && i->of->phase != CUBE_CHECKPOINT_THERE) {
		i->err = i->of->failure;
		i->code = i->err.code < 0 ? i->err.code
					  : cube_fail(&i->err, -ENOENT, "import: the checkpoint is gone");
		import_finish(i);
	} else if (cube_template_removing(t->service, t->info.name)) {
		cube_wait_add(&t->service->removed, w);
	} else {
		cube_task_submit(i->domain, &i->work);
	}
}

/* ---- keys ---- */

static int key_flag(const char *key, const char *value, bool *ret, struct cube_err *err)
{
	int on;

	if (cube_num_bool(value, &on) < 0)
		return cube_fail(err, -EINVAL, "%s=%s: yes or no", key, value);
	*ret = on != 0;
	return 0;
}

static int key_os(struct cube_import *i, const char *value, struct cube_err *err)
{
	size_t n = strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789.-_");

	if (n == 0 || value[n] != '\0' || n >= sizeof(i->keys.os))
		return cube_fail(err, -EINVAL, "os=%s: a word as linux or windows-11", value);
	memcpy(i->keys.os, value, n + 1);
	return 0;
}

static int key_sha256(struct cube_import *i, const char *value, struct cube_err *err)
{
	if (strlen(value) != 64 || strspn(value, "0123456789abcdef") != 64)
		return cube_fail(err, -EINVAL, "sha256=%s: 64 lower case hexadecimal digits", value);
	cube_free(i->sha256);
	i->sha256 = cube_strdup(value);
	return i->sha256 != NULL ? 0 : cube_fail(err, -ENOMEM, "out of memory");
}

static int key_limit(struct cube_import *i, const char *key, const char *value, struct cube_err *err)
{
	enum cube_cap cap = 0;
	int r = strcmp(key, "pids") == 0 ? 0 : cube_keys_limit(key, value, &i->keys.limits, &cap, err);

	if (r == 1)
		return cube_backend_need(i->entry->service->backend, cap, err);
	return r < 0 ? r
		     : cube_fail(err, -EINVAL,
				 "import: '%s' is no key; sha256, cpus, memory, disk, os, uefi, tpm, "
				 "specialized",
				 key);
}

static int import_key(struct cube_import *i, const char *key, const char *value, struct cube_err *err)
{
	bool *const flags[] = {&i->uefi, &i->tpm, &i->specialized};
	static const char *const names[] = {"uefi", "tpm", "specialized"};

	for (size_t n = 0; n < CUBE_COUNT(names); n++)
		if (strcmp(key, names[n]) == 0)
			return key_flag(key, value, flags[n], err);
	if (strcmp(key, "os") == 0)
		return key_os(i, value, err);
	if (strcmp(key, "sha256") == 0)
		return key_sha256(i, value, err);
	return key_limit(i, key, value, err);
}

/* ---- starting ---- */

/* All refusals that need not look at the source. */
static int import_check(struct cube_import *i, const struct cube_create_key *keys, size_t n,
			struct cube_err *err)
{
	struct cube_template_order order;
	int r = 0;

	for (size_t k = 0; r == 0 && k < n; k++)
		r = import_key(i, keys[k].key, keys[k].value, err);
	if (r == 0 && i->source[0] != '/' && strchr(i->source, ':') == NULL)
		r = cube_fail(err, -EINVAL,
			      "import '%s': an absolute path, or SCHEME:NAME where the backend has such",
			      i->source);
	if (r == 0 && strncmp(i->source, "sandbox:", 8) == 0)
		return cube_keep_source(i, err);
	order = import_order(i, -1);
	return r == 0 ? cube_backend_template_check(i->entry->service->backend, &order, err) : r;
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
		import_free(i);
		return NULL;
	}
	i->domain = d;
	i->by = *by;
	i->entry = t;
	i->work.run = import_run;
	i->work.key = cube_backend_queue_key(t->service->backend, t);
	return i;
}

static void import_say(struct cube_import *i)
{
	struct cube_template_entry *t = i->entry;
	char line[IMPORT_LINE_MAX];

	t->import = cube_cancel_ref(i->cancel);
	t->percent = 0;
	t->step[0] = '\0';
	(void)snprintf(t->info.state, sizeof(t->info.state), "importing");
	(void)snprintf(line, sizeof(line), "import %s", i->source);
	cube_template_say(t, line);
}

int cube_template_import_of(struct cube_template_entry *t, const struct cube_caller *by, const char *source,
			    struct cube_checkpoint_entry *of, struct cube_import **ret, struct cube_err *err)
{
	struct cube_import *i = import_new(t->service->domain, t, by, source);

	if (i == NULL)
		return cube_fail(err, -ENOMEM, "template '%s': out of memory", t->info.name);
	i->of = of;
	cube_checkpoint_pin(of);
	cube_template_ref(t);
	import_say(i);
	*ret = i;
	cube_waiter_init(&i->waits, import_begin);
	import_begin(&i->waits);
	return 0;
}

int cube_template_import(struct cube_domain *d, struct cube_template_entry *t, const struct cube_caller *by,
			 const char *source, const struct cube_create_key *keys, size_t n_keys,
			 struct cube_import **ret, struct cube_err *err)
{
	struct cube_import *i;
	int r;

	if (t->removed || d->closing)
		return cube_fail(err, -ENOENT, "template '%s' is removed", t->info.name);
	if (t->import != NULL)
		return cube_fail(err, -EBUSY, "template '%s': an import or a build is under way",
				 t->info.name);
	i = import_new(d, t, by, source);
	if (i == NULL)
		return cube_fail(err, -ENOMEM, "template '%s': out of memory", t->info.name);
	r = import_check(i, keys, n_keys, err);
	if (r < 0) {
		import_free(i);
		return r;
	}
	cube_template_ref(t);
	import_say(i);
	*ret = i;
	cube_waiter_init(&i->waits, import_begin);
	import_begin(&i->waits);
	return 0;
}
