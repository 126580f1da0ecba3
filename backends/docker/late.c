/* SPDX-License-Identifier: Apache-2.0 */
/* Creations that were cancelled. The engine goes on with one, and nobody waits for it: what it has made then is removed
 * when it tells of it, or when it is next looked at. `late` in the sandbox's directory here says so. */
#include "backends/docker/docker_priv.h"

#include "backends/base/clock.h"
#include "backends/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define LATE_MARK "late"
#define LATE_S    3600 /* no engine takes so long */

int docker_late_mark(const struct cube_docker *d, const char *uid, struct cube_err *err)
{
	cube_auto_fd dir = docker_box_dir(d, uid, true, err), mark = -1;

	if (dir < 0)
		return dir;
	mark = openat(dir, LATE_MARK, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return mark < 0 ? cube_fail_errno(err, "what is noted of sandbox %s", uid) : 0;
}

void docker_late_clear(const struct cube_docker *d, const char *uid)
{
	cube_auto_fd dir = docker_box_dir(d, uid, false, NULL);

	if (dir >= 0)
		(void)unlinkat(dir, LATE_MARK, 0);
}

void docker_late_made(struct cube_docker *d, const char *uid)
{
	cube_auto_fd dir = docker_box_dir(d, uid, false, NULL);

	if (dir >= 0 && faccessat(dir, LATE_MARK, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		(void)docker_destroy(&d->base, uid, &(struct cube_err){0});
}

static bool late_over(const struct stat *mark)
{
	return cube_clock_wall() / UINT64_C(1000000000) > (uint64_t)mark->st_mtime + LATE_S;
}

static int late_look(void *ctx, int cubes, const char *uid)
{
	struct cube_docker *d = ctx;
	cube_auto(cube_json_auto) json_t *box = NULL;
	cube_auto_fd dir = docker_box_dir(d, uid, false, NULL);
	struct stat mark;
	int rc;

	(void)cubes;
	if (dir < 0 || fstatat(dir, LATE_MARK, &mark, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	rc = docker_box_get(d, uid, NULL, &box, NULL);
	if (rc == 0)
		(void)docker_destroy(&d->base, uid, &(struct cube_err){0});
	else if (rc == -ENOENT && late_over(&mark))
		(void)docker_box_forget(d, uid, NULL);
	return 0;
}

void docker_late_look(struct cube_docker *d)
{
	(void)cube_file_each(d->state, "cubes", late_look, d);
}
