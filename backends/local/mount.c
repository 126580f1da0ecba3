/* SPDX-License-Identifier: Apache-2.0 */
/* Which volumes and binds a sandbox has, and where. */
#include "backends/local/local_priv.h"

#include "backends/base/file.h"
#include "backends/ns/mounts.h"
#include "backends/local/keep.h"
#include "backends/local/mnt.h"
#include "backends/local/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WORKSPACE "/workspace"

/* ---- the record ---- */

/* A parent's path sorts before what is in it. */
static unsigned mounts_insert(struct cube_local_record *r, const struct cube_local_mount *m)
{
	unsigned at = r->n_mounts++;

	for (; at > 0 && strcmp(r->mounts[at - 1].path, m->path) > 0; at--)
		r->mounts[at] = r->mounts[at - 1];
	r->mounts[at] = *m;
	return at;
}

unsigned cube_local_mounts_add(struct local_cube *c, const struct cube_local_mount *m, int fd)
{
	unsigned at = mounts_insert(&c->rec, m);

	memmove(&c->binds[at + 1], &c->binds[at], (c->rec.n_mounts - 1 - at) * sizeof(c->binds[0]));
	c->binds[at] = fd;
	return at;
}

void cube_local_mounts_take(struct local_cube *c, unsigned i)
{
	unsigned behind = --c->rec.n_mounts - i;

	cube_local_keep_end(c->binds[i]);
	memmove(&c->binds[i], &c->binds[i + 1], behind * sizeof(c->binds[0]));
	memmove(&c->rec.mounts[i], &c->rec.mounts[i + 1], behind * sizeof(c->rec.mounts[0]));
	c->binds[c->rec.n_mounts] = -1;
}

int cube_local_mounts_set(struct cube_local_record *r, const struct cube_spec *spec, struct cube_err *err)
{
	if (spec->n_volumes > CUBE_LOCAL_MOUNTS)
		return cube_fail(err, -ENOSPC, "a sandbox has %d volumes at most", CUBE_LOCAL_MOUNTS);
	for (size_t i = 0; i < spec->n_volumes; i++) {
		const struct cube_spec_volume *v = &spec->volumes[i];
		struct cube_local_mount m = {.read_only = v->read_only};

		(void)snprintf(m.path, sizeof(m.path), "%s", v->path);
		(void)snprintf(m.volume, sizeof(m.volume), "%s", v->volume);
		(void)mounts_insert(r, &m);
	}
	return 0;
}

const struct cube_local_mount *cube_local_mounts_workspace(const struct local_cube *c)
{
	for (unsigned i = 0; i < c->rec.n_mounts; i++)
		if (strcmp(c->rec.mounts[i].path, WORKSPACE) == 0)
			return &c->rec.mounts[i];
	return NULL;
}

/* ---- what is mounted ---- */

/* The mount of the @i-th from which clones are made; the caller's descriptor. */
static int mount_open(struct cube_local *b, struct local_cube *c, unsigned i, int *ret_fd,
		      struct cube_err *err)
{
	const struct cube_local_mount *m = &c->rec.mounts[i];

	if (*m->volume)
		return cube_local_volume_open(b, m->volume, ret_fd, err);
	if (!cube_local_bind_known(c, i))
		return cube_fail(
			err, -EIO,
			"bind %s: its directory has not been opened since the daemon was started; `unbind "
			"%s` gives it up",
			m->path, m->path);
	*ret_fd = fcntl(c->binds[i], F_DUPFD_CLOEXEC, 3);
	return *ret_fd < 0 ? cube_fail_errno(err, "bind %s", m->path) : 0;
}

/* Is @path at or below @dir? */
static bool mount_covers(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	return strncmp(dir, path, n) == 0 && (path[n] == 0 || path[n] == '/');
}

/* The mount before the @i-th in which its path lies, and the rest of that path. */
static int mount_above(struct cube_local *b, struct local_cube *c, unsigned i, const char **rest, int *ret_fd,
		       struct cube_err *err)
{
	const char *path = c->rec.mounts[i].path;

	for (unsigned k = i; k-- > 0;)
		if (mount_covers(c->rec.mounts[k].path, path) &&
		    strcmp(c->rec.mounts[k].path, WORKSPACE) != 0) {
			*rest = path + strlen(c->rec.mounts[k].path);
			return mount_open(b, c, k, ret_fd, err);
		}
	*rest = mount_covers(WORKSPACE, path) ? path + strlen(WORKSPACE) : path;
	*ret_fd = fcntl(mount_covers(WORKSPACE, path) ? c->workspace : c->root, F_DUPFD_CLOEXEC, 3);
	return *ret_fd < 0 ? cube_fail_errno(err, "%s", path) : 0;
}

/* This machine's own directories, bound read only (an ordinary user's template `host`). */
static bool mount_is_shown(const struct cube_local *b, const struct local_cube *c, const char *path)
{
	struct cube_local_shown shown;
	char dir[32];

	cube_local_template_binds(b, c->rec.template, &shown);
	for (unsigned i = 0; i < shown.n; i++) {
		(void)snprintf(dir, sizeof(dir), "/%s", shown.name[i]);
		if (mount_covers(dir, path))
			return true;
	}
	return false;
}

/* The directory on which it is mounted, made where it is missing. */
int cube_local_mounts_point(struct cube_local *b, struct local_cube *c, unsigned i, struct cube_err *err)
{
	const struct cube_ns_ids *ids = &b->host->ids;
	const struct cube_file_owner make = {.uid = ids->uid, .gid = ids->gid, .mode = 0755};
	const char *path = c->rec.mounts[i].path, *rest;
	cube_auto_fd above = -1, point = -1;
	int rc;

	if (mount_is_shown(b, c, path))
		return cube_fail(err, -EROFS,
				 "%s lies in a directory of this machine that is shown read only", path);
	rc = mount_above(b, c, i, &rest, &above, err);
	if (rc < 0)
		return rc;
	point = cube_file_beneath(above, rest, &make);
	if (point >= 0)
		return 0;
	return cube_fail(err, point, "%s: %s", path,
			 point == -ELOOP ? "a link is in this path inside: name the directory itself"
					 : cube_errno_text(point));
}

int cube_local_mounts_clone(struct cube_local *b, struct local_cube *c, unsigned i, int *ret_fd,
			    struct cube_err *err)
{
	cube_auto_fd from = -1;
	int rc = cube_local_mounts_point(b, c, i, err), fd;

	if (rc == 0)
		rc = mount_open(b, c, i, &from, err);
	if (rc < 0)
		return rc;
	fd = cube_local_mnt_clone(from, "");
	if (fd < 0)
		return cube_fail(err, fd, "%s: %s", c->rec.mounts[i].path, cube_errno_text(fd));
	*ret_fd = fd;
	return 0;
}

int cube_local_mounts_root(struct cube_local *b, struct local_cube *c, struct cube_root *root,
			   struct cube_err *err)
{
	for (unsigned i = 0; i < c->rec.n_mounts; i++) {
		const struct cube_local_mount *m = &c->rec.mounts[i];
		cube_auto_fd fd = -1;
		int rc;

		if (strcmp(m->path, WORKSPACE) == 0 || (!*m->volume && !cube_local_bind_known(c, i)))
			continue;
		rc = mount_open(b, c, i, &fd, err);
		if (rc < 0)
			return rc;
		rc = cube_local_root_add(root, m->path, fd, m->read_only, true);
		if (rc < 0)
			return cube_fail(err, rc, "%s: %s", m->path, cube_errno_text(rc));
	}
	return 0;
}
