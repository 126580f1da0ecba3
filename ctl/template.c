/* SPDX-License-Identifier: Apache-2.0 */
/* Templates as a backend lists them, and those that mkdir made and that wait for an import. */
#include "ctl/template.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/name.h"
#include "ctl/ctl_priv.h"
#include "ctl/errlog.h"
#include "ctl/stock.h"

#define TEMPLATE_LOG_MAX ((size_t)256 << 10)

/* ---- The object ---- */

static struct cube_template_entry *template_new(struct cube_domain *d, struct cube_service *s,
						const char *name)
{
	struct cube_template_entry *t = cube_calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->refs = 1;
	t->service = s;
	t->seq = d->next_seq++;
	(void)snprintf(t->info.name, sizeof(t->info.name), "%s", name);
	(void)snprintf(t->info.state, sizeof(t->info.state), "none");
	t->info.size = UINT64_MAX;
	cube_template_config_init(&t->config);
	cube_buf_init(&t->layers, CUBE_LAYERS_TEXT);
	for (size_t i = 0; i < CUBE_TEMPLATE_TEXTS; i++)
		cube_buf_init(&t->texts[i], CUBE_TEMPLATE_TEXT_MAX);
	cube_linelog_init(&t->log, TEMPLATE_LOG_MAX);
	cube_waitq_init(&t->changed);
	cube_list_push(&s->templates, &t->link);
	return t;
}

struct cube_template_entry *cube_template_ref(struct cube_template_entry *t)
{
	t->refs++;
	return t;
}

void cube_template_unref(struct cube_template_entry *t)
{
	if (t == NULL || --t->refs > 0)
		return;
	cube_cancel_unref(t->import);
	cube_template_config_done(&t->config);
	cube_buf_done(&t->layers);
	for (size_t i = 0; i < CUBE_TEMPLATE_TEXTS; i++)
		cube_buf_done(&t->texts[i]);
	cube_linelog_done(&t->log);
	cube_free(t);
}

static void template_delist(struct cube_template_entry *t)
{
	cube_list_remove(&t->link);
	t->removed = true;
	cube_wake(&t->changed);
	cube_template_unref(t);
}

void cube_templates_close(struct cube_service *s)
{
	while (!cube_list_empty(&s->templates))
		template_delist(cube_list_entry(s->templates.next, struct cube_template_entry, link));
}

struct cube_template_entry *cube_template_find(struct cube_service *s, const char *name)
{
	cube_list_each (i, &s->templates) {
		struct cube_template_entry *t = cube_list_entry(i, struct cube_template_entry, link);

		if (strcmp(t->info.name, name) == 0)
			return t;
	}
	return NULL;
}

struct cube_template_entry *cube_template_next(struct cube_service *s, uint64_t seq)
{
	cube_list_each (i, &s->templates) {
		struct cube_template_entry *t = cube_list_entry(i, struct cube_template_entry, link);

		if (t->seq > seq)
			return t;
	}
	return NULL;
}

/* ---- On disk: STATE/templates/BACKEND/NAME, with record.json (template_record.c) ---- */

static int template_mark(struct cube_domain *d, struct cube_template_entry *t)
{
	int dir = -1, fd = -1;
	int r = cube_file_mkdir(cube_domain_own(d)->templates_fd, t->service->backend->name, 0700, &dir);

	if (r == 0)
		r = cube_file_mkdir(dir, t->info.name, 0700, &fd);
	cube_close_auto(&fd);
	cube_close_auto(&dir);
	return r;
}

static void template_unmark(struct cube_domain *d, struct cube_template_entry *t)
{
	char path[2 * CUBE_ID_MAX + 3];

	(void)snprintf(path, sizeof(path), "%s/%s", t->service->backend->name, t->info.name);
	(void)cube_file_remove_tree(cube_domain_own(d)->templates_fd, path);
}

static int template_load(struct cube_domain *d, struct cube_service *s, const char *name,
			 struct cube_err *err)
{
	struct cube_template_entry *t = template_new(d, s, name);

	if (t == NULL)
		return cube_fail(err, -ENOMEM, "backend '%s': out of memory", s->backend->name);
	cube_template_record_load(t);
	return 0;
}

