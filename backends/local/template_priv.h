/* SPDX-License-Identifier: Apache-2.0 */
/* Between template.c, which uses templates, and import*.c, which make them. */
#ifndef CUBEFS_BACKENDS_LOCAL_TEMPLATE_PRIV_H
#define CUBEFS_BACKENDS_LOCAL_TEMPLATE_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"
#include "backends/local/digest.h"
#include "backends/local/ids.h"

/* What info.json says; false (and state `error` in *ret) where it cannot be read. */
bool cube_local_template_info(int templates, const char *name, struct cube_template *ret);

struct cube_local_import {
	const struct cube_local_ids *ids;
	int root; /* the empty directory that becomes the root of the template */
	void (*log)(void *ctx, const char *line);
	void *ctx;
	struct cube_cancel *cancel;
	uint64_t bytes, files, skipped;     /* so far */
	uint64_t said;                      /* when the last line of progress was written */
	char fingerprint[CUBE_DIGEST_TEXT]; /* result */
};

/* From a directory, whose fingerprint is known at the end. */
int cube_local_import_dir(struct cube_local_import *im, int fd, struct cube_err *err);
/* From an archive: tar, plain or packed with gzip, bzip2, xz or zstd. -EINVAL: damaged, or it would reach out
 * of the root. The fingerprint is that of the file: cube_local_import_print. */
int cube_local_import_tar(struct cube_local_import *im, int fd, struct cube_err *err);
int cube_local_import_print(struct cube_local_import *im, int fd, struct cube_err *err);

/* Directories that a sandbox needs are made where they are missing. Says in @reason (empty: none) why the
 * template runs no sandbox. */
int cube_local_import_finish(struct cube_local_import *im, char *reason, size_t size, struct cube_err *err);

/* One line a second at most. */
void cube_local_import_progress(struct cube_local_import *im);

#endif
