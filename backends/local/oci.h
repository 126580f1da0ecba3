/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a directory that holds an image: its manifest and its configuration. */
#ifndef CUBEFS_BACKENDS_LOCAL_OCI_H
#define CUBEFS_BACKENDS_LOCAL_OCI_H

#include "backends/base/json.h"
#include "backends/local/template_priv.h"

#define CUBE_LOCAL_OCI_LAYERS 512u

struct cube_local_blob {
	char path[160];                /* in the image's directory */
	char digest[CUBE_DIGEST_TEXT]; /* "sha256:HEX" that it must have */
	int64_t size;                  /* that it must have; -1: not said */
};

struct cube_local_oci {
	int dir;
	char digest[CUBE_DIGEST_TEXT]; /* of the manifest; of the configuration where there is none */
	struct cube_local_blob *layers;
	size_t n_layers;
	struct cube_template_config *config;
};

bool cube_local_oci_is_layout(int dir);
bool cube_local_oci_is_docker(int dir);
/* Finds the image for this kind of machine. What was allocated is the caller's also after a failure. */
int cube_local_oci_read_layout(struct cube_local_oci *image, struct cube_local_import *im,
			       struct cube_err *err);
int cube_local_oci_read_docker(struct cube_local_oci *image, struct cube_local_import *im,
			       struct cube_err *err);

/* oci_blob.c */

/* A blob by its digest. -EINVAL: no digest of ours. */
int cube_local_oci_blob(const char *digest, int64_t size, struct cube_local_blob *ret, struct cube_err *err);
/* Opens it and reads it once, whether it is what its digest says. */
int cube_local_oci_open(const struct cube_local_oci *image, const struct cube_local_blob *blob,
			struct cube_local_import *im, int *ret_fd, struct cube_err *err);
/* A file of the image without a digest (@blob NULL: by its name alone) or with one, as JSON. */
int cube_local_oci_json(const struct cube_local_oci *image, const char *path,
			const struct cube_local_blob *blob, struct cube_local_import *im, json_t **ret,
			struct cube_err *err);
/* What a configuration says of the programs; -EOPNOTSUPP for another system's. */
int cube_local_oci_config(struct cube_local_oci *image, const json_t *config, struct cube_err *err);
/* The architecture of this machine as images call it. */
const char *cube_local_oci_machine(void);

#endif
