/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of this machine in a sandbox.
 *
 * What is mounted inside is a clone of one mount that is kept here: nodev, nosuid, and with other ids, so that
 * who asked for it is root inside. Of an ordinary user no id but his own is to be had in it, so that nothing can
 * be made there that belongs to another one; root gets the whole range. The number of the mount inside is
 * written down before it is attached: a daemon that is killed in between finds it, or that it is not there. */
#include "backends/local/local_priv.h"

#include "backends/ns/mounts.h"
#include "backends/local/keep.h"
#include "backends/ns/bind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Index of the mount at @path, or -1. */
static int bind_find(const struct local_cube *c, const char *path)
{
	for (unsigned i = 0; i < c->rec.n_mounts; i++)
		if (strcmp(c->rec.mounts[i].path, path) == 0)
			return (int)i;
	return -1;
}

/* Where its mount is inside; -ENOENT: nowhere. */
static int bind_inside(const struct local_cube *c, const struct cube_local_mount *m, struct cube_ns_point *p)
{
	return m->number == 0 ? -ENOENT : cube_ns_mount_number(c->rec.init.pid, m->number, p);
}

bool cube_local_bind_known(struct local_cube *c, unsigned i)
{
	struct cube_ns_point p;

	if (c->binds[i] >= 0)
		return true;
	return cube_local_cube_runs(c) && bind_inside(c, &c->rec.mounts[i], &p) == 0 &&
	       cube_local_keep_inside(c->rec.init.pid, &p, c->dir, &c->binds[i]) == 0;
}

/* Nothing of the inside has run yet that could have changed anything. */
void cube_local_binds_started(struct local_cube *c)
{
	struct cube_ns_point p;

	for (unsigned i = 0; i < c->rec.n_mounts; i++) {
		struct cube_local_mount *m = &c->rec.mounts[i];

		if (!*m->volume)
			m->number = cube_ns_mount_at(c->rec.init.pid, m->path, &p) == 0 ? p.id : 0;
	}
}

/* ---- the mount that is kept ---- */

static int bind_mount(const struct cube_local *b, const struct cube_bind *bind, int *ret_fd,
		      struct cube_err *err)
{
	cube_auto_fd fd = cube_ns_bind_mount(&b->host->ids, bind, err);
	int rc = fd < 0 ? fd : cube_local_keep(fd);

	if (fd < 0)
		return rc;
	if (rc < 0)
		return cube_fail(err, rc, "bind %s: %s", bind->path, cube_errno_text(rc));
	*ret_fd = cube_steal_fd(&fd);
	return 0;
}

/* ---- attaching ---- */

static int bind_number(int fd, uint64_t *ret)
{
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &stx) < 0)
		return -errno;
	*ret = stx.stx_mnt_id;
	return 0;
}

static int bind_attach(struct cube_local *b, struct local_cube *c, unsigned i, struct cube_err *err)
{
	struct cube_local_mount *m = &c->rec.mounts[i];
	cube_auto_fd fd = -1;
	int rc = cube_local_mounts_clone(b, c, i, &fd, err);

	if (rc < 0)
		return rc;
	rc = bind_number(fd, &m->number);
	if (rc == 0)
		rc = cube_local_cube_save(c, err);
	if (rc == 0)
		rc = cube_ns_mount_attach(c->rec.init.pid, fd, m->path, &m->number);
	if (rc == 0)
		return 0;
	m->number = 0;
	return cube_fail(err, rc, "bind %s: %s", m->path,
			 rc == -EBUSY   ? "something is mounted there inside"
			 : rc == -ELOOP ? "a link is in this path inside: name the directory itself"
					: cube_errno_text(rc));
}

/* It is in the record; the mount follows where it runs, else with its next start. */
static int bind_new(struct cube_local *b, struct local_cube *c, const struct cube_bind *bind, int fd,
		    struct cube_err *err)
{
	struct cube_local_mount m = {.read_only = bind->read_only};
	struct cube_err ignored;
	unsigned i;
	int rc;

