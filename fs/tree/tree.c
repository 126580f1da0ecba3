/* SPDX-License-Identifier: Apache-2.0 */
/* The tree as a whole: made, ended, told what changed. */
#include "fs/tree/tree.h"

#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/checkpoint.h"
#include "ctl/volume.h"
#include "fs/tree/tree_priv.h"
#include "fs/tree/type.h"

/* ---- news from the domain ----
 *
 * Of names that went. That a name is missing is believed by nobody, so one that came needs no telling. */

void cube_tree_tell(struct cube_tree *t, struct cube_node *parent, const char *name)
{
	if (t->watcher.entry != NULL && parent != NULL && !t->silent)
		t->watcher.entry(t->watcher.ctx, parent->id, name);
}

static void tree_drop_files(struct cube_tree *t, const struct cube_type *type, void *p)
{
	struct cube_obj *o = cube_obj_peek(t, type, p);

	if (o == NULL)
		return;
	cube_obj_ref(o);
	cube_attach_drop(o);
	cube_obj_unref(o);
}

static void tree_cube_removed(void *ctx, struct cube_cube *c, const char *name)
{
	struct cube_tree *t = ctx;
	struct cube_obj *o = cube_obj_peek(t, &cube_type_cube, c);

	cube_tree_tell(t, t->root_node, name);
	if (o == NULL || c->phase != CUBE_REMOVED)
		return;
	cube_obj_ref(o);
	cube_mark_drop(t, o);
	cube_list_each (i, &c->checkpoints)
		tree_drop_files(t, &cube_type_checkpoint,
				cube_list_entry(i, struct cube_checkpoint_entry, link));
	cube_attach_drop(o);
	cube_obj_unref(o);
}

static void tree_mounts_changed(void *ctx, struct cube_cube *c, const char *gone)
{
	struct cube_obj *o = cube_obj_peek(ctx, &cube_type_cube, c);

	if (o != NULL)
		cube_attach_again(o, gone);
}

static void tree_files_replaced(void *ctx, struct cube_cube *c)
{
	struct cube_obj *o = cube_obj_peek(ctx, &cube_type_cube, c);

	if (o != NULL)
		cube_attach_replaced(o);
}

static void tree_volume_removed(void *ctx, struct cube_volume_entry *v, const char *name)
{
	struct cube_tree *t = ctx;

	cube_tree_tell(t, t->root->nodes[cube_entry_volumes.slot], name);
	if (v->phase == CUBE_VOLUME_REMOVED)
		tree_drop_files(t, &cube_type_volume, v);
}

static void tree_checkpoint_removed(void *ctx, struct cube_checkpoint_entry *e, const char *name)
{
	struct cube_tree *t = ctx;
	const struct cube_obj *o = cube_obj_peek(t, &cube_type_cube, e->cube);

	if (o != NULL)
		cube_tree_tell(t, o->nodes[cube_entry_checkpoints.slot], name);
	if (e->phase == CUBE_CHECKPOINT_REMOVED)
		tree_drop_files(t, &cube_type_checkpoint, e);
}

/* @dir is the name of a fixed directory of the sandbox. */
static void tree_entry_changed(void *ctx, struct cube_cube *c, const char *dir, const char *name)
{
	struct cube_tree *t = ctx;
	struct cube_obj *o = cube_obj_peek(t, &cube_type_cube, c);

	for (unsigned i = 0; o != NULL && i < CUBE_SLOTS; i++) {
		struct cube_node *n = o->nodes[i];

		if (n == NULL || n->entry->level == NULL || strcmp(n->entry->name, dir) != 0)
			continue;
		if (n->entry->level->find == NULL || n->entry->level->find(c, name) == NULL)
			cube_tree_tell(t, n, name);
	}
}

static uint64_t tree_files_used(void *ctx, struct cube_cube *c)
{
	const struct cube_obj *o = cube_obj_peek(ctx, &cube_type_cube, c);

	return o != NULL ? cube_attach_used(o) : 0;
}

static void tree_files_quiet(void *ctx, struct cube_cube *c, bool quiet)
{
	struct cube_tree *t = ctx;
	const struct cube_obj *o = cube_tree_keeps(t) ? cube_obj_peek(t, &cube_type_cube, c) : NULL;

	if (o != NULL)
		cube_attach_quiet(o, quiet);
}

static const char *tree_files_kept(void *ctx)
{
	const struct cube_tree *t = ctx;

	return t->watcher.kept != NULL ? t->watcher.kept(t->watcher.ctx) : "no: no mount shows them";
}

