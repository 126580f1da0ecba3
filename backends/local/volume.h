/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes: layers of their own in STATE/backends/NAME/volumes/UID, which outlive sandboxes.
 *
 * Each is one overlay mount, however many sandboxes have it: each sandbox gets a clone. So all see the same
 * files at once, and an upper layer is never mounted twice. The mount is made when it is first needed, or
 * taken from a sandbox that runs already. */
#ifndef CUBEFS_BACKENDS_LOCAL_VOLUME_H
#define CUBEFS_BACKENDS_LOCAL_VOLUME_H

#include "backends/local/local_priv.h"

/* A descriptor of its root directory in that one mount, the caller's to close; to be cloned (mnt.h) or read.
 * -ENOENT. */
int cube_local_volume_open(struct cube_local *b, const char *uid, int *ret_fd, struct cube_err *err);
/* All mounts are given up: the end of the instance. */
void cube_local_volumes_close(struct cube_local *b);

int cube_local_volume_make(struct cube_backend *b, const char *uid, const char *name,
			   struct cube_cancel *cancel, struct cube_err *err);
int cube_local_volume_copy(struct cube_backend *b, const char *cp, const char *from, const char *to,
			   struct cube_cancel *cancel, struct cube_err *err);
int cube_local_volume_remove(struct cube_backend *b, const char *uid, struct cube_err *err);
int cube_local_volume_list(struct cube_backend *b, void (*each)(void *ctx, const struct cube_volume *v),
			   void *ctx, struct cube_err *err);
int cube_local_volume_root(struct cube_backend *b, const char *uid, struct cube_root *ret,
			   struct cube_err *err);

#endif
