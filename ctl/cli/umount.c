/* SPDX-License-Identifier: Apache-2.0 */
/* `cubefs umount MOUNTPOINT`: ends the daemon behind a mount; the sandboxes stay as they are. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/spawn.h"
#include "ctl/cli/cli.h"
#include "ctl/cli/mounts.h"

#define UMOUNT_WAIT_MS 15000
#define UMOUNT_STEP_MS 20
/* The daemon itself may be looking at its mount just now (fs/canary.h), and is answered when the worker that follows one
 * that died serves. */
#define UMOUNT_BUSY_MS 5000

int cube_cli_fail(const struct cube_err *err)
{
	(void)fprintf(stderr, "cubefs: %s\n", err->text);
	return 1;
}

char *cube_cli_state(const char *mount)
{
	struct cube_buf text = CUBE_BUF(64 << 10);
	cube_auto_str ctl = cube_asprintf("%s/ctl", mount);
	char *state = NULL;

	if (ctl != NULL && cube_file_read(AT_FDCWD, ctl, &text) == 0 && text.len > 0) {
		char *at = strstr(text.data, "\nstate ");

		if (at != NULL)
			state = cube_strndup(at + 7, strcspn(at + 7, "\n"));
	}
	cube_buf_done(&text);
	return state;
}

static int umount_once(const char *path, struct cube_err *err)
{
	const char *const argv[] = {"fusermount3", "-u", "--", path, NULL};
	struct cube_buf text = CUBE_BUF(4096);
	struct cube_spawn s = {.argv = argv, .cwd = -1, .in = -1, .out = -1, .text = &text};
	char why[256];
	int status, r;

	if (geteuid() == 0) {
		if (umount2(path, UMOUNT_NOFOLLOW) == 0)
			return 0;
		if (errno == EBUSY)
			return cube_fail(
				err, -EBUSY,
				"%s is in use: leave it (`fuser -vm %s` says who is there) and try again",
				path, path);
		return cube_fail_errno(err, "%s", path);
	}
	r = cube_spawn_run(&s, NULL, &status, err);
	if (r == 0 && status != 0) {
		cube_spawn_describe(status, &text, why, sizeof(why));
		r = cube_fail(err, -EBUSY, "%s: fusermount3: %s", path, why);
	}
	cube_buf_done(&text);
	return r;
}

static int umount_now(const char *path, struct cube_err *err)
{
	struct timespec step = {.tv_nsec = UMOUNT_STEP_MS * 1000000L};
	int r = umount_once(path, err);

	for (unsigned ms = 0; r == -EBUSY && ms < UMOUNT_BUSY_MS; ms += UMOUNT_STEP_MS) {
		(void)nanosleep(&step, NULL);
		r = umount_once(path, err);
	}
	return r;
}

/* The daemon holds a lock on its state directory for as long as it lives. */
static void umount_wait(const char *state)
{
	cube_auto_str path = cube_asprintf("%s/lock", state);
	cube_auto_fd fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	struct timespec step = {.tv_nsec = UMOUNT_STEP_MS * 1000000L};

	for (unsigned ms = 0; fd >= 0 && ms < UMOUNT_WAIT_MS; ms += UMOUNT_STEP_MS) {
		if (flock(fd, LOCK_SH | LOCK_NB) == 0)
			return;
		(void)nanosleep(&step, NULL);
	}
}

/* The mount point without links in it. Only the parent is resolved: a dead mount cannot be looked at. */
static int umount_resolve(const char *given, char *out, struct cube_err *err)
{
	cube_auto_str parent = cube_strdup(given);
	char resolved[PATH_MAX];
	char *slash;
	int n;

	if (realpath(given, out) != NULL)
		return 0;
	if (parent == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	slash = strrchr(parent, '/');
	if (slash != NULL)
		*slash = '\0';
	if (realpath(slash == NULL ? "." : parent[0] == '\0' ? "/" : parent, resolved) == NULL)
		return cube_fail_errno(err, "%s", given);
	n = snprintf(out, PATH_MAX, "%s/%s", strcmp(resolved, "/") == 0 ? "" : resolved,
		     slash != NULL ? slash + 1 : given);
	if (n >= PATH_MAX)
		return cube_fail(err, -ENAMETOOLONG, "%s: the path is too long", given);
	return 0;
}

int cube_cli_mount(const char *given, char *out, struct cube_err *err)
{
	int r = umount_resolve(given, out, err);

	if (r == 0 && !cube_mounts_has(out))
		r = cube_fail(err, -EINVAL, "%s: no cubefs is mounted there", out);
	return r;
}

int cube_cli_umount(int argc, char **argv)
{
	cube_auto_str state = NULL;
	struct cube_err err = {0};
	char path[PATH_MAX];

	if (argc != 2 || argv[1][0] == '-') {
		(void)fprintf(stderr, "usage: cubefs umount MOUNTPOINT\n");
		return 2;
	}
	if (cube_cli_mount(argv[1], path, &err) < 0)
		return cube_cli_fail(&err);
	state = cube_cli_state(path);
	if (umount_now(path, &err) < 0)
		return cube_cli_fail(&err);
	if (state != NULL)
		umount_wait(state);
	return 0;
}
