/* SPDX-License-Identifier: Apache-2.0 */
/* The control groups of one sandbox. */
#include "backends/local/cgroup.h"

#include "backends/base/clock.h"
#include "backends/base/file.h"
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

static int group_write(int dir, const char *file, const char *text)
{
	cube_auto_fd fd = openat(dir, file, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

uint64_t cube_local_group_number(int dir, const char *file, const char *key)
{
	char text[4096], *at = text, *end;
	cube_auto_fd fd = dir < 0 ? -1 : openat(dir, file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
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

static int group_open_dir(int parent, const char *id)
{
	return parent < 0 ? -1 : openat(parent, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void cube_local_group_open(const struct cube_local_cgroups *c, const char *id, struct cube_local_group *ret)
{
	ret->v2 = group_open_dir(c->v2, id);
	for (size_t i = 0; i < CUBE_CTL_COUNT; i++)
		ret->v1[i] = group_open_dir(c->v1[i], id);
}

void cube_local_group_close(struct cube_local_group *g)
{
	if (g->v2 >= 0)
		close(cube_steal_fd(&g->v2));
	for (size_t i = 0; i < CUBE_CTL_COUNT; i++)
		if (g->v1[i] >= 0)
			close(cube_steal_fd(&g->v1[i]));
}

static int group_mkdir(int parent, const char *id)
{
	return parent < 0 || mkdirat(parent, id, 0755) == 0 || errno == EEXIST ? 0 : -errno;
}

/* What makes a v2 directory the owner's to divide; limits stay ours. */
static int group_give(int dir, const struct cube_local_ids *ids)
{
	static const char *const files[] = {".", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"};
	char depth[8];
	int rc;

	for (size_t i = 0; i < CUBE_COUNT(files); i++)
		if (fchownat(dir, files[i], ids->uid, ids->gid, 0) < 0)
			return -errno;
	(void)snprintf(depth, sizeof(depth), "%d", CUBE_GROUP_DEPTH);
	rc = group_write(dir, "cgroup.max.depth", depth);
	return rc < 0 ? rc : group_write(dir, "cgroup.max.descendants", GROUP_MAX_DESCENDANTS);
}

int cube_local_group_make(const struct cube_local_cgroups *c, const char *id,
			  const struct cube_local_ids *ids, struct cube_local_group *ret,
			  struct cube_err *err)
{
	int rc = group_mkdir(c->v2, id);

	for (size_t i = 0; rc == 0 && i < CUBE_CTL_COUNT; i++)
		rc = group_mkdir(c->v1[i], id);
	cube_local_group_open(c, id, ret);
	if (rc == 0 && ret->v2 >= 0)
		rc = group_give(ret->v2, ids);
	if (rc < 0) {
		cube_local_group_close(ret);
		return cube_fail(err, rc, "cannot make the control group of %s: %s", id, cube_errno_text(rc));
	}
	return 0;
}

/* ---- limits ---- */

static int limit_memory_v1(int dir, const char *text)
{
	int rc = group_write(dir, "memory.limit_in_bytes", text);
	int swap = group_write(dir, "memory.memsw.limit_in_bytes", text);

	/* Memory may not be above memory and swap: the other order for a limit that grows. */
	if (rc == -EINVAL && swap == 0)
		rc = group_write(dir, "memory.limit_in_bytes", text);
	return rc < 0 ? rc : swap == -ENOENT ? 0 : swap; /* not there: swap is not counted here */
}

static int limit_memory(const struct cube_local_group *g, uint64_t bytes)
{
	char text[32];
	int rc;

	(void)snprintf(text, sizeof(text), "%" PRIu64, bytes);
	if (g->v1[CUBE_CTL_MEMORY] >= 0)
		return limit_memory_v1(g->v1[CUBE_CTL_MEMORY], text);
	rc = group_write(g->v2, "memory.max", text);
	if (rc == 0) {
		int swap = group_write(g->v2, "memory.swap.max", "0");

		rc = swap == -ENOENT ? 0 : swap;
	}
	return rc;
}

static int limit_pids(const struct cube_local_group *g, uint32_t n)
{
	int dir = g->v1[CUBE_CTL_PIDS] >= 0 ? g->v1[CUBE_CTL_PIDS] : g->v2;
	char text[32];

	(void)snprintf(text, sizeof(text), "%u", n);
	return group_write(dir, "pids.max", text);
}

static int limit_cpu(const struct cube_local_group *g, uint32_t milli)
{
	uint64_t quota = (uint64_t)milli * (GROUP_PERIOD_US / 1000);
	char text[64];

	if (quota < 1000)
		quota = 1000; /* the kernel's least */
	if (g->v1[CUBE_CTL_CPU] >= 0) {
		(void)snprintf(text, sizeof(text), "%" PRIu64, quota);
		return group_write(g->v1[CUBE_CTL_CPU], "cpu.cfs_quota_us", text);
	}
	(void)snprintf(text, sizeof(text), "%" PRIu64 " %d", quota, GROUP_PERIOD_US);
	return group_write(g->v2, "cpu.max", text);
}

int cube_local_group_limit(const struct cube_local_cgroups *c, const struct cube_local_group *g,
			   const struct cube_limits *limits, struct cube_err *err)
{
	int rc;

	if (limits->memory && cube_local_cgroups_has(c, CUBE_CTL_MEMORY)) {
		rc = limit_memory(g, limits->memory);
		if (rc < 0)
			return cube_fail(err, rc, "cannot limit memory to %" PRIu64 " bytes: %s",
					 limits->memory,
					 rc == -EBUSY ? "more is in use" : cube_errno_text(rc));
	}
	if (limits->pids && cube_local_cgroups_has(c, CUBE_CTL_PIDS)) {
		rc = limit_pids(g, limits->pids);
		if (rc < 0)
			return cube_fail(err, rc, "cannot limit processes to %u: %s", limits->pids,
					 cube_errno_text(rc));
	}
	if (limits->cpus_milli && cube_local_cgroups_has(c, CUBE_CTL_CPU)) {
		rc = limit_cpu(g, limits->cpus_milli);
		if (rc < 0)
			return cube_fail(err, rc, "cannot limit cpus to %u/1000: %s", limits->cpus_milli,
					 cube_errno_text(rc));
	}
	return 0;
}

/* ---- entering, handing out ---- */

int cube_local_group_doors(const struct cube_local_group *g, int doors[CUBE_GROUP_DOORS],
			   struct cube_err *err)
{
	int n = 0, rc;

	for (size_t i = 0; i <= CUBE_CTL_COUNT; i++) {
		int dir = i < CUBE_CTL_COUNT ? g->v1[i] : g->v2;

		if (dir < 0)
			continue;
		doors[n] = openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);
		if (doors[n] < 0) {
			rc = cube_fail_errno(err, "cannot enter a control group");
			while (n > 0)
				close(doors[--n]);
			return rc;
		}
		n++;
	}
	return n;
}

int cube_local_group_delegate(const struct cube_local_group *g)
{
	return g->v2 < 0 ? -1 : cube_local_mnt_clone(g->v2, "");
}

/* ---- freezing ---- */

static bool group_is_frozen(const struct cube_local_group *g)
{
	char state[16] = "";
	cube_auto_fd fd = -1;

	if (g->v2 >= 0)
		return cube_local_group_number(g->v2, "cgroup.events", "frozen") == 1;
	if (g->v1[CUBE_CTL_FREEZER] >= 0)
		fd = openat(g->v1[CUBE_CTL_FREEZER], "freezer.state", O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, state, sizeof(state) - 1) > 0 && strncmp(state, "FROZEN", 6) == 0;
}

bool cube_local_group_frozen(const struct cube_local_group *g)
{
	return group_is_frozen(g);
}

static int group_ask_freeze(const struct cube_local_group *g, bool on)
{
	if (g->v2 >= 0)
		return group_write(g->v2, "cgroup.freeze", on ? "1" : "0");
	if (g->v1[CUBE_CTL_FREEZER] >= 0)
		return group_write(g->v1[CUBE_CTL_FREEZER], "freezer.state", on ? "FROZEN" : "THAWED");
	return -EOPNOTSUPP;
}

int cube_local_group_freeze(const struct cube_local_group *g, bool on, struct cube_cancel *cancel,
			    struct cube_err *err)
{
	uint64_t end = cube_clock_mono() + GROUP_FREEZE_MS * UINT64_C(1000000);
	struct pollfd p = {.fd = cube_cancel_fd(cancel), .events = POLLIN};
	int rc = group_ask_freeze(g, on), wait_ms = 1;

	while (rc == 0 && group_is_frozen(g) != on) {
		if (cube_clock_mono() > end)
			rc = -EBUSY;
		else if (poll(&p, 1, wait_ms) > 0)
			rc = -EINTR;
		else if (g->v2 < 0)
			rc = group_ask_freeze(g, on); /* v1 tries once for each time it is asked */
		if (wait_ms < 20)
			wait_ms *= 2;
	}
	if (rc < 0 && rc != -EOPNOTSUPP)
		(void)group_ask_freeze(g, !on);
	if (rc == -EBUSY)
		return cube_fail(err, rc,
				 "a process inside waits for a device or a file system and cannot be %s",
				 on ? "stopped" : "continued");
	return rc < 0 ? cube_fail(err, rc, "cannot use the freezer: %s", cube_errno_text(rc)) : 0;
}

/* ---- the end ---- */

void cube_local_group_kill(const struct cube_local_group *g)
{
	if (g->v2 >= 0) {
		(void)group_write(g->v2, "cgroup.kill", "1");
		(void)group_write(g->v2, "cgroup.freeze", "0");
	}
	if (g->v1[CUBE_CTL_FREEZER] >= 0) /* a frozen process of v1 takes no signal */
		(void)group_write(g->v1[CUBE_CTL_FREEZER], "freezer.state", "THAWED");
}
