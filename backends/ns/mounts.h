/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts in the namespace of a running sandbox: found, taken, attached, detached.
 *
 * After a restart of the daemon the mounts of what runs are nowhere else, and to mount the same upper layer a
 * second time is undefined. Inside, everything but the number of a mount can be changed at any moment: paths
 * are walked without following a link, and what is found there must be the mount that was meant. Any thread;
 * each call is a child of a few system calls. */
#ifndef CUBEFS_BACKENDS_NS_MOUNTS_H
#define CUBEFS_BACKENDS_NS_MOUNTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/base/err.h"

/* A mount of process @init's namespace. */
struct cube_ns_point {
	uint64_t id; /* its number: field 1 of mountinfo, STATX_MNT_ID */
	char path[PATH_MAX];
};

/* Is the root of process @init the overlay of sandbox @id? (Its source in mountinfo is the id.) */
bool cube_ns_mount_is(pid_t init, const char *id);

/* The overlay whose source is @source, at @path (NULL: wherever). -ENOENT. */
int cube_ns_mount_overlay(pid_t init, const char *source, const char *path, struct cube_ns_point *ret);
/* What is mounted on @path, at the top of what may be one over the other. -ENOENT. */
int cube_ns_mount_at(pid_t init, const char *path, struct cube_ns_point *ret);
/* The mount with that number. -ENOENT. */
int cube_ns_mount_number(pid_t init, uint64_t id, struct cube_ns_point *ret);

/* A clone of it without what is mounted below, detached and of that namespace still. -EBUSY: something else is at its
 * path now. */
int cube_ns_mount_take(pid_t init, const struct cube_ns_point *p, int *ret_fd);
/* Attaches the detached mount @fd on the directory @path; *ret_id is its number. -ELOOP: a link is in it;
 * -EBUSY: something is mounted there. */
int cube_ns_mount_attach(pid_t init, int fd, const char *path, uint64_t *ret_id);
/* Takes it away, in use or not. */
int cube_ns_mount_detach(pid_t init, const struct cube_ns_point *p);

#endif
