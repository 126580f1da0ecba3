/* SPDX-License-Identifier: Apache-2.0 */
/* Groups by cgroup v2. No controller is needed: members are counted and killed by the core.
 *
 * Below the directory that was given: jN or sN for each group, sN.left for what was set aside. Processes are
 * born into their group; only what a session's command leaves behind is ever moved, after its end. */
#include "backends/agent/init/group_priv.h"

#include "backends/base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CGROUP_TRIES  64 /* names that an earlier agent may have left */
#define SETTLE_PASSES 64

static int cgroup_top = -1;
static unsigned cgroup_next;

static int cgroup_mkdir(const char *name)
{
	int fd;

	if (mkdirat(cgroup_top, name, 0755) < 0)
		return -errno;
	fd = openat(cgroup_top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		fd = -errno;
		(void)unlinkat(cgroup_top, name, AT_REMOVEDIR);
	}
	return fd;
}

static int cgroup_open(struct init_group *g)
{
	for (int i = 0; i < CGROUP_TRIES; i++) {
		(void)snprintf(g->name, sizeof(g->name), "%c%u", g->session != 0 ? 's' : 'j', ++cgroup_next);
		g->dir = cgroup_mkdir(g->name);
		if (g->dir != -EEXIST)
			break;
		(void)unlinkat(cgroup_top, g->name, AT_REMOVEDIR);
	}
	return g->dir < 0 ? g->dir : 0;
}

static int cgroup_fork(struct init_group *g)
{
	pid_t pid = cube_child_in_group(g->dir);

	if (pid < 0)
		return -errno;
	if (pid == 0)
		return 0;
	g->main = pid;
	return 1;
}

/* A whole small file of a group, read at once or in parts: calls @line for each number in it. */
static int cgroup_pids(int dir, struct init_procs *out)
{
	char text[4096];
	size_t kept = 0;
	ssize_t n = 0;
	int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : 0;

	while (r == 0 && (n = read(fd, text + kept, sizeof(text) - kept - 1)) > 0) {
		char *at = text;
		char *end;

		text[kept + (size_t)n] = '\0';
		while (r == 0 && (end = strchr(at, '\n')) != NULL) {
			struct init_proc one = {.pid = (pid_t)strtol(at, NULL, 10), .state = 'R'};

			at = end + 1;
			if (one.pid > 0) /* 0: in another pid namespace, beyond our reach */
				r = init_procs_add(out, &one);
		}
		kept = strlen(at);
		memmove(text, at, kept + 1);
	}
	if (r == 0 && n < 0)
		r = -errno;
	if (fd >= 0)
		(void)close(fd);
	return r;
}

static int cgroup_list(struct init_group *g, struct init_procs *out)
{
	out->len = 0;
	return cgroup_pids(g->dir, out);
}

static bool cgroup_write(int dir, const char *file, const char *text)
{
	int fd = openat(dir, file, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) > 0;

	if (fd >= 0)
		(void)close(fd);
	return ok;
}

/* Before Linux 5.14 there is no cgroup.kill: one after the other, in passes. */
static void cgroup_kill_dir(int dir)
{
	struct init_procs members = {0};

	if (cgroup_write(dir, "cgroup.kill", "1"))
		return;
	for (int pass = 0; pass < SETTLE_PASSES; pass++) {
		members.len = 0;
		if (cgroup_pids(dir, &members) < 0 || members.len == 0)
			break;
		for (size_t i = 0; i < members.len; i++)
			(void)kill(members.all[i].pid, SIGKILL);
	}
	init_procs_done(&members);
}

static void cgroup_kill(struct init_group *g)
{
	cgroup_kill_dir(g->dir);
}

static void cgroup_kill_left(struct init_group *g)
{
	if (g->left_dir >= 0)
		cgroup_kill_dir(g->left_dir);
}

static int cgroup_left(struct init_group *g)
{
	char name[sizeof(g->name) + 8];

	if (g->left_dir < 0) {
		(void)snprintf(name, sizeof(name), "%s.left", g->name);
		g->left_dir = cgroup_mkdir(name);
	}
	return g->left_dir;
}

/* One pass: moves all but the main process. False when there was nothing to move. */
static bool cgroup_settle_pass(struct init_group *g, struct init_procs *members)
{
	bool moved = false;
	char pid[16];

	if (cgroup_list(g, members) < 0)
		return false;
	for (size_t i = 0; i < members->len; i++) {
		if (members->all[i].pid == g->main)
			continue;
		if (cgroup_left(g) < 0)
			return false;
		(void)snprintf(pid, sizeof(pid), "%d", (int)members->all[i].pid);
		(void)cgroup_write(g->left_dir, "cgroup.procs", pid);
		moved = true;
	}
	return moved;
}

/* Something that forks all the time would outrun the passes: for the later ones the group stands still. */
static void cgroup_settle(struct init_group *g)
{
	struct init_procs members = {0};
	int pass = 0;

	while (cgroup_settle_pass(g, &members) && ++pass < SETTLE_PASSES) {
		if (pass == SETTLE_PASSES / 2)
			(void)cgroup_write(g->dir, "cgroup.freeze", "1");
	}
	if (pass >= SETTLE_PASSES / 2)
		(void)cgroup_write(g->dir, "cgroup.freeze", "0");
	init_procs_done(&members);
}

static bool cgroup_remove(int *dir, const char *name)
{
	if (*dir < 0)
		return true;
	if (unlinkat(cgroup_top, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return false;
	(void)close(*dir);
	*dir = -1;
	return true;
}

static bool cgroup_close(struct init_group *g)
{
	char name[sizeof(g->name) + 8];
	bool left;

	(void)snprintf(name, sizeof(name), "%s.left", g->name);
	left = cgroup_remove(&g->left_dir, name);
	return cgroup_remove(&g->dir, g->name) && left;
}

/* Everything that is needed later, tried once with a child that ends at once. */
bool init_group_cgroup_probe(int fd)
{
	struct init_group g = {.dir = -1, .left_dir = -1, .session = 1};
	bool ok = false;
	pid_t pid;
	int status;

	cgroup_top = fd;
	if (cgroup_open(&g) < 0)
		return false;
	pid = cube_child_in_group(g.dir);
	if (pid == 0)
		_exit(0);
	if (pid > 0) {
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		ok = cgroup_left(&g) >= 0 && faccessat(g.dir, "cgroup.procs", R_OK | W_OK, 0) == 0;
	}
	(void)cgroup_close(&g);
	return ok;
}

const struct init_group_ops init_group_cgroup = {
	.open = cgroup_open,
	.fork = cgroup_fork,
	.list = cgroup_list,
	.kill = cgroup_kill,
	.settle = cgroup_settle,
	.kill_left = cgroup_kill_left,
	.close = cgroup_close,
};
