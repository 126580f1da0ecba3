/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts that are attached nowhere: the kernel's descriptor based mount calls, one line each.
 *
 * All return a descriptor or 0, or a negative errno; none of them needs a path of the host but
 * where it says so. cube_local_mnt_attach is async-signal-safe, since it is called between fork and
 * exec. A mount lives until the last descriptor and the last attachment of it are gone. */
#ifndef CUBEFS_BACKENDS_LOCAL_MNT_H
#define CUBEFS_BACKENDS_LOCAL_MNT_H

#include <stdint.h>

#include "backends/base/err.h"

/* A detached copy of the mount in which @path below @dirfd lies, with @path as its root: `..` does
 * not lead out of it. What is mounted below is not in it. "" is @dirfd itself. */
int cube_local_mnt_clone(int dirfd, const char *path);

/* The same for the absolute @path with all that is mounted below it, read only, nodev and nosuid throughout.
 */
int cube_local_mnt_clone_read_only(const char *path);

/* A tmpfs, root directory 0755 of the caller, @size as in mount(8). */
int cube_local_mnt_tmpfs(const char *size, struct cube_err *err);

/* Set MOUNT_ATTR_ flags; with @userns other than -1 also the ids of that user namespace. */
int cube_local_mnt_set(int fd, uint64_t attrs, int userns);

/* Takes read only away, where that was not given by a more powerful namespace. */
int cube_local_mnt_writable(int fd);

/* Attach a detached mount at @path of the caller's mount namespace, by a path of at most one link. */
int cube_local_mnt_attach(int fd, const char *path);

/* What the kernel wrote into the log of a file system context, without its "e " and newline; "" if
 * nothing. */
void cube_local_mnt_log(int fs, char *out, unsigned size);

#endif
