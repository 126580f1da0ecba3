/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a sandbox: ctl, status, info.json, env. */
#include "ctl/show_priv.h"

#include <errno.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/base/json.h"
#include "ctl/ctl_priv.h"
#include "ctl/stock.h"
#include "ctl/volume_priv.h"

/* What interface.md has for a sandbox and this backend cannot give, with the reason. */
static const struct {
	enum cube_cap cap;
	const char *entry;
} show_entries[] = {
	{CUBE_CAP_EXEC, "exec"},
	{CUBE_CAP_FILES, "files"},
	{CUBE_CAP_PORTS, "ports"},
	{CUBE_CAP_USAGE, "metrics"},
	{CUBE_CAP_ACCESS, "access"},
	{CUBE_CAP_CHANGES, "changes"},
	{CUBE_CAP_CHECKPOINTS, "checkpoints"},
};

static void show_absent(struct cube_cube *c, struct cube_buf *out)
{
	for (unsigned i = 0; i < CUBE_COUNT(show_entries); i++) {
		struct cube_err err = {0};

		if (cube_backend_need(c->service->backend, show_entries[i].cap, &err) < 0) {
			cube_buf_printf(out, "absent %s ", show_entries[i].entry);
			cube_buf_add_escaped(out, err.text, strlen(err.text), false);
			cube_buf_addc(out, '\n');
		}
	}
}

static const char *show_net(const struct cube_cube *c)
{
	return c->net == CUBE_NET_OPEN ? "open" : "none";
}

static void show_kept(const struct cube_backend *b, struct cube_buf *out, enum cube_cap cap)
{
	unsigned bit = 0;

	while (1u << bit != (uint32_t)cap)
		bit++;
	cube_buf_adds(out, " kept");
	if (b->kept_by[bit] != NULL)
		cube_buf_printf(out, " by %s", b->kept_by[bit]);
}

static void show_limit(struct cube_cube *c, struct cube_buf *out, const char *name, uint64_t value,
		       enum cube_cap cap)
{
	uint32_t caps = c->service->backend->caps;

	cube_buf_printf(out, "limit.%s ", name);
	if (value == 0)
		cube_buf_adds(out, "none");
	else if (cap == CUBE_CAP_CPUS)
		cube_buf_printf(out, "%llu.%03llu", (unsigned long long)value / 1000,
				(unsigned long long)value % 1000);
	else
		cube_buf_printf(out, "%llu", (unsigned long long)value);
	if (!(caps & cap))
		cube_buf_adds(out, " not kept");
	else if (value != 0)
		show_kept(c->service->backend, out, cap);
	cube_buf_addc(out, '\n');
}

static void show_limits(struct cube_cube *c, struct cube_buf *out)
{
	show_limit(c, out, "memory", c->limits.memory, CUBE_CAP_MEMORY);
	show_limit(c, out, "pids", c->limits.pids, CUBE_CAP_PIDS);
	show_limit(c, out, "cpus", c->limits.cpus_milli, CUBE_CAP_CPUS);
	show_limit(c, out, "disk", c->limits.disk, CUBE_CAP_DISK);
}

static void show_usage(struct cube_cube *c, struct cube_buf *out)
{
	bool known = c->usage_wall != 0;
	uint64_t cpu = known && c->usage.cpu_ns != UINT64_MAX ? c->usage.cpu_ns / 1000000 : UINT64_MAX;

	cube_show_num(out, "pids", known ? c->usage.pids : UINT64_MAX);
	if (cpu == UINT64_MAX)
		cube_show_str(out, "cpu", NULL);
	else
		cube_show_milli(out, "cpu", cpu);
	cube_show_num(out, "memory", known ? c->usage.memory : UINT64_MAX);
	cube_show_num(out, "disk", known ? c->usage.disk : UINT64_MAX);
	cube_show_time(out, "usage_taken", c->usage_wall);
}

