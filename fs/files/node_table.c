/* SPDX-License-Identifier: Apache-2.0 */
/* The table of nodes: its elements and indices, with the lock held. node.c has the calls of others. */
#include <string.h>

#include "backends/base/alloc.h"
#include "fs/files/files_priv.h"

static uint64_t table_place_hash(const struct cube_fnode *parent, const char *name)
{
	return cube_fhash_text(parent->tree->space->key ^ parent->id, name);
}

static uint64_t table_object_hash(const struct cube_fmount *m, const struct cube_files *f,
				  const struct cube_fobject *o)
{
	return cube_fhash_mix(cube_fhash_mix(f->space->key ^ o->ino, o->dev), f->root_id ^ m->key);
}

struct cube_fplace *cube_fnode_find_locked(struct cube_fnode *parent, const char *name)
{
	const struct cube_fhash *h = &parent->tree->space->by_place;
	struct cube_fhash_link *l = cube_fhash_first(h, table_place_hash(parent, name));

	for (; l != NULL; l = cube_fhash_next(l)) {
		struct cube_fplace *p = cube_container_of(l, struct cube_fplace, link);

		if (p->parent == parent && strcmp(p->name, name) == 0)
			return p;
	}
	return NULL;
}

/* Not in any table yet; NULL: memory. */
struct cube_fplace *cube_fplace_new(struct cube_fnode *parent, const char *name)
{
	size_t size = strlen(name) + 1;
	struct cube_fplace *p = cube_malloc(sizeof(*p) + size);

	if (p == NULL)
		return NULL;
	*p = (struct cube_fplace){.parent = parent};
	memcpy(p->name, name, size);
	return p;
}

void cube_fplace_attach_locked(struct cube_fplace *p, struct cube_fnode *n)
{
	p->node = n;
	p->next = n->places;
	n->places = p;
	n->n_places++;
	p->parent->n_children++;
	cube_fhash_add(&n->tree->space->by_place, &p->link, table_place_hash(p->parent, p->name));
	p->hashed = true;
	cube_fkept_node_locked(n);
}

static void place_unhash_locked(struct cube_fplace *p)
{
	if (p->hashed)
		cube_fhash_remove(&p->node->tree->space->by_place, &p->link);
	p->hashed = false;
}

void cube_fplace_free_locked(struct cube_fplace *p)
{
	struct cube_fplace **at = &p->node->places;
	struct cube_fnode *n = p->node;
	bool first = *at == p;

	place_unhash_locked(p);
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	p->node->n_places--;
	p->parent->n_children--;
	cube_free(p);
	if (first && !n->is_dead)
		cube_fkept_node_locked(n);
}

static bool node_by_path(const struct cube_fnode *n)
{
	return S_ISDIR(n->object.type) || S_ISLNK(n->object.type) || n->is_void;
}

void cube_fplace_drop_locked(struct cube_fplace *p, bool removed)
{
	struct cube_fnode *parent = p->parent;

	if (node_by_path(p->node)) {
		place_unhash_locked(p);
		if (removed)
			cube_flru_drop_locked(p->node);
		return;
	}
	/* After its removal the next file may get its number. One that was only renamed inside is to be found
	 * again. */
	if (removed && p->node->n_places == 1 && cube_list_empty(&p->node->handles))
		cube_fnode_set_object_locked(p->node, NULL);
	cube_fplace_free_locked(p);
	cube_fnode_collect_locked(parent);
}

struct cube_fnode *cube_fnode_new_locked(struct cube_files *f, const struct cube_fobject *object)
{
	struct cube_keep *keep = f->space->options.keep;
	uint64_t id = CUBE_FILES_ID | ++f->space->last_id;

	if (keep != NULL)
		atomic_store_explicit(&keep->head->last_file, f->space->last_id, memory_order_relaxed);
	return cube_fnode_make_locked(f, object, id);
}

struct cube_fnode *cube_fnode_make_locked(struct cube_files *f, const struct cube_fobject *object,
					  uint64_t id)
{
	struct cube_fnode *n = cube_calloc(1, sizeof(*n));

	if (n == NULL)
		return NULL;
	n->id = id;
	n->kept = CUBE_KEEP_NONE;
	n->tree = cube_files_ref(f);
	n->object = *object;
	atomic_init(&n->pins, 0);
	atomic_init(&n->lookups, 0);
	atomic_init(&n->used, false);
	atomic_init(&n->watched, NULL);
	cube_list_init(&n->handles);
	cube_list_init(&n->lock_owners);
	cube_list_init(&n->lru);
	cube_fhash_add(&f->space->by_id, &n->by_id, cube_fhash_mix(n->id, 0));
	return n;
}

