/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation with a hook that fails the n-th call. */
#include "backends/base/alloc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/macros.h"

/* Allocations until the one that fails; 0: none will. */
static atomic_ulong fail_countdown;

void cube_alloc_fail_at(unsigned long nth)
{
	atomic_store(&fail_countdown, nth);
}

static bool alloc_must_fail(void)
{
	unsigned long left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);

	while (left != 0) {
		if (atomic_compare_exchange_weak(&fail_countdown, &left, left - 1)) {
			if (left == 1)
				errno = ENOMEM;
			return left == 1;
		}
	}
	return false;
}

void *cube_malloc(size_t size)
{
	return alloc_must_fail() ? NULL : malloc(size > 0 ? size : 1);
}

void *cube_calloc(size_t count, size_t size)
{
	size_t bytes;

	if (count == 0 || size == 0)
		count = size = 1;
	if (__builtin_mul_overflow(count, size,
				   &bytes)) /* the library checks too; its sanitized form aborts */
		return NULL;
	return alloc_must_fail() ? NULL : calloc(count, size);
}

void *cube_realloc(void *p, size_t size)
{
	return alloc_must_fail() ? NULL : realloc(p, size > 0 ? size : 1);
}

void *cube_memdup(const void *p, size_t size)
{
	void *copy = cube_malloc(size);

	if (copy != NULL && size > 0)
		memcpy(copy, p, size);
	return copy;
}

char *cube_strndup(const char *s, size_t max)
{
	size_t len = strnlen(s, max);
	char *copy = cube_malloc(len + 1);

	if (copy == NULL)
		return NULL;
	memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

char *cube_strdup(const char *s)
{
	return cube_memdup(s, strlen(s) + 1);
}

CUBE_PRINTF(1, 0) static char *alloc_vprintf(const char *fmt, va_list ap)
{
	va_list again;
	char *text = NULL;
	int len;

	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (len < 0)
		return NULL;
	text = cube_malloc((size_t)len + 1);
	if (text != NULL)
		(void)vsnprintf(text, (size_t)len + 1, fmt, ap);
	return text;
}

char *cube_asprintf(const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = alloc_vprintf(fmt, ap);
	va_end(ap);
	return text;
}

void cube_free(void *p)
{
	free(p);
}

void cube_free_auto(void *pp)
{
	void *p;

	memcpy(&p, pp, sizeof(p)); /* @pp is the address of a pointer of any type */
	cube_free(p);
}
