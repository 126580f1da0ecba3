/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes. What passes:
 *
 *   user.*                    all, but user.overlay.*, which is how an ordinary user's overlay keeps its
 * books security.capability       as the sandbox's root would see and set it: file capabilities that hold in
 * the sandbox alone. The kernel keeps those of a user namespace with the id of its root (version 3); to the
 * inside they look like ordinary ones (version 2). Without ids of its own (an ordinary user's daemon, which
 * lives in the namespace itself) the kernel does that.
 *
 * Everything else is not shown, reads as if it were not there, and is refused: trusted.* and the rest of
 * security.* are of the host, POSIX ACLs (system.posix_acl_*) name ids that nobody here translates; their
 * effect on the mode bits is seen. Tools take -EOPNOTSUPP as "this file system has none". */
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/xattr.h>

#include "backends/base/alloc.h"
#include "fs/files/files_priv.h"

/* Reads and writes of one attribute's value, which may be shown in another form. */
struct xattr_kind {
	const char *name; /* with a dot at its end: all that begin so */
	int get_error;    /* refused: why; 0: passes */
	int set_error;
	bool capability;
};

/* The first that fits counts; what is not here is refused. */
static const struct xattr_kind xattr_kinds[] = {
	{.name = "user.overlay.", .get_error = -ENODATA, .set_error = -EOPNOTSUPP},
	{.name = "user."},
	{.name = "security.capability", .capability = true},
	{.name = "security.", .get_error = -ENODATA, .set_error = -EOPNOTSUPP},
	{.name = "trusted.", .get_error = -ENODATA, .set_error = -EOPNOTSUPP},
	{.name = "", .get_error = -EOPNOTSUPP, .set_error = -EOPNOTSUPP},
};

static const struct xattr_kind *xattr_kind(const char *name)
{
	const struct xattr_kind *k = xattr_kinds;

	for (;; k++) {
		size_t len = strlen(k->name);
		bool prefix = len == 0 || k->name[len - 1] == '.';

		if (prefix ? strncmp(k->name, name, len) == 0 : strcmp(k->name, name) == 0)
			return k;
	}
}

/* An object to ask: "" for a void one. By path, since the calls on descriptors do not take those of O_PATH;
 * the link in /proc leads to the object itself, also when that is a link. */
struct xattr_door {
	struct cube_fdoor d;
	char path[CUBE_FD_PATH];
};

static int xattr_open(struct cube_files_space *s, uint64_t id, unsigned need, struct xattr_door *ret)
{
	int r = cube_fdoor_open(s, id, need, &ret->d);

	if (r == 0 && ret->d.fd != NULL)
		(void)cube_fstep_path(ret->d.fd->fd, ret->path);
	return r;
}

static void xattr_close(struct xattr_door *d)
{
	cube_fdoor_close(&d->d);
}
#define xattr_auto cube_auto(xattr_close) struct xattr_door

static bool xattr_has_own_ids(const struct cube_files *f)
{
	return f->id_count > 0 && f->uid_base != 0;
}

/* @v as the kernel keeps it becomes what the sandbox's root sees. Length, or -ENODATA for one of another
 * namespace. */
static ssize_t capability_show(const struct cube_files *f, struct vfs_ns_cap_data *v, ssize_t len)
{
	if (len == XATTR_CAPS_SZ_2)
		return -ENODATA; /* it would hold on the host: not made here */
	if (len != XATTR_CAPS_SZ_3 || le32toh(v->rootid) != f->uid_base)
		return -ENODATA;
	v->magic_etc = htole32(VFS_CAP_REVISION_2 | (le32toh(v->magic_etc) & VFS_CAP_FLAGS_MASK));
	return XATTR_CAPS_SZ_2;
}

static ssize_t capability_get(const struct xattr_door *d, const char *name, void *value, size_t size)
{
	struct vfs_ns_cap_data v;
	ssize_t n = getxattr(d->path, name, &v, sizeof(v));

	if (n < 0)
		return errno == ERANGE ? -ENODATA : -errno;
	n = capability_show(d->d.n->tree, &v, n);
	if (n < 0 || size == 0)
		return n;
	if ((size_t)n > size)
		return -ERANGE;
	memcpy(value, &v, (size_t)n);
	return n;
}

