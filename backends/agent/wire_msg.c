/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of the agent protocol. */
#include "backends/agent/wire.h"

#include <string.h>

bool cube_wire_put_plain(struct cube_wire_out *out, enum cube_wire_type type, uint64_t id)
{
	return cube_wire_end(out, cube_wire_begin(out, type, 0, id));
}

bool cube_wire_put_number(struct cube_wire_out *out, enum cube_wire_type type, uint64_t id, uint64_t v)
{
	size_t at = cube_wire_begin(out, type, 0, id);

	cube_wire_put_u64(out, v);
	return cube_wire_end(out, at);
}

bool cube_wire_put_pair(struct cube_wire_out *out, enum cube_wire_type type, uint64_t id, uint64_t a,
			uint64_t b)
{
	size_t at = cube_wire_begin(out, type, 0, id);

	cube_wire_put_u64(out, a);
	cube_wire_put_u64(out, b);
	return cube_wire_end(out, at);
}

bool cube_wire_get_number(const void *body, size_t len, uint64_t *ret)
{
	struct cube_wire_in in;

	cube_wire_in_init(&in, body, len);
	*ret = cube_wire_u64(&in);
	return cube_wire_in_done(&in);
}

bool cube_wire_get_pair(const void *body, size_t len, uint64_t *ret_a, uint64_t *ret_b)
{
	struct cube_wire_in in;

	cube_wire_in_init(&in, body, len);
	*ret_a = cube_wire_u64(&in);
	*ret_b = cube_wire_u64(&in);
	return cube_wire_in_done(&in);
}

bool cube_wire_put_hello(struct cube_wire_out *out, const struct cube_wire_hello *m)
{
	size_t at = cube_wire_begin(out, CUBE_WIRE_HELLO, 0, 0);

	cube_wire_put_u32(out, CUBE_WIRE_MAGIC);
	cube_wire_put_u16(out, m->min);
	cube_wire_put_u16(out, m->max);
	cube_wire_put_u64(out, m->caps);
	cube_wire_put_u64(out, m->boot);
	return cube_wire_end(out, at);
}

/* A later version may have more behind: what is known here stays where it is. */
bool cube_wire_get_hello(const void *body, size_t len, struct cube_wire_hello *ret)
{
	struct cube_wire_in in;
	uint32_t magic;

	cube_wire_in_init(&in, body, len);
	magic = cube_wire_u32(&in);
	ret->min = cube_wire_u16(&in);
	ret->max = cube_wire_u16(&in);
	ret->caps = cube_wire_u64(&in);
	ret->boot = cube_wire_u64(&in);
	return !in.bad && magic == CUBE_WIRE_MAGIC && ret->min > 0 && ret->min <= ret->max;
}

unsigned cube_wire_version(const struct cube_wire_hello *m)
{
	unsigned high = m->max < CUBE_WIRE_VERSION_MAX ? m->max : CUBE_WIRE_VERSION_MAX;
	unsigned low = m->min > CUBE_WIRE_VERSION_MIN ? m->min : CUBE_WIRE_VERSION_MIN;

	return high >= low ? high : 0;
}

#define START_FIXED  40
#define START_PIECES 5

static void start_pieces(const struct cube_wire_start *m, unsigned char fixed[START_FIXED],
			 struct cube_wire_piece pieces[START_PIECES])
{
	struct cube_wire_out out;

	cube_wire_out_init(&out, fixed, START_FIXED);
	cube_wire_put_u64(&out, m->session);
	cube_wire_put_u64(&out, m->limit);
	cube_wire_put_u32(&out, m->timeout_s);
	cube_wire_put_u16(&out, m->what);
	cube_wire_put_u16(&out, m->rows);
	cube_wire_put_u16(&out, m->cols);
	cube_wire_put_u16(&out, (uint16_t)m->cwd_len);
	cube_wire_put_u16(&out, (uint16_t)m->user_len);
	cube_wire_put_u16(&out, 0);
	cube_wire_put_u32(&out, (uint32_t)m->env_len);
	cube_wire_put_u32(&out, (uint32_t)m->text_len);
	pieces[0] = (struct cube_wire_piece){fixed, out.len};
	pieces[1] = (struct cube_wire_piece){m->cwd, m->cwd_len};
	pieces[2] = (struct cube_wire_piece){m->user, m->user_len};
	pieces[3] = (struct cube_wire_piece){m->env, m->env_len};
	pieces[4] = (struct cube_wire_piece){m->text, m->text_len};
}

static bool start_fits(const struct cube_wire_start *m)
{
	return m->cwd_len <= CUBE_WIRE_CWD_MAX && m->user_len <= CUBE_WIRE_USER_MAX &&
	       m->env_len <= CUBE_WIRE_ENV_MAX && m->text_len <= CUBE_WIRE_TEXT_MAX;
}

