/* SPDX-License-Identifier: Apache-2.0 */
/* backends/ and what is below: backends and their templates. */
#include "ctl/show.h"
#include "fs/tree/type.h"

/* ---- texts ---- */

CUBE_RENDER(backend_status, struct cube_service, cube_show_backend_status(o, out))
CUBE_RENDER(backend_sandboxes, struct cube_service, cube_show_backend_sandboxes(o, out))
CUBE_RENDER(backend_ctl, struct cube_service, cube_show_backend_ctl(o, out))
CUBE_RENDER(template_info, struct cube_template_entry, cube_show_template_info(o, out))
CUBE_RENDER(template_status, struct cube_template_entry, cube_show_template_status(o, out))
CUBE_RENDER(template_ctl, struct cube_template_entry, cube_show_template_ctl(o, out))
#define TEMPLATE_RENDER(name, which)                                                                         \
	CUBE_RENDER(name, struct cube_template_entry,                                                        \
		    cube_buf_add(out, cube_buf_str(&o->texts[which]), o->texts[which].len))
TEMPLATE_RENDER(template_aliases, CUBE_TEMPLATE_ALIASES)
TEMPLATE_RENDER(template_build, CUBE_TEMPLATE_BUILD)
TEMPLATE_RENDER(template_start, CUBE_TEMPLATE_START)
TEMPLATE_RENDER(template_ready, CUBE_TEMPLATE_READY)
TEMPLATE_RENDER(template_services, CUBE_TEMPLATE_SERVICES)
CUBE_RENDER(template_log, struct cube_template_entry, cube_buf_add(out, o->log.text.data, o->log.text.len))

/* ---- backends/ ---- */

static void *service_find(void *p, const char *name)
{
	return cube_domain_service(p, name);
}

static void *service_next(void *p, uint64_t seq)
{
	struct cube_domain *d = p;
	struct cube_service *next = NULL;

	cube_list_each (i, &d->services) {
		struct cube_service *s = cube_list_entry(i, struct cube_service, link);

		if (s->seq > seq && (next == NULL || s->seq < next->seq))
			next = s;
	}
	return next;
}

const struct cube_level cube_level_backends = {
	.removal = CUBE_REMOVAL_GUARDED,
	.child = &cube_type_service,
	.find = service_find,
	.next = service_next,
};

/* ---- a backend ---- */

static void *template_find(void *p, const char *name)
{
	return cube_template_find(p, name);
}

static void *template_next(void *p, uint64_t seq)
{
	return cube_template_next(p, seq);
}

static int template_make(struct cube_req *r, void *p, const char *name, void **ret)
{
	struct cube_template_entry *t;
	int code = cube_template_create(p, name, &t, &r->err);

	if (code == 0)
		*ret = t;
	return code;
}

static int template_drop(struct cube_req *r, void *child)
{
	return cube_template_remove(child, &r->err);
}

static const struct cube_level templates_level = {
	.removal = CUBE_REMOVAL_GUARDED,
	.child = &cube_type_template,
	.find = template_find,
	.next = template_next,
	.make = template_make,
	.drop = template_drop,
};

enum service_slot {
	SERVICE_SELF,
	SERVICE_STATUS,
	SERVICE_SANDBOXES,
	SERVICE_CTL,
	SERVICE_TEMPLATES,
	SERVICE_POOLS
};

#define SERVICE_TEMPLATES_ENTRY                                                                              \
	{                                                                                                    \
		.name = "templates", .slot = SERVICE_TEMPLATES, .mode = CUBE_DIR_MODE,                       \
		.level = &templates_level, .needs = CUBE_CAP_TEMPLATES                                       \
	}

#define SERVICE_POOLS_ENTRY                                                                                  \
	{                                                                                                    \
		.name = "pools", .slot = SERVICE_POOLS, .mode = CUBE_DIR_MODE, .level = &cube_level_stocks   \
	}

const struct cube_entry cube_entry_templates = SERVICE_TEMPLATES_ENTRY;
const struct cube_entry cube_entry_stocks = SERVICE_POOLS_ENTRY;

static const struct cube_entry service_entries[] = {
	{.name = "status",
	 .slot = SERVICE_STATUS,
	 .mode = CUBE_READ_MODE,
	 .class = &cube_class_text,
	 .render = backend_status_text},
	{.name = "sandboxes",
	 .slot = SERVICE_SANDBOXES,
	 .mode = CUBE_READ_MODE,
	 .class = &cube_class_text,
	 .render = backend_sandboxes_text},
	{.name = "ctl",
	 .slot = SERVICE_CTL,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_ctl,
	 .render = backend_ctl_text,
	 .fresh = true},
	SERVICE_TEMPLATES_ENTRY,
	SERVICE_POOLS_ENTRY,
};

static const struct cube_level service_level = {CUBE_LEVEL(service_entries), .removal = CUBE_REMOVAL_GUARDED};
static const struct cube_entry service_self = {
	.name = "", .slot = SERVICE_SELF, .mode = CUBE_DIR_MODE, .level = &service_level};

/* ---- a template ---- */

enum template_slot {
	TEMPLATE_SELF,
	TEMPLATE_INFO,
	TEMPLATE_LOG,
	TEMPLATE_STATUS,
	TEMPLATE_CTL,
	TEMPLATE_ALIASES,
	TEMPLATE_START,
	TEMPLATE_READY,
	TEMPLATE_BUILD,
	TEMPLATE_SERVICES,
};

