/* SPDX-License-Identifier: Apache-2.0 */
/* The directories in which an engine with overlay2 keeps the layers of images and containers, and overlays of them. */
#include "backends/docker/docker_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define LAYERS_ATTRS (MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID)

static const json_t *layers_data(const json_t *of)
{
	return json_object_get(json_object_get(of, "GraphDriver"), "Data");
}

int docker_layers(const json_t *of, struct cube_names *ret)
{
	const json_t *data = layers_data(of);
	const char *upper = cube_json_str(data, "UpperDir", ""), *list = cube_json_str(data, "LowerDir", "");
	int rc = *upper != '\0' ? cube_names_add(ret, upper) : -EOPNOTSUPP;

	while (rc == 0 && *list != '\0') {
		size_t n = strcspn(list, ":");
		char one[PATH_MAX];

		(void)snprintf(one, sizeof(one), "%.*s", (int)n, list);
		rc = cube_names_add(ret, one);
		list += n + (list[n] == ':');
	}
	return rc;
}

bool docker_layers_can(void)
{
	cube_auto_fd fs = fsopen("overlay", FSOPEN_CLOEXEC);

	return fs >= 0 && fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir+", "/", 0) == 0;
}

/* ---- mounts ---- */

static int layers_set(int fs, const char *key, const char *value)
{
	return fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0) < 0 ? -errno : 0;
}

/* One by one, since a list is longer than the kernel takes in one piece. */
static int layers_open(const struct cube_names *layers, size_t first, int *ret_fs)
{
	cube_auto_fd fs = fsopen("overlay", FSOPEN_CLOEXEC);
	int rc = fs < 0 ? -errno : layers_set(fs, "source", "cubefs");

	for (size_t i = first; rc == 0 && i < layers->n; i++)
		rc = layers_set(fs, "lowerdir+", layers->at[i]);
	if (rc == 0)
		*ret_fs = cube_steal_fd(&fs);
	return rc;
}

static int layers_mount(int fs, uint64_t attrs)
{
	int fd = fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0
			 ? -1
			 : fsmount(fs, FSMOUNT_CLOEXEC, (unsigned)(LAYERS_ATTRS | attrs));

	return fd < 0 ? -errno : fd;
}

int docker_layers_mount(const json_t *box)
{
	struct cube_names layers = CUBE_NAMES;
	const char *work = cube_json_str(layers_data(box), "WorkDir", "");
	cube_auto_fd fs = -1;
	int rc = docker_layers(box, &layers);

	if (rc == 0 && (*work == '\0' || layers.n < 2))
		rc = -EOPNOTSUPP;
	if (rc == 0)
		rc = layers_open(&layers, 1, &fs);
	if (rc == 0)
		rc = layers_set(fs, "upperdir", layers.at[0]);
	if (rc == 0)
		rc = layers_set(fs, "workdir", work);
	if (rc == 0)
		rc = layers_mount(fs, 0);
	cube_names_done(&layers);
	return rc;
}

int docker_layers_view(const json_t *image)
{
	struct cube_names layers = CUBE_NAMES;
	cube_auto_fd fs = -1;
	int rc = docker_layers(image, &layers);

	if (rc == 0 && layers.n == 1) { /* alone it is no overlay: it is seen as it is */
		rc = docker_tree_open(layers.at[0], true);
	} else if (rc == 0) {
		rc = layers_open(&layers, 0, &fs);
		if (rc == 0)
			rc = layers_mount(fs, MOUNT_ATTR_RDONLY);
	}
	cube_names_done(&layers);
	return rc;
}
