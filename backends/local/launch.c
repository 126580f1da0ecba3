/* SPDX-License-Identifier: Apache-2.0 */
/* From two mounts and a group to a running process 1, by crun.
 *
 * What crun reads and writes (configuration, its own state) is on a tmpfs that exists for the launch alone,
 * and the sandbox's mounts are attached beside it, all below one directory (the stage) of a mount namespace
 * that the forked child makes for itself. So nothing of a launch that failed is left anywhere, no path of
 * this machine gets into the sandbox's mountinfo, and the daemon's own namespace does not grow.
 *
 * The child is in the sandbox's control groups before crun is executed, and crun does nothing with groups.
 */
#include "backends/local/local_priv.h"

#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "backends/base/spawn.h"
#include "backends/local/bundle.h"
#include "backends/base/child.h"
#include "backends/local/enclose.h"
#include "backends/local/filter.h"
#include "backends/agent/listener.h"
#include "backends/local/mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAUNCH_TIMEOUT_MS 60000
#define LAUNCH_MOUNTS     (3 + CUBE_MASK_SHOWN + CUBE_LOCAL_MOUNTS)
#define LAUNCH_PID        "pid"
#define LAUNCH_UNIFIED    "/sys/fs/cgroup/unified"

struct launch {
	struct cube_local *b;
	struct local_cube *c;
	const char *stage_path;
	pid_t parent;
	int stage;    /* tmpfs */
	int cover;    /* tmpfs for the unified hierarchy, or -1 */
	int listener; /* becomes 3 */
	int groups;   /* becomes 4; -1 */
	struct cube_local_doors doors;
	unsigned n_mounts;
	struct {
		int fd;
		char path[64];
	} mounts[LAUNCH_MOUNTS];
	char agent[64];
	struct cube_local_bundle bundle;
	struct cube_local_enclose enclose;     /* nproc 0: the limit is the group's */
	char binds[CUBE_MASK_SHOWN][2][32];    /* names inside, names on the stage */
	char mounts_at[CUBE_LOCAL_MOUNTS][32]; /* of volumes and binds, on the stage */
};

/* ---- in the child: system calls only ---- */

/* A daemon that is killed takes along what it has begun: this child, which nobody could tell from the daemon,
 * and crun, which then lets its own child end. */
static int setup_die_together(const struct launch *l)
{
	if (syscall(SYS_prctl, PR_SET_PDEATHSIG, (long)SIGKILL, 0L, 0L, 0L) < 0)
		return -errno;
	return getppid() == l->parent ? 0 : -ESRCH;
}

static int setup_mounts(const struct launch *l)
{
	int rc = cube_local_mnt_attach(l->stage, l->stage_path);

	for (unsigned i = 0; rc == 0 && i < l->n_mounts; i++)
		rc = cube_local_mnt_attach(l->mounts[i].fd, l->mounts[i].path);
	return rc;
}

/* crun refuses v1 and v2 side by side. Covered and not unmounted: an ordinary user may not, and the kernel
 * waits for all processors before an unmount. */
static int setup_hide_unified(const struct launch *l)
{
	return l->cover < 0 ? 0 : cube_local_mnt_attach(l->cover, LAUNCH_UNIFIED);
}

