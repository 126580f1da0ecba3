/* SPDX-License-Identifier: Apache-2.0 */
/* Overlay mounts made of directory descriptors, attached nowhere. */
#ifndef CUBEFS_BACKENDS_LOCAL_OVERLAY_H
#define CUBEFS_BACKENDS_LOCAL_OVERLAY_H

#include "backends/base/err.h"

/* Options of a mount. Which of them work is asked once for each state directory (probe). */
enum cube_local_overlay_flag {
	CUBE_OVERLAY_USERXATTR = 1u << 0, /* marks in user.*, for who may not write trusted.* */
	CUBE_OVERLAY_INDEX = 1u << 1,     /* hard links of a lower layer stay together at copy-up */
	CUBE_OVERLAY_XINO = 1u << 2,      /* one device and unique inode numbers over all layers */
	CUBE_OVERLAY_REDIRECT = 1u << 3,  /* directories of lower layers can be renamed */
};

#define CUBE_OVERLAY_LAYERS 66

struct cube_local_overlay {
	const char *source;             /* what mountinfo shows as the source: how a sandbox is recognised */
	int lower[CUBE_OVERLAY_LAYERS]; /* topmost first */
	unsigned n_lower;
	int upper, work; /* empty directories or of an earlier mount of the same layers; -1: read only */
	unsigned flags;
};

/* Mounts it (nodev, nosuid) and returns in *ret_fd a mount, kept (keep.h), whose root is the directory @root
 * of it ("" for all). Names of the layers in mountinfo are descriptor numbers: no path of the host is
 * seen from inside. Changes the working directory of the calling thread for the moment. */
int cube_local_overlay_mount(const struct cube_local_overlay *o, const char *root, int *ret_fd,
			     struct cube_err *err);

/* Tries in @dirfd, an empty directory on the file system of the upper layers, which of @want work there:
 * flags >= 0, or -EOPNOTSUPP with a sentence where not even a plain overlay can be mounted. */
int cube_local_overlay_probe(int dirfd, unsigned want, struct cube_err *err);

/* Can one be mounted over the directory @lower? 0 or a failure. */
int cube_local_overlay_probe_over(int dirfd, int lower, unsigned flags, struct cube_err *err);

#endif