	(void)snprintf(m.path, sizeof(m.path), "%s", bind->path);
	i = cube_local_mounts_add(c, &m, fd);
	rc = cube_local_cube_mount(b, c, NULL, err);
	if (rc == 0)
		rc = cube_local_cube_runs(c) ? bind_attach(b, c, i, err)
					     : cube_local_mounts_point(b, c, i, err);
	if (rc == 0)
		rc = cube_local_cube_save(c, err);
	if (rc == 0)
		return 0;
	cube_local_mounts_take(c, i);
	(void)cube_local_cube_save(c, &ignored);
	return rc;
}

/* One that is there already: told again by a daemon that was restarted, or another directory for a stopped one. */
static int bind_again(struct cube_local *b, struct local_cube *c, unsigned i, const struct cube_bind *bind,
		      struct cube_err *err)
{
	struct cube_local_mount *m = &c->rec.mounts[i];
	bool runs = cube_local_cube_runs(c);
	struct cube_ns_point p;
	int fd = -1, rc;

	if (runs && bind_inside(c, m, &p) == 0)
		return 0;
	rc = bind_mount(b, bind, &fd, err);
	if (rc < 0)
		return rc;
	cube_local_keep_end(c->binds[i]);
	c->binds[i] = fd;
	m->read_only = bind->read_only;
	if (runs)
		rc = cube_local_cube_mount(b, c, NULL, err);
	if (runs && rc == 0)
		rc = bind_attach(b, c, i, err);
	return rc == 0 ? cube_local_cube_save(c, err) : rc;
}

int cube_local_bind(struct cube_backend *base, const char *id, const struct cube_bind *bind,
		    struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct local_cube *c;
	int rc = cube_local_cube_sound(b, id, &c, err), fd = -1, i;

	if (rc == 0 && cube_cancel_fired(cancel))
		rc = cube_fail(err, -EINTR, "interrupted");
	if (rc < 0)
		return rc;
	i = bind_find(c, bind->path);
	if (i >= 0 && !*c->rec.mounts[i].volume)
		return bind_again(b, c, (unsigned)i, bind, err);
	if (i >= 0 || strcmp(bind->path, "/workspace") == 0)
		return cube_fail(err, -EBUSY, "bind %s: %s is there", bind->path,
				 i >= 0 ? "a volume" : "the sandbox's own directory");
	if (c->rec.n_mounts == CUBE_LOCAL_MOUNTS)
		return cube_fail(err, -ENOSPC, "bind %s: a sandbox has %d volumes and binds at most",
				 bind->path, CUBE_LOCAL_MOUNTS);
	rc = bind_mount(b, bind, &fd, err);
	return rc == 0 ? bind_new(b, c, bind, fd, err) : rc;
}

/* A stale number, after the machine was restarted or the mount's parents were moved about inside, is no mount of
 * ours: only the one that was attached has it and lies there. */
static int bind_detach(const struct local_cube *c, const struct cube_local_mount *m, struct cube_err *err)
{
	struct cube_ns_point p;
	int rc = cube_local_cube_runs(c) ? bind_inside(c, m, &p) : -ENOENT;

	if (rc == 0)
		rc = cube_ns_mount_detach(c->rec.init.pid, &p);
	return rc == 0 || rc == -ENOENT ? 0
					: cube_fail(err, rc, "unbind %s: %s", m->path,
						    rc == -EBUSY ? "something else is mounted over it inside"
								 : cube_errno_text(rc));
}

int cube_local_unbind(struct cube_backend *base, const char *id, const char *path, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct local_cube *c;
	int rc = cube_local_cube_sound(b, id, &c, err), i;

	if (rc < 0)
		return rc;
	i = bind_find(c, path);
	if (i < 0)
		return 0;
	if (*c->rec.mounts[i].volume)
		return cube_fail(err, -EBUSY, "unbind %s: a volume is there", path);
	rc = bind_detach(c, &c->rec.mounts[i], err);
	if (rc < 0)
		return rc;
	cube_local_mounts_take(c, (unsigned)i);
	return cube_local_cube_save(c, err);
}