/* A lease that is over is none. */
static uint64_t show_lease(const struct cube_cube *c)
{
	return c->times.lease_wall > cube_clock_wall() ? c->times.lease_wall : 0;
}

static void show_times(struct cube_cube *c, struct cube_buf *out)
{
	const struct cube_times *t = &c->times;

	cube_show_time(out, "ends", t->ends_wall);
	cube_show_time(out, "lease", show_lease(c));
	cube_show_num(out, "idle", t->idle_s);
	cube_show_str(out, "idle_background", t->idle_background ? "yes" : "no");
	cube_show_num(out, "lifetime", t->lifetime_s);
	cube_show_str(out, "at_end", cube_at_end_name(t->at_end));
}

static const char *show_reason(const struct cube_cube *c)
{
	return c->phase == CUBE_ERROR && c->failure.text[0] != '\0' ? c->failure.text : c->reason;
}

static void show_volumes(struct cube_cube *c, struct cube_buf *out)
{
	const struct cube_own *own = cube_own(c);

	for (size_t i = 0; i < own->n_volumes; i++) {
		const struct cube_volume_use *u = &own->volumes[i];

		cube_buf_adds(out, "volume.");
		cube_buf_add_escaped(out, u->path, strlen(u->path), false);
		cube_buf_printf(out, " %s%s\n", u->volume != NULL ? u->volume->name : u->name,
				u->read_only ? ",ro" : "");
	}
}

static void show_binds(struct cube_cube *c, struct cube_buf *out)
{
	const struct cube_binds *b = &cube_own(c)->binds;

	for (size_t i = 0; i < b->n; i++) {
		cube_buf_adds(out, "bind.");
		cube_buf_add_escaped(out, b->list[i].path, strlen(b->list[i].path), false);
		cube_buf_adds(out, b->list[i].read_only ? " ro " : " rw ");
		cube_buf_add_escaped(out, b->list[i].source, strlen(b->list[i].source), false);
		cube_buf_addc(out, '\n');
	}
}

static void show_head(struct cube_cube *c, struct cube_buf *out)
{
	cube_show_str(out, "state", cube_phase_name(c->phase));
	cube_show_str(out, "reason", show_reason(c));
	cube_show_str(out, "id", c->id);
	cube_show_str(out, "uid", c->uid);
	cube_show_str(out, "backend", c->service->backend->name);
	cube_show_str(out, "agent", c->service->backend->way);
	cube_show_str(out, "adopted", c->adopted);
	cube_show_str(out, "template", cube_cube_template(c));
	cube_show_str(out, "parent", c->parent);
	cube_show_str(out, "pool", c->pool_cold ? CUBE_STOCK_COLD : c->pool);
}

/* Those that run now, of jobs and of sessions. */
static uint64_t show_commands(const struct cube_cube *c)
{
	uint64_t n = 0;

	cube_list_each (i, &c->jobs)
		n += cube_list_entry(i, struct cube_job, link)->state == CUBE_JOB_RUNNING;
	return n;
}

/* How the data of files/ goes; nothing where nobody shows files. */
static void show_files(struct cube_cube *c, struct cube_buf *out)
{
	const struct cube_domain_watcher *w = &c->domain->watcher;
	const char *why;

	if (w->files_served == NULL)
		return;
	why = w->files_served(w->ctx);
	cube_buf_adds(out, why == NULL ? "files passthrough" : "files served: ");
	if (why != NULL)
		cube_buf_printf(out, "%s; while something runs inside, a shared writable mapping is refused",
				why);
	cube_buf_printf(out, "\nfiles_kept %s\n", w->files_kept(w->ctx));
}

