/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of what goes into a backend and of what comes out of it. */
#include "backends/check.h"

#include <errno.h>
#include <string.h>

#include "backends/base/macros.h"
#include "backends/base/name.h"

#define ID_BYTES                                                                                             \
	"abcdefghijklmnopqrstuvwxyz"                                                                         \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZ"                                                                         \
	"0123456789._:-"
#define CAPS_ALL    ((1u << CUBE_CAP_COUNT) - 1)
#define CAPS_LIMITS (CUBE_CAP_CPUS | CUBE_CAP_MEMORY | CUBE_CAP_PIDS | CUBE_CAP_DISK)

struct op_rule {
	const char *name;
	size_t offset;
	uint32_t caps; /* any of these has the operation; 0: it is required */
};

#define OP(field, bits)                                                                                      \
	{                                                                                                    \
		.name = #field, .offset = offsetof(struct cube_backend_ops, field), .caps = (bits)           \
	}
static const struct op_rule op_rules[] = {
	OP(open, 0),
	OP(close, 0),
	OP(status, 0),
	OP(create, 0),
	OP(destroy, 0),
	OP(inspect, 0),
	OP(list, 0),
	OP(adopt, CUBE_CAP_ADOPT),
	OP(let_go, CUBE_CAP_ADOPT),
	OP(start, CUBE_CAP_STOP),
	OP(stop, CUBE_CAP_STOP),
	OP(pause, CUBE_CAP_PAUSE),
	OP(resume, CUBE_CAP_PAUSE),
	OP(limit, CAPS_LIMITS),
	OP(rename, CUBE_CAP_RENAME),
	OP(link, CUBE_CAP_EXEC),
	OP(root, CUBE_CAP_FILES),
	OP(usage, CUBE_CAP_USAGE),
	OP(dial, CUBE_CAP_PORTS),
	OP(listening, CUBE_CAP_PORTS),
	OP(access, CUBE_CAP_ACCESS),
	OP(template_list, CUBE_CAP_TEMPLATES),
	OP(template_import, CUBE_CAP_TEMPLATES),
	OP(template_check, CUBE_CAP_TEMPLATES),
	OP(template_remove, CUBE_CAP_TEMPLATES),
	OP(volume_make, CUBE_CAP_VOLUMES),
	OP(volume_remove, CUBE_CAP_VOLUMES),
	OP(volume_list, CUBE_CAP_VOLUMES),
	OP(volume_root, CUBE_CAP_VOLUMES),
	OP(checkpoint, CUBE_CAP_CHECKPOINTS),
	OP(checkpoint_list, CUBE_CAP_CHECKPOINTS),
	OP(checkpoint_remove, CUBE_CAP_CHECKPOINTS),
	OP(checkpoint_root, CUBE_CAP_CHECKPOINTS),
	OP(restore, CUBE_CAP_CHECKPOINTS),
	OP(reset, CUBE_CAP_RESET),
	OP(changes, CUBE_CAP_CHANGES),
	OP(bind, CUBE_CAP_BIND),
	OP(unbind, CUBE_CAP_BIND),
	OP(template_config, CUBE_CAP_TEMPLATES),
	OP(template_commit, CUBE_CAP_BUILD),
	OP(template_derive, CUBE_CAP_BUILD),
	OP(template_keep, CUBE_CAP_KEEP),
};
#undef OP

static bool op_there(const struct cube_backend_ops *ops, const struct op_rule *rule)
{
	void (*fn)(void);

	memcpy(&fn, (const char *)ops + rule->offset, sizeof(fn));
	return fn != NULL;
}

static int check_op(const struct cube_backend_ops *ops, const struct op_rule *rule, struct cube_err *err)
{
	bool wanted = rule->caps == 0 || (ops->caps & rule->caps) != 0;
	bool there = op_there(ops, rule);

	if (wanted && !there)
		return cube_fail(err, -EINVAL, "backend kind '%s' lacks the operation %s", ops->kind,
				 rule->name);
	if (!wanted && there)
		return cube_fail(err, -EINVAL,
				 "backend kind '%s' has the operation %s without its capability", ops->kind,
				 rule->name);
	return 0;
}

int cube_check_ops(const struct cube_backend_ops *ops, struct cube_err *err)
{
	if (ops->abi != CUBE_BACKEND_ABI)
		return cube_fail(err, -EINVAL, "backend table of version %u, this cubefs has version %d",
				 ops->abi, CUBE_BACKEND_ABI);
	if (ops->kind == NULL || !cube_name_ok(ops->kind) || ops->summary == NULL)
		return cube_fail(err, -EINVAL, "backend table without a usable kind and summary");
	if ((ops->caps & ~CAPS_ALL) != 0)
		return cube_fail(err, -EINVAL, "backend kind '%s' claims unknown capabilities 0x%x",
				 ops->kind, ops->caps & ~CAPS_ALL);
	for (size_t i = 0; i < CUBE_COUNT(op_rules); i++) {
		int r = check_op(ops, &op_rules[i], err);

		if (r < 0)
			return r;
	}
	return 0;
}

