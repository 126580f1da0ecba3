/* SPDX-License-Identifier: Apache-2.0 */
/* The object of an exposed port: birth, listening, end. */
#include "ctl/ports/port.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "ctl/ctl_priv.h"
#include "ctl/errlog.h"
#include "ctl/event.h"
#include "ctl/ports/door.h"
#include "ctl/ports/priv.h"

#define PORT_HOST "127.0.0.1"
#define PORTS_MAX 256u /* of one sandbox */

/* ---- the object ---- */

/* Of its own: it tells the port from others in inode numbers and cookies. */
static uint64_t port_born(struct cube_cube *c)
{
	uint64_t now = cube_clock_wall();

	cube_list_each (i, &c->ports.list) {
		const struct cube_port *p = cube_list_entry(i, struct cube_port, link);

		now = p->created_wall >= now ? p->created_wall + 1 : now;
	}
	return now;
}

static void port_again(struct cube_alarm *a)
{
	cube_wake(&cube_container_of(a, struct cube_port, again)->changed);
}

struct cube_port *cube_port_new(struct cube_cube *c, const char *name, struct cube_err *err)
{
	struct cube_target target;
	struct cube_port *p;

	if (cube_port_parse(name, &target, err) < 0)
		return NULL;
	p = cube_calloc(1, sizeof(*p));
	if (p != NULL)
		p->name = cube_strdup(name);
	if (p == NULL || p->name == NULL) {
		cube_free(p);
		(void)cube_fail(err, -ENOMEM, "out of memory");
		return NULL;
	}
	p->refs = 1;
	p->cube = c;
	p->target = target;
	p->seq = c->domain->next_seq++;
	p->created_wall = port_born(c);
	(void)snprintf(p->host, sizeof(p->host), PORT_HOST);
	cube_list_init(&p->link);
	cube_list_init(&p->conns);
	cube_waitq_init(&p->changed);
	cube_alarm_init(&p->again, port_again);
	cube_list_push(&c->ports.list, &p->link);
	return p;
}

struct cube_port *cube_port_ref(struct cube_port *p)
{
	p->refs++;
	return p;
}

void cube_port_unref(struct cube_port *p)
{
	if (p == NULL || --p->refs > 0)
		return;
	cube_alarm_off(&p->again);
	explicit_bzero(p->key, sizeof(p->key));
	cube_free(p->name);
	cube_free(p);
}

struct cube_port *cube_port_find(struct cube_cube *c, const char *name)
{
	cube_list_each (i, &c->ports.list) {
		struct cube_port *p = cube_list_entry(i, struct cube_port, link);

		if (strcmp(p->name, name) == 0)
			return p;
	}
	return NULL;
}

struct cube_port *cube_port_next(struct cube_cube *c, uint64_t seq)
{
	cube_list_each (i, &c->ports.list) {
		struct cube_port *p = cube_list_entry(i, struct cube_port, link);

		if (p->seq > seq)
			return p;
	}
	return NULL;
}

/* Not there any more: nothing comes in, who is connected is cut off, who waits is told. */
static void port_drop(struct cube_port *p)
{
	p->removed = true;
	cube_alarm_off(&p->again);
	cube_door_close(cube_steal(p->door));
	cube_conns_cut(p);
	cube_list_remove(&p->link);
	cube_wake(&p->changed);
	cube_port_unref(p);
}

/* ---- listening ---- */

/* Where it was told to, or was before; if that is taken and nobody asked for it, anywhere. */
static int port_open_door(struct cube_port *p, struct cube_err *err)
{
	int r = cube_door_open(p, p->host, p->at, &p->at, &p->door, err);

	if (r == -EADDRINUSE && !p->fixed && p->at != 0)
		r = cube_door_open(p, p->host, 0, &p->at, &p->door, err);
	return r;
}

int cube_port_listen(struct cube_port *p, const char *where, struct cube_err *err)
{
	char host[CUBE_PORT_HOST], before[CUBE_PORT_HOST];
	struct cube_door *door = NULL;
	uint16_t at = 0, old = p->at;
	bool fixed = p->fixed;
	int r = cube_port_where(where, host, &at, err);

	if (r == 0)
		r = cube_door_open(p, host, at, &at, &door, err);
	if (r < 0)
		return r;
	(void)snprintf(before, sizeof(before), "%s", p->host);
	(void)snprintf(p->host, sizeof(p->host), "%s", host);
	p->at = at;
	p->fixed = true;
	r = cube_state_save(p->cube, err);
	if (r < 0) {
		(void)snprintf(p->host, sizeof(p->host), "%s", before);
		p->at = old;
		p->fixed = fixed;
		cube_door_close(door);
		return r;
	}
	cube_door_close(p->door);
	p->door = door;
	return 0;
}

/* ---- making and removing ---- */

