/* SPDX-License-Identifier: Apache-2.0 */
/* What listens in a sandbox: its backend is asked behind, for all of it, or by a connection for one. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"
#include "ctl/ports/port.h"

#define KNOCK_MS       200  /* for a connection that is under way */
#define KNOCK_AGAIN_MS 100u /* until the next */

struct inside_work {
	struct cube_work work;
	struct cube_cube *cube; /* referenced */
	struct cube_port *port; /* referenced; of a knock */
	char id[CUBE_ID_MAX + 1];
	struct cube_target target;
	struct cube_listener *found;
	size_t n, cap;
	bool lost; /* memory */
};

static struct inside_work *inside_new(struct cube_cube *c, void (*run)(struct cube_work *w))
{
	struct inside_work *iw = cube_calloc(1, sizeof(*iw));

	if (iw == NULL)
		return NULL;
	iw->work = (struct cube_work){.run = run, .key = cube_backend_queue_key(c->service->backend, c)};
	iw->cube = cube_cube_ref(c);
	(void)snprintf(iw->id, sizeof(iw->id), "%s", c->id);
	return iw;
}

static void inside_end(struct inside_work *iw)
{
	struct cube_domain *d = iw->cube->domain;

	cube_port_unref(iw->port);
	cube_cube_unref(iw->cube);
	cube_task_end(d);
	cube_domain_leave(d);
	cube_free(iw->found);
	cube_free(iw);
}

static bool inside_runs(const struct cube_cube *c)
{
	return c->id != NULL && !c->domain->closing &&
	       (c->phase == CUBE_RUNNING || c->phase == CUBE_PAUSED) &&
	       (c->service->backend->caps & CUBE_CAP_PORTS) != 0;
}

/* ---- all of it ---- */

static void inside_found(void *ctx, const struct cube_listener *l)
{
	struct inside_work *iw = ctx;

	if (iw->n == iw->cap) {
		size_t cap = iw->cap * 2 + 8;
		struct cube_listener *grown = cube_realloc(iw->found, cap * sizeof(*grown));

		if (grown == NULL) {
			iw->lost = true;
			return;
		}
		iw->found = grown;
		iw->cap = cap;
	}
	iw->found[iw->n++] = *l;
}

static int inside_order(const void *a, const void *b)
{
	const struct cube_listener *x = a, *y = b;

	if (x->target.kind != y->target.kind)
		return x->target.kind < y->target.kind ? -1 : 1;
	if (x->target.port != y->target.port)
		return x->target.port < y->target.port ? -1 : 1;
	int r = strcmp(x->target.path, y->target.path);
	return r != 0 ? r : strcmp(x->address, y->address);
}

static void inside_run(struct cube_work *w)
{
	struct inside_work *iw = cube_container_of(w, struct inside_work, work);
	struct cube_ports *ports = &iw->cube->ports;
	int r = cube_backend_listening(iw->cube->service->backend, iw->id, inside_found, iw, NULL);

	if (iw->n > 0)
		qsort(iw->found, iw->n, sizeof(*iw->found), inside_order);
	cube_domain_enter(iw->cube->domain);
	if (!iw->lost) {
		struct cube_listener *old = ports->open;

		ports->open = r == 0 ? iw->found : NULL;
		ports->n_open = r == 0 ? iw->n : 0;
		iw->found = r == 0 ? old : iw->found;
		if (r < 0)
			cube_free(old);
	}
	cube_asked_answer(&ports->asked);
	inside_end(iw);
}

void cube_ports_ask(struct cube_cube *c)
{
	struct cube_ports *ports = &c->ports;
	struct inside_work *iw;

	if (ports->asked.asking)
		return;
	iw = inside_runs(c) ? inside_new(c, inside_run) : NULL;
	if (iw == NULL) { /* nothing runs, so nothing listens */
		cube_free(cube_steal(ports->open));
		ports->n_open = 0;
		cube_asked_answer(&ports->asked);
		return;
	}
	ports->asked.asking = true;
	cube_task_submit(c->domain, &iw->work);
}

bool cube_port_listening(const struct cube_port *p)
{
	const struct cube_ports *ports = &p->cube->ports;

	for (size_t i = 0; i < ports->n_open; i++) {
		const struct cube_target *t = &ports->open[i].target;

		if (t->kind == p->target.kind && t->port == p->target.port &&
		    strcmp(t->path, p->target.path) == 0)
			return true;
	}
	return false;
}

/* ---- one ---- */

static bool knock_answered(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t size = sizeof(int);
	int code = 0;

	return poll(&p, 1, KNOCK_MS) == 1 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) == 0 &&
	       code == 0;
}

static void knock_later(struct cube_port *p)
{
	if (!p->removed)
		cube_alarm_set(p->cube->domain, &p->again, KNOCK_AGAIN_MS);
}

static void knock_run(struct cube_work *w)
{
	struct inside_work *iw = cube_container_of(w, struct inside_work, work);
	cube_auto_fd fd = -1;
	int r = cube_backend_dial(iw->cube->service->backend, iw->id, &iw->target, NULL, &fd, NULL);
	bool answers = (r == 0 && knock_answered(fd)) || r == -EAGAIN;

	cube_domain_enter(iw->cube->domain);
	iw->port->knocking = false;
	iw->port->answers = answers;
	iw->port->knocks++;
	if (answers)
		cube_wake(&iw->port->changed);
	else
		knock_later(iw->port);
	inside_end(iw);
}

void cube_port_knock(struct cube_port *p)
{
	struct inside_work *iw;

	if (p->knocking || p->removed || cube_alarm_is_on(&p->again))
		return;
	iw = inside_runs(p->cube) ? inside_new(p->cube, knock_run) : NULL;
	if (iw == NULL) {
		knock_later(p);
		return;
	}
	iw->port = cube_port_ref(p);
	iw->target = p->target;
	p->knocking = true;
	p->answers = false;
	cube_task_submit(p->cube->domain, &iw->work);
}
