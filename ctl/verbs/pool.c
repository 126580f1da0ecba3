/* SPDX-License-Identifier: Apache-2.0 */
/* drain and refill of a pool: they return when it is empty, or full. */
#include <errno.h>

#include "ctl/stock_priv.h"
#include "ctl/verbs/verbs.h"

/* 0 it has come to that, 1 not yet, negative it cannot (err is filled). */
typedef int pool_look(struct cube_stock *p, struct cube_err *err);

static int pool_closing(const struct cube_stock *p, const char *verb, struct cube_err *err)
{
	return p->service->domain->closing ? cube_fail(err, -EHOSTDOWN, "%s: the daemon is ending", verb) : 0;
}

static int drain_look(struct cube_stock *p, struct cube_err *err)
{
	int r = pool_closing(p, "drain", err);

	return r < 0 ? r : cube_stock_ending(p) > 0;
}

static int refill_look(struct cube_stock *p, struct cube_err *err)
{
	int r = pool_closing(p, "refill", err);

	if (r < 0)
		return r;
	if (p->removed || p->drained)
		return cube_fail(err, -EHOSTDOWN, "refill: pool '%s' was %s meanwhile", p->name,
				 p->removed ? "removed" : "drained");
	if (p->failures > 0) {
		*err = p->failure;
		return cube_fail_in(err, "refill '%s'", p->name);
	}
	return cube_stock_ready(p) < p->max;
}

static void pool_step(struct cube_verb_call *call, struct cube_waitq *q, pool_look *look)
{
	int r = look(call->object, &call->err);

	if (r == 1)
		cube_wait_add(q, &call->waiter);
	else
		cube_verb_finish(call, r);
}

static void drain_wake(struct cube_waiter *w)
{
	struct cube_verb_call *call = cube_container_of(w, struct cube_verb_call, waiter);

	pool_step(call, &call->domain->changed, drain_look); /* which tells of what was destroyed */
}

static void refill_wake(struct cube_waiter *w)
{
	struct cube_verb_call *call = cube_container_of(w, struct cube_verb_call, waiter);
	struct cube_stock *p = call->object;

	pool_step(call, &p->changed, refill_look);
}

static int drain_run(struct cube_verb_call *call, struct cube_err *err)
{
	int r = cube_stock_drain(call->object, err);

	if (r == 0)
		r = drain_look(call->object, err);
	if (r == 1) {
		cube_waiter_init(&call->waiter, drain_wake);
		cube_wait_add(&call->domain->changed, &call->waiter);
	}
	return r;
}

static int refill_run(struct cube_verb_call *call, struct cube_err *err)
{
	struct cube_stock *p = call->object;
	int r = cube_stock_refill(p, err);

	if (r == 0)
		r = refill_look(p, err);
	if (r == 1) {
		cube_waiter_init(&call->waiter, refill_wake);
		cube_wait_add(&p->changed, &call->waiter);
	}
	return r;
}

const struct cube_verb cube_verb_pool_drain = {
	.name = "drain",
	.args = "",
	.summary = "keep none until it is refilled; returns when those that were kept are gone",
	.run = drain_run,
};

const struct cube_verb cube_verb_pool_refill = {
	.name = "refill",
	.args = "",
	.summary = "keep as many as `size` says, now; returns when they are ready",
	.run = refill_run,
};