static int port_begin(struct cube_port *p, struct cube_err *err)
{
	if (getrandom(p->key, sizeof(p->key), 0) != (ssize_t)sizeof(p->key))
		return cube_fail_errno(err, "random numbers");
	p->has_token = true;
	p->serial = 1;
	return port_open_door(p, err);
}

static void port_said(const struct cube_port *p, const char *event)
{
	cube_auto_str detail = cube_asprintf("%s at %s port %u", p->name, p->host, p->at);

	if (detail != NULL)
		cube_cube_event(p->cube, event, detail); /* nothing of a pool's */
}

static int port_may(const struct cube_cube *c, struct cube_err *err)
{
	unsigned n = 0;

	if (c->phase == CUBE_REMOVED || c->domain->closing)
		return cube_fail(err, -EHOSTDOWN, "sandbox '%s' is being destroyed", c->name);
	cube_list_each (i, &c->ports.list)
		n++;
	return n < PORTS_MAX
		       ? cube_backend_need(c->service->backend, CUBE_CAP_PORTS, err)
		       : cube_fail(err, -EDQUOT, "sandbox '%s' has %u exposed ports already", c->name, n);
}

int cube_port_create(struct cube_cube *c, const char *name, struct cube_port **ret, struct cube_err *err)
{
	struct cube_port *p;
	int r = port_may(c, err);

	if (r == 0 && cube_port_find(c, name) != NULL)
		r = cube_fail(err, -EEXIST, "port '%s' is exposed already", name);
	if (r < 0)
		return r;
	p = cube_port_new(c, name, err);
	if (p == NULL)
		return err->code;
	r = port_begin(p, err);
	if (r == 0)
		r = cube_state_save(c, err);
	if (r < 0) {
		port_drop(p);
		return r;
	}
	port_said(p, "port.opened");
	*ret = p;
	return 0;
}

int cube_port_remove(struct cube_port *p, struct cube_err *err)
{
	struct cube_cube *c = p->cube;

	if (p->removed)
		return cube_fail(err, -ENOENT, "port '%s' was closed already", p->name);
	cube_list_remove(&p->link);
	int r = cube_state_save(c, err);
	if (r < 0) {
		cube_list_push(&c->ports.list, &p->link);
		return r;
	}
	port_said(p, "port.closed");
	port_drop(p);
	return 0;
}

/* ---- all of a sandbox ---- */

void cube_ports_init(struct cube_cube *c)
{
	cube_list_init(&c->ports.list);
	cube_waitq_init(&c->ports.asked.answered);
}

void cube_ports_free(struct cube_cube *c)
{
	while (!cube_list_empty(&c->ports.list))
		port_drop(cube_list_entry(c->ports.list.next, struct cube_port, link));
	cube_free(cube_steal(c->ports.open));
}

void cube_ports_close(struct cube_cube *c, bool gone)
{
	cube_list_each (i, &c->ports.list) {
		struct cube_port *p = cube_list_entry(i, struct cube_port, link);

		if (gone) {
			port_said(p, "port.closed");
			port_drop(p);
			continue;
		}
		cube_door_close(cube_steal(p->door));
		cube_conns_cut(p);
		cube_wake(&p->changed);
	}
	cube_wake(&c->ports.asked.answered);
}

int cube_ports_take(struct cube_cube *c, const char *names, struct cube_err *err)
{
	cube_auto_str copy = cube_strdup(names);
	int r = cube_backend_need(c->service->backend, CUBE_CAP_PORTS, err);

	if (copy == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	for (char *at = copy, *name; r == 0 && (name = strsep(&at, ",")) != NULL;) {
		if (cube_port_find(c, name) != NULL)
			r = cube_fail(err, -EINVAL, "ports=%s: '%s' is there twice", names, name);
		else if (cube_port_new(c, name, err) == NULL)
			r = cube_fail_in(err, "ports=%s", names);
	}
	return r;
}

int cube_ports_start(struct cube_cube *c, struct cube_err *err)
{
	int r = 0;

	cube_list_each (i, &c->ports.list) {
		struct cube_port *p = cube_list_entry(i, struct cube_port, link);

		if (r == 0)
			r = port_begin(p, err);
		if (r == 0)
			port_said(p, "port.opened");
	}
	return r;
}

void cube_ports_resume(struct cube_cube *c)
{
	cube_list_each (i, &c->ports.list) {
		struct cube_port *p = cube_list_entry(i, struct cube_port, link);
		struct cube_err err = {0};
		uint16_t before = p->at;

		if (p->door == NULL && port_open_door(p, &err) < 0) {
			(void)cube_fail_in(&err, "port '%s' is not reachable", p->name);
			cube_errlog_add(c->errors, NULL, "listen", &err);
		} else if (p->at != before && cube_state_save(c, &err) < 0) {
			cube_errlog_add(c->errors, NULL, "listen", &err);
		}
	}
}
