/* SPDX-License-Identifier: Apache-2.0 */
/* Within ctl/: the link to the agent of a sandbox (conn.c). Under the lock unless said otherwise. */
#ifndef CUBEFS_CTL_CONN_PRIV_H
#define CUBEFS_CTL_CONN_PRIV_H

#include "ctl/cube.h"
#include "ctl/domain.h"

struct cube_conn {
	struct cube_list link; /* domain_own.conns */
	struct cube_post post; /* closes it on the loop's thread */
	struct cube_domain *domain;
	struct cube_cube *cube;  /* borrowed: a live connection ends before its sandbox */
	struct cube_link *agent; /* NULL until the backend gave it */
	struct cube_cancel *cancel;
	bool synced;
	bool dead;    /* abandoned: what still comes is dropped */
	bool closing; /* posted */
	uint64_t boot;
	uint64_t ready_mono; /* since when it is usable; 0: not yet */
};

/* Starts making a link (behind). */
int cube_conn_begin(struct cube_cube *c, struct cube_err *err);
/* Gives up the link or the attempt. */
void cube_conn_drop(struct cube_cube *c);
/* On a pool thread, no lock: what runs in it was ended, and what the agent said last is on its way. Waits until
 * it was heard and the link is down, for a few seconds at most, or until @cancel fires. */
void cube_conn_drain(struct cube_cube *c, const struct cube_cancel *cancel);
bool cube_conn_ready(const struct cube_cube *c);
/* If it runs, has no link and nothing is about to make one: start. */
void cube_conn_settle(struct cube_cube *c);
/* Later: look at the backend what became of it, and make a link if it runs. */
void cube_conn_again(struct cube_cube *c);
void cube_cube_inspect(struct cube_cube *c);  /* now */
void cube_conns_close(struct cube_domain *d); /* after the loop ended */

#endif
