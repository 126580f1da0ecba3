/* SPDX-License-Identifier: Apache-2.0 */
/* A connection through an exposed port: what it says is looked at (gate.h), then one inside is made by the pool
 * and both are joined (backends/base/relay.h).
 *
 * The relay belongs to the loop's thread, all else is under the lock. Whoever still has to come back holds a
 * reference: the relay until it ended, a work at the pool, a post to the loop. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/relay.h"
#include "ctl/alarm.h"
#include "ctl/ctl_priv.h"
#include "ctl/ports/door.h"
#include "ctl/ports/gate.h"
#include "ctl/ports/peer.h"

#define CONN_HEAD_MS  30000u /* for whoever has not shown a word yet */
#define CONN_FIRST_MS 1000u  /* for the rest of a first line of one's own process */
#define CONN_READY_MS 60000u /* for the sandbox to be running */
#define CONN_AGAIN_MS 50u    /* too many wait inside: next try */
#define CONN_TRIES    100u

enum conn_dial { CONN_NEW, CONN_DIALING, CONN_DIALED };

struct port_conn {
	unsigned refs;
	struct cube_list all;  /* domain_own.port_conns, as long as it is in memory */
	struct cube_list link; /* port.conns; alone once it ended */
	struct cube_domain *domain;
	struct cube_port *port;   /* referenced */
	struct cube_cube *cube;   /* referenced */
	struct cube_relay *relay; /* the loop's thread; NULL: ended */
	struct cube_gate gate;    /* the loop's thread */
	bool asking;              /* the same: cube_relay_ask is calling */
	struct cube_post post;
	bool posted, cut;
	bool uses;          /* the sandbox is told of it as of a use */
	atomic_bool orphan; /* the domain is gone */
	enum conn_dial dial;
	int far; /* what came of it: a descriptor, or -1 and */
	int code;
	unsigned tries;
	bool late;                 /* the rest of its first line has not come */
	struct cube_waiter waiter; /* for the sandbox */
	struct cube_alarm limit;   /* of the head, then of the sandbox */
	struct cube_alarm first;   /* of the rest of a first line */
	struct cube_alarm again;
	struct cube_work work; /* while it is at the pool: */
	struct cube_cancel *cancel;
	char id[CUBE_ID_MAX + 1];
	struct cube_target target;
};

static void conn_unref(struct port_conn *c)
{
	if (--c->refs > 0)
		return;
	cube_gate_done(&c->gate);
	cube_list_remove(&c->all);
	cube_close_auto(&c->far);
	cube_port_unref(c->port);
	cube_cube_unref(c->cube);
	cube_free(c);
}

static void conn_waits_not(struct port_conn *c)
{
	cube_wait_remove(&c->waiter);
	cube_alarm_off(&c->limit);
	cube_alarm_off(&c->first);
	cube_alarm_off(&c->again);
}

/* ---- what the loop's thread is told ---- */

static void conn_deliver(struct cube_post *post);

static void conn_post(struct port_conn *c)
{
	if (c->posted)
		return;
	c->posted = true;
	c->refs++;
	c->post.fn = conn_deliver;
	cube_loop_post(c->domain->loop, &c->post);
}

/* After the relay has ended: nothing of it is open any more. */
static void conn_ended(struct port_conn *c)
{
	c->relay = NULL;
	conn_waits_not(c);
	cube_cancel_fire(c->cancel);
	if (c->uses)
		cube_use_end(c->cube);
	if (!cube_list_empty(&c->link)) {
		cube_list_remove(&c->link);
		c->port->n_conns--;
		cube_domain_own(c->domain)->n_port_conns--;
		cube_door_again(c->port->door);
		cube_doors_again(c->domain);
	}
	conn_unref(c);
}

static void conn_orphaned(struct port_conn *c)
{
	struct cube_relay *r = cube_steal(c->relay);

	cube_relay_cut(r);
	cube_gate_done(&c->gate);
	cube_close_auto(&c->far);
	cube_free(c);
}

static void conn_deliver(struct cube_post *post)
{
	struct port_conn *c = cube_container_of(post, struct port_conn, post);
	struct cube_domain *d = c->domain;
	struct cube_relay *r = c->relay;
	bool cut, late, dialed;
	int far, code;

	if (atomic_load(&c->orphan)) {
		conn_orphaned(c);
		return;
	}
	cube_domain_enter(d);
	c->posted = false;
	cut = c->cut;
	late = c->late;
	c->late = false;
	dialed = c->dial == CONN_DIALED;
	far = cube_steal_fd(&c->far);
	code = c->code;
	c->code = 0;
	if (r != NULL && cut) {
		cube_relay_cut(r);
		conn_ended(c);
		r = NULL;
	}
	cube_domain_leave(d);
	if (r != NULL && late) {
		c->asking = true;
		cube_relay_ask(r); /* may end it */
		c->asking = false;
		r = c->relay;
	}
	if (r != NULL && dialed && far >= 0)
		cube_relay_join(r, cube_steal_fd(&far));
	else if (r != NULL && dialed && code < 0)
		cube_relay_refuse(r, code);
	cube_close_auto(&far);
	cube_domain_enter(d);
	conn_unref(c);
	cube_domain_leave(d);
}

