/* SPDX-License-Identifier: Apache-2.0 */
/* The sandboxes that are known: records, descriptors, mounts. */
#include "backends/local/local_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "backends/local/dirs.h"
#include "backends/ns/mounts.h"
#include "backends/local/keep.h"
#include "backends/local/mnt.h"
#include "backends/ns/oom.h"
#include "backends/local/overlay.h"
#include "backends/local/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void cube_free_one(struct local_cube *c)
{
	if (!c)
		return;
	cube_local_cube_unmount(c);
	for (size_t i = 0; i < CUBE_COUNT(c->binds); i++)
		cube_local_keep_end(c->binds[i]);
	cube_ns_oom_forget(c->oom);
	if (c->dir >= 0)
		close(c->dir);
	cube_free(c);
}

static struct local_cube *cube_alloc(const char *id)
{
	struct local_cube *c = cube_calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	(void)snprintf(c->id, sizeof(c->id), "%s", id);
	c->dir = c->root = c->workspace = -1;
	for (size_t i = 0; i < CUBE_COUNT(c->binds); i++)
		c->binds[i] = -1;
	return c;
}

/* Ids are directory names here. */
static bool cube_id_ok(const char *id)
{
	size_t n = strlen(id);

	return n > 0 && n <= CUBE_ID_MAX && strspn(id, "0123456789abcdef") == n;
}

