/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of variables, NUL separated: differences, changes applied, lines for people. */
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"

struct env_var {
	const char *text; /* NAME=VALUE, or NAME */
	size_t name;      /* bytes of NAME */
};

/* An index from names to variables of a text. */
struct env_index {
	struct cube_map *map;
	char *key; /* scratch: a name on its own */
};

static size_t env_name_len(const char *var)
{
	const char *eq = strchr(var, '=');

	return eq != NULL ? (size_t)(eq - var) : strlen(var);
}

/* The next variable of a text at *at; NULL at its end. A text always ends in a NUL (cube_buf's, at the
 * least). */
static const char *env_next(const char *env, size_t len, size_t *at)
{
	const char *var;

	if (*at >= len)
		return NULL;
	var = env + *at;
	*at += strnlen(var, len - *at) + 1;
	return var;
}

static void env_index_done(struct env_index *x)
{
	cube_map_free(x->map);
	cube_free(x->key);
}

/* The last of several of one name counts, as for execve's users. */
static int env_index_put(struct env_index *x, char *key, const char *var)
{
	int r = cube_map_put(x->map, key, (void *)(uintptr_t)var);

	if (r != -EEXIST)
		return r;
	(void)cube_map_take(x->map, key);
	return cube_map_put(x->map, key, (void *)(uintptr_t)var);
}

static int env_index_make(struct env_index *x, const char *env, size_t len)
{
	const char *var;
	size_t at = 0;

	x->map = cube_map_new();
	x->key = cube_malloc(len + 1);
	if (x->map == NULL || x->key == NULL)
		return -ENOMEM;
	while ((var = env_next(env, len, &at)) != NULL) {
		size_t n = env_name_len(var);

		memcpy(x->key, var, n);
		x->key[n] = '\0';
		int r = n > 0 ? env_index_put(x, x->key, var) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static const char *env_index_get(const struct env_index *x, const char *var, char *scratch)
{
	size_t n = env_name_len(var);

	memcpy(scratch, var, n);
	scratch[n] = '\0';
	return cube_map_get(x->map, scratch);
}

/* Adds the variables of @env for which @other has not the very same; of those it lacks only the name, if
 * @unset. */
static int env_add_missing(const char *env, size_t len, const struct env_index *other, bool unset,
			   struct cube_buf *out)
{
	cube_auto_str scratch = cube_malloc(len + 1);
	const char *var;
	size_t at = 0;

	if (scratch == NULL)
		return -ENOMEM;
	while ((var = env_next(env, len, &at)) != NULL) {
		const char *is = env_index_get(other, var, scratch);

		if (unset ? is != NULL : is != NULL && strcmp(is, var) == 0)
			continue;
		cube_buf_add(out, var, unset ? env_name_len(var) : strlen(var));
		cube_buf_addc(out, '\0');
	}
	return out->error;
}

int cube_env_diff(const char *old, size_t old_len, const char *new, size_t new_len, struct cube_buf *out)
{
	struct env_index have = {0}, want = {0};
	int r = env_index_make(&have, old, old_len);

	if (r == 0)
		r = env_index_make(&want, new, new_len);
	if (r == 0)
		r = env_add_missing(new, new_len, &have, false, out);
	if (r == 0)
		r = env_add_missing(old, old_len, &want, true, out);
	env_index_done(&have);
	env_index_done(&want);
	return r;
}

int cube_env_apply(const char *base, size_t base_len, const char *changes, size_t changes_len,
		   struct cube_buf *out)
{
	struct env_index changed = {0};
	cube_auto_str scratch = cube_malloc(base_len + 1);
	const char *var;
	size_t at = 0;
	int r = scratch == NULL ? -ENOMEM : env_index_make(&changed, changes, changes_len);

	while (r == 0 && (var = env_next(base, base_len, &at)) != NULL)
		if (env_index_get(&changed, var, scratch) == NULL)
			r = cube_buf_add(out, var, strlen(var) + 1);
	at = 0;
	while (r == 0 && (var = env_next(changes, changes_len, &at)) != NULL)
		if (strchr(var, '=') != NULL)
			r = cube_buf_add(out, var, strlen(var) + 1);
	env_index_done(&changed);
	return r;
}

int cube_env_merge(const struct cube_buf *first, const struct cube_buf *then, struct cube_buf *out)
{
	struct env_index later = {0};
	cube_auto_str scratch = cube_malloc(first->len + 1);
	const char *change;
	size_t at = 0;
	int r = scratch == NULL ? -ENOMEM : env_index_make(&later, cube_buf_str(then), then->len);

	while (r == 0 && (change = env_next(cube_buf_str(first), first->len, &at)) != NULL)
		if (env_index_get(&later, change, scratch) == NULL)
			r = cube_buf_add(out, change, strlen(change) + 1);
	if (r == 0)
		r = cube_buf_add(out, cube_buf_str(then), then->len);
	env_index_done(&later);
	return r;
}

int cube_env_lines(const char *env, size_t len, struct cube_buf *out)
{
	const char *var;
	size_t at = 0;

	while ((var = env_next(env, len, &at)) != NULL) {
		cube_buf_adds(out, var);
		cube_buf_addc(out, '\n');
	}
	return out->error;
}

/* ---- Shared texts ---- */

struct cube_env_text *cube_env_text_new(const char *data, size_t len)
{
	struct cube_env_text *e = cube_malloc(sizeof(*e) + len + 1);

	if (e == NULL)
		return NULL;
	e->refs = 1;
	e->len = len;
	if (len > 0)
		memcpy(e->data, data, len);
	e->data[len] = '\0';
	return e;
}

struct cube_env_text *cube_env_text_ref(struct cube_env_text *e)
{
	if (e != NULL)
		e->refs++;
	return e;
}

void cube_env_text_unref(struct cube_env_text *e)
{
	if (e != NULL && --e->refs == 0)
		cube_free(e);
}
