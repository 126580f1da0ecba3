/* SPDX-License-Identifier: Apache-2.0 */
/* The state directory of a daemon. */
#include "fs/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "ctl/paths.h"
#include "fs/state_format.h"

#define STATE_LOG_MAX (8 << 20) /* a longer log of earlier days is put aside at the start */

#define STATE_LOCK_MS   1000
#define STATE_LOCK_STEP 20

/* Of a daemon that has just ended a helper may be on its way out, with a copy of the descriptor. */
static int state_flock(int fd)
{
	struct timespec step = {.tv_nsec = STATE_LOCK_STEP * 1000000L};

	for (unsigned ms = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; ms += STATE_LOCK_STEP) {
		if (errno != EWOULDBLOCK || ms >= STATE_LOCK_MS)
			return -1;
		(void)nanosleep(&step, NULL);
	}
	return 0;
}

static int state_lock(struct cube_state_dir *s, int dir, struct cube_err *err)
{
	struct cube_buf pid = CUBE_BUF(32);

	s->lock_fd = openat(dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock_fd < 0)
		return cube_fail_errno(err, "%s/lock", s->path);
	if (state_flock(s->lock_fd) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return cube_fail_errno(err, "%s/lock", s->path);
	(void)cube_file_read(dir, "lock", &pid);
	cube_fail(err, -EBUSY,
		  "the cubefs with process number %ld has the state directory %s in use: end that one, or "
		  "name another directory with --state",
		  strtol(cube_buf_str(&pid), NULL, 10), s->path);
	cube_buf_done(&pid);
	return -EBUSY;
}

static int state_log(struct cube_state_dir *s, int dir, struct cube_err *err)
{
	struct stat st;

	if (fstatat(dir, "cubefs.log", &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size > STATE_LOG_MAX)
		(void)renameat(dir, "cubefs.log", dir, "cubefs.log.1");
	s->log_fd = openat(dir, "cubefs.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	return s->log_fd < 0 ? cube_fail_errno(err, "%s/cubefs.log", s->path) : 0;
}

/* Nobody else has any business in it. */
static int state_own(const struct cube_state_dir *s, int dir, struct cube_err *err)
{
	struct stat st;

	if (fstat(dir, &st) < 0)
		return cube_fail_errno(err, "%s", s->path);
	if (st.st_uid != geteuid())
		return cube_fail(err, -EPERM,
				 "%s belongs to another user: name another directory with --state", s->path);
	if ((st.st_mode & 0077) != 0 && fchmod(dir, 0700) < 0)
		return cube_fail_errno(err, "%s", s->path);
	return 0;
}

int cube_state_dir_open(const char *given, struct cube_state_dir *ret, struct cube_err *err)
{
	struct cube_state_dir s = {.lock_fd = -1, .log_fd = -1};
	cube_auto_fd dir = -1;
	int r = cube_paths_state(given, &s.path, err);

	if (r < 0)
		return r;
	r = cube_file_mkdir_path(s.path, 0700);
	if (r < 0)
		cube_fail(err, r, "%s: cannot make the state directory: %s", s.path, cube_errno_text(r));
	if (r == 0) {
		dir = open(s.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = dir < 0 ? cube_fail_errno(err, "%s", s.path) : state_own(&s, dir, err);
	}
	if (r == 0)
		r = state_lock(&s, dir, err);
	if (r == 0)
		r = cube_state_format_check(s.path, err);
	if (r == 0)
		r = cube_state_format_mark(s.path, err);
	if (r == 0)
		r = state_log(&s, dir, err);
	if (r < 0)
		cube_state_dir_close(&s);
	else
		*ret = s;
	return r;
}

void cube_state_dir_sign(const struct cube_state_dir *s, pid_t pid)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%d\n", pid);

	if (ftruncate(s->lock_fd, 0) == 0)
		(void)!pwrite(s->lock_fd, text, (size_t)n, 0); /* for people; nothing depends on it */
}

void cube_state_dir_close(struct cube_state_dir *s)
{
	cube_close_auto(&s->lock_fd);
	cube_close_auto(&s->log_fd);
	s->lock_fd = s->log_fd = -1;
	cube_free(cube_steal(s->path));
}
