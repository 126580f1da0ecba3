/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes: how they are found, made, counted, moved. */
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "fs/files/files_priv.h"

#define NODE_PLACES                                                                                          \
	16 /* names remembered of a file; more hard links than these are looked up again when needed */

struct cube_fnode *cube_fnode_find_id_locked(const struct cube_files_space *s, uint64_t id)
{
	struct cube_fhash_link *l = cube_fhash_first(&s->by_id, cube_fhash_mix(id, 0));

	for (; l != NULL; l = cube_fhash_next(l)) {
		struct cube_fnode *n = cube_container_of(l, struct cube_fnode, by_id);

		if (n->id == id)
			return n;
	}
	return NULL;
}

int cube_fnode_pin(struct cube_files_space *s, uint64_t id, struct cube_fnode **ret)
{
	struct cube_fnode *n;

	(void)pthread_rwlock_rdlock(&s->lock);
	n = cube_fnode_find_id_locked(s, id);
	if (n != NULL && !atomic_load(&n->tree->detached))
		atomic_fetch_add(&n->pins, 1);
	else
		n = NULL;
	(void)pthread_rwlock_unlock(&s->lock);
	if (n == NULL)
		return -ESTALE;
	*ret = n;
	return 0;
}

void cube_fnode_pin_more(struct cube_fnode *n)
{
	atomic_fetch_add(&n->pins, 1);
}

static void node_collect(struct cube_files_space *s, uint64_t id)
{
	struct cube_fnode *n;

	(void)pthread_rwlock_wrlock(&s->lock);
	n = cube_fnode_find_id_locked(s, id);
	if (n != NULL)
		cube_fnode_collect_locked(n);
	(void)pthread_rwlock_unlock(&s->lock);
}

/* The lock is held shared while the count goes down: whoever frees needs it alone. */
void cube_fnode_unpin(struct cube_fnode *n)
{
	struct cube_files_space *s;
	uint64_t id;
	bool last;

	if (n == NULL)
		return;
	s = n->tree->space;
	id = n->id;
	(void)pthread_rwlock_rdlock(&s->lock);
	last = atomic_fetch_sub(&n->pins, 1) == 1 && atomic_load(&n->lookups) == 0;
	(void)pthread_rwlock_unlock(&s->lock);
	if (last)
		node_collect(s, id);
}

void cube_fnode_auto(struct cube_fnode **n)
{
	cube_fnode_unpin(*n);
}

static void node_count_locked(struct cube_fnode *n)
{
	atomic_fetch_add(&n->lookups, 1);
	cube_fkept_counted_locked(n, 1);
}

void cube_fnode_count(struct cube_fnode *n)
{
	struct cube_files_space *s = n->tree->space;

	(void)pthread_rwlock_rdlock(&s->lock);
	node_count_locked(n);
	(void)pthread_rwlock_unlock(&s->lock);
}

void cube_fnode_uncount(struct cube_files_space *s, uint64_t id, uint64_t n)
{
	unsigned long long have = 0, left = 0;
	struct cube_fnode *node;

	(void)pthread_rwlock_rdlock(&s->lock);
	node = cube_fnode_find_id_locked(s, id);
	if (node != NULL) {
		have = atomic_load(&node->lookups);
		do
			left = have > n ? have - n
					: 0; /* of the root's the kernel may forget more than we count */
		while (!atomic_compare_exchange_weak(&node->lookups, &have, left));
		cube_fkept_counted_locked(node, left - have);
	}
	(void)pthread_rwlock_unlock(&s->lock);
	if (node != NULL && left == 0)
		node_collect(s, id);
}

static struct cube_fobject node_object(const struct cube_fpeek *seen)
{
	if (seen->is_void)
		return (struct cube_fobject){.type = seen->st.st_mode & S_IFMT};
	return (struct cube_fobject){
		.dev = seen->st.st_dev,
		.ino = seen->st.st_ino,
		.type = seen->st.st_mode & S_IFMT,
	};
}

