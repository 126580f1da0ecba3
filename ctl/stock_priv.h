/* SPDX-License-Identifier: Apache-2.0 */
/* What stock.c, stock_fill.c and stock_take.c share with each other and with the rest of ctl/. */
#ifndef CUBEFS_CTL_STOCK_PRIV_H
#define CUBEFS_CTL_STOCK_PRIV_H

#include "ctl/ctl_priv.h"
#include "ctl/stock.h"

/* ---- stock.c ---- */

int cube_stocks_load(struct cube_domain *d, struct cube_service *s, struct cube_err *err);
void cube_stocks_close(struct cube_service *s);
/* All kept sandboxes. @fn may remove the one that it is given. */
void cube_stocks_each(struct cube_domain *d, void (*fn)(struct cube_cube *c));
void cube_stock_say(struct cube_stock *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- stock_fill.c ---- */

/* From here on it is kept in @p: a new one, or one that was loaded. */
void cube_stock_keep(struct cube_stock *p, struct cube_cube *c);
/* One was taken: another one is made in its place, a moment later. */
void cube_stock_took(struct cube_stock *p);
/* It is not any more: taken, or about to be destroyed. */
void cube_stock_let_go(struct cube_cube *c);
/* What is kept and what should be: makes, drops, and wakes who waits for it. */
void cube_stock_kick(struct cube_stock *p);
void cube_stocks_kick(struct cube_domain *d); /* all, at the start */
bool cube_stock_is_ready(const struct cube_stock *p, struct cube_cube *c);

/* ---- stock_take.c ---- */

/* A create line with pool=: the pool, and the line of its template with the keys of the caller's in it. */
struct cube_stock_order {
	struct cube_stock *stock; /* NULL: no pool in the line; keys and n are the caller's */
	const struct cube_create_key *keys;
	size_t n;
	char **words; /* owned, what keys point into */
	struct cube_create_key *own;
};
int cube_stock_order(struct cube_domain *d, const struct cube_create_key *keys, size_t n,
		     struct cube_stock_order *ret, struct cube_err *err);
/* The line of a template alone. */
int cube_stock_order_template(struct cube_stock *p, const char *template, struct cube_stock_order *ret,
			      struct cube_err *err);
void cube_stock_order_done(struct cube_stock_order *o);
/* Gives the oldest ready one what @wanted has (name, environment, labels), as accepted as any creation:
 * it is the caller's to enlist and to set going with CUBE_OP_TAKE. NULL: none is ready, @wanted is made cold. */
struct cube_cube *cube_stock_take(struct cube_stock *p, struct cube_cube *wanted);

#endif
