/* SPDX-License-Identifier: Apache-2.0 */
/* The real files of a sandbox or a volume: fetched from its backend when they are first asked for, given up with
 * it. */
#include <errno.h>
#include <stdlib.h>

#include "backends/base/alloc.h"
#include "fs/tree/tree_priv.h"

#define ATTACH_BEFORE 8

struct cube_attach {
	struct cube_list link;       /* tree.attached */
	struct cube_obj *obj;        /* referenced; its type has `real` */
	struct cube_attach *next;    /* of the same object, another view */
	struct cube_tree_view *view; /* referenced */
	struct cube_files *files;    /* NULL: not there (yet) */
	uint32_t generation;         /* of the thing when they were fetched */
	/* What was shown before something else was mounted: who has a place in it keeps it. The oldest first. */
	struct cube_files *before[ATTACH_BEFORE];
	unsigned n_before;
	bool busy;    /* being fetched */
	bool dropped; /* the sandbox went meanwhile */
	struct cube_waitq ready;
	int code; /* of the last attempt */
	struct cube_err err;
};

/* Closing a sandbox's directories is a system call on its files: not under the lock. */
struct attach_leave {
	struct cube_deferred deferred;
	struct cube_files *files;
	struct cube_tree_view *view; /* referenced */
};

static void attach_detach(struct cube_deferred *d)
{
	struct attach_leave *l = cube_container_of(d, struct attach_leave, deferred);
	struct cube_domain *domain = l->view->domain;

	cube_files_detach(l->files);
	cube_domain_enter(domain);
	cube_view_unref(l->view);
	cube_domain_leave(domain);
	cube_free(l);
}

static void attach_leave(const struct cube_attach *a, struct cube_files *files)
{
	struct attach_leave *l = cube_calloc(1, sizeof(*l));

	if (l == NULL) {
		cube_files_detach(files); /* better slow than never */
		return;
	}
	*l = (struct attach_leave){
		.deferred = {.fn = attach_detach}, .files = files, .view = cube_view_ref(a->view)};
	cube_domain_defer(a->obj->tree->domain, &l->deferred);
}

static void attach_let_go(struct cube_attach *a)
{
	while (a->n_before > 0)
		attach_leave(a, a->before[--a->n_before]);
	if (a->files != NULL)
		attach_leave(a, cube_steal(a->files));
}

static void attach_age(struct cube_deferred *d)
{
	struct attach_leave *l = cube_container_of(d, struct attach_leave, deferred);
	struct cube_domain *domain = l->view->domain;

	cube_files_keep_nothing(l->files);
	cube_domain_enter(domain);
	cube_files_unref(l->files);
	cube_view_unref(l->view);
	cube_domain_leave(domain);
	cube_free(l);
}

/* It is shown twice from now on, and what is done by the one way is not told by the other. */
static void attach_unkeep(const struct cube_attach *a, struct cube_files *files)
{
	struct attach_leave *l = cube_tree_keeps(a->obj->tree) ? cube_calloc(1, sizeof(*l)) : NULL;

	if (l == NULL) {
		cube_files_keep_nothing(files);
		return;
	}
	*l = (struct attach_leave){.deferred = {.fn = attach_age},
				   .files = cube_files_ref(files),
				   .view = cube_view_ref(a->view)};
	cube_domain_defer(a->obj->tree->domain, &l->deferred);
}

/* The @i-th of those before goes. */
static void attach_forget(struct cube_attach *a, unsigned i)
{
	attach_leave(a, a->before[i]);
	a->n_before--;
	for (; i < a->n_before; i++)
		a->before[i] = a->before[i + 1];
}

static void attach_again(struct cube_attach *a, const char *gone)
{
	if (a->files == NULL)
		return;
	for (unsigned i = a->n_before; i-- > 0;)
		if (cube_files_idle(a->before[i]))
			attach_forget(a, i);
	if (a->n_before == ATTACH_BEFORE)
		attach_forget(a, 0);
	attach_unkeep(a, a->files);
	a->before[a->n_before++] = cube_steal(a->files);
	for (unsigned i = 0; gone != NULL && i < a->n_before; i++)
		cube_files_cut(a->before[i], gone);
}

