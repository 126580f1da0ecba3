/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox comes and goes: acceptance of a creation, the intention on disk, removal. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "ctl/checkpoint_priv.h"
#include "ctl/ctl_priv.h"
#include "ctl/cube.h"
#include "ctl/event.h"
#include "ctl/stock_priv.h"
#include "ctl/transcript.h"
#include "ctl/transfer.h"
#include "ctl/volume_priv.h"

/* What every command finds in its environment unless `env` gives the name another value: a new whole in `env`
 * that has no PATH must not leave a shell that finds no programs. */
static const char create_env[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\0"
				 "HOME=/root\0"
				 "USER=root\0"
				 "LOGNAME=root\0"
				 "LANG=C.UTF-8";

static int create_uid(struct cube_cube *c, struct cube_err *err)
{
	uint64_t n;

	if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n))
		return cube_fail_errno(err, "random numbers");
	(void)snprintf(c->uid, sizeof(c->uid), "%016llx", (unsigned long long)n);
	return 0;
}

/* ---- Creation ---- */

static int create_check_spec(struct cube_cube *c, struct cube_err *err)
{
	struct cube_spec_parts parts;
	int r = cube_spec_make(c, &parts);

	if (r < 0)
		return cube_fail(err, r, "out of memory");
	r = cube_backend_check_spec(c->service->backend, &parts.spec, err);
	cube_spec_done(&parts);
	return r;
}

static void create_take_limits(struct cube_cube *c, const struct cube_limits *l)
{
	const struct cube_limits *said = &cube_own(c)->limits_said;

	if (said->memory == 0 && l->memory != 0)
		c->limits.memory = l->memory;
	if (said->disk == 0 && l->disk != 0)
		c->limits.disk = l->disk;
	if (said->cpus_milli == 0 && l->cpus_milli != 0)
		c->limits.cpus_milli = l->cpus_milli;
}

static int create_take_env(struct cube_cube *c, const struct cube_buf *from)
{
	struct cube_buf *keys = &cube_own(c)->env_keys, env = CUBE_BUF(2 * CUBE_ENV_MAX);
	int r = cube_env_apply(create_env, sizeof(create_env), from->data, from->len, &env);

	cube_buf_reset(&c->env);
	if (r == 0)
		r = cube_env_apply(env.data, env.len, cube_buf_str(keys), keys->len, &c->env);
	cube_buf_done(&env);
	if (r < 0)
		return r;
	cube_env_text_unref(cube_own(c)->env_text);
	cube_own(c)->env_text = cube_create_env_text(cube_buf_str(&c->env), c->env.len);
	return cube_own(c)->env_text != NULL ? 0 : -ENOMEM;
}

/* What its template brings along, where the create line says nothing else, and nobody did meanwhile. */
static int create_take_template(struct cube_cube *c, const struct cube_template_entry *t,
				struct cube_err *err)
{
	int r = 0;

	create_take_limits(c, &t->keys.limits);
	if (t->config.env.len > 0 && c->env_version == 0) {
		r = create_take_env(c, &t->config.env);
		if (r < 0)
			return cube_fail(err, r, "the environment of template '%s': %s", t->info.name,
					 cube_errno_text(r));
		r = cube_state_save_env(c, err);
	}
	return r == 0 ? cube_state_save(c, err) : r;
}

int cube_create_default_env(struct cube_cube *c)
{
	const struct cube_buf *keys = &cube_own(c)->env_keys;

	return cube_env_apply(create_env, sizeof(create_env), cube_buf_str(keys), keys->len, &c->env);
}

struct cube_env_text *cube_create_env_text(const char *env, size_t len)
{
	struct cube_buf full = CUBE_BUF(2 * CUBE_ENV_MAX);
	struct cube_env_text *text = NULL;

	if (cube_env_apply(create_env, sizeof(create_env), env, len, &full) == 0)
		text = cube_env_text_new(cube_buf_str(&full), full.len);
	cube_buf_done(&full);
	return text;
}

static int create_fill_env(struct cube_cube *c, struct cube_err *err)
{
	int r = cube_inside_env(c);

	if (r == 0)
		r = cube_create_default_env(c);
	if (r == 0) {
		cube_own(c)->env_text = cube_create_env_text(cube_buf_str(&c->env), c->env.len);
		r = cube_own(c)->env_text != NULL ? 0 : -ENOMEM;
	}
	return r < 0 ? cube_fail(err, r, "the environment: %s", cube_errno_text(r)) : 0;
}

/* What is in force, for those who look and for later starts, whatever the configuration says then. Limits that
 * cannot be kept at all are none. */
