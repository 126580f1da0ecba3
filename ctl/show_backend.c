/* SPDX-License-Identifier: Apache-2.0 */
/* The files of backends and their templates. */
#include "ctl/show_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/ctl_priv.h"

static void show_missing(const struct cube_backend *b, struct cube_buf *out)
{
	for (unsigned n = 0; n < CUBE_CAP_COUNT; n++) {
		if (!(b->ops->caps & (1u << n)) || (b->caps & (1u << n)))
			continue;
		cube_buf_printf(out, "missing %s ", cube_cap_name(n));
		cube_buf_add_escaped(out, b->missing[n], strlen(b->missing[n]), false);
		cube_buf_addc(out, '\n');
	}
}

int cube_show_backend_status(struct cube_service *s, struct cube_buf *out)
{
	const struct cube_backend *b = s->backend;
	bool asked = s->status_wall != 0;

	cube_show_str(out, "kind", b->ops->kind);
	cube_show_str(out, "summary", b->ops->summary);
	cube_show_str(out, "reachable", !asked ? NULL : s->status.reachable ? "yes" : "no");
	cube_show_str(out, "version", s->status.version);
	cube_show_num(out, "latency_us", asked ? s->status.latency_us : UINT64_MAX);
	cube_show_str(out, "fingerprint", s->status.fingerprint);
	cube_show_str(out, "store", s->status.store);
	cube_show_str(out, "agent", b->way);
	cube_show_time(out, "taken", s->status_wall);
	cube_buf_adds(out, "capabilities");
	cube_show_caps(out, b->caps);
	cube_buf_addc(out, '\n');
	show_missing(b, out);
	cube_buf_add(out, s->done.data, s->done.len);
	return out->error;
}

static const char *const show_states[] = {
	[CUBE_IS_GONE] = "gone",
	[CUBE_IS_RUNNING] = "running",
	[CUBE_IS_PAUSED] = "paused",
	[CUBE_IS_STOPPED] = "stopped",
};

/* The words of a sandbox that nobody here has: they say what it was. */
static void show_orphan(const struct cube_info *info, struct cube_buf *out)
{
	for (const char *line = info->labels; line != NULL && *line != '\0';) {
		size_t len = strcspn(line, "\n");

		cube_buf_adds(out, " label.");
		cube_show_word(out, line, len);
		line += len + (line[len] == '\n');
	}
	if (info->uid[0] != '\0') {
		cube_buf_printf(out, " mark=%s was=", info->uid);
		cube_show_word(out, info->name, strlen(info->name));
	}
}

/* One line each: id, state, name here or `-`, labels. As of the last time the backend was asked. */
int cube_show_backend_sandboxes(struct cube_service *s, struct cube_buf *out)
{
	struct cube_map *index = cube_service_index(s);

	if (index == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < s->there.n; i++) {
		const struct cube_info *info = &s->there.all[i];
		struct cube_cube *c = cube_service_indexed(index, info);
		bool named = c != NULL && c->phase != CUBE_REMOVED && !cube_own(c)->unseen;

		cube_buf_printf(out, "%s %s %s", info->id, show_states[info->state], named ? c->name : "-");
		if (c != NULL)
			cube_show_labels(c->labels, cube_show_label_word, out);
		else
			show_orphan(info, out);
		cube_buf_addc(out, '\n');
	}
	cube_map_free(index);
	return out->error;
}

int cube_show_backend_ctl(struct cube_service *s, struct cube_buf *out)
{
	cube_show_str(out, "kind", s->backend->ops->kind);
	return cube_show_usage(CUBE_SCOPE_BACKEND, s, out);
}

/* NUL-separated words as lines "KEY word". */
static void show_words(struct cube_buf *out, const char *key, const struct cube_buf *words)
{
	for (size_t at = 0; at < words->len; at += strlen(words->data + at) + 1)
		cube_show_str(out, key, words->data + at);
}

static void show_lines(struct cube_buf *out, const char *key, const struct cube_buf *text)
{
	char line[CUBE_TEMPLATE_ALIAS_MAX + 1];

	for (size_t at = 0; at < text->len;) {
		size_t n = strcspn(text->data + at, "\n");

		(void)snprintf(line, sizeof(line), "%.*s", (int)n, text->data + at);
		cube_show_str(out, key, line);
		at += n + 1;
	}
}

int cube_show_template_info(struct cube_template_entry *t, struct cube_buf *out)
{
	const struct cube_limits *l = &t->keys.limits;

	cube_show_str(out, "source", t->info.source);
	cube_show_str(out, "fingerprint", t->info.fingerprint);
	cube_show_str(out, "os", t->keys.os);
	if (l->cpus_milli != 0)
		cube_show_milli(out, "cpus", l->cpus_milli);
	else
		cube_show_str(out, "cpus", NULL);
	cube_show_num(out, "memory", l->memory != 0 ? l->memory : UINT64_MAX);
	cube_show_num(out, "disk", l->disk != 0 ? l->disk : UINT64_MAX);
	cube_show_num(out, "size", t->info.size);
	show_lines(out, "alias", &t->texts[CUBE_TEMPLATE_ALIASES]);
	show_words(out, "env", &t->config.env);
	show_words(out, "entrypoint", &t->config.entrypoint);
	cube_show_str(out, "workdir", t->config.workdir);
	cube_show_str(out, "user", t->config.user);
	if (t->info.reason[0] != '\0') {
		cube_buf_adds(out, "runs no ");
		cube_buf_add_escaped(out, t->info.reason, strlen(t->info.reason), false);
		cube_buf_addc(out, '\n');
	} else {
		cube_show_str(out, "runs", "yes");
	}
	return out->error;
}

int cube_show_template_status(struct cube_template_entry *t, struct cube_buf *out)
{
	if (t->import != NULL && t->step[0] != '\0') {
		cube_buf_adds(out, "state building ");
		cube_buf_add_escaped(out, t->step, strlen(t->step), false);
		cube_buf_addc(out, '\n');
	} else if (t->import != NULL)
		cube_buf_printf(out, "state importing %u\n", t->percent);
	else
		cube_show_str(out, "state", t->info.state);
	cube_show_str(out, "reason", t->failure.text[0] != '\0' ? t->failure.text : t->info.reason);
	return out->error;
}

int cube_show_template_ctl(struct cube_template_entry *t, struct cube_buf *out)
{
	cube_show_str(out, "state", t->info.state);
	return cube_show_usage(CUBE_SCOPE_TEMPLATE, t, out);
}