bool cube_check_id(const char *id)
{
	size_t len;

	if (id == NULL || id[0] == '.')
		return false;
	len = strspn(id, ID_BYTES);
	return len > 0 && len <= CUBE_ID_MAX && id[len] == '\0';
}

bool cube_check_uid(const char *uid)
{
	return uid != NULL && strlen(uid) == 16 && strspn(uid, "0123456789abcdef") == 16;
}

static bool env_ok(const struct cube_pair *p)
{
	return p->key != NULL && p->value != NULL && cube_name_env_ok(p->key, strlen(p->key));
}

int cube_check_mark(const struct cube_spec *spec, struct cube_err *err)
{
	if (!cube_check_uid(spec->uid))
		return cube_fail(err, -EINVAL, "create: the mark is not 16 hexadecimal digits");
	if (spec->name == NULL || !cube_name_ok(spec->name))
		return cube_fail(err, -EINVAL, "create: the name is no sandbox name");
	return 0;
}

static int check_form(const struct cube_spec *spec, struct cube_err *err)
{
	if (spec->from != NULL && !cube_check_uid(spec->from))
		return cube_fail(err, -EINVAL, "'%s' is no id of a checkpoint", spec->from);
	if (spec->template != NULL && !cube_name_template_ok(spec->template) &&
	    !cube_name_layer_ok(spec->template))
		return cube_fail(err, -EINVAL, "'%s' is no template name", spec->template);
	for (size_t i = 0; i < spec->n_env; i++) {
		if (!env_ok(&spec->env[i]))
			return cube_fail(err, -EINVAL, "'%s' is no name of an environment variable",
					 spec->env[i].key != NULL ? spec->env[i].key : "");
	}
	return 0;
}

static bool key_known(const struct cube_backend_ops *ops, const char *key)
{
	for (const char *const *k = ops->keys; k != NULL && *k != NULL; k++) {
		if (strcmp(*k, key) == 0)
			return true;
	}
	return false;
}

static int check_extra(const struct cube_backend *b, const struct cube_spec *spec, struct cube_err *err)
{
	for (size_t i = 0; i < spec->n_extra; i++) {
		if (!key_known(b->ops, spec->extra[i].key))
			return cube_fail(err, -EINVAL, "unknown key '%s' for backend %s", spec->extra[i].key,
					 b->name);
	}
	return 0;
}

