/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as text of A-Z a-z 0-9 + / (RFC 4648), by libcrypto. */
#ifndef CUBEFS_BACKENDS_BASE_BASE64_H
#define CUBEFS_BACKENDS_BASE_BASE64_H

#include <stddef.h>

#include "backends/base/buf.h"

/* Adds the text of @data, padded. 0 or the buffer's error. */
int cube_base64_add(struct cube_buf *b, const void *data, size_t len);

/* Adds the bytes that @text stands for; the alphabet of URLs (- and _) is taken as well, and padding may be missing.
 * -EINVAL: it is no such text (nothing was added); else as above. */
int cube_base64_decode(struct cube_buf *b, const char *text, size_t len);

#endif