static int launch_setup(void *ctx)
{
	const struct launch *l = ctx;
	int rc = setup_die_together(l);

	if (rc == 0)
		rc = cube_local_doors_enter(&l->doors);
	if (rc == 0 && unshare(CLONE_NEWNS) < 0)
		rc = -errno;
	if (rc == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		rc = -errno;
	if (rc == 0)
		rc = setup_hide_unified(l);
	if (rc == 0)
		rc = setup_mounts(l);
	if (rc == 0 && l->enclose.nproc) {
		rc = cube_local_enclose_enter(&l->enclose);
		if (rc == 0)
			rc = setup_die_together(l); /* who changes his user namespace is asked anew */
	}
	return rc;
}

/* ---- preparation ---- */

/* A place on the stage where the detached mount @fd (taken over, also on failure) will be attached. */
static int launch_place(struct launch *l, int fd, const char *name, char *ret_path, size_t size)
{
	unsigned i = l->n_mounts;

	if (fd < 0)
		return fd;
	l->mounts[i].fd = fd;
	l->n_mounts++;
	(void)snprintf(l->mounts[i].path, sizeof(l->mounts[i].path), "%s/%s", l->stage_path, name);
	(void)snprintf(ret_path, size, "%s/%s", l->stage_path, name);
	return mkdirat(l->stage, name, 0755) < 0 ? -errno : 0;
}

static void launch_add_bind(struct launch *l, const char *source, const char *target, bool read_only)
{
	unsigned i = l->bundle.n_binds++;

	l->bundle.binds[i].source = source;
	l->bundle.binds[i].target = target;
	l->bundle.binds[i].read_only = read_only;
}

/* An ordinary user's template `host`: this machine's /usr and /opt as they are, read only. */
static int launch_bind_host(struct launch *l)
{
	struct cube_local_shown shown;
	int rc = 0;

	cube_local_template_binds(l->b, l->c->rec.template, &shown);
	for (unsigned i = 0; rc == 0 && i < shown.n; i++) {
		char name[16];

		(void)snprintf(l->binds[i][0], sizeof(l->binds[i][0]), "/%s", shown.name[i]);
		(void)snprintf(name, sizeof(name), "bind%u", i);
		rc = launch_place(l, cube_local_mnt_clone_read_only(l->binds[i][0]), name, l->binds[i][1],
				  sizeof(l->binds[i][1]));
		launch_add_bind(l, l->binds[i][1], l->binds[i][0], true);
	}
	return rc;
}

static int launch_extra(struct launch *l, struct cube_err *err)
{
	const struct cube_local_record *r = &l->c->rec;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < r->n_mounts; i++) {
		char name[16];
		int fd;

		if (strcmp(r->mounts[i].path, "/workspace") == 0)
			continue;
		rc = cube_local_mounts_clone(l->b, l->c, i, &fd, err);
		if (rc < 0)
			return rc;
		(void)snprintf(name, sizeof(name), "extra%u", i);
		rc = launch_place(l, fd, name, l->mounts_at[i], sizeof(l->mounts_at[i]));
		launch_add_bind(l, l->mounts_at[i], r->mounts[i].path, r->mounts[i].read_only);
	}
	return rc;
}

static int launch_mounts(struct launch *l, char paths[3][48])
{
	const struct cube_local_mount *volume = cube_local_mounts_workspace(l->c);
	int rc = launch_place(l, cube_local_mnt_clone(l->c->root, ""), "root", paths[0], sizeof(paths[0]));

	if (rc == 0)
		rc = launch_place(l, cube_local_mnt_clone(l->c->workspace, ""), "workspace", paths[1],
				  sizeof(paths[1]));
	if (rc == 0)
		rc = launch_place(l, cube_local_mnt_clone(l->b->host->agent, ""), "agent", paths[2],
				  sizeof(paths[2]));
	if (rc < 0)
		return rc;
	launch_add_bind(l, paths[1], "/workspace", volume && volume->read_only);
	return launch_bind_host(l);
}

