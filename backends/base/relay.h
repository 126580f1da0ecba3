/* SPDX-License-Identifier: Apache-2.0 */
/* Two streams joined on the loop: what comes out of one goes into the other, both ways, until both ways have
 * ended. The near one is there from the start, the far one is joined later.
 *
 * Each way ends by itself (half-close). A side that does not read is not read for: at most CUBE_RELAY_BYTES wait
 * for it in memory, and then whoever sends waits. An idle relay holds no buffer and no thread.
 *
 * All of it on the loop's thread. */
#ifndef CUBEFS_BACKENDS_BASE_RELAY_H
#define CUBEFS_BACKENDS_BASE_RELAY_H

#include <stddef.h>

#include "backends/base/buf.h"
#include "backends/base/loop.h"

#define CUBE_RELAY_BYTES (128u << 10) /* each way; what `look` adds comes on top once */

struct cube_relay;

/* What to do with what came from the near side. */
enum cube_relay_verdict {
	CUBE_RELAY_LOOK, /* go on; the next bytes are looked at too */
	CUBE_RELAY_PASS, /* go on; nothing is looked at any more */
	CUBE_RELAY_LEAVE /* the near side gets what was added for it, and then the end */
};

struct cube_relay_handler {
	/* Bytes of the near side: adds to @on what the far side shall get, to @back what the near one shall. @len
	 * 0: nothing more comes from it, or cube_relay_ask was called. NULL: all passes. */
	enum cube_relay_verdict (*look)(void *ctx, const char *data, size_t len, struct cube_buf *on,
					struct cube_buf *back);
	/* There is no far side (cube_relay_refuse), or it did not come about: @code. May add to @back what the
	 * near side gets before the end. NULL: nothing. */
	void (*refused)(void *ctx, int code, struct cube_buf *back);
	/* It is over and both descriptors are closed; the relay is gone when this returns. Not after
	 * cube_relay_cut. */
	void (*ended)(void *ctx);
};

/* Takes the descriptor of a connected socket. NULL: out of memory, it is still the caller's. */
struct cube_relay *cube_relay_new(struct cube_loop *l, int near_fd, const struct cube_relay_handler *handler,
				  void *ctx);
/* The far side: a socket that is connected, or non-blocking and about to be. Takes it. Once. */
void cube_relay_join(struct cube_relay *r, int far_fd);
void cube_relay_refuse(struct cube_relay *r, int code);
/* Calls `look` without bytes, unless nothing is looked at any more. */
void cube_relay_ask(struct cube_relay *r);
/* Ends it at once and frees it. NULL is harmless. */
void cube_relay_cut(struct cube_relay *r);

#endif
