/* SPDX-License-Identifier: Apache-2.0 */
/* From the top of an image's directory to its layers: index, manifest, configuration. */
#include "backends/local/oci.h"

#include "backends/base/alloc.h"
#include "backends/base/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define IMAGE_DEPTH 4 /* indexes in indexes */

static bool image_has(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

bool cube_local_oci_is_layout(int dir)
{
	return image_has(dir, "oci-layout") && image_has(dir, "index.json");
}

/* A root file system may have a file of that name as well. */
bool cube_local_oci_is_docker(int dir)
{
	struct stat st;

	return image_has(dir, "manifest.json") && fstatat(dir, "usr", &st, AT_SYMLINK_NOFOLLOW) < 0 &&
	       fstatat(dir, "bin", &st, AT_SYMLINK_NOFOLLOW) < 0;
}

static int image_room(struct cube_local_oci *image, const json_t *layers, struct cube_err *err)
{
	size_t n = json_array_size(layers);

	if (n == 0 || n > CUBE_LOCAL_OCI_LAYERS)
		return cube_fail(err, -EINVAL, "it has %zu layers, and 1 to %u are taken", n,
				 CUBE_LOCAL_OCI_LAYERS);
	image->layers = cube_calloc(n, sizeof(*image->layers));
	return image->layers != NULL ? 0 : cube_fail(err, -ENOMEM, "out of memory");
}

/* ---- OCI ---- */

static int oci_blob(const json_t *descriptor, struct cube_local_blob *ret, struct cube_err *err)
{
	return cube_local_oci_blob(cube_json_str(descriptor, "digest", ""),
				   cube_json_int(descriptor, "size", -1), ret, err);
}

/* For this machine, or not said; more than one that fits: the first. */
static const json_t *oci_choose(const json_t *manifests)
{
	const json_t *unsaid = NULL;
	size_t i;
	json_t *m;

	json_array_foreach(manifests, i, m)
	{
		const json_t *p = json_object_get(m, "platform");
		const char *os = cube_json_str(p, "os", "linux");

		if (p == NULL && unsaid == NULL)
			unsaid = m;
		if (p != NULL && strcmp(os, "linux") == 0 &&
		    strcmp(cube_json_str(p, "architecture", ""), cube_local_oci_machine()) == 0)
			return m;
	}
	return unsaid;
}

static int oci_manifest(struct cube_local_oci *image, const json_t *manifest, struct cube_local_import *im,
			struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *config = NULL;
	const json_t *layers = json_object_get(manifest, "layers");
	struct cube_local_blob blob;
	int rc = oci_blob(json_object_get(manifest, "config"), &blob, err);
	size_t i;
	json_t *layer;

	if (rc == 0)
		rc = cube_local_oci_json(image, blob.path, &blob, im, &config, err);
	if (rc == 0)
		rc = cube_local_oci_config(image, config, err);
	if (rc == 0)
		rc = image_room(image, layers, err);
	if (rc < 0)
		return rc;
	json_array_foreach(layers, i, layer)
	{
		rc = oci_blob(layer, &image->layers[image->n_layers++], err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int cube_local_oci_read_layout(struct cube_local_oci *image, struct cube_local_import *im,
			       struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *at = NULL;
	int rc = cube_local_oci_json(image, "index.json", NULL, im, &at, err);

	for (unsigned depth = 0; rc == 0 && json_object_get(at, "manifests") != NULL; depth++) {
		const json_t *chosen = oci_choose(json_object_get(at, "manifests"));
		struct cube_local_blob blob;
		json_t *next = NULL;

		if (depth == IMAGE_DEPTH)
			return cube_fail(err, -EINVAL, "its indexes are nested too deeply");
		if (chosen == NULL)
			return cube_fail(err, -EOPNOTSUPP, "it has nothing for linux on %s",
					 cube_local_oci_machine());
		rc = oci_blob(chosen, &blob, err);
		if (rc == 0)
			rc = cube_local_oci_json(image, blob.path, &blob, im, &next, err);
		if (rc < 0)
			return rc;
		(void)snprintf(image->digest, sizeof(image->digest), "%s", blob.digest);
		json_decref(at);
		at = next;
	}
	return rc < 0 ? rc : oci_manifest(image, at, im, err);
}

/* ---- docker save ---- */

/* The name of the configuration is its digest: HEX.json, or blobs/sha256/HEX. */
static int docker_config(struct cube_local_oci *image, const char *path, struct cube_local_import *im,
			 json_t **ret, struct cube_err *err)
{
	const char *base = strrchr(path, '/');
	struct cube_local_blob blob = {.size = -1};
	char digest[CUBE_DIGEST_TEXT];
	int rc;

	base = base != NULL ? base + 1 : path;
	(void)snprintf(digest, sizeof(digest), "sha256:%.*s", (int)strcspn(base, "."), base);
	rc = cube_local_oci_blob(digest, -1, &blob, err);
	if (rc == 0 && (size_t)snprintf(blob.path, sizeof(blob.path), "%s", path) >= sizeof(blob.path))
		rc = cube_fail(err, -EINVAL, "the name of its configuration is too long");
	if (rc == 0)
		rc = cube_local_oci_json(image, path, &blob, im, ret, err);
	if (rc == 0)
		(void)snprintf(image->digest, sizeof(image->digest), "%s", blob.digest);
	return rc;
}

static int docker_layers(struct cube_local_oci *image, const json_t *layers, const json_t *ids,
			 struct cube_err *err)
{
	int rc = image_room(image, layers, err);

	if (rc == 0 && json_array_size(ids) != json_array_size(layers))
		rc = cube_fail(err, -EINVAL, "it has %zu layers and %zu digests of layers",
			       json_array_size(layers), json_array_size(ids));
	for (size_t i = 0; rc == 0 && i < json_array_size(layers); i++) {
		const char *path = json_string_value(json_array_get(layers, i));
		const char *id = json_string_value(json_array_get(ids, i));
		struct cube_local_blob *blob = &image->layers[image->n_layers++];

		rc = cube_local_oci_blob(id != NULL ? id : "", -1, blob, err);
		if (rc == 0 && (path == NULL || (size_t)snprintf(blob->path, sizeof(blob->path), "%s",
								 path) >= sizeof(blob->path)))
			rc = cube_fail(err, -EINVAL, "the name of layer %zu cannot be taken", i + 1);
	}
	return rc;
}

int cube_local_oci_read_docker(struct cube_local_oci *image, struct cube_local_import *im,
			       struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *list = NULL;
	cube_auto(cube_json_auto) json_t *config = NULL;
	const json_t *first;
	int rc = cube_local_oci_json(image, "manifest.json", NULL, im, &list, err);

	if (rc < 0)
		return rc;
	if (json_array_size(list) != 1)
		return cube_fail(err, -EINVAL, "the archive has %zu images, and one is taken",
				 json_array_size(list));
	first = json_array_get(list, 0);
	rc = docker_config(image, cube_json_str(first, "Config", ""), im, &config, err);
	if (rc == 0)
		rc = cube_local_oci_config(image, config, err);
	if (rc == 0)
		rc = docker_layers(image, json_object_get(first, "Layers"),
				   json_object_get(json_object_get(config, "rootfs"), "diff_ids"), err);
	return rc;
}
