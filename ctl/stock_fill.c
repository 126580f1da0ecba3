/* SPDX-License-Identifier: Apache-2.0 */
/* What a pool keeps and what it should keep: sandboxes are made, those that ended or are out of date dropped.
 *
 * One function looks at all of it (cube_stock_kick) and is called whenever anything may have changed: a kept
 * sandbox's state, the pool's size, a failure that is long enough ago. Creations are few at once, so that a pool
 * does not slow down everybody else, and after a failure rarer from time to time. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "ctl/event.h"
#include "ctl/stock_priv.h"

#define STOCK_AT_ONCE  4u      /* creations under way */
#define STOCK_AFTER_MS 10u     /* from the taking of one to the making of the next */
#define STOCK_RETRY_MS 1000u   /* after the first failure, then twice as long, */
#define STOCK_RETRIES  8u      /* so many times */
#define STOCK_LATE_MS  300000u /* at most */

/* ---- Looking ---- */

bool cube_stock_is_ready(const struct cube_stock *p, struct cube_cube *c)
{
	const struct cube_own *own = cube_own(c);

	return c->phase == CUBE_RUNNING && own->op == NULL && own->stock_revision == p->revision &&
	       (cube_conn_ready(c) || !(c->service->backend->caps & CUBE_CAP_EXEC));
}

unsigned cube_stock_ready(const struct cube_stock *p)
{
	unsigned n = 0;

	cube_list_each (i, &p->cubes)
		n += cube_stock_is_ready(p, cube_list_entry(i, struct cube_cube, link));
	return n;
}

unsigned cube_stock_making(const struct cube_stock *p)
{
	unsigned n = 0;

	cube_list_each (i, &p->cubes)
		n += cube_list_entry(i, struct cube_cube, link)->phase == CUBE_CREATING;
	return n;
}

unsigned cube_stock_ending(const struct cube_stock *p)
{
	unsigned n = 0;

	cube_list_each (i, &cube_domain_own(p->service->domain)->dying) {
		struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);

		n += cube_own(c)->unseen && c->service == p->service && c->pool != NULL &&
		     strcmp(c->pool, p->name) == 0;
	}
	return n;
}

static unsigned stock_count(const struct cube_stock *p)
{
	unsigned n = 0;

	cube_list_each (i, &p->cubes)
		n++;
	return n;
}

const char *cube_stock_state(const struct cube_stock *p)
{
	if (p->max == 0)
		return "off";
	if (p->drained)
		return "drained";
	if (p->failures > 0)
		return "failing";
	return p->filling || cube_stock_ready(p) < p->min ? "filling" : "ready";
}

/* ---- What is kept ---- */

static void stock_wake(struct cube_waiter *w)
{
	struct cube_own *own = cube_container_of(w, struct cube_own, stock_wait);

	cube_wait_add(&own->c.changed, w);
	cube_stock_kick(own->stock);
}

void cube_stock_keep(struct cube_stock *p, struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);

	own->stock = p;
	own->unseen = true;
	cube_list_push(&p->cubes, &c->link);
	cube_waiter_init(&own->stock_wait, stock_wake);
	cube_wait_add(&c->changed, &own->stock_wait);
}

void cube_stock_let_go(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);

	own->stock = NULL;
	cube_wait_remove(&own->stock_wait);
	cube_list_remove(&c->link);
}

/* Not at once: a creation is work, and who has just been served shall not wait for it. */
void cube_stock_took(struct cube_stock *p)
{
	if (!cube_alarm_is_on(&p->again))
		cube_alarm_set(p->service->domain, &p->again, STOCK_AFTER_MS);
}

/* ---- Failures ---- */

