/* SPDX-License-Identifier: Apache-2.0 */
/* The local backend: sandboxes on this machine, by crun, overlayfs and cube-init. The table and the instance.
 */
#include "backends/local/local_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/conf.h"
#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "backends/base/name.h"
#include "backends/base/num.h"
#include "backends/local/checkpoint.h"
#include "backends/local/keep.h"
#include "backends/local/owner.h"
#include "backends/local/template_priv.h"
#include "backends/local/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOCAL_CAPS                                                                                           \
	(CUBE_CAP_EXEC | CUBE_CAP_DISK | CUBE_CAP_FILES | CUBE_CAP_PAUSE | CUBE_CAP_STOP | CUBE_CAP_TTY |    \
	 CUBE_CAP_TEMPLATES | CUBE_CAP_NET_OPEN | CUBE_CAP_CPUS | CUBE_CAP_MEMORY | CUBE_CAP_PIDS |          \
	 CUBE_CAP_USAGE | CUBE_CAP_PERSIST | CUBE_CAP_USERS | CUBE_CAP_RENAME | CUBE_CAP_PORTS |             \
	 CUBE_CAP_VOLUMES | CUBE_CAP_BIND | CUBE_CAP_BUILD | CUBE_CAP_ADOPT | CUBE_CAP_ACCESS |              \
	 CUBE_CAP_ACCOUNTS | CUBE_CAP_HOSTS | CUBE_CAP_CHECKPOINTS | CUBE_CAP_RESET | CUBE_CAP_CHANGES |     \
	 CUBE_CAP_KEEP | CUBE_CAP_CHECKPOINT_MEMORY)

#define LOCAL_TEMPLATE_FILES 10000000u
#define LOCAL_FREEZE_LIMIT   30 /* seconds */

/* ---- configuration ---- */

/* Bounds of templates; 0: none. */
static int local_configure_bounds(struct cube_local *b, const struct cube_conf_section *conf,
				  struct cube_err *err)
{
	const char *size = cube_conf_get(conf, "template_size"),
		   *files = cube_conf_get(conf, "template_files");

	b->bounds = (struct cube_local_bounds){.files = LOCAL_TEMPLATE_FILES};
	if (size && cube_num_size(size, &b->bounds.bytes) < 0)
		return cube_fail(err, -EINVAL, "backend %s: template_size = %s: a size is wanted, 0 for any",
				 b->base.name, size);
	if (files && cube_num_u64(files, UINT64_MAX, &b->bounds.files) < 0)
		return cube_fail(err, -EINVAL,
				 "backend %s: template_files = %s: a number is wanted, 0 for any",
				 b->base.name, files);
	return 0;
}

static int local_configure_freeze(struct cube_local *b, const struct cube_conf_section *conf,
				  struct cube_err *err)
{
	const char *text = cube_conf_get(conf, "freeze_limit");
	uint64_t seconds = LOCAL_FREEZE_LIMIT;

	if (text && cube_num_u64(text, 86400, &seconds) < 0)
		return cube_fail(
			err, -EINVAL,
			"backend %s: freeze_limit = %s: seconds are wanted, 86400 at most, 0 for any",
			b->base.name, text);
	b->freeze_limit_ms = (uint32_t)seconds * 1000;
	return 0;
}

static int local_configure(struct cube_local *b, const struct cube_conf_section *conf, struct cube_err *err)
{
	static const char *const known[] = {"freeze_limit", "kind",          "default",        "uid_base",
					    "memory",       "pids",          "cpus",           "store",
					    "store_limit",  "template_size", "template_files", NULL};
	int rc = conf != NULL ? cube_conf_check(conf, known, err) : 0;

	if (rc < 0)
		return rc;
	rc = cube_backend_conf_limits(b->base.name, conf, &b->base.defaults, err);
	if (rc < 0)
		return rc;
	rc = local_configure_freeze(b, conf, err);
	return rc == 0 ? local_configure_bounds(b, conf, err) : rc;
}

/* ---- open, close ---- */

