/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints as objects: names, taking, removing. */
#include "ctl/checkpoint_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "ctl/ctl_priv.h"
#include "ctl/volume_priv.h"

/* ---- The object ---- */

static void checkpoint_again(struct cube_alarm *a)
{
	cube_checkpoint_work_remove(cube_container_of(a, struct cube_checkpoint_entry, again));
}

static void checkpoint_free(struct cube_checkpoint_entry *e)
{
	cube_labels_free(e->labels);
	cube_free(e->template);
	cube_free(e->volumes);
	cube_free(e->name);
	cube_free(e);
}

struct cube_checkpoint_entry *cube_checkpoint_new(struct cube_cube *c, const char *name)
{
	struct cube_checkpoint_entry *e = cube_calloc(1, sizeof(*e));
	uint64_t n = 0;

	if (e == NULL)
		return NULL;
	*e = (struct cube_checkpoint_entry){.refs = 1, .cube = c, .size = UINT64_MAX};
	e->name = name != NULL ? cube_strdup(name) : NULL;
	e->template = c->template != NULL ? cube_strdup(c->template) : NULL;
	e->labels = cube_map_new();
	if ((name != NULL && e->name == NULL) || (c->template != NULL && e->template == NULL) ||
	    e->labels == NULL || getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n)) {
		checkpoint_free(e);
		return NULL;
	}
	(void)snprintf(e->id, sizeof(e->id), "%016llx", (unsigned long long)n);
	(void)snprintf(e->parent, sizeof(e->parent), "%s", cube_own(c)->checkpoint_base);
	e->seq = c->domain->next_seq++;
	e->created_wall = cube_clock_wall();
	cube_waitq_init(&e->changed);
	cube_alarm_init(&e->again, checkpoint_again);
	cube_list_push(&c->checkpoints, &e->link);
	return e;
}

struct cube_checkpoint_entry *cube_checkpoint_ref(struct cube_checkpoint_entry *e)
{
	e->refs++;
	return e;
}

void cube_checkpoint_unref(struct cube_checkpoint_entry *e)
{
	if (e != NULL && --e->refs == 0)
		checkpoint_free(e);
}

void cube_checkpoints_init(struct cube_cube *c)
{
	cube_list_init(&c->checkpoints);
	cube_list_init(&cube_own(c)->checkpoints_gone);
}

static void checkpoints_free_list(struct cube_list *list)
{
	for (struct cube_list *i = cube_list_pop(list); i != NULL; i = cube_list_pop(list)) {
		struct cube_checkpoint_entry *e = cube_list_entry(i, struct cube_checkpoint_entry, link);

		cube_alarm_off(&e->again);
		e->cube = NULL;
		cube_checkpoint_unref(e);
	}
}

void cube_checkpoints_free(struct cube_cube *c)
{
	checkpoints_free_list(&c->checkpoints);
	checkpoints_free_list(&cube_own(c)->checkpoints_gone);
}

/* ---- Looking for one ---- */

static struct cube_checkpoint_entry *checkpoint_any(struct cube_cube *c, const char *name)
{
	cube_list_each (i, &c->checkpoints) {
		struct cube_checkpoint_entry *e = cube_list_entry(i, struct cube_checkpoint_entry, link);

		if (e->name != NULL && strcmp(e->name, name) == 0)
			return e;
	}
	return NULL;
}

struct cube_checkpoint_entry *cube_checkpoint_find(struct cube_cube *c, const char *name)
{
	struct cube_checkpoint_entry *e = checkpoint_any(c, name);

	return e != NULL && e->phase == CUBE_CHECKPOINT_THERE ? e : NULL;
}

struct cube_checkpoint_entry *cube_checkpoint_next(struct cube_cube *c, uint64_t seq)
{
	cube_list_each (i, &c->checkpoints) {
		struct cube_checkpoint_entry *e = cube_list_entry(i, struct cube_checkpoint_entry, link);

		if (e->seq > seq && e->name != NULL && e->phase == CUBE_CHECKPOINT_THERE)
			return e;
	}
	return NULL;
}

