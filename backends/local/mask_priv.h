/* SPDX-License-Identifier: Apache-2.0 */
/* Between mask.c, which keeps the layer, and mask_build.c, which makes one. */
#ifndef CUBEFS_BACKENDS_LOCAL_MASK_PRIV_H
#define CUBEFS_BACKENDS_LOCAL_MASK_PRIV_H

#include <stdbool.h>

#include "backends/base/buf.h"
#include "backends/base/err.h"
#include "backends/local/ids.h"

/* A new layer on a tmpfs of its own, read only, kept (keep.h). @hidden: absolute paths, each with its NUL,
 * that get whiteouts. */
int cube_local_mask_build(const struct cube_ns_ids *ids, bool redirect, const struct cube_buf *hidden,
			  int *ret_fd, struct cube_err *err);

#endif
