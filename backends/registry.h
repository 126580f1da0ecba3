/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of backend: the only place that names them. */
#ifndef CUBEFS_BACKENDS_REGISTRY_H
#define CUBEFS_BACKENDS_REGISTRY_H

#include "backends/backend.h"

/* Constant tables, NULL ended. The first is the embedded default. */
extern const struct cube_backend_ops *const cube_backend_kinds[];

/* By name; NULL: no such kind. */
const struct cube_backend_ops *cube_backend_find(const char *kind);

#endif
