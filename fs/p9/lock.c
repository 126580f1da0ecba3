/* SPDX-License-Identifier: Apache-2.0 */
/* Tlock, Tgetlock: record locks on real files. Whoever would have to wait is told so, and asks again: no thread
 * waits here. An owner is a process of a client, of this connection; its locks go with the fid. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "fs/p9/priv.h"

#define LOCK_OWNERS 4096 /* of one connection, with locks through fids that are there */
#define LOCK_CLIENT 256  /* bytes of its name */

struct p9_lock_owner {
	uint32_t proc;
	unsigned uses;  /* fids that note it, calls under way */
	unsigned calls; /* of them */
	uint64_t id;
	char *client;
};

void cube_p9_owners_free(struct p9_conn *c)
{
	for (unsigned i = 0; i < c->n_owners; i++)
		cube_free(c->owners[i].client);
	cube_free(c->owners);
}

static struct p9_lock_owner *lock_owner_add_locked(struct p9_conn *c, const struct cube_p9_lock *l)
{
	struct p9_lock_owner *all;
	char *client;

	if (c->n_owners == LOCK_OWNERS)
		return NULL;
	all = cube_realloc(c->owners, (c->n_owners + 1) * sizeof(*all));
	if (all == NULL)
		return NULL;
	c->owners = all;
	client = cube_strndup(l->client.s, l->client.len);
	if (client == NULL)
		return NULL;
	all[c->n_owners] = (struct p9_lock_owner){
		.proc = l->proc, .id = c->by.client << 32 | ++c->last_owner, .client = client};
	return &all[c->n_owners++];
}

static struct p9_lock_owner *lock_owner_find_locked(const struct p9_conn *c, uint64_t id)
{
	for (unsigned i = 0; i < c->n_owners; i++)
		if (c->owners[i].id == id)
			return &c->owners[i];
	return NULL;
}

void cube_p9_owner_put_locked(struct p9_conn *c, uint64_t id)
{
	struct p9_lock_owner *o = lock_owner_find_locked(c, id);

	if (o == NULL || --o->uses > 0)
		return;
	cube_free(o->client);
	*o = c->owners[--c->n_owners];
}

static void lock_owner_put(struct p9_conn *c, uint64_t id)
{
	struct p9_lock_owner *o;

	(void)pthread_mutex_lock(&c->lock);
	o = lock_owner_find_locked(c, id);
	if (o != NULL)
		o->calls--;
	cube_p9_owner_put_locked(c, id);
	(void)pthread_mutex_unlock(&c->lock);
}

/* A number that no other owner has; for lock_owner_put. 0: too many of them. */
static uint64_t lock_owner(struct p9_conn *c, const struct cube_p9_lock *l)
{
	struct p9_lock_owner *o = NULL;
	uint64_t id;

	(void)pthread_mutex_lock(&c->lock);
	for (unsigned i = 0; i < c->n_owners && o == NULL; i++)
		if (c->owners[i].proc == l->proc && strcmp(c->owners[i].client, l->client.s) == 0)
			o = &c->owners[i];
	if (o == NULL)
		o = lock_owner_add_locked(c, l);
	id = o != NULL ? o->id : 0;
	if (o != NULL) {
		o->uses++;
		o->calls++;
	}
	(void)pthread_mutex_unlock(&c->lock);
	return id;
}

/* The fid drops the owner's locks when it is closed. */
static int lock_note(struct p9_call *c, uint64_t owner)
{
	struct p9_fid *f = c->fid;
	uint64_t *all;
	int code = 0;

	(void)pthread_mutex_lock(&c->conn->lock);
	for (unsigned i = 0; i < f->n_lock_owners; i++)
		if (f->lock_owners[i] == owner)
			goto out;
	all = cube_realloc(f->lock_owners, (f->n_lock_owners + 1) * sizeof(*all));
	if (all == NULL) {
		code = -ENOMEM;
		goto out;
	}
	f->lock_owners = all;
	all[f->n_lock_owners++] = owner;
	lock_owner_find_locked(c->conn, owner)->uses++; /* it is there: the call uses it */
out:
	(void)pthread_mutex_unlock(&c->conn->lock);
	return code;
}