void cube_attach_again(struct cube_obj *o, const char *gone)
{
	for (struct cube_attach *a = o->attach; a != NULL; a = a->next)
		attach_again(a, gone);
}

void cube_attach_replaced(struct cube_obj *o)
{
	for (struct cube_attach *a = o->attach; a != NULL; a = a->next)
		attach_let_go(a);
}

static struct cube_attach *attach_find(const struct cube_obj *o, const struct cube_tree_view *v)
{
	struct cube_attach *a = o->attach;

	while (a != NULL && a->view != v)
		a = a->next;
	return a;
}

static struct cube_attach *attach_get(struct cube_obj *o, struct cube_tree_view *v)
{
	struct cube_attach *a = attach_find(o, v);

	if (a != NULL)
		return a;
	a = cube_calloc(1, sizeof(*a));
	if (a == NULL)
		return NULL;
	cube_waitq_init(&a->ready);
	cube_list_init(&a->link);
	cube_list_push(&o->tree->attached, &a->link);
	a->obj = cube_obj_ref(o);
	a->view = cube_view_ref(v);
	a->next = o->attach;
	o->attach = a;
	return a;
}

static void attach_free(struct cube_attach *a)
{
	struct cube_obj *o = a->obj;
	struct cube_attach **at = &o->attach;

	cube_list_remove(&a->link);
	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	cube_view_unref(a->view);
	cube_free(a);
	cube_obj_unref(o);
}

/* For the next worker. No lock. */
static void attach_keep(struct cube_tree *t, const struct cube_attach *a, struct cube_files *files)
{
	uint32_t i = t->keep == NULL ? CUBE_KEEP_NONE : cube_keep_take(&t->keep->roots);
	struct cube_keep_root *rec;

	if (i == CUBE_KEEP_NONE)
		return;
	rec = cube_keep_at(&t->keep->roots, i);
	rec->obj = a->obj->ino;
	rec->generation = a->generation;
	cube_files_keep_as(files, i);
	atomic_store(&rec->key, cube_files_root(files));
}

/* On a pool thread, no lock. */
static void attach_fetched(void *ctx, int code, struct cube_root *root, const struct cube_err *err)
{
	struct cube_attach *a = ctx;
	struct cube_tree *t = a->obj->tree;
	const char *uid = a->obj->type->real->uid(a->obj->p);
	struct cube_files *files = NULL;
	struct cube_err why = {0};

	if (code == 0) {
		code = cube_files_attach(a->view->files, root, strtoull(uid, NULL, 16), a->obj, &files);
		if (code == 0 && a->view == t->view)
			attach_keep(t, a, files);
		if (code == 0 && a->obj->type->real->shared)
			cube_files_keep_nothing(files);
		if (code < 0) {
			cube_root_close(root);
			cube_fail(&why, code, "files of '%s': %s", uid, cube_errno_text(code));
		}
	} else if (err != NULL) {
		why = *err;
	}
	cube_domain_enter(t->domain);
	a->busy = false;
	a->code = code;
	a->err = why;
	a->files = files;
	if (files != NULL && a->n_before > 0)
		cube_files_keep_nothing(files); /* of which nobody has anything yet */
	cube_wake(&a->ready);
	if (a->dropped) {
		attach_let_go(a);
		attach_free(a);
	}
	cube_domain_leave(t->domain);
}

static int attach_begin(struct cube_req *r, struct cube_attach *a)
{
	const struct cube_real *real = a->obj->type->real;
	void *p = a->obj->p;
	int code = cube_req_wait(r, &a->ready);

	if (code != CUBE_PARK || a->busy)
		return code;
	a->busy = true;
	a->code = 0;
	a->generation = real->generation(p);
	code = real->fetch(p, attach_fetched, a);
	if (code < 0) {
		a->busy = false;
		return cube_fail(&r->err, code, "%s '%s': its files: %s", a->obj->type->what,
				 a->obj->type->name(p), cube_errno_text(code));
	}
	return CUBE_PARK;
}

