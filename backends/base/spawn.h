/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a helper program and waits for it: crun, fusermount3, pasta. */
#ifndef CUBEFS_BACKENDS_BASE_SPAWN_H
#define CUBEFS_BACKENDS_BASE_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/base/buf.h"
#include "backends/base/cancel.h"
#include "backends/base/err.h"

struct cube_spawn {
	const char *const *argv; /* NULL ended; argv[0] is looked up in our PATH unless it has a '/' */
	const char *const *env;  /* NULL ended; NULL: a minimal one (our PATH, LC_ALL=C) */
	int cwd;                 /* directory descriptor; -1: / */
	const int *fds; /* become 3, 4, ... in the child, one may be there twice; all others are closed */
	unsigned nfds;
	int in, out;           /* 0 and 1 of the child; -1: /dev/null */
	struct cube_buf *text; /* gets what it prints on 2 (and 1, if out is -1), up to the ceiling, the rest
				  is dropped; NULL (and in cube_spawn_start): /dev/null */
	/* Runs in the child first, in a copy of our memory and with our descriptors, before its directory and
	 * descriptors are set. 0 or -errno. System calls only, none that waits, and of the functions of the C
	 * library none that knows of threads (setresuid and its kin tell all of them). May be NULL. */
	int (*setup)(void *ctx);
	void *setup_ctx;
	const int *group;    /* directory of a v2 control group that it is born in; NULL: ours */
	uint32_t timeout_ms; /* 0: none; then the child's group gets KILL, -ETIMEDOUT */
};

/* The child leads a session of its own, with no signal blocked, ignored or handled, whatever the caller's
 * thread does. The process must not ignore SIGCHLD, nor wait for children that are not its own business. */

/* Blocks until the program itself ended; what it leaves behind running delays nobody. Any thread. 0 with the
 * wait status in *ret_status; -EINTR when @cancel fired, -ETIMEDOUT (both: its group killed, the child
 * reaped; @text has what came until then), -ENOENT when there is no such program, setup's error, or what exec
 * says. */
int cube_spawn_run(const struct cube_spawn *s, struct cube_cancel *cancel, int *ret_status,
		   struct cube_err *err);

/* Starts it and leaves it running; returns when it has been exec'ed, or with why not as above. The caller
 * reaps *ret_pid. text and timeout_ms are not looked at. */
int cube_spawn_start(const struct cube_spawn *s, pid_t *ret_pid, struct cube_err *err);

/* "exit code 3" or "signal KILL" for a wait status, with ": " and the last line of @text behind, if any (as
 * it is: cube_fail escapes). @text may be NULL. */
void cube_spawn_describe(int status, const struct cube_buf *text, char *out, size_t size);

#endif
