/* SPDX-License-Identifier: Apache-2.0 */
/* The configured backends: opened from the configuration, their status and templates refreshed behind. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/name.h"
#include "backends/base/num.h"
#include "backends/registry.h"
#include "ctl/ctl_priv.h"
#include "ctl/follow.h"
#include "ctl/stock_priv.h"

#define SERVICE_SECTION "backend "

struct service_own {
	struct cube_service s;
	char *name;
	char *state_dir;
	struct cube_backend_env env;
	uint64_t stamp;
	struct cube_cancel *cancel; /* of its refreshes */
	bool listed;                /* the backend has said which templates it has */
};

uint64_t cube_service_stamp(struct cube_service *s)
{
	return ++cube_container_of(s, struct service_own, s)->stamp;
}

bool cube_service_listed(struct cube_service *s)
{
	return cube_container_of(s, struct service_own, s)->listed;
}

void cube_service_set_listed(struct cube_service *s)
{
	cube_container_of(s, struct service_own, s)->listed = true;
}

static void service_free(struct cube_service *s)
{
	struct service_own *own = cube_container_of(s, struct service_own, s);

	cube_follow_free(s);
	cube_stocks_close(s);
	cube_templates_close(s);
	cube_backend_close(s->backend);
	cube_cancel_unref(own->cancel);
	cube_there_done(&s->there);
	cube_buf_done(&s->done);
	cube_free(own->name);
	cube_free(own->state_dir);
	cube_free(own);
}

/* STATE/backends/NAME, the instance's own. */
static int service_dir(struct cube_domain *d, struct service_own *own, struct cube_err *err)
{
	own->state_dir = cube_asprintf("%s/backends/%s", d->state_dir, own->name);
	if (own->state_dir == NULL)
		return cube_fail(err, -ENOMEM, "backend '%s': out of memory", own->name);
	int r = cube_file_mkdir_path(own->state_dir, 0700);
	if (r < 0)
		return cube_fail(err, r, "backend '%s': directory %s: %s", own->name, own->state_dir,
				 cube_errno_text(r));
	return 0;
}

static int service_open(struct cube_domain *d, const char *name, const char *kind,
			const struct cube_conf_section *conf, struct cube_service **ret, struct cube_err *err)
{
	const struct cube_backend_ops *ops = cube_backend_find(kind);

	if (ops == NULL)
		return cube_fail(err, -EINVAL, "backend '%s': no kind '%s' is built in; set kind=%s", name,
				 kind, cube_backend_kinds[0]->kind);
	struct service_own *own = cube_calloc(1, sizeof(*own));
	if (own == NULL)
		return cube_fail(err, -ENOMEM, "backend '%s': out of memory", name);
	cube_list_init(&own->s.link);
	cube_list_init(&own->s.templates);
	cube_list_init(&own->s.removals);
	cube_waitq_init(&own->s.removed);
	cube_list_init(&own->s.stocks);
	cube_buf_init(&own->s.done, CUBE_DONE_MAX);
	own->s.domain = d;
	own->name = cube_strdup(name);
	own->cancel = cube_cancel_new();
	int r = own->name == NULL || own->cancel == NULL
			? cube_fail(err, -ENOMEM, "backend '%s': out of memory", name)
			: service_dir(d, own, err);
	if (r == 0) {
		own->env = (struct cube_backend_env){
			.name = own->name, .state_dir = own->state_dir, .loop = d->loop, .conf = conf};
		r = cube_backend_open(ops, &own->env, &own->s.backend, err);
	}
	if (r < 0) {
		cube_cancel_unref(own->cancel);
		cube_free(own->name);
		cube_free(own->state_dir);
		cube_free(own);
		return r;
	}
	own->s.seq = d->next_seq++;
	*ret = &own->s;
	return 0;
}

static int service_add(struct cube_domain *d, const char *name, const char *kind,
		       const struct cube_conf_section *conf, struct cube_err *err)
{
	struct cube_service *s = NULL;
	int is_default = 0;
	const char *word = cube_conf_get(conf, "default");

	if (!cube_name_ok(name))
		return cube_fail(err, -EINVAL, "configuration: '%s' is no name for a backend", name);
	if (word != NULL && cube_num_bool(word, &is_default) < 0)
		return cube_fail(err, -EINVAL, "configuration: [backend %s] default=%s: yes or no", name,
				 word);
	if (is_default && d->default_service != NULL)
		return cube_fail(err, -EINVAL, "configuration: '%s' and '%s' are both the default backend",
				 d->default_service->backend->name, name);
	int r = service_open(d, name, kind, conf, &s, err);
	if (s == NULL)
		return r;
	cube_list_push(&d->services, &s->link);
	if (is_default)
		d->default_service = s;
	r = cube_templates_load(d, s, err);
	return r < 0 ? r : cube_stocks_load(d, s, err);
}

