/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts that are kept for later: to be cloned, or to be a layer of an overlay.
 *
 * Since Linux 6.15 a mount that is attached nowhere can be both, and nothing has to be done. Before, it must
 * be attached in the mount namespace of this process: then each kept mount lies in a directory of a tmpfs on
 * STATE/.mounts, under the number that the kernel gave it. */
#ifndef CUBEFS_BACKENDS_LOCAL_KEEP_H
#define CUBEFS_BACKENDS_LOCAL_KEEP_H

#include <stdbool.h>

#include "backends/base/err.h"
#include "backends/ns/mounts.h"

/* Finds out which way it is; once, after the mount namespace was entered. The directory is made. */
int cube_local_keep_setup(const char *state_dir, struct cube_err *err);

/* The mount of @fd, a descriptor of ours that is detached yet, stays usable until cube_local_keep_end; *fd
 * may be closed then only by that. 0 or -errno. Any thread. */
int cube_local_keep(int fd);
void cube_local_keep_end(int fd); /* closes it; -1 is harmless */

/* A detached mount that came from another mount namespace becomes one of ours that is kept; returns its
 * descriptor or -errno, and takes @fd over. @dirfd: a directory in which a place to mount can be made for the
 * moment. */
int cube_local_keep_foreign(int fd, int dirfd);

/* The same of a mount of a running sandbox (ns/mounts.h), whose process 1 is @init. */
int cube_local_keep_inside(pid_t init, const struct cube_ns_point *p, int dirfd, int *ret_fd);

/* Called when a process begins to use the backend: what an earlier one (a worker that died) kept and nobody
 * knows any more goes. Descriptors of @own (-1 among them is harmless) stay. */
void cube_local_keep_sweep(const int *own, unsigned n);

/* Tests: behave as before Linux 6.15. Before cube_local_keep_setup. */
void cube_local_keep_attached(void);

#endif