static int launch_write_config(struct launch *l, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(CUBE_BUNDLE_MAX);
	cube_auto_fd fd = openat(l->stage, "config.json", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int rc = fd < 0 ? cube_fail_errno(err, "cannot write the configuration")
			: cube_local_bundle_write(&l->bundle, &text, err);

	if (rc == 0)
		rc = cube_file_write_all(fd, text.data, text.len);
	cube_buf_done(&text);
	return rc;
}

static int launch_open(struct launch *l, struct cube_err *err)
{
	int rc = cube_agent_listener_make(l->c->dir, &l->listener, err);

	if (rc < 0)
		return rc;
	l->stage = cube_local_mnt_tmpfs("4m", err);
	if (l->stage < 0)
		return l->stage;
	if (l->b->host->hybrid) {
		l->cover = cube_local_mnt_tmpfs("4k", err);
		if (l->cover < 0)
			return l->cover;
	}
	rc = cube_local_group_doors(&l->b->cgroups, l->c->id, &l->doors, err);
	if (rc < 0)
		return rc;
	l->groups = cube_local_group_delegate(&l->b->cgroups, l->c->id);
	if (l->b->cgroups.v2 >= 0 && l->groups < 0)
		return cube_fail(err, l->groups, "cannot hand out the control group: %s",
				 cube_errno_text(l->groups));
	return 0;
}

static void launch_close(struct launch *l)
{
	int *const fds[] = {&l->stage, &l->cover, &l->listener, &l->groups};

	for (size_t i = 0; i < CUBE_COUNT(fds); i++)
		if (*fds[i] >= 0)
			close(cube_steal_fd(fds[i]));
	cube_local_doors_close(&l->doors);
	for (unsigned i = 0; i < l->n_mounts; i++)
		close(l->mounts[i].fd);
}

/* ---- crun ---- */

/* crun hands its own 1 and 2 down to process 1, so its messages go to a file instead of a pipe. */
static int launch_failed(const struct launch *l, int status, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(65536);
	char why[300];
	int rc;

	(void)cube_file_read(l->stage, "log", &text);
	cube_spawn_describe(status, &text, why, sizeof(why));
	rc = strstr(cube_buf_str(&text), "No space left") ? -ENOSPC : -EIO;
	cube_buf_done(&text);
	return cube_fail(err, rc, "crun cannot start sandbox %s: %s", l->c->id, why);
}

static int launch_run(struct launch *l, struct cube_cancel *cancel, struct cube_err *err)
{
	char state[64], log[64], pid_file[64];
	const int fds[] = {l->listener, l->groups};
	const unsigned kept = l->groups >= 0 ? 2 : 1; /* what process 1 gets */
	const char *argv[] = {l->b->crun_exec,
			      "--cgroup-manager=disabled",
			      "--root",
			      state,
			      "--log",
			      log,
			      "run",
			      "--detach",
			      "--no-new-keyring",
			      "--preserve-fds",
			      kept == 2 ? "2" : "1",
			      "--bundle",
			      l->stage_path,
			      "--pid-file",
			      pid_file,
			      l->c->id,
			      NULL};
	const struct cube_spawn s = {
		.argv = argv,
		.cwd = -1,
		.fds = fds,
		.nfds = kept,
		.in = -1,
		.out = -1,
		.setup = launch_setup,
		.setup_ctx = l,
		.group = l->doors.v2 >= 0 ? &l->doors.v2 : NULL,
		.timeout_ms = LAUNCH_TIMEOUT_MS,
	};
	int status, rc;

	(void)snprintf(state, sizeof(state), "%s/" CUBE_FILTER_CRUN_STATE, l->stage_path);
	(void)snprintf(log, sizeof(log), "%s/log", l->stage_path);
	(void)snprintf(pid_file, sizeof(pid_file), "%s/" LAUNCH_PID, l->stage_path);
	rc = cube_spawn_run(&s, cancel, &status, err);
	return rc == 0 && status != 0 ? launch_failed(l, status, err) : rc;
}

/* No user namespace can be made inside: in one, a process would have all capabilities over what it makes
 * there, and the kernel's code behind them is where most holes are. The limit is the sandbox's namespace's
 * own. */
static _Noreturn void seal_child(int ns)
{
	bool done = cube_child_enter(ns, CLONE_NEWUSER) &&
		    cube_child_put("/proc/sys/user/max_user_namespaces", "0", 1);

	cube_child_exit(done ? 0 : 1);
}

/* By vfork, which copies nothing: the child changes what is its own alone. */
static void launch_seal(pid_t init)
{
	cube_auto_fd ns = -1;
	char path[64];
	int status = 1;
	pid_t pid;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)init);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	pid = ns < 0 ? -1 : vfork();
	if (pid == 0)
		seal_child(ns);
	if (pid > 0)
		(void)waitpid(pid, &status, 0);
	if (status != 0)
		cube_log(CUBE_LOG_WARNING, "local", "process %d: user namespaces cannot be forbidden",
			 (int)init);
}

