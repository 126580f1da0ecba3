/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoints/ and what is below. */
#include "ctl/checkpoint.h"

#include <errno.h>
#include <stdlib.h>

#include "ctl/show.h"
#include "fs/tree/type.h"

/* ---- texts ---- */

CUBE_RENDER(ctl, struct cube_checkpoint_entry, cube_show_checkpoint_ctl(o, out))

/* Who reads it wants the size; it is asked for behind. */
static int info_text(void *p, struct cube_buf *out)
{
	cube_checkpoint_look(p);
	return cube_show_checkpoint_info(p, out);
}

/* ---- checkpoints/ ---- */

static void *checkpoint_find(void *p, const char *name)
{
	return cube_checkpoint_find(p, name);
}

static void *checkpoint_next(void *p, uint64_t seq)
{
	return cube_checkpoint_next(p, seq);
}

static void make_called_off(struct cube_req *r, bool interrupted)
{
	struct cube_checkpoint_entry *e = cube_steal(r->state);

	(void)interrupted;
	cube_checkpoint_leave(e);
	cube_checkpoint_unref(e);
}

/* One of a sandbox that is being made, or that something else is done with, waits for that. */
static int make_begin(struct cube_req *r, struct cube_cube *c, const char *name)
{
	struct cube_checkpoint_entry *e = NULL;
	int code;

	if (c->phase == CUBE_CREATING)
		return cube_req_wait(r, &c->changed);
	code = cube_checkpoint_take(c, name, &e, &r->err);
	if (code == -EBUSY) {
		r->err = (struct cube_err){0};
		return cube_req_wait(r, &c->changed);
	}
	if (code == 0) {
		r->state = e;
		r->on_cancel = make_called_off;
	}
	return code;
}

static int checkpoint_make(struct cube_req *r, void *p, const char *name, void **ret)
{
	struct cube_checkpoint_entry *e = r->state;
	int code = e == NULL ? make_begin(r, p, name) : 0;

	e = r->state;
	if (code != 0 || e == NULL)
		return code;
	if (e->phase == CUBE_CHECKPOINT_TAKING)
		return cube_req_wait(r, &e->changed);
	r->state = NULL;
	r->on_cancel = NULL;
	if (e->phase == CUBE_CHECKPOINT_THERE) {
		*ret = e;
	} else {
		r->err = e->failure;
		code = e->failure.code != 0 ? e->failure.code : -ENOENT;
	}
	cube_checkpoint_unref(e); /* the sandbox keeps it */
	return code;
}

static int checkpoint_drop(struct cube_req *r, void *child)
{
	return cube_checkpoint_remove(child, &r->err);
}

static int checkpoint_rename(struct cube_req *r, void *child, const char *name)
{
	return cube_checkpoint_rename(child, name, &r->err);
}

const struct cube_level cube_level_checkpoints = {
	.child = &cube_type_checkpoint,
	.find = checkpoint_find,
	.next = checkpoint_next,
	.make = checkpoint_make,
	.drop = checkpoint_drop,
	.rename = checkpoint_rename,
};

/* ---- a checkpoint ---- */

enum checkpoint_slot { SLOT_SELF, SLOT_INFO, SLOT_CTL, SLOT_CHANGES, SLOT_FILES };

static const struct cube_entry checkpoint_entries[] = {
	{.name = "info",
	 .slot = SLOT_INFO,
	 .mode = CUBE_READ_MODE,
	 .class = &cube_class_text,
	 .render = info_text},
	{.name = "ctl",
	 .slot = SLOT_CTL,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_ctl,
	 .render = ctl_text,
	 .fresh = true},
	{.name = "changes",
	 .slot = SLOT_CHANGES,
	 .mode = CUBE_READ_MODE,
	 .class = &cube_class_changes,
	 .needs = CUBE_CAP_CHANGES},
	{.name = "files", .slot = SLOT_FILES, .mode = CUBE_DIR_MODE, .files = true, .needs = CUBE_CAP_FILES},
};

static const struct cube_level checkpoint_level = {CUBE_LEVEL(checkpoint_entries),
						   .removal = CUBE_REMOVAL_REFUSED};
static const struct cube_entry checkpoint_self = {
	.name = "", .slot = SLOT_SELF, .mode = CUBE_DIR_MODE, .level = &checkpoint_level};

/* ---- type ---- */

static void type_ref(void *p)
{
	(void)cube_checkpoint_ref(p);
}

static void type_unref(void *p)
{
	cube_checkpoint_unref(p);
}

static void **type_slot(void *p)
{
	return &((struct cube_checkpoint_entry *)p)->tree_data;
}

static const char *type_name(void *p)
{
	return ((struct cube_checkpoint_entry *)p)->name;
}

static uint64_t type_seq(void *p)
{
	return ((struct cube_checkpoint_entry *)p)->seq;
}

static uint64_t type_seed(void *p)
{
	return strtoull(((struct cube_checkpoint_entry *)p)->id, NULL, 16);
}

static struct cube_cube *type_cube(void *p)
{
	return ((struct cube_checkpoint_entry *)p)->cube;
}

static bool type_gone(void *p)
{
	return ((struct cube_checkpoint_entry *)p)->phase != CUBE_CHECKPOINT_THERE ||
	       type_cube(p)->phase == CUBE_REMOVED;
}

static uint64_t type_born(void *p)
{
	return ((struct cube_checkpoint_entry *)p)->created_wall;
}

static struct cube_service *type_service(void *p)
{
	return type_cube(p)->service;
}

static void *type_parent(void *p)
{
	return type_cube(p);
}

static const char *real_uid(void *p)
{
	return ((struct cube_checkpoint_entry *)p)->id;
}

static uint32_t real_generation(void *p)
{
	(void)p;
	return 1; /* never another one */
}

static int real_usable(void *p, struct cube_waitq **changed, struct cube_err *err)
{
	struct cube_checkpoint_entry *e = p;

	*changed = &e->changed;
	if (type_cube(p)->domain->closing)
		return cube_fail(err, -EHOSTDOWN, "checkpoint '%s': the daemon is ending", e->name);
	return 0;
}

static int real_fetch(void *p,
		      void (*done)(void *ctx, int code, struct cube_root *root, const struct cube_err *err),
		      void *ctx)
{
	return cube_checkpoint_root_async(p, done, ctx);
}

static const struct cube_real checkpoint_real = {
	.uid = real_uid, .generation = real_generation, .usable = real_usable, .fetch = real_fetch};

const struct cube_type cube_type_checkpoint = {
	.what = "checkpoint",
	.self = &checkpoint_self,
	.ref = type_ref,
	.unref = type_unref,
	.slot = type_slot,
	.name = type_name,
	.seq = type_seq,
	.seed = type_seed,
	.gone = type_gone,
	.born = type_born,
	.cube = type_cube,
	.service = type_service,
	.parent = &cube_type_cube,
	.within = &cube_entry_checkpoints,
	.parent_of = type_parent,
	.real = &checkpoint_real,
};
