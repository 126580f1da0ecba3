/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend is told of a sandbox that it is to make: taken under the lock, used without it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/checkpoint_priv.h"
#include "ctl/ctl_priv.h"
#include "ctl/volume_priv.h"

static int pair_count(void *ctx, const char *key, void *value)
{
	size_t *n = ctx;

	(void)key, (void)value;
	++*n;
	return 0;
}

static int pair_add(void *ctx, const char *key, void *value)
{
	struct cube_pair **at = ctx;

	*(*at)++ = (struct cube_pair){.key = key, .value = value};
	return 0;
}

static size_t env_count(const struct cube_buf *env)
{
	size_t n = 0;

	for (size_t at = 0; at < env->len; at += strlen(env->data + at) + 1)
		n++;
	return n;
}

/* Names need copies (they end at '='); values are used where they are. */
static int spec_env(struct cube_spec_parts *p, const struct cube_buf *env, struct cube_pair *to)
{
	for (size_t at = 0; at < env->len; at += strlen(env->data + at) + 1) {
		const char *var = env->data + at, *eq = strchr(var, '=');
		char *name = cube_strndup(var, (size_t)(eq - var));

		if (name == NULL)
			return -ENOMEM;
		p->strings[p->n_strings++] = name;
		*to++ = (struct cube_pair){.key = name, .value = eq + 1};
	}
	return 0;
}

static int spec_fill(struct cube_cube *c, struct cube_spec_parts *p)
{
	struct cube_own *own = cube_own(c);
	size_t n_env = env_count(&own->env_keys), n_labels = 0;

	(void)cube_map_each(c->labels, pair_count, &n_labels);
	p->pairs = cube_calloc(n_env + n_labels + own->n_extra + 1, sizeof(*p->pairs));
	p->strings = cube_calloc(n_env + 2 * n_labels + own->n_volumes + 2, sizeof(*p->strings));
	if (p->pairs == NULL || p->strings == NULL || spec_env(p, &own->env_keys, p->pairs) < 0)
		return -ENOMEM;

	p->spec.volumes = p->volumes = cube_use_spec(c);
	p->copies = cube_use_copies(c);
	p->spec.n_volumes = own->n_volumes;
	if ((p->volumes == NULL || p->copies == NULL) && own->n_volumes > 0)
		return -ENOMEM;

	struct cube_pair *at = p->pairs + n_env;

	p->spec.env = p->pairs;
	p->spec.n_env = n_env;
	p->spec.labels = at;
	p->spec.n_labels = n_labels;
	(void)cube_map_each(c->labels, pair_add, &at);
	p->spec.extra = at;
	p->spec.n_extra = own->n_extra;
	for (size_t i = 0; i < own->n_extra; i++)
		*at++ = (struct cube_pair){.key = own->extra[i].key, .value = own->extra[i].value};
	return 0;
}

static const char *spec_own(struct cube_spec_parts *p, const char *text)
{
	char *copy = cube_strdup(text);

	if (copy != NULL)
		p->strings[p->n_strings++] = copy;
	return copy;
}

/* Labels and the name may be changed by others while the backend works: those are copies. */
static int spec_copy(struct cube_cube *c, struct cube_spec_parts *p)
{
	struct cube_pair *labels = p->pairs + p->spec.n_env;

	for (size_t i = 0; i < p->spec.n_labels; i++) {
		labels[i].key = spec_own(p, labels[i].key);
		labels[i].value = spec_own(p, labels[i].value);
		if (labels[i].key == NULL || labels[i].value == NULL)
			return -ENOMEM;
	}
	for (size_t i = 0; i < p->spec.n_volumes; i++) {
		p->volumes[i].volume = spec_own(p, p->volumes[i].volume);
		if (p->volumes[i].volume == NULL)
			return -ENOMEM;
	}
	p->spec.name = spec_own(p, c->name);
	return p->spec.name != NULL ? 0 : -ENOMEM;
}

int cube_spec_make(struct cube_cube *c, struct cube_spec_parts *ret)
{
	*ret = (struct cube_spec_parts){
		.spec = {
			.uid = c->uid,
			.template = c->template,
			.from = cube_own(c)->from != NULL ? cube_own(c)->from->id : NULL,
			.limits = c->limits,
			.net = c->net,
			.privileged = c->privileged,
		}};
	int r = spec_fill(c, ret);
	if (r == 0)
		r = spec_copy(c, ret);
	if (r == 0)
		r = cube_inside_spec(c, ret);
	if (r < 0)
		cube_spec_done(ret);
	return r;
}

void cube_spec_done(struct cube_spec_parts *p)
{
	for (size_t i = 0; i < p->n_strings; i++)
		cube_free(p->strings[i]);
	cube_free(p->strings);
	cube_free(p->pairs);
	cube_free(p->volumes);
	cube_free(p->copies);
	cube_free(p->hosts);
	cube_free(p->hosts_text);
	*p = (struct cube_spec_parts){0};
}