int cube_templates_load(struct cube_domain *d, struct cube_service *s, struct cube_err *err)
{
	int fd = openat(cube_domain_own(d)->templates_fd, s->backend->name,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;
	int r = 0;

	if (dir == NULL) {
		cube_close_auto(&fd);
		return 0; /* none was ever made */
	}
	while (r == 0 && (e = readdir(dir)) != NULL) /* NOLINT(concurrency-mt-unsafe): a stream of our own */
		if (cube_name_template_ok(e->d_name))
			r = template_load(d, s, e->d_name, err);
	(void)closedir(dir);
	return r;
}

/* ---- What is being removed ---- */

struct remove_work {
	struct cube_work work;
	struct cube_list link; /* service.removals */
	struct cube_domain *domain;
	struct cube_service *service;
	struct cube_buf layers;
	char name[CUBE_ID_MAX + 1];
};

bool cube_template_removing(const struct cube_service *s, const char *name)
{
	cube_list_each (i, &s->removals)
		if (strcmp(cube_list_entry(i, struct remove_work, link)->name, name) == 0)
			return true;
	return false;
}

/* ---- What the backend lists ---- */

void cube_templates_take(struct cube_domain *d, struct cube_service *s, struct cube_template_known *list,
			 size_t n, uint64_t stamp)
{
	cube_list_each (i, &s->templates)
		cube_list_entry(i, struct cube_template_entry, link)->listed = false;
	for (size_t i = 0; i < n; i++) {
		struct cube_template_entry *t = cube_template_find(s, list[i].t.name);

		if (t == NULL && cube_template_removing(s, list[i].t.name))
			continue;
		if (t == NULL)
			t = template_new(d, s, list[i].t.name);
		if (t == NULL)
			return;
		t->listed = true;
		if (t->import != NULL || t->stamp > stamp) /* the list does not know how that ended */
			continue;
		t->info = list[i].t;
		cube_template_config_done(&t->config);
		t->config = list[i].config;
		cube_template_config_init(&list[i].config);
	}
	cube_list_each (i, &s->templates) {
		struct cube_template_entry *t = cube_list_entry(i, struct cube_template_entry, link);

		/* It was there and somebody else removed it. One that was only made, or that failed, stays.
		 */
		if (!t->listed && t->import == NULL && t->stamp < stamp &&
		    strcmp(t->info.state, "ready") == 0)
			template_delist(t);
	}
	cube_service_set_listed(s);
}

int cube_template_usable(struct cube_service *s, const char *name, struct cube_template_entry **ret,
			 struct cube_err *err)
{
	struct cube_template_entry *t;

	if (name == NULL)
		return 0;
	int r = cube_backend_need(s->backend, CUBE_CAP_TEMPLATES, err);
	if (r < 0)
		return r;
	t = cube_template_named(s, name);
	if (t == NULL && !cube_service_listed(s) && cube_name_template_ok(name))
		return 0; /* the backend was not asked yet: it will say so itself */
	if (t == NULL)
		return cube_fail(err, -ENOENT,
				 "backend '%s' has no template '%s' (see backends/%s/templates)",
				 s->backend->name, name, s->backend->name);
	if (t->import != NULL) {
		if (ret != NULL)
			*ret = t;
		return 1;
	}
	if (strcmp(t->info.state, "ready") == 0) {
		if (ret != NULL)
			*ret = t;
		return 0;
	}
	return cube_fail(err, -ENOENT,
			 "template '%s' is not ready%s%s; `import SOURCE` or `build` in its ctl makes it",
			 name, t->failure.text[0] != '\0' ? ": " : "", t->failure.text);
}

/* ---- mkdir, rmdir ---- */

int cube_template_create_unsaved(struct cube_service *s, const char *name, struct cube_template_entry **ret,
				 struct cube_err *err)
{
	int r = cube_backend_need(s->backend, CUBE_CAP_TEMPLATES, err);

	if (r < 0)
		return r;
	if (!cube_name_template_ok(name))
		return cube_fail(err, -EINVAL,
				 "'%s' is no name for a template: 1 to %d of A-Z a-z 0-9 . _ - :", name,
				 CUBE_NAME_MAX);
	if (cube_template_find(s, name) != NULL)
		return cube_fail(err, -EEXIST, "backend '%s' has a template '%s' already", s->backend->name,
				 name);
	*ret = template_new(s->domain, s, name);
	if (*ret == NULL)
		return cube_fail(err, -ENOMEM, "template '%s': out of memory", name);
	(*ret)->unsaved = true;
	return 0;
}

int cube_template_create(struct cube_service *s, const char *name, struct cube_template_entry **ret,
			 struct cube_err *err)
{
	struct cube_template_entry *t;
	int r = cube_template_create_unsaved(s, name, &t, err);

	if (r < 0)
		return r;
	r = template_mark(s->domain, t);
	if (r < 0) {
		template_delist(t);
		return cube_fail(err, r, "template '%s': state directory: %s", name, cube_errno_text(r));
	}
	t->unsaved = false;
	*ret = t;
	return 0;
}

static void remove_run(struct cube_work *w)
{
	struct remove_work *rw = cube_container_of(w, struct remove_work, work);
	struct cube_domain *d = rw->domain;
	struct cube_err err;
	const struct cube_buf none = CUBE_BUF(0);
	int r = cube_backend_template_remove(rw->service->backend, rw->name, &err);

	if (r == 0)
		cube_build_prune(rw->service->backend, &rw->layers, &none);
	cube_buf_done(&rw->layers);

	cube_domain_enter(d);
	cube_list_remove(&rw->link);
	cube_wake(&rw->service->removed);
	if (r < 0 && r != -ENOENT) {
		cube_log(CUBE_LOG_WARNING, "ctl", "template '%s': %s", rw->name, err.text);
		cube_errlog_add(d->errors, NULL, "rmdir of a template", &err);
	}
	if (!d->closing)
		(void)cube_service_refresh(d, rw->service, NULL, NULL); /* what is there still is shown */
	cube_task_end(d);
	cube_domain_leave(d);
	cube_free(rw);
}

static void template_users_in(const struct cube_list *cubes, const struct cube_template_entry *t,
			      struct cube_buf *out)
{
	cube_list_each (i, cubes) {
		const struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);

		if (c->service == t->service && c->template != NULL && strcmp(c->template, t->info.name) == 0)
			cube_buf_printf(out, "%s'%s'", out->len > 0 ? ", " : "", c->name);
	}
}

