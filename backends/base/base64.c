/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/base/base64.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>

#define PIECE ((size_t)12 << 10) /* at once: a multiple of three and of four */

int cube_base64_add(struct cube_buf *b, const void *data, size_t len)
{
	const unsigned char *from = data;

	while (len > 0) {
		size_t n = len < PIECE ? len : PIECE;
		char *to = cube_buf_reserve(b, (n + 2) / 3 * 4);

		if (to == NULL)
			return b->error;
		b->len += (size_t)EVP_EncodeBlock((unsigned char *)to, from, (int)n);
		from += n;
		len -= n;
	}
	return b->error;
}

/* @n characters at most PIECE in the alphabet that libcrypto knows, filled up to whole groups: how many. */
static size_t base64_plain(const char *text, size_t n, unsigned char *out)
{
	size_t to = 0;

	for (; to < n; to++)
		out[to] = (unsigned char)(text[to] == '-' ? '+' : text[to] == '_' ? '/' : text[to]);
	while (to % 4 != 0)
		out[to++] = '='; /* zeros to libcrypto */
	return to;
}

int cube_base64_decode(struct cube_buf *b, const char *text, size_t len)
{
	unsigned char plain[PIECE];
	size_t start = b->len;

	while (len > 0 && text[len - 1] == '=')
		len--;
	while (len > 0 && b->error == 0) {
		size_t n = len < PIECE ? len : PIECE, chars = base64_plain(text, n, plain);
		char *to = cube_buf_reserve(b, chars / 4 * 3);

		if (to == NULL)
			break;
		if (n % 4 == 1 || memchr(text, '=', n) != NULL ||
		    EVP_DecodeBlock((unsigned char *)to, plain, (int)chars) != (int)(chars / 4 * 3)) {
			cube_buf_cut(b, start);
			return -EINVAL;
		}
		b->len += chars / 4 * 3 - (chars - n);
		b->data[b->len] = '\0';
		text += n;
		len -= n;
	}
	return b->error;
}