int cube_attach_step(struct cube_req *r)
{
	const struct cube_real *real = r->n->obj->type->real;
	void *p = r->n->obj->p;
	struct cube_waitq *changed = NULL;
	struct cube_attach *a;
	int code;

	if (r->n->obj->type->gone(p))
		return -ESTALE;
	code = real->usable(p, &changed, &r->err);
	if (code != 0)
		return code > 0 ? cube_req_wait(r, changed) : code;
	a = attach_get(r->n->obj, r->files_view);
	if (a == NULL)
		return cube_fail(&r->err, -ENOMEM, "out of memory");
	if (a->files != NULL && a->generation != real->generation(p))
		attach_let_go(a);
	if (a->files == NULL && a->code < 0 && r->state == a) {
		r->err = a->err; /* it waited for just this attempt */
		return a->code;
	}
	if (a->files == NULL) {
		r->state = a;
		return attach_begin(r, a);
	}
	r->files = cube_files_ref(a->files);
	r->real_id = cube_files_root(a->files);
	return CUBE_REAL;
}

int cube_attach_peek(struct cube_req *r)
{
	const struct cube_obj *o = r->n->obj;
	const struct cube_attach *a = attach_find(o, r->files_view);

	if (a == NULL || a->files == NULL || a->generation != o->type->real->generation(o->p))
		return 0;
	r->files = cube_files_ref(a->files);
	r->real_id = cube_files_root(a->files);
	return CUBE_REAL;
}

bool cube_attach_adopt(struct cube_obj *o, struct cube_files *files, uint32_t generation)
{
	struct cube_attach *a = attach_get(o, o->tree->view);
	bool newer;

	if (a == NULL || o->type->real->generation(o->p) != generation || o->type->gone(o->p))
		return false;
	newer = a->files == NULL || cube_files_root(a->files) < cube_files_root(files);
	if (a->files != NULL && a->n_before == ATTACH_BEFORE)
		attach_forget(a, 0);
	if (!newer) {
		a->before[a->n_before++] = files;
	} else {
		if (a->files != NULL)
			a->before[a->n_before++] = a->files;
		a->files = files;
		a->generation = generation;
	}
	/* as attach_fetched and attach_again would have it */
	for (unsigned i = 0; i < a->n_before; i++)
		cube_files_keep_nothing(a->before[i]);
	if (a->n_before > 0 || o->type->real->shared)
		cube_files_keep_nothing(a->files);
	return true;
}

static uint64_t attach_used(const struct cube_attach *a)
{
	uint64_t last = 0;

	for (unsigned i = 0; i <= a->n_before; i++) {
		const struct cube_files *f = i < a->n_before ? a->before[i] : a->files;

		if (f == NULL)
			continue;
		if (cube_files_open_count(f) > 0)
			return UINT64_MAX;
		last = cube_files_closed_wall(f) > last ? cube_files_closed_wall(f) : last;
	}
	return last;
}

uint64_t cube_attach_used(const struct cube_obj *o)
{
	uint64_t last = 0;

	for (const struct cube_attach *a = o->attach; a != NULL; a = a->next) {
		uint64_t used = attach_used(a);

		last = used > last ? used : last;
	}
	return last;
}

void cube_attach_quiet(const struct cube_obj *o, bool quiet)
{
	for (const struct cube_attach *a = o->attach; a != NULL; a = a->next)
		if (a->files != NULL)
			cube_files_quiet(a->files, quiet);
}

static void attach_drop(struct cube_attach *a)
{
	a->dropped = true;
	if (a->busy)
		return; /* attach_fetched frees it */
	attach_let_go(a);
	cube_wake(&a->ready);
	attach_free(a);
}

void cube_attach_drop(struct cube_obj *o)
{
	struct cube_attach *next;

	for (struct cube_attach *a = o->attach; a != NULL; a = next) {
		next = a->next;
		attach_drop(a);
	}
}

void cube_attach_drop_all(struct cube_tree *t)
{
	cube_list_each (i, &t->attached)
		attach_drop(cube_list_entry(i, struct cube_attach, link));
}

void cube_attach_drop_view(struct cube_tree *t, const struct cube_tree_view *v)
{
	cube_list_each (i, &t->attached) {
		struct cube_attach *a = cube_list_entry(i, struct cube_attach, link);

		if (a->view == v)
			attach_drop(a);
	}
}