static bool node_is(const struct cube_fnode *n, const struct cube_fpeek *seen)
{
	const struct cube_fobject o = node_object(seen);

	/* mounts are told by their paths, which is how we came here */
	return n->object.ino == o.ino && n->object.dev == o.dev && n->object.type == o.type &&
	       n->is_void == seen->is_void;
}

static struct cube_fnode *node_use_locked(struct cube_fnode *n, bool count)
{
	atomic_fetch_add(&n->pins, 1);
	if (count)
		node_count_locked(n);
	return n;
}

static struct cube_fnode *node_known(struct cube_fnode *parent, const char *name,
				     const struct cube_fpeek *seen, bool count)
{
	struct cube_files_space *s = parent->tree->space;
	struct cube_fplace *p;
	struct cube_fnode *n = NULL;

	(void)pthread_rwlock_rdlock(&s->lock);
	p = cube_fnode_find_locked(parent, name);
	if (p != NULL && node_is(p->node, seen))
		n = node_use_locked(p->node, count);
	(void)pthread_rwlock_unlock(&s->lock);
	return n;
}

bool cube_fnode_is_at(struct cube_fnode *parent, const char *name, const struct cube_fpeek *seen)
{
	struct cube_fnode *n = node_known(parent, name, seen, false);

	cube_fnode_unpin(n);
	return n != NULL;
}

/* The node for a name that is new or now another object's; NULL: memory. */
static struct cube_fnode *node_for_locked(struct cube_fnode *parent, const struct cube_fpeek *seen)
{
	const struct cube_fobject object = node_object(seen);
	struct cube_fnode *n = NULL;

	if (!S_ISDIR(object.type) && !S_ISLNK(object.type) && !seen->is_void)
		n = cube_fnode_by_object_locked(seen->mount, parent->tree, &object);
	if (n != NULL)
		return n;
	n = cube_fnode_new_locked(parent->tree, &object);
	if (n == NULL)
		return NULL;
	n->mount = seen->mount;
	n->point = seen->point;
	n->is_top = seen->is_top;
	n->is_void = seen->is_void;
	cube_fnode_set_object_locked(n, &object);
	return n;
}

/* The longest known name goes when there are too many. */
static void node_limit_places_locked(struct cube_fnode *n)
{
	struct cube_fplace *p = n->places;

	if (n->n_places < NODE_PLACES)
		return;
	while (p->next != NULL)
		p = p->next;
	cube_fplace_drop_locked(p, false);
}

static int node_intern_locked(struct cube_fplace **place, const struct cube_fpeek *seen, bool count,
			      struct cube_fnode **ret)
{
	struct cube_fnode *parent = (*place)->parent, *n;
	struct cube_fplace *old = cube_fnode_find_locked(parent, (*place)->name);

	if (atomic_load(&parent->tree->detached))
		return -ESTALE;
	if (old != NULL && node_is(old->node, seen)) {
		*ret = node_use_locked(old->node, count);
		return 0;
	}
	n = node_for_locked(parent, seen);
	if (n == NULL)
		return -ENOMEM;
	if (old != NULL)
		cube_fplace_drop_locked(old, false);
	node_limit_places_locked(n);
	cube_fplace_attach_locked(cube_steal(*place), n);
	*ret = node_use_locked(n, count);
	return 0;
}

int cube_fnode_intern(struct cube_fnode *parent, const char *name, const struct cube_fpeek *seen, bool count,
		      struct cube_fnode **ret)
{
	struct cube_files_space *s = parent->tree->space;
	struct cube_fnode *n = node_known(parent, name, seen, count);
	struct cube_fplace *place;
	int r;

	if (n != NULL) {
		*ret = n;
		return 0;
	}
	place = cube_fplace_new(parent, name);
	if (place == NULL)
		return -ENOMEM;
	(void)pthread_rwlock_wrlock(&s->lock);
	r = node_intern_locked(&place, seen, count, ret);
	(void)pthread_rwlock_unlock(&s->lock);
	cube_free(place);
	return r;
}

