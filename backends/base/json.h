/* SPDX-License-Identifier: Apache-2.0 */
/* Our narrow view of jansson: the only header that includes it. */
#ifndef CUBEFS_BACKENDS_BASE_JSON_H
#define CUBEFS_BACKENDS_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/base/buf.h"
#include "backends/base/err.h"

/* Cleanup: cube_auto(cube_json_auto) json_t *o = NULL; */
void cube_json_auto(json_t **o);

/* Parse exactly one value (of any kind); duplicates are refused. @what names the source in the sentence.
 * *ret is a new reference. -EINVAL, -ENOMEM. */
int cube_json_parse(const char *text, size_t len, const char *what, json_t **ret, struct cube_err *err);

/* Compact text of @o added to @b. 0 or the buffer's sticky error (a part may have been added then). */
int cube_json_write(const json_t *o, struct cube_buf *b);

/* Members of an object, with a value for "absent or of another type". Strings are borrowed from @o;
 * one with a NUL inside counts as of another type. @o may be NULL or no object: all is absent. */
const char *cube_json_str(const json_t *o, const char *key, const char *absent);
int64_t cube_json_int(const json_t *o, const char *key, int64_t absent);
bool cube_json_bool(const json_t *o, const char *key, bool absent);

/* A string value of any bytes: valid UTF-8 stays, other bytes become U+FFFD. New reference; NULL:
 * out of memory. */
json_t *cube_json_bytes(const void *data, size_t len);

#endif
