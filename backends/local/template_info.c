/* SPDX-License-Identifier: Apache-2.0 */
/* What is written down of a template: TEMPLATES/NAME/info.json. */
#include "backends/local/template_priv.h"

#include "backends/base/file.h"
#include "backends/base/json.h"
#include "backends/base/macros.h"
#include "backends/base/name.h"
#include "backends/local/checkpoint.h"
#include "backends/local/dirs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define INFO_FILE "info.json"
#define INFO_MAX  ((size_t)1 << 20)

bool cube_local_template_name_ok(const char *name)
{
	return cube_name_template_ok(name) || cube_name_layer_ok(name);
}

void cube_local_template_done(struct cube_local_template *t)
{
	cube_template_config_done(&t->config);
}

/* ---- reading ---- */

/* Strings of a list, each with its NUL. */
static void info_words(const json_t *list, struct cube_buf *out)
{
	size_t i;
	json_t *word;

	json_array_foreach(list, i, word) if (json_is_string(word))(void)
		cube_buf_add(out, json_string_value(word), json_string_length(word) + 1);
}

static bool info_below(const json_t *list, struct cube_local_template *t)
{
	size_t i;
	json_t *word;

	json_array_foreach(list, i, word)
	{
		const char *name = json_string_value(word);

		if (name == NULL || t->n_below == CUBE_LOCAL_LAYERS || !cube_local_template_name_ok(name))
			return false;
		(void)snprintf(t->below[t->n_below++], sizeof(t->below[0]), "%s", name);
	}
	return true;
}

static void info_take(const json_t *o, struct cube_local_template *ret)
{
	struct cube_template *t = &ret->t;

	(void)snprintf(t->source, sizeof(t->source), "%s", cube_json_str(o, "source", ""));
	(void)snprintf(t->fingerprint, sizeof(t->fingerprint), "%s", cube_json_str(o, "fingerprint", ""));
	(void)snprintf(t->reason, sizeof(t->reason), "%s", cube_json_str(o, "reason", ""));
	t->size = (uint64_t)cube_json_int(o, "size", -1);
	(void)snprintf(ret->config.workdir, sizeof(ret->config.workdir), "%s",
		       cube_json_str(o, "workdir", ""));
	(void)snprintf(ret->set, sizeof(ret->set), "%s", cube_json_str(o, "set", ""));
	(void)snprintf(ret->config.user, sizeof(ret->config.user), "%s", cube_json_str(o, "user", ""));
	info_words(json_object_get(o, "env"), &ret->config.env);
	info_words(json_object_get(o, "entrypoint"), &ret->config.entrypoint);
}

static json_t *info_parse(int templates, const char *name)
{
	struct cube_buf text = CUBE_BUF(INFO_MAX);
	char path[CUBE_ID_MAX + 16];
	json_t *o = NULL;

	(void)snprintf(path, sizeof(path), "%s/" INFO_FILE, name);
	if (cube_file_read(templates, path, &text) == 0)
		(void)cube_json_parse(cube_buf_str(&text), text.len, path, &o, NULL);
	cube_buf_done(&text);
	return o;
}

bool cube_local_template_read(int templates, const char *name, struct cube_local_template *ret)
{
	cube_auto(cube_json_auto) json_t *o = info_parse(templates, name);
	bool ok;

	*ret = (struct cube_local_template){.t = {.size = UINT64_MAX}};
	cube_template_config_init(&ret->config);
	(void)snprintf(ret->t.name, sizeof(ret->t.name), "%s", name);
	ok = o != NULL && info_below(json_object_get(o, "below"), ret);
	(void)snprintf(ret->t.state, sizeof(ret->t.state), "%s", ok ? "ready" : "error");
	if (ok)
		info_take(o, ret);
	else
		(void)snprintf(ret->t.reason, sizeof(ret->t.reason),
			       "its info.json cannot be read: import it again");
	return ok;
}

/* ---- writing ---- */

