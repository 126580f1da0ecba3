/* SPDX-License-Identifier: Apache-2.0 */
/* The mount of a bind. */
#include "backends/ns/bind.h"

#include "backends/base/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

/* The ids of @bind's owner become those of root inside. Nothing is to be done where they are the same. */
static int bind_ids(const struct cube_ns_ids *ids, const struct cube_bind *bind, int *ret_userns,
		    struct cube_err *err)
{
	if (ids->uid == bind->owner_uid && ids->gid == bind->owner_gid)
		return 0;
	if (bind->owner_uid == 0)
		return cube_ns_userns(ids, ret_userns, err);
	return cube_ns_userns_one(ids, bind->owner_uid, bind->owner_gid, ret_userns, err);
}

static int bind_set(const struct cube_bind *bind, int fd, int userns, struct cube_err *err)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID |
					      (bind->read_only ? MOUNT_ATTR_RDONLY : 0)};
	int code;

	if (userns >= 0) {
		attr.attr_set |= MOUNT_ATTR_IDMAP;
		attr.userns_fd = (uint64_t)userns;
	}
	if (mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) == 0)
		return 0;
	code = errno;
	if (userns < 0)
		return cube_fail(err, -code, "bind %s: %s", bind->path, cube_errno_text(code));
	return cube_fail(
		err, -EOPNOTSUPP,
		"bind %s: the file system of that directory cannot be shown with other owners (%s): copy "
		"it (put), or take one on another file system",
		bind->path, cube_errno_text(code));
}

int cube_ns_bind_mount(const struct cube_ns_ids *ids, const struct cube_bind *bind, struct cube_err *err)
{
	cube_auto_fd fd = open_tree(bind->fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	cube_auto_fd userns = -1;
	int code = errno, rc;

	if (fd < 0)
		return cube_fail(
			err, -code, "bind %s: %s", bind->path,
			code == EINVAL
				? "that directory, or what is mounted below it, is not this process's to "
				  "show"
				: cube_errno_text(code));
	rc = bind_ids(ids, bind, &userns, err);
	if (rc == 0)
		rc = bind_set(bind, fd, userns, err);
	return rc < 0 ? rc : cube_steal_fd(&fd);
}
