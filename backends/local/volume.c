/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes. */
#include "backends/local/volume.h"

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/local/checkpoint.h"
#include "backends/local/dirs.h"
#include "backends/ns/mounts.h"
#include "backends/local/keep.h"
#include "backends/local/mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct local_volume {
	int fd; /* its mount, kept */
};

/* ---- the one mount ---- */

struct volume_user {
	const char *uid;
	pid_t init;
	bool any; /* one that does not run is one as well */
};

static bool volume_is_in(const struct cube_local_record *r, const char *uid)
{
	for (unsigned i = 0; i < r->n_mounts; i++)
		if (strcmp(r->mounts[i].volume, uid) == 0)
			return true;
	return false;
}

static int volume_look(void *ctx, int dir, const char *id)
{
	struct volume_user *u = ctx;
	struct cube_local_record rec = {.stage = CUBE_STAGE_STOPPED};

	(void)id;
	if (cube_local_record_read(dir, &rec, NULL) < 0 || !volume_is_in(&rec, u->uid))
		return 0;
	u->init = cube_local_proc_alive(&rec, &rec.init) ? rec.init.pid : 0;
	return u->any || u->init > 0;
}

/* In a sandbox that runs since before this daemon. One where it is read only has it like that. */
static int volume_take(struct cube_local *b, const char *uid, int dir, int *ret_fd)
{
	struct volume_user u = {.uid = uid};
	struct cube_ns_point p;
	int rc;

	if (cube_local_dirs_each(b->cubes, ".", volume_look, &u) != 1)
		return -ENOENT;
	rc = cube_ns_mount_overlay(u.init, uid, NULL, &p);
	if (rc == 0)
		rc = cube_local_keep_inside(u.init, &p, dir, ret_fd);
	if (rc == 0 && (rc = cube_local_mnt_writable(*ret_fd)) < 0)
		cube_local_keep_end(*ret_fd);
	return rc;
}

