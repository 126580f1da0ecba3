/* SPDX-License-Identifier: Apache-2.0 */
/* The docker backend: sandboxes are containers of a Docker or Podman engine. The table and the instance. */
#include "backends/docker/docker_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define DOCKER_CAPS                                                                                          \
	(CUBE_CAP_EXEC | CUBE_CAP_FILES | CUBE_CAP_PAUSE | CUBE_CAP_STOP | CUBE_CAP_TTY |                    \
	 CUBE_CAP_NET_OPEN | CUBE_CAP_CPUS | CUBE_CAP_MEMORY | CUBE_CAP_PIDS | CUBE_CAP_USAGE |              \
	 CUBE_CAP_PERSIST | CUBE_CAP_USERS | CUBE_CAP_ACCESS | CUBE_CAP_TEMPLATES | CUBE_CAP_VOLUMES |       \
	 CUBE_CAP_HOSTS | CUBE_CAP_PRIVILEGED | CUBE_CAP_CHECKPOINTS | CUBE_CAP_RESET | CUBE_CAP_CHANGES |   \
	 CUBE_CAP_KEEP | CUBE_CAP_BUILD | CUBE_CAP_CHECKPOINT_MEMORY | CUBE_CAP_ADOPT | CUBE_CAP_PORTS |     \
	 CUBE_CAP_BIND | CUBE_CAP_RENAME | CUBE_CAP_ACCOUNTS | CUBE_CAP_GPU)

static void docker_close(struct cube_backend *base)
{
	struct cube_docker *d = docker_of(base);

	docker_streams_done(&d->streams);
	docker_binds_close(d);
	docker_procs_close(d);
	cube_http_free(d->http);
	cube_close_auto(&d->cubes);
	cube_close_auto(&d->state);
	cube_free(d);
}

static int docker_open_dirs(struct cube_docker *d, const char *path, struct cube_err *err)
{
	int rc;

	if ((size_t)snprintf(d->path, sizeof(d->path), "%s", path) >= sizeof(d->path))
		return cube_fail(err, -ENAMETOOLONG, "%.200s...: the path is too long", path);
	d->state = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = d->state < 0 ? -errno : cube_file_mkdir(d->state, "cubes", 0700, &d->cubes);
	if (rc == 0)
		rc = cube_file_mkdir(d->state, DOCKER_EMPTY, 0755, NULL);
	return rc < 0 ? cube_fail(err, rc, "cannot use %s: %s", path, cube_errno_text(rc)) : 0;
}

static int docker_mark(char out[17])
{
	uint64_t n;

	if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n))
		return -errno;
	(void)snprintf(out, 17, "%016" PRIx64, n);
	return 0;
}

/* The mark of the state directory is made with its first instance. */
static int docker_open_marks(struct cube_docker *d, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(64);
	int rc = docker_mark(d->instance);

	if (rc == 0)
		rc = cube_file_read(d->state, "home", &text);
	if (rc == 0 && docker_is_ours(cube_buf_str(&text))) {
		(void)snprintf(d->home, sizeof(d->home), "%s", cube_buf_str(&text));
	} else if (rc == 0 || rc == -ENOENT) {
		rc = docker_mark(d->home);
		if (rc == 0)
			rc = cube_file_replace(d->state, "home", d->home, strlen(d->home), 0600);
	}
	cube_buf_done(&text);
	return rc < 0 ? cube_fail(err, rc, "the mark of %.150s: %s", d->path, cube_errno_text(rc)) : 0;
}

static int docker_open(const struct cube_backend_env *env, struct cube_backend **ret, struct cube_err *err)
{
	struct cube_docker *d = cube_calloc(1, sizeof(*d));
	int rc;

	if (d == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	d->base = (struct cube_backend){
		.ops = &cube_backend_docker, .name = env->name, .par = CUBE_PAR_PER_CUBE};
	d->loop = env->loop;
	d->state = d->cubes = -1;
	docker_streams_init(&d->streams);
	if (docker_procs_open(d) < 0 || docker_binds_open(d) < 0) {
		docker_close(&d->base);
		return cube_fail(err, -ENOMEM, "out of memory");
	}
	rc = docker_configure(d, env->conf, err);
	if (rc == 0)
		rc = docker_open_dirs(d, env->state_dir, err);
	if (rc == 0)
		rc = docker_open_marks(d, err);
	if (rc < 0) {
		docker_close(&d->base);
		return rc;
	}
	docker_agent_prepare(d);
	docker_probe(d, DOCKER_CAPS);
	*ret = &d->base;
	return 0;
}

static int docker_status(struct cube_backend *base, struct cube_cancel *cancel, struct cube_status *ret,
			 struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	struct cube_status s = {.caps = base->caps};
	int rc = docker_ping(d, cancel, &s.latency_us, err);

	if (rc == -EINTR)
		return rc;
	s.reachable = rc == 0;
	(void)snprintf(s.version, sizeof(s.version), "%.127s",
		       d->engine.known ? d->engine.version
		       : rc < 0        ? err->text
				       : "was away at the start");
	(void)snprintf(s.fingerprint, sizeof(s.fingerprint), "%s", d->engine.id);
	if (d->engine.known)
		(void)snprintf(s.store, sizeof(s.store), "%s, by the engine at %.140s", d->engine.driver,
			       d->where);
	memcpy(s.missing, base->missing, sizeof(s.missing));
	*ret = s;
	return 0;
}

const struct cube_backend_ops cube_backend_docker = {
	.abi = CUBE_BACKEND_ABI,
	.kind = "docker",
	.summary = "containers of a Docker or Podman engine",
	.caps = DOCKER_CAPS,
	.par = CUBE_PAR_PER_CUBE,
	.root_by_run = true,
	.own_checkpoints = true,
	.open = docker_open,
	.close = docker_close,
	.status = docker_status,
	.doctor = docker_doctor,
	.create = docker_create,
	.destroy = docker_destroy,
	.inspect = docker_inspect,
	.list = docker_list,
	.watch = docker_watch,
	.adopt = docker_adopt,
	.let_go = docker_let_go,
	.start = docker_start,
	.stop = docker_stop,
	.pause = docker_pause,
	.resume = docker_resume,
	.limit = docker_limit,
	.rename = docker_rename,
	.link = docker_link,
	.root = docker_root,
	.usage = docker_usage,
	.dial = docker_dial,
	.listening = docker_listening,
	.access = docker_access,
	.bind = docker_bind,
	.unbind = docker_unbind,
	.volume_make = docker_volume_make,
	.volume_remove = docker_volume_remove,
	.volume_list = docker_volume_list,
	.volume_root = docker_volume_root,
	.template_list = docker_template_list,
	.template_check = docker_template_check,
	.template_import = docker_template_import,
	.template_remove = docker_template_remove,
	.template_config = docker_template_config,
	.template_commit = docker_template_commit,
	.template_derive = docker_template_derive,
	.template_keep = docker_template_keep,
	.checkpoint = docker_checkpoint,
	.checkpoint_list = docker_checkpoint_list,
	.checkpoint_remove = docker_checkpoint_remove,
	.checkpoint_root = docker_checkpoint_root,
	.restore = docker_restore,
	.reset = docker_reset,
	.changes = docker_changes,
	.volume_copy = docker_volume_copy,
};
