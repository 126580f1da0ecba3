/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a helper program.
 *
 * Before the exec the child makes system calls and nothing else (child.h), since another thread may have held
 * any lock. All memory is ready before. Without a setup function the child is made by vfork, which costs the
 * same however large the daemon is; with one by the call behind fork, because such functions enter namespaces
 * and change ids: unshare(CLONE_NEWUSER) is refused to who shares its memory, and a change of ids would make
 * the daemon itself undumpable.
 *
 * A failure before the exec comes back over a pipe that the exec closes. */
#include "backends/base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/child.h"
#include "backends/base/macros.h"
#include "backends/base/spawn_priv.h"

#define SPAWN_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum spawn_stage { STAGE_SETUP, STAGE_FDS, STAGE_CWD, STAGE_EXEC };

static const char *const stage_names[] = {
	[STAGE_SETUP] = "its setup",
	[STAGE_FDS] = "its descriptors",
	[STAGE_CWD] = "its directory",
	[STAGE_EXEC] = "exec",
};

struct spawn_report {
	enum spawn_stage stage;
	int error; /* negative */
};

/* What the child needs, made before it exists. */
struct spawn_child {
	const struct cube_spawn *s;
	const char *program;
	char *const *argv, *const *env;
	int *fds; /* what becomes 0, 1, ... n-1; the child's to change */
	unsigned nfds;
	int report; /* close-on-exec pipe */
};

static const char *spawn_path(void)
{
	const char *path = getenv("PATH"); /* NOLINT(concurrency-mt-unsafe): nobody here calls setenv */

	return path != NULL && *path != '\0' ? path : SPAWN_PATH;
}

/* ---- in the child ---- */

static _Noreturn void child_fail(const struct spawn_child *c, enum spawn_stage stage, int error)
{
	const struct spawn_report report = {.stage = stage, .error = error};
	bool told = cube_child_write(c->report, &report, sizeof(report));

	cube_child_exit(told ? 127 : 126); /* the parent is gone: nobody reads the code either */
}

/* The kernel's struct sigaction differs from one machine to the other, and is all zero for the default. */
static void child_reset_signals(void)
{
	static const uint64_t standard[8];

	for (int sig = 1; sig < NSIG; sig++)
		(void)syscall(SYS_rt_sigaction, sig, standard, NULL,
			      sizeof(standard[0])); /* refused for KILL, STOP */
}

static int child_dup(int fd, unsigned from)
{
	return (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, (unsigned long)from);
}

/* For kernels without CLOSE_RANGE_CLOEXEC: one by one, to a limit that a daemon of ours stays below. */
static void child_cloexec_slowly(int from)
{
	struct rlimit limit = {.rlim_cur = 65536};

	(void)syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
	for (int fd = from; fd < 65536 && (rlim_t)fd < limit.rlim_cur; fd++)
		(void)syscall(SYS_fcntl, fd, F_SETFD, (unsigned long)FD_CLOEXEC);
}

/* First all out of the way of the numbers they shall get, then each into its place, where it stays open. Whatever
 * else is open closes with the exec. */