static void stock_failed(struct cube_stock *p, const struct cube_err *err)
{
	unsigned shift = p->failures < STOCK_RETRIES ? p->failures : STOCK_RETRIES;
	uint64_t ms = (uint64_t)STOCK_RETRY_MS << shift;

	if (ms > STOCK_LATE_MS)
		ms = STOCK_LATE_MS;
	p->failures++;
	p->failure = *err;
	p->again_wall = cube_clock_wall() + ms * UINT64_C(1000000);
	cube_stock_say(p, "failed: %s; the next attempt is in %llu s", err->text,
		       (unsigned long long)ms / 1000);
	cube_alarm_set(p->service->domain, &p->again, ms);
}

/* Why it is of no use; false: it is, or will be. */
static bool stock_ended(struct cube_cube *c, struct cube_err *err)
{
	if (c->phase == CUBE_ERROR) {
		*err = c->failure;
		return true;
	}
	if (c->phase != CUBE_STOPPED)
		return false;
	(void)cube_fail(err, -EHOSTDOWN, "a sandbox that was kept ended: %s", cube_cube_why(c));
	return true;
}

static void stock_drop(struct cube_stock *p, struct cube_cube *c, const char *why)
{
	struct cube_err err = {0};

	cube_stock_say(p, "%s goes: %s", c->uid, why);
	if (cube_cube_remove(c, NULL, &err) < 0) {
		cube_stock_say(p, "%s", err.text);
		cube_alarm_set(p->service->domain, &p->again, STOCK_RETRY_MS);
	}
}

/* ---- Keeping ---- */

static void stock_note_ready(struct cube_stock *p, struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);

	if (!cube_stock_is_ready(p, c))
		return;
	own->stock_old = false;
	if (own->stock_told)
		return;
	own->stock_told = true;
	p->made++;
	p->failures = 0;
	p->failure = (struct cube_err){0};
	cube_stock_say(p, "%s is ready", c->uid);
}

/* What does not belong to it any more. */
static void stock_tidy(struct cube_stock *p)
{
	unsigned room = p->drained ? 0 : p->max;

	cube_list_each (i, &p->cubes) {
		struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);
		struct cube_err err = {0};

		stock_note_ready(p, c);
		if (stock_ended(c, &err)) {
			if (!cube_own(c)->stock_old)
				stock_failed(p, &err);
			stock_drop(p, c, "it does not run");
		} else if (cube_own(c)->stock_revision != p->revision) {
			stock_drop(p, c, "the template is another one");
		} else if (room == 0) {
			stock_drop(p, c, p->drained ? "drained" : "the pool is smaller");
		} else {
			room--;
		}
	}
}

static bool stock_make(struct cube_stock *p)
{
	struct cube_err err = {0};

	if (cube_create_kept(p, &err) == 0)
		return true;
	stock_failed(p, &err);
	return false;
}

static void stock_fill(struct cube_stock *p)
{
	unsigned n = stock_count(p), making = cube_stock_making(p);

	if (n < p->min)
		p->filling = true;
	while (p->filling && !p->drained && n < p->max && making < STOCK_AT_ONCE &&
	       !cube_alarm_is_on(&p->again)) {
		if (!stock_make(p))
			return;
		n++;
		making++;
	}
	if (n >= p->max && making == 0)
		p->filling = false;
}

void cube_stock_kick(struct cube_stock *p)
{
	struct cube_domain *d = p->service->domain;

	p->kick_again = true;
	if (p->kicking || p->removed || d->closing || !cube_domain_own(d)->stocks_go)
		return;
	p->kicking = true;
	while (p->kick_again) { /* by what it does itself */
		p->kick_again = false;
		stock_tidy(p);
		stock_fill(p);
	}
	p->kicking = false;
	cube_wake(&p->changed);
}

void cube_stocks_kick(struct cube_domain *d)
{
	cube_domain_own(d)->stocks_go = true;
	cube_list_each (i, &d->services) {
		struct cube_service *s = cube_list_entry(i, struct cube_service, link);

		cube_list_each (k, &s->stocks)
			cube_stock_kick(cube_list_entry(k, struct cube_stock, link));
	}
}
