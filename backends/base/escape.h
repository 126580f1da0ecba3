/* SPDX-License-Identifier: Apache-2.0 */
/* Making outside text safe for one printed line, a character at a time. For the modules of this folder;
 * others use cube_buf_add_escaped. */
#ifndef CUBEFS_BACKENDS_BASE_ESCAPE_H
#define CUBEFS_BACKENDS_BASE_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

#define CUBE_ESCAPE_MAX 4 /* the most that one step writes */

/* Takes the first character of the @len (1 or more) bytes at @s and writes to @out what stands for it: a
 * printable UTF-8 character as it is, one byte of anything else as \xHH. Control characters, U+0080 to
 * U+009F, line separators and direction overrides are not printable. Returns the bytes written; *ret_taken:
 * those used. */
size_t cube_escape_step(const unsigned char *s, size_t len, bool esc_backslash, char out[CUBE_ESCAPE_MAX],
			size_t *ret_taken);

/* The string @s into @out (@size > 0), cut between characters, NUL ended. Returns its length. */
size_t cube_escape_into(char *out, size_t size, const char *s);

/* Bytes of the UTF-8 character at the start of @s; 0 where there is none (also cut, overlong, surrogate).
 * *ret_c is written where there is one. */
size_t cube_utf8_decode(const unsigned char *s, size_t len, unsigned *ret_c);

#endif
