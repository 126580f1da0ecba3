/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of what a backend has. */
#include "ctl/there.h"

#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"

#define THERE_MAX ((size_t)1 << 20) /* sandboxes */

struct there_list {
	struct cube_there t;
	size_t cap;
	int error;
};

static int there_grow(struct there_list *l)
{
	size_t cap = l->cap == 0 ? 64 : 2 * l->cap;
	struct cube_info *all;

	if (l->t.n < l->cap)
		return 0;
	all = cap <= THERE_MAX ? cube_realloc(l->t.all, cap * sizeof(*all)) : NULL;
	if (all == NULL)
		return -ENOMEM;
	l->t.all = all;
	l->cap = cap;
	return 0;
}

static void there_add(void *ctx, const struct cube_info *info)
{
	struct there_list *l = ctx;
	char *labels = NULL;

	if (l->error == 0)
		l->error = there_grow(l);
	if (l->error == 0 && info->labels != NULL) {
		labels = cube_strdup(info->labels);
		l->error = labels != NULL ? 0 : -ENOMEM;
	}
	if (l->error != 0)
		return;
	l->t.all[l->t.n] = *info;
	l->t.all[l->t.n++].labels = labels;
}

int cube_there_ask(struct cube_backend *b, struct cube_cancel *cancel, struct cube_there *ret,
		   struct cube_err *err)
{
	struct there_list l = {.cap = 0};
	int r = cube_backend_list(b, cancel, there_add, &l, err);

	if (r == 0 && l.error != 0)
		r = cube_fail(err, l.error, "backend '%s': its sandboxes: %s", b->name,
			      cube_errno_text(l.error));
	if (r == 0)
		*ret = l.t;
	else
		cube_there_done(&l.t);
	return r;
}

void cube_there_done(struct cube_there *t)
{
	for (size_t i = 0; i < t->n; i++)
		cube_free((void *)(uintptr_t)t->all[i].labels);
	cube_free(t->all);
	*t = (struct cube_there){0};
}

bool cube_there_is(const struct cube_info *info, const struct cube_pair *label)
{
	size_t key = strlen(label->key), value = strlen(label->value);
	const char *line = info->labels;

	while (line != NULL && *line != '\0') {
		size_t len = strcspn(line, "\n");

		if (len == key + 1 + value && memcmp(line, label->key, key) == 0 && line[key] == '=' &&
		    memcmp(line + key + 1, label->value, value) == 0)
			return true;
		line += len + (line[len] == '\n');
	}
	return false;
}