struct cube_fnode *cube_fnode_by_object_locked(const struct cube_fmount *m, struct cube_files *f,
					       const struct cube_fobject *o)
{
	struct cube_fhash_link *l = cube_fhash_first(&f->space->by_object, table_object_hash(m, f, o));

	for (; l != NULL; l = cube_fhash_next(l)) {
		struct cube_fnode *n = cube_container_of(l, struct cube_fnode, by_object);

		if (n->tree == f && n->mount == m && n->object.ino == o->ino && n->object.dev == o->dev &&
		    n->object.type == o->type)
			return n;
	}
	return NULL;
}

/* NULL: found by its object no more. Where another node has that number already, this one is not found by it.
 */
void cube_fnode_set_object_locked(struct cube_fnode *n, const struct cube_fobject *o)
{
	struct cube_fhash *h = &n->tree->space->by_object;

	if (n->in_objects)
		cube_fhash_remove(h, &n->by_object);
	n->in_objects = false;
	if (o == NULL)
		return;
	n->object.dev = o->dev;
	n->object.ino = o->ino;
	if (node_by_path(n) || cube_fnode_by_object_locked(n->mount, n->tree, o) != NULL)
		return;
	cube_fhash_add(h, &n->by_object, table_object_hash(n->mount, n->tree, o));
	n->in_objects = true;
	if (n->kept != CUBE_KEEP_NONE)
		cube_fkept_node_locked(n);
}

static bool node_is_dead(const struct cube_fnode *n)
{
	bool is_root = n->tree->root == n && !atomic_load(&n->tree->detached);

	return !is_root && n->n_children == 0 && atomic_load(&n->pins) == 0 && atomic_load(&n->lookups) == 0;
}

static void node_free_locked(struct cube_fnode *n)
{
	struct cube_files *f = n->tree;

	cube_fkept_node_gone_locked(n);
	cube_fwatch_gone_locked(n);
	cube_flru_drop_locked(n);
	cube_fnode_set_object_locked(n, NULL);
	cube_fhash_remove(&f->space->by_id, &n->by_id);
	if (f->root == n)
		f->root = NULL;
	cube_free(n->gone);
	cube_free(n);
	cube_files_unref(f);
}

static void node_chain(struct cube_list **chain, struct cube_fnode *n)
{
	cube_flru_drop_locked(n);
	n->lru.next = *chain;
	*chain = &n->lru;
}

static struct cube_fnode *node_unchain(struct cube_list **chain)
{
	struct cube_fnode *n = cube_list_entry(*chain, struct cube_fnode, lru);

	*chain = n->lru.next;
	cube_list_init(&n->lru);
	return n;
}

/* The parents that lost a child follow, through a chain, since a path may be thousands of names long. */
void cube_fnode_collect_locked(struct cube_fnode *n)
{
	struct cube_list *dead = NULL;

	if (!node_is_dead(n))
		return;
	node_chain(&dead, n);
	while (dead != NULL) {
		n = node_unchain(&dead);
		cube_fkept_node_gone_locked(n);
		n->kept = CUBE_KEEP_NONE;
		n->is_dead = true;
		while (n->places != NULL) {
			struct cube_fnode *parent = n->places->parent;

			cube_fplace_free_locked(n->places);
			if (node_is_dead(parent)) /* it is so once only: when it loses its last child */
				node_chain(&dead, parent);
		}
		node_free_locked(n);
	}
}

/* A node that lost its look-ups goes when its slot comes or, if it has children, with the last of them. */
void cube_fnode_collect_all_locked(struct cube_files_space *s)
{
	struct cube_fhash_link *l;

	for (size_t i = 0; s->by_id.slots != NULL && i < s->by_id.n_slots; i++) {
		for (l = s->by_id.slots[i]; l != NULL; l = l->next)
			atomic_store(&cube_container_of(l, struct cube_fnode, by_id)->lookups, 0);
	}
	for (size_t i = 0; s->by_id.slots != NULL && i < s->by_id.n_slots; i++) {
		for (l = s->by_id.slots[i]; l != NULL;) {
			struct cube_fnode *n = cube_container_of(l, struct cube_fnode, by_id);
			bool dead = node_is_dead(n);

			cube_fnode_collect_locked(n);
			l = dead ? s->by_id.slots[i] : l->next; /* others of the slot may have gone with it */
		}
	}
}