/* A pool is named for its sandboxes, which nobody sees. */
static void template_stock_in(const struct cube_stock *p, const struct cube_template_entry *t,
			      struct cube_buf *out)
{
	struct cube_buf users = CUBE_BUF((size_t)1 << 16);

	template_users_in(&p->cubes, t, &users);
	if (users.len > 0)
		cube_buf_printf(out, "%spool '%s'", out->len > 0 ? ", " : "", p->name);
	cube_buf_done(&users);
}

/* Also those that were removed and are being destroyed: the backend would refuse, when nobody is told any
 * more. What is too much for a sentence is cut off at its end. */
static int template_in_use(struct cube_domain *d, const struct cube_template_entry *t, struct cube_err *err)
{
	struct cube_buf users = CUBE_BUF((size_t)1 << 16);
	int r = 0;

	template_users_in(&d->cubes, t, &users);
	template_users_in(&cube_domain_own(d)->dying, t, &users);
	cube_list_each (i, &t->service->stocks)
		template_stock_in(cube_list_entry(i, struct cube_stock, link), t, &users);
	if (users.len > 0)
		r = cube_fail(err, -EBUSY, "template '%s' is used by %s", t->info.name, cube_buf_str(&users));
	cube_buf_done(&users);
	return r;
}

int cube_template_remove(struct cube_template_entry *t, struct cube_err *err)
{
	struct cube_domain *d = t->service->domain;
	struct remove_work *rw;

	if (t->removed)
		return cube_fail(err, -ENOENT, "template '%s' is removed already", t->info.name);
	if (t->import != NULL)
		return cube_fail(
			err, -EBUSY,
			"template '%s': an import or a build is under way; `cancel` in its ctl ends it",
			t->info.name);
	int r = template_in_use(d, t, err);
	if (r < 0)
		return r;
	rw = cube_calloc(1, sizeof(*rw));
	if (rw == NULL)
		return cube_fail(err, -ENOMEM, "template '%s': out of memory", t->info.name);
	rw->work.run = remove_run;
	rw->work.key = cube_backend_queue_key(t->service->backend, t->service);
	rw->domain = d;
	rw->service = t->service;
	rw->layers = t->layers;
	t->layers = CUBE_BUF(CUBE_LAYERS_TEXT);
	(void)snprintf(rw->name, sizeof(rw->name), "%s", t->info.name);
	template_unmark(d, t);
	template_delist(t);
	cube_list_push(&rw->service->removals, &rw->link);
	cube_task_submit(d, &rw->work);
	return 0;
}