void cube_create_limits(struct cube_cube *c)
{
	const struct cube_limits *with = &c->service->backend->defaults;
	uint32_t caps = c->service->backend->caps;

	if (c->limits.memory == 0 && (caps & CUBE_CAP_MEMORY))
		c->limits.memory = with->memory;
	if (c->limits.pids == 0 && (caps & CUBE_CAP_PIDS))
		c->limits.pids = with->pids;
	if (c->limits.cpus_milli == 0 && (caps & CUBE_CAP_CPUS))
		c->limits.cpus_milli = with->cpus_milli;
	if (c->limits.disk == 0 && (caps & CUBE_CAP_DISK))
		c->limits.disk = with->disk;
}

/* An alias becomes the name that it stands for. */
static int create_template(struct cube_cube *c, struct cube_err *err)
{
	const struct cube_template_entry *t =
		c->template != NULL ? cube_template_named(c->service, c->template) : NULL;
	char *name;

	if (t == NULL || strcmp(t->info.name, c->template) == 0)
		return 0;
	name = cube_strdup(t->info.name);
	if (name == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	cube_free(c->template);
	c->template = name;
	return 0;
}

static int create_fill(struct cube_cube *c, const char *name, const struct cube_create_key *keys, size_t n,
		       struct cube_err *err)
{
	int r = create_uid(c, err);
	if (r < 0)
		return r;
	c->name = cube_strdup(name != NULL ? name : c->uid);
	if (c->name == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	r = cube_keys_apply(c, keys, n, err);
	if (r == 0)
		r = create_template(c, err);
	if (r == 0)
		r = create_fill_env(c, err);
	if (r == 0 && c->adopted == NULL && cube_own(c)->from == NULL)
		r = cube_template_usable(c->service, c->template, NULL, err);
	if (r >= 0)
		r = create_check_spec(c, err);
	if (r < 0)
		return r;
	if (c->adopted != NULL)
		return cube_adopt_check(c, err);
	cube_own(c)->limits_said = c->limits;
	cube_create_limits(c);
	return 0;
}

static void create_template_ready(struct cube_waiter *w)
{
	struct cube_own *own = cube_container_of(w, struct cube_own, template_wait);

	cube_create_go(&own->c);
}

void cube_create_go(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);
	struct cube_template_entry *t = NULL;
	struct cube_err err = {0};

	if (c->phase != CUBE_CREATING || c->domain->closing)
		return;
	int r = c->adopted != NULL || own->from != NULL
			? 0
			: cube_template_usable(c->service, c->template, &t, &err);
	if (r == 1) {
		cube_waiter_init(&own->template_wait, create_template_ready);
		cube_wait_add(&t->changed, &own->template_wait);
		return;
	}
	if (r == 0 && t != NULL)
		r = create_take_template(c, t, &err);
	if (r == 0 && t != NULL)
		r = cube_services_start(c, t, &err);
	if (r == 0)
		r = cube_op_begin(c, CUBE_OP_CREATE, 0, NULL, &err);
	if (r < 0) {
		c->failure = err;
		cube_cube_enter(c, CUBE_ERROR, "the creation failed", "error");
	}
}

/* The directory with the intention, then the name (if it gets one): who sees the name can rely on both. */
static int create_accept(struct cube_cube *c, struct cube_err *err)
{
	int r = cube_ports_start(c, err);

	if (r == 0)
		r = cube_cube_open_dir(c, err);
	if (r == 0)
		r = cube_use_accept(c, err);
	/* Else by the thread that goes on to make it (cube_op_run_create). */
	cube_own(c)->sync_due = !c->service->backend->ops->beside_state;
	if (r == 0)
		r = cube_state_save(c, err);
	if (r == 0)
		r = cube_use_save_volumes(c, err);
	if (r == 0 && cube_own(c)->from != NULL)
		r = cube_state_save_env(c, err);
	if (r == 0 && !cube_own(c)->unseen)
		r = cube_cube_enlist(c, err);
	if (r < 0)
		cube_use_undo(c);
	if (r < 0 && c->dir_fd >= 0)
		(void)cube_file_remove_tree(cube_domain_own(c->domain)->cubes_fd, c->uid);
	return r;
}

static void create_tell(struct cube_cube *c)
{
	char detail[CUBE_NAME_MAX + 40];

	c->doing = cube_op_name(CUBE_OP_CREATE);
	cube_transcript_add(c->log, "life", "creating\n", 9, true);
	(void)snprintf(detail, sizeof(detail), "backend %s, uid %s", c->service->backend->name, c->uid);
	cube_cube_event(c, "created", detail);
}

static int create_made(struct cube_cube *c, struct cube_err *err)
{
	int r = create_accept(c, err);

	if (r < 0) {
		if (cube_own(c)->stock != NULL)
			cube_stock_let_go(c);
		cube_cube_unref(c);
		return r;
	}
	create_tell(c);
	cube_create_go(c);
	return 0;
}

/* Out of a pool: who it is now is on disk before it has the name. */
static int create_taken(struct cube_cube *c, struct cube_err *err)
{
	int r = cube_state_save(c, err);

	if (r == 0)
		r = cube_cube_enlist(c, err);
	if (r < 0) { /* it has no name, neither the old one nor the new one */
		cube_own(c)->unseen = true;
		(void)cube_cube_remove(c, NULL, NULL);
		return r;
	}
	create_tell(c);
	r = cube_op_begin(c, CUBE_OP_TAKE, 0, NULL, &c->failure);
	if (r < 0)
		cube_cube_enter(c, CUBE_ERROR, "the creation failed", "error");
	return 0;
}

static int create_check_name(struct cube_domain *d, const char *name, struct cube_err *err)
{
	int r = cube_cube_check_name(name, err);

	if (r < 0)
		return r;
	if (d->closing)
		return cube_fail(err, -EHOSTDOWN, "sandbox '%s': the daemon is ending", name);
	if (cube_domain_find(d, name) != NULL)
		return cube_fail(err, -EEXIST, "a sandbox named '%s' is there already", name);
	return 0;
}

/* A sandbox with all that the keys say, of which nobody knows yet. @name NULL: one without. */
static int create_new(struct cube_domain *d, const char *name, const struct cube_stock_order *order,
		      struct cube_cube **ret, struct cube_err *err)
{
	struct cube_cube *c = cube_cube_new(d);
	int r;

	if (c == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	c->created_wall = c->used_wall = cube_clock_wall();
	r = create_fill(c, name, order->keys, order->n, err);
	if (r == 0 && order->stock != NULL) {
		c->pool = cube_strdup(order->stock->name);
		if (c->pool == NULL)
			r = cube_fail(err, -ENOMEM, "out of memory");
	}
	if (r < 0) {
		cube_cube_unref(c);
		return r;
	}
	*ret = c;
	return 0;
}

int cube_create_check(struct cube_domain *d, const struct cube_create_key *keys, size_t n,
		      struct cube_err *err)
{
	const struct cube_stock_order order = {.keys = keys, .n = n};
	struct cube_cube *c;
	int r = create_new(d, NULL, &order, &c, err);

	if (r == 0)
		cube_cube_unref(c);
	return r;
}

int cube_create_kept(struct cube_stock *p, struct cube_err *err)
{
	struct cube_stock_order order;
	struct cube_cube *c = NULL;
	int r = cube_stock_order_template(p, p->template, &order, err);

	if (r == 0)
		r = create_new(p->service->domain, NULL, &order, &c, err);
	cube_stock_order_done(&order);
	if (r < 0)
		return r;
	cube_own(c)->stock_revision = p->revision;
	cube_stock_keep(p, c);
	return create_made(c, err);
}

/* @wanted becomes a sandbox: one of the pool's with its name, or itself. */
static int create_begin(struct cube_stock *stock, struct cube_cube *wanted, struct cube_cube **ret,
			struct cube_err *err)
{
	struct cube_cube *taken = stock != NULL ? cube_stock_take(stock, wanted) : NULL;
	int r;

	*ret = taken != NULL ? taken : wanted;
	if (taken == NULL)
		return create_made(wanted, err);
	cube_cube_unref(wanted);
	r = create_taken(taken, err);
	cube_stock_took(stock);
	return r;
}

int cube_create_as(struct cube_domain *d, const struct cube_caller *by, const char *name,
		   const struct cube_create_key *keys, size_t n_keys, bool keep, struct cube_cube **ret,
		   struct cube_err *err)
{
	struct cube_stock_order order = {.stock = NULL};
	struct cube_cube *c = NULL;

	(void)by;
	int r = create_check_name(d, name, err);
	if (r < 0)
		return r;
	r = cube_stock_order(d, keys, n_keys, &order, err);
	if (r == 0)
		r = create_new(d, name, &order, &c, err);
	if (r < 0) {
		(void)cube_fail_in(err, "sandbox '%s'", name);
	} else {
		cube_own(c)->keep = keep;
		r = create_begin(order.stock, c, ret, err);
	}
	cube_stock_order_done(&order);
	return r;
}

int cube_cube_create(struct cube_domain *d, const struct cube_caller *by, const char *name,
		     const struct cube_create_key *keys, size_t n_keys, struct cube_cube **ret,
		     struct cube_err *err)
{
	return cube_create_as(d, by, name, keys, n_keys, true, ret, err);
}

/* ---- Of another one ---- */

static int from_refuse(const struct cube_create_key *keys, size_t n, struct cube_err *err)
{
	static const char *const no[] = {"template", "pool", "adopt"};

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < CUBE_COUNT(no); k++)
			if (strcmp(keys[i].key, no[k]) == 0)
				return cube_fail(err, -EINVAL,
						 "%s=%s: its files are those of another sandbox", no[k],
						 keys[i].value);
	return 0;
}

/* What was said of the parent, when it was made and since. */
static int from_settings(struct cube_cube *c, struct cube_cube *parent, struct cube_err *err)
{
	struct cube_own *own = cube_own(c), *old = cube_own(parent);
	cube_auto(cube_json_auto) json_t *inside = cube_inside_save(old);

	c->service = parent->service;
	c->limits = parent->limits;
	c->net = parent->net;
	c->privileged = parent->privileged;
	c->command_timeout_s = parent->command_timeout_s;
	c->resume = parent->resume;
	c->times = parent->times;
	c->times.ends_wall = c->times.lease_wall = 0;
	if (inside == NULL || cube_inside_load(own, inside) < 0 ||
	    cube_buf_add(&own->env_keys, cube_buf_str(&old->env_keys), old->env_keys.len) < 0)
		return cube_fail(err, -ENOMEM, "out of memory");
	return cube_keys_copy(c, parent, err);
}

/* The parent's environment, with what the line says. */
static int from_env(struct cube_cube *c, const struct cube_cube *parent, struct cube_err *err)
{
	struct cube_own *own = cube_own(c);
	int r;

	cube_buf_reset(&c->env);
	r = cube_env_apply(cube_buf_str((struct cube_buf *)(uintptr_t)&parent->env), parent->env.len,
			   cube_buf_str(&own->env_keys), own->env_keys.len, &c->env);
	cube_env_text_unref(own->env_text);
	own->env_text = r == 0 ? cube_create_env_text(cube_buf_str(&c->env), c->env.len) : NULL;
	c->env_version = 1;
	return own->env_text != NULL ? 0 : cube_fail(err, r < 0 ? r : -ENOMEM, "the environment");
}

static int from_fill(struct cube_cube *c, struct cube_cube *parent, struct cube_checkpoint_entry *from,
		     struct cube_err *err)
{
	c->created_wall = c->used_wall = cube_clock_wall();
	cube_own(c)->from = cube_checkpoint_ref(from);
	c->parent = from->name != NULL ? cube_asprintf("%s/%s", parent->name, from->name)
				       : cube_strdup(parent->name);
	if (c->parent == NULL || cube_checkpoint_restored(c, from) < 0)
		return cube_fail(err, -ENOMEM, "out of memory");
	return from_settings(c, parent, err);
}

int cube_create_from(const struct cube_fork_source *from, const char *name,
		     const struct cube_create_key *keys, size_t n_keys, struct cube_cube **ret,
		     struct cube_err *err)
{
	struct cube_cube *parent = from->parent, *c;
	int r = create_check_name(parent->domain, name, err);

	if (r == 0)
		r = from_refuse(keys, n_keys, err);
	if (r < 0)
		return r;
	c = cube_cube_new(parent->domain);
	if (c == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	r = from_fill(c, parent, from->files, err);
	if (r == 0)
		r = create_fill(c, name, keys, n_keys, err);
	(void)snprintf(cube_own(c)->fork, sizeof(cube_own(c)->fork), "%s",
		       from->first != NULL ? from->first->uid : c->uid);
	if (r == 0)
		r = cube_use_inherit(c, parent, from->volumes != NULL ? from->volumes : from->files,
				     from->fork, err);
	if (r == 0)
		r = from_env(c, parent, err);
	if (r < 0) {
		cube_cube_unref(c);
		return r;
	}
	*ret = c;
	return create_made(c, err);
}

/* ---- Removal ---- */

int cube_cube_remove(struct cube_cube *c, const struct cube_caller *by, struct cube_err *err)
{
	static const struct cube_err destroyed = {.code = -EHOSTDOWN, .text = "the sandbox was destroyed"};

	(void)by;
	if (c->phase == CUBE_REMOVED)
		return cube_fail(err, -ENOENT, "sandbox '%s' is being destroyed already", c->name);
	if (c->domain->closing)
		return cube_fail(err, -EHOSTDOWN, "sandbox '%s': the daemon is ending", c->name);
	int r = cube_state_mark_removed(c, err);
	if (r < 0)
		return r;
	if (c->phase == CUBE_CREATING || !cube_own(c)->keep)
		cube_use_undo(c);
	cube_transfers_cancel(c);
	c->phase = CUBE_REMOVED;
	(void)snprintf(c->reason, sizeof(c->reason), "destroyed");
	cube_cube_delist(c);
	cube_alarm_off(&cube_own(c)->relink);
	cube_wait_remove(&cube_own(c)->template_wait);
	cube_ports_close(c, true);
	cube_cube_end_jobs(c, CUBE_END_KILLED, &destroyed);
	cube_cube_changed(c);
	(void)cube_op_begin(c, CUBE_OP_DESTROY, 0, NULL, NULL);
	return 0;
}