static int child_place_fds(struct spawn_child *c)
{
	for (unsigned i = 0; i < c->nfds; i++) {
		c->fds[i] = child_dup(c->fds[i], c->nfds);
		if (c->fds[i] < 0)
			return -errno;
	}
	if (c->report < (int)c->nfds) {
		c->report = child_dup(c->report, c->nfds);
		if (c->report < 0)
			return -errno;
	}
	for (unsigned i = 0; i < c->nfds; i++) {
		if (syscall(SYS_dup3, c->fds[i], i, 0) < 0)
			return -errno;
	}
	if (syscall(SYS_close_range, c->nfds, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		child_cloexec_slowly((int)c->nfds);
	return 0;
}

/* A process that ever changed its file system ids is not dumpable, and neither is its child: in a user namespace
 * it could not write to its own files in /proc. */
static int child_setup(const struct spawn_child *c)
{
	if (c->s->setup == NULL)
		return 0;
	(void)syscall(SYS_prctl, PR_SET_DUMPABLE, 1UL, 0UL, 0UL, 0UL);
	return c->s->setup(c->s->setup_ctx);
}

static _Noreturn void child_main(struct spawn_child *c)
{
	static const uint64_t none;
	long r;

	child_reset_signals();
	(void)syscall(SYS_setsid); /* cannot fail: a new process leads no group */
	r = child_setup(c);
	if (r < 0)
		child_fail(c, STAGE_SETUP, (int)r);
	r = c->s->cwd < 0 ? syscall(SYS_chdir, "/") : syscall(SYS_fchdir, c->s->cwd);
	if (r < 0)
		child_fail(c, STAGE_CWD, -errno);
	r = child_place_fds(c);
	if (r < 0)
		child_fail(c, STAGE_FDS, (int)r);
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
	(void)syscall(SYS_execve, c->program, c->argv, c->env);
	child_fail(c, STAGE_EXEC, -errno);
}

/* ---- in the parent ---- */

/* The first such program in PATH. NULL: none, or no memory (*ret_error). */
static char *spawn_search(const char *name, int *ret_error)
{
	*ret_error = -ENOENT;
	for (const char *path = spawn_path(); *path != '\0';) {
		size_t len = strcspn(path, ":");
		cube_auto_str found = cube_asprintf("%.*s/%s", (int)len, path, name);

		if (found == NULL) {
			*ret_error = -ENOMEM;
			return NULL;
		}
		if (*path == '/' &&
		    access(found, X_OK) == 0) /* a relative part would depend on where we are */
			return cube_steal(found);
		path += len + (path[len] == ':');
	}
	return NULL;
}

/* The program's path: argv[0] where it has a '/', else one of PATH. NULL with the reason in *ret_error. */
static char *spawn_find(const char *name, int *ret_error, struct cube_err *err)
{
	bool search = strchr(name, '/') == NULL;
	int error = -ENOMEM;
	char *found = search ? spawn_search(name, &error) : cube_strdup(name);

	if (found == NULL)
		*ret_error = cube_fail(err, error, "%s: %s", name,
				       error == -ENOENT ? "no such program in PATH" : "out of memory");
	return found;
}

/* exec's declaration lacks a const that it keeps. */
static char *const *spawn_words(const char *const *words)
{
	char *const *same;

	memcpy(&same, &words, sizeof(same));
	return same;
}

/* Makes the child. Signals are blocked until it has reset its handlers: with vfork it would run ours in our
 * memory. */
static pid_t spawn_fork(struct spawn_child *c)
{
	sigset_t all, before;
	pid_t pid;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	if (c->s->group != NULL)
		pid = cube_child_in_group(*c->s->group);
	else
		pid = c->s->setup != NULL ? cube_child(0) : vfork();
	if (pid == 0)
		child_main(c);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

void cube_spawn_reap(pid_t pid, int *ret_status)
{
	while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
		;
}

/* Waits for the exec. On a failure before it the child is reaped. */
static int spawn_await_exec(int report_fd, pid_t pid, const char *name, struct cube_err *err)
{
	struct spawn_report report;
	ssize_t n;
	int status = 0;

	do
		n = read(report_fd, &report, sizeof(report));
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return 0;
	cube_spawn_reap(pid, &status);
	if (n != (ssize_t)sizeof(report))
		return cube_fail(err, -EIO, "%s: cannot be started", name);
	if (report.stage == STAGE_EXEC && report.error == -ENOENT)
		return cube_fail(err, -ENOENT, "%s: no such program, or its interpreter is missing", name);
	return cube_fail(err, report.error, "%s: %s: %s", name, stage_names[report.stage],
			 cube_errno_text(report.error));
}

static int spawn_child(const struct cube_spawn *s, int *fds, unsigned nfds, pid_t *ret_pid,
		       struct cube_err *err)
{
	int report[2], r = 0;
	cube_auto_str program = spawn_find(s->argv[0], &r, err);
	cube_auto_str path_env = NULL;
	const char *minimal[] = {NULL, "LC_ALL=C", NULL};
	struct spawn_child c = {.s = s, .argv = spawn_words(s->argv), .fds = fds, .nfds = nfds};
	pid_t pid;

	if (program == NULL)
		return r;
	path_env = cube_asprintf("PATH=%s", spawn_path());
	if (path_env == NULL)
		return cube_fail(err, -ENOMEM, "%s: out of memory", s->argv[0]);
	minimal[0] = path_env;
	c.env = spawn_words(s->env != NULL ? s->env : minimal);
	c.program = program;
	if (pipe2(report, O_CLOEXEC) < 0)
		return cube_fail_errno(err, "%s", s->argv[0]);
	c.report = report[1];
	pid = spawn_fork(&c);
	r = pid < 0 ? cube_fail_errno(err, "%s", s->argv[0]) : 0;
	(void)close(report[1]);
	if (r == 0)
		r = spawn_await_exec(report[0], pid, s->argv[0], err);
	(void)close(report[0]);
	if (r == 0)
		*ret_pid = pid;
	return r;
}

int cube_spawn_start_on(const struct cube_spawn *s, int text_fd, pid_t *ret_pid, struct cube_err *err)
{
	unsigned nfds = 3 + s->nfds;
	cube_auto(cube_free_auto) int *fds = cube_calloc(nfds, sizeof(*fds));
	cube_auto_fd null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fds == NULL)
		return cube_fail(err, -ENOMEM, "%s: out of memory", s->argv[0]);
	if (null_fd < 0)
		return cube_fail_errno(err, "/dev/null");
	if (text_fd < 0)
		text_fd = null_fd;
	fds[0] = s->in >= 0 ? s->in : null_fd;
	fds[1] = s->out >= 0 ? s->out : text_fd;
	fds[2] = text_fd;
	for (unsigned i = 0; i < s->nfds; i++)
		fds[3 + i] = s->fds[i];
	return spawn_child(s, fds, nfds, ret_pid, err);
}

int cube_spawn_start(const struct cube_spawn *s, pid_t *ret_pid, struct cube_err *err)
{
	return cube_spawn_start_on(s, -1, ret_pid, err);
}
