/* SPDX-License-Identifier: Apache-2.0 */
/* Usage and removal of a sandbox's control groups. */
#include "backends/local/cgroup.h"

#include "backends/base/clock.h"
#include "backends/base/macros.h"
#include "backends/local/cgroup_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define REMOVE_WAIT_NS UINT64_C(5000000000)

/* Directories below first: a group goes only when it has none. Processes and threads of the sandbox may
 * still make new ones while they die, which the caller's next round finds. */
static int remove_group(int parent, const char *name, unsigned depth)
{
	const struct dirent *e;
	int fd, rc = 0;
	DIR *d;

	if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno != EBUSY || depth > CUBE_GROUP_DEPTH)
		return -errno;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	while ((e = readdir(d)) != NULL)
		if (e->d_type == DT_DIR && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			rc = remove_group(dirfd(d), e->d_name, depth + 1);
	closedir(d);
	return unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : rc < 0 ? rc : -errno;
}

static int remove_everywhere(const struct cube_local_cgroups *c, const char *id)
{
	int rc = c->v2 >= 0 ? remove_group(c->v2, id, 0) : 0;

	for (size_t i = 0; i < CUBE_CTL_COUNT; i++) {
		int one = c->v1[i] >= 0 ? remove_group(c->v1[i], id, 0) : 0;

		if (rc == 0)
			rc = one;
	}
	return rc;
}

int cube_local_group_remove(const struct cube_local_cgroups *c, const char *id, struct cube_err *err)
{
	uint64_t end = cube_clock_mono() + REMOVE_WAIT_NS;
	int rc = remove_everywhere(c, id), wait_ms = 1;

	while (rc == -EBUSY && cube_clock_mono() < end) {
		(void)poll(NULL, 0, wait_ms);
		if (wait_ms < 32)
			wait_ms *= 2;
		rc = remove_everywhere(c, id);
	}
	return rc < 0 ? cube_fail(err, rc, "cannot remove the control group of %s: %s", id,
				  cube_errno_text(rc))
		      : 0;
}

static uint64_t usage_first(uint64_t a, uint64_t b)
{
	return a != UINT64_MAX ? a : b;
}

/* What could not be given back at once: file pages that nobody used lately do not count. */
static uint64_t usage_memory(int v1, int v2)
{
	uint64_t all = usage_first(cube_local_group_number(v1, "memory.usage_in_bytes", ""),
				   cube_local_group_number(v2, "memory.current", ""));
	uint64_t idle = usage_first(cube_local_group_number(v1, "memory.stat", "total_inactive_file"),
				    cube_local_group_number(v2, "memory.stat", "inactive_file"));

	return all == UINT64_MAX || idle == UINT64_MAX || idle > all ? all : all - idle;
}

void cube_local_group_usage(const struct cube_local_group *g, struct cube_usage *ret)
{
	int memory = g->v1[CUBE_CTL_MEMORY];
	uint64_t us = cube_local_group_number(g->v2, "cpu.stat", "usage_usec");

	*ret = (struct cube_usage){.disk = UINT64_MAX};
	ret->pids = usage_first(cube_local_group_number(g->v1[CUBE_CTL_PIDS], "pids.current", ""),
				cube_local_group_number(g->v2, "pids.current", ""));
	ret->cpu_ns = us != UINT64_MAX ? us * 1000
				       : cube_local_group_number(g->v1[CUBE_CTL_CPU], "cpuacct.usage", "");
	ret->memory = usage_memory(memory, g->v2);
	ret->oom_kills = usage_first(cube_local_group_number(memory, "memory.oom_control", "oom_kill"),
				     cube_local_group_number(g->v2, "memory.events", "oom_kill"));
}
