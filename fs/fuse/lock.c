/* SPDX-License-Identifier: Apache-2.0 */
/* Locks on real files. The one thing here that holds a thread while it waits: the system call does. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "fs/fuse/priv.h"

#define LOCK_STACK   (128u << 10)
#define LOCK_THREADS 1024
#define LOCK_CLOSING                                                                                         \
	300000000u /* ns: how long the end of an open file is waited for whose descriptor was closed */

struct lock_call {
	struct cube_fuse *f;
	fuse_req_t req;
	struct cube_files_handle *handle;
	struct cube_cancel *cancel;
	uint64_t key, owner;
	struct flock lock;
	int flock_op; /* 0: a record lock */
};

static int lock_do(const struct lock_call *l, bool wait)
{
	int op = l->flock_op;

	if (op == 0)
		return cube_files_setlk(l->handle, l->owner, &l->lock, wait, l->cancel);
	return cube_files_flock(l->handle, l->owner, wait ? op : op | LOCK_NB, l->cancel);
}

/* The kernel repeats the system call after a signal that does not end it, so every interrupt may end the
 * wait. */
static void lock_interrupted(fuse_req_t req, void *data)
{
	struct cube_fuse *f = fuse_req_userdata(req);
	struct cube_cancel *c;

	(void)pthread_mutex_lock(&f->locks_lock);
	c = cube_imap_get(f->locks, (uint64_t)(uintptr_t)data);
	if (c != NULL)
		cube_cancel_fire(c);
	(void)pthread_mutex_unlock(&f->locks_lock);
}

static void lock_end(struct lock_call *l)
{
	struct cube_fuse *f = l->f;

	(void)pthread_mutex_lock(&f->locks_lock);
	cube_imap_take(f->locks, l->key);
	(void)pthread_mutex_unlock(&f->locks_lock);
	cube_cancel_unref(l->cancel);
	cube_free(l);
}

static void *lock_thread(void *arg)
{
	struct lock_call *l = arg;
	struct cube_fuse *f = l->f;
	fuse_req_t req = l->req;
	int code = lock_do(l, true);

	lock_end(l);
	(void)fuse_reply_err(req, -code);
	(void)pthread_mutex_lock(&f->locks_lock);
	if (--f->lock_threads == 0)
		(void)pthread_cond_signal(&f->locks_idle);
	(void)pthread_mutex_unlock(&f->locks_lock);
	return NULL;
}

static int lock_spawn(struct lock_call *l)
{
	pthread_attr_t attr;
	pthread_t thread;
	int code = pthread_attr_init(&attr);

	if (code != 0)
		return -code;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, LOCK_STACK);
	code = pthread_create(&thread, &attr, lock_thread, l);
	(void)pthread_attr_destroy(&attr);
	return -code;
}

static int lock_enter(struct lock_call *l)
{
	struct cube_fuse *f = l->f;
	int code = -ENOLCK;

	(void)pthread_mutex_lock(&f->locks_lock);
	if (f->lock_threads < LOCK_THREADS) {
		l->key = ++f->next_lock;
		code = cube_imap_put(f->locks, l->key, l->cancel);
		f->lock_threads += code == 0;
	}
	(void)pthread_mutex_unlock(&f->locks_lock);
	return code;
}

static void lock_left(struct cube_fuse *f)
{
	(void)pthread_mutex_lock(&f->locks_lock);
	f->lock_threads--;
	(void)pthread_mutex_unlock(&f->locks_lock);
}

/* It has to wait: on a thread of its own. */
static void lock_wait(const struct lock_call *tried)
{
	struct lock_call *l = cube_memdup(tried, sizeof(*tried));
	struct cube_fuse *f = tried->f;
	fuse_req_t req = tried->req;
	int code = -ENOMEM;

	if (l == NULL)
		goto fail;
	l->cancel = cube_cancel_new();
	if (l->cancel == NULL)
		goto fail;
	code = lock_enter(l);
	if (code < 0)
		goto fail;
	fuse_req_interrupt_func(req, lock_interrupted, (void *)(uintptr_t)l->key);
	code = lock_spawn(l);
	if (code == 0)
		return;
	lock_end(l);
	lock_left(f);
	(void)fuse_reply_err(req, -code);
	return;
fail:
	if (l != NULL)
		cube_cancel_unref(l->cancel);
	cube_free(l);
	(void)fuse_reply_err(req, -code);
}

static bool lock_taken(int code)
{
	return code == -EAGAIN || code == -EACCES;
}

static void lock_set(const struct lock_call *l, bool wait)
{
	unsigned long seen = l->handle == NULL ? 0 : cube_files_lock_seen(l->handle);
	int code = l->handle == NULL ? -ESTALE : lock_do(l, false);
	uint64_t until = 0;

	while (!wait && lock_taken(code)) {
		if (until == 0)
			until = cube_clock_mono() + LOCK_CLOSING;
		if (!cube_files_lock_soon(l->handle, &seen, until))
			break;
		code = lock_do(l, false);
	}
	if (wait && lock_taken(code))
		lock_wait(l);
	else
		(void)fuse_reply_err(l->req, -code);
}

void cube_fuse_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock)
{
	int code = -EOPNOTSUPP;

	struct cube_fuse *f = fuse_req_userdata(req);
	struct cube_files_handle *h = cube_fh_get(&f->fh, fi->fh);

	if (ino & CUBE_FILES_ID)
		code = h == NULL ? -ESTALE : cube_files_getlk(h, fi->lock_owner, lock);
	(void)(code < 0 ? fuse_reply_err(req, -code) : fuse_reply_lock(req, lock));
}

void cube_fuse_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock, int sleep)
{
	struct cube_fuse *f = fuse_req_userdata(req);
	struct lock_call l = {.f = f,
			      .req = req,
			      .handle = cube_fh_get(&f->fh, fi->fh),
			      .owner = fi->lock_owner,
			      .lock = *lock};

	if (ino & CUBE_FILES_ID)
		lock_set(&l, sleep != 0);
	else
		(void)fuse_reply_err(req, EOPNOTSUPP);
}

void cube_fuse_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int op)
{
	struct cube_fuse *f = fuse_req_userdata(req);
	struct lock_call l = {.f = f,
			      .req = req,
			      .handle = cube_fh_get(&f->fh, fi->fh),
			      .owner = fi->lock_owner,
			      .flock_op = op & ~LOCK_NB};

	if (ino & CUBE_FILES_ID)
		lock_set(&l, (op & LOCK_NB) == 0);
	else
		(void)fuse_reply_err(req, EOPNOTSUPP);
}

int cube_fuse_locks_init(struct cube_fuse *f)
{
	f->locks = cube_imap_new();
	if (f->locks == NULL)
		return -ENOMEM;
	(void)pthread_mutex_init(&f->locks_lock, NULL);
	(void)pthread_cond_init(&f->locks_idle, NULL);
	return 0;
}

static int lock_give_up(void *ctx, uint64_t key, void *value)
{
	(void)ctx;
	(void)key;
	cube_cancel_fire(value);
	return 0;
}

void cube_fuse_locks_done(struct cube_fuse *f)
{
	(void)pthread_mutex_lock(&f->locks_lock);
	(void)cube_imap_each(f->locks, lock_give_up, NULL);
	while (f->lock_threads > 0)
		(void)pthread_cond_wait(&f->locks_idle, &f->locks_lock);
	(void)pthread_mutex_unlock(&f->locks_lock);
}