static int volume_mount(struct cube_local *b, const char *uid, int *ret_fd, struct cube_err *err)
{
	cube_auto_fd dir = openat(b->volumes, uid, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int rc;

	if (dir < 0)
		return cube_fail(err, -ENOENT, "no volume %s", uid);
	rc = volume_take(b, uid, dir, ret_fd);
	if (rc == -ENOENT)
		return cube_local_mount_workspace(b, uid, NULL, ret_fd, err);
	return rc < 0 ? cube_fail(err, rc, "cannot take volume %s from the sandbox that has it: %s", uid,
				  cube_errno_text(rc))
		      : 0;
}

static int volume_get_locked(struct cube_local *b, const char *uid, struct local_volume **ret,
			     struct cube_err *err)
{
	struct local_volume *v = cube_map_get(b->volume_map, uid);
	int rc;

	if (!v) {
		v = cube_calloc(1, sizeof(*v));
		rc = v ? volume_mount(b, uid, &v->fd, err) : cube_fail(err, -ENOMEM, "out of memory");
		if (rc == 0 && (rc = cube_map_put(b->volume_map, uid, v)) < 0) {
			cube_local_keep_end(v->fd);
			(void)cube_fail(err, rc, "out of memory");
		}
		if (rc < 0) {
			cube_free(v);
			return rc;
		}
	}
	*ret = v;
	return 0;
}

int cube_local_volume_open(struct cube_local *b, const char *uid, int *ret_fd, struct cube_err *err)
{
	struct local_volume *v;
	int rc;

	pthread_mutex_lock(&b->volume_lock);
	rc = volume_get_locked(b, uid, &v, err);
	if (rc == 0) {
		*ret_fd = fcntl(v->fd, F_DUPFD_CLOEXEC, 3);
		if (*ret_fd < 0)
			rc = cube_fail_errno(err, "volume %s", uid);
	}
	pthread_mutex_unlock(&b->volume_lock);
	return rc;
}

static void volume_drop_locked(struct cube_local *b, const char *uid)
{
	struct local_volume *v = cube_map_take(b->volume_map, uid);

	if (v)
		cube_local_keep_end(v->fd);
	cube_free(v);
}

static int volume_first(void *ctx, const char *key, void *value)
{
	(void)value;
	(void)snprintf(ctx, CUBE_ID_MAX + 1, "%s", key);
	return 1;
}

void cube_local_volumes_close(struct cube_local *b)
{
	char uid[CUBE_ID_MAX + 1];

	while (b->volume_map && cube_map_each(b->volume_map, volume_first, uid) != 0)
		volume_drop_locked(b, uid);
	cube_map_free(b->volume_map);
}

/* ---- operations ---- */

/* Half of one is made whole. */
int cube_local_volume_make(struct cube_backend *base, const char *uid, const char *name,
			   struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	cube_auto_fd dir = -1;
	int rc;

	(void)name;
	if (cube_cancel_fired(cancel))
		return cube_fail(err, -EINTR, "interrupted");
	rc = cube_file_mkdir(b->volumes, uid, 0700, &dir);
	if (rc < 0)
		return cube_fail(err, rc, "cannot make the directory of volume %s: %s", uid,
				 cube_errno_text(rc));
	return cube_local_set_there(&b->store, uid) ? 0
						    : cube_local_set_make(&b->store, uid, &b->host->ids, err);
}

int cube_local_volume_copy(struct cube_backend *base, const char *cp, const char *from, const char *to,
			   struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	char set[CUBE_LOCAL_CHECKPOINT_SET];
	cube_auto_fd dir = -1;
	int rc;

	if (!cube_local_set_there(&b->store, cube_local_checkpoint_volume(set, cp, from)))
		return cube_fail(err, -ENOENT, "checkpoint %s has no volume %s", cp, from);
	rc = cube_file_mkdir(b->volumes, to, 0700, &dir);
	if (rc < 0)
		return cube_fail(err, rc, "cannot make the directory of volume %s: %s", to,
				 cube_errno_text(rc));
	return cube_local_set_there(&b->store, to) ? 0 : cube_local_set_copy(&b->store, set, to, cancel, err);
}

int cube_local_volume_remove(struct cube_backend *base, const char *uid, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct volume_user u = {.uid = uid, .any = true};
	char gone[CUBE_ID_MAX + 8];
	int rc;

	if (cube_local_dirs_each(b->cubes, ".", volume_look, &u) != 0)
		return cube_fail(err, -EBUSY, "volume %s is in use by a sandbox", uid);
	pthread_mutex_lock(&b->volume_lock);
	volume_drop_locked(b, uid);
	pthread_mutex_unlock(&b->volume_lock);
	cube_local_disk_forget(b->disk, uid);
	(void)snprintf(gone, sizeof(gone), ".%s", uid); /* no list has it */
	if (renameat(b->volumes, uid, b->volumes, gone) < 0 && errno != ENOENT)
		return cube_fail_errno(err, "cannot remove volume %s", uid);
	rc = cube_local_set_remove(&b->store, uid, err);
	if (rc < 0)
		return rc;
	rc = cube_file_remove_tree(b->volumes, gone);
	return rc < 0 ? cube_fail(err, rc, "cannot remove what is noted of volume %s: %s", uid,
				  cube_errno_text(rc))
		      : 0;
}

struct volume_list {
	struct cube_local *b;
	void (*each)(void *ctx, const struct cube_volume *v);
	void *ctx;
};

static int volume_tell(void *ctx, int dir, const char *uid)
{
	const struct volume_list *l = ctx;
	struct cube_volume v = {.size = cube_local_disk_get(l->b->disk, uid)};

	(void)dir;
	(void)snprintf(v.uid, sizeof(v.uid), "%.*s", CUBE_ID_MAX, uid);
	l->each(l->ctx, &v);
	return 0;
}

int cube_local_volume_list(struct cube_backend *base, void (*each)(void *ctx, const struct cube_volume *v),
			   void *ctx, struct cube_err *err)
{
	struct volume_list l = {.b = cube_local_of(base), .each = each, .ctx = ctx};
	int rc = cube_local_dirs_each(l.b->volumes, ".", volume_tell, &l);

	return rc < 0 ? cube_fail(err, rc, "cannot list the volumes: %s", cube_errno_text(rc)) : 0;
}

int cube_local_volume_root(struct cube_backend *base, const char *uid, struct cube_root *ret,
			   struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct cube_root r = cube_local_root_of(b);
	int rc = cube_local_volume_open(b, uid, &r.fd, err);

	if (rc < 0)
		return rc;
	r.generation = 1; /* it is never another one */
	*ret = r;
	return 0;
}
