/* SPDX-License-Identifier: Apache-2.0 */
/* What has a descriptor of its own in a sandbox's tree, and at which path. */
#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "backends/base/alloc.h"
#include "fs/files/files_priv.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342 /* linux/magic.h has it since 5.10 */
#endif
#define ZFS_MAGIC      0x2fc12fc1
#define BCACHEFS_MAGIC 0xca451a4e

/* File systems whose stat asks nobody. What is not here is served as well, a little slower. */
static const struct mount_kind {
	unsigned long magic;
	bool d_ino_differs; /* overlayfs: readdir and stat may number files of different layers differently */
} mount_kinds[] = {
	{.magic = EXT4_SUPER_MAGIC},
	{.magic = BTRFS_SUPER_MAGIC},
	{.magic = XFS_SUPER_MAGIC},
	{.magic = TMPFS_MAGIC},
	{.magic = RAMFS_MAGIC},
	{.magic = F2FS_SUPER_MAGIC},
	{.magic = SQUASHFS_MAGIC},
	{.magic = EROFS_SUPER_MAGIC_V1},
	{.magic = ZFS_MAGIC},
	{.magic = BCACHEFS_MAGIC},
	{.magic = OVERLAYFS_SUPER_MAGIC, .d_ino_differs = true},
};

static int mount_init(struct cube_fmount *m, int fd, const char *path, bool read_only)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	m->read_only = read_only;
	m->key = cube_fhash_text(0, path);
	m->dev = st.st_dev;
	m->ino = st.st_ino;
	for (size_t i = 0; i < CUBE_COUNT(mount_kinds); i++) {
		if ((unsigned long)fs.f_type != mount_kinds[i].magic)
			continue;
		m->local = true;
		m->d_ino_true = !mount_kinds[i].d_ino_differs;
	}
	m->fd = cube_ffd_wrap(fd);
	return m->fd == NULL ? -ENOMEM : 0;
}

const struct cube_fpoint *cube_fpoint_find(const struct cube_fpoint *p, const char *name)
{
	if (p == NULL)
		return NULL;
	for (p = p->children; p != NULL; p = p->next) {
		if (strcmp(p->name, name) == 0)
			return p;
	}
	return NULL;
}

struct cube_fmount *cube_fmount_find(struct cube_files *f, const char *path)
{
	const struct cube_fpoint *p = f->points;
	char name[NAME_MAX + 1];

	for (path += strspn(path, "/"); p != NULL && *path != '\0'; path += strspn(path, "/")) {
		size_t len = strcspn(path, "/");

		if (len > NAME_MAX)
			return NULL;
		memcpy(name, path, len);
		name[len] = '\0';
		p = cube_fpoint_find(p, name);
		path += len;
	}
	return p != NULL ? p->mount : NULL;
}

static struct cube_fpoint *point_child(struct cube_fpoint *parent, const char *name, size_t len)
{
	struct cube_fpoint *p;

	for (p = parent->children; p != NULL; p = p->next) {
		if (strncmp(p->name, name, len) == 0 && p->name[len] == '\0')
			return p;
	}
	p = cube_calloc(1, sizeof(*p));
	if (p == NULL)
		return NULL;
	memcpy(p->name, name, len);
	p->next = parent->children;
	parent->children = p;
	return p;
}

/* -EINVAL for a path that is not absolute, has "." or ".." in it, or is there already. */
static int point_add(struct cube_fpoint *p, const char *path, struct cube_fmount *m)
{
	size_t len;

	if (*path != '/')
		return -EINVAL;
	for (;; path += len) {
		path += strspn(path, "/");
		len = strcspn(path, "/");
		if (len == 0)
			break;
		if (len > NAME_MAX || (len <= 2 && strncmp(path, "..", len) == 0))
			return -EINVAL;
		p = point_child(p, path, len);
		if (p == NULL)
			return -ENOMEM;
	}
	if (p->mount != NULL)
		return -EINVAL;
	p->mount = m;
	return 0;
}

/* What may be kept of it by who is told of changes. */
static void mount_keeps(struct cube_fmount *m, const struct cube_root *root, bool shared)
{
	m->constant = root->read_only && !shared;
	m->watchable = m->local && !m->constant && !shared;
}

int cube_fmount_setup(struct cube_files *f, const struct cube_root *root)
{
	int r = mount_init(&f->mounts[0], root->fd, "/", false);

	f->n_mounts = 1;
	mount_keeps(&f->mounts[0], root, root->shared);
	if (r < 0)
		return r;
	f->points = cube_calloc(1, sizeof(*f->points));
	if (f->points == NULL)
		return -ENOMEM;
	f->points->mount = &f->mounts[0];
	if (root->n_mounts > CUBE_MOUNTS_MAX)
		return -EINVAL;
	for (unsigned i = 0; r == 0 && i < root->n_mounts; i++) {
		struct cube_fmount *m = &f->mounts[f->n_mounts++];

		r = mount_init(m, root->mounts[i].fd, root->mounts[i].path, root->mounts[i].read_only);
		mount_keeps(m, root, root->shared || root->mounts[i].shared);
		if (r == 0)
			r = point_add(f->points, root->mounts[i].path, m);
	}
	return r;
}

void cube_fmount_give_back(struct cube_files *f)
{
	for (unsigned i = 0; i < f->n_mounts; i++) {
		cube_free(f->mounts[i].fd);
		f->mounts[i].fd = NULL;
	}
}

/* As deep as the names of a path of 256 bytes. */
static void point_free(struct cube_fpoint *p)
{
	struct cube_fpoint *next;

	for (; p != NULL; p = next) {
		next = p->next;
		point_free(p->children);
		cube_free(p);
	}
}

void cube_fmount_clear(struct cube_files *f)
{
	for (unsigned i = 0; i < f->n_mounts; i++)
		cube_ffd_unref(f->mounts[i].fd);
	point_free(f->points);
	f->points = NULL;
	f->n_mounts = 0;
}
