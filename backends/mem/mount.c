/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes and binds: directories that are in a sandbox and are not its own.
 *
 * Nothing is mounted: names inside are resolved here (tree.c), so a mount is a path with a descriptor. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/mem/mem_priv.h"

#define FOLDER "volumes"

/* ---- Mounts of a sandbox ---- */

const struct mem_mount *mem_mount_of(const struct mem_box *b, const char *normal)
{
	const struct mem_mount *best = NULL;
	size_t longest = 0;

	for (unsigned i = 0; i < b->n_mounts; i++) {
		size_t n = strlen(b->mounts[i].path);

		if (n <= longest || strncmp(normal, b->mounts[i].path, n) != 0 ||
		    (normal[n] != '\0' && normal[n] != '/'))
			continue;
		best = &b->mounts[i];
		longest = n;
	}
	return best;
}

static struct mem_mount *mount_at(struct mem_box *b, const char *path)
{
	for (unsigned i = 0; i < b->n_mounts; i++)
		if (strcmp(b->mounts[i].path, path) == 0)
			return &b->mounts[i];
	return NULL;
}

void mem_mounts_close(struct mem_box *b)
{
	for (unsigned i = 0; i < b->n_mounts; i++)
		close(b->mounts[i].fd);
	b->n_mounts = 0;
}

