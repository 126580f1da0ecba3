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
	const char *const *argv; /* NULL ended; argv[0] is looked up in PATH unless it has a '/' */
	const char *const *env;  /* NULL ended; NULL: a minimal one (PATH, LC_ALL=C) */
	int cwd;                 /* directory descriptor; -1: / */
	const int *fds;          /* descriptors that become 3, 4, ... in the child; all others are closed */
	unsigned nfds;
	int in, out;             /* 0 and 1 of the child; -1: /dev/null */
	struct cube_buf *text;   /* what it printed on 2 (and 1, if out is -1), up to the ceiling; may be NULL */
	int (*setup)(void *ctx); /* runs in the child before exec; 0 or -errno; async-signal-safe calls only */
	void *setup_ctx;
	uint32_t timeout_ms;     /* 0: none; then the child's group gets KILL, -ETIMEDOUT */
};

/* Blocks. 0 with the wait status in *ret_status; -EINTR when @cancel fired (child killed and reaped),
 * -ENOENT with a sentence when there is no such program, or setup's error. */
int cube_spawn_run(const struct cube_spawn *s, struct cube_cancel *cancel, int *ret_status, struct cube_err *err);

/* Starts it and leaves it running; the caller reaps *ret_pid. cancel and timeout are not looked at. */
int cube_spawn_start(const struct cube_spawn *s, pid_t *ret_pid, struct cube_err *err);

/* "exit code 3" or "signal KILL" for a wait status, with the last line of @text behind, if any. */
void cube_spawn_describe(int status, const struct cube_buf *text, char *out, size_t size);

#endif
