/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file: INI text (inih inside), kept as sections of strings. What the keys mean is
 * the reader's matter; this module knows where a value stood, so that a complaint can name the line. */
#ifndef CUBEFS_BACKENDS_BASE_CONF_H
#define CUBEFS_BACKENDS_BASE_CONF_H

#include <stddef.h>

#include "backends/base/err.h"

struct cube_conf;
struct cube_conf_section;

/* Parse @text (a file's content; @what names it in sentences). Twice the same section or the same key in
 * a section, a line that is none, a NUL, over 1 MiB: -EINVAL with the line's number; -ENOMEM.
 *
 * A line is `[section]`, `key = value` (or `key: value`), or a comment, which starts with '#' or ';'. Blanks
 * round names and values do not count, nor does indentation: no value goes on in the next line. A ';' after
 * a blank starts a comment in any line. A line has 8 KiB at most (less where the library was built so). */
int cube_conf_parse(const char *text, size_t len, const char *what, struct cube_conf **ret,
		    struct cube_err *err);
void cube_conf_free(struct cube_conf *c); /* NULL is harmless */

/* The section of that name ("" for what stands before the first), or NULL. */
const struct cube_conf_section *cube_conf_find(const struct cube_conf *c, const char *section);
/* All sections in order; NULL at the end. */
const struct cube_conf_section *cube_conf_at(const struct cube_conf *c, size_t index);

const char *cube_conf_section_name(const struct cube_conf_section *s);
/* Value of a key, or NULL (also where @s is NULL). Borrowed. */
const char *cube_conf_get(const struct cube_conf_section *s, const char *key);
/* Keys in order; NULL at the end. */
const char *cube_conf_key(const struct cube_conf_section *s, size_t index);
/* -EINVAL naming file, line and key for the first key of @s that is not in @known (NULL ended). */
int cube_conf_check(const struct cube_conf_section *s, const char *const *known, struct cube_err *err);

#endif
