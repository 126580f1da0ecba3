/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation. The only place that calls malloc, so that a test can make the n-th call fail. */
#ifndef CUBEFS_BACKENDS_BASE_ALLOC_H
#define CUBEFS_BACKENDS_BASE_ALLOC_H

#include <stddef.h>

#include "backends/base/macros.h"

/* Each returns NULL when memory is out (or the test hook says so); release with cube_free. 0 bytes is a
 * block, too. */
void *cube_malloc(size_t size) __attribute__((malloc, warn_unused_result));
void *cube_calloc(size_t count, size_t size) __attribute__((malloc, warn_unused_result));
void *cube_realloc(void *p, size_t size) __attribute__((warn_unused_result));
char *cube_strdup(const char *s) __attribute__((malloc, warn_unused_result));
char *cube_strndup(const char *s, size_t max) __attribute__((malloc, warn_unused_result));
void *cube_memdup(const void *p, size_t size) __attribute__((malloc, warn_unused_result));

/* A formatted string of any length, or NULL. */
char *cube_asprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2), warn_unused_result));

void cube_free(void *p);

/* Cleanup for any pointer variable: cube_auto(cube_free_auto) char *s = NULL; */
void cube_free_auto(void *pp);
#define cube_auto_str cube_auto(cube_free_auto) char *

/* Tests: the @nth allocation from now (1 is the next) fails, once; 0 switches this off. */
void cube_alloc_fail_at(unsigned long nth);

#endif
