/* SPDX-License-Identifier: Apache-2.0 */
/* The files of checkpoints, read only.
 *
 * The layer is mounted as it would be for a sandbox, since overlayfs takes no layer below that lies inside another one
 * (this machine's root, for the template host); read only is the mount. One mount each: the upper layer of two is
 * undefined. */
#include "backends/local/checkpoint.h"

#include "backends/base/alloc.h"
#include "backends/base/macros.h"
#include "backends/local/keep.h"
#include "backends/local/mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>

struct local_view {
	int root, workspace;
};

static void view_free(struct local_view *v)
{
	if (!v)
		return;
	cube_local_keep_end(v->root);
	cube_local_keep_end(v->workspace);
	cube_free(v);
}

static int view_read_only(int fd, const char *cp, struct cube_err *err)
{
	int rc = cube_local_mnt_set(fd, MOUNT_ATTR_RDONLY, -1);

	return rc < 0 ? cube_fail(err, rc, "cannot show checkpoint %s: %s", cp, cube_errno_text(rc)) : 0;
}

static int view_mount(struct cube_local *b, const char *cp, struct local_view *v, struct cube_err *err)
{
	struct cube_local_checkpoint rec;
	int rc = cube_local_checkpoint_read(b, cp, true, &rec, err);

	if (rc == 0)
		rc = cube_local_mount_root(b, cp, rec.template, NULL, &v->root, err);
	if (rc == 0)
		rc = cube_local_mount_workspace(b, cp, rec.template, &v->workspace, err);
	if (rc == 0)
		rc = view_read_only(v->root, cp, err);
	if (rc == 0)
		rc = view_read_only(v->workspace, cp, err);
	return rc;
}

static int view_make_locked(struct cube_local *b, const char *cp, struct local_view **ret,
			    struct cube_err *err)
{
	struct local_view *v = cube_calloc(1, sizeof(*v));
	int rc;

	if (!v)
		return cube_fail(err, -ENOMEM, "out of memory");
	v->root = v->workspace = -1;
	rc = view_mount(b, cp, v, err);
	if (rc == 0 && (rc = cube_map_put(b->views, cp, v)) < 0)
		(void)cube_fail(err, rc, "out of memory");
	if (rc < 0) {
		view_free(v);
		return rc;
	}
	*ret = v;
	return 0;
}

int cube_local_view_get(struct cube_local *b, const char *cp, int *ret_root, int *ret_workspace,
			struct cube_err *err)
{
	struct local_view *v;
	int rc = 0;

	pthread_mutex_lock(&b->view_lock);
	v = cube_map_get(b->views, cp);
	if (!v)
		rc = view_make_locked(b, cp, &v, err);
	if (rc == 0) {
		*ret_root = v->root;
		*ret_workspace = v->workspace;
	}
	pthread_mutex_unlock(&b->view_lock);
	return rc;
}

void cube_local_view_drop(struct cube_local *b, const char *cp)
{
	pthread_mutex_lock(&b->view_lock);
	view_free(cube_map_take(b->views, cp));
	pthread_mutex_unlock(&b->view_lock);
}

static int view_first(void *ctx, const char *key, void *value)
{
	(void)value;
	(void)snprintf(ctx, CUBE_ID_MAX + 1, "%s", key);
	return 1;
}

void cube_local_views_close(struct cube_local *b)
{
	char cp[CUBE_ID_MAX + 1];

	while (b->views && cube_map_each(b->views, view_first, cp) != 0)
		cube_local_view_drop(b, cp);
	cube_map_free(b->views);
	b->views = NULL;
}

int cube_local_checkpoint_root(struct cube_backend *base, const char *cp, struct cube_root *ret,
			       struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct cube_root r = cube_local_root_of(b);
	struct cube_local_checkpoint rec;
	int root = -1, workspace = -1, rc = cube_local_checkpoint_read(b, cp, false, &rec, err);

	if (rc == 0)
		rc = cube_local_view_get(b, cp, &root, &workspace, err);
	if (rc < 0)
		return rc;
	r.generation = 1;
	r.read_only = true;
	r.fd = fcntl(root, F_DUPFD_CLOEXEC, 3);
	rc = r.fd < 0 ? -errno : cube_local_root_add(&r, "/workspace", workspace, true, false);
	if (rc == 0)
		rc = cube_local_root_binds(b, rec.template, &r);
	if (rc < 0) {
		cube_root_close(&r);
		return cube_fail(err, rc, "cannot open the files of checkpoint %s: %s", cp,
				 cube_errno_text(rc));
	}
	*ret = r;
	return 0;
}
