/* SPDX-License-Identifier: Apache-2.0 */
/* The link (backends/link.h) to cube-init over a connected stream.
 *
 * Two kinds of stream. Over a unix socket descriptors are passed: a job's spool is handed to the agent, which
 * writes it. Over anything else the agent sends the output and this end writes it: of a job that an earlier link
 * started, once it was told where (cube_link_adopt).
 *
 * What the agent says is not believed: frames are bounded, a job that was neither started here nor reported
 * is passed over, totals never go backwards, and while a job runs they are held against the size of its spool
 * file. What breaks the protocol takes the link down. */
#ifndef CUBEFS_BACKENDS_AGENT_LINK_H
#define CUBEFS_BACKENDS_AGENT_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/err.h"
#include "backends/base/loop.h"
#include "backends/link.h"

/* A link over @fd, which is taken over on success (and made nonblocking). @pass_fds: it is a unix socket.
 * From any thread; returns at once, and `up` follows when the agent has answered. -ENOMEM, or what fcntl
 * gives. */
int cube_agent_link_new(struct cube_loop *loop, int fd, bool pass_fds, const struct cube_link_handler *h,
			void *ctx, struct cube_link **ret, struct cube_err *err);

/* Who knows of the kills by the memory limit there. Any thread, without blocking. */
struct cube_agent_oom {
	uint64_t (*count)(void *ctx); /* so far; taken at the start of each job */
	/* Was there one above that count that no other job's end was? Asked when a job ended by a KILL that nobody
	 * here sent: true makes it CUBE_END_OOM. */
	bool (*probe)(void *ctx, uint64_t count);
	void *ctx;
};
/* Right after cube_agent_link_new. @oom is copied. */
void cube_agent_link_set_oom(struct cube_link *l, const struct cube_agent_oom *oom);

/* Right after cube_agent_link_new: the clock inside stands still in a pause, so time-outs do not move by it. */
void cube_agent_link_set_still_clock(struct cube_link *l);

/* What the agent said in its greeting: CUBE_WIRE_CAP_ bits (wire.h); 0 before `up`. Any thread. */
uint64_t cube_agent_link_caps(struct cube_link *l);

#endif
