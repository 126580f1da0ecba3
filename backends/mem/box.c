/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes: making, finding, ending. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/mem/mem_priv.h"

#define ID_PREFIX "mem-"

struct mem_box *mem_box_ref(struct mem_box *b)
{
	b->refs++;
	return b;
}

void mem_session_free(struct mem_session *s)
{
	cube_list_remove(&s->link);
	mem_shell_done(&s->shell);
	cube_free(s);
}

static void box_clear(struct mem_box *b)
{
	cube_list_each (i, &b->procs)
		mem_proc_free(cube_list_entry(i, struct mem_proc, all));
	cube_list_each (i, &b->sessions)
		mem_session_free(cube_list_entry(i, struct mem_session, link));
}

void mem_box_unref(struct mem_box *b)
{
	if (--b->refs > 0)
		return;
	box_clear(b);
	cube_close_auto(&b->root);
	cube_close_auto(&b->workspace);
	mem_mounts_close(b);
	cube_buf_done(&b->labels);
	cube_free(b);
}

struct mem_box *mem_box_find(struct mem *m, const char *id, struct cube_err *err)
{
	struct mem_box *b = cube_map_get(m->boxes, id);

	if (b != NULL && !b->making)
		return b;
	(void)cube_fail(err, -ENOENT, "backend %s has no sandbox %s", m->base.name, id);
	return NULL;
}

struct mem_session *mem_box_session(const struct mem_box *b, uint64_t number)
{
	for (struct cube_list *i = b->sessions.next; i != &b->sessions; i = i->next) {
		struct mem_session *s = cube_list_entry(i, struct mem_session, link);

		if (s->number == number)
			return s;
	}
	return NULL;
}

uint64_t mem_box_eaten(const struct mem_box *b)
{
	uint64_t sum = 0;

	for (struct cube_list *i = b->procs.next; i != &b->procs; i = i->next)
		sum += cube_list_entry(i, struct mem_proc, all)->eaten;
	return sum;
}

/* ---- Standing still ---- */

bool mem_box_still(const struct mem_box *b)
{
	return b->frozen || b->state != CUBE_IS_RUNNING;
}

void mem_box_settle(struct mem_box *b, bool was_still)
{
	uint64_t now = cube_clock_mono();

	if (mem_box_still(b) == was_still)
		return;
	if (!was_still) {
		b->still_since = now;
		return;
	}
	b->credit_ms = (now - b->still_since) / UINT64_C(1000000);
	cube_list_each (i, &b->procs)
		mem_proc_shift(cube_list_entry(i, struct mem_proc, all), now - b->still_since, false);
	mem_kick(b->mem);
}

void mem_box_halt(struct mem_box *b, enum cube_state state, const char *reason, const char *why)
{
	uint64_t one = 1;

	mem_link_break(b, -EHOSTDOWN, why);
	box_clear(b);
	b->n_active = 0;
	if (b->idle_fd >= 0)
		(void)!write(b->idle_fd, &one, sizeof(one));
	b->state = state;
	b->frozen = false;
	b->crashing = false;
	(void)snprintf(b->reason, sizeof(b->reason), "%s", reason);
}

/* ---- Making ---- */

static struct mem_box *box_new(struct mem *m, const struct cube_spec *spec, const char *id)
{
	struct mem_box *b = cube_calloc(1, sizeof(*b));

	if (b == NULL)
		return NULL;
	b->refs = 1;
	b->mem = m;
	b->root = b->workspace = b->idle_fd = -1;
	b->state = CUBE_IS_STOPPED;
	b->making = true;
	b->limits = spec->limits;
	b->next_pid = 2; /* 1 is the first process, which is not one of ours */
	cube_list_init(&b->procs);
	cube_list_init(&b->sessions);
	(void)snprintf(b->id, sizeof(b->id), "%s", id);
	(void)snprintf(b->uid, sizeof(b->uid), "%s", spec->uid);
	(void)snprintf(b->hostname, sizeof(b->hostname), "%.64s", spec->name);
	b->created_wall = cube_clock_wall();
	cube_buf_init(&b->labels, MEM_TEXT_MAX);
	if (cube_spec_labels(spec, &b->labels) < 0) {
		mem_box_unref(b);
		return NULL;
	}
	(void)snprintf(b->template, sizeof(b->template), "%s",
		       spec->template != NULL ? spec->template : MEM_TEMPLATE_BASE);
	return b;
}

/* Takes a place for a new sandbox, with a reference in *ret; NULL there: it exists already. */
static int box_reserve(struct mem *m, const struct cube_spec *spec, const char *id, struct mem_box **ret,
		       struct cube_err *err)
{
	const char *template = spec->template != NULL ? spec->template : MEM_TEMPLATE_BASE;
	const struct mem_template *t = mem_template_find(m, template);
	struct mem_box *b = cube_map_get(m->boxes, id);

	if (b != NULL)
		return b->making ? cube_fail(err, -EBUSY, "%s is just being created", id) : 0;
	if (m->max != 0 && cube_map_count(m->boxes) >= m->max)
		return cube_fail(err, -EDQUOT,
				 "backend %s keeps %u sandboxes at most (max_sandboxes): destroy one",
				 m->base.name, m->max);
	if (t == NULL || strcmp(t->t.state, "ready") != 0)
		return cube_fail(err, -ENOENT, "backend %s has no template '%s'%s", m->base.name, template,
				 t != NULL ? " yet: it is being imported" : ": import it first");
	b = box_new(m, spec, id);
	if (b == NULL || cube_map_put(m->boxes, id, b) < 0) {
		if (b != NULL)
			mem_box_unref(b);
		return cube_fail(err, -ENOMEM, "out of memory for another sandbox");
	}
	*ret = mem_box_ref(b);
	return 0;
}

