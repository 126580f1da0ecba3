/* SPDX-License-Identifier: Apache-2.0 */
/* What a session's shell says through the fifo s. Anyone who is the session's user can write to it as well,
 * so nothing in it is believed to be well formed.
 *
 *     u UID GID               before the shell is there: whose it is
 *     i SEQ                   the input of command SEQ was opened
 *     v SEQ STATUS            variables and directory were set
 *     d SEQ STATUS OPTIONS PWD, e SEQ    command SEQ ended (PWD may have newlines; a ! before OPTIONS: the
 * shell is of no use any more) x PWD, e x              the shell is ending */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_SESSION_REPORT_H
#define CUBEFS_BACKENDS_AGENT_INIT_SESSION_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INIT_REPORT_MAX 8192

struct init_report_in {
	size_t len;
	char data[INIT_REPORT_MAX];
};

struct init_report {
	char kind; /* one of the letters above */
	uint64_t seq;
	uint32_t a, b;    /* u: uid, gid; v, d: status in a */
	char options[32]; /* d */
	char pwd[4097];   /* d, x: absolute, or "" */
};

/* Where to read the next bytes to; adds them with in->len. Never without room. */
char *init_report_space(struct init_report_in *in, size_t *ret_space);
/* The next report; false when none is complete. Lines that are none are passed over, and so are ends of other
 * commands than @seq. */
bool init_report_next(struct init_report_in *in, uint64_t seq, struct init_report *ret);

#endif