int cube_show_status(struct cube_cube *c, struct cube_buf *out)
{
	show_head(c, out);
	cube_show_num(out, "generation", c->generation);
	cube_show_str(out, "terminal", c->terminal ? "yes" : "no");
	cube_show_time(out, "created", c->created_wall);
	cube_show_time(out, "started", c->started_wall);
	cube_show_time(out, "idle_since", cube_use_idle_since(c));
	show_times(c, out);
	cube_show_str(out, "net", show_net(c));
	cube_show_str(out, "user", cube_inside_default_user(c));
	cube_show_num(out, "command_timeout", c->command_timeout_s);
	cube_show_str(out, "resume", c->resume ? "yes" : "no");
	show_volumes(c, out);
	show_binds(c, out);
	show_limits(c, out);
	show_files(c, out);
	show_usage(c, out);
	cube_show_num(out, "commands", show_commands(c));
	cube_show_str(out, "doing", c->doing);
	cube_buf_add(out, c->done.data, c->done.len);
	cube_show_labels(c->labels, cube_show_label_line, out);
	show_absent(c, out);
	return out->error;
}

int cube_show_ctl(struct cube_cube *c, struct cube_buf *out)
{
	show_head(c, out);
	cube_show_str(out, "doing", c->doing);
	return cube_show_usage(CUBE_SCOPE_CUBE, c, out);
}

int cube_show_env(struct cube_cube *c, struct cube_buf *out)
{
	for (size_t at = 0; at < c->env.len; at += strlen(c->env.data + at) + 1) {
		cube_buf_adds(out, c->env.data + at);
		cube_buf_addc(out, '\n');
	}
	return out->error;
}

/* ---- info.json ---- */

static void info_str(json_t *o, const char *key, const char *value)
{
	(void)json_object_set_new(o, key,
				  value != NULL && value[0] != '\0' ? cube_json_bytes(value, strlen(value))
								    : json_null());
}

static void info_num(json_t *o, const char *key, uint64_t value)
{
	(void)json_object_set_new(o, key,
				  value != UINT64_MAX ? json_integer((json_int_t)value) : json_null());
}

static void info_time(json_t *o, const char *key, uint64_t wall)
{
	char text[CUBE_TIME_TEXT];

	info_str(o, key, wall != 0 ? cube_clock_text(wall, text) : NULL);
}

static void info_label(void *ctx, const char *name, const char *value)
{
	info_str(ctx, name, value);
}

static json_t *info_env(const struct cube_cube *c)
{
	json_t *list = json_array();

	for (size_t at = 0; at < c->env.len; at += strlen(c->env.data + at) + 1)
		(void)json_array_append_new(list,
					    cube_json_bytes(c->env.data + at, strlen(c->env.data + at)));
	return list;
}

static json_t *info_caps(const struct cube_cube *c)
{
	const struct cube_backend *b = c->service->backend;
	json_t *o = json_object();

	for (unsigned n = 0; n < CUBE_CAP_COUNT; n++)
		(void)json_object_set_new(o, cube_cap_name(n), json_boolean(b->caps & (1u << n)));
	return o;
}

static json_t *info_limits(const struct cube_cube *c)
{
	json_t *o = json_object();

	info_num(o, "memory", c->limits.memory != 0 ? c->limits.memory : UINT64_MAX);
	info_num(o, "disk", c->limits.disk != 0 ? c->limits.disk : UINT64_MAX);
	info_num(o, "pids", c->limits.pids != 0 ? c->limits.pids : UINT64_MAX);
	info_num(o, "cpus_milli", c->limits.cpus_milli != 0 ? c->limits.cpus_milli : UINT64_MAX);
	return o;
}

static json_t *info_usage(const struct cube_cube *c)
{
	json_t *o = json_object();
	bool known = c->usage_wall != 0;

	info_num(o, "pids", known ? c->usage.pids : UINT64_MAX);
	info_num(o, "cpu_ns", known ? c->usage.cpu_ns : UINT64_MAX);
	info_num(o, "memory", known ? c->usage.memory : UINT64_MAX);
	info_num(o, "disk", known ? c->usage.disk : UINT64_MAX);
	info_time(o, "taken", c->usage_wall);
	return o;
}