const struct cube_checkpoint_entry *cube_checkpoint_by_id(const struct cube_domain *d, const char *id)
{
	cube_list_each (i, &d->cubes) {
		const struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);

		cube_list_each (k, &c->checkpoints) {
			const struct cube_checkpoint_entry *e =
				cube_list_entry(k, struct cube_checkpoint_entry, link);

			if (strcmp(e->id, id) == 0)
				return e->name != NULL ? e : NULL;
		}
	}
	return NULL;
}

int cube_checkpoint_named(struct cube_domain *d, struct cube_cube *c, const char *text,
			  struct cube_checkpoint_entry **ret, struct cube_err *err)
{
	const char *slash = strchr(text, '/');
	char name[CUBE_NAME_MAX + 1];

	if (slash != NULL) {
		if ((size_t)(slash - text) > CUBE_NAME_MAX)
			return cube_fail(err, -ENOENT, "'%s': no sandbox has such a name", text);
		(void)snprintf(name, sizeof(name), "%.*s", (int)(slash - text), text);
		c = cube_domain_find(d, name);
		text = slash + 1;
		if (c == NULL)
			return cube_fail(err, -ENOENT, "there is no sandbox '%s'", name);
	}
	*ret = c != NULL ? cube_checkpoint_find(c, text) : NULL;
	if (*ret == NULL)
		return cube_fail(err, -ENOENT, "sandbox '%s' has no checkpoint '%s'",
				 c != NULL ? c->name : "-", text);
	return 0;
}

static int checkpoint_check_name(struct cube_cube *c, const char *name, struct cube_err *err)
{
	if (!cube_name_entry_ok(name))
		return cube_fail(err, -EINVAL, "no name for a checkpoint: 1 to %d bytes, no /",
				 CUBE_ENTRY_MAX);
	if (strcmp(name, "last") == 0 || strcmp(name, "clone") == 0)
		return cube_fail(err, -EINVAL, "'%s' is no name for a checkpoint: it is taken", name);
	if (checkpoint_any(c, name) != NULL)
		return cube_fail(err, -EEXIST, "sandbox '%s' has a checkpoint '%s' already", c->name, name);
	return 0;
}

/* ---- Taking ---- */

void cube_checkpoint_go(struct cube_checkpoint_entry *e, enum cube_checkpoint_phase phase)
{
	e->phase = phase;
	cube_list_remove(&e->link);
	cube_list_push(&cube_own(e->cube)->checkpoints_gone, &e->link);
}

/* What the backend may have of it goes. At the end of the daemon that is the next one's. */
static void take_failed(struct cube_checkpoint_entry *e, const struct cube_err *err)
{
	struct cube_cube *c = e->cube;

	e->failure = *err;
	cube_checkpoint_go(e, CUBE_CHECKPOINT_FAILED);
	cube_wake(&e->changed);
	if (!c->domain->closing && c->phase != CUBE_REMOVED)
		cube_checkpoint_work_remove(e);
}

static int take_kept(struct cube_checkpoint_entry *e, struct cube_err *err)
{
	char *base = cube_own(e->cube)->checkpoint_base, before[17];
	int r;

	e->phase = CUBE_CHECKPOINT_THERE;
	if (e->name == NULL)
		return 0; /* on disk it goes already */
	memcpy(before, base, sizeof(before));
	memcpy(base, e->id, sizeof(e->id));
	r = cube_state_save(e->cube, err);
	if (r < 0)
		memcpy(base, before, sizeof(before));
	return r;
}

static void take_done(struct cube_life_call *call, int code, const struct cube_err *err)
{
	struct cube_checkpoint_entry *e = cube_container_of(call, struct cube_checkpoint_entry, call);
	struct cube_err why = {0};

	if (err != NULL)
		why = *err;
	if (code == 0 && e->unwanted)
		code = cube_fail(&why, -EINTR, "checkpoint: interrupted");
	if (code == 0)
		code = take_kept(e, &why);
	if (code < 0) {
		if (why.code == 0)
			(void)cube_fail(&why, code, "checkpoint: %s", cube_errno_text(code));
		take_failed(e, &why);
		return;
	}
	if (e->name != NULL)
		cube_cube_event(e->cube, "checkpoint", e->name);
	cube_wake(&e->changed);
}

