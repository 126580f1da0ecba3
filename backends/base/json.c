/* SPDX-License-Identifier: Apache-2.0 */
/* JSON by jansson, with our buffers, sentences and allocation. */
#include "backends/base/json.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/escape.h"

static void json_setup(void)
{
	/* cube_free and free are the same, so values made before are no trouble. */
	json_set_alloc_funcs(cube_malloc, cube_free);
	json_object_seed(0); /* now, not by two threads at once in the first parse */
}

static void json_prepare(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, json_setup);
}

void cube_json_auto(json_t **o)
{
	json_decref(*o);
}

int cube_json_parse(const char *text, size_t len, const char *what, json_t **ret, struct cube_err *err)
{
	json_error_t why;
	json_t *o;

	json_prepare();
	o = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
	if (o != NULL) {
		*ret = o;
		return 0;
	}
	if (json_error_code(&why) == json_error_out_of_memory)
		return cube_fail(err, -ENOMEM, "%s: out of memory", what);
	return cube_fail(err, -EINVAL, "%s: line %d, column %d: %s", what, why.line, why.column, why.text);
}

static int json_write_piece(const char *piece, size_t len, void *ctx)
{
	return cube_buf_add(ctx, piece, len) < 0 ? -1 : 0;
}

int cube_json_write(const json_t *o, struct cube_buf *b)
{
	json_prepare();
	if (json_dump_callback(o, json_write_piece, b, JSON_COMPACT | JSON_ENCODE_ANY) == 0)
		return 0;
	if (b->error == 0)
		b->error =
			-ENOMEM; /* jansson's own; what it cannot write (a cycle, a NULL) nobody here makes */
	return b->error;
}

const char *cube_json_str(const json_t *o, const char *key, const char *absent)
{
	const json_t *v = json_object_get(o, key);

	/* One with a NUL inside would be cut by whoever takes it for a C string. */
	if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v))
		return absent;
	return json_string_value(v);
}

int64_t cube_json_int(const json_t *o, const char *key, int64_t absent)
{
	const json_t *v = json_object_get(o, key);

	return json_is_integer(v) ? json_integer_value(v) : absent;
}

bool cube_json_bool(const json_t *o, const char *key, bool absent)
{
	const json_t *v = json_object_get(o, key);

	return json_is_boolean(v) ? json_is_true(v) : absent;
}

json_t *cube_json_bytes(const void *data, size_t len)
{
	static const char replacement[] = "\xef\xbf\xbd";
	struct cube_buf text = CUBE_BUF(SIZE_MAX / 4);
	const unsigned char *s = data;
	json_t *o = NULL;

	json_prepare();
	while (len > 0 && text.error == 0) {
		unsigned c;
		size_t n = cube_utf8_decode(s, len, &c);

		(void)cube_buf_add(&text, n > 0 ? (const char *)s : replacement,
				   n > 0 ? n : strlen(replacement));
		s += n > 0 ? n : 1;
		len -= n > 0 ? n : 1;
	}
	if (text.error == 0)
		o = json_stringn(cube_buf_str(&text), text.len);
	cube_buf_done(&text);
	return o;
}
