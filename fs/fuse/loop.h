/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that read requests and serve them.
 *
 * One always waits for the next request while the others serve; one more is started when none is left, and those above
 * a few that wait end. A thread has the memory it reads into (room.h) only while it waits or a large request is in it. */
#ifndef CUBEFS_FS_FUSE_LOOP_H
#define CUBEFS_FS_FUSE_LOOP_H

struct cube_wire;
struct fuse_session;

/* Until the session is over: 0 or -errno. At most @most threads serve what comes through @wire. */
int cube_fuse_loop(struct fuse_session *se, struct cube_wire *wire, unsigned most);

#endif
