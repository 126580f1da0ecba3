/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a create line: one table, every refusal before anything exists. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/name.h"
#include "backends/base/num.h"
#include "ctl/ctl_priv.h"
#include "ctl/volume_priv.h"

#define LABEL_MAX 1024 /* bytes of a label's value */

struct create_key {
	const char *name;
	int (*take)(struct cube_cube *c, const char *value, struct cube_err *err);
};

static int key_bad(struct cube_err *err, const char *key, const char *value, const char *what)
{
	return cube_fail(err, -EINVAL, "%s=%s: %s", key, value, what);
}

/* create and fork have taken it away. */
static int key_from(struct cube_cube *c, const char *value, struct cube_err *err)
{
	(void)c;
	return key_bad(err, "from", value, "only `create` and `fork` make a sandbox of another one");
}

static int key_done(struct cube_cube *c, const char *value, struct cube_err *err)
{
	(void)c, (void)value, (void)err; /* taken before all others */
	return 0;
}

static int key_template(struct cube_cube *c, const char *value, struct cube_err *err)
{
	if (!cube_template_alias_ok(value))
		return key_bad(err, "template", value, "no name of a template");
	cube_free(c->template);
	c->template = cube_strdup(value);
	return c->template != NULL ? 0 : cube_fail(err, -ENOMEM, "out of memory");
}

static int key_adopt(struct cube_cube *c, const char *value, struct cube_err *err)
{
	if (!cube_backend_id_ok(value))
		return key_bad(err, "adopt", value, "no id of a sandbox (see backends/NAME/sandboxes)");
	c->adopted = cube_strdup(value);
	return c->adopted != NULL ? 0 : cube_fail(err, -ENOMEM, "out of memory");
}

/* ---- Limits ---- */

static int limit_cpus(const char *value, struct cube_limits *l)
{
	uint64_t n;

	if (cube_num_milli(value, &n) < 0 || n < 10 || n > 4096000)
		return -EINVAL;
	l->cpus_milli = (uint32_t)n;
	return 0;
}

static int limit_memory(const char *value, struct cube_limits *l)
{
	return cube_num_size(value, &l->memory) < 0 || l->memory < (UINT64_C(4) << 20) ? -EINVAL : 0;
}

static int limit_disk(const char *value, struct cube_limits *l)
{
	return cube_num_size(value, &l->disk) < 0 || l->disk < (UINT64_C(1) << 20) ? -EINVAL : 0;
}

static int limit_pids(const char *value, struct cube_limits *l)
{
	uint64_t n;

	if (cube_num_u64(value, 4194304, &n) < 0 || n < 8)
		return -EINVAL;
	l->pids = (uint32_t)n;
	return 0;
}

static const struct {
	const char *key, *what;
	enum cube_cap cap;
	int (*parse)(const char *value, struct cube_limits *l);
} key_limits[] = {
	{"cpus", "a number from 0.01 to 4096", CUBE_CAP_CPUS, limit_cpus},
	{"memory", "a size of at least 4M, as 512M or 2G", CUBE_CAP_MEMORY, limit_memory},
	{"disk", "a size of at least 1M, as 10G", CUBE_CAP_DISK, limit_disk},
	{"pids", "a number from 8 to 4194304", CUBE_CAP_PIDS, limit_pids},
};

int cube_keys_limit(const char *key, const char *value, struct cube_limits *limits, enum cube_cap *ret_cap,
		    struct cube_err *err)
{
	for (size_t i = 0; i < CUBE_COUNT(key_limits); i++) {
		if (strcmp(key, key_limits[i].key) != 0)
			continue;
		*ret_cap = key_limits[i].cap;
		if (key_limits[i].parse(value, limits) < 0)
			return key_bad(err, key, value, key_limits[i].what);
		return 1;
	}
	return 0;
}

/* ---- The others ---- */

static int key_net(struct cube_cube *c, const char *value, struct cube_err *err)
{
	if (strcmp(value, "none") == 0)
		c->net = CUBE_NET_NONE;
	else if (strcmp(value, "open") == 0)
		c->net = CUBE_NET_OPEN;
	else if (strcmp(value, "policy") == 0)
		return cube_fail(err, -EOPNOTSUPP,
				 "net=policy: backend '%s' keeps no rules for what goes out; "
				 "use net=none or net=open",
				 c->service->backend->name);
	else
		return key_bad(err, "net", value, "none or open");
	return 0;
}

static int key_timeout(struct cube_cube *c, const char *value, struct cube_err *err)
{
	uint64_t n;

	if (cube_num_u64(value, UINT32_MAX / 1000, &n) < 0)
		return key_bad(err, "command_timeout", value, "seconds, 0 for none");
	c->command_timeout_s = (uint32_t)n;
	return 0;
}