static void info_times(const struct cube_cube *c, json_t *o)
{
	const struct cube_times *t = &c->times;

	info_time(o, "ends", t->ends_wall);
	info_time(o, "lease", show_lease(c));
	info_num(o, "idle", t->idle_s);
	(void)json_object_set_new(o, "idle_background", json_boolean(t->idle_background));
	info_num(o, "lifetime", t->lifetime_s);
	info_str(o, "at_end", cube_at_end_name(t->at_end));
}

static json_t *info_volumes(struct cube_cube *c)
{
	const struct cube_own *own = cube_own(c);
	json_t *list = json_array();

	for (size_t i = 0; i < own->n_volumes; i++) {
		const struct cube_volume_use *u = &own->volumes[i];

		(void)json_array_append_new(list, json_pack("{s:s,s:o,s:b}", "volume",
							    u->volume != NULL ? u->volume->name : u->name,
							    "path", cube_json_bytes(u->path, strlen(u->path)),
							    "read_only", (int)u->read_only));
	}
	return list;
}

static json_t *info_binds(struct cube_cube *c)
{
	const struct cube_binds *b = &cube_own(c)->binds;
	json_t *list = json_array();

	for (size_t i = 0; i < b->n; i++) {
		const struct cube_bind_use *u = &b->list[i];

		(void)json_array_append_new(list, json_pack("{s:o,s:o,s:b}", "source",
							    cube_json_bytes(u->source, strlen(u->source)),
							    "path", cube_json_bytes(u->path, strlen(u->path)),
							    "read_only", (int)u->read_only));
	}
	return list;
}

static void info_basics(struct cube_cube *c, json_t *o)
{
	info_str(o, "name", c->name);
	info_str(o, "state", cube_phase_name(c->phase));
	info_str(o, "reason", show_reason(c));
	info_str(o, "id", c->id);
	info_str(o, "uid", c->uid);
	info_str(o, "backend", c->service->backend->name);
	info_str(o, "kind", c->service->backend->ops->kind);
	info_str(o, "adopted", c->adopted);
	info_str(o, "template", cube_cube_template(c));
	info_str(o, "parent", c->parent);
	info_str(o, "pool", c->pool);
	(void)json_object_set_new(o, "pool_cold", json_boolean(c->pool_cold));
	info_num(o, "generation", c->generation);
	(void)json_object_set_new(o, "terminal", json_boolean(c->terminal));
	info_time(o, "created", c->created_wall);
	info_time(o, "started", c->started_wall);
	info_time(o, "idle_since", cube_use_idle_since(c));
	info_times(c, o);
	info_str(o, "net", show_net(c));
	info_str(o, "user", cube_inside_default_user(c));
	info_num(o, "command_timeout", c->command_timeout_s);
	(void)json_object_set_new(o, "resume", json_boolean(c->resume));
	info_num(o, "commands", show_commands(c));
	info_str(o, "doing", c->doing);
}

int cube_show_info(struct cube_cube *c, struct cube_buf *out)
{
	cube_auto(cube_json_auto) json_t *o = json_object();
	json_t *labels = json_object();

	info_basics(c, o);
	cube_show_labels(c->labels, info_label, labels);
	(void)json_object_set_new(o, "labels", labels);
	(void)json_object_set_new(o, "env", info_env(c));
	(void)json_object_set_new(o, "volumes", info_volumes(c));
	(void)json_object_set_new(o, "binds", info_binds(c));
	(void)json_object_set_new(o, "limits", info_limits(c));
	(void)json_object_set_new(o, "usage", info_usage(c));
	(void)json_object_set_new(o, "capabilities", info_caps(c));
	if (o == NULL || cube_json_write(o, out) < 0)
		return out->error != 0 ? out->error : -ENOMEM;
	return cube_buf_addc(out, '\n');
}
