/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256, as templates' fingerprints. */
#ifndef CUBEFS_BACKENDS_LOCAL_DIGEST_H
#define CUBEFS_BACKENDS_LOCAL_DIGEST_H

#include <stddef.h>

#define CUBE_DIGEST_TEXT 72 /* "sha256:" and 64 hexadecimal digits */

struct cube_local_digest;

struct cube_local_digest *cube_local_digest_new(void); /* NULL: out of memory */
void cube_local_digest_free(struct cube_local_digest *d);
void cube_local_digest_add(struct cube_local_digest *d, const void *data, size_t len);
/* The text; the digest is used up. Returns @out. */
const char *cube_local_digest_end(struct cube_local_digest *d, char out[CUBE_DIGEST_TEXT]);

#endif
