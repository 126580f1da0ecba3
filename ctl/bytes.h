/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes in the JSON of our own state: byte n is the code point n, so that nothing is lost and every line
 * is valid. */
#ifndef CUBEFS_CTL_BYTES_H
#define CUBEFS_CTL_BYTES_H

#include "backends/base/json.h"

/* A quoted JSON string of @len bytes (no NUL among them), added to @out. */
int cube_bytes_quote(struct cube_buf *out, const void *data, size_t len);
/* The same as a value; NULL: memory. */
json_t *cube_bytes_json(const void *data, size_t len);
/* The bytes of a string value, added to @out. -EINVAL: not one of ours. */
int cube_bytes_read(const json_t *value, struct cube_buf *out);
/* As a string of its own, NULL where it is absent, bad or memory is out. */
char *cube_bytes_dup(const json_t *object, const char *key);
/* A NUL-separated text as an array of strings, and back. */
json_t *cube_bytes_list(const char *text, size_t len);
int cube_bytes_read_list(const json_t *array, struct cube_buf *out);

#endif
