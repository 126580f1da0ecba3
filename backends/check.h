/* SPDX-License-Identifier: Apache-2.0 */
/* What backend.c checks: tables before they are used, lines before they are sent, answers before they
 * are believed. Private to backends/backend.c and its tests; a backend never includes it. */
#ifndef CUBEFS_BACKENDS_CHECK_H
#define CUBEFS_BACKENDS_CHECK_H

#include <stdbool.h>

#include "backends/backend.h"

/* "run commands": the end of "backend X cannot ...", of bit number @n. */
const char *cube_cap_cannot(unsigned n);

/* Version, kind, required operations, and each optional one there exactly where a capability of the
 * table stands for it; -EINVAL. */
int cube_check_ops(const struct cube_backend_ops *ops, struct cube_err *err);

/* 1 to CUBE_ID_MAX bytes of [A-Za-z0-9._:-], not starting with '.': fit to be a directory entry. */
bool cube_check_id(const char *id);

/* Ours, of a sandbox or a volume: 16 hexadecimal digits. */
bool cube_check_uid(const char *uid);

/* What create needs whatever the backend: our mark and a name; -EINVAL. */
int cube_check_mark(const struct cube_spec *spec, struct cube_err *err);

/* Words that are malformed whatever the backend (-EINVAL), then limits, network and extra keys against @b. */
int cube_check_spec(const struct cube_backend *b, const struct cube_spec *spec, struct cube_err *err);

/* A capability for each limit that is not 0; -EOPNOTSUPP. */
int cube_check_limits(const struct cube_backend *b, const struct cube_limits *limits, struct cube_err *err);

/* Answers. Strings are ended and made printable in place; false: not to be believed. */
bool cube_check_info(struct cube_info *info);
void cube_check_checkpoint(struct cube_checkpoint *c); /* makes its texts fit for a line */
bool cube_check_template(struct cube_template *t);
bool cube_check_template_config(struct cube_template_config *c);
void cube_check_status(const struct cube_backend *b, struct cube_status *st);
bool cube_check_root(const struct cube_root *root);
bool cube_check_listener(struct cube_listener *l);

/* A port above 0, an absolute path, a name. */
bool cube_check_target(const struct cube_target *t);

#endif
