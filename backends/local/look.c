/* SPDX-License-Identifier: Apache-2.0 */
/* What can be seen of a sandbox from outside: state, usage, files. */
#include "backends/local/local_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/macros.h"
#include "backends/local/checkpoint.h"
#include "backends/local/dirs.h"
#include "backends/agent/listener.h"
#include "backends/local/owner.h"
#include "backends/ns/ns.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- state ---- */

/* What stands still for a checkpoint alone goes on behind it. */
static bool look_paused(const struct cube_local *b, const struct local_cube *c)
{
	return !c->rec.taking && (c->rec.still || cube_local_group_frozen(&b->cgroups, c->id));
}

static void look_info(const struct cube_local *b, const struct local_cube *c, struct cube_info *info)
{
	*info = (struct cube_info){.state = CUBE_IS_STOPPED};
	(void)snprintf(info->id, sizeof(info->id), "%s", c->id);
	(void)snprintf(info->uid, sizeof(info->uid), "%s", c->id);
	(void)snprintf(info->name, sizeof(info->name), "%s", c->rec.hostname);
	(void)snprintf(info->template, sizeof(info->template), "%s", c->rec.template);
	info->created_wall = c->rec.created_wall;
	info->limits = c->rec.limits;
	info->net = c->rec.net;
	if (c->damaged)
		(void)snprintf(info->reason, sizeof(info->reason), "damaged");
	else if (c->rec.stage == CUBE_STAGE_STARTING)
		(void)snprintf(info->reason, sizeof(info->reason), "unfinished");
	else if (!cube_local_cube_runs(c))
		(void)snprintf(info->reason, sizeof(info->reason), "%s", c->rec.reason);
	else
		info->state = look_paused(b, c) ? CUBE_IS_PAUSED : CUBE_IS_RUNNING;
}

int cube_local_inspect(struct cube_backend *base, const char *id, struct cube_info *ret, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct local_cube *c;
	int rc = cube_local_cube_get(b, id, &c, err);

	/* It may end between the two looks: then there is a reason to be found yet. */
	do {
		if (rc == 0)
			rc = cube_local_cube_reap(b, c, err);
		if (rc == 0) {
			cube_local_checkpoint_thaw(b, c);
			look_info(b, c, ret);
		}
	} while (rc == 0 && ret->state == CUBE_IS_STOPPED && c->rec.stage == CUBE_STAGE_RUNNING);
	return rc;
}

struct look_list {
	const struct cube_local *b;
	struct cube_cancel *cancel;
	void (*each)(void *ctx, const struct cube_info *info);
	void *ctx;
};

/* From the disk, without touching the objects that calls under way may own. */
static int list_one(void *ctx, int dir, const char *id)
{
	const struct look_list *l = ctx;
	struct local_cube c = {.dir = dir};
	struct cube_buf labels = CUBE_BUF((size_t)1 << 20);
	struct cube_info info;

	if (cube_cancel_fired(l->cancel))
		return -EINTR;
	(void)snprintf(c.id, sizeof(c.id), "%s", id);
	c.damaged = cube_local_record_read(dir, &c.rec, NULL) < 0;
	look_info(l->b, &c, &info);
	cube_local_labels_read(dir, &labels);
	info.labels = labels.len > 0 ? cube_buf_str(&labels) : NULL;
	l->each(l->ctx, &info);
	cube_buf_done(&labels);
	return 0;
}

int cube_local_list(struct cube_backend *base, struct cube_cancel *cancel,
		    void (*each)(void *ctx, const struct cube_info *info), void *ctx, struct cube_err *err)
{
	struct look_list l = {.b = cube_local_of(base), .cancel = cancel, .each = each, .ctx = ctx};
	int rc = cube_local_dirs_each(l.b->cubes, ".", list_one, &l);

	return rc < 0 ? cube_fail(err, rc, "cannot list the sandboxes: %s", cube_errno_text(rc)) : 0;
}

