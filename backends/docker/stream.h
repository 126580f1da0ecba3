/* SPDX-License-Identifier: Apache-2.0 */
/* A stream that the engine gives ("hijacked": attach, exec) as a socket of ours, moved on the loop. */
#ifndef CUBEFS_BACKENDS_DOCKER_STREAM_H
#define CUBEFS_BACKENDS_DOCKER_STREAM_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/base/cancel.h"
#include "backends/base/err.h"
#include "backends/base/list.h"

struct cube_docker;

/* Those of one backend. */
struct docker_streams {
	pthread_mutex_t lock;
	struct cube_list all;
};

void docker_streams_init(struct docker_streams *s);
/* After the loop has ended: ends those that are left. */
void docker_streams_done(struct docker_streams *s);

/* Attaches to the first process of @id, which must run: what is written to *ret_fd is its input, what it prints is read
 * there, without what it prints as errors. The engine's end is the end of file there, and the other way round. The
 * process itself notices nothing of either. Blocks, interrupted by @cancel. */
int docker_stream_attach(struct cube_docker *d, const char *id, struct cube_cancel *cancel, int *ret_fd,
			 struct cube_err *err);

/* ---- the framing, for tests ---- */

/* What the engine puts before each piece: whose it is, and its length. All zero at first. */
struct docker_frames {
	unsigned char head[8];
	unsigned n_head;
	uint32_t left; /* of the piece */
};
#define DOCKER_FRAME_OUT 1
/* Looks at @len bytes of a stream: *ret_skip bytes to pass over, and the number of bytes behind them that the process
 * printed, which may be 0; -EPROTO: this is no such stream. The caller goes on behind both. */
ssize_t docker_frames_next(struct docker_frames *f, const unsigned char *data, size_t len, size_t *ret_skip);

#endif