static pid_t launch_read_pid(const struct launch *l)
{
	struct cube_buf text = CUBE_BUF(64);
	long pid = 0;

	if (cube_file_read(l->stage, LAUNCH_PID, &text) == 0)
		pid = strtol(cube_buf_str(&text), NULL, 10);
	cube_buf_done(&text);
	return (pid_t)pid;
}

static int launch_note(struct launch *l, struct cube_err *err)
{
	struct local_cube *c = l->c;
	pid_t pid = launch_read_pid(l);
	uint64_t start = pid > 0 ? cube_local_proc_start(pid) : 0;

	if (start == 0)
		return cube_fail(err, -EIO, "sandbox %s ended at once", c->id);
	launch_seal(pid);
	cube_local_filter_keep(&l->b->filter, l->stage, c->id);
	c->rec.init = (struct cube_local_proc){.pid = pid, .start = start};
	cube_local_binds_started(c);
	c->rec.stage = CUBE_STAGE_RUNNING;
	c->rec.reason[0] = 0;
	return cube_local_cube_save(c, err);
}

static int launch_prepare(struct launch *l, char paths[3][48], struct cube_err *err)
{
	struct cube_err why = {0};
	int rc = launch_open(l, err);

	if (rc < 0)
		return rc;
	rc = launch_mounts(l, paths);
	if (rc == 0)
		rc = launch_extra(l, &why);
	if (rc < 0)
		return cube_fail(err, rc, "cannot prepare the mounts of %s: %s", l->c->id,
				 why.code ? why.text : cube_errno_text(rc));
	l->bundle.hostname = l->c->rec.hostname;
	l->bundle.ids = &l->b->host->ids;
	l->bundle.nproc = l->enclose.nproc;
	l->bundle.filter = cube_local_filter_text(&l->b->filter);
	l->bundle.cgroup_fd = l->groups >= 0;
	l->bundle.root = paths[0];
	(void)snprintf(l->agent, sizeof(l->agent), "%s/" CUBE_LOCAL_AGENT, paths[2]);
	l->bundle.agent = l->agent;
	return launch_write_config(l, err);
}

/* The intention, unless it stands there already: the record of a new sandbox begins with it. */
static int launch_announce(struct local_cube *c, struct cube_err *err)
{
	char boot[40];

	if (c->rec.stage == CUBE_STAGE_STARTING && strcmp(cube_local_boot_id(boot), c->rec.boot) == 0)
		return 0;
	c->rec.stage = CUBE_STAGE_STARTING;
	(void)cube_local_boot_id(c->rec.boot);
	return cube_local_cube_save(c, err);
}

int cube_local_launch(struct cube_local *b, struct local_cube *c, struct cube_cancel *cancel,
		      struct cube_err *err)
{
	struct launch l = {.b = b,
			   .c = c,
			   .stage_path = b->stage,
			   .parent = getpid(),
			   .stage = -1,
			   .cover = -1,
			   .listener = -1,
			   .groups = -1,
			   .doors = CUBE_LOCAL_DOORS_NONE};
	char paths[3][48];
	int rc;

	if (!cube_local_cgroups_has(&b->cgroups, CUBE_CTL_PIDS))
		cube_local_enclose_init(&l.enclose, &b->host->ids, b->host->trusted, c->rec.limits.pids);
	rc = launch_announce(c, err);
	if (rc == 0)
		rc = launch_prepare(&l, paths, err);
	if (rc == 0)
		rc = launch_run(&l, cancel, err);
	if (rc == 0)
		rc = launch_note(&l, err);
	launch_close(&l);
	if (rc < 0)
		(void)cube_local_cube_end(b, c, NULL);
	return rc;
}
