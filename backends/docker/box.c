/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox: its names, its state at the engine, its directory here. */
#include "backends/docker/docker_priv.h"

#include "backends/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define BOX_HEX       "0123456789abcdef"
#define BOX_ID        16 /* digits of ours */
#define BOX_ENGINE_ID 64

bool docker_is_ours(const char *id)
{
	return strlen(id) == BOX_ID && strspn(id, BOX_HEX) == BOX_ID;
}

int docker_ref(const char *id, char out[DOCKER_REF], struct cube_err *err)
{
	bool engine = strlen(id) == BOX_ENGINE_ID && strspn(id, BOX_HEX) == BOX_ENGINE_ID;

	if (!engine && !docker_is_ours(id))
		return cube_fail(err, -ENOENT, "there is no sandbox %s", id);
	(void)snprintf(out, DOCKER_REF, "%s%s", engine ? "" : DOCKER_NAME, id);
	return 0;
}

int docker_box_ask(struct cube_docker *d, const char *id, const struct docker_ask *a,
		   struct cube_cancel *cancel, struct cube_err *err)
{
	char ref[DOCKER_REF], path[DOCKER_REF + 128], what[CUBE_ID_MAX + 64];
	struct docker_ask full = *a;
	int rc = docker_ref(id, ref, err);

	if (rc < 0)
		return rc;
	(void)snprintf(path, sizeof(path), "/containers/%s%s", ref, a->path);
	(void)snprintf(what, sizeof(what), "%s sandbox %s", a->what, id);
	full.path = path;
	full.what = what;
	return docker_ask(d, &full, cancel, err);
}

int docker_box_get(struct cube_docker *d, const char *id, struct cube_cancel *cancel, json_t **ret,
		   struct cube_err *err)
{
	return docker_box_ask(
		d, id, &(struct docker_ask){.method = "GET", .path = "/json", .what = "look at", .ret = ret},
		cancel, err);
}

enum cube_state docker_box_state(const json_t *box)
{
	const json_t *state = json_object_get(box, "State");

	if (cube_json_bool(state, "Paused", false)) /* Podman's does not run then */
		return CUBE_IS_PAUSED;
	return cube_json_bool(state, "Running", false) ? CUBE_IS_RUNNING : CUBE_IS_STOPPED;
}

int docker_box_pid(const json_t *box)
{
	const json_t *state = json_object_get(box, "State");
	int64_t pid = cube_json_int(state, "Pid", 0);

	return docker_box_state(box) != CUBE_IS_STOPPED && pid > 0 && pid < INT_MAX ? (int)pid : 0;
}

int docker_box_do(struct cube_docker *d, const char *id, const char *verb, struct cube_cancel *cancel,
		  struct cube_err *err)
{
	char path[64], what[32];

	(void)snprintf(path, sizeof(path), "/%s", verb);
	(void)snprintf(what, sizeof(what), "%.*s", (int)strcspn(verb, "?"), verb);
	return docker_box_ask(d, id, &(struct docker_ask){.method = "POST", .path = path, .what = what},
			      cancel, err);
}

/* ---- here ---- */

int docker_box_dir(const struct cube_docker *d, const char *id, bool make, struct cube_err *err)
{
	cube_auto_fd dir = -1;
	int rc = make ? cube_file_mkdir(d->cubes, id, 0700, NULL) : 0;

	if (rc == 0)
		dir = openat(d->cubes, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (rc == 0 && dir < 0)
		rc = -errno;
	if (rc == 0 && make)
		rc = cube_file_mkdir(dir, "door", 0755, NULL);
	if (rc == 0)
		return cube_steal_fd(&dir);
	return cube_fail(err, rc, "the directory of sandbox %s in %.150s: %s", id, d->path,
			 cube_errno_text(rc));
}

int docker_box_forget(struct cube_docker *d, const char *id, struct cube_err *err)
{
	int rc;

	docker_proc_forget(d, id);
	docker_binds_forget(d, id);
	rc = cube_file_remove_tree(d->cubes, id);

	return rc < 0 ? cube_fail(err, rc, "cannot remove what is noted of sandbox %s: %s", id,
				  cube_errno_text(rc))
		      : 0;
}
