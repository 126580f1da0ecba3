/* SPDX-License-Identifier: Apache-2.0 */
/* Between template.c, which uses templates, and import*.c and layer.c, which make them. */
#ifndef CUBEFS_BACKENDS_LOCAL_TEMPLATE_PRIV_H
#define CUBEFS_BACKENDS_LOCAL_TEMPLATE_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"
#include "backends/base/digest.h"
#include "backends/local/ids.h"
#include "backends/local/local_priv.h"

#define CUBE_LOCAL_TEMPLATE_HOST "host"

/* ---- template_info.c: what is written down of one, TEMPLATES/NAME/info.json ---- */

struct cube_local_template {
	struct cube_template t;
	struct cube_template_config config;
	unsigned n_below; /* templates whose files lie below its own, topmost first */
	char below[CUBE_LOCAL_LAYERS][CUBE_ID_MAX + 1];
	char set[CUBE_ID_MAX +
		 1]; /* of the store, in which its own files are, /workspace too; "": in `tree` */
};

/* False, with state `error` in ret->t, where it cannot be read. Release with cube_local_template_done. */
bool cube_local_template_read(int templates, const char *name, struct cube_local_template *ret);
void cube_local_template_done(struct cube_local_template *t);
/* Into the directory @dir, which becomes that of the template. */
int cube_local_template_write(int dir, const struct cube_local_template *t, struct cube_err *err);
/* What it is made of at the bottom: "host", or one that was imported. */
void cube_local_template_bottom(int templates, const char *name, char ret[CUBE_ID_MAX + 1]);
/* -EBUSY: a sandbox is made of it, or a template was built on it. */
int cube_local_template_unused(struct cube_local *b, const char *name, struct cube_err *err);
/* Is there one whose own files are in the set @id? */
bool cube_local_template_has_set(const struct cube_local *b, const char *id);
/* Has it files of its own, beside those below it? */
bool cube_local_template_own(const struct cube_local *b, const char *name);
/* A template's or a layer's name. */
bool cube_local_template_name_ok(const char *name);

/* ---- layer.c ---- */

/* @name with its own files and all below them become what the files of @t lie over. */
int cube_local_template_over(struct cube_local *b, const char *name, struct cube_local_template *t,
			     struct cube_err *err);
/* Why it runs nothing is known of what it is made of. */
void cube_local_template_reason(struct cube_local *b, const char *base, struct cube_local_template *t);
/* What each sandbox has of its own is taken out of the root layer of the set @set. */
int cube_local_template_unseed(struct cube_local *b, const char *set, struct cube_err *err);

/* ---- importing ---- */

struct cube_local_import {
	const struct cube_ns_ids *ids;
	int root; /* the empty directory that becomes the root of the template */
	const struct cube_template_order *order;
	struct cube_cancel *cancel;
	unsigned from, to;                  /* percent that this part of it is from and to */
	struct cube_local_bounds bounds;    /* -EDQUOT above */
	uint64_t bytes, files, skipped;     /* so far */
	bool own;                           /* what is read is ours: unpacked, not the writer's */
	uint64_t entries;                   /* of archives, whatever becomes of them */
	uint64_t said;                      /* when the last line of progress was written */
	uint64_t looked;                    /* bytes when the room on the disk was last looked at */
	char fingerprint[CUBE_DIGEST_TEXT]; /* result */
};

void cube_local_import_say(struct cube_local_import *im, const char *what);
/* One line a second at most. @done of @all of this part, 0: not known. */
void cube_local_import_progress(struct cube_local_import *im, uint64_t done, uint64_t all);
/* -ENOSPC: what is to be kept free on the disk would be used up. -EDQUOT: it is more than its bounds. To be asked at
 * each entry and piece. */
int cube_local_import_room(struct cube_local_import *im);

/* Opens beneath a directory of the source with the rights of whose it is: a descriptor, or -errno. */
int cube_local_import_open(const struct cube_local_import *im, int dir, const char *path, int flags);

/* From a directory, whose fingerprint is known at the end. */
int cube_local_import_dir(struct cube_local_import *im, int fd, struct cube_err *err);

/* How the entries of an archive are taken. */
enum cube_local_tar {
	CUBE_TAR_PLAIN,     /* as they are; nothing may be replaced by something of another kind */
	CUBE_TAR_WHITEOUTS, /* of a layer of an image: only what it says is gone from those below it */
	CUBE_TAR_LAYER,     /* of a layer: all else; what is in the way goes */
};
/* From an archive: tar, plain or packed with gzip, bzip2, xz or zstd. -EINVAL: damaged, or it would reach out
 * of the root. The fingerprint is that of the file: cube_local_import_print. */
int cube_local_import_tar(struct cube_local_import *im, int fd, enum cube_local_tar how,
			  struct cube_err *err);
int cube_local_import_print(struct cube_local_import *im, int fd, char ret[CUBE_DIGEST_TEXT],
			    struct cube_err *err);

/* From a URL, whose checksum is known, into the file @fd, which may hold the beginning. */
int cube_local_import_url(struct cube_local_import *im, int fd, struct cube_err *err);

/* Is there an image in the directory: OCI layout, or what docker save writes? */
bool cube_local_oci_there(int dir);
/* Its layers over each other, checked against their digests; what it says of its programs in *config. The
 * fingerprint is that of its manifest; @there says whether it is there already, and then nothing is done. */
int cube_local_import_image(struct cube_local_import *im, int dir, struct cube_template_config *config,
			    bool (*there)(void *ctx), void *ctx, struct cube_err *err);

/* Directories that a sandbox needs are made where they are missing. Says in @reason (empty: none) why the
 * template runs no sandbox. */
int cube_local_import_finish(struct cube_local_import *im, char *reason, size_t size, struct cube_err *err);

#endif