/* Takes @e, which is new, over: on failure nothing is left of it. */
static int take_begin(struct cube_checkpoint_entry *e, struct cube_checkpoint_entry **ret,
		      struct cube_err *err)
{
	struct cube_cube *c = e->cube;
	int r;

	e->call = (struct cube_life_call){.what = CUBE_LIFE_CHECKPOINT, .done = take_done, .checkpoint = e};
	r = cube_cube_life(c, &e->call, err);
	if (r < 0) {
		cube_list_remove(&e->link);
		cube_checkpoint_unref(e);
		return r;
	}
	*ret = cube_checkpoint_ref(e);
	return 0;
}

int cube_checkpoint_take(struct cube_cube *c, const char *name, struct cube_checkpoint_entry **ret,
			 struct cube_err *err)
{
	struct cube_checkpoint_entry *e;
	int r = name != NULL ? checkpoint_check_name(c, name, err) : 0;

	if (r < 0)
		return r;
	e = cube_checkpoint_new(c, name);
	return e != NULL ? take_begin(e, ret, err) : cube_fail(err, -ENOMEM, "checkpoint: out of memory");
}

int cube_checkpoint_take_fork(struct cube_cube *c, bool files, struct cube_checkpoint_entry **ret,
			      struct cube_err *err)
{
	struct cube_checkpoint_entry *e = cube_checkpoint_new(c, NULL);

	if (e == NULL)
		return cube_fail(err, -ENOMEM, "fork: out of memory");
	e->no_files = !files;
	if (cube_use_writable(c, &e->volumes, &e->n_volumes) < 0) {
		cube_list_remove(&e->link);
		cube_checkpoint_unref(e);
		return cube_fail(err, -ENOMEM, "fork: out of memory");
	}
	return take_begin(e, ret, err);
}

void cube_checkpoint_leave(struct cube_checkpoint_entry *e)
{
	const struct cube_own *own;

	e->unwanted = true;
	if (e->phase != CUBE_CHECKPOINT_TAKING)
		return;
	own = cube_own(e->cube);
	if (own->op != NULL && own->op->call == &e->call)
		cube_cancel_fire(own->op->cancel);
}

int cube_checkpoint_memory(const struct cube_service *s, struct cube_err *err)
{
	int r = cube_backend_need(s->backend, CUBE_CAP_CHECKPOINT_MEMORY, err);

	return r < 0 ? r
		     : cube_fail(err, -EOPNOTSUPP, "memory=yes: checkpoints of backend '%s' are of files",
				 s->backend->name);
}

/* ---- Using ---- */

void cube_checkpoint_pin(struct cube_checkpoint_entry *e)
{
	cube_checkpoint_ref(e)->uses++;
}

void cube_checkpoint_unpin(struct cube_checkpoint_entry *e)
{
	if (e == NULL)
		return;
	if (--e->uses == 0 && e->name == NULL && e->phase == CUBE_CHECKPOINT_THERE && e->unwanted &&
	    e->cube != NULL) {
		cube_checkpoint_go(e, CUBE_CHECKPOINT_REMOVED);
		if (!e->cube->domain->closing && e->cube->phase != CUBE_REMOVED)
			cube_checkpoint_work_remove(e);
	}
	cube_checkpoint_unref(e);
}

void cube_checkpoint_let_go(struct cube_checkpoint_entry *e)
{
	if (e != NULL && e->name == NULL)
		e->unwanted = true;
	cube_checkpoint_unpin(e);
}

