/* SPDX-License-Identifier: Apache-2.0 */
/* Directories: names are looked up, listed, made, removed and renamed by walking tables. */
#include <errno.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>

#include "fs/tree/tree_priv.h"

#define DIR_NAME_MAX 255

/* Where listings go on: "." and "..", the fixed entries, then what comes and goes by its place. */
#define DIR_FIXED 2
#define DIR_CHILD (UINT64_C(1) << 32)

static const struct cube_entry *dir_fixed(const struct cube_node *n, const char *name)
{
	const struct cube_level *l = cube_node_level(n);

	for (size_t i = 0; i < l->count; i++) {
		if (strcmp(l->entries[i].name, name) == 0 && cube_entry_present(n->obj, &l->entries[i]))
			return &l->entries[i];
	}
	return NULL;
}

static void *dir_child(const struct cube_node *n, const char *name)
{
	const struct cube_level *l = cube_node_level(n);

	return l->find == NULL ? NULL : l->find(n->obj->p, name);
}

/* What every operation on a name in a directory begins with; 1: go on. */
static int dir_begin(struct cube_req *r)
{
	const struct cube_obj *o = r->n->obj;

	if (strlen(r->name) > DIR_NAME_MAX)
		return cube_fail(&r->err, -ENAMETOOLONG, "the name has more than %d bytes", DIR_NAME_MAX);
	if (r->n->entry->files)
		return cube_attach_step(r);
	if (!S_ISDIR(r->n->entry->mode))
		return -ENOTDIR;
	if (o->type->gone(o->p))
		return -ENOENT;
	return 1;
}

/* ---- lookup ---- */

/* The answer to a lookup or mkdir, counted. */
static int dir_answer(struct cube_req *r, struct cube_node *n)
{
	if (n == NULL)
		return cube_fail(&r->err, -ENOMEM, "out of memory");
	cube_node_count(n);
	cube_node_attr(n, &r->entry);
	cube_node_unref(n);
	return 0;
}

static struct cube_node *dir_child_node(struct cube_node *n, void *p)
{
	struct cube_obj *o = cube_obj_get(n->obj->tree, cube_node_level(n)->child, p);
	struct cube_node *child;

	if (o == NULL)
		return NULL;
	child = cube_node_get(o, o->type->self);
	cube_obj_unref(o);
	return child;
}

int cube_dir_lookup(struct cube_req *r)
{
	const struct cube_entry *e;
	int code = dir_begin(r);
	void *p;

	if (code != 1)
		return code;
	e = dir_fixed(r->n, r->name);
	if (e != NULL)
		return dir_answer(
			r, cube_node_give(r->n->obj, e,
					  r->caller.local && r->caller.client == 0 ? r->caller.pid : 0));
	p = dir_child(r->n, r->name);
	return p == NULL ? -ENOENT : dir_answer(r, dir_child_node(r->n, p));
}

int cube_dir_enter(struct cube_node *n, const char *name, struct cube_node **ret)
{
	const struct cube_entry *e;
	void *p;

	if (n->obj->type->gone(n->obj->p))
		return -ENOENT;
	e = dir_fixed(n, name);
	if (e != NULL && !S_ISDIR(e->mode))
		return S_ISLNK(e->mode) ? -ELOOP : -ENOTDIR;
	p = e == NULL ? dir_child(n, name) : NULL;
	if (e == NULL && p == NULL)
		return -ENOENT;
	*ret = e != NULL ? cube_node_get(n->obj, e) : dir_child_node(n, p);
	return *ret != NULL ? 0 : -ENOMEM;
}

/* ---- listing ---- */

int cube_dir_opendir(struct cube_req *r)
{
	const struct cube_cube *c = r->n->obj->type->cube(r->n->obj->p);

	if (!S_ISDIR(r->n->entry->mode))
		return -ENOTDIR;
	if (cube_mark_has(r->tree, r->n, &r->caller))
		return 0;
	/* Only what needs it running waits for a sandbox that is being made; to list is to look. */
	if (r->n->entry->files && (c == NULL || c->phase != CUBE_CREATING))
		return cube_attach_step(r);
	return 0;
}