static const char *tree_files_served(void *ctx)
{
	const struct cube_tree *t = ctx;

	return t->watcher.served != NULL ? t->watcher.served(t->watcher.ctx) : "no mount shows them";
}

void cube_tree_ask(struct cube_tree *t, uint64_t id)
{
	struct cube_obj *owner;

	cube_domain_enter(t->domain);
	owner = cube_files_owner(t->view->files, id);
	if (owner != NULL && owner->type == &cube_type_cube)
		cube_use_ask(owner->p);
	cube_domain_leave(t->domain);
}

bool cube_tree_runs(struct cube_tree *t, uint64_t id)
{
	const struct cube_obj *owner;
	bool runs = false;

	cube_domain_enter(t->domain);
	owner = cube_files_owner(t->view->files, id);
	if (owner != NULL && owner->type == &cube_type_cube)
		runs = cube_use_runs(owner->p);
	else if (owner != NULL && owner->type == &cube_type_volume)
		runs = cube_volume_runs(owner->p);
	cube_domain_leave(t->domain);
	return runs;
}

bool cube_tree_keeps(const struct cube_tree *t)
{
	return t->watcher.keeps;
}

bool cube_tree_behind(struct cube_tree *t, void (*told)(void *arg), void *arg)
{
	return t->watcher.behind != NULL && t->watcher.behind(t->watcher.ctx, told, arg);
}

/* ---- from beginning to end ---- */

struct cube_tree *cube_tree_new(const struct cube_tree_options *o)
{
	struct cube_tree *t = cube_calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	*t = (struct cube_tree){
		.domain = o->domain, .keep = o->keep, .watcher = o->watcher, .next_id = CUBE_TREE_ROOT};
	cube_list_init(&t->marks);
	cube_list_init(&t->attached);
	cube_list_init(&t->again);
	cube_list_init(&t->handles);
	t->view = cube_view_new(o->domain, o->files, false);
	t->nodes = cube_imap_new();
	t->parked = cube_imap_new();
	t->services = cube_imap_new();
	if (t->view == NULL || t->nodes == NULL || t->parked == NULL || t->services == NULL)
		goto fail;
	t->root = cube_obj_get(t, &cube_type_root, o->domain);
	t->root_node = t->root == NULL ? NULL : cube_node_get(t->root, cube_type_root.self);
	if (t->root_node == NULL)
		goto fail;
	o->domain->watcher = (struct cube_domain_watcher){.ctx = t,
							  .cube_removed = tree_cube_removed,
							  .mounts_changed = tree_mounts_changed,
							  .files_replaced = tree_files_replaced,
							  .checkpoint_removed = tree_checkpoint_removed,
							  .volume_removed = tree_volume_removed,
							  .entry_changed = tree_entry_changed,
							  .files_used = tree_files_used,
							  .files_quiet = tree_files_quiet,
							  .files_served = tree_files_served,
							  .files_kept = tree_files_kept};
	o->domain->paths = (struct cube_domain_paths){.ctx = t, .start = cube_path_start};
	return t;
fail:
	cube_tree_free(t);
	return NULL;
}

static int tree_one_node(void *ctx, uint64_t id, void *value)
{
	(void)id;
	*(struct cube_node **)ctx = value;
	return 1;
}

void cube_tree_free(struct cube_tree *t)
{
	struct cube_node *n;

	if (t == NULL)
		return;
	cube_domain_enter(t->domain);
	t->domain->watcher = (struct cube_domain_watcher){0};
	t->domain->paths = (struct cube_domain_paths){0};
	cube_mark_drop(t, NULL);
	cube_attach_drop_all(t);
	cube_list_each (i, &t->handles)
		cube_handle_free(cube_list_entry(i, struct cube_handle, link));
	/* What the front end still had: nobody will ask for it again. */
	while (t->nodes != NULL && (n = NULL, cube_imap_each(t->nodes, tree_one_node, &n) != 0)) {
		n->refs = 1;
		n->lookups = 0;
		cube_node_unref(n);
	}
	cube_obj_unref(t->root);
	cube_view_unref(t->view);
	cube_domain_leave(t->domain);
	cube_imap_free(t->nodes);
	cube_imap_free(t->parked);
	cube_imap_free(t->services);
	cube_free(t);
}

void cube_tree_forget(struct cube_tree *t, uint64_t id, uint64_t n)
{
	struct cube_node *node;

	cube_domain_enter(t->domain);
	node = cube_node_find(t, id);
	if (node != NULL)
		cube_node_forget(node, n);
	cube_domain_leave(t->domain);
}
