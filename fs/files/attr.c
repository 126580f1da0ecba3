/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes as shown: owners, inode numbers, lengths of links. getattr, readlink, statfs, access. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "fs/files/files_priv.h"

/* 63 bits of everything that tells objects of a mount from one another. Of the device only whether it is the
 * mount's own: numbers of overlays, tmpfs and btrfs change with each mount of theirs, and inode numbers must
 * not. */
uint64_t cube_fattr_ino(const struct cube_files *f, const struct cube_fmount *m, dev_t dev, ino_t ino)
{
	uint64_t where = m->key ^ (dev == m->dev ? 0 : dev);

	return cube_fhash_mix(f->seed ^ cube_fhash_mix(where, 1), ino) >> 1;
}

uint64_t cube_fattr_node_ino(struct cube_fnode *n)
{
	const struct cube_fobject o = cube_fnode_object(n);

	return cube_fattr_ino(n->tree, n->mount, o.dev, o.ino);
}

uint64_t cube_fattr_void_ino(struct cube_fnode *dir, const char *name)
{
	return cube_fhash_text(cube_fattr_node_ino(dir), name) >> 1;
}

/* An empty directory (or file) of the sandbox's root in which nothing can be made. */
static void attr_show_void(struct cube_fnode *n, struct stat *ret)
{
	cube_auto_fnode dir = NULL;
	char name[NAME_MAX + 1];
	mode_t type = n->object.type;

	*ret = (struct stat){
		.st_mode = S_ISDIR(type) ? S_IFDIR | 0555 : S_IFREG | 0444,
		.st_nlink = S_ISDIR(type) ? 2 : 1,
		.st_uid = cube_fowner_show_uid(n->tree, n->tree->uid_base),
		.st_gid = cube_fowner_show_gid(n->tree, n->tree->gid_base),
		.st_blksize = 4096,
	};
	if (cube_fnode_place(n, 0, &dir, name) == 0)
		ret->st_ino = cube_fattr_void_ino(dir, name);
}

/* The link's text as it is, and where it lies. By name: should it be another link's by now, it is rewritten
 * for the same directory. */
static ssize_t attr_raw_link(struct cube_fnode *n, struct cube_fnode **ret_dir, char raw[PATH_MAX])
{
	cube_auto_ffd dirfd = NULL;
	char name[NAME_MAX + 1];
	ssize_t len = cube_fnode_place(n, 0, ret_dir, name);

	if (len < 0)
		return -ESTALE;
	len = cube_freach(*ret_dir, &dirfd);
	if (len < 0)
		return len;
	len = readlinkat(dirfd->fd, name, raw, PATH_MAX - 1);
	if (len < 0)
		return errno == EINVAL || errno == ENOENT ? -ESTALE : -errno;
	raw[len] = '\0';
	return len;
}

static ssize_t attr_link(struct cube_fnode *n, nlink_t nlink, char out[PATH_MAX])
{
	cube_auto_fnode dir = NULL;
	char raw[PATH_MAX];
	ssize_t len = attr_raw_link(n, &dir, raw);

	return len < 0 ? len : cube_flink_show(dir, raw, (size_t)len, nlink, out);
}

int cube_fattr_show(struct cube_fnode *n, const struct stat *raw, struct stat *ret)
{
	char text[PATH_MAX];
	ssize_t len;

	if (n->is_void) {
		attr_show_void(n, ret);
		return 0;
	}
	*ret = *raw;
	ret->st_uid = cube_fowner_show_uid(n->tree, raw->st_uid);
	ret->st_gid = cube_fowner_show_gid(n->tree, raw->st_gid);
	ret->st_ino = cube_fattr_ino(n->tree, n->mount, raw->st_dev, raw->st_ino);
	if (!S_ISLNK(raw->st_mode))
		return 0;
	len = attr_link(n, raw->st_nlink, text);
	if (len >= 0)
		ret->st_size = len;
	return len == -ESTALE ? -ESTALE : 0;
}

int cube_fattr_get(struct cube_fnode *n, struct stat *ret)
{
	struct stat raw = {0};
	int r = n->is_void ? 0 : cube_freach_stat(n, &raw);

	return r < 0 ? r : cube_fattr_show(n, &raw, ret);
}

