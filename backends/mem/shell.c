/* SPDX-License-Identifier: Apache-2.0 */
/* What a shell remembers from one command to the next: variables, directory, status. */
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/buf.h"
#include "backends/base/name.h"
#include "backends/mem/mem_priv.h"

void mem_shell_init(struct mem_shell *s)
{
	*s = (struct mem_shell){.cwd = NULL};
	cube_list_init(&s->vars);
}

static void var_free(struct mem_var *v)
{
	cube_list_remove(&v->link);
	cube_free(v->name);
	cube_free(v->value);
	cube_free(v);
}

void mem_shell_done(struct mem_shell *s)
{
	cube_list_each (i, &s->vars)
		var_free(cube_list_entry(i, struct mem_var, link));
	cube_free(s->cwd);
	mem_shell_init(s);
}

int mem_shell_cd(struct mem_shell *s, const char *normal_path)
{
	char *copy = cube_strdup(normal_path);

	if (copy == NULL)
		return -ENOMEM;
	cube_free(s->cwd);
	s->cwd = copy;
	return 0;
}

static struct mem_var *shell_find(const struct mem_shell *s, const char *name, size_t len)
{
	for (struct cube_list *i = s->vars.next; i != &s->vars; i = i->next) {
		struct mem_var *v = cube_list_entry(i, struct mem_var, link);

		if (strncmp(v->name, name, len) == 0 && v->name[len] == '\0')
			return v;
	}
	return NULL;
}

const char *mem_shell_get(const struct mem_shell *s, const char *name, size_t len)
{
	const struct mem_var *v = shell_find(s, name, len);

	return v != NULL ? v->value : NULL;
}

static struct mem_var *var_new(const char *name, size_t len)
{
	struct mem_var *v = cube_calloc(1, sizeof(*v));

	if (v == NULL)
		return NULL;
	cube_list_init(&v->link);
	v->name = cube_strndup(name, len);
	v->value = cube_strdup("");
	if (v->name == NULL || v->value == NULL) {
		var_free(v);
		return NULL;
	}
	return v;
}

int mem_shell_set(struct mem_shell *s, const char *name, size_t len, const char *value, bool exported)
{
	struct mem_var *v = shell_find(s, name, len);
	struct mem_var *fresh = v == NULL ? var_new(name, len) : NULL;
	char *copy = value != NULL ? cube_strdup(value) : NULL;

	if ((value != NULL && copy == NULL) || (v == NULL && fresh == NULL)) {
		cube_free(copy);
		if (fresh != NULL)
			var_free(fresh);
		return -ENOMEM;
	}
	if (fresh != NULL) {
		cube_list_push(&s->vars, &fresh->link);
		v = fresh;
	}
	if (copy != NULL) {
		cube_free(v->value);
		v->value = copy;
	}
	v->exported = v->exported || exported;
	s->changed = s->changed || v->exported;
	return 0;
}

void mem_shell_unset(struct mem_shell *s, const char *name)
{
	struct mem_var *v = shell_find(s, name, strlen(name));

	if (v == NULL)
		return;
	s->changed = s->changed || v->exported;
	var_free(v);
}

int mem_shell_apply(struct mem_shell *s, const char *env, size_t len)
{
	for (size_t at = 0; at < len;) {
		const char *entry = env + at;
		size_t n = strnlen(entry, len - at);
		const char *equals = memchr(entry, '=', n);
		size_t name = equals != NULL ? (size_t)(equals - entry) : n;
		cube_auto_str copy = cube_strndup(entry, n);

		if (copy == NULL)
			return -ENOMEM;
		if (equals == NULL)
			mem_shell_unset(s, copy);
		else if (mem_shell_set(s, copy, name, copy + name + 1, true) < 0)
			return -ENOMEM;
		at += n + 1;
	}
	return 0;
}

void mem_shell_renew(struct mem_shell *s)
{
	cube_list_each (i, &s->vars) {
		struct mem_var *v = cube_list_entry(i, struct mem_var, link);

		if (!v->exported)
			var_free(v);
	}
	s->status = 0;
}

/* In single quotes; one inside closes them, stands escaped, and opens them again. */
static void add_quoted(struct cube_buf *out, const char *value)
{
	(void)cube_buf_addc(out, '\'');
	for (; *value != '\0'; value++) {
		if (*value == '\'')
			(void)cube_buf_adds(out, "'\\''");
		else
			(void)cube_buf_addc(out, *value);
	}
	(void)cube_buf_addc(out, '\'');
}

int mem_shell_exports(const struct mem_shell *s, struct cube_buf *out)
{
	for (struct cube_list *i = s->vars.next; i != &s->vars; i = i->next) {
		const struct mem_var *v = cube_list_entry(i, struct mem_var, link);

		if (!v->exported || !cube_name_env_ok(v->name, strlen(v->name)))
			continue;
		(void)cube_buf_printf(out, "export %s=", v->name);
		add_quoted(out, v->value);
		(void)cube_buf_addc(out, '\n');
	}
	return out->error;
}
