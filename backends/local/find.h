/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in PATH. */
#ifndef CUBEFS_BACKENDS_LOCAL_FIND_H
#define CUBEFS_BACKENDS_LOCAL_FIND_H

#include <stdbool.h>
#include <stddef.h>

/* The absolute path of @name in PATH and the usual places for administrators; "" in @out and false: none. */
bool cube_local_find_program(const char *name, char *out, size_t size);

#endif
