/* SPDX-License-Identifier: Apache-2.0 */
/* Usage and removal of a sandbox's control groups. */
#include "backends/local/cgroup.h"

#include "backends/base/clock.h"
#include "backends/base/macros.h"
#include "backends/local/cgroup_priv.h"
#include "backends/ns/oom.h"

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

/* Of the v1 hierarchy of a controller, else of the v2 tree. */
static uint64_t usage_of(const struct cube_local_cgroups *c, const char *id, enum cube_local_ctl what,
			 const char *v1_file, const char *v1_key, const char *v2_file, const char *v2_key)
{
	return usage_first(cube_local_group_number(c->v1[what], id, v1_file, v1_key),
			   cube_local_group_number(c->v2, id, v2_file, v2_key));
}

/* What could be given back at once does not count: file pages that nobody used lately. */
static uint64_t usage_memory(const struct cube_local_cgroups *c, const char *id)
{
	uint64_t all = usage_of(c, id, CUBE_CTL_MEMORY, "memory.usage_in_bytes", "", "memory.current", "");
	uint64_t idle = usage_of(c, id, CUBE_CTL_MEMORY, "memory.stat", "total_inactive_file", "memory.stat",
				 "inactive_file");

	return all == UINT64_MAX || idle == UINT64_MAX || idle > all ? all : all - idle;
}

int cube_local_group_oom_file(const struct cube_local_cgroups *c, const char *id)
{
	int fd = cube_local_group_file(c->v1[CUBE_CTL_MEMORY], id, "memory.oom_control", O_RDONLY);

	if (fd < 0)
		fd = cube_local_group_file(c->v2, id, "memory.events", O_RDONLY);
	return fd < 0 ? -1 : fd;
}

void cube_local_group_usage(const struct cube_local_cgroups *c, const char *id, struct cube_usage *ret)
{
	cube_auto_fd oom = cube_local_group_oom_file(c, id);
	uint64_t us = cube_local_group_number(c->v2, id, "cpu.stat", "usage_usec");

	*ret = (struct cube_usage){.disk = UINT64_MAX, .net_in = UINT64_MAX, .net_out = UINT64_MAX};
	ret->pids = usage_of(c, id, CUBE_CTL_PIDS, "pids.current", "", "pids.current", "");
	ret->cpu_ns = us != UINT64_MAX
			      ? us * 1000
			      : cube_local_group_number(c->v1[CUBE_CTL_CPUACCT], id, "cpuacct.usage", "");
	ret->memory = usage_memory(c, id);
	ret->oom_kills = cube_ns_oom_read(oom);
}
