/* SPDX-License-Identifier: Apache-2.0 */
/* Places: nodes that somebody walked to, and how they are shown. */
#include <string.h>

#include "backends/base/alloc.h"
#include "fs/p9/priv.h"

static uint8_t place_qid_type(mode_t mode)
{
	if (S_ISDIR(mode))
		return CUBE_P9_QTDIR;
	return S_ISLNK(mode) ? CUBE_P9_QTSYMLINK : 0;
}

/* A version of 0 tells Linux never to keep what it read: so it is for all files of the tree's own, whose numbers
 * have the top bit. */
struct cube_p9_qid cube_p9_qid(const struct stat *st)
{
	struct cube_p9_qid q = {.type = place_qid_type(st->st_mode), .path = st->st_ino};

	if (!(st->st_ino >> 63) && S_ISREG(st->st_mode))
		q.version = (uint32_t)(st->st_ctim.tv_nsec ^ st->st_ctim.tv_sec ^ (st->st_size << 8)) | 1;
	return q;
}

struct p9_place *cube_p9_place_new(struct p9_place *parent, uint64_t id, const struct stat *st,
				   const char *name)
{
	struct p9_place *p = cube_calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->name = cube_strdup(name);
	if (p->name == NULL) {
		cube_free(p);
		return NULL;
	}
	atomic_init(&p->refs, 1);
	p->parent = parent != NULL ? cube_p9_place_ref(parent) : NULL;
	p->id = id;
	p->qid = cube_p9_qid(st);
	p->mode = st->st_mode & S_IFMT;
	return p;
}

struct p9_place *cube_p9_place_ref(struct p9_place *p)
{
	atomic_fetch_add(&p->refs, 1);
	return p;
}

void cube_p9_node_forget(struct p9_conn *c, uint64_t id)
{
	if (id & CUBE_FILES_ID)
		cube_files_forget(c->files, id, 1);
	else if (id != CUBE_TREE_ROOT)
		cube_tree_forget(c->server->o.tree, id, 1);
}

void cube_p9_place_unref(struct p9_conn *c, struct p9_place *p)
{
	while (p != NULL && atomic_fetch_sub(&p->refs, 1) == 1) {
		struct p9_place *parent = p->parent;

		cube_p9_node_forget(c, p->id);
		cube_free(p->name);
		cube_free(p);
		p = parent;
	}
}

struct place_move {
	uint64_t dir;
	const char *name;
	struct p9_place *to;
	const char *to_name;
	struct p9_place *left[16]; /* parents to be given up */
	unsigned n_left;
};

/* What cannot be told now (memory) finds out when it asks for its name: it is another file then, or none. */
static int place_move(void *ctx, uint64_t key, void *value)
{
	struct place_move *m = ctx;
	struct p9_place *p = ((struct p9_fid *)value)->place;
	char *name;

	(void)key;
	if (p->parent == NULL || p->parent->id != m->dir || strcmp(p->name, m->name) != 0)
		return 0;
	name = cube_strdup(m->to_name);
	if (name == NULL)
		return 0;
	cube_free(p->name);
	p->name = name;
	if (p->parent == m->to)
		return 0;
	m->left[m->n_left++] = p->parent;
	p->parent = cube_p9_place_ref(m->to);
	return m->n_left == CUBE_COUNT(m->left);
}

/* Fids at what was moved are at the new place: they hold the object, and its name is known to ours alone. */
void cube_p9_renamed(struct p9_conn *c, uint64_t dir, const char *name, struct p9_place *to,
		     const char *to_name)
{
	struct place_move m;

	do {
		m = (struct place_move){.dir = dir, .name = name, .to = to, .to_name = to_name};
		(void)pthread_mutex_lock(&c->lock);
		(void)cube_imap_each(c->fids, place_move, &m);
		(void)pthread_mutex_unlock(&c->lock);
		for (unsigned i = 0; i < m.n_left; i++)
			cube_p9_place_unref(c, m.left[i]);
	} while (m.n_left == CUBE_COUNT(m.left));
}
