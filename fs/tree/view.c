/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the real files: the tree's own, and those of clients. */
#include "backends/base/alloc.h"
#include "fs/tree/tree_priv.h"

struct cube_tree_view *cube_view_new(struct cube_domain *d, struct cube_files_space *files, bool own)
{
	struct cube_tree_view *v = cube_calloc(1, sizeof(*v));

	if (v == NULL)
		return NULL;
	*v = (struct cube_tree_view){.refs = 1, .domain = d, .files = files, .own = own};
	return v;
}

struct cube_tree_view *cube_view_ref(struct cube_tree_view *v)
{
	v->refs++;
	return v;
}

/* To give up a space is a matter of system calls: not under the lock. */
static void view_free(struct cube_deferred *d)
{
	struct cube_tree_view *v = cube_container_of(d, struct cube_tree_view, deferred);

	if (v->own)
		cube_files_space_free(v->files);
	cube_free(v);
}

void cube_view_unref(struct cube_tree_view *v)
{
	if (v == NULL || --v->refs > 0)
		return;
	v->deferred.fn = view_free;
	cube_domain_defer(v->domain, &v->deferred);
}

struct cube_tree_view *cube_tree_view_new(struct cube_tree *t, struct cube_files_space *files)
{
	return cube_view_new(t->domain, files, true);
}

void cube_tree_view_end(struct cube_tree *t, struct cube_tree_view *v)
{
	cube_domain_enter(t->domain);
	cube_attach_drop_view(t, v);
	cube_view_unref(v);
	cube_domain_leave(t->domain);
}
