/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on one sandbox: start, stop, pause, resume, limits, files, usage. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/mem/mem_priv.h"

#define NS_PER_MS UINT64_C(1000000)

/* Finds it and takes the lock; NULL: the lock is not held, -ENOENT in @err. */
static struct mem_box *box_lock(struct cube_backend *b, const char *id, struct cube_err *err)
{
	struct mem *m = mem_of(b);
	struct mem_box *box;

	pthread_mutex_lock(&m->lock);
	box = mem_box_find(m, id, err);
	if (box == NULL)
		pthread_mutex_unlock(&m->lock);
	return box;
}

static int box_unlock(struct mem_box *box, int r)
{
	pthread_mutex_unlock(&box->mem->lock);
	return r;
}

/* @box may be gone. */
static int lock_give(struct mem *m, int r)
{
	pthread_mutex_unlock(&m->lock);
	return r;
}

static int cancelled(struct cube_cancel *cancel, const char *id, struct cube_err *err)
{
	return cube_cancel_fired(cancel) ? cube_fail(err, -EINTR, "%s: the operation was cancelled", id) : 0;
}

static void box_change(struct mem_box *box, enum cube_state state)
{
	bool was_still = mem_box_still(box);

	box->state = state;
	mem_box_settle(box, was_still);
}

static void box_rest(struct mem_box *box)
{
	cube_close_auto(&box->root);
	cube_close_auto(&box->workspace);
	box->root = box->workspace = -1;
}

/* ---- Start and stop ---- */

int mem_start(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	struct mem_box *box;

	if (cancelled(cancel, id, err) < 0)
		return -EINTR;
	box = box_lock(b, id, err);
	if (box == NULL)
		return -ENOENT;
	if (box->state == CUBE_IS_STOPPED) {
		int r = mem_tree_open_box(box);

		if (r < 0)
			return box_unlock(
				box, cube_fail(err, r, "open the files of %s: %s", id, cube_errno_text(r)));
		box->state = CUBE_IS_RUNNING;
		box->boot = ++box->mem->boots;
		box->reason[0] = '\0';
	}
	return box_unlock(box, 0);
}

static void box_signal(struct mem_box *box, int sig)
{
	cube_list_each (i, &box->procs)
		mem_proc_signal(cube_list_entry(i, struct mem_proc, all), sig);
}

/* Until nothing runs in it, the time is over, or it is cancelled. Gives the lock back meanwhile. */
static void box_wait_idle(struct mem_box *box, uint32_t grace_s, struct cube_cancel *cancel)
{
	uint64_t until = cube_clock_mono() + grace_s * UINT64_C(1000000000);
	cube_auto_fd fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct pollfd polls[] = {{.fd = fd, .events = POLLIN},
				 {.fd = cube_cancel_fd(cancel), .events = POLLIN}};

	if (fd < 0)
		return;
	box->idle_fd = fd;
	while (box->n_active > 0) {
		uint64_t now = cube_clock_mono();
		int n;

		if (now >= until)
			break;
		pthread_mutex_unlock(&box->mem->lock);
		n = poll(polls, 2, (int)((until - now) / NS_PER_MS % 1000000) + 1);
		pthread_mutex_lock(&box->mem->lock);
		if (n > 0)
			break;
	}
	box->idle_fd = -1;
}

/* A cancel cuts the grace short: half stopped would be neither of what it may leave. */
int mem_stop(struct cube_backend *b, const char *id, uint32_t grace_s, struct cube_cancel *cancel,
	     struct cube_err *err)
{
	struct mem *m = mem_of(b);
	struct mem_box *box;

	if (cancelled(cancel, id, err) < 0)
		return -EINTR;
	box = box_lock(b, id, err);
	if (box == NULL)
		return -ENOENT;
	if (box->state == CUBE_IS_STOPPED)
		return box_unlock(box, 0);
	(void)mem_box_ref(box);
	box->frozen = false;
	box_change(box, CUBE_IS_RUNNING);
	box_signal(box, SIGTERM);
	mem_kick(m);
	box_wait_idle(box, grace_s, cancel);
	if (box->state != CUBE_IS_GONE) {
		box_signal(box, SIGKILL);
		mem_box_halt(box, CUBE_IS_STOPPED, "stopped", "the sandbox was stopped");
		box_rest(box);
	}
	mem_box_unref(box);
	return lock_give(m, 0);
}

/* ---- Pause and resume ---- */

static int box_move(struct cube_backend *b, const char *id, struct cube_cancel *cancel, enum cube_state to,
		    struct cube_err *err)
{
	struct mem_box *box;

