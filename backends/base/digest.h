/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256, for fingerprints: of templates, of the steps of a build. */
#ifndef CUBEFS_BACKENDS_BASE_DIGEST_H
#define CUBEFS_BACKENDS_BASE_DIGEST_H

#include <stddef.h>

#define CUBE_DIGEST_TEXT 72 /* "sha256:" and 64 hexadecimal digits */

struct cube_digest;

struct cube_digest *cube_digest_new(void); /* NULL: out of memory */
void cube_digest_free(struct cube_digest *d);
void cube_digest_add(struct cube_digest *d, const void *data, size_t len);
/* The text; the digest is used up. Returns @out. */
const char *cube_digest_end(struct cube_digest *d, char out[CUBE_DIGEST_TEXT]);

#endif
