/* SPDX-License-Identifier: Apache-2.0 */
/* Growable bytes with a mandatory ceiling. */
#ifndef CUBEFS_BACKENDS_BASE_BUF_H
#define CUBEFS_BACKENDS_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct cube_buf {
	char *data; /* NUL behind the last byte once anything was added; NULL before */
	size_t len;
	size_t cap;
	size_t max; /* ceiling of len */
	int error;  /* first failure (-EMSGSIZE, -ENOMEM): sticky, so callers may check once at the end */
};

#define CUBE_BUF(limit) ((struct cube_buf){.max = (limit)})

/* An empty buffer that will hold @max bytes at most. Allocates nothing. */
void cube_buf_init(struct cube_buf *b, size_t max);
/* Releases the memory and leaves an empty buffer with the same ceiling. */
void cube_buf_done(struct cube_buf *b);
/* len = 0, keeps the memory, clears the error. */
void cube_buf_reset(struct cube_buf *b);

/* All return 0 or the sticky error; after an error nothing is added. */
int cube_buf_add(struct cube_buf *b, const void *data, size_t len);
int cube_buf_adds(struct cube_buf *b, const char *s);
int cube_buf_addc(struct cube_buf *b, char c);
int cube_buf_printf(struct cube_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int cube_buf_vprintf(struct cube_buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* Room for @len more bytes and a NUL; returns where they go (caller adds to b->len), NULL on error. */
char *cube_buf_reserve(struct cube_buf *b, size_t len);

/* Drops the first @len bytes. */
void cube_buf_drop(struct cube_buf *b, size_t len);
/* Drops what is behind the first @len bytes. */
void cube_buf_cut(struct cube_buf *b, size_t len);

/* The content as a string ("" when empty); valid until the next change. */
const char *cube_buf_str(const struct cube_buf *b);

/* Hands the memory over (NULL only when out of memory); the buffer is empty afterwards, its error cleared.
 * @ret_len may be NULL. */
char *cube_buf_steal(struct cube_buf *b, size_t *ret_len);

/* Adds @len bytes of @data, printable UTF-8 as it is, each byte of all else (and backslash if @esc_backslash)
 * as \xHH. Control characters, line separators and direction overrides are not printable. */
int cube_buf_add_escaped(struct cube_buf *b, const void *data, size_t len, bool esc_backslash);

#endif
