/* SPDX-License-Identifier: Apache-2.0 */
/* Images as templates: the layers of an OCI layout, or of what docker save writes, over each other.
 *
 * All that is in the directory is hostile until its digest fits: index and manifest lead to each other by
 * digests, whose blobs are opened beneath the directory; sizes and numbers have bounds. */
#include "backends/local/oci.h"
#include "backends/local/template_priv.h"

#include "backends/base/alloc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool cube_local_oci_there(int dir)
{
	return cube_local_oci_is_layout(dir) || cube_local_oci_is_docker(dir);
}

static int image_layer(struct cube_local_import *im, const struct cube_local_oci *image, size_t n,
		       struct cube_err *err)
{
	const struct cube_local_blob *blob = &image->layers[n];
	cube_auto_fd fd = -1;
	char line[160];
	int rc = cube_local_oci_open(image, blob, im, &fd, err);

	if (rc < 0)
		return rc;
	(void)snprintf(line, sizeof(line), "layer %zu of %zu: %s", n + 1, image->n_layers, blob->digest);
	im->order->log(im->order->ctx, line);
	if (n > 0)
		rc = cube_local_import_tar(im, fd, CUBE_TAR_WHITEOUTS, err);
	if (rc == 0)
		rc = cube_local_import_tar(im, fd, CUBE_TAR_LAYER, err);
	return rc < 0 ? cube_fail_in(err, "layer %zu", n + 1) : 0;
}

static int image_layers(struct cube_local_import *im, const struct cube_local_oci *image,
			struct cube_err *err)
{
	unsigned from = im->from, to = im->to;
	int rc = 0;

	for (size_t n = 0; rc == 0 && n < image->n_layers; n++) {
		im->from = from + (unsigned)((to - from) * n / image->n_layers);
		im->to = from + (unsigned)((to - from) * (n + 1) / image->n_layers);
		rc = image_layer(im, image, n, err);
	}
	return rc;
}

int cube_local_import_image(struct cube_local_import *im, int dir, struct cube_template_config *config,
			    bool (*there)(void *ctx), void *ctx, struct cube_err *err)
{
	struct cube_local_oci image = {.dir = dir, .config = config};
	int rc = cube_local_oci_is_layout(dir) ? cube_local_oci_read_layout(&image, im, err)
					       : cube_local_oci_read_docker(&image, im, err);

	if (rc == 0) {
		(void)snprintf(im->fingerprint, sizeof(im->fingerprint), "%s", image.digest);
		if (there == NULL || !there(ctx))
			rc = image_layers(im, &image, err);
	}
	cube_free(image.layers);
	return rc < 0 ? cube_fail_in(err, "image") : 0;
}
