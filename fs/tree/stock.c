/* SPDX-License-Identifier: Apache-2.0 */
/* backends/NAME/pools/ and what is below. */
#include "ctl/stock.h"
#include "ctl/show.h"
#include "fs/tree/type.h"

/* ---- texts ---- */

CUBE_RENDER(stock_template, struct cube_stock, cube_show_stock_template(o, out))
CUBE_RENDER(stock_size, struct cube_stock, cube_show_stock_size(o, out))
CUBE_RENDER(stock_ready, struct cube_stock, cube_show_stock_ready(o, out))
CUBE_RENDER(stock_status, struct cube_stock, cube_show_stock_status(o, out))
CUBE_RENDER(stock_ctl, struct cube_stock, cube_show_stock_ctl(o, out))
CUBE_RENDER(stock_log, struct cube_stock, cube_buf_add(out, o->log.text.data, o->log.text.len))

/* ---- pools/ ---- */

static void *stock_find(void *p, const char *name)
{
	return cube_stock_find(p, name);
}

static void *stock_next(void *p, uint64_t seq)
{
	return cube_stock_next(p, seq);
}

static int stock_make(struct cube_req *r, void *p, const char *name, void **ret)
{
	struct cube_stock *made;
	int code = cube_stock_create(p, name, &made, &r->err);

	if (code == 0)
		*ret = made;
	return code;
}

static int stock_drop(struct cube_req *r, void *child)
{
	return cube_stock_remove(child, &r->err);
}

const struct cube_level cube_level_stocks = {
	.removal = CUBE_REMOVAL_GUARDED,
	.child = &cube_type_stock,
	.find = stock_find,
	.next = stock_next,
	.make = stock_make,
	.drop = stock_drop,
};

/* ---- a pool ---- */

enum stock_slot {
	STOCK_SELF,
	STOCK_TEMPLATE,
	STOCK_SIZE,
	STOCK_READY,
	STOCK_STATUS,
	STOCK_LOG,
	STOCK_CTL,
};

static const struct cube_entry stock_entries[] = {
	{.name = "template",
	 .slot = STOCK_TEMPLATE,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_image,
	 .arg = CUBE_IMAGE_STOCK_TEMPLATE,
	 .render = stock_template_text},
	{.name = "size",
	 .slot = STOCK_SIZE,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_image,
	 .arg = CUBE_IMAGE_STOCK_SIZE,
	 .render = stock_size_text},
	{.name = "ready",
	 .slot = STOCK_READY,
	 .mode = CUBE_READ_MODE,
	 .class = &cube_class_text,
	 .render = stock_ready_text},
	{.name = "status",
	 .slot = STOCK_STATUS,
	 .mode = CUBE_READ_MODE,
	 .class = &cube_class_text,
	 .render = stock_status_text},
	{.name = "log",
	 .slot = STOCK_LOG,
	 .mode = CUBE_READ_MODE,
	 .class = &cube_class_text,
	 .render = stock_log_text},
	{.name = "ctl",
	 .slot = STOCK_CTL,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_ctl,
	 .render = stock_ctl_text,
	 .fresh = true},
};

static const struct cube_level stock_level = {CUBE_LEVEL(stock_entries), .removal = CUBE_REMOVAL_GUARDED};
static const struct cube_entry stock_self = {
	.name = "", .slot = STOCK_SELF, .mode = CUBE_DIR_MODE, .level = &stock_level};

/* ---- type ---- */

static struct cube_stock *stock(void *p)
{
	return p;
}

static void stock_ref(void *p)
{
	(void)cube_stock_ref(p);
}

static void stock_unref(void *p)
{
	cube_stock_unref(p);
}

static void **stock_slot(void *p)
{
	return &stock(p)->tree_data;
}

static const char *stock_name(void *p)
{
	return stock(p)->name;
}

static uint64_t stock_seq(void *p)
{
	return stock(p)->seq;
}

static bool stock_gone(void *p)
{
	return stock(p)->removed;
}

static uint64_t stock_born(void *p)
{
	return stock(p)->born_wall;
}

static struct cube_cube *stock_cube(void *p)
{
	(void)p;
	return NULL;
}

static struct cube_service *stock_service(void *p)
{
	return stock(p)->service;
}

static void *stock_parent(void *p)
{
	return stock(p)->service;
}

const struct cube_type cube_type_stock = {
	.what = "pool",
	.self = &stock_self,
	.ref = stock_ref,
	.unref = stock_unref,
	.slot = stock_slot,
	.name = stock_name,
	.seq = stock_seq,
	.seed = stock_seq,
	.gone = stock_gone,
	.born = stock_born,
	.cube = stock_cube,
	.service = stock_service,
	.parent = &cube_type_service,
	.within = &cube_entry_stocks,
	.parent_of = stock_parent,
};
