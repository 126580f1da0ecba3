/* SPDX-License-Identifier: Apache-2.0 */
/* put and get: the work itself, on a thread of the pool, by the directory descriptors of the sandbox. What is inside is
 * hostile: names are walked beneath a descriptor and never through a link. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "ctl/ctl_priv.h"
#include "ctl/transfer_priv.h"

/* ---- Names inside ---- */

/* The descriptor of the mount in which the normal @path lies (borrowed), and the rest of the path. */
static int inside_mount(const struct cube_root *root, const char *path, const char **rest, bool *read_only)
{
	size_t longest = 0;
	int fd = root->fd;

	*rest = path;
	*read_only = false;
	for (unsigned i = 0; i < root->n_mounts; i++) {
		size_t n = strlen(root->mounts[i].path);

		if (n <= longest || strncmp(path, root->mounts[i].path, n) != 0 ||
		    (path[n] != '\0' && path[n] != '/'))
			continue;
		longest = n;
		fd = root->mounts[i].fd;
		*rest = path + n;
		*read_only = root->mounts[i].read_only;
	}
	return fd;
}

/* Is something mounted at @path or below it? */
static bool inside_is_mount(const struct cube_root *root, const char *path)
{
	size_t n = strlen(path);

	for (unsigned i = 0; i < root->n_mounts; i++) {
		const char *m = root->mounts[i].path;

		if (strncmp(m, path, n) == 0 && (m[n] == '\0' || m[n] == '/'))
			return true;
	}
	return false;
}

/* The directory above @path, and the last part of it, which is the caller's to free with the path: *ret_name is in
 * @path. @make: what is missing of it is made. */
static int inside_above(const struct cube_root *root, const char *path, const struct cube_file_owner *make,
			const char **ret_name, int *ret_fd)
{
	const char *rest, *slash = strrchr(path, '/');
	char above[CUBE_INSIDE_MAX + 1];
	bool read_only;
	int fd;

	(void)snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
	fd = inside_mount(root, above[0] != '\0' ? above : "/", &rest, &read_only);
	if (read_only)
		return -EROFS;
	fd = cube_file_beneath(fd, rest, make);
	if (fd < 0)
		return fd;
	*ret_name = slash + 1;
	*ret_fd = fd;
	return 0;
}

static int transfer_fail(struct cube_transfer *t, const char *name, int code)
{
	return cube_fail(&t->err, code, "%s %s: %s", t->order.get ? "get" : "put", name,
			 code == -ELOOP ? "a link is in this path: name the directory itself"
			 : code == -EXDEV
				 ? "the template's own directory there cannot be moved: name one in it"
				 : cube_errno_text(code));
}

/* ---- put: no lock ---- */

static uid_t put_id(uint32_t base, uint32_t count, uint32_t id)
{
	return count == UINT32_MAX ? id : base + id;
}

static int put_copy(struct cube_transfer *t, int source, int stage)
{
	struct cube_copying *c = &t->copying;
	struct stat st;
	int r = fstat(source, &st) < 0 ? -errno : 0;

	*c = (struct cube_copying){.from = &t->by,
				   .own = true,
				   .uid = put_id(t->root.uid_base, t->root.id_count, t->order.uid),
				   .gid = put_id(t->root.gid_base, t->root.id_count, t->order.gid),
				   .mode = t->order.mode,
				   .keep = 07777,
				   .room = &t->room,
				   .cancel = t->cancel};
	if (r == 0 && S_ISDIR(st.st_mode))
		r = cube_copy_tree(c, source, stage, &t->err);
	else if (r == 0 && S_ISREG(st.st_mode))
		r = cube_copy_archive(c, source, stage, &t->err);
	else if (r == 0)
		r = cube_fail(&t->err, -EINVAL, "neither a directory nor an archive");
	if (r < 0 && t->err.code == 0)
		(void)cube_fail(&t->err, r, "%s", cube_errno_text(r));
	if (r < 0)
		return cube_fail_in(&t->err, "put '%s'", t->order.host);
	if (fstat(source, &st) == 0 && !S_ISDIR(st.st_mode))
		st.st_mode = 0755;
	r = cube_copy_finish(c, stage, true, st.st_mode & 0777, &st.st_mtim);
	return r < 0 ? transfer_fail(t, t->order.path, r) : 0;
}