size_t cube_wire_start_size(const struct cube_wire_start *m)
{
	struct cube_wire_piece pieces[START_PIECES];
	unsigned char fixed[START_FIXED];

	start_pieces(m, fixed, pieces);
	return cube_wire_cut_size(pieces, START_PIECES);
}

bool cube_wire_put_start(struct cube_wire_out *out, uint64_t job, unsigned flags,
			 const struct cube_wire_start *m)
{
	struct cube_wire_piece pieces[START_PIECES];
	unsigned char fixed[START_FIXED];

	if (!start_fits(m))
		return false;
	start_pieces(m, fixed, pieces);
	return cube_wire_cut(out, CUBE_WIRE_START, flags, job, pieces, START_PIECES);
}

static bool no_nul(const char *s, size_t len)
{
	return len == 0 || memchr(s, 0, len) == NULL;
}

bool cube_wire_get_start(const void *data, size_t len, struct cube_wire_start *ret)
{
	struct cube_wire_in in;

	cube_wire_in_init(&in, data, len);
	ret->session = cube_wire_u64(&in);
	ret->limit = cube_wire_u64(&in);
	ret->timeout_s = cube_wire_u32(&in);
	ret->what = cube_wire_u16(&in);
	ret->rows = cube_wire_u16(&in);
	ret->cols = cube_wire_u16(&in);
	ret->cwd_len = cube_wire_u16(&in);
	ret->user_len = cube_wire_u16(&in);
	(void)cube_wire_u16(&in);
	ret->env_len = cube_wire_u32(&in);
	ret->text_len = cube_wire_u32(&in);
	if (in.bad || !start_fits(ret) || (ret->what & ~CUBE_WIRE_START_ALL) != 0)
		return false;
	ret->cwd = cube_wire_bytes(&in, ret->cwd_len);
	ret->user = cube_wire_bytes(&in, ret->user_len);
	ret->env = cube_wire_bytes(&in, ret->env_len);
	ret->text = cube_wire_bytes(&in, ret->text_len);
	return cube_wire_in_done(&in) && no_nul(ret->cwd, ret->cwd_len) && no_nul(ret->user, ret->user_len);
}

bool cube_wire_put_started(struct cube_wire_out *out, uint64_t job, const struct cube_wire_started *m)
{
	size_t at = cube_wire_begin(out, CUBE_WIRE_STARTED, 0, job);

	cube_wire_put_u32(out, m->pid);
	cube_wire_put_u8(out, m->tail);
	cube_wire_put_u64(out, m->session);
	cube_wire_put_u64(out, m->received);
	cube_wire_put_u64(out, m->taken);
	return cube_wire_end(out, at);
}

bool cube_wire_get_started(const void *body, size_t len, struct cube_wire_started *ret)
{
	struct cube_wire_in in;
	uint8_t tail;

	cube_wire_in_init(&in, body, len);
	ret->pid = cube_wire_u32(&in);
	tail = cube_wire_u8(&in);
	ret->tail = tail != 0;
	ret->session = cube_wire_u64(&in);
	ret->received = cube_wire_u64(&in);
	ret->taken = cube_wire_u64(&in);
	return cube_wire_in_done(&in) && tail <= 1 && ret->pid <= INT32_MAX && ret->taken <= ret->received;
}

static void put_output_fields(struct cube_wire_out *out, const struct cube_wire_output *m)
{
	cube_wire_put_u64(out, m->total);
	cube_wire_put_u64(out, m->err_total);
	cube_wire_put_u64(out, m->lost);
}

/* Totals are file offsets: the top bit is never set, and sums of them do not wrap. */
static bool get_output_fields(struct cube_wire_in *in, struct cube_wire_output *ret)
{
	ret->total = cube_wire_u64(in);
	ret->err_total = cube_wire_u64(in);
	ret->lost = cube_wire_u64(in);
	return ret->total <= INT64_MAX && ret->err_total <= ret->total && ret->lost <= INT64_MAX;
}

bool cube_wire_put_output(struct cube_wire_out *out, uint64_t job, const struct cube_wire_output *m)
{
	size_t at = cube_wire_begin(out, CUBE_WIRE_OUTPUT, 0, job);

	put_output_fields(out, m);
	return cube_wire_end(out, at);
}

bool cube_wire_get_output(const void *body, size_t len, struct cube_wire_output *ret)
{
	struct cube_wire_in in;
	bool ok;

	cube_wire_in_init(&in, body, len);
	ok = get_output_fields(&in, ret);
	return cube_wire_in_done(&in) && ok;
}

bool cube_wire_put_data(struct cube_wire_out *out, uint64_t job, const struct cube_wire_data *m)
{
	size_t at = cube_wire_begin(out, CUBE_WIRE_DATA, 0, job);

	cube_wire_put_u8(out, m->err);
	cube_wire_put_u64(out, m->offset);
	cube_wire_put_u64(out, m->before);
	cube_wire_put_bytes(out, m->bytes, m->len);
	return cube_wire_end(out, at);
}

