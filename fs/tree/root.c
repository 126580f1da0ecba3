/* SPDX-License-Identifier: Apache-2.0 */
/* The root directory. */
#include <errno.h>
#include <string.h>

#include "ctl/errlog.h"
#include "ctl/show.h"
#include "fs/tree/type.h"

/* ---- texts ---- */

CUBE_RENDER(readme, struct cube_domain, cube_show_readme(o, out))
CUBE_RENDER(root_ctl, struct cube_domain, cube_show_root_ctl(o, out))
CUBE_RENDER(list, struct cube_domain, cube_show_list(o, out))
CUBE_RENDER(clone, struct cube_domain, cube_show_clone(o, out))
CUBE_RENDER(root_error, struct cube_domain, cube_errlog_text(o->errors, out))
/* ---- the root ---- */

static void *root_find(void *p, const char *name)
{
	return cube_domain_find(p, name);
}

static void *root_next(void *p, uint64_t seq)
{
	return cube_domain_next(p, seq);
}

static void *root_after(void *p, void *child)
{
	return cube_domain_after(p, child);
}

static int root_make(struct cube_req *r, void *p, const char *name, void **ret)
{
	struct cube_cube *c;
	int code = cube_cube_create(p, &r->caller, name, NULL, 0, &c, &r->err);

	if (code == 0)
		*ret = c;
	return code;
}

static int root_drop(struct cube_req *r, void *child)
{
	return cube_cube_remove(child, &r->caller, &r->err);
}

static int root_rename(struct cube_req *r, void *child, const char *name)
{
	return cube_cube_rename(child, name, &r->err);
}

enum root_slot {
	ROOT_SELF,
	ROOT_README,
	ROOT_CTL,
	ROOT_LIST,
	ROOT_CLONE,
	ROOT_EVENTS,
	ROOT_ERROR,
	ROOT_BACKENDS,
	ROOT_VOLUMES
};

#define ROOT_BACKENDS_ENTRY                                                                                  \
	{                                                                                                    \
		.name = "backends", .slot = ROOT_BACKENDS, .mode = CUBE_DIR_MODE,                            \
		.level = &cube_level_backends                                                                \
	}

#define ROOT_VOLUMES_ENTRY                                                                                   \
	{                                                                                                    \
		.name = "volumes", .slot = ROOT_VOLUMES, .mode = CUBE_DIR_MODE, .level = &cube_level_volumes \
	}

const struct cube_entry cube_entry_backends = ROOT_BACKENDS_ENTRY;
const struct cube_entry cube_entry_volumes = ROOT_VOLUMES_ENTRY;

/* Files before directories: who removes meets them first (mark.c). */
static const struct cube_entry root_entries[] = {
	{.name = "README",
	 .slot = ROOT_README,
	 .mode = CUBE_READ_MODE,
	 .class = &cube_class_text,
	 .render = readme_text,
	 .constant = true},
	{.name = "ctl",
	 .slot = ROOT_CTL,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_ctl,
	 .render = root_ctl_text,
	 .fresh = true},
	{.name = "list",
	 .slot = ROOT_LIST,
	 .mode = CUBE_READ_MODE,
	 .class = &cube_class_text,
	 .render = list_text},
	{.name = "clone",
	 .slot = ROOT_CLONE,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_clone,
	 .render = clone_text,
	 .fresh = true},
	{.name = "events",
	 .slot = ROOT_EVENTS,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_ring,
	 .arg = CUBE_RING_EVENTS},
	{.name = "error",
	 .slot = ROOT_ERROR,
	 .mode = CUBE_READ_MODE,
	 .class = &cube_class_text,
	 .render = root_error_text},
	ROOT_BACKENDS_ENTRY,
	ROOT_VOLUMES_ENTRY,
};

static const struct cube_level root_level = {
	CUBE_LEVEL(root_entries), .child = &cube_type_cube, .find = root_find, .next = root_next,
	.after = root_after,      .make = root_make,        .drop = root_drop, .rename = root_rename,
};

const struct cube_entry cube_entry_root = {
	.name = "", .slot = ROOT_SELF, .mode = CUBE_DIR_MODE, .level = &root_level};

/* ---- type ---- */

static void type_keep(void *p)
{
	(void)p; /* lives as long as the tree */
}

static bool type_never_gone(void *p)
{
	(void)p;
	return false;
}

static struct cube_cube *type_no_cube(void *p)
{
	(void)p;
	return NULL;
}

static const char *root_name(void *p)
{
	(void)p;
	return "";
}

static uint64_t root_zero(void *p)
{
	(void)p;
	return 0;
}

static uint64_t root_born(void *p)
{
	return ((struct cube_domain *)p)->started_wall;
}

static struct cube_service *root_service(void *p)
{
	(void)p;
	return NULL;
}

const struct cube_type cube_type_root = {
	.what = "root",
	.self = &cube_entry_root,
	.ref = type_keep,
	.unref = type_keep,
	.name = root_name,
	.seq = root_zero,
	.seed = root_zero,
	.gone = type_never_gone,
	.born = root_born,
	.cube = type_no_cube,
	.service = root_service,
};
