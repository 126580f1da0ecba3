/* SPDX-License-Identifier: Apache-2.0 */
/* A job's output: from its pipes or terminal into its spool.
 *
 * The agent owns the reading ends and moves what comes by splice(2), so that the bytes never pass through its
 * own memory. The spool is the daemon's file where one was handed over, else an unlinked file of ours.
 *
 * A full disk. Bytes that the spool would not take are read and thrown away, so that the command does not
 * hang: they are counted in `lost` and in no total, and the output goes on behind what was stored before. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_OUTPUT_H
#define CUBEFS_BACKENDS_AGENT_INIT_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/agent/init/ev.h"
#include "backends/agent/wire.h"

struct init_output;

struct init_pipe {
	struct init_ev ev; /* ev.fd: the reading end; -1 closed */
	struct init_output *output;
	bool err;   /* stderr */
	bool grown; /* has the larger buffer already */
	bool tty;   /* read, not spliced; ends with EIO */
	bool file;  /* splice does not work with this spool */
};

struct init_output {
	int out_fd, order_fd; /* ours; order_fd -1: merged */
	bool own;             /* the spool is not the daemon's */
	bool discard;         /* nobody will read it: everything is thrown away */
	struct cube_wire_output count;
	uint64_t limit, punched, checked;
	int last; /* for cube_spool_note */
	struct init_pipe pipes[2];
	void (*changed)(struct init_output *o); /* count is other than before, or a pipe has ended */
};

/* Takes the descriptors over (also when it fails). @order_fd -1: one pipe for both. */
void init_output_init(struct init_output *o, int out_fd, int order_fd, uint64_t limit,
		      void (*changed)(struct init_output *));
/* A spool of the agent's own: @separate says that there is an index. 0 or -errno. */
int init_output_own(struct init_output *o, bool separate);
/* Reads from @fd (nonblocking, taken over) from now on. 0 or -errno. */
int init_output_attach(struct init_output *o, int fd, bool err, bool tty);
/* Everything that was written up to now, and no more of what a child goes on writing. */
void init_output_drain(struct init_output *o);
/* A writer may still come. */
bool init_output_open(const struct init_output *o);
void init_output_done(struct init_output *o);

#endif
