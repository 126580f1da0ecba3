/* SPDX-License-Identifier: Apache-2.0 */
/* A verb line split into words.
 *
 * Words are separated by blanks and tabs; a quote may begin anywhere in a word: '...' ('' inside stands for one
 * quote) or "..." (with \" \\ \n \t); `#` at the start of a word begins a comment. */
#ifndef CUBEFS_CTL_WORDS_H
#define CUBEFS_CTL_WORDS_H

#include <stddef.h>

#include "backends/base/err.h"

#define CUBE_WORDS_MAX 4096

/* Splits @len bytes (no newline needed) into *ret: NULL ended, one block, cube_free frees all. *ret_n 0 for an empty
 * line. -EINVAL: a quote that does not end, an unknown escape, a NUL, more than CUBE_WORDS_MAX words. */
int cube_words_split(const char *line, size_t len, char ***ret, unsigned *ret_n, struct cube_err *err);

#endif
