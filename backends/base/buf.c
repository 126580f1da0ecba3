/* SPDX-License-Identifier: Apache-2.0 */
/* Growable bytes with a ceiling. */
#include "backends/base/buf.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/escape.h"
#include "backends/base/macros.h"

#define BUF_FIRST 64 /* bytes of the first allocation */

void cube_buf_init(struct cube_buf *b, size_t max)
{
	*b = CUBE_BUF(max);
}

void cube_buf_done(struct cube_buf *b)
{
	cube_free(b->data);
	cube_buf_init(b, b->max);
}

void cube_buf_reset(struct cube_buf *b)
{
	b->len = 0;
	b->error = 0;
	if (b->data != NULL)
		b->data[0] = '\0';
}

/* Capacity for @need bytes and the NUL, at least doubled so that adding is cheap on the whole. */
static size_t buf_capacity(const struct cube_buf *b, size_t need)
{
	size_t cap = b->cap > SIZE_MAX / 2 ? SIZE_MAX : b->cap * 2;

	if (cap > b->max)
		cap = b->max < SIZE_MAX ? b->max + 1 : SIZE_MAX;
	if (cap < BUF_FIRST)
		cap = BUF_FIRST;
	return cap > need ? cap : need + 1;
}

char *cube_buf_reserve(struct cube_buf *b, size_t len)
{
	if (b->error != 0)
		return NULL;
	if (b->len > b->max || len > b->max - b->len || len >= SIZE_MAX - b->len) {
		b->error = -EMSGSIZE;
		return NULL;
	}
	if (b->data == NULL || b->cap - b->len <= len) {
		size_t cap = buf_capacity(b, b->len + len);
		char *data = cube_realloc(b->data, cap);

		if (data == NULL) {
			b->error = -ENOMEM;
			return NULL;
		}
		b->data = data;
		b->cap = cap;
	}
	b->data[b->len] = '\0';
	return b->data + b->len;
}

int cube_buf_add(struct cube_buf *b, const void *data, size_t len)
{
	char *to = cube_buf_reserve(b, len);

	if (to == NULL)
		return b->error;
	if (len > 0)
		memcpy(to, data, len);
	to[len] = '\0';
	b->len += len;
	return 0;
}

int cube_buf_adds(struct cube_buf *b, const char *s)
{
	return cube_buf_add(b, s, strlen(s));
}

int cube_buf_addc(struct cube_buf *b, char c)
{
	return cube_buf_add(b, &c, 1);
}

int cube_buf_vprintf(struct cube_buf *b, const char *fmt, va_list ap)
{
	va_list again;
	char *to;
	int len;

	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (len < 0) {
		b->error = b->error != 0 ? b->error : -EINVAL;
		return b->error;
	}
	to = cube_buf_reserve(b, (size_t)len);
	if (to == NULL)
		return b->error;
	(void)vsnprintf(to, (size_t)len + 1, fmt, ap);
	b->len += (size_t)len;
	return 0;
}

int cube_buf_printf(struct cube_buf *b, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = cube_buf_vprintf(b, fmt, ap);
	va_end(ap);
	return r;
}

void cube_buf_drop(struct cube_buf *b, size_t len)
{
	if (len > b->len)
		len = b->len;
	if (len == 0)
		return;
	memmove(b->data, b->data + len, b->len - len);
	b->len -= len;
	b->data[b->len] = '\0';
}

void cube_buf_cut(struct cube_buf *b, size_t len)
{
	if (len >= b->len)
		return;
	b->len = len;
	b->data[len] = '\0';
}

const char *cube_buf_str(const struct cube_buf *b)
{
	if (b->data == NULL)
		return "";
	b->data[b->len] = '\0'; /* who used cube_buf_reserve wrote no NUL */
	return b->data;
}

char *cube_buf_steal(struct cube_buf *b, size_t *ret_len)
{
	size_t len = b->len;
	char *data;

	(void)cube_buf_str(b);
	data = b->data != NULL ? cube_steal(b->data) : cube_strdup("");
	cube_buf_init(b, b->max);
	if (data != NULL && ret_len != NULL)
		*ret_len = len;
	return data;
}

int cube_buf_add_escaped(struct cube_buf *b, const void *data, size_t len, bool esc_backslash)
{
	const unsigned char *s = data;

	while (len > 0 && b->error == 0) {
		char piece[CUBE_ESCAPE_MAX];
		size_t taken, n = cube_escape_step(s, len, esc_backslash, piece, &taken);

		(void)cube_buf_add(b, piece, n);
		s += taken;
		len -= taken;
	}
	return b->error;
}