static int local_open_dirs(struct cube_local *b, const char *path, struct cube_err *err)
{
	int rc;

	b->state = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (b->state < 0)
		return cube_fail_errno(err, "cannot open %s", path);
	rc = cube_file_mkdir(b->state, "cubes", 0700, &b->cubes);
	if (rc == 0)
		rc = cube_file_mkdir(b->state, "templates", 0700, &b->templates);
	if (rc == 0)
		rc = cube_file_mkdir(b->state, "volumes", 0700, &b->volumes);
	if (rc == 0)
		rc = cube_file_mkdir(b->state, "checkpoints", 0700, &b->checkpoints);
	return rc < 0 ? cube_fail(err, rc, "cannot make directories in %s: %s", path, cube_errno_text(rc))
		      : 0;
}

/* This machine's files can be shown by root with idmapped mounts, by others as they are. */
static int local_make_mask(struct cube_local *b, struct cube_err *err)
{
	bool redirect = b->host->slash >= 0;

	(void)snprintf(b->host_why, sizeof(b->host_why), "%s", b->host->slash_why);
	if (b->host->trusted && !redirect)
		return 0;
	b->mask = cube_local_mask_new(&b->host->ids, redirect);
	return b->mask ? 0 : cube_fail(err, -ENOMEM, "out of memory");
}

