/* SPDX-License-Identifier: Apache-2.0 */
/* The backend `mem`: sandboxes in memory, for tests and fuzzing. Its table, its instance, its pump. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/mem/mem_priv.h"

#define NS_PER_MS UINT64_C(1000000)

/* ---- The pump ---- */

static void mem_free(struct mem *m)
{
	cube_map_free(m->boxes);
	mem_template_clear(m);
	(void)pthread_mutex_destroy(&m->lock);
	cube_close_auto(&m->dir);
	cube_free(m);
}

void mem_kick(struct mem *m)
{
	if (m->posted || m->closed)
		return;
	m->posted = true;
	cube_loop_post(m->env->loop, &m->post);
}

static void on_timer(void *ctx)
{
	struct mem *m = ctx;

	pthread_mutex_lock(&m->lock);
	mem_kick(m);
	pthread_mutex_unlock(&m->lock);
}

/* Every process goes on until it waits; true: one has more to do at once. */
static bool pump_run(struct mem *m)
{
	bool more = false;

	cube_list_each (i, &m->active) {
		struct mem_proc *p = cube_list_entry(i, struct mem_proc, active);
		struct mem_box *b = p->box;
		uint64_t from = cube_clock_mono();

		if (mem_box_still(b))
			continue;
		more = mem_proc_run(p) || more;
		b->cpu_ns += cube_clock_mono() - from;
		if (b->crashing) {
			mem_box_halt(b, CUBE_IS_STOPPED, "exited", "the sandbox ended by itself");
			return true; /* the list is another one now */
		}
	}
	return more;
}

static uint64_t pump_next(const struct mem *m)
{
	uint64_t first = UINT64_MAX;

	for (struct cube_list *i = m->active.next; i != &m->active; i = i->next) {
		const struct mem_proc *p = cube_list_entry(i, struct mem_proc, active);
		uint64_t when = mem_box_still(p->box) ? UINT64_MAX : mem_proc_when(p);

		first = when < first ? when : first;
	}
	return first;
}

/* Wakes the pump when time has come for a process; false: at once. */
static bool pump_arm(struct mem *m)
{
	uint64_t when = pump_next(m);
	uint64_t now = cube_clock_mono();

	if (when == UINT64_MAX)
		return true;
	if (m->timer == NULL)
		m->timer = cube_timer_new(m->env->loop, on_timer, m);
	if (when <= now || m->timer == NULL)
		return false;
	cube_timer_start(m->timer, (when - now + NS_PER_MS - 1) / NS_PER_MS);
	return true;
}

static void pump(struct cube_post *post)
{
	struct mem *m = cube_container_of(post, struct mem, post);
	bool more;

	pthread_mutex_lock(&m->lock);
	m->posted = false;
	if (m->closed) {
		pthread_mutex_unlock(&m->lock);
		mem_free(m);
		return;
	}
	more = pump_run(m);
	more = !pump_arm(m) || more;
	while (mem_events_deliver(m))
		;
	if (more)
		mem_kick(m);
	pthread_mutex_unlock(&m->lock);
}

/* ---- The instance ---- */

