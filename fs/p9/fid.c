/* SPDX-License-Identifier: Apache-2.0 */
/* Fids: numbers of the client's for places, and what it has open there. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "fs/p9/priv.h"

/* ---- the end ----
 *
 * A fid is closed when its number was given up and the last call that uses it has ended. That takes several
 * steps, on a call: the clunk, or one of our own when the connection went. */

static void fid_free(struct p9_conn *c, struct p9_fid *f)
{
	size_t collected = f->state == P9_XATTR_WRITE && f->xattr != NULL ? f->xattr->value.len : 0;

	if (f->xattr != NULL)
		cube_buf_done(&f->xattr->value);
	cube_free(f->xattr);
	cube_p9_place_unref(c, f->place);
	cube_p9_place_unref(c, f->before);
	(void)pthread_mutex_lock(&c->lock);
	for (unsigned i = 0; i < f->n_lock_owners; i++)
		cube_p9_owner_put_locked(c, f->lock_owners[i]);
	c->n_fids--;
	c->collected -= collected;
	(void)pthread_mutex_unlock(&c->lock);
	cube_free(f->lock_owners);
	cube_free(f);
}

static void close_done(struct p9_call *c)
{
	fid_free(c->conn, cube_steal(c->closing));
	if (c->code < 0)
		c->r.err = c->kept;
	cube_p9_end(c, c->code);
}

static void close_removed(struct p9_call *c, int result)
{
	if (c->code == 0) {
		c->code = result;
		c->kept = c->r.err;
	}
	close_done(c);
}

static void close_removed_real(struct p9_call *c)
{
	struct cube_files_space *s = c->conn->files;
	int code = 0;

	if (!cube_p9_spared(c))
		code = S_ISDIR(c->closing->place->mode) ? cube_files_rmdir(s, c->node, c->name)
							: cube_files_unlink(s, c->node, c->name);
	close_removed(c, code);
}

/* Is what has the name now still what the fid is at? */
static void close_remove(struct p9_call *c, int result, const struct stat *st)
{
	const struct p9_place *p = c->closing->place;

	if (result == 0 && (st->st_ino != p->qid.path || (st->st_mode & S_IFMT) != p->mode))
		result = -ESTALE;
	if (result < 0) {
		close_removed(c, result);
		return;
	}
	cube_p9_begin(c);
	c->r.name = c->name;
	cube_p9_go(c, S_ISDIR(p->mode) ? CUBE_REQ_RMDIR : CUBE_REQ_UNLINK, c->place->id, close_removed,
		   close_removed_real);
}

static void close_found(struct p9_call *c, int result)
{
	struct stat st = c->r.entry.st;

	if (result == 0)
		cube_p9_node_forget(c->conn, c->r.entry.id);
	close_remove(c, result, &st);
}

static void close_found_real(struct p9_call *c)
{
	struct cube_files_entry e = {0};
	int code = cube_files_lookup(c->conn->files, c->node, c->name, &e);

	if (code == 0)
		cube_p9_node_forget(c->conn, e.id);
	close_remove(c, code, &e.st);
}

static void close_files_done(struct p9_call *c)
{
	int code;

	if (!c->closing->remove) {
		close_done(c);
		return;
	}
	code = cube_p9_fid_where(c->conn, c->closing, &c->place, c->name);
	if (code < 0) {
		close_removed(c, code);
		return;
	}
	cube_p9_begin(c);
	c->r.name = c->name;
	cube_p9_go(c, CUBE_REQ_LOOKUP, c->place->id, close_found, close_found_real);
}

static void close_released(struct p9_call *c, int result)
{
	(void)result;
	c->closing->handle = NULL;
	close_files_done(c);
}

static void close_flushed(struct p9_call *c, int result)
{
	c->code = result;
	c->kept = c->r.err;
	cube_p9_begin(c);
	c->r.handle = c->closing->handle;
	c->r.lost = c->closing->lost;
	cube_p9_go(c, CUBE_REQ_RELEASE, c->closing->place->id, close_released, NULL);
}

