/* SPDX-License-Identifier: Apache-2.0 */
/* The first process of a container, where it is one of this machine: ports are reached through its namespaces, and
 * its control group counts what the memory limit has ended.
 *
 * Its directory in /proc is kept, since it stays with the process: as long as that lives it is the container's, and the
 * engine need not be asked again. That it is the container's at all is what its control group says, which has the
 * container's id in its path: an engine's socket may have been forwarded from another machine, where the number means
 * another process. */
#include "backends/docker/docker_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/ns/ns.h"
#include "backends/ns/oom.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROC_CGROUP ((size_t)64 << 10) /* of its file of control groups */

struct proc_one {
	int fd;
	void *oom; /* watch of its memory limit (oom.h); NULL: none yet, or not to be had */
};

int docker_procs_open(struct cube_docker *d)
{
	d->procs = cube_map_new();
	return d->procs != NULL && pthread_mutex_init(&d->procs_lock, NULL) == 0 ? 0 : -ENOMEM;
}

static int proc_free(void *ctx, const char *id, void *value)
{
	struct proc_one *p = value;

	(void)ctx;
	(void)id;
	close(p->fd);
	cube_ns_oom_forget(p->oom);
	cube_free(p);
	return 0;
}

void docker_procs_close(struct cube_docker *d)
{
	if (d->procs == NULL)
		return;
	(void)cube_map_each(d->procs, proc_free, NULL);
	cube_map_free(d->procs);
	(void)pthread_mutex_destroy(&d->procs_lock);
}

void docker_proc_forget(struct cube_docker *d, const char *id)
{
	struct proc_one *p;

	pthread_mutex_lock(&d->procs_lock);
	p = cube_map_take(d->procs, id);
	pthread_mutex_unlock(&d->procs_lock);
	if (p != NULL)
		(void)proc_free(NULL, id, p);
}

/* One that has ended has no namespaces. */
static bool proc_lives(int proc)
{
	char link[64];

	return readlinkat(proc, "ns/mnt", link, sizeof(link)) > 0;
}

/* A descriptor of its own of what is known; -ENOENT. */
static int proc_known(struct cube_docker *d, const char *id)
{
	const struct proc_one *p;
	int fd = -ENOENT;

	pthread_mutex_lock(&d->procs_lock);
	p = cube_map_get(d->procs, id);
	if (p != NULL && proc_lives(p->fd))
		fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 3);
	if (fd == -1)
		fd = -errno;
	pthread_mutex_unlock(&d->procs_lock);
	return fd;
}

/* Without memory for it, it is asked for again. */
static void proc_note(struct cube_docker *d, const char *id, int proc)
{
	struct proc_one *p = cube_calloc(1, sizeof(*p));

	docker_proc_forget(d, id);
	if (p == NULL)
		return;
	p->fd = fcntl(proc, F_DUPFD_CLOEXEC, 3);
	if (p->fd < 0) {
		cube_free(p);
		return;
	}
	p->oom = cube_ns_oom_watch(cube_ns_oom_file(proc));
	pthread_mutex_lock(&d->procs_lock);
	if (cube_map_put(d->procs, id, p) < 0)
		(void)proc_free(NULL, id, p);
	pthread_mutex_unlock(&d->procs_lock);
}

void *docker_proc_oom(struct cube_docker *d, const char *id)
{
	cube_auto_fd proc = docker_proc_why(d) == NULL ? docker_proc(d, id, NULL, NULL) : -1;
	const struct proc_one *p;
	void *oom = NULL;

	pthread_mutex_lock(&d->procs_lock);
	p = proc >= 0 ? cube_map_get(d->procs, id) : NULL;
	if (p != NULL)
		oom = p->oom;
	pthread_mutex_unlock(&d->procs_lock);
	return oom;
}

static bool proc_is_of(int proc, const char *engine_id)
{
	struct cube_buf text = CUBE_BUF(PROC_CGROUP);
	bool is = *engine_id != '\0' && cube_file_read(proc, "cgroup", &text) == 0 &&
		  strstr(cube_buf_str(&text), engine_id) != NULL;

	cube_buf_done(&text);
	return is;
}

static int proc_find(struct cube_docker *d, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *box = NULL;
	cube_auto_fd proc = -1;
	int rc = docker_box_get(d, id, cancel, &box, err), pid;
	char path[32];

	if (rc < 0)
		return rc;
	pid = docker_box_pid(box);
	(void)snprintf(path, sizeof(path), "/proc/%d", pid);
	proc = pid != 0 ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (pid == 0 || (proc >= 0 && !proc_lives(proc)))
		return cube_fail(err, -EHOSTDOWN, "sandbox %s does not run", id);
	if (proc < 0 || !proc_is_of(proc, cube_json_str(box, "Id", "")))
		return cube_fail(err, -EHOSTUNREACH,
				 "sandbox %s: the engine at %.100s says that it is process %d, which on this "
				 "machine is another one: is the engine elsewhere?",
				 id, d->where, pid);
	proc_note(d, id, proc);
	return cube_steal_fd(&proc);
}

int docker_proc(struct cube_docker *d, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	int fd = proc_known(d, id);

	return fd >= 0 ? fd : proc_find(d, id, cancel, err);
}

const char *docker_proc_why(const struct cube_docker *d)
{
	if (!d->local)
		return "the engine may be another machine";
	if (geteuid() != 0)
		return "only root gets into the network of a container from outside";
	return NULL;
}

/* ---- ports ---- */

int docker_dial(struct cube_backend *base, const char *id, const struct cube_target *target,
		struct cube_cancel *cancel, int *ret_fd, struct cube_err *err)
{
	cube_auto_fd proc = docker_proc(docker_of(base), id, cancel, err);

	return proc < 0 ? proc : cube_ns_dial(proc, id, target, cancel, ret_fd, err);
}

int docker_listening(struct cube_backend *base, const char *id,
		     void (*each)(void *ctx, const struct cube_listener *l), void *ctx, struct cube_err *err)
{
	cube_auto_fd proc = docker_proc(docker_of(base), id, NULL, err);

	return proc < 0 ? proc : cube_ns_listening(proc, each, ctx, err);
}