static int key_times(struct cube_cube *c, const char *key, const char *value, struct cube_err *err)
{
	int r = cube_times_set(c, key, value, err);

	return r < 0 ? r : 0;
}

static int key_idle(struct cube_cube *c, const char *value, struct cube_err *err)
{
	return key_times(c, "idle", value, err);
}

static int key_lifetime(struct cube_cube *c, const char *value, struct cube_err *err)
{
	return key_times(c, "lifetime", value, err);
}

static int key_at_end(struct cube_cube *c, const char *value, struct cube_err *err)
{
	return key_times(c, "at_end", value, err);
}

static int key_privileged(struct cube_cube *c, const char *value, struct cube_err *err)
{
	int on;

	if (cube_num_bool(value, &on) < 0)
		return key_bad(err, "privileged", value, "yes or no");
	c->privileged = on != 0;
	return 0;
}

static int key_volume(struct cube_cube *c, const char *value, struct cube_err *err)
{
	return cube_use_add(c, "/workspace", value, err);
}

static const struct create_key create_keys[] = {
	{"backend", key_done},    {"template", key_template},
	{"net", key_net},         {"command_timeout", key_timeout},
	{"idle", key_idle},       {"lifetime", key_lifetime},
	{"at_end", key_at_end},   {"privileged", key_privileged},
	{"pool", key_done},       {"ports", cube_ports_take},
	{"volume", key_volume},   {"from", key_from},
	{"adopt", key_adopt},     {"user", cube_inside_user},
	{"gpu", cube_inside_gpu}, {"require", cube_inside_require},
};

/* ---- Families ---- */

static int label_free(void *ctx, const char *key, void *value)
{
	(void)ctx, (void)key;
	cube_free(value);
	return 0;
}

void cube_labels_free(struct cube_map *labels)
{
	if (labels != NULL)
		(void)cube_map_each(labels, label_free, NULL);
	cube_map_free(labels);
}

int cube_labels_set(struct cube_map *labels, const char *name, const char *value, struct cube_err *err)
{
	if (!cube_name_ok(name))
		return cube_fail(err, -EINVAL, "label.%s: a label's name is 1 to %d of A-Z a-z 0-9 . _ -",
				 name, CUBE_NAME_MAX);
	if (strlen(value) > LABEL_MAX || strchr(value, '\n') != NULL)
		return cube_fail(err, -EINVAL, "label.%s: a label is one line of at most %d bytes", name,
				 LABEL_MAX);
	cube_auto_str copy = cube_strdup(value);
	if (copy == NULL)
		return cube_fail(err, -ENOMEM, "label.%s: out of memory", name);

	char *old = cube_map_take(labels, name);
	int r = value[0] != '\0' ? cube_map_put(labels, name, copy) : 0;

	if (r < 0) {
		if (old != NULL)
			(void)cube_map_put(labels, name, old); /* into the room that it left */
		return cube_fail(err, r, "label.%s: out of memory", name);
	}
	cube_free(old);
	if (value[0] != '\0')
		copy = NULL;
	return 0;
}

int cube_label_set(struct cube_cube *c, const char *name, const char *value, struct cube_err *err)
{
	return cube_labels_set(c->labels, name, value, err);
}

bool cube_label_is(const struct cube_cube *c, const struct cube_pair *label)
{
	const char *value = cube_map_get(c->labels, label->key);

	return value != NULL && strcmp(value, label->value) == 0;
}

static int key_env(struct cube_cube *c, const char *name, const char *value, struct cube_err *err)
{
	struct cube_buf *env = &cube_own(c)->env_keys;

	if (!cube_name_env_ok(name, strlen(name)))
		return cube_fail(err, -EINVAL,
				 "env.%s: a variable's name is letters, digits and _, no digit in front",
				 name);
	cube_buf_printf(env, "%s=%s", name, value);
	if (cube_buf_addc(env, '\0') < 0)
		return cube_fail(err, env->error == -ENOMEM ? -ENOMEM : -EINVAL, "env.%s: %s", name,
				 env->error == -ENOMEM ? "out of memory" : "too long");
	return 0;
}

/* ---- All of a line ---- */

static bool key_of_backend(const struct cube_backend *b, const char *key)
{
	for (const char *const *k = b->ops->keys; k != NULL && *k != NULL; k++)
		if (strcmp(*k, key) == 0)
			return true;
	return false;
}