	if (cancelled(cancel, id, err) < 0)
		return -EINTR;
	box = box_lock(b, id, err);
	if (box == NULL)
		return -ENOENT;
	if (box->state == CUBE_IS_STOPPED)
		return box_unlock(box, cube_fail(err, -EHOSTDOWN, "%s is stopped: start it first", id));
	(void)snprintf(box->reason, sizeof(box->reason), "%s", to == CUBE_IS_PAUSED ? "paused" : "");
	box_change(box, to);
	return box_unlock(box, 0);
}

int mem_pause(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	return box_move(b, id, cancel, CUBE_IS_PAUSED, err);
}

int mem_resume(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	return box_move(b, id, cancel, CUBE_IS_RUNNING, err);
}

/* ---- Limits and what is used ---- */

int mem_limit(struct cube_backend *b, const char *id, const struct cube_limits *limits, struct cube_err *err)
{
	struct mem_box *box = box_lock(b, id, err);

	if (box == NULL)
		return -ENOENT;
	if (limits->memory != 0)
		box->limits.memory = limits->memory;
	if (limits->pids != 0)
		box->limits.pids = limits->pids;
	return box_unlock(box, 0);
}

int mem_rename(struct cube_backend *b, const char *id, const char *name, struct cube_err *err)
{
	struct mem_box *box = box_lock(b, id, err);

	if (box == NULL)
		return -ENOENT;
	(void)snprintf(box->hostname, sizeof(box->hostname), "%.64s", name);
	return box_unlock(box, 0);
}

int mem_adopt(struct cube_backend *b, const char *id, const char *uid, struct cube_cancel *cancel,
	      struct cube_err *err)
{
	struct mem_box *box = box_lock(b, id, err);

	(void)cancel; /* nothing here takes time */
	if (box == NULL)
		return -ENOENT;
	(void)snprintf(box->uid, sizeof(box->uid), "%s", uid);
	return box_unlock(box, 0);
}

/* Its mark stays: it says that cubefs made it, which is so. */
int mem_let_go(struct cube_backend *b, const char *id, struct cube_err *err)
{
	struct mem_box *box = box_lock(b, id, NULL);

	(void)err;
	return box != NULL ? box_unlock(box, 0) : 0;
}

int mem_written(struct cube_backend *b, const char *id, uint64_t *ret, struct cube_err *err)
{
	struct mem_box *box = box_lock(b, id, err);

	if (box == NULL)
		return -ENOENT;
	*ret = box->written;
	return box_unlock(box, 0);
}

int mem_usage(struct cube_backend *b, const char *id, struct cube_usage *ret, struct cube_err *err)
{
	struct mem_box *box = box_lock(b, id, err);

	if (box == NULL)
		return -ENOENT;
	*ret = (struct cube_usage){
		.pids = box->n_active,
		.cpu_ns = box->cpu_ns,
		.memory = mem_box_eaten(box),
		.disk = UINT64_MAX, /* to know it would be a walk */
		.oom_kills = box->oom_kills,
		.net_in = UINT64_MAX, /* it has no network */
		.net_out = UINT64_MAX,
	};
	return box_unlock(box, 0);
}

/* ---- Files ---- */

static int reopen(int dir, int *ret)
{
	*ret = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret < 0 ? -errno : 0;
}

/* Root keeps the owners as they are. An ordinary user has one id, which is root inside. */
void mem_root_owners(struct cube_root *root)
{
	bool is_root = geteuid() == 0;

	root->uid_base = geteuid();
	root->gid_base = getegid();
	root->id_count = is_root ? UINT32_MAX : 1;
	root->swap_owner = !is_root;
}

int mem_root(struct cube_backend *b, const char *id, struct cube_root *ret, struct cube_err *err)
{
	struct mem_box *box = box_lock(b, id, err);
	struct cube_root root = {.fd = -1, .n_mounts = 1};
	int r;

	if (box == NULL)
		return -ENOENT;
	(void)snprintf(root.mounts[0].path, sizeof(root.mounts[0].path), "/workspace");
	root.mounts[0].fd = -1;
	root.generation = box->generation;
	mem_root_owners(&root);
	r = mem_tree_open_box(box);
	if (r == 0)
		r = reopen(box->root, &root.fd);
	if (r == 0)
		r = reopen(box->workspace, &root.mounts[0].fd);
	if (r == 0)
		r = mem_mounts_root(box, &root);
	if (r < 0) {
		cube_root_close(&root);
		(void)cube_fail(err, r, "open the files of %s: %s", id, cube_errno_text(r));
	} else {
		*ret = root;
	}
	if (box->state == CUBE_IS_STOPPED)
		box_rest(box);
	return box_unlock(box, r);
}