bool cube_wire_get_data(const void *body, size_t len, struct cube_wire_data *ret)
{
	struct cube_wire_in in;
	uint8_t err;

	cube_wire_in_init(&in, body, len);
	err = cube_wire_u8(&in);
	ret->err = err != 0;
	ret->offset = cube_wire_u64(&in);
	ret->before = cube_wire_u64(&in);
	if (in.bad || err > 1)
		return false;
	ret->len = in.left;
	ret->bytes = cube_wire_bytes(&in, in.left);
	return ret->len > 0 && ret->len <= CUBE_WIRE_INPUT_MAX && ret->offset <= INT64_MAX - ret->len &&
	       ret->before <= ret->offset;
}

#define SESSION_FIXED  7
#define SESSION_PIECES 3

static void session_pieces(const struct cube_wire_session *m, unsigned char fixed[SESSION_FIXED],
			   struct cube_wire_piece pieces[SESSION_PIECES])
{
	struct cube_wire_out out;

	cube_wire_out_init(&out, fixed, SESSION_FIXED);
	cube_wire_put_u8(&out, m->what);
	cube_wire_put_u16(&out, (uint16_t)m->cwd_len);
	cube_wire_put_u32(&out, (uint32_t)m->exports_len);
	pieces[0] = (struct cube_wire_piece){fixed, out.len};
	pieces[1] = (struct cube_wire_piece){m->cwd, m->cwd_len};
	pieces[2] = (struct cube_wire_piece){m->exports, m->exports_len};
}

size_t cube_wire_session_size(const struct cube_wire_session *m)
{
	struct cube_wire_piece pieces[SESSION_PIECES];
	unsigned char fixed[SESSION_FIXED];

	session_pieces(m, fixed, pieces);
	return cube_wire_cut_size(pieces, SESSION_PIECES);
}

bool cube_wire_put_session(struct cube_wire_out *out, uint64_t session, const struct cube_wire_session *m)
{
	struct cube_wire_piece pieces[SESSION_PIECES];
	unsigned char fixed[SESSION_FIXED];

	if (m->cwd_len > CUBE_WIRE_CWD_MAX || m->exports_len > CUBE_WIRE_EXPORTS_MAX)
		return false;
	session_pieces(m, fixed, pieces);
	return cube_wire_cut(out, CUBE_WIRE_SESSION, 0, session, pieces, SESSION_PIECES);
}

bool cube_wire_get_session(const void *data, size_t len, struct cube_wire_session *ret)
{
	struct cube_wire_in in;

	cube_wire_in_init(&in, data, len);
	ret->what = cube_wire_u8(&in);
	ret->cwd_len = cube_wire_u16(&in);
	ret->exports_len = cube_wire_u32(&in);
	if (in.bad || ret->cwd_len > CUBE_WIRE_CWD_MAX || ret->exports_len > CUBE_WIRE_EXPORTS_MAX)
		return false;
	ret->cwd = cube_wire_bytes(&in, ret->cwd_len);
	ret->exports = cube_wire_bytes(&in, ret->exports_len);
	return cube_wire_in_done(&in) && no_nul(ret->cwd, ret->cwd_len) &&
	       no_nul(ret->exports, ret->exports_len);
}

bool cube_wire_put_ended(struct cube_wire_out *out, uint64_t job, const struct cube_wire_ended *m)
{
	size_t at = cube_wire_begin(out, CUBE_WIRE_ENDED, 0, job);

	cube_wire_put_u8(out, m->how);
	cube_wire_put_u8(out, m->code);
	cube_wire_put_u8(out, m->signal);
	cube_wire_put_u8(out, 0);
	put_output_fields(out, &m->output);
	cube_wire_put_u64(out, m->wall_ns);
	cube_wire_put_u32(out, (uint32_t)-m->err);
	cube_wire_put_bytes(out, m->text, m->text_len < CUBE_WIRE_ERR_MAX ? m->text_len : CUBE_WIRE_ERR_MAX);
	return cube_wire_end(out, at);
}

bool cube_wire_get_ended(const void *body, size_t len, struct cube_wire_ended *ret)
{
	struct cube_wire_in in;
	uint32_t err;
	bool ok;

	cube_wire_in_init(&in, body, len);
	ret->how = cube_wire_u8(&in);
	ret->code = cube_wire_u8(&in);
	ret->signal = cube_wire_u8(&in);
	(void)cube_wire_u8(&in);
	ok = get_output_fields(&in, &ret->output);
	ret->wall_ns = cube_wire_u64(&in);
	err = cube_wire_u32(&in);
	if (in.bad || err > 4095 || in.left > CUBE_WIRE_ERR_MAX)
		return false;
	ret->err = -(int32_t)err;
	ret->text_len = in.left;
	ret->text = cube_wire_bytes(&in, in.left);
	return ok && ret->how < CUBE_WIRE_HOWS && ret->signal <= 64;
}