static int key_extra(struct cube_cube *c, const char *key, const char *value, struct cube_err *err)
{
	struct cube_own *own = cube_own(c);

	for (size_t i = 0; i < own->n_extra; i++) { /* of a parent: the later one counts */
		if (strcmp(own->extra[i].key, key) != 0)
			continue;
		char *other = cube_strdup(value);

		if (other == NULL)
			return cube_fail(err, -ENOMEM, "out of memory");
		cube_free((void *)(uintptr_t)own->extra[i].value);
		own->extra[i].value = other;
		return 0;
	}

	struct cube_create_key *grown = cube_realloc(own->extra, (own->n_extra + 1) * sizeof(*grown));

	if (grown == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	own->extra = grown;
	cube_auto_str k = cube_strdup(key);
	cube_auto_str v = cube_strdup(value);
	if (k == NULL || v == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	own->extra[own->n_extra++] = (struct cube_create_key){.key = cube_steal(k), .value = cube_steal(v)};
	return 0;
}

static int copy_label(void *ctx, const char *key, void *value)
{
	return cube_label_set(ctx, key, value, NULL);
}

int cube_keys_copy(struct cube_cube *c, struct cube_cube *from, struct cube_err *err)
{
	const struct cube_own *old = cube_own(from);
	int r = cube_map_each(from->labels, copy_label, c);

	for (size_t i = 0; r == 0 && i < old->n_extra; i++)
		r = key_extra(c, old->extra[i].key, old->extra[i].value, err);
	return r < 0 ? cube_fail(err, r, "what was said of '%s': %s", from->name, cube_errno_text(r)) : 0;
}

static int key_unknown(const struct cube_backend *b, const char *key, struct cube_err *err)
{
	struct cube_buf known = CUBE_BUF(600);

	for (size_t i = 0; i < CUBE_COUNT(create_keys); i++)
		cube_buf_printf(&known, "%s, ", create_keys[i].name);
	for (size_t i = 0; i < CUBE_COUNT(key_limits); i++)
		cube_buf_printf(&known, "%s, ", key_limits[i].key);
	cube_buf_adds(&known, "volume.PATH, env.NAME, label.NAME, host.NAME");
	for (const char *const *k = b->ops->keys; k != NULL && *k != NULL; k++)
		cube_buf_printf(&known, ", %s", *k);
	int r = cube_fail(err, -EINVAL, "no key '%s'; known: %s", key, cube_buf_str(&known));
	cube_buf_done(&known);
	return r;
}

static int key_take(struct cube_cube *c, const struct cube_create_key *k, struct cube_err *err)
{
	for (size_t i = 0; i < CUBE_COUNT(create_keys); i++)
		if (strcmp(k->key, create_keys[i].name) == 0)
			return create_keys[i].take(c, k->value, err);
	enum cube_cap cap;
	int r = cube_keys_limit(k->key, k->value, &c->limits, &cap, err);

	if (r != 0)
		return r < 0 ? r : 0; /* whether it can be kept: cube_backend_check_spec */
	if (strncmp(k->key, "volume.", 7) == 0)
		return cube_use_add(c, k->key + 7, k->value, err);
	if (strncmp(k->key, "env.", 4) == 0)
		return key_env(c, k->key + 4, k->value, err);
	if (strncmp(k->key, "host.", 5) == 0)
		return cube_inside_host(c, k->key + 5, k->value, err);
	if (strncmp(k->key, "label.", 6) == 0)
		return cube_label_set(c, k->key + 6, k->value, err);
	if (key_of_backend(c->service->backend, k->key))
		return key_extra(c, k->key, k->value, err);
	return key_unknown(c->service->backend, k->key, err);
}

static int keys_check_twice(const struct cube_create_key *keys, size_t n, struct cube_err *err)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(keys[i].key, keys[k].key) == 0)
				return cube_fail(err, -EINVAL, "'%s' is given twice", keys[i].key);
	return 0;
}

static int keys_service(struct cube_cube *c, const struct cube_create_key *keys, size_t n,
			struct cube_err *err)
{
	bool fixed = c->service != NULL; /* of a fork */

	if (!fixed)
		c->service = c->domain->default_service;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(keys[i].key, "backend") != 0)
			continue;
		struct cube_service *s = cube_domain_service(c->domain, keys[i].value);

		if (fixed && s != c->service)
			return cube_fail(err, -EINVAL, "backend=%s: the checkpoint is on backend '%s'",
					 keys[i].value, c->service->backend->name);
		c->service = s;
		if (c->service == NULL)
			return cube_fail(err, -ENOENT, "no backend '%s' is configured (see backends/)",
					 keys[i].value);
	}
	return 0;
}

int cube_keys_apply(struct cube_cube *c, const struct cube_create_key *keys, size_t n, struct cube_err *err)
{
	if (n > CUBE_KEYS_MAX)
		return cube_fail(err, -EINVAL, "more than %u keys", CUBE_KEYS_MAX);
	int r = keys_check_twice(keys, n, err);
	if (r == 0)
		r = keys_service(c, keys, n, err);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = key_take(c, &keys[i], err);
	return r;
}
