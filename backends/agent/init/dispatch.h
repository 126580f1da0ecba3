/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the daemon: decoded, checked, and handed to a table of functions. Nothing here has an effect of
 * its own, so that it can be fuzzed. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_DISPATCH_H
#define CUBEFS_BACKENDS_AGENT_INIT_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/agent/wire.h"

#define INIT_SETS_MAX 32   /* sets of descriptors that came and whose START did not, yet */
#define INIT_FD_LOST  (-2) /* a descriptor that came, and for which the agent had no room */

/* All are required. A result below 0 closes the connection. */
struct init_handler {
	int (*hello)(const struct cube_wire_hello *m);
	/* @message (free(3)) and the descriptors (-1: none; INIT_FD_LOST) are taken over. */
	int (*start)(uint64_t job, const struct cube_wire_start *m, void *message, int out_fd, int order_fd);
	int (*input)(uint64_t job, const void *data, size_t len);
	int (*eof)(uint64_t job);
	int (*kill)(uint64_t job, int sig);
	int (*interrupt)(uint64_t job);
	int (*winsize)(uint64_t job, uint16_t rows, uint16_t cols);
	int (*timeout)(uint64_t job, uint32_t seconds);
	int (*forget)(uint64_t job);
	int (*session_close)(uint64_t session, bool reset);
	int (*kill_all)(int sig);
	int (*freeze)(bool on);
	int (*paused)(uint64_t ms);
	int (*ack)(uint64_t job, uint64_t upto);
	int (*resume)(uint64_t job, uint64_t from);
	int (*look)(void);
	int (*deadline)(uint64_t ms, enum cube_wire_end what);
};

/* What came with one message: a START's descriptors, for they are sent together and never received with
 * others. */
struct init_fd_set {
	int fds[2];
	unsigned n;
	bool lost; /* there were more than could be received: none is here */
};

struct init_dispatch {
	const struct init_handler *handler;
	struct cube_wire_join join;
	bool greeted;
	bool again; /* the stream may see one daemon after the other: a greeting begins anew */
	struct init_fd_set sets[INIT_SETS_MAX]; /* in the order in which they came */
	unsigned n_sets;
	int out_fd, order_fd; /* of the START that is being joined */
};

void init_dispatch_init(struct init_dispatch *d, const struct init_handler *handler);
/* Closes what nobody took. */
void init_dispatch_done(struct init_dispatch *d);
/* Descriptors that came with one message; taken over. @lost: not all were received. -EPROTO when there are
 * too many. */
int init_dispatch_fds(struct init_dispatch *d, const int *fds, unsigned n, bool lost);
/* One frame: 0, or what makes the connection end. */
int init_dispatch_frame(struct init_dispatch *d, const struct cube_wire_head *head, const void *body);

#endif
