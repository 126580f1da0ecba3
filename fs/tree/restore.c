/* SPDX-License-Identifier: Apache-2.0 */
/* The tree as the kernel knows it from the worker before: nodes and open files get their numbers again.
 *
 * Objects are told by the numbers of their directories, which are made of what they are and where; so all that there is
 * now is walked once, and whatever has a number that is wanted gets its nodes. What is not found is gone. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/log.h"
#include "fs/tree/tree_priv.h"
#include "fs/tree/type.h"

struct restore {
	struct cube_tree *t;
	struct cube_imap *wanted; /* number of an object -> its first record, plus 1 */
	uint32_t *next;           /* of each record: the next of the same object, plus 1 */
	struct cube_imap *roots;  /* the same for the records of files that are shown */
	uint32_t *next_root;
	size_t found;
};

static uint64_t restore_key(uint64_t ino)
{
	return ino == 0 ? 1 : ino; /* the root's */
}

/* ---- nodes ---- */

static const struct cube_entry *restore_entry(const struct cube_entry *dir, uint32_t slot)
{
	const struct cube_level *l = dir->level;

	if (dir->slot == slot)
		return dir;
	for (size_t i = 0; l != NULL && i < l->count; i++) {
		const struct cube_entry *e = restore_entry(&l->entries[i], slot);

		if (e != NULL)
			return e;
	}
	return NULL;
}

static void restore_nodes(struct restore *s, const struct cube_type *type, void *p, uint32_t first)
{
	struct cube_obj *o = cube_obj_get(s->t, type, p);

	if (o == NULL)
		return;
	for (uint32_t i = first; i != 0; i = s->next[i - 1]) {
		const struct cube_keep_node *rec = cube_keep_at(&s->t->keep->nodes, i - 1);
		const struct cube_entry *e = restore_entry(type->self, rec->slot);

		if (e != NULL && cube_node_restore(o, e, rec, i - 1) == 0)
			s->found++;
	}
	cube_obj_unref(o);
}

static void restore_walk(struct restore *s, const struct cube_type *type, void *p, uint64_t ino);

static void restore_level(struct restore *s, const struct cube_entry *dir, void *p, uint64_t ino)
{
	const struct cube_level *l = dir->level;

	if (l == NULL)
		return;
	for (size_t i = 0; i < l->count; i++)
		restore_level(s, &l->entries[i], p, ino);
	if (l->child == NULL || l->next == NULL)
		return;
	for (void *c = l->next(p, 0); c != NULL;
	     c = l->after != NULL ? l->after(p, c) : l->next(p, l->child->seq(c)))
		restore_walk(s, l->child, c, cube_obj_ino(ino, l->child, c));
}

static void restore_walk(struct restore *s, const struct cube_type *type, void *p, uint64_t ino)
{
	uint64_t first = (uintptr_t)cube_imap_get(s->wanted, restore_key(ino));

	if (first != 0)
		restore_nodes(s, type, p, (uint32_t)first);
	first = type->real != NULL ? (uintptr_t)cube_imap_get(s->roots, restore_key(ino)) : 0;
	for (uint32_t i = (uint32_t)first; i != 0; i = s->next_root[i - 1])
		cube_restore_root(s->t, type, p, i - 1);
	restore_level(s, type->self, p, ino);
}

/* Record @i is one more of object @ino. */
static int restore_chain(struct cube_imap *m, uint32_t *next, uint64_t ino, uint32_t i)
{
	next[i] = (uint32_t)(uintptr_t)cube_imap_take(m, restore_key(ino));
	return cube_imap_put(m, restore_key(ino), (void *)(uintptr_t)(i + 1));
}

