/* SPDX-License-Identifier: Apache-2.0 */
/* Objects, nodes and their numbers. */
#include "fs/tree/node.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "fs/tree/tree_priv.h"

#define NODE_NAMES 60.0 /* seconds for which a name may be believed: changes are notified */

/* Spreads a number over all its bits; one to one, so that what differs goes on differing. */
static uint64_t node_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* ---- objects ---- */

static struct cube_obj *obj_find(struct cube_tree *t, const struct cube_type *type, void *p)
{
	if (type->slot != NULL)
		return *type->slot(p);
	return type->parent == NULL ? t->root : cube_imap_get(t->services, (uint64_t)(uintptr_t)p);
}

static int obj_keep(struct cube_tree *t, struct cube_obj *o)
{
	if (o->type->slot != NULL)
		*o->type->slot(o->p) = o;
	else if (o->type->parent != NULL)
		return cube_imap_put(t->services, (uint64_t)(uintptr_t)o->p, o);
	return 0;
}

uint64_t cube_obj_ino(uint64_t parent, const struct cube_type *type, void *p)
{
	return node_mix(parent ^ node_mix(type->seed(p)));
}

struct cube_obj *cube_obj_peek(struct cube_tree *t, const struct cube_type *type, void *p)
{
	return obj_find(t, type, p);
}

struct cube_obj *cube_obj_get(struct cube_tree *t, const struct cube_type *type, void *p)
{
	struct cube_obj *o = obj_find(t, type, p);

	if (o != NULL)
		return cube_obj_ref(o);
	o = cube_calloc(1, sizeof(*o));
	if (o == NULL)
		return NULL;
	*o = (struct cube_obj){.type = type, .p = p, .refs = 1, .tree = t};
	if (type->parent != NULL) {
		o->parent = cube_obj_get(t, type->parent, type->parent_of(p));
		if (o->parent == NULL)
			goto fail;
		o->ino = cube_obj_ino(o->parent->ino, type, p);
	}
	if (obj_keep(t, o) < 0)
		goto fail;
	type->ref(p);
	return o;
fail:
	cube_obj_unref(o->parent);
	cube_free(o);
	return NULL;
}

struct cube_obj *cube_obj_ref(struct cube_obj *o)
{
	o->refs++;
	return o;
}

void cube_obj_unref(struct cube_obj *o)
{
	struct cube_obj *parent;

	if (o == NULL || --o->refs > 0)
		return;
	parent = o->parent;
	if (o->type->slot != NULL)
		*o->type->slot(o->p) = NULL;
	else if (o->type->parent != NULL)
		cube_imap_take(o->tree->services, (uint64_t)(uintptr_t)o->p);
	o->type->unref(o->p);
	cube_free(o);
	cube_obj_unref(parent);
}

bool cube_entry_present(const struct cube_obj *o, const struct cube_entry *e)
{
	const struct cube_service *s = o->type->service(o->p);

	if (s != NULL && (e->needs & ~s->backend->caps) != 0)
		return false;
	return e->present == NULL || e->present(o->p);
}

/* ---- nodes ---- */

/* With the top bit, which those of real files never have (fs/files/attr.c). */
uint64_t cube_node_ino(const struct cube_obj *o, const struct cube_entry *e)
{
	if (o->type->parent == NULL && e->slot == 0)
		return CUBE_TREE_ROOT;
	return node_mix(o->ino + e->slot) | UINT64_C(1) << 63;
}

static struct cube_node *node_make(struct cube_obj *o, const struct cube_entry *e, uint64_t id)
{
	struct cube_tree *t = o->tree;
	struct cube_node *n = cube_calloc(1, sizeof(*n));

	if (n == NULL)
		return NULL;
	*n = (struct cube_node){.id = id, .refs = 1, .fresh = e->fresh, .entry = e};
	if (cube_imap_put(t->nodes, n->id, n) < 0) {
		cube_free(n);
		return NULL;
	}
	n->obj = cube_obj_ref(o);
	o->nodes[e->slot] = n;
	return n;
}

static struct cube_node *node_new(struct cube_obj *o, const struct cube_entry *e)
{
	struct cube_node *n = node_make(o, e, o->tree->next_id++);

	if (n != NULL)
		cube_kept_node(n);
	return n;
}

int cube_node_restore(struct cube_obj *o, const struct cube_entry *e, const struct cube_keep_node *rec,
		      uint32_t record)
{
	struct cube_node *n = node_make(o, e, atomic_load(&rec->key));

	if (n == NULL)
		return -ENOMEM;
	n->kept = record;
	n->lookups = atomic_load(&rec->lookups);
	n->refs = 0;
	return 0;
}

