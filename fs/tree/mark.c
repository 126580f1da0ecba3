/* SPDX-License-Identifier: Apache-2.0 */
/* Who removes: processes that have unlinked a fixed entry of a sandbox, and so are about to `rm -r` it.
 *
 * A connection stands for a process, and says when it ends.
 *
 * A mark is bound to a process by its pidfd, so that a number that is used again is somebody else. Nobody
 * tells us when a process ends: marks are looked at when one is needed, and dropped then. */
#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "fs/tree/proc.h"
#include "fs/tree/tree_priv.h"

struct mark {
	struct cube_list link;  /* tree.marks */
	struct cube_obj *scope; /* referenced */
	uint64_t client;        /* 0: the process below */
	uint64_t scope_ino;     /* while it is looked for */
	pid_t tgid;
	int pidfd;
	uint32_t kept;
};

static void mark_free(struct mark *m)
{
	if (!cube_list_empty(&m->link))
		m->scope->tree->n_marks--;
	cube_list_remove(&m->link);
	if (m->scope->tree->keep != NULL)
		cube_keep_give(&m->scope->tree->keep->marks, m->kept);
	if (m->pidfd >= 0)
		(void)close(m->pidfd);
	cube_obj_unref(m->scope);
	cube_free(m);
}

static bool mark_alive(const struct mark *m)
{
	struct pollfd p = {.fd = m->pidfd, .events = POLLIN};

	return m->client != 0 || poll(&p, 1, 0) == 0;
}

/* Usually the request's thread is the only one of its process. */
static pid_t mark_tgid(const struct cube_caller *by)
{
	struct cube_proc proc;

	if (!by->local || by->client != 0)
		return 0;
	cube_proc_look(by->pid, &proc);
	return proc.visible ? proc.tgid : 0;
}

static struct mark *mark_find(struct cube_tree *t, const struct cube_obj *scope, const struct cube_caller *by)
{
	pid_t tgid;

	if (cube_list_empty(&t->marks))
		return NULL;
	tgid = mark_tgid(by);
	cube_list_each (i, &t->marks) {
		struct mark *m = cube_list_entry(i, struct mark, link);

		if (!mark_alive(m))
			mark_free(m);
		else if (m->scope == scope && m->client == by->client && m->tgid == tgid)
			return m;
	}
	return NULL;
}

struct cube_obj *cube_mark_scope(struct cube_obj *o)
{
	while (o->parent != NULL && o->type != &cube_type_cube)
		o = o->parent;
	return o;
}

/* For the next worker. */
static void mark_keep(struct mark *m)
{
	struct cube_keep *keep = m->scope->tree->keep;
	struct cube_keep_mark *k;

	if (keep != NULL && m->client == 0)
		m->kept = cube_keep_take(&keep->marks);
	if (m->kept == CUBE_KEEP_NONE)
		return;
	k = cube_keep_at(&keep->marks, m->kept);
	k->obj = m->scope->ino;
	k->pidfd = m->pidfd;
	atomic_store(&k->key, (uint64_t)m->tgid);
}

int cube_mark_add(struct cube_tree *t, struct cube_obj *scope, const struct cube_caller *by,
		  struct cube_err *err)
{
	struct mark *m = mark_find(t, scope, by);

	if (m != NULL)
		return 0;
	m = cube_calloc(1, sizeof(*m));
	if (m == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	cube_list_init(&m->link);
	m->client = by->client;
	m->kept = CUBE_KEEP_NONE;
	m->tgid = mark_tgid(by);
	m->pidfd = m->tgid > 0 ? (int)syscall(SYS_pidfd_open, m->tgid, 0) : -1;
	m->scope = cube_obj_ref(scope);
	if (m->pidfd < 0 && m->client == 0) {
		mark_free(m);
		return cube_fail(err, -EPERM,
				 "the process cannot be seen from here: use rmdir instead of rm -r");
	}
	cube_list_push(&t->marks, &m->link);
	t->n_marks++;
	mark_keep(m);
	return 0;
}

static int mark_restore_one(void *ctx, uint64_t id, void *value)
{
	struct cube_node *n = value;
	struct mark *m = ctx;

	(void)id;
	if (n->obj->ino != m->scope_ino || n->entry->slot != 0)
		return 0;
	m->scope = cube_obj_ref(n->obj);
	return 1;
}

/* Those of the worker before, whose processes live. */
void cube_mark_restore(struct cube_tree *t)
{
	for (uint32_t i = 0; i < cube_keep_used(&t->keep->marks); i++) {
		const struct cube_keep_mark *k = cube_keep_at(&t->keep->marks, i);
		struct mark *m =
			atomic_load(&k->key) == 0 || k->pidfd < 0 ? NULL : cube_calloc(1, sizeof(*m));

		if (m == NULL)
			continue;
		*m = (struct mark){.tgid = (pid_t)atomic_load(&k->key),
				   .pidfd = k->pidfd,
				   .scope_ino = k->obj,
				   .kept = i};
		cube_list_init(&m->link);
		if (cube_imap_each(t->nodes, mark_restore_one, m) == 0) {
			cube_keep_give(&t->keep->marks, i);
			(void)close(m->pidfd);
			cube_free(m);
			continue;
		}
		cube_list_push(&t->marks, &m->link);
		t->n_marks++;
	}
}

bool cube_mark_has(struct cube_tree *t, const struct cube_node *n, const struct cube_caller *by)
{
	if (cube_list_empty(&t->marks))
		return false;
	/* The directory that is removed is listed as it is, and so is the root: only what is below is hidden.
	 */
	if (n->entry->slot == 0 && (n->obj->parent == NULL || n->obj->type == &cube_type_cube))
		return false;
	return mark_find(t, cube_mark_scope(n->obj), by) != NULL;
}

void cube_mark_end(struct cube_tree *t, struct cube_obj *scope, const struct cube_caller *by)
{
	struct mark *m = mark_find(t, scope, by);

	if (m != NULL)
		mark_free(m);
}

void cube_mark_drop(struct cube_tree *t, const struct cube_obj *scope)
{
	cube_list_each (i, &t->marks) {
		struct mark *m = cube_list_entry(i, struct mark, link);

		if (scope == NULL || m->scope == scope)
			mark_free(m);
	}
}

void cube_tree_client_ends(struct cube_tree *t, uint64_t client)
{
	cube_domain_enter(t->domain);
	cube_list_each (i, &t->marks) {
		struct mark *m = cube_list_entry(i, struct mark, link);

		if (m->client == client)
			mark_free(m);
	}
	cube_domain_leave(t->domain);
}

/* ---- for the front end, on real files ---- */

bool cube_tree_removes(struct cube_tree *t, struct cube_tree_view *v, const struct cube_caller *by,
		       uint64_t id)
{
	struct cube_obj *owner;
	bool removes;

	if (atomic_load(&t->n_marks) == 0)
		return false;
	cube_domain_enter(t->domain);
	owner = cube_files_owner((v != NULL ? v : t->view)->files, id);
	removes = owner != NULL && mark_find(t, cube_mark_scope(owner), by) != NULL;
	cube_domain_leave(t->domain);
	return removes;
}

void cube_tree_uses(struct cube_tree *t, struct cube_tree_view *v, const struct cube_caller *by, uint64_t id)
{
	struct cube_obj *owner;

	if (atomic_load(&t->n_marks) == 0)
		return;
	cube_domain_enter(t->domain);
	owner = cube_files_owner((v != NULL ? v : t->view)->files, id);
	if (owner != NULL)
		cube_mark_end(t, cube_mark_scope(owner), by);
	cube_domain_leave(t->domain);
}