static int cube_load(struct cube_local *b, const char *id, struct local_cube **ret, struct cube_err *err)
{
	struct cube_err why = {0};
	struct local_cube *c;

	if (!cube_id_ok(id))
		return cube_fail(err, -ENOENT, "no sandbox %.64s", id);
	c = cube_alloc(id);
	if (!c)
		return cube_fail(err, -ENOMEM, "out of memory");
	c->dir = openat(b->cubes, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (c->dir < 0) {
		cube_free_one(c);
		return cube_fail(err, -ENOENT, "no sandbox %s", id);
	}
	if (cube_local_record_read(c->dir, &c->rec, &why) < 0) {
		cube_log(CUBE_LOG_WARNING, "local", "sandbox %s: %s", id, why.text);
		c->damaged = true;
	}
	*ret = c;
	return 0;
}

static struct local_cube *cube_known(struct cube_local *b, const char *id)
{
	struct local_cube *c;

	pthread_mutex_lock(&b->lock);
	c = cube_map_get(b->map, id);
	pthread_mutex_unlock(&b->lock);
	return c;
}

/* Two calls for one sandbox never run at once, so nobody else loads it meanwhile. */
static int cube_enter(struct cube_local *b, struct local_cube *c, struct cube_err *err)
{
	int rc;

	pthread_mutex_lock(&b->lock);
	rc = cube_map_put(b->map, c->id, c);
	pthread_mutex_unlock(&b->lock);
	return rc < 0 ? cube_fail(err, rc, "sandbox %s: %s", c->id, cube_errno_text(rc)) : 0;
}

int cube_local_cube_get(struct cube_local *b, const char *id, struct local_cube **ret, struct cube_err *err)
{
	struct local_cube *c = cube_known(b, id);
	int rc = 0;

	if (!c) {
		rc = cube_load(b, id, &c, err);
		if (rc == 0)
			rc = cube_enter(b, c, err);
		if (rc < 0) {
			if (c)
				cube_free_one(c);
			return rc;
		}
		/* A daemon that was killed may have lifted it. */
		if (!c->damaged)
			(void)cube_local_cube_quota(b, c, true, NULL);
	}
	*ret = c;
	return 0;
}

int cube_local_cube_new(struct cube_local *b, const char *id, const struct cube_local_record *rec,
			struct local_cube **ret, struct cube_err *err)
{
	struct local_cube *c;
	int rc;

	if (!cube_id_ok(id))
		return cube_fail(err, -EINVAL, "'%.64s' is no id of a sandbox", id);
	c = cube_alloc(id);
	if (!c)
		return cube_fail(err, -ENOMEM, "out of memory");
	c->rec = *rec;
	if (mkdirat(b->cubes, id, 0700) < 0) {
		rc = cube_fail_errno(err, "cannot make the directory of sandbox %s", id);
		cube_free_one(c);
		return rc;
	}
	c->dir = openat(b->cubes, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	rc = c->dir < 0 ? cube_fail_errno(err, "cannot open the directory of sandbox %s", id)
			: cube_local_cube_save(c, err);
	if (rc == 0)
		rc = cube_enter(b, c, err);
	if (rc < 0) {
		cube_free_one(c);
		(void)cube_file_remove_tree(b->cubes, id);
		return rc;
	}
	*ret = c;
	return 0;
}

void cube_local_cube_drop(struct cube_local *b, struct local_cube *c)
{
	pthread_mutex_lock(&b->lock);
	(void)cube_map_take(b->map, c->id);
	pthread_mutex_unlock(&b->lock);
	cube_local_disk_forget(b->disk, c->id);
	cube_free_one(c);
}

int cube_local_cube_save(struct local_cube *c, struct cube_err *err)
{
	return cube_local_record_write(c->dir, &c->rec, err);
}

bool cube_local_cube_runs(const struct local_cube *c)
{
	return !c->damaged && c->rec.stage == CUBE_STAGE_RUNNING &&
	       cube_local_proc_alive(&c->rec, &c->rec.init);
}

static int cube_uses(void *ctx, int dir, const char *id)
{
	struct cube_local_record rec = {.stage = CUBE_STAGE_STOPPED};

	(void)id;
	return cube_local_record_read(dir, &rec, NULL) == 0 && strcmp(rec.template, ctx) == 0;
}

/* By what is on disk, since sandboxes that nobody asked for yet are not in the table. */
bool cube_local_cubes_use(struct cube_local *b, const char *template)
{
	char name[CUBE_ID_MAX + 1];

	(void)snprintf(name, sizeof(name), "%s", template);
	return cube_local_dirs_each(b->cubes, ".", cube_uses, name) != 0;
}

int cube_local_cube_quota(struct cube_local *b, const struct local_cube *c, bool on, struct cube_err *err)
{
	if (c->rec.limits.disk == 0 || !b->store.quota)
		return 0; /* what could be kept once and cannot any more is `not kept` */
	return cube_local_set_limit(&b->store, c->id, on ? c->rec.limits.disk : 0, err);
}

/* ---- mounts ---- */

void cube_local_cube_unmount(struct local_cube *c)
{
	cube_local_keep_end(cube_steal_fd(&c->root));
	cube_local_keep_end(cube_steal_fd(&c->workspace));
}

int cube_local_mount_root(struct cube_local *b, const char *id, const char *template,
			  const struct cube_local_seed *seed, int *ret_fd, struct cube_err *err)
{
	struct cube_local_layer layer = CUBE_LOCAL_LAYER_NONE;
	struct cube_local_base base;
	int rc = cube_local_template_open(b, template, &base, err);

	if (rc < 0)
		return rc;
	rc = cube_local_set_open(&b->store, id, CUBE_PART_ROOT, &layer, err);
	if (rc == 0 && seed)
		rc = cube_local_seed(layer.upper, base.lower, base.n_lower, seed, err);
	if (rc == 0) {
		struct cube_local_overlay o = {
			.source = id,
			.n_lower = base.n_lower,
			.upper = layer.upper,
			.work = layer.work,
			.flags = b->overlay_flags & ~(base.index ? 0u : (unsigned)CUBE_OVERLAY_INDEX),
		};

		memcpy(o.lower, base.lower, sizeof(o.lower));
		rc = cube_local_overlay_mount(&o, CUBE_LOCAL_ROOT_DIR, ret_fd, err);
	}
	cube_local_layer_close(&layer);
	cube_local_base_close(&base);
	return rc;
}

static int cube_empty_dir(struct cube_local *b, int *ret_fd, struct cube_err *err)
{
	int rc = cube_file_mkdir(b->templates, ".empty", 0755, ret_fd);

	return rc < 0 ? cube_fail(err, rc, "cannot make an empty directory: %s", cube_errno_text(rc)) : 0;
}

/* Without an upper layer overlayfs wants two. Closes @base. */
static int cube_mount_base(struct cube_local *b, const char *source, struct cube_local_base *base,
			   const char *root, int *ret_fd, struct cube_err *err)
{
	cube_auto_fd empty = -1;
	int rc = base->n_lower < 2 ? cube_empty_dir(b, &empty, err) : 0;

	if (rc == 0) {
		struct cube_local_overlay o = {
			.source = source,
			.n_lower = base->n_lower,
			.upper = -1,
			.work = -1,
			.flags = b->overlay_flags & (unsigned)(CUBE_OVERLAY_USERXATTR | CUBE_OVERLAY_XINO),
		};

		memcpy(o.lower, base->lower, sizeof(o.lower));
		if (empty >= 0)
			o.lower[o.n_lower++] = empty;
		rc = cube_local_overlay_mount(&o, root, ret_fd, err);
	}
	cube_local_base_close(base);
	return rc;
}

int cube_local_mount_template(struct cube_local *b, const char *template, int *ret_fd, struct cube_err *err)
{
	struct cube_local_base base;
	int rc = cube_local_template_open(b, template, &base, err);

	return rc == 0 ? cube_mount_base(b, template, &base, CUBE_LOCAL_ROOT_DIR, ret_fd, err) : rc;
}

int cube_local_mount_template_workspace(struct cube_local *b, const char *template, int *ret_fd,
					struct cube_err *err)
{
	struct cube_local_base base;
	int rc = cube_local_template_workspace(b, template, &base, err);

	*ret_fd = -1;
	return rc == 0 && base.n_lower > 0 ? cube_mount_base(b, template, &base, "", ret_fd, err) : rc;
}

/* What lies below a /workspace; an empty directory where there is nothing. */
static int cube_below_workspace(struct cube_local *b, const char *template, struct cube_local_base *ret,
				struct cube_err *err)
{
	int rc = 0;

	*ret = (struct cube_local_base){.n_lower = 0};
	if (template)
		rc = cube_local_template_workspace(b, template, ret, err);
	if (rc < 0 || ret->n_lower > 0)
		return rc;
	ret->index = false;
	rc = cube_empty_dir(b, &ret->lower[0], err);
	ret->n_lower = rc == 0 ? 1 : 0;
	return rc;
}

/* An overlay, though there may be nothing below: a plain bind would show its path on this machine inside. */
int cube_local_mount_workspace(struct cube_local *b, const char *id, const char *template, int *ret_fd,
			       struct cube_err *err)
{
	struct cube_local_layer layer = CUBE_LOCAL_LAYER_NONE;
	struct cube_local_base base = {.n_lower = 0};
	int rc = cube_local_set_open(&b->store, id, CUBE_PART_WORKSPACE, &layer, err);

	if (rc == 0)
		rc = cube_below_workspace(b, template, &base, err);
	if (rc == 0) {
		struct cube_local_overlay o = {
			.source = id,
			.n_lower = base.n_lower,
			.upper = layer.upper,
			.work = layer.work,
			.flags = b->overlay_flags & (base.index ? ~0u : (unsigned)CUBE_OVERLAY_USERXATTR),
		};

		memcpy(o.lower, base.lower, sizeof(o.lower));
		rc = cube_local_overlay_mount(&o, "", ret_fd, err);
	}
	cube_local_base_close(&base);
	cube_local_layer_close(&layer);
	return rc;
}

static int cube_take(struct local_cube *c, const char *path, int *ret_fd, struct cube_err *err)
{
	struct cube_ns_point p;
	int rc = cube_ns_mount_overlay(c->rec.init.pid, c->id, path, &p);

	if (rc == 0)
		rc = cube_local_keep_inside(c->rec.init.pid, &p, c->dir, ret_fd);
	return rc < 0 ? cube_fail(err, rc == -ENOENT ? -EIO : rc,
				  "cannot take %s of sandbox %s from process %d: %s", path, c->id,
				  (int)c->rec.init.pid, cube_errno_text(rc))
		      : 0;
}

static int cube_mount_root_any(struct cube_local *b, struct local_cube *c, const struct cube_local_seed *seed,
			       struct cube_err *err)
{
	return cube_local_cube_runs(c)
		       ? cube_take(c, "/", &c->root, err)
		       : cube_local_mount_root(b, c->id, c->rec.template, seed, &c->root, err);
}

static int cube_mount_workspace(struct cube_local *b, struct local_cube *c, struct cube_err *err)
{
	const struct cube_local_mount *m = cube_local_mounts_workspace(c);
	int rc, fd;

	if (m) {
		cube_auto_fd volume = -1;

		rc = cube_local_volume_open(b, m->volume, &volume, err);
		if (rc < 0)
			return rc;
		fd = cube_local_mnt_clone(volume, "");
		rc = fd < 0 ? fd : cube_local_keep(fd);
		if (rc < 0) {
			if (fd >= 0)
				close(fd);
			return cube_fail(err, rc, "cannot mount volume %s: %s", m->volume,
					 cube_errno_text(rc));
		}
		c->workspace = fd;
		return 0;
	}
	return cube_local_cube_runs(c)
		       ? cube_take(c, "/workspace", &c->workspace, err)
		       : cube_local_mount_workspace(b, c->id, c->rec.template, &c->workspace, err);
}

int cube_local_cube_mount(struct cube_local *b, struct local_cube *c, const struct cube_local_seed *seed,
			  struct cube_err *err)
{
	int rc = 0;

	if (c->root >= 0 && c->workspace >= 0)
		return 0;
	cube_local_cube_unmount(c);
	/* Overlayfs makes a directory at each mount, and without it nothing could be removed from a full sandbox. */
	if (!cube_local_cube_runs(c))
		rc = cube_local_cube_quota(b, c, false, err);
	if (rc == 0)
		rc = cube_mount_root_any(b, c, seed, err);
	if (rc == 0)
		rc = cube_mount_workspace(b, c, err);
	if (rc == 0)
		rc = cube_local_cube_quota(b, c, true, err);
	if (rc < 0)
		cube_local_cube_unmount(c);
	return rc;
}