int cube_files_getattr_keep(struct cube_files_space *s, uint64_t id, struct cube_files_handle *h,
			    struct stat *ret, bool *ret_keep)
{
	cube_auto_fnode n = NULL;
	struct stat raw;
	int r;

	*ret_keep = false;
	if (h != NULL && h->fd != NULL) {
		r = (int)cube_fhandle_result(h, fstat(h->fd->fd, &raw));
		return r < 0 ? r : cube_fattr_show(h->n, &raw, ret);
	}
	r = cube_fnode_pin(s, id, &n);
	if (r < 0)
		return r;
	*ret_keep = cube_fwatch_stat(n, &raw) > 0;
	return *ret_keep && !n->mount->constant ? cube_fattr_show(n, &raw, ret) : cube_fattr_get(n, ret);
}

int cube_files_getattr(struct cube_files_space *s, uint64_t id, struct cube_files_handle *h, struct stat *ret)
{
	bool keep;

	return cube_files_getattr_keep(s, id, h, ret, &keep);
}

int cube_files_birth(struct cube_files_space *s, uint64_t id, struct timespec *ret)
{
	cube_auto_fdoor d = {.n = NULL};
	struct statx x;
	int r = cube_fdoor_open(s, id, 0, &d);

	if (r == 0 && d.fd == NULL)
		r = -ENODATA;
	if (r == 0 && statx(d.fd->fd, "", AT_EMPTY_PATH, STATX_BTIME, &x) < 0)
		r = -errno;
	if (r == 0 && (x.stx_mask & STATX_BTIME) == 0)
		r = -ENODATA;
	if (r < 0)
		return r;
	*ret = (struct timespec){.tv_sec = x.stx_btime.tv_sec, .tv_nsec = x.stx_btime.tv_nsec};
	return 0;
}

ssize_t cube_files_readlink(struct cube_files_space *s, uint64_t id, char *buf, size_t size)
{
	cube_auto_fnode n = NULL;
	char text[PATH_MAX];
	struct stat raw;
	ssize_t len = cube_fnode_pin(s, id, &n);

	if (len < 0)
		return len;
	if (!S_ISLNK(n->object.type) || n->is_void || size == 0)
		return -EINVAL;
	len = cube_freach_stat(n, &raw);
	if (len == 0)
		len = attr_link(n, raw.st_nlink, text);
	if (len < 0)
		return len;
	if ((size_t)len >= size)
		return -ENAMETOOLONG;
	memcpy(buf, text, (size_t)len + 1);
	return len;
}

int cube_files_statfs(struct cube_files_space *s, uint64_t id, struct statvfs *ret)
{
	cube_auto_fnode n = NULL;
	cube_auto_ffd top = NULL;
	int r = cube_fnode_pin(s, id, &n);

	if (r < 0)
		return r;
	top = cube_fstep_top(n->tree, n->mount); /* the same file system, without a walk */
	if (top == NULL)
		return -ESTALE;
	return fstatvfs(top->fd, ret) < 0 ? -errno : 0;
}

/* By mode bits; whoever mounted, and root, act as the sandbox's root. Without groups: of the caller's only
 * the first is known. */
int cube_files_access(struct cube_files_space *s, const struct cube_files_cred *c, uint64_t id, int mask)
{
	cube_auto_fnode n = NULL;
	struct stat st;
	unsigned shift = 0, want = (unsigned)mask & 7u;
	int r = cube_fnode_pin(s, id, &n);

	if (r == 0)
		r = cube_fattr_get(n, &st);
	if (r != 0)
		return r;
	if ((mask & W_OK) != 0 && (n->mount->read_only || n->is_void))
		return -EROFS;
	if (c->uid == s->options.uid || c->uid == 0)
		return (mask & X_OK) == 0 || S_ISDIR(st.st_mode) || (st.st_mode & 0111) != 0 ? 0 : -EACCES;
	if (c->uid == st.st_uid)
		shift = 6;
	else if (c->gid == st.st_gid)
		shift = 3;
	return (want & ~(st.st_mode >> shift)) == 0 ? 0 : -EACCES;
}
