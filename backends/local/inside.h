/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts in the namespace of a running sandbox: found, taken, attached, detached.
 *
 * After a restart of the daemon the mounts of what runs are nowhere else, and to mount the same upper layer a
 * second time is undefined. Inside, everything but the number of a mount can be changed at any moment: paths
 * are walked without following a link, and what is found there must be the mount that was meant. Any thread;
 * each call is a child of a few system calls. */
#ifndef CUBEFS_BACKENDS_LOCAL_INSIDE_H
#define CUBEFS_BACKENDS_LOCAL_INSIDE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/base/err.h"

/* A mount of process @init's namespace. */
struct cube_local_point {
	uint64_t id; /* its number: field 1 of mountinfo, STATX_MNT_ID */
	char path[PATH_MAX];
};

/* Is the root of process @init the overlay of sandbox @id? (Its source in mountinfo is the id.) */
bool cube_local_inside_is(pid_t init, const char *id);

/* The overlay whose source is @source, at @path (NULL: wherever). -ENOENT. */
int cube_local_inside_overlay(pid_t init, const char *source, const char *path, struct cube_local_point *ret);
/* What is mounted on @path, at the top of what may be one over the other. -ENOENT. */
int cube_local_inside_at(pid_t init, const char *path, struct cube_local_point *ret);
/* The mount with that number. -ENOENT. */
int cube_local_inside_number(pid_t init, uint64_t id, struct cube_local_point *ret);

/* A clone of it without what is mounted below, kept (keep.h). @dir: a directory of ours, for keep. -EBUSY:
 * something else is at its path now. */
int cube_local_inside_take(pid_t init, const struct cube_local_point *p, int dir, int *ret_fd);
/* Attaches the detached mount @fd on the directory @path; *ret_id is its number. -ELOOP: a link is in it;
 * -EBUSY: something is mounted there. */
int cube_local_inside_attach(pid_t init, int fd, const char *path, uint64_t *ret_id);
/* Takes it away, in use or not. */
int cube_local_inside_detach(pid_t init, const struct cube_local_point *p);

#endif
