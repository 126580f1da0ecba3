/* SPDX-License-Identifier: Apache-2.0 */
/* The mount point, mounting and unmounting. Needs no libfuse: root asks the kernel, others ask fusermount3.
 */
#ifndef CUBEFS_FS_MOUNT_H
#define CUBEFS_FS_MOUNT_H

#include <stdbool.h>

#include "backends/base/err.h"

struct cube_mount {
	char *path; /* absolute, no link in it; owned */
	int id;     /* of the mount, as in mountinfo; -1 unknown */
};

/* Makes the mount point ready: it is made if it is missing (its parent is not), what a crashed cubefs left
 * there is detached. -ENOENT, -ENOTDIR, -ENOTEMPTY (unless @nonempty), -EBUSY a living cubefs. May take
 * seconds where something that hangs is mounted. Call before threads are started. */
int cube_mount_point(const char *given, bool nonempty, struct cube_mount *ret, struct cube_err *err);
/* Mounts; *ret_fd is the kernel's end, the caller's. */
int cube_mount_attach(struct cube_mount *m, bool allow_other, int *ret_fd, struct cube_err *err);
/* Unmounts what attach mounted, lazily where it is in use; not there any more is success. *ret_busy: it was
 * lazily. */
int cube_mount_detach(const struct cube_mount *m, bool *ret_busy, struct cube_err *err);
/* Nobody serves it any more: who waits for an answer has an error, even where a process that does not end has the kernel's
 * end still. As root, and where the kernel's control files of FUSE are mounted; elsewhere nothing happens. */
void cube_mount_abort(const struct cube_mount *m);
/* Is it there still? Asks nothing of the file system. */
bool cube_mount_there(const struct cube_mount *m);
/* In another mount namespace than the one that attach was called in: gives up the copy that came along, which
 * would keep the file system alive after the true one was unmounted. Where that is not allowed it stays. */
void cube_mount_let_go(const struct cube_mount *m);
/* Detaches whatever is mounted on top of @path, lazily. */
int cube_mount_drop(const char *path, struct cube_err *err);

#endif
