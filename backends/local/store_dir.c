/* SPDX-License-Identifier: Apache-2.0 */
/* Upper layers in plain directories: CUBE/root/{upper,work}, CUBE/workspace/{upper,work}. */
#include "backends/local/store.h"

#include "backends/base/file.h"
#include "backends/base/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const part_names[CUBE_PART_COUNT] = {
	[CUBE_PART_ROOT] = "root",
	[CUBE_PART_WORKSPACE] = "workspace",
};

void cube_local_layer_close(struct cube_local_layer *l)
{
	if (l->upper >= 0)
		close(cube_steal_fd(&l->upper));
	if (l->work >= 0)
		close(cube_steal_fd(&l->work));
}

static int store_owned(int dir, const char *name, const struct cube_local_ids *ids)
{
	if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (fchownat(dir, name, ids->uid, ids->gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchmodat(dir, name, 0755, 0) < 0)
		return -errno;
	return 0;
}

static int store_make(int cube, enum cube_local_part part, const struct cube_local_ids *ids,
		      struct cube_err *err)
{
	cube_auto_fd dir = -1;
	int rc = cube_file_mkdir(cube, part_names[part], 0700, &dir);

	if (rc == 0)
		rc = store_owned(dir, "upper", ids);
	if (rc == 0)
		rc = store_owned(dir, "work", ids);
	return rc < 0 ? cube_fail(err, rc, "cannot make the layer for %s: %s", part_names[part],
				  cube_errno_text(rc))
		      : 0;
}

static int store_open(int cube, enum cube_local_part part, struct cube_local_layer *ret, struct cube_err *err)
{
	cube_auto_fd dir = openat(cube, part_names[part], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct cube_local_layer l = CUBE_LOCAL_LAYER_NONE;
	int rc = dir < 0 ? -errno : 0;

	if (rc == 0) {
		l.upper = openat(dir, "upper", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		l.work = openat(dir, "work", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (l.upper < 0 || l.work < 0) {
			rc = -errno;
			cube_local_layer_close(&l);
		}
	}
	if (rc < 0)
		return cube_fail(err, rc, "cannot open the layer for %s: %s", part_names[part],
				 cube_errno_text(rc));
	*ret = l;
	return 0;
}

static int store_remove(int cubes, const char *id, struct cube_err *err)
{
	int rc = cube_file_remove_tree(cubes, id);

	return rc < 0 ? cube_fail(err, rc, "cannot remove the files of %s: %s", id, cube_errno_text(rc)) : 0;
}

const struct cube_local_store_ops cube_local_store_dir = {
	.name = "dir",
	.make = store_make,
	.open = store_open,
	.remove = store_remove,
};
