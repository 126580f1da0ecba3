/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes are the engine's, called cubefs-UID: it mounts them, and keeps one that a container has. */
#include "backends/docker/docker_priv.h"

#include "backends/base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define VOLUME_LABEL DOCKER_LABEL "volume"

static int volume_ask(struct cube_docker *d, const char *method, const char *uid, const char *what,
		      struct cube_cancel *cancel, json_t **ret, struct cube_err *err)
{
	char path[DOCKER_REF + 32], text[CUBE_ID_MAX + 32];

	(void)snprintf(path, sizeof(path), "/volumes/" DOCKER_NAME "%s", uid);
	(void)snprintf(text, sizeof(text), "%s volume %s", what, uid);
	return docker_ask(d, &(struct docker_ask){.method = method, .path = path, .what = text, .ret = ret},
			  cancel, err);
}

int docker_volume_make(struct cube_backend *base, const char *uid, const char *name,
		       struct cube_cancel *cancel, struct cube_err *err)
{
	char volume[DOCKER_REF];
	cube_auto(cube_json_auto) json_t *body = NULL;

	(void)snprintf(volume, sizeof(volume), DOCKER_NAME "%s", uid);
	body = json_pack("{s:s,s:{s:s,s:s}}", "Name", volume, "Labels", VOLUME_LABEL, uid, DOCKER_LABEL_NAME,
			 name != NULL ? name : "");
	if (body == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	return docker_ask(
		docker_of(base),
		&(struct docker_ask){
			.method = "POST", .path = "/volumes/create", .body = body, .what = "make the volume"},
		cancel, err);
}

int docker_volume_remove(struct cube_backend *base, const char *uid, struct cube_err *err)
{
	int rc = volume_ask(docker_of(base), "DELETE", uid, "remove", NULL, NULL, err);

	return rc == -ENOENT ? 0 : rc;
}

int docker_volume_list(struct cube_backend *base, void (*each)(void *ctx, const struct cube_volume *v),
		       void *ctx, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *all = NULL;
	const json_t *list, *one;
	size_t i;
	int rc = docker_ask(
		docker_of(base),
		&(struct docker_ask){
			.method = "GET", .path = "/volumes", .what = "list the volumes", .ret = &all},
		NULL, err);

	if (rc < 0)
		return rc;
	list = json_object_get(all, "Volumes");
	json_array_foreach(list, i, one)
	{
		struct cube_volume v = {.size = UINT64_MAX};
		const char *uid = cube_json_str(json_object_get(one, "Labels"), VOLUME_LABEL, "");

		if (!docker_is_ours(uid))
			continue;
		(void)snprintf(v.uid, sizeof(v.uid), "%s", uid);
		each(ctx, &v);
	}
	return 0;
}

/* Each that a sandbox is to have is there: the engine would make what is not. */
int docker_volumes_there(struct cube_docker *d, const struct cube_spec *spec, struct cube_cancel *cancel,
			 struct cube_err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < spec->n_volumes; i++)
		rc = volume_ask(d, "GET", spec->volumes[i].volume, "find", cancel, NULL, err);
	return rc;
}

/* ---- files ---- */

int docker_tree_open(const char *path, bool read_only)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID |
					      (read_only ? MOUNT_ATTR_RDONLY : 0)};
	cube_auto_fd fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -errno;
	return cube_steal_fd(&fd);
}

int docker_volume_root(struct cube_backend *base, const char *uid, struct cube_root *ret,
		       struct cube_err *err)
{
	struct cube_root root = {.generation = 1, .id_count = UINT32_MAX};
	cube_auto(cube_json_auto) json_t *volume = NULL;
	int rc = volume_ask(docker_of(base), "GET", uid, "open", NULL, &volume, err);

	if (rc < 0)
		return rc;
	root.fd = docker_tree_open(cube_json_str(volume, "Mountpoint", ""), false);
	if (root.fd < 0)
		return cube_fail(err, root.fd, "the files of volume %s cannot be reached: %s", uid,
				 cube_errno_text(root.fd));
	*ret = root;
	return 0;
}

/* What the engine mounts in it that cubefs had it mount. */
int docker_volume_mounts(const json_t *box, struct cube_root *root)
{
	const json_t *mounts = json_object_get(box, "Mounts"), *one;
	size_t i;

	json_array_foreach(mounts, i, one)
	{
		unsigned n = root->n_mounts;
		bool rw = cube_json_bool(one, "RW", false);

		if (strcmp(cube_json_str(one, "Type", ""), "volume") != 0 || n >= CUBE_MOUNTS_MAX)
			continue;
		root->mounts[n].fd = docker_tree_open(cube_json_str(one, "Source", ""), !rw);
		if (root->mounts[n].fd < 0)
			return root->mounts[n].fd;
		(void)snprintf(root->mounts[n].path, sizeof(root->mounts[n].path), "%s",
			       cube_json_str(one, "Destination", ""));
		root->mounts[n].read_only = !rw;
		root->mounts[n].shared = true;
		root->n_mounts++;
	}
	return 0;
}
