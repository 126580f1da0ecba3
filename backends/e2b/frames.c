/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of the Connect protocol: a byte of flags, four of length (big endian), so much JSON. */
#include "backends/e2b/e2b_priv.h"

#include <errno.h>
#include <string.h>

#define FRAME_HEAD       5
#define FRAME_COMPRESSED 1u
#define FRAME_LAST       2u

static const struct {
	const char *name;
	int code;
} frame_codes[] = {
	{"canceled", -EREMOTEIO},     {"invalid_argument", -EINVAL},   {"deadline_exceeded", -ETIMEDOUT},
	{"not_found", -ENOENT},       {"already_exists", -EEXIST},     {"permission_denied", -EACCES},
	{"unauthenticated", -EACCES}, {"resource_exhausted", -EDQUOT}, {"failed_precondition", -EBUSY},
	{"aborted", -EBUSY},          {"out_of_range", -EINVAL},       {"unimplemented", -EOPNOTSUPP},
	{"unavailable", -EHOSTDOWN},
};

int e2b_frames_code(const char *name)
{
	for (size_t i = 0; i < CUBE_COUNT(frame_codes); i++)
		if (strcmp(frame_codes[i].name, name) == 0)
			return frame_codes[i].code;
	return -EREMOTEIO;
}

void e2b_frames_init(struct e2b_frames *f)
{
	*f = (struct e2b_frames){.rest = CUBE_BUF(FRAME_HEAD + E2B_FRAME_MAX)};
}

void e2b_frames_done(struct e2b_frames *f)
{
	cube_buf_done(&f->rest);
}

static int frame_last(const json_t *message, struct cube_err *err)
{
	const json_t *why = json_object_get(message, "error");

	if (!json_is_object(why))
		return 0;
	return cube_fail(err, e2b_frames_code(cube_json_str(why, "code", "")),
			 "the sandbox ends the stream: %.200s",
			 cube_json_str(why, "message", cube_json_str(why, "code", "it does not say why")));
}

static int frame_take(struct e2b_frames *f, unsigned flags, const char *text, size_t len,
		      int (*each)(void *ctx, const json_t *message), void *ctx, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *message = NULL;
	struct cube_err why = {0};

	if ((flags & FRAME_COMPRESSED) != 0)
		return cube_fail(err, -EREMOTEIO, "the sandbox sends what is packed, which nobody asked for");
	if (cube_json_parse(text, len, "a message", &message, &why) < 0)
		return cube_fail(err, why.code == -ENOMEM ? -ENOMEM : -EREMOTEIO,
				 "the sandbox sends what is no JSON: %.150s", why.text);
	if ((flags & FRAME_LAST) == 0)
		return each(ctx, message);
	f->over = true;
	return frame_last(message, err);
}

static size_t frame_length(const char *data)
{
	const unsigned char *d = (const unsigned char *)data;

	return (size_t)d[1] << 24 | (size_t)d[2] << 16 | (size_t)d[3] << 8 | d[4];
}

/* The first frame of the buffer: 1 it was taken, 0 it is not whole. */
static int frames_next(struct e2b_frames *f, int (*each)(void *ctx, const json_t *message), void *ctx,
		       struct cube_err *err)
{
	size_t len;
	int rc;

	if (f->rest.len < FRAME_HEAD)
		return 0;
	len = frame_length(f->rest.data);
	if (len > E2B_FRAME_MAX || f->over)
		return cube_fail(err, -EREMOTEIO, "the sandbox sends %s",
				 f->over ? "more after the end" : "a message that is too long");
	if (f->rest.len - FRAME_HEAD < len)
		return 0;
	rc = frame_take(f, (unsigned char)f->rest.data[0], f->rest.data + FRAME_HEAD, len, each, ctx, err);
	cube_buf_drop(&f->rest, FRAME_HEAD + len);
	return rc == 0 ? 1 : rc;
}

int e2b_frames_feed(struct e2b_frames *f, const void *data, size_t len,
		    int (*each)(void *ctx, const json_t *message), void *ctx, struct cube_err *err)
{
	const char *from = data;
	int rc = 0;

	while (rc == 0 && len > 0) {
		size_t room = f->rest.max - f->rest.len, n = len < room ? len : room;

		if (cube_buf_add(&f->rest, from, n) < 0)
			return cube_fail(err, -ENOMEM, "out of memory");
		from += n;
		len -= n;
		do
			rc = frames_next(f, each, ctx, err);
		while (rc > 0);
	}
	return rc;
}

int e2b_frame(const json_t *message, struct cube_buf *out)
{
	static const char head[FRAME_HEAD];
	size_t at = out->len, len;

	if (cube_buf_add(out, head, FRAME_HEAD) < 0 || cube_json_write(message, out) < 0)
		return out->error;
	len = out->len - at - FRAME_HEAD;
	for (unsigned i = 0; i < 4; i++)
		out->data[at + 1 + i] = (char)(len >> (24 - 8 * i) & 0xff);
	return 0;
}
