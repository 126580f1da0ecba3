/* SPDX-License-Identifier: Apache-2.0 */
/* A client at the other end of a socket pair, and the server over the tree's rig. */
#ifndef CUBEFS_TESTS_UNIT_P9_PEER_H
#define CUBEFS_TESTS_UNIT_P9_PEER_H

#include "backends/base/p9.h"
#include "fs/p9/p9.h"
#include "tests/unit/tree/rig.h"

struct peer {
	int fd;
	enum cube_p9_dialect dialect;
	uint16_t tag;
	struct cube_p9_msg r; /* the latest reply; its strings are in bytes */
	char *bytes;
};

extern struct cube_p9 *server;
extern struct cube_p9_limits limits; /* of the server; before peer_up */

/* cmocka's: the rig, and a server on it. */
int peer_up(void **state);
int peer_down(void **state);

/* A connection; with @version it has said so, with msize, and has attached fid 0 at @aname (NULL: not). */
void peer_open(struct peer *p, const char *version, uint32_t msize, const char *aname);
void peer_token(const char *token); /* that the next ones must have; NULL: none */
void peer_close(struct peer *p);
/* The same of the last one there is; waits until the server has seen it. */
void peer_hang_up(struct peer *p);

/* Sends, with a tag of its own which it gives; nothing is waited for. */
uint16_t peer_send(struct peer *p, struct cube_p9_msg *m);
void peer_raw(struct peer *p, const void *bytes, size_t len);
/* The next reply, whichever: its tag, and it is in p->r. The test fails after 10 s. -1: the server hung up. */
int peer_next(struct peer *p);
bool peer_quiet(struct peer *p, int ms); /* nothing comes */
/* Sends and waits: 0 or -errno (of an Rlerror; -EREMOTEIO for an Rerror). */
int peer_rpc(struct peer *p, struct cube_p9_msg *m);

/* ---- messages; each gives 0 or -errno ---- */
int peer_walk(struct peer *p, uint32_t fid, uint32_t newfid, const char *path); /* -ENOENT if not all of it */
int peer_lopen(struct peer *p, uint32_t fid, uint32_t flags);
int peer_read(struct peer *p, uint32_t fid, uint64_t offset, uint32_t count);
int peer_write(struct peer *p, uint32_t fid, uint64_t offset, const char *text);
int peer_fid(struct peer *p, unsigned type, uint32_t fid); /* Tclunk, Tremove, Tgetattr ... */
int peer_named(struct peer *p, unsigned type, uint32_t fid, const char *name, uint32_t mode);
/* The whole of a file. */
const char *peer_cat(struct peer *p, const char *path);
int peer_echo(struct peer *p, const char *text, const char *path);

#endif