int cube_local_usage(struct cube_backend *base, const char *id, struct cube_usage *ret, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	cube_auto_fd proc = -1;
	struct local_cube *c;
	int rc = cube_local_cube_get(b, id, &c, err);

	if (rc < 0)
		return rc;
	cube_local_group_usage(&b->cgroups, c->id, ret);
	ret->disk = b->store.quota ? cube_local_quota_used(b->store.quota, c->id)
				   : cube_local_disk_get(b->disk, c->id);
	proc = cube_local_cube_proc(c, NULL);
	if (proc >= 0)
		cube_ns_net_bytes(proc, &ret->net_in, &ret->net_out);
	return 0;
}

/* Its agent, for who speaks docs/cube-init-protocol.md; whoever connects takes the daemon's place. */
int cube_local_access(struct cube_backend *base, const char *id, void (*each)(void *ctx, const char *line),
		      void *ctx, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	char path[PATH_MAX], line[PATH_MAX + 32];
	struct local_cube *c;
	int rc = cube_local_cube_get(b, id, &c, err);

	if (rc < 0)
		return rc;
	if (cube_local_cube_runs(c) && cube_agent_listener_path(c->dir, path, sizeof(path)) == 0) {
		(void)snprintf(line, sizeof(line), "agent cube-init unix:%s", path);
		each(ctx, line);
	}
	each(ctx, "os linux");
	return 0;
}

/* ---- files ---- */

struct cube_root cube_local_root_of(const struct cube_local *b)
{
	const struct cube_ns_ids *ids = &b->host->ids;

	return (struct cube_root){.fd = -1,
				  .uid_base = ids->uid,
				  .gid_base = ids->gid,
				  .id_count = ids->count,
				  .swap_owner = b->host->swap_owner};
}

/* Takes a descriptor of its own. */
int cube_local_root_add(struct cube_root *r, const char *path, int from, bool read_only, bool shared)
{
	unsigned i = r->n_mounts;
	int fd = i < CUBE_MOUNTS_MAX ? fcntl(from, F_DUPFD_CLOEXEC, 3) : -1;

	if (fd < 0)
		return i < CUBE_MOUNTS_MAX ? -errno : -ENOSPC;
	(void)snprintf(r->mounts[i].path, sizeof(r->mounts[i].path), "%s", path);
	r->mounts[i].fd = fd;
	r->mounts[i].read_only = read_only;
	r->mounts[i].shared = shared;
	r->n_mounts++;
	return 0;
}

/* An ordinary user's template `host` has this machine's own directories bound. */
int cube_local_root_binds(const struct cube_local *b, const char *template, struct cube_root *r)
{
	struct cube_local_shown shown;
	char path[32];
	int rc = 0;

	cube_local_template_binds(b, template, &shown);
	for (unsigned i = 0; rc == 0 && i < shown.n; i++) {
		cube_auto_fd fd = -1;

		(void)snprintf(path, sizeof(path), "/%s", shown.name[i]);
		fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			rc = cube_local_root_add(r, path, fd, true, true);
	}
	return rc;
}

static int root_workspace(const struct local_cube *c, struct cube_root *r)
{
	const struct cube_local_mount *m = cube_local_mounts_workspace(c);

	return cube_local_root_add(r, "/workspace", c->workspace, m && m->read_only, m != NULL);
}

int cube_local_root(struct cube_backend *base, const char *id, struct cube_root *ret, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct cube_root r = cube_local_root_of(b);
	struct local_cube *c;
	int rc = cube_local_cube_get(b, id, &c, err);

	if (rc == 0 && c->damaged)
		rc = cube_fail(err, -EIO, "the record of sandbox %s is damaged: it can only be destroyed",
			       id);
	if (rc == 0)
		rc = cube_local_cube_mount(b, c, NULL, err);
	if (rc < 0)
		return rc;
	r.generation = c->rec.generation;
	r.fd = fcntl(c->root, F_DUPFD_CLOEXEC, 3);
	rc = r.fd < 0 ? -errno : root_workspace(c, &r);
	if (rc == 0)
		rc = cube_local_root_binds(b, c->rec.template, &r);
	if (rc < 0)
		(void)cube_fail(err, rc, "cannot open the files of sandbox %s: %s", id, cube_errno_text(rc));
	else
		rc = cube_local_mounts_root(b, c, &r, err);
	if (rc < 0) {
		cube_root_close(&r);
		return rc;
	}
	*ret = r;
	return 0;
}