/* One entry that has a node of its own; with attributes it is a lookup. Non-zero: no room. */
static int dir_add_node(struct cube_req *r, const char *name, struct cube_node *n, uint64_t next)
{
	struct cube_tree_entry e;
	int full;

	if (n == NULL)
		return 0; /* out of memory: better a listing without it than none */
	cube_node_attr(n, &e);
	cube_node_count(n);
	full = r->add(r, name, &e, next);
	if (full)
		cube_node_forget(n, 1);
	cube_node_unref(n);
	return full;
}

static int dir_add_bare(struct cube_req *r, const char *name, uint64_t ino, mode_t mode, uint64_t next)
{
	struct cube_tree_entry e = {.st = {.st_ino = ino, .st_mode = mode}};

	return r->add(r, name, &e, next);
}

static uint64_t dir_parent_ino(const struct cube_node *n)
{
	const struct cube_obj *o = n->obj;

	if (n->entry->slot != 0)
		return cube_node_ino(o, o->type->self);
	return o->parent == NULL ? CUBE_TREE_ROOT : cube_node_ino(o->parent, o->type->within);
}

static int dir_list_dots(struct cube_req *r)
{
	if (r->offset < 1 && dir_add_bare(r, ".", cube_node_ino(r->n->obj, r->n->entry), S_IFDIR, 1) != 0)
		return 1;
	return r->offset < 2 && dir_add_bare(r, "..", dir_parent_ino(r->n), S_IFDIR, 2) != 0;
}

static int dir_list_fixed(struct cube_req *r)
{
	const struct cube_level *l = cube_node_level(r->n);
	struct cube_obj *o = r->n->obj;

	for (size_t i = r->offset > DIR_FIXED ? r->offset - DIR_FIXED : 0; i < l->count; i++) {
		const struct cube_entry *e = &l->entries[i];
		uint64_t next = DIR_FIXED + i + 1;
		int full;

		if (!cube_entry_present(o, e))
			continue;
		full = r->plus ? dir_add_node(r, e->name, cube_node_get(o, e), next)
			       : dir_add_bare(r, e->name, cube_node_ino(o, e), e->mode, next);
		if (full)
			return full;
	}
	return 0;
}

static int dir_add_child(struct cube_req *r, void *p)
{
	const struct cube_type *type = cube_node_level(r->n)->child;
	struct cube_node *n = dir_child_node(r->n, p);
	uint64_t next = DIR_CHILD + type->seq(p);
	int full;

	if (n == NULL)
		return cube_fail(&r->err, -ENOMEM, "out of memory");
	if (r->plus)
		return dir_add_node(r, type->name(p), n, next);
	full = dir_add_bare(r, type->name(p), cube_node_ino(n->obj, n->entry), S_IFDIR, next);
	cube_node_unref(n);
	return full;
}

static void *dir_next_child(const struct cube_req *r, void *p)
{
	const struct cube_level *l = cube_node_level(r->n);

	return l->after != NULL ? l->after(r->n->obj->p, p) : l->next(r->n->obj->p, l->child->seq(p));
}

static int dir_list_children(struct cube_req *r)
{
	const struct cube_level *l = cube_node_level(r->n);
	uint64_t seq = r->offset > DIR_CHILD ? r->offset - DIR_CHILD : 0;
	void *p = l->next == NULL ? NULL : l->next(r->n->obj->p, seq);
	int full = 0;

	for (; p != NULL && full == 0; p = dir_next_child(r, p))
		full = dir_add_child(r, p);
	return full;
}

