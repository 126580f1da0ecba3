/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between the kernel and us, before libfuse sees them and after it made them.
 *
 * libfuse reads and writes through here. Each message passes a table of hooks, in the order in which they were
 * added: what comes in may be looked at, changed or taken out, what goes out too. They run on the thread that
 * serves the request, hold nothing, and must not block. All are added before the session runs.
 *
 * The kernel's own structures are those of <linux/fuse.h>, which cannot be included beside libfuse's headers. */
#ifndef CUBEFS_FS_FUSE_WIRE_H
#define CUBEFS_FS_FUSE_WIRE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define CUBE_WIRE_HOOKS 8
#define CUBE_WIRE_IOV   8

struct fuse_in_header;
struct fuse_out_header;
struct fuse_init_out;

/* Set by the kernel in `unique` of a request that it sends again: its answer has it too. */
#define CUBE_WIRE_RESENT (UINT64_C(1) << 63)

/* A request: `head` and what is behind it, @len bytes in a buffer of @size. */
struct cube_wire_in {
	struct fuse_in_header *head;
	size_t len, size;
};

/* A reply or (unique 0) a notification. iov[0] is `head`, a copy that may be changed; a body may be put in the place
 * of another, as long as head->len stays the sum. What it points to must live until the hook `written` was called. */
struct cube_wire_out {
	struct fuse_out_header *head;
	struct iovec iov[CUBE_WIRE_IOV];
	int count;
};

struct cube_wire_hook {
	void *ctx;
	/* false: it is dealt with, libfuse does not get it. NULL: nothing. */
	bool (*in)(void *ctx, struct cube_wire_in *m);
	/* false: it is not written, as if it had been. NULL: nothing. */
	bool (*out)(void *ctx, struct cube_wire_out *m);
	/* It was written (@code 0) or not (-errno; -ENOENT: the kernel wants it no more). NULL: nothing. */
	void (*written)(void *ctx, const struct cube_wire_out *m, int code);
};

struct cube_wire {
	struct cube_wire_hook hooks[CUBE_WIRE_HOOKS];
	unsigned n;
	/* Requests that come before those of the kernel; NULL: none. Returns the length, 0 when there are no more. */
	ssize_t (*first)(void *ctx, void *buf, size_t size);
	void *first_ctx;
	_Atomic bool parked;
	_Atomic unsigned busy; /* requests that are being served by the threads that read them */
};

void cube_wire_add(struct cube_wire *w, const struct cube_wire_hook *hook); /* asserts that there is room */

/* read(2) and writev(2) of libfuse's custom I/O. */
ssize_t cube_wire_read(struct cube_wire *w, int fd, void *buf, size_t size);
ssize_t cube_wire_writev(struct cube_wire *w, int fd, const struct iovec *iov, int count);
/* The answer to the INIT whose number is *unique: a copy at @body that may be changed and goes out in its place; the
 * number is 0 then. NULL: @m is something else. */
#define CUBE_WIRE_INIT 128
struct fuse_init_out *cube_wire_init_answer(struct cube_wire_out *m, _Atomic uint64_t *unique,
					    char body[CUBE_WIRE_INIT]);
/* The thread that read a request is back from it: once for each cube_wire_read that gave one. */
void cube_wire_served(struct cube_wire *w);
/* From now on no request is begun: the thread that reads one waits with it for the end of the process (or a signal: EINTR),
 * and the kernel gives it to the next worker; what it gives only once (FORGET) is served. False: some that were begun before
 * are still being served by their threads. */
bool cube_wire_park(struct cube_wire *w);
/* A message of our own, past the hooks: 0 or -errno. */
int cube_wire_send(int fd, uint64_t unique, int error, const void *body, size_t len);

#endif
