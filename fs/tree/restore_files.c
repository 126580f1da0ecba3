/* SPDX-License-Identifier: Apache-2.0 */
/* Before the first request: what commands have come to is heard again, and real files that a worker before this one had
 * shown are fetched again from their backends. */
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#include "backends/base/alloc.h"
#include "backends/base/log.h"
#include "fs/tree/tree_priv.h"

#define AGAIN_STEP_MS 20 /* between two looks whether a sandbox's files can be had yet */
#define JOBS_STEP_MS  5

struct again {
	struct cube_list link; /* tree.again */
	struct cube_obj *obj;  /* referenced */
	uint32_t record;
	bool asked;
	sem_t *answered;
};

void cube_restore_root(struct cube_tree *t, const struct cube_type *type, void *p, uint32_t record)
{
	struct again *a = cube_calloc(1, sizeof(*a));
	struct cube_obj *o = a == NULL ? NULL : cube_obj_get(t, type, p);

	if (o == NULL) {
		cube_free(a);
		return;
	}
	*a = (struct again){.obj = o, .record = record};
	cube_list_push(&t->again, &a->link);
}

/* Under the lock. */
static void again_free(struct again *a)
{
	cube_list_remove(&a->link);
	cube_obj_unref(a->obj);
	cube_free(a);
}

/* On a pool thread, no lock. */
static void again_fetched(void *ctx, int code, struct cube_root *root, const struct cube_err *err)
{
	struct again *a = ctx;
	struct cube_tree *t = a->obj->tree;
	const struct cube_keep_root *rec = cube_keep_at(&t->keep->roots, a->record);
	const char *uid = a->obj->type->real->uid(a->obj->p);
	sem_t *answered = a->answered;
	struct cube_files *files = NULL;
	bool taken = false;

	(void)err;
	if (code == 0) {
		code = cube_files_attach_again(t->view->files, root, strtoull(uid, NULL, 16), a->obj,
					       atomic_load(&rec->key), a->record, &files);
		if (code < 0)
			cube_root_close(root);
	}
	cube_domain_enter(t->domain);
	if (files != NULL)
		taken = cube_attach_adopt(a->obj, files, rec->generation);
	again_free(a);
	cube_domain_leave(t->domain);
	if (files != NULL && !taken)
		cube_files_detach(files);
	(void)sem_post(answered);
}

/* True: it is on its way, or never will be. */
static bool again_ask(struct again *a, sem_t *answered)
{
	const struct cube_real *real = a->obj->type->real;
	struct cube_waitq *changed = NULL;
	struct cube_err err;
	int code = a->obj->type->gone(a->obj->p) ? -ESTALE : real->usable(a->obj->p, &changed, &err);

	if (code > 0)
		return false;
	a->asked = true;
	a->answered = answered;
	if (code == 0)
		code = real->fetch(a->obj->p, again_fetched, a);
	if (code < 0) {
		again_free(a);
		(void)sem_post(answered);
	}
	return true;
}

/* How many were asked now; *ret_left: how many could not be yet. */
static unsigned again_ask_all(struct cube_tree *t, sem_t *answered, unsigned *ret_left)
{
	unsigned asked = 0;

	*ret_left = 0;
	cube_domain_enter(t->domain);
	cube_list_each (i, &t->again) {
		struct again *a = cube_list_entry(i, struct again, link);

		if (a->asked)
			continue;
		if (again_ask(a, answered))
			asked++;
		else
			++*ret_left;
	}
	cube_domain_leave(t->domain);
	return asked;
}

static void again_give_up(struct cube_tree *t)
{
	cube_domain_enter(t->domain);
	cube_list_each (i, &t->again) {
		struct again *a = cube_list_entry(i, struct again, link);

		if (!a->asked)
			again_free(a);
	}
	cube_domain_leave(t->domain);
}

static struct timespec again_until(unsigned ms)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

/* What the worker before was told of its end, and told others, may not be on disk: it is said again. */
void cube_tree_restore_jobs(struct cube_tree *t, unsigned ms)
{
	unsigned left = 1;

	for (unsigned spent = 0; left > 0 && spent < ms; spent += JOBS_STEP_MS) {
		struct timespec step = again_until(JOBS_STEP_MS);

		cube_domain_enter(t->domain);
		left = cube_domain_unheard(t->domain);
		cube_domain_leave(t->domain);
		if (left > 0)
			(void)clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &step, NULL);
	}
	if (left > 0)
		cube_log(CUBE_LOG_INFO, "tree", "the agents of %u sandboxes say nothing yet of what runs",
			 left);
}

void cube_tree_restore_files(struct cube_tree *t, unsigned ms)
{
	static sem_t answered; /* outlives the wait: an answer may come late */
	unsigned waiting = 0, left = 0;

	if (t->keep == NULL || sem_init(&answered, 0, 0) < 0)
		return;
	for (unsigned spent = 0; spent < ms; spent += AGAIN_STEP_MS) {
		struct timespec step = again_until(AGAIN_STEP_MS);

		waiting += again_ask_all(t, &answered, &left);
		while (waiting > 0 && sem_timedwait(&answered, &step) == 0)
			waiting--;
		if (waiting == 0 && left == 0)
			break;
		if (waiting == 0)
			(void)clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &step, NULL);
	}
	if (waiting + left > 0)
		cube_log(CUBE_LOG_WARNING, "tree", "the files of %u sandboxes could not be had in time",
			 waiting + left);
	again_give_up(t);
	if (cube_files_restore(t->view->files) < 0)
		cube_log(CUBE_LOG_ERROR, "tree", "open files are lost: out of memory");
}