/* The directory at which it is seen is made where it is missing. */
static int mount_point(struct mem_box *b, const char *path)
{
	static const struct cube_file_owner make = {.uid = (uid_t)-1, .gid = (gid_t)-1, .mode = 0755};
	const char *rest;
	int open = mem_tree_open_box(b); /* a stopped one has them closed */
	int dir = mem_tree_split(b, path, &rest, NULL);
	int fd = open < 0 ? open : cube_file_beneath(dir, strcmp(rest, ".") == 0 ? "" : rest, &make);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

/* Takes @fd over, on success. */
static int mount_add(struct mem_box *b, const struct mem_mount *m, struct cube_err *err)
{
	int r;

	if (b->n_mounts + 1 >= CUBE_MOUNTS_MAX) /* one is the workspace */
		return cube_fail(err, -ENOSPC, "%s: a sandbox has %d volumes and binds at most", m->path,
				 CUBE_MOUNTS_MAX - 1);
	r = mount_point(b, m->path);
	if (r < 0)
		return cube_fail(err, r, "%s: %s", m->path,
				 r == -ELOOP ? "a link is in this path inside: name the directory itself"
					     : cube_errno_text(r));
	b->mounts[b->n_mounts++] = *m;
	return 0;
}

int mem_mounts_make(struct mem_box *b, const struct cube_spec *spec, struct cube_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < spec->n_volumes; i++) {
		const struct cube_spec_volume *v = &spec->volumes[i];
		struct mem_mount m = {.read_only = v->read_only};
		char path[sizeof(FOLDER) + CUBE_ID_MAX + 1];

		(void)snprintf(path, sizeof(path), FOLDER "/%s", v->volume);
		(void)snprintf(m.path, sizeof(m.path), "%s", v->path);
		(void)snprintf(m.volume, sizeof(m.volume), "%s", v->volume);
		m.fd = openat(b->mem->dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (m.fd < 0)
			return cube_fail(err, -ENOENT, "no volume %s", v->volume);
		r = mount_add(b, &m, err);
		if (r < 0)
			close(m.fd);
	}
	return r;
}

int mem_mounts_root(const struct mem_box *b, struct cube_root *root)
{
	for (unsigned i = 0; i < b->n_mounts; i++) {
		const struct mem_mount *m = &b->mounts[i];
		bool first = strcmp(m->path, root->mounts[0].path) == 0;
		unsigned at = first ? 0 : root->n_mounts;
		int fd = openat(m->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd < 0)
			return -errno;
		if (first)
			cube_close_auto(&root->mounts[0].fd); /* in the place of its own /workspace */
		else
			root->n_mounts++;
		(void)snprintf(root->mounts[at].path, sizeof(root->mounts[at].path), "%s", m->path);
		root->mounts[at].fd = fd;
		root->mounts[at].read_only = m->read_only;
		root->mounts[at].shared = true;
	}
	return 0;
}

/* ---- Volumes ---- */

int mem_volumes_load(struct mem *m, struct cube_err *err)
{
	int r = cube_file_remove_tree(m->dir, FOLDER);

	if (r == 0 && mkdirat(m->dir, FOLDER, 0700) < 0)
		r = -errno;
	return r < 0 ? cube_fail(err, r, "make %s/" FOLDER ": %s", m->env->state_dir, cube_errno_text(r)) : 0;
}

int mem_volume_make(struct cube_backend *b, const char *uid, const char *name, struct cube_cancel *cancel,
		    struct cube_err *err)
{
	char path[sizeof(FOLDER) + CUBE_ID_MAX + 1];

	(void)name;
	if (cube_cancel_fired(cancel))
		return cube_fail(err, -EINTR, "making the volume was cancelled");
	(void)snprintf(path, sizeof(path), FOLDER "/%s", uid);
	if (mkdirat(mem_of(b)->dir, path, 0755) < 0 && errno != EEXIST)
		return cube_fail_errno(err, "make volume %s", uid);
	return fchmodat(mem_of(b)->dir, path, 0755, 0) < 0 ? cube_fail_errno(err, "make volume %s", uid) : 0;
}

int mem_volume_open(struct mem *m, const char *uid)
{
	char path[sizeof(FOLDER) + CUBE_ID_MAX + 1];

	(void)snprintf(path, sizeof(path), FOLDER "/%.*s", CUBE_ID_MAX, uid);
	return openat(m->dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static int volume_used(void *ctx, const char *key, void *value)
{
	const struct mem_box *b = value;

	(void)key;
	for (unsigned i = 0; i < b->n_mounts; i++)
		if (strcmp(b->mounts[i].volume, ctx) == 0)
			return 1;
	return 0;
}

int mem_volume_remove(struct cube_backend *base, const char *uid, struct cube_err *err)
{
	struct mem *m = mem_of(base);
	char name[CUBE_ID_MAX + 1], path[sizeof(FOLDER) + CUBE_ID_MAX + 1];
	int r;

	(void)snprintf(name, sizeof(name), "%s", uid);
	(void)snprintf(path, sizeof(path), FOLDER "/%s", uid);
	pthread_mutex_lock(&m->lock);
	r = cube_map_each(m->boxes, volume_used, name);
	pthread_mutex_unlock(&m->lock);
	if (r != 0)
		return cube_fail(err, -EBUSY, "volume %s is in use: destroy the sandboxes that have it first",
				 uid);
	r = cube_file_remove_tree(m->dir, path);
	return r < 0 ? cube_fail(err, r, "remove volume %s: %s", uid, cube_errno_text(r)) : 0;
}

int mem_volume_list(struct cube_backend *b, void (*each)(void *ctx, const struct cube_volume *v), void *ctx,
		    struct cube_err *err)
{
	int fd = openat(mem_of(b)->dir, FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;

	if (dir == NULL) {
		int r = cube_fail_errno(err, "list the volumes");

		cube_close_auto(&fd);
		return r;
	}
	while ((e = readdir(dir)) != NULL) {
		struct cube_volume v = {.size = UINT64_MAX};

		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(v.uid, sizeof(v.uid), "%.*s", CUBE_ID_MAX, e->d_name);
		each(ctx, &v);
	}
	(void)closedir(dir);
	return 0;
}

int mem_volume_root(struct cube_backend *b, const char *uid, struct cube_root *ret, struct cube_err *err)
{
	char path[sizeof(FOLDER) + CUBE_ID_MAX + 1];
	int fd;

	(void)snprintf(path, sizeof(path), FOLDER "/%s", uid);
	fd = openat(mem_of(b)->dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return cube_fail(err, -ENOENT, "no volume %s", uid);
	*ret = (struct cube_root){.fd = fd, .generation = 1};
	mem_root_owners(ret);
	return 0;
}

/* ---- Binds ---- */

/* Ids are not changed here: root inside is who runs this. */
static int bind_check(const struct cube_bind *bind, struct cube_err *err)
{
	if (bind->owner_uid == geteuid())
		return 0;
	return cube_fail(
		err, -EOPNOTSUPP,
		"bind %s: files of user %u cannot be shown as those of root inside; backend mem shows "
		"owners as they are",
		bind->path, bind->owner_uid);
}

static int bind_into(struct mem_box *box, const struct cube_bind *bind, struct cube_err *err)
{
	struct mem_mount m = {.read_only = bind->read_only, .bind = true};
	struct mem_mount *old = mount_at(box, bind->path);
	int r = 0;

	if (old != NULL && (!old->bind || strcmp(bind->path, "/workspace") == 0))
		return cube_fail(err, -EBUSY, "bind %s: a volume is there", bind->path);
	if (old != NULL && box->state != CUBE_IS_STOPPED)
		return 0;
	m.fd = openat(bind->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (m.fd < 0)
		return cube_fail_errno(err, "bind %s", bind->path);
	(void)snprintf(m.path, sizeof(m.path), "%s", bind->path);
	if (old != NULL) {
		close(old->fd);
		*old = m;
		return 0;
	}
	r = mount_add(box, &m, err);
	if (r < 0)
		close(m.fd);
	return r;
}

int mem_bind(struct cube_backend *b, const char *id, const struct cube_bind *bind, struct cube_cancel *cancel,
	     struct cube_err *err)
{
	struct mem *m = mem_of(b);
	struct mem_box *box;
	int r = bind_check(bind, err);

	if (r == 0 && cube_cancel_fired(cancel))
		r = cube_fail(err, -EINTR, "bind was cancelled");
	if (r < 0)
		return r;
	pthread_mutex_lock(&m->lock);
	box = mem_box_find(m, id, err);
	r = box != NULL ? bind_into(box, bind, err) : -ENOENT;
	pthread_mutex_unlock(&m->lock);
	return r;
}

int mem_unbind(struct cube_backend *b, const char *id, const char *path, struct cube_err *err)
{
	struct mem *m = mem_of(b);
	struct mem_mount *old;
	struct mem_box *box;
	int r = 0;

	pthread_mutex_lock(&m->lock);
	box = mem_box_find(m, id, err);
	old = box != NULL ? mount_at(box, path) : NULL;
	if (box == NULL)
		r = -ENOENT;
	else if (old != NULL && !old->bind)
		r = cube_fail(err, -EBUSY, "unbind %s: a volume is there", path);
	else if (old != NULL) {
		close(old->fd);
		*old = box->mounts[--box->n_mounts];
	}
	pthread_mutex_unlock(&m->lock);
	return r;
}