/* The directories are made, or not (@r). Gives back the reference of box_reserve. */
static void box_made(struct mem_box *b, int r)
{
	struct mem *m = b->mem;

	b->making = false;
	if (r == 0) {
		b->state = CUBE_IS_RUNNING;
		b->boot = b->generation = ++m->boots;
	} else {
		(void)cube_map_take(m->boxes, b->id);
		mem_box_unref(b);
	}
	mem_box_unref(b);
}

int mem_create(struct cube_backend *base, const struct cube_spec *spec, struct cube_cancel *cancel,
	       char **ret_id, struct cube_err *err)
{
	struct mem *m = mem_of(base);
	cube_auto_str id = cube_asprintf(ID_PREFIX "%s", spec->uid);
	struct cube_spec copy = *spec;
	char template[CUBE_ID_MAX + 1];
	struct mem_box *b = NULL;
	int r;

	if (id == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	if (spec->from != NULL) {
		r = mem_checkpoint_template(m, spec->from, template, err);
		if (r < 0)
			return r;
		copy.template = template;
	}
	pthread_mutex_lock(&m->lock);
	r = box_reserve(m, &copy, id, &b, err);
	pthread_mutex_unlock(&m->lock);
	if (r == 0 && b != NULL) {
		r = mem_tree_make(m, id, b->template, spec->from, cancel, &b->root, &b->workspace, err);
		if (r == 0)
			r = mem_mounts_make(b, spec, err);
		if (r < 0)
			(void)cube_file_remove_tree(m->dir, id);
		pthread_mutex_lock(&m->lock);
		box_made(b, r);
		pthread_mutex_unlock(&m->lock);
	}
	if (r < 0)
		return r;
	*ret_id = cube_steal(id);
	return 0;
}

/* ---- Ending ---- */

int mem_destroy(struct cube_backend *base, const char *id, struct cube_err *err)
{
	struct mem *m = mem_of(base);
	struct mem_box *b;
	int r = 0;

	if (strncmp(id, ID_PREFIX, sizeof(ID_PREFIX) - 1) != 0)
		return 0; /* never one of ours, so it is gone */
	pthread_mutex_lock(&m->lock);
	b = cube_map_get(m->boxes, id);
	if (b != NULL && b->making) {
		r = cube_fail(err, -EBUSY, "%s is just being created", id);
	} else if (b != NULL) {
		(void)cube_map_take(m->boxes, id);
		mem_box_halt(b, CUBE_IS_GONE, "destroyed", "the sandbox was destroyed");
		mem_box_unref(b);
	}
	pthread_mutex_unlock(&m->lock);
	if (r < 0)
		return r;
	r = cube_file_remove_tree(m->dir,
				  id); /* where an earlier call was interrupted here, this one goes on */
	return r < 0 ? cube_fail(err, r, "remove the files of %s: %s", id, cube_errno_text(r)) : 0;
}

/* ---- Looking ---- */

static void box_info(const struct mem_box *b, struct cube_info *ret)
{
	*ret = (struct cube_info){.state = b->state, .created_wall = b->created_wall, .limits = b->limits};
	(void)snprintf(ret->name, sizeof(ret->name), "%s", b->hostname);
	(void)snprintf(ret->template, sizeof(ret->template), "%s", b->template);
	(void)snprintf(ret->id, sizeof(ret->id), "%s", b->id);
	(void)snprintf(ret->uid, sizeof(ret->uid), "%s", b->uid);
	(void)snprintf(ret->reason, sizeof(ret->reason), "%s", b->reason);
}

int mem_inspect(struct cube_backend *base, const char *id, struct cube_info *ret, struct cube_err *err)
{
	struct mem *m = mem_of(base);
	struct mem_box *b;

	pthread_mutex_lock(&m->lock);
	b = mem_box_find(m, id, err);
	if (b != NULL)
		box_info(b, ret);
	pthread_mutex_unlock(&m->lock);
	return b != NULL ? 0 : -ENOENT;
}

struct collected {
	struct cube_info *infos;
	size_t n;
};

static int collect(void *ctx, const char *key, void *value)
{
	struct collected *c = ctx;
	const struct mem_box *b = value;

	(void)key;
	if (b->making)
		return 0;
	box_info(b, &c->infos[c->n]);
	if (b->labels.len > 0)
		c->infos[c->n].labels = cube_strndup(b->labels.data, b->labels.len);
	c->n++;
	return 0;
}

/* The callback is called without the lock: it may call us. */
int mem_list(struct cube_backend *base, struct cube_cancel *cancel,
	     void (*each)(void *ctx, const struct cube_info *info), void *ctx, struct cube_err *err)
{
	struct mem *m = mem_of(base);
	struct collected c = {.infos = NULL};

	if (cube_cancel_fired(cancel))
		return cube_fail(err, -EINTR, "listing was cancelled");
	pthread_mutex_lock(&m->lock);
	c.infos = cube_calloc(cube_map_count(m->boxes) + 1, sizeof(*c.infos));
	if (c.infos != NULL)
		(void)cube_map_each(m->boxes, collect, &c);
	pthread_mutex_unlock(&m->lock);
	if (c.infos == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < c.n; i++) {
		each(ctx, &c.infos[i]);
		cube_free((void *)(uintptr_t)c.infos[i].labels);
	}
	cube_free(c.infos);
	return 0;
}
