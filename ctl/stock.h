/* SPDX-License-Identifier: Apache-2.0 */
/* A pool: sandboxes that are kept started, as `backends/NAME/pools/P` shows it. Called a stock here, since
 * base/pool.h has the pool of threads. Under the domain lock.
 *
 * The sandboxes of a pool are sandboxes like all others, with a directory in the state and processes, but without
 * a name in the root: no listing, count or event has them. `create NAME pool=P` takes the oldest one that is
 * ready and gives it the name, or makes one that was not kept (a *cold* one) where none is.
 *
 * What was asked for (template, size, drained) is on disk, and so is of every kept sandbox whose it is and after
 * which template it was made. A daemon that is killed between two steps leaves a sandbox that is kept still,
 * or one that has been taken by a create that was cut off, which is destroyed like any other. */
#ifndef CUBEFS_CTL_STOCK_H
#define CUBEFS_CTL_STOCK_H

#include "backends/base/buf.h"
#include "ctl/alarm.h"
#include "ctl/cube.h"
#include "ctl/linelog.h"

#define CUBE_STOCK_MAX  1000u  /* sandboxes of a pool */
#define CUBE_STOCK_COLD "cold" /* no name for a pool: what `status` says of a cold one */

struct cube_stock {
	unsigned refs;
	struct cube_list link; /* service.stocks */
	struct cube_service *service;
	uint64_t seq;
	char name[CUBE_NAME_MAX + 1];
	bool removed;
	uint64_t born_wall;
	/* what was asked for, on disk */
	char *template;    /* a create line without the name; "" for the defaults */
	uint64_t revision; /* one more with each template */
	uint32_t min, max; /* filled up to max as soon as fewer than min are there */
	bool drained;
	/* what there is */
	struct cube_list cubes; /* cube.link, the oldest first */
	bool filling;
	bool kicking, kick_again; /* stock_fill.c */
	unsigned failures;        /* in a row */
	struct cube_err failure;
	struct cube_alarm again; /* the next attempt after a failure */
	uint64_t again_wall;
	uint64_t made, taken, cold; /* since the daemon's start */
	struct cube_linelog log;
	struct cube_waitq changed;
	void *tree_data;
};

/* mkdir, rmdir. -EEXIST, -EINVAL. rmdir destroys the kept ones behind; those that were taken stay. */
int cube_stock_create(struct cube_service *s, const char *name, struct cube_stock **ret,
		      struct cube_err *err);
int cube_stock_remove(struct cube_stock *p, struct cube_err *err);
struct cube_stock *cube_stock_find(struct cube_service *s, const char *name);
struct cube_stock *cube_stock_next(struct cube_service *s, uint64_t seq);
struct cube_stock *cube_stock_ref(struct cube_stock *p);
void cube_stock_unref(struct cube_stock *p);

/* The texts of `template` (one line) and `size` ("N" or "MIN MAX"), without the newline. check: -EINVAL, -ENOENT and
 * whatever a create with that line would be refused with, nothing changed. set: checks, and is on disk on return. */
int cube_stock_check_template(struct cube_stock *p, const char *text, struct cube_err *err);
int cube_stock_check_size(const char *text, uint32_t *ret_min, uint32_t *ret_max, struct cube_err *err);
int cube_stock_set_template(struct cube_stock *p, const char *text, struct cube_err *err);
int cube_stock_set_size(struct cube_stock *p, const char *text, struct cube_err *err);
/* drain: none is kept until it is refilled, those that are kept are destroyed behind. refill: as many as there should
 * be, at once, after failures too. */
int cube_stock_drain(struct cube_stock *p, struct cube_err *err);
int cube_stock_refill(struct cube_stock *p, struct cube_err *err);

/* "off", "drained", "failing", "filling", "ready" */
const char *cube_stock_state(const struct cube_stock *p);
unsigned cube_stock_ready(const struct cube_stock *p);
unsigned cube_stock_making(const struct cube_stock *p);
/* Sandboxes of it that are being destroyed. */
unsigned cube_stock_ending(const struct cube_stock *p);

#endif