int cube_fnode_nameless(struct cube_fnode *dir, const struct cube_fpeek *seen, struct cube_fnode **ret)
{
	struct cube_files_space *s = dir->tree->space;
	struct cube_fnode *n;

	(void)pthread_rwlock_wrlock(&s->lock);
	n = node_for_locked(dir, seen);
	if (n != NULL) {
		cube_fkept_node_locked(n);
		*ret = node_use_locked(n, true);
	}
	(void)pthread_rwlock_unlock(&s->lock);
	return n == NULL ? -ENOMEM : 0;
}

int cube_fnode_new_root(struct cube_files *f)
{
	struct cube_files_space *s = f->space;
	struct cube_fobject object = {.dev = f->mounts[0].dev, .ino = f->mounts[0].ino, .type = S_IFDIR};

	(void)pthread_rwlock_wrlock(&s->lock);
	f->root = f->root_id != 0 ? cube_fnode_make_locked(f, &object, f->root_id)
				  : cube_fnode_new_locked(f, &object);
	if (f->root != NULL) {
		f->root->mount = &f->mounts[0];
		f->root->point = f->points;
		f->root->is_top = true;
		f->root_id = f->root->id;
	}
	(void)pthread_rwlock_unlock(&s->lock);
	return f->root == NULL ? -ENOMEM : 0;
}

void cube_fnode_drop_name(struct cube_fnode *parent, const char *name, bool removed)
{
	struct cube_files_space *s = parent->tree->space;
	struct cube_fplace *p;

	(void)pthread_rwlock_rdlock(&s->lock);
	p = cube_fnode_find_locked(parent, name);
	(void)pthread_rwlock_unlock(&s->lock);
	if (p == NULL)
		return;
	(void)pthread_rwlock_wrlock(&s->lock);
	p = cube_fnode_find_locked(parent, name);
	if (p != NULL)
		cube_fplace_drop_locked(p, removed);
	(void)pthread_rwlock_unlock(&s->lock);
}

void cube_fnode_set_gone(struct cube_fnode *parent, const char *name, const struct stat *st)
{
	struct cube_files_space *s = parent->tree->space;
	struct stat *gone =
		cube_memdup(st, sizeof(*st)); /* without it the node is stale, as one removed inside */
	struct cube_fplace *p;

	if (gone == NULL)
		return;
	gone->st_nlink = 0;
	(void)pthread_rwlock_wrlock(&s->lock);
	p = cube_fnode_find_locked(parent, name);
	if (p != NULL && cube_fnode_is_dir(p->node) && p->node->gone == NULL)
		p->node->gone = cube_steal(gone);
	(void)pthread_rwlock_unlock(&s->lock);
	cube_free(gone);
}

bool cube_fnode_gone(struct cube_fnode *n, struct stat *ret)
{
	struct cube_files_space *s = n->tree->space;
	bool gone;

	(void)pthread_rwlock_rdlock(&s->lock);
	gone = n->gone != NULL;
	if (gone && ret != NULL)
		*ret = *n->gone;
	(void)pthread_rwlock_unlock(&s->lock);
	return gone;
}

int cube_fmove_init(struct cube_fmove *m, struct cube_fnode *parent, const char *name,
		    struct cube_fnode *new_parent, const char *new_name, bool exchange)
{
	*m = (struct cube_fmove){.exchange = exchange};
	m->from = cube_fplace_new(parent, name);
	m->to = cube_fplace_new(new_parent, new_name);
	if (m->from != NULL && m->to != NULL)
		return 0;
	cube_fmove_done(m);
	return -ENOMEM;
}

void cube_fmove_done(struct cube_fmove *m)
{
	cube_free(m->from);
	cube_free(m->to);
	*m = (struct cube_fmove){0};
}

