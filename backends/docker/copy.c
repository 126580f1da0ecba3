/* SPDX-License-Identifier: Apache-2.0 */
/* Files from one place at the engine to another: on this machine where its directories are ours to read, else as an
 * archive that goes through here. */
#include "backends/docker/docker_priv.h"

#include "backends/base/file.h"
#include "backends/base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_SLOW_S 3600
#define COPY_TEXT   4096

/* ---- here ---- */

/* All of @from with its owners, times, links and attributes, into @to, which is empty and gets those of @from. */
static int copy_dirs(int from, int to, struct cube_cancel *cancel, struct cube_err *err)
{
	static const char *const argv[] = {
		"cp", "-aT", "--reflink=auto", "/proc/self/fd/3/", "/proc/self/fd/4/", NULL};
	const int fds[] = {from, to};
	struct cube_buf text = CUBE_BUF(COPY_TEXT);
	struct cube_spawn s = {.argv = argv,
			       .cwd = -1,
			       .fds = fds,
			       .nfds = CUBE_COUNT(fds),
			       .in = -1,
			       .out = -1,
			       .text = &text};
	char why[200];
	int status = 0, rc = cube_spawn_run(&s, cancel, &status, err);

	if (rc == 0 && status != 0) {
		cube_spawn_describe(status, &text, why, sizeof(why));
		rc = cube_fail(err, strstr(why, "No space left") != NULL ? -ENOSPC : -EIO,
			       "cannot copy: cp: %s", why);
	}
	cube_buf_done(&text);
	return rc;
}

static int copy_volume_open(struct cube_docker *d, const char *name, int *ret_fd, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *volume = NULL;
	char path[DOCKER_CP_VOLUME + 16];
	int rc;

	(void)snprintf(path, sizeof(path), "/volumes/%s", name);
	rc = docker_ask(
		d,
		&(struct docker_ask){.method = "GET", .path = path, .what = "copy a volume", .ret = &volume},
		NULL, err);
	if (rc < 0)
		return rc;
	*ret_fd = docker_tree_open(cube_json_str(volume, "Mountpoint", ""), false);
	return *ret_fd < 0 ? cube_fail(err, *ret_fd, "the files of volume %s cannot be reached: %s", name,
				       cube_errno_text(*ret_fd))
			   : 0;
}

static int copy_volume_here(struct cube_docker *d, const char *from, const char *to,
			    struct cube_cancel *cancel, struct cube_err *err)
{
	cube_auto_fd source = -1, dest = -1;
	int rc = copy_volume_open(d, from, &source, err);

	if (rc == 0)
		rc = copy_volume_open(d, to, &dest, err);
	return rc == 0 ? copy_dirs(source, dest, cancel, err) : rc;
}

/* The sandbox does not run, and the other container never did. */
static int copy_workspace_here(const json_t *from, const json_t *to, struct cube_cancel *cancel,
			       struct cube_err *err)
{
	cube_auto_fd source = docker_layers_mount(from), dest = docker_layers_mount(to), in = -1, out = -1;
	int rc = source < 0 ? source : dest < 0 ? dest : 0;

	if (rc == 0)
		rc = cube_file_remove_tree(dest, "workspace");
	if (rc == 0)
		rc = cube_file_mkdir(dest, "workspace", 0755, &out);
	if (rc < 0)
		return cube_fail(err, rc, "/workspace: %s", cube_errno_text(rc));
	in = openat(source, "workspace", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (in < 0)
		return errno == ENOENT ? 0 : cube_fail_errno(err, "/workspace");
	return copy_dirs(in, out, cancel, err);
}

/* ---- through here ---- */

static int copy_take(void *ctx, const void *data, size_t len)
{
	return cube_file_write_all(*(const int *)ctx, data, len);
}

/* The contents of a directory of one container appear in a directory of another one. */
static int copy_archive(struct cube_docker *d, const char *from, const char *from_dir, const char *to,
			const char *to_dir, struct cube_cancel *cancel, struct cube_err *err)
{
	cube_auto_fd tmp = openat(d->state, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char path[512];
	int rc;

	if (tmp < 0)
		return cube_fail_errno(err, "a file in %.150s", d->path);
	(void)snprintf(path, sizeof(path), "/containers/%s/archive?path=%s/.", from, from_dir);
	rc = docker_ask(d,
			&(struct docker_ask){.method = "GET",
					     .path = path,
					     .what = "read files of the container",
					     .timeout_s = COPY_SLOW_S,
					     .sink = copy_take,
					     .ctx = &tmp},
			cancel, err);
	if (rc == 0 && lseek(tmp, 0, SEEK_SET) < 0)
		rc = cube_fail_errno(err, "a file in %.150s", d->path);
	(void)snprintf(path, sizeof(path), "/containers/%s/archive?path=%s", to, to_dir);
	if (rc == 0)
		rc = docker_ask(d,
				&(struct docker_ask){.method = "PUT",
						     .path = path,
						     .what = "write files of the container",
						     .timeout_s = COPY_SLOW_S,
						     .body_fd = tmp,
						     .has_fd = true},
				cancel, err);
	return rc;
}

static json_t *copy_mount(const char *volume, const char *path)
{
	return json_pack("{s:s,s:s,s:s,s:{s:b}}", "Type", "volume", "Source", volume, "Target", path,
			 "VolumeOptions", "NoCopy", 1);
}

/* The engine shows a container's volumes in its archives, whether it runs or not. */
static int copy_volume_through(struct cube_docker *d, const char *from, const char *to,
			       struct cube_cancel *cancel, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *body = json_pack(
		"{s:s,s:[s],s:{s:s,s:[o,o]}}", "Image", d->template, "Cmd", DOCKER_NO_COMMAND, "HostConfig",
		"NetworkMode", "none", "Mounts", copy_mount(from, "/from"), copy_mount(to, "/to"));
	char maker[DOCKER_MAKER_MAX];
	int rc = body != NULL ? docker_maker(d, body, cancel, maker, err)
			      : cube_fail(err, -ENOMEM, "out of memory");

	if (rc < 0)
		return rc;
	rc = copy_archive(d, maker, "/from", maker, "/to", cancel, err);
	docker_maker_gone(d, maker);
	return rc;
}

/* ---- either ---- */

int docker_copy_volume(struct cube_docker *d, const char *from, const char *to, struct cube_cancel *cancel,
		       struct cube_err *err)
{
	return docker_root_why(d) == NULL ? copy_volume_here(d, from, to, cancel, err)
					  : copy_volume_through(d, from, to, cancel, err);
}

int docker_copy_workspace(struct cube_docker *d, const json_t *from, const json_t *to,
			  struct cube_cancel *cancel, struct cube_err *err)
{
	if (docker_root_why(d) == NULL)
		return copy_workspace_here(from, to, cancel, err);
	return copy_archive(d, cube_json_str(from, "Id", "-"), "/workspace", cube_json_str(to, "Id", "-"),
			    "/workspace", cancel, err);
}