#define TEMPLATE_TEXT(which)                                                                                 \
	.mode = CUBE_BOTH_MODE, .class = &cube_class_image, .arg = CUBE_IMAGE_TEMPLATE + (which),            \
	.fresh = true

static const struct cube_entry template_entries[] = {
	{.name = "info",
	 .slot = TEMPLATE_INFO,
	 .mode = CUBE_READ_MODE,
	 .class = &cube_class_text,
	 .render = template_info_text},
	{.name = "log",
	 .slot = TEMPLATE_LOG,
	 .mode = CUBE_READ_MODE,
	 .class = &cube_class_text,
	 .render = template_log_text},
	{.name = "status",
	 .slot = TEMPLATE_STATUS,
	 .mode = CUBE_READ_MODE,
	 .class = &cube_class_text,
	 .render = template_status_text},
	{.name = "ctl",
	 .slot = TEMPLATE_CTL,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_ctl,
	 .render = template_ctl_text,
	 .fresh = true},
	{.name = "aliases",
	 .slot = TEMPLATE_ALIASES,
	 .render = template_aliases_text,
	 TEMPLATE_TEXT(CUBE_TEMPLATE_ALIASES)},
	{.name = "start",
	 .slot = TEMPLATE_START,
	 .render = template_start_text,
	 .needs = CUBE_CAP_EXEC,
	 TEMPLATE_TEXT(CUBE_TEMPLATE_START)},
	{.name = "ready",
	 .slot = TEMPLATE_READY,
	 .render = template_ready_text,
	 .needs = CUBE_CAP_EXEC,
	 TEMPLATE_TEXT(CUBE_TEMPLATE_READY)},
	{.name = "build",
	 .slot = TEMPLATE_BUILD,
	 .render = template_build_text,
	 .needs = CUBE_CAP_BUILD,
	 TEMPLATE_TEXT(CUBE_TEMPLATE_BUILD)},
	{.name = "services",
	 .slot = TEMPLATE_SERVICES,
	 .render = template_services_text,
	 .needs = CUBE_CAP_PORTS,
	 TEMPLATE_TEXT(CUBE_TEMPLATE_SERVICES)},
};

static const struct cube_level template_level = {CUBE_LEVEL(template_entries),
						 .removal = CUBE_REMOVAL_GUARDED};
static const struct cube_entry template_self = {
	.name = "", .slot = TEMPLATE_SELF, .mode = CUBE_DIR_MODE, .level = &template_level};

/* ---- types ---- */

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

static const char *service_name(void *p)
{
	return ((struct cube_service *)p)->backend->name;
}

/* Text as a number that differs for different texts (as good as certainly). */
static uint64_t type_text_seed(const char *s)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *s != '\0'; s++)
		h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
	return h;
}

static uint64_t service_seq(void *p)
{
	return ((struct cube_service *)p)->seq;
}

static uint64_t service_seed(void *p)
{
	return type_text_seed(service_name(p));
}

static uint64_t service_born(void *p)
{
	return ((struct cube_service *)p)->domain->started_wall;
}

static struct cube_service *service_service(void *p)
{
	return p;
}

static void *service_parent(void *p)
{
	return ((struct cube_service *)p)->domain;
}

const struct cube_type cube_type_service = {
	.what = "backend",
	.self = &service_self,
	.ref = type_keep,
	.unref = type_keep,
	.name = service_name,
	.seq = service_seq,
	.seed = service_seed,
	.gone = type_never_gone,
	.born = service_born,
	.cube = type_no_cube,
	.service = service_service,
	.parent = &cube_type_root,
	.within = &cube_entry_backends,
	.parent_of = service_parent,
};

static void template_ref(void *p)
{
	(void)cube_template_ref(p);
}

static void template_unref(void *p)
{
	cube_template_unref(p);
}

static void **template_slot(void *p)
{
	return &((struct cube_template_entry *)p)->tree_data;
}

static const char *template_name(void *p)
{
	return ((struct cube_template_entry *)p)->info.name;
}

static uint64_t template_seq(void *p)
{
	return ((struct cube_template_entry *)p)->seq;
}

static uint64_t template_seed(void *p)
{
	return type_text_seed(template_name(p)) ^ template_seq(p);
}

static bool template_gone(void *p)
{
	return ((struct cube_template_entry *)p)->removed;
}

static uint64_t template_born(void *p)
{
	return service_born(((struct cube_template_entry *)p)->service);
}

static struct cube_service *template_service(void *p)
{
	return ((struct cube_template_entry *)p)->service;
}

static void *template_parent(void *p)
{
	return ((struct cube_template_entry *)p)->service;
}

const struct cube_type cube_type_template = {
	.what = "template",
	.self = &template_self,
	.ref = template_ref,
	.unref = template_unref,
	.slot = template_slot,
	.name = template_name,
	.seq = template_seq,
	.seed = template_seed,
	.gone = template_gone,
	.born = template_born,
	.cube = type_no_cube,
	.service = template_service,
	.parent = &cube_type_service,
	.within = &cube_entry_templates,
	.parent_of = template_parent,
};