static void move_commit_locked(struct cube_fmove *m)
{
	struct cube_fplace *from = cube_fnode_find_locked(m->from->parent, m->from->name);
	struct cube_fplace *to = cube_fnode_find_locked(m->to->parent, m->to->name);
	struct cube_fnode *moved = from != NULL ? from->node : NULL;
	struct cube_fnode *other = to != NULL ? to->node : NULL;

	if (from != NULL && from == to)
		return;
	if (to != NULL && m->exchange)
		cube_fplace_free_locked(to);
	else if (to != NULL)
		cube_fplace_drop_locked(to, true);
	if (from != NULL)
		cube_fplace_free_locked(from);
	if (moved != NULL)
		cube_fplace_attach_locked(cube_steal(m->to), moved);
	if (other != NULL && m->exchange)
		cube_fplace_attach_locked(cube_steal(m->from), other);
}

/* Both parents are the caller's, so that none is freed here. */
void cube_fmove_commit(struct cube_fmove *m)
{
	struct cube_files_space *s = m->from->parent->tree->space;

	(void)pthread_rwlock_wrlock(&s->lock);
	move_commit_locked(m);
	(void)pthread_rwlock_unlock(&s->lock);
}

void cube_fnode_renumber(struct cube_fnode *n, const struct stat *st)
{
	struct cube_fobject object = {.dev = st->st_dev, .ino = st->st_ino, .type = st->st_mode & S_IFMT};

	if (object.type != n->object.type || n->is_void || cube_fnode_same(n, st))
		return;
	(void)pthread_rwlock_wrlock(&n->tree->space->lock);
	cube_fnode_set_object_locked(n, &object);
	(void)pthread_rwlock_unlock(&n->tree->space->lock);
}

int cube_fnode_place(struct cube_fnode *n, unsigned index, struct cube_fnode **ret_parent,
		     char name[NAME_MAX + 1])
{
	struct cube_files_space *s = n->tree->space;
	struct cube_fplace *p;

	(void)pthread_rwlock_rdlock(&s->lock);
	for (p = n->places; p != NULL && index > 0; p = p->next)
		index--;
	if (p != NULL) {
		*ret_parent = node_use_locked(p->parent, false);
		memcpy(name, p->name, strlen(p->name) + 1);
	}
	(void)pthread_rwlock_unlock(&s->lock);
	return p == NULL ? -ENOENT : 0;
}

unsigned cube_fnode_depth(struct cube_fnode *n)
{
	struct cube_files_space *s = n->tree->space;
	unsigned depth = 0;

	(void)pthread_rwlock_rdlock(&s->lock);
	for (; n->places != NULL; n = n->places->parent)
		depth++;
	(void)pthread_rwlock_unlock(&s->lock);
	return depth;
}

int cube_fnode_path(struct cube_fnode *n, char *path, size_t size)
{
	struct cube_files_space *s = n->tree->space;
	size_t at = size - 1; /* filled from its end */
	int r = 0;

	(void)pthread_rwlock_rdlock(&s->lock);
	for (; n->places != NULL; n = n->places->parent) {
		size_t len = strlen(n->places->name), need = len + (at < size - 1);

		if (need > at) {
			r = -ENAMETOOLONG;
			break;
		}
		if (at < size - 1)
			path[--at] = '/';
		at -= len;
		memcpy(path + at, n->places->name, len);
	}
	(void)pthread_rwlock_unlock(&s->lock);
	memmove(path, path + at, size - 1 - at);
	path[size - 1 - at] = '\0';
	return r;
}

struct cube_fobject cube_fnode_object(struct cube_fnode *n)
{
	struct cube_fobject o;

	(void)pthread_rwlock_rdlock(&n->tree->space->lock);
	o = n->object;
	(void)pthread_rwlock_unlock(&n->tree->space->lock);
	return o;
}

bool cube_fnode_same(struct cube_fnode *n, const struct stat *st)
{
	const struct cube_fobject o = cube_fnode_object(n);

	return o.ino == st->st_ino && o.dev == st->st_dev && o.type == (st->st_mode & S_IFMT);
}