/* In one step: there is no moment at which neither or half of it is there. */
static int put_place(struct cube_transfer *t, int above, const char *name)
{
	if (cube_cancel_fired(t->cancel))
		return cube_fail(&t->err, -EINTR, "put: interrupted");
	if (renameat2(above, t->stage, above, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EEXIST || renameat2(above, t->stage, above, name, RENAME_EXCHANGE) < 0)
		return transfer_fail(t, t->order.path, -errno);
	return 0;
}

/* The paths that go with it: each by one step too; what is not there is what was wanted. */
static int put_remove(struct cube_transfer *t)
{
	for (size_t i = 0; i < t->order.n_remove; i++) {
		const char *path = t->order.remove[i], *name;
		cube_auto_fd above = -1;
		int r = inside_above(&t->root, path, NULL, &name, &above);

		if (r == 0)
			r = cube_file_remove_tree(above, name);
		if (r < 0 && r != -ENOENT)
			return transfer_fail(t, path, r);
	}
	return 0;
}

static int put_check(struct cube_transfer *t)
{
	if (t->order.uid >= t->root.id_count || t->order.gid >= t->root.id_count)
		return cube_fail(&t->err, -EINVAL, "put: owner=%u:%u: this sandbox has users below %u only",
				 t->order.uid, t->order.gid, t->root.id_count);
	for (size_t i = 0; i <= t->order.n_remove; i++) {
		const char *path = i == 0 ? t->order.path : t->order.remove[i - 1];

		if (inside_is_mount(&t->root, path))
			return cube_fail(
				&t->err, -EBUSY,
				"put: something is mounted at %s or below it: name a directory in it", path);
	}
	return 0;
}

static int put_stage(struct cube_transfer *t, int source, int above, const char *name)
{
	cube_auto_fd stage = cube_copy_mkdir(&t->copying, above, t->stage);
	int r = stage < 0 ? transfer_fail(t, t->order.path, stage) : put_copy(t, source, stage);

	if (r == 0)
		r = put_place(t, above, name);
	/* Either what has grown and is not wanted, or what was there before. */
	(void)cube_file_remove_tree(above, t->stage);
	return r == 0 ? put_remove(t) : r;
}

int cube_transfer_put(struct cube_transfer *t)
{
	const struct cube_file_owner make = {.uid = put_id(t->root.uid_base, t->root.id_count, 0),
					     .gid = put_id(t->root.gid_base, t->root.id_count, 0),
					     .mode = 0755};
	cube_auto_fd source = -1, above = -1;
	const char *name;
	int r = put_check(t);

	if (r == 0)
		r = cube_caller_open(&t->by, t->order.host, O_RDONLY | O_NONBLOCK, &source, &t->err);
	if (r < 0)
		return r;
	r = inside_above(&t->root, t->order.path, &make, &name, &above);
	if (r < 0)
		return transfer_fail(t, t->order.path, r);
	return put_stage(t, source, above, name);
}

/* ---- get: no lock ---- */

static int get_open(struct cube_transfer *t, int *ret)
{
	const char *rest, *name;
	bool read_only;
	cube_auto_fd above = -1;
	char path[CUBE_INSIDE_MAX + 1], *slash;
	int fd = inside_mount(&t->root, t->order.path, &rest, &read_only);

	(void)snprintf(path, sizeof(path), "%s", rest);
	slash = strrchr(path, '/');
	name = slash != NULL && slash[1] != '\0' ? slash + 1 : ".";
	if (slash != NULL)
		*slash = '\0';
	above = cube_file_beneath(fd, slash != NULL ? path : "", NULL);
	if (above < 0)
		return above;
	fd = openat(above, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

/* With the rights of who asked: rename onto what was there for a file, as cp does; a directory must be new. */
static int get_place(struct cube_transfer *t, int above, const char *name, bool dir)
{
	struct cube_caller_rights ours;
	int r = cube_caller_enter(&t->by, &ours);

	if (r == 0)
		r = renameat2(above, t->stage, above, name, dir ? RENAME_NOREPLACE : 0) < 0 ? -errno : 0;
	if (r < 0)
		(void)cube_file_remove_tree(above, t->stage);
	cube_caller_leave(&ours);
	return r;
}

static int get_copy(struct cube_transfer *t, int source, int above, bool dir)
{
	struct cube_copying *c = &t->copying;
	cube_auto_fd stage = -1;
	struct stat st;
	int r;

	if (!dir)
		return cube_copy_file(c, source, above, t->stage);
	stage = cube_copy_mkdir(c, above, t->stage);
	if (stage < 0)
		return stage;
	r = cube_copy_tree(c, source, stage, &t->err);
	if (r == 0)
		r = fstat(source, &st) < 0 ? -errno
					   : cube_copy_finish(c, stage, true, st.st_mode, &st.st_mtim);
	return r;
}

/* Nothing that hostile code may have made is more on this machine than a file of who asked: no setuid, no device, no
 * link that leads elsewhere. */
static int get_to(struct cube_transfer *t, int source, int above, const char *name)
{
	struct cube_caller_rights ours;
	struct stat st;
	bool dir;
	int r;

	if (fstat(source, &st) < 0)
		return transfer_fail(t, t->order.path, -errno);
	dir = S_ISDIR(st.st_mode);
	if (!dir && !S_ISREG(st.st_mode))
		return cube_fail(&t->err, -EINVAL, "get %s: neither a file nor a directory", t->order.path);
	t->copying = (struct cube_copying){
		.to = &t->by, .mode = -1, .keep = 0777, .links_stay = true, .cancel = t->cancel};
	r = get_copy(t, source, above, dir);
	if (r == 0 && cube_cancel_fired(t->cancel))
		r = -EINTR;
	if (r == 0)
		return (r = get_place(t, above, name, dir)) < 0 ? transfer_fail(t, t->order.host, r) : 0;
	if (cube_caller_enter(&t->by, &ours) == 0)
		(void)cube_file_remove_tree(above, t->stage);
	cube_caller_leave(&ours);
	return t->err.code != 0 ? cube_fail_in(&t->err, "get %s", t->order.path)
				: transfer_fail(t, t->order.path, r);
}

int cube_transfer_get(struct cube_transfer *t)
{
	cube_auto_str parent = cube_strdup(t->order.host);
	cube_auto_fd source = -1, above = -1;
	char *slash = parent != NULL ? strrchr(parent, '/') : NULL;
	int r;

	if (slash == NULL)
		return cube_fail(&t->err, -ENOMEM, "get: out of memory");
	if (!cube_name_entry_ok(slash + 1))
		return cube_fail(&t->err, -EINVAL, "get: '%s' is no name for a new file", t->order.host);
	*slash = '\0';
	r = cube_caller_open(&t->by, parent[0] != '\0' ? parent : "/", O_RDONLY | O_DIRECTORY, &above,
			     &t->err);
	if (r < 0)
		return r;
	r = get_open(t, &source);
	if (r < 0)
		return transfer_fail(t, t->order.path, r);
	return get_to(t, source, above, slash + 1);
}

/* ---- What was left half-way ---- */

int cube_transfer_clean(struct cube_transfer *t)
{
	cube_auto_fd above = -1;
	const char *name;
	int r = inside_above(&t->root, t->note, NULL, &name, &above);

	return r == 0 ? cube_file_remove_tree(above, name) : 0; /* its directory went as well */
}
