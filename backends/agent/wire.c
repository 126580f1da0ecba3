/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of the agent protocol: bounded reading and writing, cutting and joining of long messages. */
#include "backends/agent/wire.h"

#include <errno.h>
#include <string.h>

void cube_wire_in_init(struct cube_wire_in *in, const void *data, size_t len)
{
	*in = (struct cube_wire_in){.p = data, .left = len};
}

const void *cube_wire_bytes(struct cube_wire_in *in, size_t len)
{
	const unsigned char *at = in->p;

	if (in->bad || len > in->left) {
		in->bad = true;
		return NULL;
	}
	if (len > 0)
		in->p += len;
	in->left -= len;
	return at;
}

static uint64_t wire_number(struct cube_wire_in *in, size_t size)
{
	const unsigned char *at = cube_wire_bytes(in, size);
	uint64_t v = 0;

	if (at == NULL)
		return 0;
	for (size_t i = size; i > 0; i--)
		v = v << 8 | at[i - 1];
	return v;
}

uint8_t cube_wire_u8(struct cube_wire_in *in)
{
	return (uint8_t)wire_number(in, 1);
}

uint16_t cube_wire_u16(struct cube_wire_in *in)
{
	return (uint16_t)wire_number(in, 2);
}

uint32_t cube_wire_u32(struct cube_wire_in *in)
{
	return (uint32_t)wire_number(in, 4);
}

uint64_t cube_wire_u64(struct cube_wire_in *in)
{
	return wire_number(in, 8);
}

bool cube_wire_in_done(const struct cube_wire_in *in)
{
	return !in->bad && in->left == 0;
}

void cube_wire_out_init(struct cube_wire_out *out, void *data, size_t cap)
{
	*out = (struct cube_wire_out){.p = data, .cap = cap};
}

void cube_wire_put_bytes(struct cube_wire_out *out, const void *data, size_t len)
{
	if (out->full || len > out->cap - out->len) {
		out->full = true;
		return;
	}
	if (len > 0)
		memcpy(out->p + out->len, data, len);
	out->len += len;
}

static void wire_put_number(struct cube_wire_out *out, uint64_t v, size_t size)
{
	unsigned char bytes[8];

	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(v >> (8 * i));
	cube_wire_put_bytes(out, bytes, size);
}

void cube_wire_put_u8(struct cube_wire_out *out, uint8_t v)
{
	wire_put_number(out, v, 1);
}

void cube_wire_put_u16(struct cube_wire_out *out, uint16_t v)
{
	wire_put_number(out, v, 2);
}

void cube_wire_put_u32(struct cube_wire_out *out, uint32_t v)
{
	wire_put_number(out, v, 4);
}

void cube_wire_put_u64(struct cube_wire_out *out, uint64_t v)
{
	wire_put_number(out, v, 8);
}

size_t cube_wire_begin(struct cube_wire_out *out, enum cube_wire_type type, unsigned flags, uint64_t id)
{
	size_t at = out->len;

	cube_wire_put_u32(out, 0);
	cube_wire_put_u16(out, (uint16_t)type);
	cube_wire_put_u16(out, (uint16_t)flags);
	cube_wire_put_u64(out, id);
	return at;
}

bool cube_wire_end(struct cube_wire_out *out, size_t begun)
{
	struct cube_wire_out head = {.p = out->p + begun, .cap = 4};

	if (out->full || out->len - begun > CUBE_WIRE_HEADER + CUBE_WIRE_BODY_MAX) {
		out->len = begun;
		out->full = false;
		return false;
	}
	cube_wire_put_u32(&head, (uint32_t)(out->len - begun - CUBE_WIRE_HEADER));
	return true;
}

void cube_wire_feed_init(struct cube_wire_feed *f)
{
	f->off = f->len = 0;
}

void *cube_wire_feed_space(struct cube_wire_feed *f, size_t *ret_space)
{
	if (f->off > 0) {
		memmove(f->data, f->data + f->off, f->len - f->off);
		f->len -= f->off;
		f->off = 0;
	}
	*ret_space = sizeof(f->data) - f->len;
	return f->data + f->len;
}

int cube_wire_feed_next(struct cube_wire_feed *f, struct cube_wire_head *head, const void **body)
{
	struct cube_wire_in in;

	if (f->len - f->off < CUBE_WIRE_HEADER)
		return 0;
	cube_wire_in_init(&in, f->data + f->off, f->len - f->off);
	head->len = cube_wire_u32(&in);
	head->type = cube_wire_u16(&in);
	head->flags = cube_wire_u16(&in);
	head->id = cube_wire_u64(&in);
	if (head->len > CUBE_WIRE_BODY_MAX)
		return -EPROTO;
	if (in.left < head->len)
		return 0;
	*body = in.p;
	f->off += CUBE_WIRE_HEADER + head->len;
	return 1;
}