static void close_real(struct p9_call *c)
{
	struct p9_fid *f = c->closing;

	for (unsigned i = 0; i < f->n_lock_owners; i++) {
		int code = cube_files_flush(f->real, f->lock_owners[i]);

		c->code = c->code == 0 ? code : c->code;
	}
	cube_files_release(cube_steal(f->real));
	close_files_done(c);
}

static void close_xattr_set(struct p9_call *c, int result)
{
	c->code = result;
	close_files_done(c);
}

static void close_xattr_real(struct p9_call *c)
{
	const struct p9_xattr *x = c->closing->xattr;
	struct cube_files_space *s = c->conn->files;
	int code;

	if (x->size == 0 && x->flags == CUBE_P9_XATTR_REPLACE)
		code = cube_files_removexattr(s, c->node, x->name);
	else
		code = cube_files_setxattr(s, c->node, x->name, cube_buf_str(&x->value), x->value.len,
					   x->flags);
	close_xattr_set(c, code);
}

static void close_xattr(struct p9_call *c)
{
	const struct p9_xattr *x = c->closing->xattr;

	if (c->closing->lost || x->value.len != x->size) {
		close_xattr_set(c, c->closing->lost ? 0 : -EINVAL);
		return;
	}
	cube_p9_begin(c);
	c->r.name = x->name;
	c->r.set = 1;
	c->r.data = cube_buf_str(&x->value);
	c->r.size = x->value.len;
	cube_p9_go(c, CUBE_REQ_XATTR, c->closing->place->id, close_xattr_set, close_xattr_real);
}

static void close_begin(struct p9_call *c, struct p9_fid *f)
{
	c->closing = f;
	c->code = 0;
	if (f->handle != NULL && f->lost) {
		close_flushed(c, 0);
	} else if (f->handle != NULL) {
		cube_p9_begin(c);
		c->r.handle = f->handle;
		cube_p9_go(c, CUBE_REQ_FLUSH, f->place->id, close_flushed, NULL);
	} else if (f->real != NULL) {
		cube_p9_block(c, close_real);
	} else if (f->state == P9_XATTR_WRITE) {
		close_xattr(c);
	} else {
		close_files_done(c);
	}
}

static void fid_close(struct p9_conn *c, struct p9_fid *f)
{
	struct p9_call *call = f->closer != NULL ? cube_steal(f->closer) : cube_p9_call_new(c);

	if (call != NULL) {
		close_begin(call, f);
		return;
	}
	(void)pthread_mutex_lock(&c->lock);
	cube_list_push(&c->unclosed, &f->link);
	c->nag = true;
	cube_p9_conn_post_locked(c);
	(void)pthread_mutex_unlock(&c->lock);
}

void cube_p9_fids_close(struct p9_conn *c)
{
	struct cube_list now = CUBE_LIST_INIT(now), *i;

	(void)pthread_mutex_lock(&c->lock);
	while ((i = cube_list_pop(&c->unclosed)) != NULL)
		cube_list_push(&now, i);
	(void)pthread_mutex_unlock(&c->lock);
	while ((i = cube_list_pop(&now)) != NULL)
		fid_close(c, cube_list_entry(i, struct p9_fid, link));
}

/* ---- the table ---- */

struct p9_fid *cube_p9_fid_use(struct p9_conn *c, uint32_t number)
{
	struct p9_fid *f;

	(void)pthread_mutex_lock(&c->lock);
	f = cube_imap_get(c->fids, number);
	if (f != NULL)
		f->uses++;
	(void)pthread_mutex_unlock(&c->lock);
	return f;
}

void cube_p9_fid_put(struct p9_conn *c, struct p9_fid *f)
{
	bool last;

	if (f == NULL)
		return;
	(void)pthread_mutex_lock(&c->lock);
	last = --f->uses == 0 && f->gone;
	(void)pthread_mutex_unlock(&c->lock);
	if (last)
		fid_close(c, f);
}