/* ---- to the other side ---- */

static void conn_dialed(struct port_conn *c, int far, int code)
{
	cube_alarm_off(&c->limit);
	/* Whoever has not said what it speaks cannot be told why: tried again when it does. */
	if (code < 0 && c->gate.state == CUBE_GATE_FIRST && c->relay != NULL && !c->cut) {
		c->dial = CONN_NEW;
		cube_alarm_set(c->domain, &c->limit, CONN_FIRST_MS);
		return;
	}
	c->dial = CONN_DIALED;
	c->far = far;
	c->code = code;
	conn_post(c);
}

static void conn_dial_run(struct cube_work *w)
{
	struct port_conn *c = cube_container_of(w, struct port_conn, work);
	struct cube_domain *d = c->domain;
	struct cube_err err = {0};
	int far = -1;
	int r = cube_backend_dial(c->cube->service->backend, c->id, &c->target, c->cancel, &far, &err);

	cube_domain_enter(d);
	cube_cancel_unref(cube_steal(c->cancel));
	if (r == -EAGAIN && c->relay != NULL && !c->cut && ++c->tries < CONN_TRIES)
		cube_alarm_set(d, &c->again, CONN_AGAIN_MS);
	else
		conn_dialed(c, far, r);
	conn_unref(c);
	cube_task_end(d);
	cube_domain_leave(d);
}

static void conn_dial(struct port_conn *c)
{
	struct cube_err err = {0};
	int r = c->port->removed ? -EHOSTDOWN : cube_cube_usable(c->cube, true, &err);

	if (r > 0) {
		cube_wait_add(&c->cube->changed, &c->waiter);
		return;
	}
	if (r == 0 && (c->cancel = cube_cancel_new()) == NULL)
		r = -ENOMEM;
	if (r < 0) {
		conn_dialed(c, -1, r);
		return;
	}
	c->refs++;
	c->work = (struct cube_work){.run = conn_dial_run,
				     .key = cube_backend_queue_key(c->cube->service->backend, c->cube)};
	(void)snprintf(c->id, sizeof(c->id), "%s", c->cube->id);
	cube_task_submit(c->domain, &c->work);
}

static void conn_dial_begin(struct port_conn *c)
{
	if (c->dial != CONN_NEW)
		return;
	c->dial = CONN_DIALING;
	if (!c->uses)
		cube_use_begin(c->cube);
	c->uses = true;
	conn_dial(c);
	if (c->dial == CONN_DIALING)
		cube_alarm_set(c->domain, &c->limit, CONN_READY_MS);
}

static void conn_woken(struct cube_waiter *w)
{
	conn_dial(cube_container_of(w, struct port_conn, waiter));
}

static void conn_again(struct cube_alarm *a)
{
	conn_dial(cube_container_of(a, struct port_conn, again));
}

/* Who has not shown a word in all that time is cut off; the others get the reason. */
static void conn_limit(struct cube_alarm *a)
{
	struct port_conn *c = cube_container_of(a, struct port_conn, limit);

	if (c->dial == CONN_DIALING) {
		conn_waits_not(c);
		cube_cancel_fire(c->cancel);
		if (c->cancel == NULL) /* else the work comes back */
			conn_dialed(c, -1, -ETIMEDOUT);
		return;
	}
	c->cut = true;
	conn_post(c);
}

static void conn_first(struct cube_alarm *a)
{
	struct port_conn *c = cube_container_of(a, struct port_conn, first);

	c->late = true;
	conn_post(c);
}

/* ---- what the relay asks ---- */

static bool conn_opens(void *ctx, const char *word)
{
	const struct port_conn *c = ctx;

	return cube_port_opens(c->port, word);
}

/* What follows from what was said: a connection inside, time for the rest of a line. */
static void conn_looked(struct port_conn *c, enum cube_relay_verdict v, const struct cube_buf *on)
{
	if (v == CUBE_RELAY_PASS || on->len > 0) {
		if (c->dial == CONN_NEW)
			cube_alarm_off(&c->limit);
		conn_dial_begin(c);
	}
	if (cube_gate_hesitates(&c->gate) && v == CUBE_RELAY_LOOK)
		cube_alarm_set(c->domain, &c->first, CONN_FIRST_MS);
	else
		cube_alarm_off(&c->first);
}