/* The default stands first. */
static void services_order(struct cube_domain *d)
{
	if (d->default_service == NULL)
		d->default_service = cube_list_entry(d->services.next, struct cube_service, link);

	struct cube_list *l = &d->default_service->link;

	cube_list_remove(l);
	l->prev = &d->services;
	l->next = d->services.next;
	d->services.next->prev = l;
	d->services.next = l;
	d->default_service->seq = 0; /* before all others in a listing */
	cube_list_each (i, &d->services)
		cube_list_entry(i, struct cube_service, link)->seq++;
}

int cube_services_open(struct cube_domain *d, struct cube_err *err)
{
	const struct cube_conf_section *conf;

	for (size_t i = 0; d->conf != NULL && (conf = cube_conf_at(d->conf, i)) != NULL; i++) {
		const char *name = cube_conf_section_name(conf);

		if (strncmp(name, SERVICE_SECTION, strlen(SERVICE_SECTION)) != 0)
			continue;
		name += strlen(SERVICE_SECTION);

		const char *kind = cube_conf_get(conf, "kind");
		int r = service_add(d, name, kind != NULL ? kind : name, conf, err);

		if (r < 0)
			return r;
	}
	if (cube_list_empty(&d->services)) {
		const char *kind = cube_backend_kinds[0]->kind;
		int r = service_add(d, kind, kind, NULL, err);

		if (r < 0)
			return r;
	}
	services_order(d);
	return 0;
}

void cube_services_close(struct cube_domain *d)
{
	for (struct cube_list *i = cube_list_pop(&d->services); i != NULL; i = cube_list_pop(&d->services))
		service_free(cube_list_entry(i, struct cube_service, link));
}

/* ---- Refresh ---- */

static void refresh_template(void *ctx, const struct cube_template *t)
{
	struct cube_template_known known = {.t = *t};
	struct cube_buf *out = ctx;

	if (cube_name_layer_ok(t->name))
		return;
	cube_template_config_init(&known.config);
	(void)cube_buf_add(out, &known, sizeof(known)); /* an overfull list is seen in out->error */
}

static struct cube_template_known *refresh_known(const struct cube_refresh *r, size_t *ret_n)
{
	*ret_n = r->templates.len / sizeof(struct cube_template_known);
	return (struct cube_template_known *)(void *)r->templates.data;
}

/* On the pool's thread. */
static void refresh_templates(struct cube_refresh *r)
{
	struct cube_backend *b = r->service->backend;
	struct cube_template_known *known;
	size_t n;
	int code = cube_backend_template_list(b, refresh_template, &r->templates, NULL);

	known = refresh_known(r, &n);
	for (size_t i = 0; i < n; i++)
		if (strcmp(known[i].t.state, "ready") == 0)
			(void)cube_backend_template_config(b, known[i].t.name, &known[i].config, NULL);
	if (code < 0)
		r->templates.error = code;
}

static void refresh_templates_done(struct cube_refresh *r)
{
	size_t n;
	struct cube_template_known *known = refresh_known(r, &n);

	for (size_t i = 0; i < n; i++)
		cube_template_config_done(&known[i].config);
	cube_buf_done(&r->templates);
}

static void refresh_take(struct cube_refresh *r)
{
	struct cube_service *s = r->service;
	size_t n;
	struct cube_template_known *known = refresh_known(r, &n);

	s->status = r->status;
	s->status_wall = cube_clock_wall();
	if (r->has_there) { /* else what was known before is the better answer */
		cube_there_done(&s->there);
		s->there = r->there;
		r->there = (struct cube_there){0};
	}
	if (r->templates.error == 0 && s->backend->caps & CUBE_CAP_TEMPLATES)
		cube_templates_take(r->domain, s, known, n, r->stamp);
}

static void refresh_run(struct cube_work *w)
{
	struct cube_refresh *r = cube_container_of(w, struct cube_refresh, work);
	struct cube_backend *b = r->service->backend;
	struct cube_domain *d = r->domain;
	struct cube_cancel *cancel = cube_container_of(r->service, struct service_own, s)->cancel;

	r->code = cube_backend_status(b, cancel, &r->status, &r->err);
	if (r->code == 0)
		r->has_there = cube_there_ask(b, cancel, &r->there, NULL) == 0;
	if (b->caps & CUBE_CAP_TEMPLATES)
		refresh_templates(r);
	cube_domain_enter(d);
	if (r->code == 0)
		refresh_take(r);
	else {
		r->service->status.reachable = false;
		r->service->status_wall = cube_clock_wall();
		if (!d->closing)
			cube_log(CUBE_LOG_WARNING, "ctl", "backend '%s': %s", b->name, r->err.text);
	}
	cube_wake(&d->changed);
	refresh_templates_done(r);
	cube_there_done(&r->there);
	if (r->done != NULL)
		r->done(r);
	else
		cube_free(r);
	cube_task_end(d);
	cube_domain_leave(d);
}

