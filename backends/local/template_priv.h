/* SPDX-License-Identifier: Apache-2.0 */
/* Between template.c, which uses templates, and import*.c, which make them. */
#ifndef CUBEFS_BACKENDS_LOCAL_TEMPLATE_PRIV_H
#define CUBEFS_BACKENDS_LOCAL_TEMPLATE_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"
#include "backends/local/ids.h"

/* What info.json says; false (and state `error` in *ret) where it cannot be read. */
bool cube_local_template_info(int templates, const char *name, struct cube_template *ret);

struct cube_local_import {
	const struct cube_local_ids *ids;
	int root; /* the empty directory that becomes the root of the template */
	void (*log)(void *ctx, const char *line);
	void *ctx;
	struct cube_cancel *cancel;
	uint64_t bytes, files, skipped; /* result */
	char fingerprint[72];           /* result: "sha256:" and hexadecimal digits */
};

/* From a directory, or from an archive (tar, gz, bz2, xz, zst), which is read from where @fd stands. */
int cube_local_import_dir(struct cube_local_import *im, int fd, struct cube_err *err);
int cube_local_import_tar(struct cube_local_import *im, int fd, struct cube_err *err);

#endif
