/* SPDX-License-Identifier: Apache-2.0 */
/* A btrfs file system in a sparse file of the state directory, so that root has snapshots wherever the state lies.
 *
 * The file has the size of the limit, and blocks only as far as btrfs needs them. A write of btrfs that finds no
 * block would turn the file system read only, for all sandboxes: so blocks are given to the file ahead of need, as
 * far as btrfs has divided the space and a stretch beyond. Where this machine's disk has none left, the file system is
 * made smaller instead, and who writes too much gets ENOSPC, as on any full disk.
 *
 * The mount is attached nowhere. It lives on while a sandbox runs in it, also without a daemon; the next one finds
 * the loop device by the file and mounts the same file system. */
#ifndef CUBEFS_BACKENDS_LOCAL_IMAGE_H
#define CUBEFS_BACKENDS_LOCAL_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/err.h"

struct cube_local_image;

#define CUBE_LOCAL_IMAGE "store.btrfs" /* name in the state directory */

/* Can one be made here: -EOPNOTSUPP with what is missing (mkfs.btrfs, loop devices, btrfs in the kernel, the right to
 * mount). Makes nothing. */
int cube_local_image_possible(struct cube_err *err);
/* Is there one in the directory @state? */
bool cube_local_image_there(int state);
/* Mounts it, and makes it before where it is not there; @limit bytes (0: nine tenths of what is free on the disk).
 * *ret_root: its root directory, kept (keep.h) and owned by the image. */
int cube_local_image_open(int state, uint64_t limit, struct cube_local_image **ret, int *ret_root,
			  struct cube_err *err);
void cube_local_image_close(struct cube_local_image *i); /* NULL is harmless */

/* ---- image_grow.c, for image.c ---- */

struct cube_local_grow;
/* Starts the thread that keeps blocks ahead; @file and @root stay the caller's. The first look is done before it
 * returns, so that there is room from the start. */
int cube_local_grow_start(int file, int root, struct cube_local_grow **ret, struct cube_err *err);
void cube_local_grow_stop(struct cube_local_grow *g); /* NULL is harmless */

/* One look; for tests too. @spare: bytes of this machine's disk that are left alone; *have: how far the file has
 * blocks from its start, 0 for "not known yet". */
int cube_local_grow_once(int file, int root, uint64_t spare, uint64_t *have);
/* Up to where btrfs has divided the device; -errno. */
int cube_local_grow_top(int root, uint64_t *ret);

#endif
