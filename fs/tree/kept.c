/* SPDX-License-Identifier: Apache-2.0 */
/* What the next worker must know of nodes and open files, written down as it changes (fs/keep). */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "fs/tree/tree_priv.h"

/* ---- nodes ---- */

void cube_kept_node(struct cube_node *n)
{
	struct cube_keep *k = n->obj->tree->keep;
	struct cube_keep_node *rec;

	n->kept = CUBE_KEEP_NONE;
	if (k == NULL)
		return;
	if (n->obj->parent == NULL && n->entry->slot == 0)
		return; /* the root is there without */
	atomic_store(&k->head->next_node, n->obj->tree->next_id);
	n->kept = cube_keep_take(&k->nodes);
	if (n->kept == CUBE_KEEP_NONE)
		return;
	rec = cube_keep_at(&k->nodes, n->kept);
	rec->obj = n->obj->ino;
	rec->slot = n->entry->slot;
	rec->fresh = n->fresh;
	atomic_store(&rec->lookups, n->lookups);
	atomic_store_explicit(&rec->key, n->id, memory_order_release);
}

void cube_kept_node_counted(const struct cube_node *n)
{
	struct cube_keep_node *rec;

	if (n->obj->tree->keep == NULL || n->kept == CUBE_KEEP_NONE)
		return;
	rec = cube_keep_at(&n->obj->tree->keep->nodes, n->kept);
	atomic_store(&rec->lookups, n->lookups);
}

void cube_kept_node_gone(struct cube_node *n)
{
	if (n->obj->tree->keep != NULL)
		cube_keep_give(&n->obj->tree->keep->nodes, n->kept);
}

/* ---- open files ---- */

void cube_kept_open(struct cube_handle *h, const struct cube_req *r)
{
	struct cube_keep_handle *k = r->kept;

	h->kept = k;
	if (k == NULL)
		return;
	k->opened = r->unique;
	k->kind = CUBE_KEEP_TREE;
	k->flags = (int32_t)r->flags;
	k->fd = k->in.fd = k->text.fd = -1;
	k->shown_ino = 0;
	k->pid = h->by.pid;
	k->tgid = h->tgid;
	k->uid = h->by.uid;
	k->gid = h->by.gid;
	k->local = h->by.local;
	k->owner = h->by.owner;
	k->truncated = h->truncated;
	k->making[0] = '\0';
	k->base = 0;
	atomic_store(&k->intent, 0);
	atomic_store(&k->poll, 0);
	atomic_store(&k->whole, 0);
	cube_kept_save(h, NULL);
	atomic_store_explicit(&k->key, h->node->id, memory_order_release);
}

/* What else is known once it is open. */
void cube_kept_opened(struct cube_handle *h)
{
	if (h->kept == NULL)
		return;
	h->kept->base = h->base;
	cube_kept_save(h, NULL);
	atomic_store(&h->kept->whole, 1);
}

void cube_kept_closed(struct cube_handle *h)
{
	struct cube_keep_handle *k = cube_steal(h->kept);

	if (k == NULL)
		return;
	atomic_store(&k->key, 0);
	cube_keep_text_drop(&k->in);
	cube_keep_text_drop(&k->text);
}

struct cube_kept_place cube_kept_place(const struct cube_handle *h)
{
	bool rest = h->text.len > 0 && h->rests;

	return (struct cube_kept_place){.pos = rest ? h->rest_at : h->pos,
					.used = rest ? h->rest_used : 0,
					.job = h->job != NULL ? h->job->number : 0,
					.text = h->text_off,
					.ended = h->ended};
}

