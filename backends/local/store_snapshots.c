/* SPDX-License-Identifier: Apache-2.0 */
/* The store of snapshots: each set is a subvolume of btrfs. The calls are those of linux/btrfs.h. */
#include "backends/local/store.h"

#include "backends/base/file.h"
#include "backends/base/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/btrfs.h>

/* O_PATH descriptors take no ioctl. */
static int snapshots_ioctl(int sets, unsigned long request, struct btrfs_ioctl_vol_args_v2 *args,
			   const char *name)
{
	cube_auto_fd dir = openat(sets, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return -errno;
	(void)snprintf(args->name, sizeof(args->name), "%s", name);
	return ioctl(dir, request, args) < 0 ? -errno : 0;
}

static int snapshots_make(int sets, const char *name, struct cube_err *err)
{
	struct btrfs_ioctl_vol_args_v2 args = {.flags = 0};
	int rc = snapshots_ioctl(sets, BTRFS_IOC_SUBVOL_CREATE_V2, &args, name);

	if (rc == 0 && fchmodat(sets, name, 0700, 0) < 0)
		rc = -errno;
	return rc < 0 ? cube_fail(err, rc, "cannot make the subvolume %s: %s", name, cube_errno_text(rc)) : 0;
}

/* The kernel writes out what is in memory of @from, takes the snapshot and commits: not to be interrupted, and
 * short where the caller had it written out before. */
static int snapshots_copy(int sets, const char *from, const char *to, uint32_t limit_ms,
			  struct cube_cancel *cancel, struct cube_err *err)
{
	cube_auto_fd origin = openat(sets, from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct btrfs_ioctl_vol_args_v2 args = {.fd = origin};
	int rc = origin < 0 ? -errno : 0;

	(void)limit_ms;
	if (rc == 0 && cube_cancel_fired(cancel))
		return cube_fail(err, -EINTR, "interrupted");
	if (rc == 0)
		rc = snapshots_ioctl(sets, BTRFS_IOC_SNAP_CREATE_V2, &args, to);
	return rc < 0 ? cube_fail(err, rc, "cannot take a snapshot of %s: %s", from, cube_errno_text(rc)) : 0;
}

/* An ordinary user may empty a subvolume and remove it as a directory (Linux 4.18), unless the file system is
 * mounted for more. */
static int snapshots_remove(int sets, const char *name, struct cube_err *err)
{
	struct btrfs_ioctl_vol_args_v2 args = {.flags = 0};
	int rc = snapshots_ioctl(sets, BTRFS_IOC_SNAP_DESTROY_V2, &args, name);

	if (rc == -EPERM || rc == -EACCES || rc == -ENOTEMPTY || rc == -ENOTTY || rc == -EINVAL)
		rc = cube_file_remove_tree(sets, name);
	if (rc == -ENOENT)
		rc = 0;
	return rc < 0 ? cube_fail(err, rc, "cannot remove the subvolume %s: %s", name, cube_errno_text(rc))
		      : 0;
}

const struct cube_local_store_ops cube_local_store_snapshots = {
	.name = "snapshots",
	.flat = true,
	.make = snapshots_make,
	.copy = snapshots_copy,
	.remove = snapshots_remove,
};