int cube_dir_readdir(struct cube_req *r)
{
	int full = dir_list_dots(r);
	const struct cube_obj *o = r->n->obj;

	if (full != 0 || cube_node_level(r->n) == NULL || o->type->gone(o->p))
		return 0;
	if (cube_mark_has(r->tree, r->n, &r->caller))
		return 0;
	if (r->offset < DIR_CHILD)
		full = dir_list_fixed(r);
	if (full == 0)
		full = dir_list_children(r);
	return full < 0 ? full : 0;
}

/* ---- making ---- */

int cube_dir_mkdir(struct cube_req *r)
{
	const struct cube_level *l;
	int code = dir_begin(r);
	void *p = NULL;

	if (code != 1)
		return code;
	l = cube_node_level(r->n);
	p = r->again && r->state == NULL ? dir_child(r->n, r->name) : NULL;
	if (p != NULL) /* the worker before has made it for this very request */
		return dir_answer(r, dir_child_node(r->n, p));
	if (r->state == NULL /* else it is the one that this request waits for */ &&
	    (dir_fixed(r->n, r->name) != NULL || dir_child(r->n, r->name) != NULL))
		return cube_fail(&r->err, -EEXIST, "'%s' exists", r->name);
	if (l->make == NULL)
		return cube_fail(&r->err, -ENOENT, "'%s': nothing can be made here", r->name);
	cube_mark_end(r->tree, cube_mark_scope(r->n->obj), &r->caller);
	code = l->make(r, r->n->obj->p, r->name, &p);
	return code != 0 ? code : dir_answer(r, dir_child_node(r->n, p));
}

int cube_dir_refuse(struct cube_req *r)
{
	int code = dir_begin(r);

	if (code != 1)
		return code;
	if (dir_fixed(r->n, r->name) != NULL || dir_child(r->n, r->name) != NULL)
		return cube_fail(&r->err, -EEXIST, "'%s' exists; write to it as it is (echo, cp, tee)",
				 r->name);
	if (r->op == CUBE_REQ_SYMLINK || r->op == CUBE_REQ_LINK)
		return cube_fail(&r->err, -EPERM, "'%s': links can be made below files/ only", r->name);
	return cube_fail(&r->err, -ENOENT,
			 "'%s': there is no such entry, and files can be made below files/ only", r->name);
}

/* ---- removing ---- */

static int dir_refuse_fixed(struct cube_req *r)
{
	return cube_fail(&r->err, -EPERM, "'%s' belongs to its directory and cannot be removed", r->name);
}

static int dir_unlink_fixed(struct cube_req *r)
{
	enum cube_removal how = cube_node_level(r->n)->removal;
	struct cube_obj *scope = cube_mark_scope(r->n->obj);
	int code;

	if (how == CUBE_REMOVAL_MARKS || how == CUBE_REMOVAL_GUARDED) {
		code = cube_mark_add(r->tree, scope, &r->caller, &r->err);
		if (code < 0)
			return code;
	}
	if (how == CUBE_REMOVAL_MARKS || how == CUBE_REMOVAL_IGNORED)
		return 0;
	return dir_refuse_fixed(r);
}

int cube_dir_unlink(struct cube_req *r)
{
	const struct cube_entry *e;
	bool removes = cube_mark_has(r->tree, r->n, &r->caller);
	int code;

	if (removes && r->n->obj->type->cube(r->n->obj->p) != NULL)
		return 0; /* it listed this before it began to remove */
	code = dir_begin(r);
	if (code != 1)
		return code;
	e = dir_fixed(r->n, r->name);
	if (e == NULL)
		return dir_child(r->n, r->name) != NULL ? -EISDIR : -ENOENT;
	return S_ISDIR(e->mode) ? -EISDIR : dir_unlink_fixed(r);
}

