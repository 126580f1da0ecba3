/* SPDX-License-Identifier: Apache-2.0 */
/* The control groups of one sandbox: making, limits, entering, freezing, killing. */
#include "backends/local/cgroup.h"

#include "backends/base/child.h"
#include "backends/base/clock.h"
#include "backends/base/macros.h"
#include "backends/local/cgroup_priv.h"
#include "backends/local/mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUP_MAX_DESCENDANTS "4096" /* groups that a sandbox can make for its jobs */
#define GROUP_PERIOD_US       100000
#define GROUP_FREEZE_MS       5000
#define GROUP_FREEZE_LOOKS    20 /* a millisecond apart, before they are further apart */
#define GROUP_PATH            128

int cube_local_group_file(int tree, const char *id, const char *file, int flags)
{
	char path[GROUP_PATH];
	int fd;

	if (tree < 0)
		return -ENOENT;
	(void)snprintf(path, sizeof(path), "%s/%s", id, file);
	fd = openat(tree, path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int group_write(int tree, const char *id, const char *file, const char *text)
{
	cube_auto_fd fd = cube_local_group_file(tree, id, file, O_WRONLY);

	if (fd < 0)
		return fd;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

uint64_t cube_local_group_read(int fd, const char *key)
{
	char text[4096], *at = text, *end;
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
	size_t len = strlen(key);
	uint64_t value;

	if (n <= 0)
		return UINT64_MAX;
	text[n] = 0;
	while (len && at && (strncmp(at, key, len) != 0 || at[len] != ' ')) {
		at = strchr(at, '\n');
		if (at)
			at++;
	}
	if (!at)
		return UINT64_MAX;
	value = strtoull(at + len, &end, 10);
	return end == at + len ? UINT64_MAX : value;
}

uint64_t cube_local_group_number(int tree, const char *id, const char *file, const char *key)
{
	cube_auto_fd fd = cube_local_group_file(tree, id, file, O_RDONLY);

	return cube_local_group_read(fd, key);
}

/* ---- making ---- */

static int group_mkdir(int tree, const char *id)
{
	return tree < 0 || mkdirat(tree, id, 0755) == 0 || errno == EEXIST ? 0 : -errno;
}

/* What makes a v2 directory the owner's to divide; limits stay ours. */
static int group_give(int tree, const char *id, const struct cube_ns_ids *ids)
{
	static const char *const files[] = {".", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"};
	char path[GROUP_PATH], depth[8];
	int rc;

	for (size_t i = 0; i < CUBE_COUNT(files); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", id, files[i]);
		if (fchownat(tree, path, ids->uid, ids->gid, 0) < 0)
			return -errno;
	}
	(void)snprintf(depth, sizeof(depth), "%d", CUBE_GROUP_DEPTH);
	rc = group_write(tree, id, "cgroup.max.depth", depth);
	return rc < 0 ? rc : group_write(tree, id, "cgroup.max.descendants", GROUP_MAX_DESCENDANTS);
}

int cube_local_group_make(const struct cube_local_cgroups *c, const char *id, const struct cube_ns_ids *ids,
			  struct cube_err *err)
{
	int rc = group_mkdir(c->v2, id);

	for (size_t i = 0; rc == 0 && i < CUBE_CTL_COUNT; i++)
		rc = group_mkdir(c->v1[i], id);
	if (rc == 0 && c->v2 >= 0)
		rc = group_give(c->v2, id, ids);
	return rc < 0 ? cube_fail(err, rc, "cannot make the control group of %s: %s", id, cube_errno_text(rc))
		      : 0;
}

/* ---- limits ---- */

/* The tree in which a controller is. */
static int group_tree(const struct cube_local_cgroups *c, enum cube_local_ctl what)
{
	return c->v1[what] >= 0 ? c->v1[what] : c->v2;
}

static int limit_memory_v1(int tree, const char *id, const char *text)
{
	int rc = group_write(tree, id, "memory.limit_in_bytes", text);
	int swap = group_write(tree, id, "memory.memsw.limit_in_bytes", text);

	/* Memory may not be above memory and swap: the other order for a limit that grows. */
	if (rc == -EINVAL && swap == 0)
		rc = group_write(tree, id, "memory.limit_in_bytes", text);
	return rc < 0 ? rc : swap == -ENOENT ? 0 : swap; /* not there: swap is not counted here */
}

static int limit_memory(const struct cube_local_cgroups *c, const char *id, uint64_t bytes)
{
	char text[32];
	int rc, swap;

	(void)snprintf(text, sizeof(text), "%" PRIu64, bytes);
	if (c->v1[CUBE_CTL_MEMORY] >= 0)
		return limit_memory_v1(c->v1[CUBE_CTL_MEMORY], id, text);
	rc = group_write(c->v2, id, "memory.max", text);
	swap = rc < 0 ? rc : group_write(c->v2, id, "memory.swap.max", "0");
	return swap == -ENOENT ? 0 : swap;
}

static int limit_pids(const struct cube_local_cgroups *c, const char *id, uint64_t n)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%" PRIu64, n);
	return group_write(group_tree(c, CUBE_CTL_PIDS), id, "pids.max", text);
}

static int limit_cpu(const struct cube_local_cgroups *c, const char *id, uint64_t milli)
{
	uint64_t quota = milli * (GROUP_PERIOD_US / 1000);
	char text[64];

	if (quota < 1000)
		quota = 1000; /* the kernel's least */
	if (c->v1[CUBE_CTL_CPU] >= 0) {
		(void)snprintf(text, sizeof(text), "%" PRIu64, quota);
		return group_write(c->v1[CUBE_CTL_CPU], id, "cpu.cfs_quota_us", text);
	}
	(void)snprintf(text, sizeof(text), "%" PRIu64 " %d", quota, GROUP_PERIOD_US);
	return group_write(c->v2, id, "cpu.max", text);
}

int cube_local_group_limit(const struct cube_local_cgroups *c, const char *id,
			   const struct cube_limits *limits, struct cube_err *err)
{
	const struct {
		enum cube_local_ctl what;
		const char *name;
		uint64_t value;
		int (*set)(const struct cube_local_cgroups *c, const char *id, uint64_t value);
	} all[] = {
		{CUBE_CTL_MEMORY, "memory (bytes)", limits->memory, limit_memory},
		{CUBE_CTL_PIDS, "processes", limits->pids, limit_pids},
		{CUBE_CTL_CPU, "cpus (thousandths)", limits->cpus_milli, limit_cpu},
	};

	for (size_t i = 0; i < CUBE_COUNT(all); i++) {
		int rc = 0;

		if (all[i].value && cube_local_cgroups_has(c, all[i].what))
			rc = all[i].set(c, id, all[i].value);
		if (rc < 0)
			return cube_fail(err, rc, "cannot limit %s to %" PRIu64 ": %s", all[i].name,
					 all[i].value, rc == -EBUSY ? "more is in use" : cube_errno_text(rc));
	}
	return 0;
}

/* ---- entering, handing out ---- */

int cube_local_group_doors(const struct cube_local_cgroups *c, const char *id, struct cube_local_doors *ret,
			   struct cube_err *err)
{
	int n = 0, rc = 0;

	*ret = (struct cube_local_doors)CUBE_LOCAL_DOORS_NONE;
	if (c->v2 >= 0)
		ret->v2 = rc = cube_local_group_file(c->v2, id, ".", O_PATH | O_DIRECTORY);
	/* `tasks` and not `cgroup.procs`, which waits until no processor is in the middle of a fork: the kernel
	 * spares one who moves himself alone this wait of some ten milliseconds. */
	for (size_t i = 0; rc >= 0 && i < CUBE_CTL_COUNT; i++)
		if (c->v1[i] >= 0)
			ret->v1[n++] = rc = cube_local_group_file(c->v1[i], id, "tasks", O_WRONLY);
	if (rc >= 0)
		return 0;
	cube_local_doors_close(ret);
	return cube_fail(err, rc, "cannot enter the control group of %s: %s", id, cube_errno_text(rc));
}

int cube_local_doors_enter(const struct cube_local_doors *d)
{
	for (size_t i = 0; i < CUBE_CTL_COUNT && d->v1[i] >= 0; i++)
		if (!cube_child_write(d->v1[i], "0", 1))
			return -errno;
	return 0;
}

void cube_local_doors_close(struct cube_local_doors *d)
{
	if (d->v2 >= 0)
		close(cube_steal_fd(&d->v2));
	for (size_t i = 0; i < CUBE_CTL_COUNT; i++)
		if (d->v1[i] >= 0)
			close(cube_steal_fd(&d->v1[i]));
}

int cube_local_group_delegate(const struct cube_local_cgroups *c, const char *id)
{
	return c->v2 < 0 ? -1 : cube_local_mnt_clone(c->v2, id);
}

/* ---- freezing ---- */

bool cube_local_group_frozen(const struct cube_local_cgroups *c, const char *id)
{
	char state[16] = "";
	cube_auto_fd fd = -1;

	if (c->v2 >= 0)
		return cube_local_group_number(c->v2, id, "cgroup.events", "frozen") == 1;
	fd = cube_local_group_file(c->v1[CUBE_CTL_FREEZER], id, "freezer.state", O_RDONLY);
	return fd >= 0 && read(fd, state, sizeof(state) - 1) > 0 && strncmp(state, "FROZEN", 6) == 0;
}

static int group_ask_freeze(const struct cube_local_cgroups *c, const char *id, bool on)
{
	if (c->v2 >= 0)
		return group_write(c->v2, id, "cgroup.freeze", on ? "1" : "0");
	return group_write(c->v1[CUBE_CTL_FREEZER], id, "freezer.state", on ? "FROZEN" : "THAWED");
}

int cube_local_group_freeze(const struct cube_local_cgroups *c, const char *id, bool on,
			    struct cube_cancel *cancel, struct cube_err *err)
{
	uint64_t end = cube_clock_mono() + GROUP_FREEZE_MS * UINT64_C(1000000);
	struct pollfd p = {.fd = cube_cancel_fd(cancel), .events = POLLIN};
	int rc = group_ask_freeze(c, id, on), wait_ms = 1, looks = 0;

	while (rc == 0 && cube_local_group_frozen(c, id) != on) {
		if (cube_clock_mono() > end)
			rc = -EBUSY;
		else if (poll(&p, 1, wait_ms) > 0)
			rc = -EINTR;
		else if (c->v2 < 0)
			rc = group_ask_freeze(c, id, on); /* v1 tries once for each time it is asked */
		/* Whoever stands still waits for what is done meanwhile: most are still after a millisecond or two. */
		if (++looks > GROUP_FREEZE_LOOKS && wait_ms < 20)
			wait_ms *= 2;
	}
	if (rc < 0)
		(void)group_ask_freeze(c, id, !on);
	if (rc == -EBUSY)
		return cube_fail(err, rc,
				 "a process inside waits for a device or a file system and cannot be %s",
				 on ? "stopped" : "continued");
	return rc < 0 ? cube_fail(err, rc, "cannot use the freezer: %s", cube_errno_text(rc)) : 0;
}

/* ---- the end ---- */

void cube_local_group_kill(const struct cube_local_cgroups *c, const char *id)
{
	(void)group_write(c->v2, id, "cgroup.kill", "1");
	(void)group_write(c->v2, id, "cgroup.freeze", "0");
	/* A frozen process of v1 takes no signal. */
	(void)group_write(c->v1[CUBE_CTL_FREEZER], id, "freezer.state", "THAWED");
}
