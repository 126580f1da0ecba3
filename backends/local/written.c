/* SPDX-License-Identifier: Apache-2.0 */
/* Who fills the disk: what the processes of a sandbox have written, by the kernel's own account of each. A process
 * that ended is in its parent's account from when it was reaped, so nothing is lost while process 1 lives. Asked
 * rarely (when the disk is short), so a walk over all processes may cost what it costs. */
#include "backends/local/local_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/macros.h"

/* Which process namespace; false: gone, or not ours to look at. */
static bool written_space(int proc, struct stat *ret)
{
	return fstatat(proc, "ns/pid", ret, 0) == 0;
}

static uint64_t written_value(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at != NULL ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* What was written and taken back before it was on the disk (a file removed again) fills nothing. */
static uint64_t written_by(int proc)
{
	char text[512];
	cube_auto_fd fd = openat(proc, "io", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	uint64_t written, cancelled;

	if (n <= 0)
		return 0;
	text[n] = '\0';
	written = written_value(text, "\nwrite_bytes: ");
	cancelled = written_value(text, "\ncancelled_write_bytes: ");
	return written > cancelled ? written - cancelled : 0;
}

static uint64_t written_in(DIR *all, const struct stat *space)
{
	const struct dirent *e;
	uint64_t sum = 0;
	struct stat st;

	while ((e = readdir(all)) != NULL) { /* NOLINT(concurrency-mt-unsafe): a stream of our own */
		cube_auto_fd proc = -1;

		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		proc = openat(dirfd(all), e->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (proc >= 0 && written_space(proc, &st) && st.st_ino == space->st_ino &&
		    st.st_dev == space->st_dev)
			sum += written_by(proc);
	}
	return sum;
}

int cube_local_written(struct cube_backend *base, const char *id, uint64_t *ret, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	cube_auto_fd proc = -1;
	struct local_cube *c;
	struct stat space;
	int rc = cube_local_cube_get(b, id, &c, err);
	DIR *all;

	if (rc < 0)
		return rc;
	proc = cube_local_cube_proc(c, err);
	if (proc < 0)
		return proc;
	all = opendir("/proc");
	if (!all || !written_space(proc, &space)) {
		rc = cube_fail_errno(err, "the processes of sandbox %s", id);
		if (all)
			(void)closedir(all);
		return rc;
	}
	*ret = written_in(all, &space);
	(void)closedir(all);
	return 0;
}