static int dir_rmdir_fixed(struct cube_req *r, const struct cube_entry *e)
{
	const struct cube_obj *o = r->n->obj;
	struct cube_node *n;
	bool removes;

	if (!S_ISDIR(e->mode))
		return -ENOTDIR;
	n = cube_node_get(r->n->obj, e);
	if (n == NULL)
		return -ENOMEM;
	removes = cube_mark_has(r->tree, n, &r->caller) && o->type->cube(o->p) != NULL;
	cube_node_unref(n);
	return removes ? 0 : dir_refuse_fixed(r);
}

int cube_dir_rmdir(struct cube_req *r)
{
	const struct cube_level *l;
	const struct cube_entry *e;
	bool removes = cube_mark_has(r->tree, r->n, &r->caller);
	int code;
	void *p;

	if (removes && r->n->obj->type->cube(r->n->obj->p) != NULL)
		return 0;
	code = dir_begin(r);
	if (code != 1)
		return code;
	l = cube_node_level(r->n);
	e = dir_fixed(r->n, r->name);
	if (e != NULL)
		return dir_rmdir_fixed(r, e);
	p = dir_child(r->n, r->name);
	if (p == NULL)
		return r->again ? 0 : -ENOENT; /* again: it was removed by this very request */
	if (l->drop == NULL || removes)
		return cube_fail(&r->err, -EPERM,
				 "'%s' stays: rm -r does not reach into backends/ and volumes/", r->name);
	r->tree->silent = r->caches;
	code = l->drop(r, p);
	r->tree->silent = false;
	return code;
}

/* ---- renaming ---- */

static bool dir_is_files(const struct cube_req *r, uint64_t id)
{
	const struct cube_node *n;

	if (id & CUBE_FILES_ID)
		return true;
	n = cube_node_find(r->tree, id);
	return n != NULL && n->entry->files;
}

/* Within files/: whichever side names the node `files` gets the real one in its place. */
static int dir_rename_real(struct cube_req *r)
{
	int code;

	if (!(r->node & CUBE_FILES_ID) && !(r->new_parent & CUBE_FILES_ID) && r->node != r->new_parent)
		return -EXDEV;
	code = cube_attach_step(r);
	if (code != CUBE_REAL)
		return code;
	r->real_new_id = r->new_parent & CUBE_FILES_ID ? r->new_parent : r->real_id;
	if (r->node & CUBE_FILES_ID)
		r->real_id = r->node;
	return code;
}

int cube_dir_rename(struct cube_req *r)
{
	const struct cube_level *l;
	bool from = dir_is_files(r, r->node), to = dir_is_files(r, r->new_parent);
	void *p;
	int code;

	if (from && to)
		return dir_rename_real(r);
	if (from != to)
		return cube_fail(&r->err, -EPERM, "'%s' cannot be moved into or out of files/", r->name);
	code = dir_begin(r);
	if (code != 1)
		return code;
	if (strlen(r->new_name) > DIR_NAME_MAX)
		return -ENAMETOOLONG;
	if (r->flags & ~(unsigned)RENAME_NOREPLACE)
		return cube_fail(&r->err, -EINVAL, "'%s': only a plain rename is possible here", r->name);
	if (dir_fixed(r->n, r->name) != NULL)
		return cube_fail(&r->err, -EPERM, "'%s' belongs to its directory and cannot be renamed",
				 r->name);
	p = dir_child(r->n, r->name);
	if (p == NULL)
		return r->again && dir_child(r->n, r->new_name) != NULL ? 0 : -ENOENT;
	l = cube_node_level(r->n);
	if (l->rename == NULL || r->node != r->new_parent)
		return cube_fail(&r->err, -EPERM, "'%s': a %s cannot be moved there", r->name,
				 l->child->what);
	if (strcmp(r->name, r->new_name) == 0)
		return 0;
	if (dir_fixed(r->n, r->new_name) != NULL || dir_child(r->n, r->new_name) != NULL)
		return cube_fail(&r->err, -EEXIST, "'%s' exists", r->new_name);
	r->tree->silent = r->caches;
	code = l->rename(r, p, r->new_name);
	r->tree->silent = false;
	return code;
}
