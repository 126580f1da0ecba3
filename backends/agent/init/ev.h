/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's one event loop: descriptors, timers, the signals that reach process 1.
 *
 * One thread, one loop, so its state is the module's own. Callbacks never block.
 *
 * Names: what is exported inside this program begins with init_, since nothing of it is a library. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_EV_H
#define CUBEFS_BACKENDS_AGENT_INIT_EV_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/list.h"

#define INIT_MS UINT64_C(1000000) /* nanoseconds */

/* Embedded in what owns the descriptor. fn NULL: not watched. */
struct init_ev {
	int fd;
	uint32_t events;
	void (*fn)(struct init_ev *ev, uint32_t events);
};

/* Embedded timer; zeroed is "not running". */
struct init_timer {
	struct cube_list link;
	uint64_t at; /* monotonic nanoseconds; 0: not running */
	void (*fn)(struct init_timer *t);
};

/* 0 or -errno. Blocks all signals for the process and reads them from a descriptor. */
int init_ev_open(void (*on_child)(void), void (*on_signal)(int sig));

/* Level triggered (EPOLLIN, EPOLLOUT, ...). The descriptor stays the caller's. 0 or -errno. */
int init_ev_add(struct init_ev *ev, int fd, uint32_t events, void (*fn)(struct init_ev *, uint32_t));
void init_ev_mod(struct init_ev *ev, uint32_t events);
/* Before the descriptor is closed; harmless when it is not watched; no call comes after. */
void init_ev_del(struct init_ev *ev);

uint64_t init_now(void);
uint64_t init_wall(void);
/* Goes on while the machine is suspended, as init_now does not. */
uint64_t init_boottime(void);
/* @fn is called once, at @at or later (never before what had come by then was read: a message that moves a
 * time-out wins against it). Replaces an earlier setting. */
void init_timer_set(struct init_timer *t, uint64_t at, void (*fn)(struct init_timer *));
void init_timer_stop(struct init_timer *t);

/* Until init_ev_stop; @after is called after each round of events. */
void init_ev_run(void (*after)(void));
void init_ev_stop(void);

#endif