/* On the loop's thread, without the lock. */
static enum cube_relay_verdict conn_look(void *ctx, const char *data, size_t len, struct cube_buf *on,
					 struct cube_buf *back)
{
	struct port_conn *c = ctx;
	enum cube_relay_verdict v = CUBE_RELAY_LEAVE;

	cube_domain_enter(c->domain);
	if (!c->port->removed && !c->cut) {
		c->gate.open = c->port->open;
		v = cube_gate_look(&c->gate, data, len, len == 0 && !c->asking, on, back);
		if (v != CUBE_RELAY_LEAVE)
			conn_looked(c, v, on);
	}
	cube_domain_leave(c->domain);
	return v;
}

static void conn_refused(void *ctx, int code, struct cube_buf *back)
{
	const struct port_conn *c = ctx;
	char text[160];

	(void)snprintf(text, sizeof(text), "cubefs: port %.80s of the sandbox: %s\n", c->gate.port,
		       code == -ECONNREFUSED ? "nothing listens there" : cube_errno_text(code));
	cube_gate_answer(&c->gate, code == -EHOSTDOWN ? "503 Service Unavailable" : "502 Bad Gateway", text,
			 back);
}

static void conn_over(void *ctx)
{
	struct port_conn *c = ctx;
	struct cube_domain *d = c->domain;

	cube_domain_enter(d);
	conn_ended(c);
	cube_domain_leave(d);
}

static const struct cube_relay_handler conn_handler = {
	.look = conn_look, .refused = conn_refused, .ended = conn_over};

/* ---- for the door ---- */

static struct port_conn *conn_new(struct cube_port *p, int fd)
{
	struct port_conn *c = cube_calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	*c = (struct port_conn){.refs = 1, .domain = p->cube->domain, .far = -1, .target = p->target};
	cube_list_init(&c->link);
	cube_list_push(&cube_domain_own(c->domain)->port_conns, &c->all);
	cube_waiter_init(&c->waiter, conn_woken);
	cube_alarm_init(&c->limit, conn_limit);
	cube_alarm_init(&c->first, conn_first);
	cube_alarm_init(&c->again, conn_again);
	c->gate = (struct cube_gate){
		.open = p->open, .own = cube_peer_is_own(fd), .port = p->name, .opens = conn_opens, .ctx = c};
	(void)snprintf(c->gate.cookie, sizeof(c->gate.cookie), CUBE_HEAD_COOKIE "%s_%llx", p->cube->uid,
		       (unsigned long long)p->created_wall);
	c->port = cube_port_ref(p);
	c->cube = cube_cube_ref(p->cube);
	if (cube_gate_init(&c->gate) < 0 ||
	    (c->relay = cube_relay_new(c->domain->loop, fd, &conn_handler, c)) == NULL) {
		conn_unref(c);
		return NULL;
	}
	return c;
}

void cube_conn_through(struct cube_port *p, int fd)
{
	struct port_conn *c = conn_new(p, fd);

	if (c == NULL) {
		(void)close(fd);
		return;
	}
	cube_list_push(&p->conns, &c->link);
	p->n_conns++;
	cube_domain_own(c->domain)->n_port_conns++;
	/* Whoever may speak first inside: nothing need be said here before it is heard. */
	if (c->gate.own || c->gate.open)
		conn_dial_begin(c);
	else
		cube_alarm_set(c->domain, &c->limit, CONN_HEAD_MS);
}

void cube_conns_cut(struct cube_port *p)
{
	cube_list_each (i, &p->conns) {
		struct port_conn *c = cube_list_entry(i, struct port_conn, link);

		c->cut = true;
		conn_post(c);
	}
}

/* The loop has ended, so nobody else is here: what is posted runs when it is freed, after the domain is. */
void cube_conns_abandon(struct cube_domain *d)
{
	struct cube_list *all = &cube_domain_own(d)->port_conns;

	for (struct cube_list *i = cube_list_pop(all); i != NULL; i = cube_list_pop(all)) {
		struct port_conn *c = cube_list_entry(i, struct port_conn, all);

		conn_waits_not(c);
		cube_list_remove(&c->link);
		conn_post(c);
		cube_port_unref(cube_steal(c->port));
		cube_cube_unref(cube_steal(c->cube));
		atomic_store(&c->orphan, true);
	}
}
