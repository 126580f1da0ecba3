/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 decoding and the escaping of what is not printable. */
#include "backends/base/escape.h"

#include <string.h>

#include "backends/base/macros.h"

/* One row for each length of a sequence; `first` of what may not be shorter. */
static const struct utf8_shape {
	unsigned char mask, lead;
	unsigned first;
} utf8_shapes[] = {
	{.mask = 0x80, .lead = 0x00, .first = 0},
	{.mask = 0xe0, .lead = 0xc0, .first = 0x80},
	{.mask = 0xf0, .lead = 0xe0, .first = 0x800},
	{.mask = 0xf8, .lead = 0xf0, .first = 0x10000},
};

size_t cube_utf8_decode(const unsigned char *s, size_t len, unsigned *ret_c)
{
	for (size_t n = 0; n < CUBE_COUNT(utf8_shapes); n++) {
		const struct utf8_shape *shape = &utf8_shapes[n];
		unsigned c;

		if (len <= n || (s[0] & shape->mask) != shape->lead)
			continue;
		c = s[0] & (unsigned char)~shape->mask;
		for (size_t i = 1; i <= n; i++) {
			if ((s[i] & 0xc0) != 0x80)
				return 0;
			c = c << 6 | (s[i] & 0x3fu);
		}
		if (c < shape->first || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
			return 0;
		*ret_c = c;
		return n + 1;
	}
	return 0;
}

static const struct char_range {
	unsigned first, last;
} unprintable[] = {
	{0x00, 0x1f},     {0x7f, 0x9f},
	{0x2028, 0x202e}, /* line and paragraph separators, direction embeddings and overrides */
	{0x2066, 0x2069}, /* direction isolates */
	{0xfff9, 0xfffb},
};

static bool char_printable(unsigned c)
{
	for (size_t i = 0; i < CUBE_COUNT(unprintable); i++) {
		if (c >= unprintable[i].first && c <= unprintable[i].last)
			return false;
	}
	return true;
}

size_t cube_escape_step(const unsigned char *s, size_t len, bool esc_backslash, char out[CUBE_ESCAPE_MAX],
			size_t *ret_taken)
{
	static const char hex[] = "0123456789abcdef";
	unsigned c = 0;
	size_t n = cube_utf8_decode(s, len, &c);

	if (n > 0 && char_printable(c) && !(esc_backslash && c == '\\')) {
		memcpy(out, s, n);
		*ret_taken = n;
		return n;
	}
	out[0] = '\\';
	out[1] = 'x';
	out[2] = hex[s[0] >> 4];
	out[3] = hex[s[0] & 15];
	*ret_taken = 1;
	return 4;
}

size_t cube_escape_into(char *out, size_t size, const char *s)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t left = strlen(s), used = 0;

	while (left > 0) {
		char piece[CUBE_ESCAPE_MAX];
		size_t taken, n = cube_escape_step(p, left, false, piece, &taken);

		if (n >= size - used)
			break;
		memcpy(out + used, piece, n);
		used += n;
		p += taken;
		left -= taken;
	}
	out[used] = '\0';
	return used;
}