static json_t *info_list(const struct cube_buf *words)
{
	json_t *list = json_array();

	for (size_t at = 0; list != NULL && at < words->len; at += strlen(words->data + at) + 1)
		(void)json_array_append_new(list,
					    cube_json_bytes(words->data + at, strlen(words->data + at)));
	return list;
}

static json_t *info_names(const struct cube_local_template *t)
{
	json_t *list = json_array();

	for (unsigned i = 0; list != NULL && i < t->n_below; i++)
		(void)json_array_append_new(list, json_string(t->below[i]));
	return list;
}

static json_t *info_text(const char *s)
{
	return cube_json_bytes(s, strlen(s));
}

int cube_local_template_write(int dir, const struct cube_local_template *t, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(INFO_MAX);
	cube_auto(cube_json_auto) json_t *o = json_pack(
		"{s:o,s:o,s:o,s:I,s:o,s:o,s:o,s:o,s:o,s:s}", "source", info_text(t->t.source), "fingerprint",
		info_text(t->t.fingerprint), "reason", info_text(t->t.reason), "size", (json_int_t)t->t.size,
		"below", info_names(t), "env", info_list(&t->config.env), "entrypoint",
		info_list(&t->config.entrypoint), "workdir", info_text(t->config.workdir), "user",
		info_text(t->config.user), "set", t->set);
	int rc = o ? cube_json_write(o, &text) : -ENOMEM;

	if (rc == 0)
		rc = cube_file_replace(dir, INFO_FILE, text.data, text.len, 0600);
	cube_buf_done(&text);
	return rc < 0 ? cube_fail(err, rc, "cannot write %s: %s", INFO_FILE, cube_errno_text(rc)) : 0;
}

/* ---- what lies below what ---- */

void cube_local_template_bottom(int templates, const char *name, char ret[CUBE_ID_MAX + 1])
{
	struct cube_local_template t;

	(void)snprintf(ret, CUBE_ID_MAX + 1, "%s", name);
	if (strcmp(name, CUBE_LOCAL_TEMPLATE_HOST) == 0 || !cube_local_template_name_ok(name))
		return;
	if (cube_local_template_read(templates, name, &t) && t.n_below > 0)
		(void)snprintf(ret, CUBE_ID_MAX + 1, "%s", t.below[t.n_below - 1]);
	cube_local_template_done(&t);
}

struct info_search {
	int templates;
	const char *name;
	char user[CUBE_ID_MAX + 1];
};

static int info_built_on(void *ctx, int dir, const char *name)
{
	struct info_search *s = ctx;
	struct cube_local_template t;
	int found = 0;

	(void)dir;
	(void)cube_local_template_read(s->templates, name, &t);
	for (unsigned i = 0; i < t.n_below && !found; i++)
		found = strcmp(t.below[i], s->name) == 0;
	if (found)
		(void)snprintf(s->user, sizeof(s->user), "%s", name);
	cube_local_template_done(&t);
	return found;
}

static int info_has_set(void *ctx, int dir, const char *name)
{
	const struct info_search *s = ctx;
	struct cube_local_template t;
	int found;

	(void)dir;
	found = cube_local_template_read(s->templates, name, &t) && strcmp(t.set, s->name) == 0;
	cube_local_template_done(&t);
	return found;
}

bool cube_local_template_has_set(const struct cube_local *b, const char *id)
{
	struct info_search s = {.templates = b->templates, .name = id};

	return cube_local_dirs_each(b->templates, ".", info_has_set, &s) > 0;
}

int cube_local_template_unused(struct cube_local *b, const char *name, struct cube_err *err)
{
	struct info_search s = {.templates = b->templates, .name = name};

	if (cube_local_cubes_use(b, name))
		return cube_fail(err, -EBUSY, "template %s is in use by a sandbox", name);
	if (cube_local_checkpoints_use(b, name))
		return cube_fail(err, -EBUSY, "template %s is in use by a checkpoint", name);
	if (cube_local_dirs_each(b->templates, ".", info_built_on, &s) > 0)
		return cube_fail(err, -EBUSY, "template %s is what template %s was built on", name, s.user);
	return 0;
}