struct cube_node *cube_node_get(struct cube_obj *o, const struct cube_entry *e)
{
	if (!e->fresh && o->nodes[e->slot] != NULL)
		return cube_node_ref(o->nodes[e->slot]);
	return node_new(o, e);
}

/* A thread does one thing at a time: what it was given and has not opened, or has closed, nobody waits on. */
struct cube_node *cube_node_give(struct cube_obj *o, const struct cube_entry *e, pid_t to)
{
	struct cube_node *last = o->nodes[e->slot];
	struct cube_node *n;

	if (!e->fresh)
		return cube_node_get(o, e);
	if (last != NULL && last->refs == 0 && to > 0 && last->given == to)
		return cube_node_ref(last);
	n = node_new(o, e);
	if (n != NULL)
		n->given = to;
	return n;
}

void cube_node_count(struct cube_node *n)
{
	n->lookups++;
	cube_kept_node_counted(n);
}

struct cube_node *cube_node_find(struct cube_tree *t, uint64_t id)
{
	return cube_imap_get(t->nodes, id);
}

struct cube_node *cube_node_ref(struct cube_node *n)
{
	n->refs++;
	return n;
}

static void node_check(struct cube_node *n)
{
	struct cube_obj *o = n->obj;

	if (n->refs > 0 || n->lookups > 0)
		return;
	cube_imap_take(o->tree->nodes, n->id);
	cube_kept_node_gone(n);
	if (o->nodes[n->entry->slot] == n)
		o->nodes[n->entry->slot] = NULL;
	cube_free(n);
	cube_obj_unref(o);
}

void cube_node_unref(struct cube_node *n)
{
	if (n == NULL)
		return;
	assert(n->refs > 0);
	n->refs--;
	node_check(n);
}

void cube_node_forget(struct cube_node *n, uint64_t lookups)
{
	n->lookups -= lookups < n->lookups ? lookups : n->lookups;
	cube_kept_node_counted(n);
	node_check(n);
}

/* ---- attributes ---- */

static struct timespec node_time(uint64_t wall)
{
	return (struct timespec){.tv_sec = (time_t)(wall / 1000000000), .tv_nsec = (long)(wall % 1000000000)};
}

static uint64_t node_hash(const char *text, size_t len)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
	return h;
}

/* A text is made anew each time it is asked for, so when it changed is known by comparing: tar, rsync and
 * make believe that time. */
static void node_text_stat(struct cube_node *n, uint64_t *size, uint64_t *mtime)
{
	struct cube_text_mark *mark = &n->obj->texts[n->entry->slot];
	struct cube_buf text = CUBE_BUF(CUBE_RENDER_MAX);
	uint64_t hash;

	if (n->entry->render != NULL)
		(void)n->entry->render(n->obj->p, &text);
	hash = node_hash(text.data, text.len);
	if (mark->changed == 0 || mark->hash != hash)
		*mark = (struct cube_text_mark){.hash = hash, .changed = cube_clock_wall()};
	*size = text.len;
	*mtime = mark->changed;
	cube_buf_done(&text);
}

static void node_stat(struct cube_node *n, uint64_t *size, uint64_t *mtime)
{
	const struct cube_entry *e = n->entry;

	*size = 0;
	*mtime = n->obj->type->born(n->obj->p);
	if (S_ISDIR(e->mode))
		return;
	if (e->class != NULL && e->class->stat != NULL)
		e->class->stat(n, size, mtime);
	else if (!e->constant)
		node_text_stat(n, size, mtime);
	else
		node_text_stat(n, size, &(uint64_t){0});
}

void cube_node_attr(struct cube_node *n, struct cube_tree_entry *ret)
{
	const struct cube_domain *d = n->obj->tree->domain;
	const struct cube_entry *e = n->entry;
	bool still = e->constant || S_ISDIR(e->mode);
	uint64_t size, mtime;
	struct timespec at;

	node_stat(n, &size, &mtime);
	at = node_time(mtime);
	*ret = (struct cube_tree_entry){.id = n->id};
	ret->st.st_ino = cube_node_ino(n->obj, e);
	ret->st.st_mode = e->mode;
	ret->st.st_nlink = 1;
	ret->st.st_uid = d->uid;
	ret->st.st_gid = d->gid;
	ret->st.st_size = (off_t)size;
	ret->st.st_blocks = (ret->st.st_size + 511) / 512;
	ret->st.st_blksize = 4096;
	ret->st.st_atim = ret->st.st_mtim = ret->st.st_ctim = at;
	ret->entry_timeout = n->fresh || n->obj->tree->closing ? 0 : NODE_NAMES;
	ret->attr_timeout = still && !e->files ? NODE_NAMES : 0;
}
