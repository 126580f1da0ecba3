/* SPDX-License-Identifier: Apache-2.0 */
/* The 9P front end: the tree for clients of 9P2000.L, 9P2000.u and 9P2000.
 *
 * A connection stands for a process (who removes, who holds, who wrote a command), and has a look of its own at
 * the real files. Sockets are read and written on the loop; what may block on a sandbox's files is done by a few
 * threads of the server's. */
#ifndef CUBEFS_FS_P9_P9_H
#define CUBEFS_FS_P9_P9_H

#include <stdbool.h>
#include <sys/types.h>

#include "backends/base/err.h"
#include "backends/base/loop.h"
#include "fs/tree/tree.h"

#define CUBE_P9_MSIZE_MIN 4096u
#define CUBE_P9_MSIZE_MAX (1u << 20)

struct cube_p9;
struct p9_tls_server;

struct cube_p9_limits {
	unsigned connections; /* at once */
	unsigned fids, tags;  /* of one connection */
	unsigned msize;       /* the largest message, CUBE_P9_MSIZE_MIN to CUBE_P9_MSIZE_MAX */
};
extern const struct cube_p9_limits cube_p9_limits_default;

struct cube_p9_options {
	struct cube_loop *loop;
	struct cube_tree *tree;
	struct cube_files_options files; /* of each connection's look at real files; uid, gid: who mounted */
	struct cube_p9_limits limits;
};

/* Who is at the other end of a connection. */
struct cube_p9_peer {
	bool local; /* a process of this machine: the next three are its own */
	pid_t pid;
	uid_t uid;
	gid_t gid;
	struct p9_tls_server *tls; /* the stream is encrypted so; NULL: it is not */
	const char *token;         /* that its aname must begin with; NULL: none. Copied */
	char name[80];             /* for the log */
};

/* Starts no connection. */
int cube_p9_new(const struct cube_p9_options *o, struct cube_p9 **ret, struct cube_err *err);
/* A stream that is connected: @in and @out may be the same descriptor. Takes both, and serves it until the peer
 * hangs up; @ended (may be NULL) is called then. On the loop's thread, or before it runs. */
int cube_p9_serve(struct cube_p9 *s, int in, int out, const struct cube_p9_peer *peer,
		  void (*ended)(void *ctx), void *ctx, struct cube_err *err);
/* No more connections come and those that are there are cut. On the loop's thread. What their requests were about
 * ends behind it: cube_p9_idle says when. */
void cube_p9_stop(struct cube_p9 *s);
/* Waits until it has stopped and nothing is left of any connection, for @ms at most; the loop runs on another thread.
 * False: a sandbox's file system hangs. */
bool cube_p9_idle(struct cube_p9 *s, unsigned ms);
/* After idle, and after the loop ended. NULL is harmless. */
void cube_p9_free(struct cube_p9 *s);

#endif