int cube_check_limits(const struct cube_backend *b, const struct cube_limits *limits, struct cube_err *err)
{
	const struct {
		bool set;
		enum cube_cap cap;
	} wants[] = {
		{limits->cpus_milli != 0, CUBE_CAP_CPUS},
		{limits->memory != 0, CUBE_CAP_MEMORY},
		{limits->pids != 0, CUBE_CAP_PIDS},
		{limits->disk != 0, CUBE_CAP_DISK},
	};

	for (size_t i = 0; i < CUBE_COUNT(wants); i++) {
		int r = wants[i].set ? cube_backend_need(b, wants[i].cap, err) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

static int check_volumes(const struct cube_backend *b, const struct cube_spec *spec, struct cube_err *err)
{
	int r = spec->n_volumes > 0 ? cube_backend_need(b, CUBE_CAP_VOLUMES, err) : 0;

	for (size_t i = 0; r == 0 && i < spec->n_volumes; i++) {
		const struct cube_spec_volume *v = &spec->volumes[i];

		if (!cube_check_uid(v->volume) || !cube_name_inside_ok(v->path))
			r = cube_fail(err, -EINVAL, "'%s' is no path for a volume",
				      v->path != NULL ? v->path : "");
		for (size_t k = 0; r == 0 && k < i; k++)
			if (strcmp(spec->volumes[k].path, v->path) == 0)
				r = cube_fail(err, -EINVAL, "two volumes at %s", v->path);
	}
	return r;
}

/* What is asked for beyond the defaults, each with its capability. */
static int check_inside(const struct cube_backend *b, const struct cube_spec *spec, struct cube_err *err)
{
	const struct {
		bool set;
		enum cube_cap cap;
	} wants[] = {
		{spec->net == CUBE_NET_OPEN, CUBE_CAP_NET_OPEN},
		{spec->user != NULL, CUBE_CAP_ACCOUNTS},
		{spec->n_hosts > 0, CUBE_CAP_HOSTS},
		{spec->privileged, CUBE_CAP_PRIVILEGED},
		{spec->gpu, CUBE_CAP_GPU},
	};

	for (size_t i = 0; i < CUBE_COUNT(wants); i++) {
		int r = wants[i].set ? cube_backend_need(b, wants[i].cap, err) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

int cube_check_spec(const struct cube_backend *b, const struct cube_spec *spec, struct cube_err *err)
{
	int r = check_form(spec, err);

	if (r == 0)
		r = check_extra(b, spec, err);
	if (r == 0)
		r = cube_check_limits(b, &spec->limits, err);
	if (r == 0 && spec->from != NULL)
		r = cube_backend_need(b, CUBE_CAP_CHECKPOINTS, err);
	if (r == 0)
		r = check_inside(b, spec, err);
	if (r == 0)
		r = check_volumes(b, spec, err);
	return r;
}

/* Text from outside: ended, and with '?' for what could disturb a line. */
static void tidy(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (char *p = text; *p != '\0'; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	}
}

bool cube_check_info(struct cube_info *info)
{
	tidy(info->id, sizeof(info->id));
	tidy(info->uid, sizeof(info->uid));
	tidy(info->reason, sizeof(info->reason));
	tidy(info->name, sizeof(info->name));
	tidy(info->template, sizeof(info->template));
	if (!cube_name_template_ok(info->template))
		info->template[0] = '\0';
	if (!cube_check_uid(info->uid))
		info->uid[0] = '\0'; /* somebody else's mark is none of ours */
	return cube_check_id(info->id) && (unsigned)info->state <= CUBE_IS_STOPPED;
}

void cube_check_checkpoint(struct cube_checkpoint *c)
{
	tidy(c->id, sizeof(c->id));
	tidy(c->of, sizeof(c->of));
	tidy(c->reason, sizeof(c->reason));
}

bool cube_check_template(struct cube_template *t)
{
	tidy(t->name, sizeof(t->name));
	tidy(t->state, sizeof(t->state));
	tidy(t->source, sizeof(t->source));
	tidy(t->fingerprint, sizeof(t->fingerprint));
	tidy(t->reason, sizeof(t->reason));
	return (cube_name_template_ok(t->name) || cube_name_layer_ok(t->name)) && t->state[0] != '\0';
}

/* NUL-separated NAME=VALUE. */
static bool env_text_ok(const struct cube_buf *env)
{
	for (size_t at = 0; at < env->len; at += strlen(env->data + at) + 1) {
		const char *var = env->data + at, *eq = strchr(var, '=');

		if (eq == NULL || !cube_name_env_ok(var, (size_t)(eq - var)))
			return false;
	}
	return true;
}

bool cube_check_template_config(struct cube_template_config *c)
{
	tidy(c->workdir, sizeof(c->workdir));
	tidy(c->user, sizeof(c->user));
	return c->env.error == 0 && c->entrypoint.error == 0 && env_text_ok(&c->env);
}

void cube_check_status(const struct cube_backend *b, struct cube_status *st)
{
	tidy(st->version, sizeof(st->version));
	tidy(st->fingerprint, sizeof(st->fingerprint));
	st->caps &= b->ops->caps;
	for (size_t i = 0; i < CUBE_COUNT(st->missing); i++)
		tidy(st->missing[i], sizeof(st->missing[i]));
}

static bool mount_path_ok(const char *path, size_t size)
{
	size_t len = strnlen(path, size);

	return len > 1 && len < size && path[0] == '/' && path[len - 1] != '/' &&
	       strstr(path, "//") == NULL && strstr(path, "/./") == NULL && strstr(path, "/../") == NULL;
}

bool cube_check_root(const struct cube_root *root)
{
	if (root->fd < 0 || root->n_mounts > CUBE_MOUNTS_MAX || root->id_count == 0)
		return false;
	for (unsigned i = 0; i < root->n_mounts; i++) {
		if (root->mounts[i].fd < 0 ||
		    !mount_path_ok(root->mounts[i].path, sizeof(root->mounts[i].path)))
			return false;
	}
	return true;
}

bool cube_check_target(const struct cube_target *t)
{
	size_t len = strnlen(t->path, sizeof(t->path));

	switch (t->kind) {
	case CUBE_TARGET_TCP:
		return t->port != 0;
	case CUBE_TARGET_UNIX:
		return t->path[0] == '/' && len > 1 && len < sizeof(t->path);
	case CUBE_TARGET_ABSTRACT:
		return len > 0 && len < sizeof(t->path);
	}
	return false;
}

/* The path is a name to be used again, and may have any byte. */
bool cube_check_listener(struct cube_listener *l)
{
	tidy(l->address, sizeof(l->address));
	tidy(l->program, sizeof(l->program));
	return cube_check_target(&l->target);
}