void cube_service_cancel(struct cube_service *s)
{
	cube_cancel_fire(cube_container_of(s, struct service_own, s)->cancel);
}

int cube_service_refresh(struct cube_domain *d, struct cube_service *s, struct cube_refresh **ret,
			 struct cube_err *err)
{
	struct cube_refresh *r = cube_calloc(1, sizeof(*r));

	if (r == NULL)
		return cube_fail(err, -ENOMEM, "backend '%s': out of memory", s->backend->name);
	r->domain = d;
	r->service = s;
	r->stamp = cube_service_stamp(s);
	r->work.run = refresh_run;
	r->work.key = cube_backend_queue_key(s->backend, NULL);
	cube_buf_init(&r->templates, (size_t)8 << 20);
	if (ret != NULL)
		*ret = r;
	cube_task_submit(d, &r->work);
	return 0;
}

/* By its mark, its id, or the id that it is about to adopt. */
static bool service_is(const struct cube_cube *c, const struct cube_info *info)
{
	return strcmp(c->uid, info->uid) == 0 || (c->id != NULL && strcmp(c->id, info->id) == 0) ||
	       (c->adopted != NULL && strcmp(c->adopted, info->id) == 0);
}

static struct cube_cube *service_cube_in(const struct cube_list *cubes, const struct cube_service *s,
					 const struct cube_info *info)
{
	cube_list_each (i, cubes) {
		struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);

		if (c->service == s && service_is(c, info))
			return c;
	}
	return NULL;
}

static struct cube_cube *service_find(struct cube_service *s, const struct cube_info *info)
{
	struct cube_cube *c = service_cube_in(&s->domain->cubes, s, info);

	cube_list_each (i, &s->stocks)
		if (c == NULL)
			c = service_cube_in(&cube_list_entry(i, struct cube_stock, link)->cubes, s, info);
	return c;
}

struct cube_cube *cube_service_has(struct cube_service *s, const struct cube_info *info)
{
	struct cube_cube *c = service_find(s, info);

	return c != NULL ? c : service_cube_in(&cube_domain_own(s->domain)->dying, s, info);
}

struct cube_cube *cube_service_cube(struct cube_service *s, const char *uid)
{
	struct cube_info info = {.state = CUBE_IS_GONE};

	(void)snprintf(info.uid, sizeof(info.uid), "%s", uid);
	return service_find(s, &info);
}

/* ---- all of them at once ---- */

static int index_name(struct cube_map *m, char what, const char *word, struct cube_cube *c)
{
	char key[CUBE_ID_MAX + 2];
	int r;

	if (word == NULL || word[0] == '\0')
		return 0;
	(void)snprintf(key, sizeof(key), "%c%s", what, word);
	r = cube_map_put(m, key, c);
	return r == -EEXIST ? 0 : r; /* the first counts, as in cube_service_has */
}

static int index_list(struct cube_map *m, const struct cube_list *cubes, const struct cube_service *s)
{
	int r = 0;

	cube_list_each (i, cubes) {
		struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);

		if (r < 0 || c->service != s)
			continue;
		r = index_name(m, 'u', c->uid, c);
		if (r == 0)
			r = index_name(m, 'i', c->id, c);
		if (r == 0)
			r = index_name(m, 'i', c->adopted, c);
	}
	return r;
}

struct cube_map *cube_service_index(struct cube_service *s)
{
	struct cube_map *m = cube_map_new();
	int r = m != NULL ? index_list(m, &s->domain->cubes, s) : -ENOMEM;

	cube_list_each (i, &s->stocks)
		if (r == 0)
			r = index_list(m, &cube_list_entry(i, struct cube_stock, link)->cubes, s);
	if (r == 0)
		r = index_list(m, &cube_domain_own(s->domain)->dying, s);
	if (r == 0)
		return m;
	cube_map_free(m);
	return NULL;
}

struct cube_cube *cube_service_indexed(const struct cube_map *index, const struct cube_info *info)
{
	char key[CUBE_ID_MAX + 2];
	struct cube_cube *c;

	(void)snprintf(key, sizeof(key), "u%s", info->uid);
	c = cube_map_get(index, key);
	if (c != NULL)
		return c;
	(void)snprintf(key, sizeof(key), "i%s", info->id);
	return cube_map_get(index, key);
}
