/* SPDX-License-Identifier: Apache-2.0 */
/* Telling the kernel that a name went. On a thread of its own, holding nothing: the kernel may need an answer
 * of ours before it takes the news. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "fs/fuse/priv.h"

/* A name that went, or (told set) what must not happen before the news in front of it. */
struct news {
	struct cube_list link;
	void (*told)(void *arg);
	void *arg;
	uint64_t parent;
	bool again;
	char name[]; /* "": it is a question, about the real node `parent` */
};

#define NOTIFY_FLOOD 4096

struct cube_fuse_notify {
	struct cube_fuse *f;
	pthread_mutex_t lock;
	pthread_cond_t some;
	struct cube_list queue;
	pthread_t thread;
	bool started, stop, telling;
	unsigned n_real; /* names of real directories in the queue */
};

/* The same news twice is once too often. */
static bool notify_has(const struct cube_fuse_notify *n, uint64_t parent, const char *name)
{
	cube_list_each (i, &n->queue) {
		const struct news *old = cube_list_entry(i, struct news, link);

		if (old->told == NULL && old->parent == parent && strcmp(old->name, name) == 0)
			return true;
	}
	return false;
}

void cube_fuse_notify_entry(struct cube_fuse_notify *n, uint64_t parent, const char *name)
{
	size_t size = strlen(name) + 1;
	struct news *x;

	(void)pthread_mutex_lock(&n->lock);
	x = notify_has(n, parent, name) ? NULL : cube_malloc(sizeof(*x) + size);
	if (x != NULL) {
		cube_list_init(&x->link);
		x->told = NULL;
		x->parent = parent;
		memcpy(x->name, name, size);
		cube_list_push(&n->queue, &x->link);
		(void)pthread_cond_signal(&n->some);
	}
	(void)pthread_mutex_unlock(&n->lock);
}

/* Of a flood of them only that there was one is told. */
void cube_fuse_notify_real(struct cube_fuse_notify *n, uint64_t dir, const char *name, bool again)
{
	size_t size = strlen(name) + 1;
	struct news *x = NULL;

	(void)pthread_mutex_lock(&n->lock);
	if (n->n_real < NOTIFY_FLOOD)
		x = cube_malloc(sizeof(*x) + size);
	if (x != NULL) {
		*x = (struct news){.parent = dir, .again = again};
		cube_list_init(&x->link);
		memcpy(x->name, name, size);
		cube_list_push(&n->queue, &x->link);
		n->n_real++;
		(void)pthread_cond_signal(&n->some);
	}
	(void)pthread_mutex_unlock(&n->lock);
	if (x == NULL)
		cube_fuse_watch_epoch(n->f);
}

/* In the flood it is not heard; somebody asks again behind the next command. */
void cube_fuse_notify_ask(struct cube_fuse_notify *n, uint64_t id)
{
	cube_fuse_notify_real(n, id, "", false);
}

bool cube_fuse_notify_first(struct cube_fuse_notify *n, void (*told)(void *arg), void *arg)
{
	struct news *x = NULL;

	(void)pthread_mutex_lock(&n->lock);
	if (n->started && !n->stop && (n->telling || !cube_list_empty(&n->queue)))
		x = cube_calloc(1, sizeof(*x) + 1);
	if (x != NULL) {
		cube_list_init(&x->link);
		x->told = told;
		x->arg = arg;
		cube_list_push(&n->queue, &x->link);
		(void)pthread_cond_signal(&n->some);
	}
	(void)pthread_mutex_unlock(&n->lock);
	return x != NULL;
}

static struct news *notify_next(struct cube_fuse_notify *n)
{
	struct cube_list *i;

	(void)pthread_mutex_lock(&n->lock);
	n->telling = false;
	while ((i = cube_list_pop(&n->queue)) == NULL && !n->stop)
		(void)pthread_cond_wait(&n->some, &n->lock);
	n->telling = i != NULL;
	if (i != NULL && (cube_list_entry(i, struct news, link)->parent & CUBE_FILES_ID) != 0)
		n->n_real--;
	(void)pthread_mutex_unlock(&n->lock);
	return i == NULL ? NULL : cube_list_entry(i, struct news, link);
}

/* One that is as we know it is only to be asked for again: were it taken out of the kernel's table, whoever has it as
 * working directory could not be told its path. */
static void notify_tell_real(const struct cube_fuse_notify *n, const struct news *x)
{
	bool again;

	if (x->name[0] == '\0') {
		cube_tree_ask(n->f->tree, x->parent);
		return;
	}
	again = x->again || cube_files_holds(n->f->files, x->parent, x->name);
	(void)fuse_lowlevel_notify_expire_entry(n->f->se, x->parent, x->name, strlen(x->name),
						again ? FUSE_LL_EXPIRE_ONLY : 0);
}

static void notify_tell(struct cube_fuse_notify *n, const struct news *x)
{
	if (x->told != NULL) {
		x->told(x->arg);
		return;
	}
	if ((x->parent & CUBE_FILES_ID) != 0) {
		notify_tell_real(n, x);
		return;
	}
	/* Whoever looked it up before it went has answered when this is through. */
	(void)pthread_rwlock_wrlock(&n->f->answering);
	(void)pthread_rwlock_unlock(&n->f->answering);
	(void)fuse_lowlevel_notify_inval_entry(n->f->se, x->parent, x->name, strlen(x->name));
}

static void *notify_thread(void *arg)
{
	struct cube_fuse_notify *n = arg;
	struct news *x;

	while ((x = notify_next(n)) != NULL) {
		notify_tell(n, x);
		cube_free(x);
	}
	return NULL;
}

struct cube_fuse_notify *cube_fuse_notify_new(struct cube_fuse *f)
{
	struct cube_fuse_notify *n = cube_calloc(1, sizeof(*n));

	if (n == NULL)
		return NULL;
	n->f = f;
	cube_list_init(&n->queue);
	(void)pthread_mutex_init(&n->lock, NULL);
	(void)pthread_cond_init(&n->some, NULL);
	return n;
}

int cube_fuse_notify_start(struct cube_fuse_notify *n)
{
	int code = pthread_create(&n->thread, NULL, notify_thread, n);

	n->started = code == 0;
	return -code;
}

void cube_fuse_notify_free(struct cube_fuse_notify *n)
{
	struct cube_list *i;

	if (n == NULL)
		return;
	(void)pthread_mutex_lock(&n->lock);
	n->stop = true;
	(void)pthread_cond_signal(&n->some);
	(void)pthread_mutex_unlock(&n->lock);
	if (n->started)
		(void)pthread_join(n->thread, NULL);
	while ((i = cube_list_pop(&n->queue)) !=
	       NULL) /* the thread was never started: there are no answers */
		cube_free(cube_list_entry(i, struct news, link));
	(void)pthread_mutex_destroy(&n->lock);
	(void)pthread_cond_destroy(&n->some);
	cube_free(n);
}