static int fid_add_locked(struct p9_conn *c, const struct p9_call *call, struct p9_fid *f)
{
	if (c->dead || !call->tagged)
		return -ESHUTDOWN; /* its session is over */
	if (cube_imap_get(c->fids, f->number) != NULL)
		return -EBADF;
	if (c->n_fids >= c->server->o.limits.fids)
		return -EMFILE;
	if (cube_imap_put(c->fids, f->number, f) < 0)
		return -ENOMEM;
	c->n_fids++;
	for (unsigned i = 0; i < c->n_retries; i++)
		if (c->retries[i] == f->number)
			c->retries[i] = c->retries[--c->n_retries];
	return 0;
}

int cube_p9_fid_add(struct p9_call *call, uint32_t number, struct p9_place *place, struct p9_fid **ret)
{
	struct p9_conn *c = call->conn;
	struct p9_fid *f;
	int code;

	if (number == CUBE_P9_NOFID)
		return -EBADF;
	f = cube_calloc(1, sizeof(*f));
	if (f == NULL)
		return -ENOMEM;
	*f = (struct p9_fid){.number = number, .place = place, .uses = ret != NULL, .opening = ret != NULL};
	(void)pthread_mutex_lock(&c->lock);
	code = fid_add_locked(c, call, f);
	(void)pthread_mutex_unlock(&c->lock);
	if (code < 0)
		cube_free(f);
	else if (ret != NULL)
		*ret = f;
	return code;
}

void cube_p9_fid_drop(struct p9_conn *c, struct p9_fid *f, struct p9_call *closer)
{
	bool ours;

	(void)pthread_mutex_lock(&c->lock);
	ours = !f->gone;
	if (ours) {
		f->gone = true;
		f->closer = closer;
		cube_imap_take(c->fids, f->number);
	}
	(void)pthread_mutex_unlock(&c->lock);
	if (ours)
		cube_p9_calls_of(c, f);
	cube_p9_fid_put(c, f);
	if (!ours && closer != NULL)
		cube_p9_fail(closer, -EBADF); /* clunked twice at once */
}

static int fid_first(void *ctx, uint64_t key, void *value)
{
	(void)key;
	*(struct p9_fid **)ctx = value;
	return 1;
}

void cube_p9_fids_drop_all(struct p9_conn *c)
{
	struct p9_fid *f;

	do {
		f = NULL;
		(void)pthread_mutex_lock(&c->lock);
		if (cube_imap_each(c->fids, fid_first, &f) != 0) {
			f->uses++;
			f->lost = true;
		}
		(void)pthread_mutex_unlock(&c->lock);
		if (f != NULL)
			cube_p9_fid_drop(c, f, NULL);
	} while (f != NULL);
}

/* ---- opening ---- */

int cube_p9_fid_open_begin(struct p9_conn *c, struct p9_fid *f)
{
	int code = 0;

	(void)pthread_mutex_lock(&c->lock);
	if (f->state != P9_WALKED || f->opening)
		code = -EINVAL;
	else
		f->opening = true;
	(void)pthread_mutex_unlock(&c->lock);
	return code;
}

void cube_p9_fid_open_end(struct p9_conn *c, struct p9_fid *f, enum p9_state state)
{
	(void)pthread_mutex_lock(&c->lock);
	f->opening = false;
	f->state = state;
	(void)pthread_mutex_unlock(&c->lock);
}

int cube_p9_fid_where(struct p9_conn *c, struct p9_fid *f, struct p9_place **ret, char name[P9_NAME_MAX + 1])
{
	int code = -EBUSY;

	(void)pthread_mutex_lock(&c->lock);
	if (f->place->parent != NULL) {
		*ret = cube_p9_place_ref(f->place->parent);
		(void)snprintf(name, P9_NAME_MAX + 1, "%s", f->place->name);
		code = 0;
	}
	(void)pthread_mutex_unlock(&c->lock);
	return code;
}