bool cube_wire_feed_sync(struct cube_wire_feed *f)
{
	/* Type, flags and id of its frame, and the magic number: behind the length, which may grow. */
	static const unsigned char mark[] = {
		CUBE_WIRE_HELLO, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 'C', 'U', 'B', 'E'};

	while (f->len - f->off >= 4 + sizeof(mark)) {
		if (memcmp(f->data + f->off + 4, mark, sizeof(mark)) == 0 && f->data[f->off + 2] == 0 &&
		    f->data[f->off + 3] == 0)
			return true;
		f->off++;
	}
	return false;
}

static size_t wire_pieces_len(const struct cube_wire_piece *pieces, unsigned n)
{
	size_t len = 0;

	for (unsigned i = 0; i < n; i++)
		len += pieces[i].len;
	return len;
}

size_t cube_wire_cut_size(const struct cube_wire_piece *pieces, unsigned n)
{
	size_t len = wire_pieces_len(pieces, n) + 4;
	size_t frames = (len + CUBE_WIRE_BODY_MAX - 1) / CUBE_WIRE_BODY_MAX;

	return len + frames * CUBE_WIRE_HEADER;
}

/* A message on its way into frames. */
struct wire_cutter {
	struct cube_wire_out *out;
	enum cube_wire_type type;
	uint64_t id;
	size_t left; /* of the message */
	size_t room; /* in the frame that is begun */
};

static void cutter_frame(struct wire_cutter *c, unsigned flags)
{
	c->room = c->left < CUBE_WIRE_BODY_MAX ? c->left : CUBE_WIRE_BODY_MAX;
	if (c->left > c->room)
		flags |= CUBE_WIRE_MORE;
	cube_wire_put_u32(c->out, (uint32_t)c->room);
	cube_wire_put_u16(c->out, (uint16_t)c->type);
	cube_wire_put_u16(c->out, (uint16_t)flags);
	cube_wire_put_u64(c->out, c->id);
}

static void cutter_add(struct wire_cutter *c, const void *data, size_t len)
{
	const unsigned char *p = data;

	while (len > 0) {
		size_t n;

		if (c->room == 0)
			cutter_frame(c, 0);
		n = len < c->room ? len : c->room;
		cube_wire_put_bytes(c->out, p, n);
		p += n;
		len -= n;
		c->room -= n;
		c->left -= n;
	}
}

bool cube_wire_cut(struct cube_wire_out *out, enum cube_wire_type type, unsigned flags, uint64_t id,
		   const struct cube_wire_piece *pieces, unsigned n)
{
	size_t len = wire_pieces_len(pieces, n);
	struct wire_cutter c = {.out = out, .type = type, .id = id, .left = len + 4};
	struct cube_wire_out prefix;
	unsigned char bytes[4];

	if (len > CUBE_WIRE_LONG_MAX || cube_wire_cut_size(pieces, n) > out->cap - out->len)
		return false;
	cube_wire_out_init(&prefix, bytes, sizeof(bytes));
	cube_wire_put_u32(&prefix, (uint32_t)len);
	cutter_frame(&c, flags);
	cutter_add(&c, bytes, sizeof(bytes));
	for (unsigned i = 0; i < n; i++)
		cutter_add(&c, pieces[i].data, pieces[i].len);
	return true;
}

void cube_wire_join_init(struct cube_wire_join *j, size_t max, void *(*alloc)(size_t),
			 void (*release)(void *))
{
	*j = (struct cube_wire_join){.alloc = alloc, .release = release, .max = max};
}

void cube_wire_join_done(struct cube_wire_join *j)
{
	if (j->data != NULL)
		j->release(j->data);
	cube_wire_join_init(j, j->max, j->alloc, j->release);
}

/* The first frame: says how much comes. */
static int join_begin(struct cube_wire_join *j, const struct cube_wire_head *head, struct cube_wire_in *in)
{
	size_t total = cube_wire_u32(in);

	cube_wire_join_done(j);
	if (in->bad)
		return -EPROTO;
	if (total > j->max)
		return -EMSGSIZE;
	j->data = j->alloc(total + 1);
	if (j->data == NULL)
		return -ENOMEM;
	j->total = total;
	j->type = head->type;
	j->id = head->id;
	j->open = true;
	return 0;
}

int cube_wire_join_add(struct cube_wire_join *j, const struct cube_wire_head *head, const void *body)
{
	struct cube_wire_in in;
	bool more = (head->flags & CUBE_WIRE_MORE) != 0;
	int r;

	cube_wire_in_init(&in, body, head->len);
	if (!j->open) {
		r = join_begin(j, head, &in);
		if (r < 0)
			return r;
	}
	if (j->type != head->type || j->id != head->id || in.left > j->total - j->len)
		return -EPROTO;
	if (in.left > 0)
		memcpy(j->data + j->len, in.p, in.left);
	j->len += in.left;
	if (more != (j->len < j->total) || (more && in.left == 0))
		return -EPROTO;
	j->open = more;
	return more ? 0 : 1;
}