static int restore_want(struct restore *s)
{
	const struct cube_keep *k = s->t->keep;

	for (uint32_t i = 0; i < cube_keep_used(&k->nodes); i++) {
		const struct cube_keep_node *rec = cube_keep_at(&k->nodes, i);

		if (atomic_load(&rec->key) != 0 && restore_chain(s->wanted, s->next, rec->obj, i) < 0)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < cube_keep_used(&k->roots); i++) {
		const struct cube_keep_root *rec = cube_keep_at(&k->roots, i);

		if (atomic_load(&rec->key) != 0 && restore_chain(s->roots, s->next_root, rec->obj, i) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Records of what is gone. */
static void restore_clear(struct cube_tree *t, uint32_t used)
{
	for (uint32_t i = 0; i < used; i++) {
		const struct cube_keep_node *rec = cube_keep_at(&t->keep->nodes, i);
		uint64_t id = atomic_load(&rec->key);

		if (id != 0 && cube_node_find(t, id) == NULL)
			cube_keep_give(&t->keep->nodes, i);
	}
}

static int restore_tree(struct cube_tree *t)
{
	uint32_t used = cube_keep_used(&t->keep->nodes), roots = cube_keep_used(&t->keep->roots);
	struct restore s = {.t = t,
			    .wanted = cube_imap_new(),
			    .next = cube_calloc(used + 1, sizeof(*s.next)),
			    .roots = cube_imap_new(),
			    .next_root = cube_calloc(roots + 1, sizeof(*s.next_root))};
	int r = -ENOMEM;

	if (s.wanted != NULL && s.next != NULL && s.roots != NULL && s.next_root != NULL)
		r = restore_want(&s);
	if (r == 0) {
		restore_walk(&s, &cube_type_root, t->domain, 0);
		restore_clear(t, used);
		cube_log(CUBE_LOG_INFO, "tree", "%zu entries are known to the kernel", s.found);
	}
	cube_imap_free(s.wanted);
	cube_imap_free(s.roots);
	cube_free(s.next);
	cube_free(s.next_root);
	return r;
}

/* ---- open files ---- */

static void restore_caller(struct cube_req *r, const struct cube_keep_handle *k)
{
	r->caller = (struct cube_caller){
		.pid = k->pid, .uid = k->uid, .gid = k->gid, .local = k->local, .owner = k->owner};
	r->flags = (unsigned)k->flags;
	r->proc = (struct cube_proc){.known = true, .visible = k->tgid > 0, .tgid = k->tgid};
}

static int restore_in(struct cube_handle *h, const struct cube_keep_state *s)
{
	char *text = cube_malloc(s->in_len + 1);
	int r = text == NULL ? -ENOMEM : cube_keep_text_get(&h->kept->in, 0, text, s->in_len);

	if (r == 0)
		r = cube_buf_add(&h->in, text, s->in_len);
	if (r == 0)
		h->tree->collected += s->in_len;
	cube_free(text);
	return r;
}

static void restore_state(struct cube_handle *h, const struct cube_keep_state *s)
{
	struct cube_cube *c = h->node->obj->type->cube(h->node->obj->p);
	struct cube_job *j = c != NULL && s->job != 0 ? cube_job_by_number(c, s->job) : NULL;

	h->touched = s->touched;
	h->failed = s->failed;
	h->applied = s->applied;
	h->owner_known = s->owner_known;
	h->owner = s->owner;
	h->closes = s->closes;
	h->ended = s->ended;
	h->talks = s->talks;
	h->pos = s->pos;
	h->skip = s->used;
	h->ran = s->ran;
	h->base = h->kept->base;
	h->text_off = s->text_off;
	h->text_end = s->text_len;
	h->last_unique = s->unique;
	h->last_progress = s->progress;
	if (j != NULL)
		h->job = cube_job_ref(j);
	if (s->in_len > 0 && restore_in(h, s) < 0)
		h->failed = true;
}

static int restore_handle(struct cube_tree *t, struct cube_keep_handle *k, struct cube_handle **ret)
{
	const struct cube_keep_state *s = &k->state[atomic_load(&k->which) & 1];
	struct cube_req r = {.tree = t, .n = cube_node_find(t, atomic_load(&k->key))};
	struct cube_err err;
	struct cube_handle *h;
	int code;

	if (r.n == NULL)
		return -ESTALE;
	restore_caller(&r, k);
	h = cube_handle_new(&r);
	if (h == NULL)
		return -ENOMEM;
	h->truncated = k->truncated;
	h->kept = k;
	restore_state(h, s);
	/* Half an open is none: it comes again. */
	code = atomic_load(&k->whole) == 0 && !h->class->makes ? -ESTALE : cube_handle_render(h);
	if (code == 0 && h->class->adopt != NULL)
		code = h->class->adopt(h);
	if (code == 0 && s->hold)
		(void)cube_hold_take(&h->hold, h->made != NULL ? h->made : r.n->obj->type->cube(r.n->obj->p),
				     &err);
	if (code < 0) {
		cube_handle_free(h);
		return code;
	}
	*ret = h;
	return 0;
}

static void restore_handles(struct cube_tree *t,
			    void (*adopted)(void *ctx, uint32_t record, struct cube_handle *h), void *ctx)
{
	unsigned lost = 0;

	for (uint32_t i = 0; i < cube_keep_used(&t->keep->handles); i++) {
		struct cube_keep_handle *k = cube_keep_at(&t->keep->handles, i);
		struct cube_handle *h = NULL;

		if (atomic_load(&k->key) == 0 || k->kind != CUBE_KEEP_TREE)
			continue;
		if (restore_handle(t, k, &h) == 0) {
			adopted(ctx, i, h);
			continue;
		}
		lost++;
		cube_keep_give(&t->keep->handles, i);
	}
	if (lost > 0)
		cube_log(CUBE_LOG_INFO, "tree", "%u open files were of what is gone", lost);
}

/* Whoever wonders why something took a moment finds it in the root's `error`. */
static void restore_note(struct cube_tree *t)
{
	int how = atomic_load(&t->keep->head->signal);
	bool handed = atomic_exchange(&t->keep->head->handed, 0) != 0;
	unsigned hung = atomic_exchange(&t->keep->head->hung, 0);
	struct cube_err err;

	if (handed)
		return; /* it was asked for */
	if (hung > 0)
		cube_fail(&err, -ETIMEDOUT,
			  "the worker did not answer for %u seconds and was ended; another one took over: "
			  "what is open "
			  "stays open, and %s/hung.1 says what it was at",
			  hung, t->domain->state_dir);
	else
		cube_fail(&err, -EIO,
			  "the worker ended (%s %d), and another one took over: what is open stays open",
			  how > 0 ? "signal" : "code", how > 0 ? how : -how);
	cube_tree_note(t, NULL, NULL, "serve", &err);
}

int cube_tree_restore(struct cube_tree *t, void (*adopted)(void *ctx, uint32_t record, struct cube_handle *h),
		      void *ctx)
{
	uint64_t next;
	int r;

	if (t->keep == NULL)
		return 0;
	next = atomic_load(&t->keep->head->next_node);
	if (next <= t->next_id)
		return 0; /* it is the first worker */
	cube_domain_enter(t->domain);
	t->next_id = next;
	restore_note(t);
	r = restore_tree(t);
	if (r == 0) {
		cube_mark_restore(t);
		restore_handles(t, adopted, ctx);
	}
	cube_domain_leave(t->domain);
	return r;
}
