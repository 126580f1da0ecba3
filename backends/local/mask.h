/* SPDX-License-Identifier: Apache-2.0 */
/* The upper of the two layers of the template `host`: what of this machine is shown.
 *
 * Host root's ids are the sandbox's root's, so nothing but this layer keeps this machine's secrets. It
 * says what is shown, not what is hidden: the sandbox's root is the directory `r` of the overlay, which
 * only this layer has; in it usr, opt (and bin, lib, ... where they are directories) point to those of the
 * layer below by overlayfs's redirect mark. Nothing else of the layer below has a name. /etc is a private
 * copy of what everyone may read; files of /usr and /opt that not everyone may read are covered by
 * whiteouts.
 *
 * The layer is a tmpfs that is attached nowhere: overlayfs refuses a layer that lies inside another one,
 * and each overlay keeps the version that it was mounted with alive. For an ordinary user, whose files
 * below /usr nobody could change anyway, it has empty directories instead on which /usr and /opt are
 * bound. */
#ifndef CUBEFS_BACKENDS_LOCAL_MASK_H
#define CUBEFS_BACKENDS_LOCAL_MASK_H

#include <stdbool.h>

#include "backends/base/err.h"
#include "backends/local/ids.h"

/* The directory of an overlay that is a sandbox's root, in every template. */
#define CUBE_LOCAL_ROOT_DIR "r"

/* Host directories that are shown, relative to its root; CUBE_MASK_SHOWN at most are there. */
#define CUBE_MASK_SHOWN 8
struct cube_local_shown {
	unsigned n;
	char name[CUBE_MASK_SHOWN][16]; /* "usr", "opt", "lib64" */
};

struct cube_local_mask;

/* @redirect: trusted marks can be written and the layer below is this machine's root. */
struct cube_local_mask *cube_local_mask_new(const struct cube_ns_ids *ids, bool redirect);
void cube_local_mask_free(struct cube_local_mask *m);

/* The layer as it should be now: built at the first call, and again when /etc or the first levels of /usr
 * and /opt have changed (looked at once in ten seconds at most). *ret_fd is a descriptor of its own for
 * the caller to close. Any thread. May take a second. */
int cube_local_mask_get(struct cube_local_mask *m, int *ret_fd, struct cube_err *err);

/* What of the host is shown through redirects or must be bound. */
void cube_local_mask_shown(struct cube_local_shown *ret);

#endif
