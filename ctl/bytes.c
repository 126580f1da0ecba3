/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as JSON strings and back. */
#include "ctl/bytes.h"

#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"

#define BYTES_MAX ((size_t)16 << 20)

int cube_bytes_quote(struct cube_buf *out, const void *data, size_t len)
{
	const unsigned char *p = data;
	size_t plain = 0;

	cube_buf_addc(out, '"');
	for (size_t i = 0; i < len; i++) {
		if (p[i] >= ' ' && p[i] < 0x7f && p[i] != '"' && p[i] != '\\')
			continue;
		cube_buf_add(out, p + plain, i - plain);
		plain = i + 1;
		cube_buf_printf(out, "\\u%04x", p[i]);
	}
	cube_buf_add(out, p + plain, len - plain);
	return cube_buf_addc(out, '"');
}

json_t *cube_bytes_json(const void *data, size_t len)
{
	const unsigned char *p = data;
	struct cube_buf text = CUBE_BUF(2 * BYTES_MAX);
	json_t *value = NULL;

	for (size_t i = 0; i < len; i++) {
		if (p[i] >= 0x80)
			cube_buf_addc(&text, (char)(0xc0 | p[i] >> 6));
		cube_buf_addc(&text, (char)(p[i] >= 0x80 ? 0x80 | (p[i] & 0x3f) : p[i]));
	}
	if (text.error == 0)
		value = json_stringn(cube_buf_str(&text), text.len);
	cube_buf_done(&text);
	return value;
}

int cube_bytes_read(const json_t *value, struct cube_buf *out)
{
	const unsigned char *p = (const unsigned char *)json_string_value(value);
	size_t len = json_string_length(value);

	if (p == NULL)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		unsigned c = p[i];

		if (c >= 0x80) {
			if ((c & 0xfc) != 0xc0 || i + 1 == len)
				return -EINVAL;
			c = (c & 3) << 6 | (p[++i] & 0x3f);
		}
		cube_buf_addc(out, (char)c);
	}
	return out->error;
}

char *cube_bytes_dup(const json_t *object, const char *key)
{
	struct cube_buf text = CUBE_BUF(BYTES_MAX);
	char *copy = NULL;

	if (cube_bytes_read(json_object_get(object, key), &text) == 0)
		copy = cube_strdup(cube_buf_str(&text));
	cube_buf_done(&text);
	return copy;
}

json_t *cube_bytes_list(const char *text, size_t len)
{
	json_t *list = json_array();

	for (size_t at = 0; list != NULL && at < len;) {
		size_t n = strnlen(text + at, len - at);

		(void)json_array_append_new(list, cube_bytes_json(text + at, n));
		at += n + 1;
	}
	return list;
}

int cube_bytes_read_list(const json_t *array, struct cube_buf *out)
{
	for (size_t i = 0; i < json_array_size(array); i++) {
		int r = cube_bytes_read(json_array_get(array, i), out);

		if (r == 0)
			r = cube_buf_addc(out, '\0');
		if (r < 0)
			return r;
	}
	return out->error;
}
