/* SPDX-License-Identifier: Apache-2.0 */
/* The libvirt backend: sandboxes are virtual machines of a host that libvirt manages. The table and the instance. */
#include "backends/libvirt/libvirt_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"

#define LIBVIRT_CAPS                                                                                         \
	(CUBE_CAP_EXEC | CUBE_CAP_PAUSE | CUBE_CAP_STOP | CUBE_CAP_TTY | CUBE_CAP_NET_OPEN | CUBE_CAP_CPUS | \
	 CUBE_CAP_MEMORY | CUBE_CAP_DISK | CUBE_CAP_USAGE | CUBE_CAP_PERSIST | CUBE_CAP_USERS |              \
	 CUBE_CAP_ACCESS | CUBE_CAP_RENAME | CUBE_CAP_CHECKPOINTS | CUBE_CAP_RESET |                         \
	 CUBE_CAP_CHECKPOINT_MEMORY)

static void libvirt_close(struct cube_backend *base)
{
	struct cube_libvirt *v = libvirt_of(base);

	libvirt_links_free(v->links);
	if (v->conn != NULL) {
		libvirt_conn_unref(v->conn);
		libvirt_events_drop();
	}
	(void)pthread_mutex_destroy(&v->layers_lock);
	(void)pthread_mutex_destroy(&v->kvm_lock);
	cube_free(v);
}

static int libvirt_open_parts(struct cube_libvirt *v, struct cube_err *err)
{
	int rc;

	v->links = libvirt_links_new();
	if (v->links == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	rc = libvirt_events_hold(err);
	if (rc < 0)
		return rc;
	v->conn = libvirt_conn_new(v->uri);
	if (v->conn != NULL)
		return 0;
	libvirt_events_drop();
	return cube_fail(err, -ENOMEM, "out of memory");
}

static int libvirt_open(const struct cube_backend_env *env, struct cube_backend **ret, struct cube_err *err)
{
	struct cube_libvirt *v = cube_calloc(1, sizeof(*v));
	int rc;

	if (v == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	v->base = (struct cube_backend){
		.ops = &cube_backend_libvirt, .name = env->name, .par = CUBE_PAR_PER_CUBE};
	v->loop = env->loop;
	(void)pthread_mutex_init(&v->kvm_lock, NULL);
	(void)pthread_mutex_init(&v->layers_lock, NULL);
	rc = libvirt_configure(v, env->conf, env->state_dir, err);
	if (rc == 0)
		rc = libvirt_open_parts(v, err);
	if (rc < 0) {
		libvirt_close(&v->base);
		return rc;
	}
	libvirt_probe(v, LIBVIRT_CAPS);
	*ret = &v->base;
	return 0;
}

static int libvirt_status(struct cube_backend *base, struct cube_cancel *cancel, struct cube_status *ret,
			  struct cube_err *err)
{
	struct cube_libvirt *v = libvirt_of(base);
	struct cube_status s = {.caps = base->caps};
	char accel[200];
	int rc = libvirt_ping(v, cancel, &s.latency_us, err);

	if (rc == -EINTR)
		return rc;
	s.reachable = rc == 0;
	libvirt_kvm_say(v, accel, sizeof(accel));
	if (rc < 0)
		(void)snprintf(s.version, sizeof(s.version), "%.127s", err->text);
	else
		(void)snprintf(s.version, sizeof(s.version), "%.90s",
			       v->host.known ? v->host.version : "was away at the start");
	(void)snprintf(s.store, sizeof(s.store), "qcow2 in %.60s; machines run with %.100s", v->dir, accel);
	memcpy(s.missing, base->missing, sizeof(s.missing));
	*ret = s;
	return 0;
}

const struct cube_backend_ops cube_backend_libvirt = {
	.abi = CUBE_BACKEND_ABI,
	.kind = "libvirt",
	.summary = "virtual machines of a host that libvirt manages",
	.caps = LIBVIRT_CAPS,
	.par = CUBE_PAR_PER_CUBE,
	.own_checkpoints = true,
	.open = libvirt_open,
	.close = libvirt_close,
	.status = libvirt_status,
	.doctor = libvirt_doctor,
	.create = libvirt_create,
	.destroy = libvirt_destroy,
	.inspect = libvirt_inspect,
	.list = libvirt_list,
	.watch = libvirt_watch,
	.start = libvirt_start,
	.stop = libvirt_stop,
	.pause = libvirt_pause,
	.resume = libvirt_resume,
	.limit = libvirt_limit,
	.rename = libvirt_rename,
	.link = libvirt_link,
	.usage = libvirt_usage,
	.access = libvirt_access,
	.checkpoint = libvirt_checkpoint,
	.checkpoint_list = libvirt_checkpoint_list,
	.checkpoint_remove = libvirt_checkpoint_remove,
	.checkpoint_root = libvirt_checkpoint_root,
	.restore = libvirt_restore,
	.reset = libvirt_reset,
};
