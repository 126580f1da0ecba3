/* SPDX-License-Identifier: Apache-2.0 */
/* A limit on processes without control groups. */
#include "backends/local/enclose.h"

#include "backends/base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

void cube_local_enclose_init(struct cube_local_enclose *e, const struct cube_ns_ids *ids, bool trusted,
			     uint32_t nproc)
{
	e->nproc = nproc;
	if (trusted)
		(void)snprintf(e->map, sizeof(e->map), "0 0 %u", UINT32_MAX);
	else if (ids->count > 1) /* a line each, since they lie in different ranges outside */
		(void)snprintf(e->map, sizeof(e->map), "0 0 1\n1 1 %u", ids->count);
	else
		(void)snprintf(e->map, sizeof(e->map), "0 0 1");
}

/* Who enters has no rights outside any more, so one who stayed outside writes its maps. snprintf does not
 * allocate for this and takes no lock. */
static _Noreturn void enclose_map(const struct cube_local_enclose *e, int go, pid_t who)
{
	size_t len = strlen(e->map);
	char path[64];
	bool done;

	cube_child_wait(go);
	(void)snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)who);
	if (!cube_child_put(path, e->map, len)) { /* one who has no group ids may map his own all the same */
		(void)snprintf(path, sizeof(path), "/proc/%d/setgroups", (int)who);
		(void)cube_child_put(path, "deny", 4);
		(void)snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)who);
		(void)cube_child_put(path, e->map, len);
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)who);
	done = cube_child_put(path, e->map, len);
	cube_child_exit(done ? 0 : 1);
}

int cube_local_enclose_enter(const struct cube_local_enclose *e)
{
	const struct rlimit64 limit = {.rlim_cur = e->nproc, .rlim_max = e->nproc};
	pid_t self = getpid(), helper;
	int go[2], status = 0, rc = 0;

	if (syscall(SYS_pipe2, go, O_CLOEXEC) < 0)
		return -errno;
	helper = cube_child(0);
	if (helper == 0) {
		cube_child_close(go[1]);
		enclose_map(e, go[0], self);
	}
	if (helper < 0 || unshare(CLONE_NEWUSER) < 0 || !cube_child_write(go[1], "", 1))
		rc = -errno;
	cube_child_close(go[0]);
	cube_child_close(go[1]);
	if (helper > 0)
		(void)syscall(SYS_wait4, helper, &status, 0, NULL);
	if (rc == 0 && status != 0)
		rc = -EPERM;
	return rc == 0 && syscall(SYS_prlimit64, 0, RLIMIT_NPROC, &limit, NULL) < 0 ? -errno : rc;
}
