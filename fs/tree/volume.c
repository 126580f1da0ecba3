/* SPDX-License-Identifier: Apache-2.0 */
/* volumes/ and what is below. */
#include "ctl/volume.h"

#include <errno.h>
#include <stdlib.h>

#include "ctl/show.h"
#include "fs/tree/type.h"

/* ---- texts ---- */

/* Who reads it wants the size; it is asked for behind. */
static int info_text(void *p, struct cube_buf *out)
{
	cube_volume_look(p);
	return cube_show_volume_info(p, out);
}

/* ---- volumes/ ---- */

static void *volume_find(void *p, const char *name)
{
	return cube_volume_find(p, name);
}

static void *volume_next(void *p, uint64_t seq)
{
	return cube_volume_next(p, seq);
}

/* Whoever waited for it is gone: it is made all the same. */
static void make_called_off(struct cube_req *r, bool interrupted)
{
	(void)interrupted;
	cube_volume_unref(cube_steal(r->state));
}

static int make_begin(struct cube_req *r, void *p, const char *name)
{
	struct cube_volume_entry *v = NULL;
	int code = cube_volume_create(p, name, &v, &r->err);

	if (code == -EBUSY && v != NULL) { /* another one makes the same: then it is there, or not */
		r->err = (struct cube_err){0};
		code = cube_req_wait(r, &v->changed);
		cube_volume_unref(v);
		return code;
	}
	if (code < 0)
		return code;
	r->state = v;
	r->on_cancel = make_called_off;
	return 0;
}

/* mkdir returns when it is there: that is quick where it is on this machine, and who looks elsewhere does not
 * wait for this directory. */
static int volume_make(struct cube_req *r, void *p, const char *name, void **ret)
{
	struct cube_volume_entry *v = r->state;
	int code = 0;

	if (v == NULL)
		code = make_begin(r, p, name);
	v = r->state;
	if (code != 0 || v == NULL)
		return code;
	if (v->phase == CUBE_VOLUME_MAKING)
		return cube_req_wait(r, &v->changed);
	r->state = NULL;
	r->on_cancel = NULL;
	if (v->phase == CUBE_VOLUME_THERE) {
		*ret = v;
	} else {
		r->err = v->failure;
		code = v->failure.code != 0 ? v->failure.code : -ENOENT;
	}
	cube_volume_unref(v); /* the domain keeps it */
	return code;
}

static int volume_drop(struct cube_req *r, void *child)
{
	return cube_volume_remove(child, &r->err);
}

static int volume_rename(struct cube_req *r, void *child, const char *name)
{
	return cube_volume_rename(child, name, &r->err);
}

const struct cube_level cube_level_volumes = {
	.removal = CUBE_REMOVAL_GUARDED,
	.child = &cube_type_volume,
	.find = volume_find,
	.next = volume_next,
	.make = volume_make,
	.drop = volume_drop,
	.rename = volume_rename,
};

/* ---- a volume ---- */

enum volume_slot { VOLUME_SELF, VOLUME_INFO, VOLUME_FILES };

static const struct cube_entry volume_entries[] = {
	{.name = "info",
	 .slot = VOLUME_INFO,
	 .mode = CUBE_READ_MODE,
	 .class = &cube_class_text,
	 .render = info_text},
	{.name = "files",
	 .slot = VOLUME_FILES,
	 .mode = CUBE_DIR_MODE,
	 .files = true,
	 .needs = CUBE_CAP_FILES},
};

static const struct cube_level volume_level = {CUBE_LEVEL(volume_entries), .removal = CUBE_REMOVAL_GUARDED};
static const struct cube_entry volume_self = {
	.name = "", .slot = VOLUME_SELF, .mode = CUBE_DIR_MODE, .level = &volume_level};

/* ---- type ---- */

static void type_ref(void *p)
{
	(void)cube_volume_ref(p);
}

static void type_unref(void *p)
{
	cube_volume_unref(p);
}

static void **type_slot(void *p)
{
	return &((struct cube_volume_entry *)p)->tree_data;
}

static const char *type_name(void *p)
{
	return ((struct cube_volume_entry *)p)->name;
}

static uint64_t type_seq(void *p)
{
	return ((struct cube_volume_entry *)p)->seq;
}

static uint64_t type_seed(void *p)
{
	return strtoull(((struct cube_volume_entry *)p)->uid, NULL, 16);
}

static bool type_gone(void *p)
{
	return ((struct cube_volume_entry *)p)->phase == CUBE_VOLUME_REMOVED;
}

static uint64_t type_born(void *p)
{
	return ((struct cube_volume_entry *)p)->created_wall;
}

static struct cube_cube *type_cube(void *p)
{
	(void)p;
	return NULL;
}

static struct cube_service *type_service(void *p)
{
	return ((struct cube_volume_entry *)p)->service;
}

static void *type_parent(void *p)
{
	return ((struct cube_volume_entry *)p)->service->domain;
}

static const char *real_uid(void *p)
{
	return ((struct cube_volume_entry *)p)->uid;
}

static uint32_t real_generation(void *p)
{
	(void)p;
	return 1; /* never another one */
}

static int real_usable(void *p, struct cube_waitq **changed, struct cube_err *err)
{
	struct cube_volume_entry *v = p;

	*changed = &v->changed;
	if (v->service->domain->closing)
		return cube_fail(err, -EHOSTDOWN, "volume '%s': the daemon is ending", v->name);
	return 0;
}

static int real_fetch(void *p,
		      void (*done)(void *ctx, int code, struct cube_root *root, const struct cube_err *err),
		      void *ctx)
{
	return cube_volume_root_async(p, done, ctx);
}

static const struct cube_real volume_real = {.shared = true,
					     .uid = real_uid,
					     .generation = real_generation,
					     .usable = real_usable,
					     .fetch = real_fetch};

const struct cube_type cube_type_volume = {
	.what = "volume",
	.self = &volume_self,
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
	.parent = &cube_type_root,
	.within = &cube_entry_volumes,
	.parent_of = type_parent,
	.real = &volume_real,
};
