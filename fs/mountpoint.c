/* SPDX-License-Identifier: Apache-2.0 */
/* The mount point before anything is mounted: made, looked at, freed of what a crash left. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"
#include "ctl/cli/mounts.h"
#include "fs/mount.h"

#define POINT_LOOK_MS 3000
#define POINT_STACKED 16 /* dead mounts on top of each other */

/* What a look at it found. */
struct point_look {
	int code; /* negative errno */
	bool directory, empty;
	char path[PATH_MAX];
};

static bool point_is_empty(const char *path)
{
	DIR *d = opendir(path);
	unsigned n = 0;

	if (d == NULL)
		return true;       /* whoever mounts finds out what is wrong */
	while (readdir(d) != NULL) /* NOLINT(concurrency-mt-unsafe): a stream of our own */
		n++;
	(void)closedir(d);
	return n <= 2;
}

static void point_look_child(const char *path, int out)
{
	struct point_look l = {0};
	struct stat st;

	if (stat(path, &st) < 0 || realpath(path, l.path) == NULL) {
		l.code = -errno;
	} else {
		l.directory = S_ISDIR(st.st_mode);
		l.empty = l.directory && point_is_empty(path);
	}
	(void)!write(out, &l, sizeof(l)); /* shorter than a pipe holds */
	_exit(0);
}

/* In a child, since a mount whose daemon hangs keeps whoever looks at it. -ETIMEDOUT then. */
static int point_look(const char *path, struct point_look *ret, struct cube_err *err)
{
	struct pollfd p = {.events = POLLIN};
	int pipe_fd[2], code = -ETIMEDOUT;
	pid_t pid;

	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		return cube_fail_errno(err, "pipe");
	pid = fork();
	if (pid == 0)
		point_look_child(path, pipe_fd[1]);
	(void)close(pipe_fd[1]);
	p.fd = pipe_fd[0];
	if (pid > 0 && poll(&p, 1, POINT_LOOK_MS) == 1 && read(pipe_fd[0], ret, sizeof(*ret)) == sizeof(*ret))
		code = ret->code;
	(void)close(pipe_fd[0]);
	if (pid < 0)
		return cube_fail_errno(err, "fork");
	(void)kill(pid, SIGKILL);
	/* One that hangs in the kernel is reaped when the dead mount is gone; it must not hold us up. */
	(void)waitpid(pid, NULL, code == -ETIMEDOUT ? WNOHANG : 0);
	return code;
}

static int point_detach_dead(const char *path, struct cube_err *err)
{
	struct cube_err why;

	if (cube_mount_drop(path, &why) < 0)
		return cube_fail(err, -ENOTCONN, "something dead is mounted there and cannot be detached: %s",
				 why.text);
	return 0;
}

/* The path with its parent resolved: the last part may be a dead mount, which nobody can look at. */
static int point_resolve(const char *given, char *out, struct cube_err *err)
{
	cube_auto_str copy = cube_strdup(given);
	char parent[PATH_MAX];
	const char *last;
	char *slash;

	if (copy == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
		copy[n - 1] = '\0';
	slash = strrchr(copy, '/');
	last = slash == NULL ? copy : slash + 1;
	if (last[0] == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0) {
		if (realpath(given, out) == NULL)
			return cube_fail_errno(err, "%s", given);
		return 0;
	}
	if (slash != NULL)
		*slash = '\0';
	if (realpath(slash == NULL ? "." : copy[0] == '\0' ? "/" : copy, parent) == NULL)
		return cube_fail_errno(err, "%s: its parent directory", given);
	if (snprintf(out, PATH_MAX, "%s/%s", strcmp(parent, "/") == 0 ? "" : parent, last) >= PATH_MAX)
		return cube_fail(err, -ENAMETOOLONG, "%s: the path is too long", given);
	return 0;
}

static int point_make(const char *path, struct cube_err *err)
{
	if (mkdir(path, 0755) < 0)
		return cube_fail_errno(err, "%s: cannot make the mount point", path);
	return 0;
}

static int point_judge(const struct point_look *l, bool nonempty, struct cube_err *err)
{
	if (!l->directory)
		return cube_fail(err, -ENOTDIR, "%s is not a directory", l->path);
	if (cube_mounts_has(l->path))
		return cube_fail(err, -EBUSY,
				 "%s: a cubefs is mounted there already (cubefs umount %s ends it)", l->path,
				 l->path);
	if (!l->empty && !nonempty)
		return cube_fail(err, -ENOTEMPTY,
				 "%s is not empty: mount elsewhere, or over what is there with -o nonempty",
				 l->path);
	return 0;
}

/* Looks until there is something to look at. */
static int point_settle(const char *path, struct point_look *l, struct cube_err *err)
{
	for (unsigned i = 0; i < POINT_STACKED; i++) {
		int r = point_look(path, l, err);

		if (r == 0)
			return 0;
		if (r == -ENOENT)
			r = point_make(path, err);
		else if (r == -ENOTCONN || r == -ETIMEDOUT || r == -ECONNABORTED)
			r = point_detach_dead(path, err);
		else
			r = cube_fail(err, r, "%s: %s", path, cube_errno_text(r));
		if (r < 0)
			return r;
	}
	return cube_fail(err, -ENOTCONN, "%s: too many dead mounts are stacked there: fusermount3 -u -z %s",
			 path, path);
}

int cube_mount_point(const char *given, bool nonempty, struct cube_mount *ret, struct cube_err *err)
{
	char path[PATH_MAX];
	struct point_look l = {0};
	int r = point_resolve(given, path, err);

	if (r == 0)
		r = point_settle(path, &l, err);
	if (r == 0)
		r = point_judge(&l, nonempty, err);
	if (r < 0)
		return r;
	*ret = (struct cube_mount){.path = cube_strdup(l.path), .id = -1};
	return ret->path == NULL ? cube_fail(err, -ENOMEM, "out of memory") : 0;
}
