/* SPDX-License-Identifier: Apache-2.0 */
/* A job's stdin: what the daemon sends, kept until the command takes it. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_INPUT_H
#define CUBEFS_BACKENDS_AGENT_INIT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/agent/init/ev.h"

struct init_input {
	struct init_ev ev;   /* ev.fd: the writing end; -1: none */
	int keep_fd;         /* a reading end that is held until the shell has opened its own; -1: none */
	bool tty;            /* a terminal's master, which stays open: its end of file is a character */
	bool ended;          /* no more will come */
	bool expected;       /* its writing end comes later: what is sent before is kept */
	unsigned char *data; /* waiting, from head to len; NULL: nothing */
	size_t head, len;
	uint64_t received, taken;
	uint64_t told;                          /* what the daemon knows of taken */
	void (*changed)(struct init_input *in); /* taken is other than before */
};

/* No input: empty from the start. */
void init_input_init(struct init_input *in, void (*changed)(struct init_input *));
/* Writes to @fd (nonblocking, taken over) from now on, first what was kept. 0 or -errno. */
int init_input_attach(struct init_input *in, int fd, bool tty);
/* -EMSGSIZE when more comes than the window allows: the sender does not keep to the rules. What nobody reads
 * any more is taken and thrown away. */
int init_input_add(struct init_input *in, const void *data, size_t len);
void init_input_end(struct init_input *in);
/* The reader is there: what was held for it is let go. */
void init_input_opened(struct init_input *in);
void init_input_done(struct init_input *in);

#endif