int cube_checkpoint_restored(struct cube_cube *c, const struct cube_checkpoint_entry *e)
{
	char *template = e->template != NULL ? cube_strdup(e->template) : NULL;

	if (e->template != NULL && template == NULL)
		return -ENOMEM;
	cube_free(c->template);
	c->template = template;
	memcpy(cube_own(c)->checkpoint_base, e->name != NULL ? e->id : e->parent, sizeof(e->id));
	return 0;
}

/* ---- Whose files came from it ---- */

static void bequeath_in(struct cube_cube *c, const struct cube_checkpoint_entry *e)
{
	char *base = cube_own(c)->checkpoint_base;

	if (strcmp(base, e->id) == 0)
		memcpy(base, e->parent, sizeof(e->parent));
	cube_list_each (i, &c->checkpoints) {
		struct cube_checkpoint_entry *child = cube_list_entry(i, struct cube_checkpoint_entry, link);

		if (strcmp(child->parent, e->id) == 0)
			memcpy(child->parent, e->parent, sizeof(e->parent));
	}
}

/* They came from its parent now. */
static void checkpoint_bequeath(const struct cube_checkpoint_entry *e)
{
	cube_list_each (i, &e->cube->domain->cubes)
		bequeath_in(cube_list_entry(i, struct cube_cube, link), e);
}

void cube_checkpoint_forget(struct cube_checkpoint_entry *e)
{
	cube_alarm_off(&e->again);
	cube_list_remove(&e->link);
	cube_checkpoint_unref(e);
}

/* ---- Names and the end ---- */

static void checkpoint_tell(struct cube_checkpoint_entry *e, const char *name)
{
	const struct cube_domain_watcher *w = &e->cube->domain->watcher;

	if (w->checkpoint_removed != NULL)
		w->checkpoint_removed(w->ctx, e, name);
}

static int checkpoint_changeable(const struct cube_checkpoint_entry *e, struct cube_err *err)
{
	if (e->phase != CUBE_CHECKPOINT_THERE || e->cube == NULL || e->cube->phase == CUBE_REMOVED)
		return cube_fail(err, -ENOENT, "checkpoint '%s' is gone", e->name);
	if (e->cube->domain->closing)
		return cube_fail(err, -EHOSTDOWN, "checkpoint '%s': the daemon is ending", e->name);
	return 0;
}

int cube_checkpoint_remove(struct cube_checkpoint_entry *e, struct cube_err *err)
{
	int r = checkpoint_changeable(e, err);

	if (r < 0)
		return r;
	if (e->uses > 0)
		return cube_fail(err, -EBUSY, "checkpoint '%s' is being restored, forked or made a template",
				 e->name);
	cube_checkpoint_go(e, CUBE_CHECKPOINT_REMOVED);
	checkpoint_bequeath(e);
	r = cube_state_save(e->cube, err);
	if (r < 0) {
		cube_list_remove(&e->link);
		cube_list_push(&e->cube->checkpoints, &e->link);
		e->phase = CUBE_CHECKPOINT_THERE;
		return r;
	}
	checkpoint_tell(e, e->name);
	cube_wake(&e->changed);
	cube_checkpoint_work_remove(e);
	return 0;
}

int cube_checkpoint_rename(struct cube_checkpoint_entry *e, const char *name, struct cube_err *err)
{
	int r = checkpoint_changeable(e, err);
	char *old = e->name;

	if (r == 0)
		r = checkpoint_check_name(e->cube, name, err);
	if (r < 0)
		return r;
	e->name = cube_strdup(name);
	r = e->name != NULL ? cube_state_save(e->cube, err) : cube_fail(err, -ENOMEM, "out of memory");
	if (r < 0) {
		cube_free(e->name);
		e->name = old;
		return r;
	}
	checkpoint_tell(e, old);
	cube_free(old);
	return 0;
}

int cube_checkpoint_label(struct cube_checkpoint_entry *e, const char *name, const char *value,
			  struct cube_err *err)
{
	int r = checkpoint_changeable(e, err);

	if (r == 0)
		r = cube_labels_set(e->labels, name, value, err);
	return r < 0 ? r : cube_state_save(e->cube, err);
}
