/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of exposed ports, and of one. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "ctl/ports/port.h"
#include "ctl/show.h"
#include "fs/tree/type.h"

CUBE_RENDER(url, struct cube_port, cube_show_port_url(o, out))
CUBE_RENDER(status, struct cube_port, cube_show_port_status(o, out))
CUBE_RENDER(ctl, struct cube_port, cube_show_port_ctl(o, out))

/* ---- url ---- */

/* 1: it answers; 0: wait for the queue in *ret; or an error. */
static int url_ready(struct cube_handle *h, struct cube_waitq **ret, struct cube_err *err)
{
	struct cube_port *p = h->node->obj->p;
	int r;

	if (p->removed)
		return cube_fail(err, -ENOENT, "port '%s' was closed", p->name);
	r = cube_cube_usable(p->cube, true, err);
	if (r != 0) {
		*ret = &p->cube->changed;
		return r < 0 ? r : 0;
	}
	if (h->base == 0) /* the first knock that begins after this */
		h->base = p->knocks + 1 + p->knocking;
	if (p->knocks >= h->base && p->answers && !p->knocking)
		return 1;
	cube_port_knock(p);
	*ret = &p->changed;
	return 0;
}

static int url_read(struct cube_req *r, struct cube_handle *h)
{
	struct cube_waitq *wait = NULL;
	int n;

	if (!h->channel)
		return cube_handle_give(r, &h->text, r->offset);
	if (h->text.len == 0) {
		int ready = url_ready(h, &wait, &r->err);

		if (ready < 0)
			return ready;
		if (ready == 0)
			return r->flags & O_NONBLOCK ? -EAGAIN : cube_req_wait(r, wait);
		if (cube_show_port_url(h->node->obj->p, &h->text) < 0)
			return cube_fail(&r->err, -ENOMEM, "out of memory");
	}
	n = cube_handle_give(r, &h->text, h->pos);
	h->pos += (uint64_t)n;
	return n;
}

static unsigned url_poll(struct cube_handle *h, unsigned events, struct cube_waitq **wait)
{
	struct cube_err err;

	(void)events;
	if (h->text.len > 0 || url_ready(h, wait, &err) != 0)
		return POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM;
	return POLLOUT | POLLWRNORM;
}

static const struct cube_class class_url = {.channel = true, .read = url_read, .poll = url_poll};

/* ---- the directory ---- */

enum port_slot { SLOT_SELF, SLOT_URL, SLOT_STATUS, SLOT_CTL };

/* Those that have the word are for the user alone. */
static const struct cube_entry port_entries[] = {
	{.name = "url", .slot = SLOT_URL, .mode = S_IFREG | 0600, .class = &class_url, .render = url_text},
	{.name = "status",
	 .slot = SLOT_STATUS,
	 .mode = S_IFREG | 0400,
	 .class = &cube_class_asked,
	 .render = status_text},
	{.name = "ctl",
	 .slot = SLOT_CTL,
	 .mode = CUBE_BOTH_MODE,
	 .class = &cube_class_ctl,
	 .render = ctl_text,
	 .fresh = true},
};

static const struct cube_level port_level = {CUBE_LEVEL(port_entries), .removal = CUBE_REMOVAL_IGNORED};
static const struct cube_entry port_self = {
	.name = "", .slot = SLOT_SELF, .mode = CUBE_DIR_MODE, .level = &port_level};

static void type_ref(void *p)
{
	(void)cube_port_ref(p);
}

static void type_unref(void *p)
{
	cube_port_unref(p);
}

static void **type_slot(void *p)
{
	return &((struct cube_port *)p)->tree_data;
}

static const char *type_name(void *p)
{
	return ((struct cube_port *)p)->name;
}

static uint64_t type_seq(void *p)
{
	return ((struct cube_port *)p)->seq;
}

/* Far from those of jobs and sessions, which count. */
static uint64_t type_seed(void *p)
{
	return ~((struct cube_port *)p)->created_wall;
}

static bool type_gone(void *p)
{
	return ((struct cube_port *)p)->removed;
}

static uint64_t type_born(void *p)
{
	return ((struct cube_port *)p)->created_wall;
}

static struct cube_cube *type_cube(void *p)
{
	return ((struct cube_port *)p)->cube;
}

static struct cube_service *type_service(void *p)
{
	return type_cube(p)->service;
}

static void *type_parent(void *p)
{
	return ((struct cube_port *)p)->cube;
}

const struct cube_type cube_type_port = {
	.what = "port",
	.self = &port_self,
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
	.within = &cube_entry_ports,
	.parent_of = type_parent,
};

/* ---- ports/ ---- */

CUBE_RENDER(open, struct cube_cube, cube_show_ports_open(o, out))

static void *port_find(void *p, const char *name)
{
	return cube_port_find(p, name);
}

static void *port_next(void *p, uint64_t seq)
{
	return cube_port_next(p, seq);
}

/* It needs the sandbox running: waits for one that is being made or resumed. */
static int port_make(struct cube_req *r, void *p, const char *name, void **ret)
{
	struct cube_cube *c = p;
	struct cube_target target;
	struct cube_port *port;
	int code = cube_port_parse(name, &target, &r->err);

	if (code == 0)
		code = cube_cube_usable(c, true, &r->err);
	if (code > 0)
		return cube_req_wait(r, &c->changed);
	if (code == 0)
		code = cube_port_create(c, name, &port, &r->err);
	if (code == 0)
		*ret = port;
	return code;
}

static int port_drop(struct cube_req *r, void *child)
{
	return cube_port_remove(child, &r->err);
}

static const struct cube_entry ports_entries[] = {
	{.name = "open",
	 .slot = CUBE_SLOT_PORTS_OPEN,
	 .mode = CUBE_READ_MODE,
	 .class = &cube_class_asked,
	 .render = open_text},
};

const struct cube_level cube_level_ports = {
	CUBE_LEVEL(ports_entries), .child = &cube_type_port, .find = port_find,
	.next = port_next,         .make = port_make,        .drop = port_drop,
};