/* It has unlocked all of the file, as every process does that ends: the fid may outlive thousands of them. Another
 * call of its may be about to lock, and counts on the note. */
static void lock_unnote(struct p9_call *c, uint64_t owner)
{
	struct p9_fid *f = c->fid;
	unsigned i = 0;

	(void)pthread_mutex_lock(&c->conn->lock);
	while (i < f->n_lock_owners && f->lock_owners[i] != owner)
		i++;
	if (i < f->n_lock_owners && lock_owner_find_locked(c->conn, owner)->calls == 1) {
		f->lock_owners[i] = f->lock_owners[--f->n_lock_owners];
		cube_p9_owner_put_locked(c->conn, owner);
	}
	(void)pthread_mutex_unlock(&c->conn->lock);
}

static int lock_translate(struct p9_call *c, struct flock *ret)
{
	static const short types[] = {F_RDLCK, F_WRLCK, F_UNLCK};
	const struct cube_p9_lock *l = &c->m.lock;

	if (l->type >= CUBE_COUNT(types) || l->client.len > LOCK_CLIENT ||
	    memchr(l->client.s, '\0', l->client.len) != NULL)
		return cube_fail(&c->r.err, -EINVAL,
				 "a lock of no known type, or of a client without a name");
	if (l->start > INT64_MAX || l->length > INT64_MAX || l->start + l->length > (uint64_t)INT64_MAX)
		return -EOVERFLOW;
	if (c->fid->state != P9_FILE)
		return -EBADF;
	if (c->fid->real == NULL)
		return cube_fail(&c->r.err, -EOPNOTSUPP,
				 "this file takes no locks: only those below files/ do");
	*ret = (struct flock){.l_type = types[l->type],
			      .l_whence = SEEK_SET,
			      .l_start = (off_t)l->start,
			      .l_len = (off_t)l->length};
	return 0;
}

static void lock_real(struct p9_call *c)
{
	uint64_t owner = lock_owner(c->conn, &c->m.lock);
	struct flock lock;
	int code = owner == 0 ? -ENOLCK : lock_translate(c, &lock);

	if (code == 0)
		code = lock_note(c, owner);
	if (code == 0)
		code = cube_files_setlk(c->fid->real, owner, &lock, false, NULL);
	if (code == 0 && lock.l_type == F_UNLCK && lock.l_start == 0 && lock.l_len == 0)
		lock_unnote(c, owner);
	lock_owner_put(c->conn, owner);
	c->reply.status = CUBE_P9_LOCK_SUCCESS;
	if (code == -EAGAIN || code == -EACCES) {
		c->reply.status = CUBE_P9_LOCK_BLOCKED;
		code = 0;
	}
	cube_p9_end(c, code);
}

static void getlock_real(struct p9_call *c)
{
	static const struct {
		short ours;
		uint8_t p9;
	} types[] = {
		{F_RDLCK, CUBE_P9_LOCK_READ}, {F_WRLCK, CUBE_P9_LOCK_WRITE}, {F_UNLCK, CUBE_P9_LOCK_UNLOCK}};
	uint64_t owner = lock_owner(c->conn, &c->m.lock);
	struct flock lock;
	int code = owner == 0 ? -ENOLCK : lock_translate(c, &lock);

	if (code == 0)
		code = cube_files_getlk(c->fid->real, owner, &lock);
	lock_owner_put(c->conn, owner);
	c->reply.lock = c->m.lock;
	if (code == 0) {
		for (size_t i = 0; i < CUBE_COUNT(types); i++)
			if (types[i].ours == lock.l_type)
				c->reply.lock.type = types[i].p9;
		c->reply.lock.start = (uint64_t)lock.l_start;
		c->reply.lock.length = (uint64_t)lock.l_len;
	}
	cube_p9_end(c, code);
}

static void lock_start(struct p9_call *c, void (*real)(struct p9_call *))
{
	struct flock lock;
	int code = lock_translate(c, &lock);

	if (code < 0)
		cube_p9_fail(c, code);
	else
		cube_p9_block(c, real);
}

void cube_p9_op_lock(struct p9_call *c)
{
	lock_start(c, lock_real);
}

void cube_p9_op_getlock(struct p9_call *c)
{
	lock_start(c, getlock_real);
}