static bool local_knows(void *ctx, const char *id)
{
	const struct cube_local *b = ctx;

	return faccessat(b->cubes, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	       faccessat(b->volumes, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	       cube_local_checkpoint_knows(b, id) || cube_local_template_has_set(b, id) ||
	       (cube_name_layer_ok(id) && faccessat(b->templates, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
}

/* Without a store no sandbox can be made, and status says why; a wrong configuration is another matter. */
static int local_open_store(struct cube_local *b, const struct cube_backend_env *env, struct cube_err *err)
{
	struct cube_err why = {0};
	enum cube_local_store_how how = !b->host->trusted ? CUBE_STORE_PLAIN
					: env->look_only  ? CUBE_STORE_LOOK
							  : CUBE_STORE_ANY;
	int rc = cube_local_store_open(&b->store, b->state, env->state_dir, env->conf, how, &why);

	if (rc == -EINVAL)
		return cube_fail(err, rc, "backend %s: %s", env->name, why.text);
	if (rc == 0 && !env->look_only) {
		cube_local_restore_finish(b);
		cube_local_checkpoint_sweep(b);
		cube_local_set_sweep(&b->store, local_knows, b);
	}
	if (rc < 0)
		(void)snprintf(b->store_why, sizeof(b->store_why), "%.199s", why.text);
	return 0;
}

static void local_close(struct cube_backend *base);

static int local_set_up(struct cube_local *b, const struct cube_backend_env *env, struct cube_err *err)
{
	int rc = cube_local_host_prepare(env->state_dir, env->conf, err);

	if (rc == 0)
		rc = local_configure(b, env->conf, err);
	if (rc == 0)
		rc = local_open_dirs(b, env->state_dir, err);
	if (rc < 0)
		return rc;
	b->host = cube_local_host();
	cube_local_keep_sweep((const int[]){b->host->agent, b->host->slash}, 2);
	b->map = cube_map_new();
	rc = local_open_store(b, env, err);
	if (rc < 0)
		return rc;
	b->disk = cube_local_disk_new(b->store.sets);
	b->volume_map = cube_map_new();
	b->views = cube_map_new();
	if (!b->map || !b->disk || !b->volume_map || !b->views)
		return cube_fail(err, -ENOMEM, "out of memory");
	cube_local_cgroups_open(&b->cgroups);
	rc = local_make_mask(b, err);
	if (rc == 0)
		cube_local_probe(b);
	return rc;
}

static int local_open(const struct cube_backend_env *env, struct cube_backend **ret, struct cube_err *err)
{
	struct cube_local *b = cube_calloc(1, sizeof(*b));
	int rc;

	if (!b)
		return cube_fail(err, -ENOMEM, "out of memory");
	b->base = (struct cube_backend){
		.ops = &cube_backend_local, .name = env->name, .par = CUBE_PAR_PER_CUBE};
	b->base.template = cube_local_template_default(b);
	b->loop = env->loop;
	b->store = (struct cube_local_store)CUBE_LOCAL_STORE_NONE;
	b->state = b->cubes = b->templates = b->volumes = b->checkpoints = b->cgroups.v2 = b->net.tun =
		b->crun_copy = -1;
	for (size_t i = 0; i < CUBE_CTL_COUNT; i++)
		b->cgroups.v1[i] = -1;
	pthread_mutex_init(&b->lock, NULL);
	pthread_mutex_init(&b->view_lock, NULL);
	pthread_mutex_init(&b->volume_lock, NULL);
	rc = local_set_up(b, env, err);
	if (rc < 0) {
		local_close(&b->base);
		return rc;
	}
	*ret = &b->base;
	return 0;
}

static int local_first_cube(void *ctx, const char *key, void *value)
{
	(void)key;
	*(struct local_cube **)ctx = value;
	return 1;
}

static void local_close(struct cube_backend *base)
{
	struct cube_local *b = cube_local_of(base);
	struct local_cube *c;

	while (b->map && cube_map_each(b->map, local_first_cube, &c) != 0)
		cube_local_cube_drop(b, c);
	cube_map_free(b->map);
	cube_local_volumes_close(b);
	cube_local_views_close(b);
	cube_local_disk_free(b->disk);
	cube_local_store_close(&b->store);
	cube_local_mask_free(b->mask);
	cube_local_cgroups_close(&b->cgroups);
	cube_local_net_close(&b->net);
	cube_local_filter_done(&b->filter);
	if (b->crun_copy >= 0)
		close(b->crun_copy);
	if (b->state >= 0)
		close(b->state);
	if (b->cubes >= 0)
		close(b->cubes);
	if (b->templates >= 0)
		close(b->templates);
	if (b->checkpoints >= 0)
		close(b->checkpoints);
	if (b->volumes >= 0)
		close(b->volumes);
	pthread_mutex_destroy(&b->view_lock);
	pthread_mutex_destroy(&b->lock);
	pthread_mutex_destroy(&b->volume_lock);
	cube_free(b);
}

static int local_status(struct cube_backend *base, struct cube_cancel *cancel, struct cube_status *ret,
			struct cube_err *err)
{
	const struct cube_local *b = cube_local_of(base);

	(void)cancel;
	(void)err;
	*ret = (struct cube_status){.reachable = true, .caps = base->caps};
	(void)snprintf(ret->version, sizeof(ret->version), "%s", b->version);
	memcpy(ret->missing, base->missing, sizeof(ret->missing));
	(void)snprintf(ret->store, sizeof(ret->store), "%s", b->store.what);
	return 0;
}

const struct cube_backend_ops cube_backend_local = {
	.abi = CUBE_BACKEND_ABI,
	.kind = "local",
	.summary = "sandboxes on this machine (crun, overlayfs)",
	.caps = LOCAL_CAPS,
	.par = CUBE_PAR_PER_CUBE,
	.beside_state = true,
	.prepare = cube_local_host_prepare,
	.entered = cube_local_host_entered,
	.open = local_open,
	.close = local_close,
	.status = local_status,
	.doctor = cube_local_doctor,
	.create = cube_local_create,
	.destroy = cube_local_destroy,
	.inspect = cube_local_inspect,
	.list = cube_local_list,
	.start = cube_local_start,
	.stop = cube_local_stop,
	.pause = cube_local_pause,
	.resume = cube_local_resume,
	.limit = cube_local_limit,
	.adopt = cube_local_adopt,
	.let_go = cube_local_let_go,
	.rename = cube_local_rename,
	.link = cube_local_link,
	.root = cube_local_root,
	.usage = cube_local_usage,
	.written = cube_local_written,
	.dial = cube_local_dial,
	.listening = cube_local_listening,
	.access = cube_local_access,
	.template_list = cube_local_template_list,
	.template_import = cube_local_template_import,
	.template_check = cube_local_template_check,
	.template_remove = cube_local_template_remove,
	.template_config = cube_local_template_config,
	.template_commit = cube_local_template_commit,
	.template_derive = cube_local_template_derive,
	.template_keep = cube_local_template_keep,
	.checkpoint = cube_local_checkpoint_take,
	.checkpoint_list = cube_local_checkpoint_list,
	.checkpoint_remove = cube_local_checkpoint_remove,
	.checkpoint_root = cube_local_checkpoint_root,
	.restore = cube_local_restore,
	.reset = cube_local_reset,
	.changes = cube_local_changes,
	.volume_make = cube_local_volume_make,
	.volume_copy = cube_local_volume_copy,
	.volume_remove = cube_local_volume_remove,
	.volume_list = cube_local_volume_list,
	.volume_root = cube_local_volume_root,
	.bind = cube_local_bind,
	.unbind = cube_local_unbind,
};