/* Version 2, as everyone sets it, or version 3 of the sandbox's own root (0 inside). */
static int capability_set(const struct xattr_door *d, const char *name, const void *value, size_t size,
			  int flags)
{
	const struct cube_files *f = d->d.n->tree;
	struct vfs_ns_cap_data v = {.rootid = 0};
	uint32_t magic;

	if (size != XATTR_CAPS_SZ_2 && size != XATTR_CAPS_SZ_3)
		return -EINVAL;
	memcpy(&v, value, size);
	magic = le32toh(v.magic_etc);
	if ((magic & VFS_CAP_REVISION_MASK) !=
		    (size == XATTR_CAPS_SZ_2 ? VFS_CAP_REVISION_2 : VFS_CAP_REVISION_3) ||
	    v.rootid != 0)
		return -EINVAL;
	v.magic_etc = htole32(VFS_CAP_REVISION_3 | (magic & VFS_CAP_FLAGS_MASK));
	v.rootid = htole32(f->uid_base);
	return setxattr(d->path, name, &v, XATTR_CAPS_SZ_3, flags) < 0 ? -errno : 0;
}

int cube_files_setxattr(struct cube_files_space *s, uint64_t id, const char *name, const void *value,
			size_t size, int flags)
{
	const struct xattr_kind *k = xattr_kind(name);
	xattr_auto d = {.path = ""};
	struct stat st;
	int r;

	if (k->set_error != 0)
		return k->set_error;
	r = xattr_open(s, id, CUBE_DOOR_WRITE, &d);
	if (r < 0)
		return r;
	if (k->capability && xattr_has_own_ids(d.d.n->tree))
		r = capability_set(&d, name, value, size, flags);
	else if (setxattr(d.path, name, value, size, flags) < 0)
		r = -errno;
	if (r == 0 && fstat(d.d.fd->fd, &st) == 0)
		cube_fnode_renumber(d.d.n, &st);
	return r;
}

ssize_t cube_files_getxattr(struct cube_files_space *s, uint64_t id, const char *name, void *value,
			    size_t size)
{
	const struct xattr_kind *k = xattr_kind(name);
	xattr_auto d = {.path = ""};
	ssize_t r;

	if (k->get_error != 0)
		return k->get_error;
	r = xattr_open(s, id, 0, &d);
	if (r < 0)
		return r;
	if (d.d.fd == NULL)
		return -ENODATA;
	if (k->capability && xattr_has_own_ids(d.d.n->tree))
		return capability_get(&d, name, value, size);
	r = getxattr(d.path, name, value, size);
	return r < 0 ? -errno : r;
}

int cube_files_removexattr(struct cube_files_space *s, uint64_t id, const char *name)
{
	const struct xattr_kind *k = xattr_kind(name);
	xattr_auto d = {.path = ""};
	int r;

	if (k->set_error != 0)
		return k->set_error;
	r = xattr_open(s, id, CUBE_DOOR_WRITE, &d);
	if (r < 0)
		return r;
	return removexattr(d.path, name) < 0 ? -errno : 0;
}

/* Takes out of @list what is not shown; the length that is left. */
static size_t xattr_filter(const struct xattr_door *d, char *list, size_t len)
{
	size_t kept = 0, size;

	for (const char *name = list; name < list + len; name += size) {
		const struct xattr_kind *k = xattr_kind(name);

		size = strlen(name) + 1;
		if (k->get_error != 0 || (k->capability && xattr_has_own_ids(d->d.n->tree) &&
					  capability_get(d, name, NULL, 0) < 0))
			continue;
		memmove(list + kept, name, size);
		kept += size;
	}
	return kept;
}

ssize_t cube_files_listxattr(struct cube_files_space *s, uint64_t id, char *list, size_t size)
{
	xattr_auto d = {.path = ""};
	cube_auto_str all = NULL;
	ssize_t n = xattr_open(s, id, 0, &d);
	size_t kept;

	if (n < 0 || d.d.fd == NULL)
		return n;
	n = listxattr(d.path, NULL, 0);
	if (n == 0)
		return 0;
	if (n < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	all = cube_malloc(XATTR_LIST_MAX);
	if (all == NULL)
		return -ENOMEM;
	n = listxattr(d.path, all, XATTR_LIST_MAX);
	if (n < 0)
		return -errno;
	kept = xattr_filter(&d, all, (size_t)n);
	if (size == 0)
		return (ssize_t)kept;
	if (kept > size)
		return -ERANGE;
	memcpy(list, all, kept);
	return (ssize_t)kept;
}