/* Left-overs of an instance that was not closed: nobody knows them any more. */
static int sweep(struct mem *m)
{
	cube_auto_fd fd = openat(m->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	int r = 0;

	if (dir == NULL)
		return -errno;
	(void)cube_steal_fd(&fd); /* the stream's */
	for (struct dirent *e = readdir(dir); e != NULL && r == 0; e = readdir(dir)) {
		if (strncmp(e->d_name, "mem-", 4) == 0)
			r = cube_file_remove_tree(m->dir, e->d_name);
	}
	(void)closedir(dir);
	return r;
}

static int mem_setup(struct mem *m, struct cube_err *err)
{
	int r;

	m->dir = open(m->env->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (m->dir < 0)
		return cube_fail_errno(err, "%s", m->env->state_dir);
	m->boxes = cube_map_new();
	if (m->boxes == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	r = sweep(m);
	if (r < 0)
		return cube_fail(err, r, "clean up %s: %s", m->env->state_dir, cube_errno_text(r));
	r = mem_template_load(m, err);
	if (r == 0)
		r = mem_volumes_load(m, err);
	if (r == 0)
		r = mem_checkpoints_load(m, err);
	return r < 0 ? r : mem_conf_apply(m, m->env->conf, err);
}

static int mem_open(const struct cube_backend_env *env, struct cube_backend **ret, struct cube_err *err)
{
	int r = mem_conf_check(env, err);
	struct mem *m = r == 0 ? cube_calloc(1, sizeof(*m)) : NULL;
	struct cube_backend *b;

	if (r < 0)
		return r;
	if (m == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	m->base.ops = &cube_backend_mem;
	m->base.name = env->name;
	m->base.par = cube_backend_mem.par;
	m->base.template = MEM_TEMPLATE_BASE;
	m->env = env;
	m->dir = -1;
	m->post.fn = pump;
	cube_list_init(&m->active);
	cube_list_init(&m->ready);
	cube_list_init(&m->templates);
	(void)pthread_mutex_init(&m->lock, NULL);
	r = mem_setup(m, err);
	if (r < 0) {
		mem_free(m);
		return r;
	}
	b = &m->base;
	r = mem_conf_faults(&b, env->conf, err);
	if (r < 0)
		b->ops->close(b);
	else
		*ret = b;
	return r;
}

static int close_box(void *ctx, const char *key, void *value)
{
	struct mem *m = ctx;

	mem_box_halt(value, CUBE_IS_GONE, "closed", "the backend was closed");
	(void)cube_file_remove_tree(m->dir, key);
	mem_box_unref(value);
	return 0;
}

/* What it keeps in memory ends with it, so its directories do as well. A post that is still with the loop
 * finds the instance closed and frees it. */
static void mem_close(struct cube_backend *b)
{
	struct mem *m = mem_of(b);
	bool posted;

	pthread_mutex_lock(&m->lock);
	cube_timer_free(m->timer);
	posted = m->posted;
	m->posted = true; /* no further one */
	(void)cube_map_each(m->boxes, close_box, m);
	m->closed = true;
	pthread_mutex_unlock(&m->lock);
	if (!posted)
		mem_free(m);
}

static int mem_status(struct cube_backend *b, struct cube_cancel *cancel, struct cube_status *ret,
		      struct cube_err *err)
{
	if (cube_cancel_fired(cancel))
		return cube_fail(err, -EINTR, "asking for the status was cancelled");
	ret->reachable = true;
	ret->caps = b->caps;
	ret->latency_us = 0;
	(void)snprintf(ret->version, sizeof(ret->version), "built in");
	(void)snprintf(ret->fingerprint, sizeof(ret->fingerprint), "mem-%d", CUBE_BACKEND_ABI);
	memcpy(ret->missing, b->missing, sizeof(ret->missing));
	return 0;
}

static void mem_doctor(struct cube_backend *b,
		       void (*say)(void *ctx, bool ok, const char *what, const char *fix), void *ctx)
{
	(void)b;
	say(ctx, true, "backend mem needs nothing (it is for tests: commands are not those of a shell)", "");
}

const struct cube_backend_ops cube_backend_mem = {
	.abi = CUBE_BACKEND_ABI,
	.kind = "mem",
	.summary = "sandboxes in memory, for tests: a tiny command language, real files, no privileges",
	.caps = CUBE_CAP_EXEC | CUBE_CAP_FILES | CUBE_CAP_PAUSE | CUBE_CAP_STOP | CUBE_CAP_TTY |
		CUBE_CAP_TEMPLATES | CUBE_CAP_MEMORY | CUBE_CAP_PIDS | CUBE_CAP_USAGE | CUBE_CAP_USERS |
		CUBE_CAP_RENAME | CUBE_CAP_PORTS | CUBE_CAP_VOLUMES | CUBE_CAP_BIND | CUBE_CAP_BUILD |
		CUBE_CAP_ADOPT | CUBE_CAP_ACCESS | CUBE_CAP_CHECKPOINTS | CUBE_CAP_RESET | CUBE_CAP_KEEP,
	.par = CUBE_PAR_PER_CUBE,
	.open = mem_open,
	.close = mem_close,
	.status = mem_status,
	.doctor = mem_doctor,
	.create = mem_create,
	.destroy = mem_destroy,
	.inspect = mem_inspect,
	.list = mem_list,
	.start = mem_start,
	.stop = mem_stop,
	.pause = mem_pause,
	.resume = mem_resume,
	.limit = mem_limit,
	.adopt = mem_adopt,
	.let_go = mem_let_go,
	.rename = mem_rename,
	.link = mem_link,
	.root = mem_root,
	.usage = mem_usage,
	.written = mem_written,
	.dial = mem_dial,
	.listening = mem_listening,
	.access = mem_access,
	.template_list = mem_template_list,
	.template_import = mem_template_import,
	.template_check = mem_template_check,
	.template_remove = mem_template_remove,
	.template_config = mem_template_config,
	.template_commit = mem_template_commit,
	.template_derive = mem_template_derive,
	.template_keep = mem_template_keep,
	.volume_make = mem_volume_make,
	.volume_copy = mem_volume_copy,
	.volume_remove = mem_volume_remove,
	.volume_list = mem_volume_list,
	.volume_root = mem_volume_root,
	.checkpoint = mem_checkpoint,
	.checkpoint_list = mem_checkpoint_list,
	.checkpoint_remove = mem_checkpoint_remove,
	.checkpoint_root = mem_checkpoint_root,
	.restore = mem_restore,
	.reset = mem_reset,
	.bind = mem_bind,
	.unbind = mem_unbind,
};