void cube_kept_save(struct cube_handle *h, const struct cube_req *r)
{
	struct cube_keep_handle *k = h->kept;
	struct cube_kept_place now = cube_kept_place(h);
	struct cube_keep_state *s;
	uint32_t next;

	if (k == NULL)
		return;
	next = 1 - (atomic_load_explicit(&k->which, memory_order_relaxed) & 1);
	s = &k->state[next];
	*s = (struct cube_keep_state){.unique = r != NULL ? r->unique : 0,
				      .progress = r != NULL ? r->progress : 0,
				      .in_len = (uint32_t)h->in.len,
				      .text_off = h->text_off,
				      .text_len = h->text_end,
				      .closes = h->closes,
				      .touched = h->touched,
				      .failed = h->failed,
				      .applied = h->applied,
				      .owner_known = h->owner_known,
				      .ended = h->ended,
				      .talks = h->talks,
				      .hold = h->hold.cube != NULL,
				      .owner = h->owner,
				      .pos = now.pos,
				      .used = now.used,
				      .job = now.job,
				      .ran = h->ran};
	if (r != NULL) {
		s->before_pos = r->before.pos;
		s->before_used = r->before.used;
		s->before_job = r->before.job;
		s->before_text = r->before.text;
		s->before_ended = r->before.ended;
	}
	atomic_store_explicit(&k->which, next, memory_order_release);
}

/* Text that was added at @at of h->in. Without room for it the next worker has less than was written: then the close
 * fails there. */
void cube_kept_in(struct cube_handle *h, size_t at, const char *data, size_t len)
{
	if (h->kept != NULL && len > 0 && cube_keep_text_put(&h->kept->in, at, data, len) < 0)
		h->failed = true;
}

void cube_kept_answer(struct cube_handle *h, const char *data, size_t len)
{
	if (h->kept == NULL)
		return;
	if (h->text_end > CUBE_KEPT_TEXT && h->text_off == h->text_end)
		h->text_off = h->text_end = 0;
	if (cube_keep_text_put(&h->kept->text, h->text_end, data, len) == 0)
		h->text_end += (uint32_t)len;
}

void cube_kept_intent(struct cube_handle *h, uint64_t unique, uint64_t number)
{
	if (h->kept == NULL)
		return;
	atomic_store(&h->kept->intent, 0); /* the one of before is not this request's */
	atomic_store(&h->kept->intent_unique, unique);
	atomic_store(&h->kept->intent, number);
}

void cube_kept_making(struct cube_handle *h, const char *name)
{
	if (h->kept != NULL)
		(void)snprintf(h->kept->making, sizeof(h->kept->making), "%s", name);
}

uint64_t cube_kept_noted(const struct cube_req *r)
{
	const struct cube_handle *h = r->handle;

	return h->kept != NULL && atomic_load(&h->kept->intent_unique) == r->unique
		       ? atomic_load(&h->kept->intent)
		       : 0;
}

/* The job that the request @r had started in the worker before; NULL: none. */
struct cube_job *cube_kept_started(const struct cube_req *r)
{
	const struct cube_handle *h = r->handle;
	struct cube_cube *c = h->node->obj->type->cube(h->node->obj->p);
	uint64_t number = r->again ? cube_kept_noted(r) : 0;

	return number == 0 || c == NULL ? NULL : cube_job_by_number(c, number);
}

bool cube_kept_written(const struct cube_req *r)
{
	const struct cube_handle *h = r->handle;

	return r->again && h->last_unique != 0 && h->last_unique == r->unique && h->last_progress == r->size;
}

/* ---- a read that has to be done again ---- */

static void kept_text_back(struct cube_handle *h, uint32_t from)
{
	char piece[512];

	cube_buf_reset(&h->text);
	for (uint32_t at = from; at < h->text_end; at += (uint32_t)sizeof(piece)) {
		size_t n = h->text_end - at < sizeof(piece) ? h->text_end - at : sizeof(piece);

		if (cube_keep_text_get(&h->kept->text, at, piece, n) < 0)
			break;
		(void)cube_buf_add(&h->text, piece, n);
	}
	h->text_off = from;
}

void cube_kept_read_text(struct cube_handle *h)
{
	kept_text_back(h, h->text_off);
}

void cube_kept_rewind(struct cube_req *r, struct cube_handle *h)
{
	const struct cube_keep_state *s;

	if (h->kept == NULL || h->last_unique == 0 || h->last_unique != r->unique)
		return;
	h->last_unique = 0;
	s = &h->kept->state[atomic_load(&h->kept->which) & 1];
	h->pos = s->before_pos;
	h->skip = s->before_used;
	h->ended = s->before_ended;
	if (h->text_end > 0)
		kept_text_back(h, s->before_text);
}
