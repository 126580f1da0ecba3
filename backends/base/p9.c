/* SPDX-License-Identifier: Apache-2.0 */
/* Every message as a row: its fields in the order of the wire, and where each stands in the struct. */
#include "backends/base/p9.h"

#include <errno.h>
#include <string.h>

#include "backends/base/macros.h"

enum p9_kind {
	P9_END,
	P9_U8,
	P9_U16,
	P9_U32,
	P9_U64,
	P9_REST32, /* one that old peers leave out, the last */
	P9_STR,
	P9_QID,
	P9_NAMES, /* n[2] and as many strings; the member is n_names */
	P9_QIDS,
	P9_DATA, /* count[4] and as many bytes; the member is data */
	P9_STAT, /* n[2] and a stat record of n bytes */
};

struct p9_field {
	uint8_t kind;
	uint8_t only; /* dialects that have it; 0: all of the message's */
	uint16_t at;
};

struct p9_row {
	const char *name;
	unsigned dialects; /* 0: there is no such message */
	const struct p9_field *fields;
};

#define L   CUBE_P9_2000L
#define U   CUBE_P9_2000U
#define OLD (CUBE_P9_2000 | CUBE_P9_2000U)
#define ALL (OLD | L)

#define F(kind, member) FO(kind, 0, member)
#define FO(kind, only, member)                                                                               \
	{                                                                                                    \
		P9_##kind, (only), offsetof(struct cube_p9_msg, member)                                      \
	}
#define E                                                                                                    \
	{                                                                                                    \
		P9_END, 0, 0                                                                                 \
	}
#define ROW(name, dialects, ...)                                                                             \
	{                                                                                                    \
		name, dialects, (const struct p9_field[])                                                    \
		{                                                                                            \
			__VA_ARGS__                                                                          \
		}                                                                                            \
	}

#define P9_TIMES_SET  F(U64, attr.atime_s), F(U64, attr.atime_ns), F(U64, attr.mtime_s), F(U64, attr.mtime_ns)
#define P9_LOCK_PLACE F(U64, lock.start), F(U64, lock.length), F(U32, lock.proc), F(STR, lock.client)
#define P9_OPENED     F(QID, qid), F(U32, iounit)

/* clang-format off: a table */
static const struct p9_row p9_rows[CUBE_P9_TYPES] = {
	[CUBE_P9_RLERROR] = ROW("Rlerror", L, F(U32, error), E),
	[CUBE_P9_TSTATFS] = ROW("Tstatfs", L, F(U32, fid), E),
	[CUBE_P9_RSTATFS] =
		ROW("Rstatfs", L, F(U32, statfs.type), F(U32, statfs.bsize), F(U64, statfs.blocks),
		    F(U64, statfs.bfree), F(U64, statfs.bavail), F(U64, statfs.files), F(U64, statfs.ffree),
		    F(U64, statfs.fsid), F(U32, statfs.namelen), E),
	[CUBE_P9_TLOPEN] = ROW("Tlopen", L, F(U32, fid), F(U32, flags), E),
	[CUBE_P9_RLOPEN] = ROW("Rlopen", L, P9_OPENED, E),
	[CUBE_P9_TLCREATE] =
		ROW("Tlcreate", L, F(U32, fid), F(STR, name), F(U32, flags), F(U32, mode), F(U32, gid), E),
	[CUBE_P9_RLCREATE] = ROW("Rlcreate", L, P9_OPENED, E),
	[CUBE_P9_TSYMLINK] = ROW("Tsymlink", L, F(U32, fid), F(STR, name), F(STR, second), F(U32, gid), E),
	[CUBE_P9_RSYMLINK] = ROW("Rsymlink", L, F(QID, qid), E),
	[CUBE_P9_TMKNOD] = ROW("Tmknod", L, F(U32, fid), F(STR, name), F(U32, mode), F(U32, major),
			       F(U32, minor), F(U32, gid), E),
	[CUBE_P9_RMKNOD] = ROW("Rmknod", L, F(QID, qid), E),
	[CUBE_P9_TRENAME] = ROW("Trename", L, F(U32, fid), F(U32, newfid), F(STR, name), E),
	[CUBE_P9_RRENAME] = ROW("Rrename", L, E),
	[CUBE_P9_TREADLINK] = ROW("Treadlink", L, F(U32, fid), E),
	[CUBE_P9_RREADLINK] = ROW("Rreadlink", L, F(STR, name), E),
	[CUBE_P9_TGETATTR] = ROW("Tgetattr", L, F(U32, fid), F(U64, mask), E),
	[CUBE_P9_RGETATTR] = ROW("Rgetattr", L, F(U64, mask), F(QID, qid), F(U32, attr.mode),
				 F(U32, attr.uid), F(U32, attr.gid), F(U64, attr.nlink), F(U64, attr.rdev),
				 F(U64, attr.size), F(U64, attr.blksize), F(U64, attr.blocks), P9_TIMES_SET,
				 F(U64, attr.ctime_s), F(U64, attr.ctime_ns), F(U64, attr.btime_s),
				 F(U64, attr.btime_ns), F(U64, attr.gen), F(U64, attr.data_version), E),
	[CUBE_P9_TSETATTR] = ROW("Tsetattr", L, F(U32, fid), F(U32, flags), F(U32, attr.mode),
				 F(U32, attr.uid), F(U32, attr.gid), F(U64, attr.size), P9_TIMES_SET, E),
	[CUBE_P9_RSETATTR] = ROW("Rsetattr", L, E),
	[CUBE_P9_TXATTRWALK] = ROW("Txattrwalk", L, F(U32, fid), F(U32, newfid), F(STR, name), E),
	[CUBE_P9_RXATTRWALK] = ROW("Rxattrwalk", L, F(U64, size), E),
	[CUBE_P9_TXATTRCREATE] =
		ROW("Txattrcreate", L, F(U32, fid), F(STR, name), F(U64, size), F(U32, flags), E),
	[CUBE_P9_RXATTRCREATE] = ROW("Rxattrcreate", L, E),
	[CUBE_P9_TREADDIR] = ROW("Treaddir", L, F(U32, fid), F(U64, offset), F(U32, count), E),
	[CUBE_P9_RREADDIR] = ROW("Rreaddir", L, F(DATA, data), E),
	[CUBE_P9_TFSYNC] = ROW("Tfsync", L, F(U32, fid), F(REST32, datasync), E),
	[CUBE_P9_RFSYNC] = ROW("Rfsync", L, E),
	[CUBE_P9_TLOCK] =
		ROW("Tlock", L, F(U32, fid), F(U8, lock.type), F(U32, lock.flags), P9_LOCK_PLACE, E),
	[CUBE_P9_RLOCK] = ROW("Rlock", L, F(U8, status), E),
	[CUBE_P9_TGETLOCK] = ROW("Tgetlock", L, F(U32, fid), F(U8, lock.type), P9_LOCK_PLACE, E),
	[CUBE_P9_RGETLOCK] = ROW("Rgetlock", L, F(U8, lock.type), P9_LOCK_PLACE, E),
	[CUBE_P9_TLINK] = ROW("Tlink", L, F(U32, fid), F(U32, newfid), F(STR, name), E),
	[CUBE_P9_RLINK] = ROW("Rlink", L, E),
	[CUBE_P9_TMKDIR] = ROW("Tmkdir", L, F(U32, fid), F(STR, name), F(U32, mode), F(U32, gid), E),
	[CUBE_P9_RMKDIR] = ROW("Rmkdir", L, F(QID, qid), E),
	[CUBE_P9_TRENAMEAT] =
		ROW("Trenameat", L, F(U32, fid), F(STR, name), F(U32, newfid), F(STR, second), E),
	[CUBE_P9_RRENAMEAT] = ROW("Rrenameat", L, E),
	[CUBE_P9_TUNLINKAT] = ROW("Tunlinkat", L, F(U32, fid), F(STR, name), F(U32, flags), E),
	[CUBE_P9_RUNLINKAT] = ROW("Runlinkat", L, E),
	[CUBE_P9_TVERSION] = ROW("Tversion", ALL, F(U32, msize), F(STR, name), E),
	[CUBE_P9_RVERSION] = ROW("Rversion", ALL, F(U32, msize), F(STR, name), E),
	[CUBE_P9_TAUTH] =
		ROW("Tauth", ALL, F(U32, newfid), F(STR, name), F(STR, second), FO(U32, U | L, uid), E),
	[CUBE_P9_RAUTH] = ROW("Rauth", ALL, F(QID, qid), E),
	[CUBE_P9_TATTACH] = ROW("Tattach", ALL, F(U32, fid), F(U32, newfid), F(STR, name), F(STR, second),
				FO(U32, U | L, uid), E),
	[CUBE_P9_RATTACH] = ROW("Rattach", ALL, F(QID, qid), E),
	[CUBE_P9_RERROR] = ROW("Rerror", OLD, F(STR, name), FO(U32, U, error), E),
	[CUBE_P9_TFLUSH] = ROW("Tflush", ALL, F(U16, oldtag), E),
	[CUBE_P9_RFLUSH] = ROW("Rflush", ALL, E),
	[CUBE_P9_TWALK] = ROW("Twalk", ALL, F(U32, fid), F(U32, newfid), F(NAMES, n_names), E),
	[CUBE_P9_RWALK] = ROW("Rwalk", ALL, F(QIDS, n_qids), E),
	[CUBE_P9_TOPEN] = ROW("Topen", OLD, F(U32, fid), F(U8, open_mode), E),
	[CUBE_P9_ROPEN] = ROW("Ropen", OLD, P9_OPENED, E),
	[CUBE_P9_TCREATE] = ROW("Tcreate", OLD, F(U32, fid), F(STR, name), F(U32, mode), F(U8, open_mode),
				FO(STR, U, second), E),
	[CUBE_P9_RCREATE] = ROW("Rcreate", OLD, P9_OPENED, E),
	[CUBE_P9_TREAD] = ROW("Tread", ALL, F(U32, fid), F(U64, offset), F(U32, count), E),
	[CUBE_P9_RREAD] = ROW("Rread", ALL, F(DATA, data), E),
	[CUBE_P9_TWRITE] = ROW("Twrite", ALL, F(U32, fid), F(U64, offset), F(DATA, data), E),
	[CUBE_P9_RWRITE] = ROW("Rwrite", ALL, F(U32, count), E),
	[CUBE_P9_TCLUNK] = ROW("Tclunk", ALL, F(U32, fid), E),
	[CUBE_P9_RCLUNK] = ROW("Rclunk", ALL, E),
	[CUBE_P9_TREMOVE] = ROW("Tremove", ALL, F(U32, fid), E),
	[CUBE_P9_RREMOVE] = ROW("Rremove", ALL, E),
	[CUBE_P9_TSTAT] = ROW("Tstat", OLD, F(U32, fid), E),
	[CUBE_P9_RSTAT] = ROW("Rstat", OLD, F(STAT, stat), E),
	[CUBE_P9_TWSTAT] = ROW("Twstat", OLD, F(U32, fid), F(STAT, stat), E),
	[CUBE_P9_RWSTAT] = ROW("Rwstat", OLD, E),
};
/* clang-format on */

bool cube_p9_known(unsigned type, enum cube_p9_dialect d)
{
	return type < CUBE_P9_TYPES && (p9_rows[type].dialects & (unsigned)d) != 0;
}

const char *cube_p9_name(unsigned type)
{
	return type < CUBE_P9_TYPES && p9_rows[type].name != NULL ? p9_rows[type].name : "?";
}

/* ---- bytes to fields ---- */

struct p9_reader {
	const unsigned char *at, *end;
	enum cube_p9_dialect dialect;
	bool bad;
};

static const unsigned char *p9_take(struct p9_reader *r, size_t len)
{
	const unsigned char *at = r->at;

	if (r->bad || len > (size_t)(r->end - at)) {
		r->bad = true;
		return NULL;
	}
	r->at += len;
	return at;
}

static uint64_t p9_get(struct p9_reader *r, unsigned len)
{
	const unsigned char *at = p9_take(r, len);
	uint64_t v = 0;

	while (at != NULL && len-- > 0)
		v = v << 8 | at[len];
	return v;
}

static struct cube_p9_str p9_get_str(struct p9_reader *r)
{
	struct cube_p9_str s = {.len = (uint16_t)p9_get(r, 2)};

	s.s = (const char *)p9_take(r, s.len);
	if (s.s == NULL)
		s.len = 0;
	return s;
}

static struct cube_p9_qid p9_get_qid(struct p9_reader *r)
{
	struct cube_p9_qid q;

	q.type = (uint8_t)p9_get(r, 1);
	q.version = (uint32_t)p9_get(r, 4);
	q.path = p9_get(r, 8);
	return q;
}

static uint16_t p9_get_count(struct p9_reader *r)
{
	uint16_t n = (uint16_t)p9_get(r, 2);

	if (n > CUBE_P9_WALK)
		r->bad = true;
	return r->bad ? 0 : n;
}

static void p9_get_names(struct p9_reader *r, struct cube_p9_msg *m)
{
	m->n_names = p9_get_count(r);
	for (unsigned i = 0; i < m->n_names; i++)
		m->names[i] = p9_get_str(r);
}

static void p9_get_qids(struct p9_reader *r, struct cube_p9_msg *m)
{
	m->n_qids = p9_get_count(r);
	for (unsigned i = 0; i < m->n_qids; i++)
		m->qids[i] = p9_get_qid(r);
}

static void p9_get_data(struct p9_reader *r, struct cube_p9_msg *m)
{
	m->count = (uint32_t)p9_get(r, 4);
	m->data = p9_take(r, m->count);
}

static void p9_get_stat(struct p9_reader *r, struct cube_p9_stat *st)
{
	size_t n = p9_get(r, 2);
	const unsigned char *at = p9_take(r, n);

	if (at == NULL || cube_p9_stat_get(at, n, r->dialect, st) != (ssize_t)n)
		r->bad = true;
}

static void p9_get_field(struct p9_reader *r, const struct p9_field *f, struct cube_p9_msg *m)
{
	void *to = (char *)m + f->at;

	switch ((enum p9_kind)f->kind) {
	case P9_U8:
		*(uint8_t *)to = (uint8_t)p9_get(r, 1);
		break;
	case P9_U16:
		*(uint16_t *)to = (uint16_t)p9_get(r, 2);
		break;
	case P9_REST32:
		*(uint32_t *)to = r->at == r->end ? 0 : (uint32_t)p9_get(r, 4);
		break;
	case P9_U32:
		*(uint32_t *)to = (uint32_t)p9_get(r, 4);
		break;
	case P9_U64:
		*(uint64_t *)to = p9_get(r, 8);
		break;
	case P9_STR:
		*(struct cube_p9_str *)to = p9_get_str(r);
		break;
	case P9_QID:
		*(struct cube_p9_qid *)to = p9_get_qid(r);
		break;
	case P9_NAMES:
		p9_get_names(r, m);
		break;
	case P9_QIDS:
		p9_get_qids(r, m);
		break;
	case P9_DATA:
		p9_get_data(r, m);
		break;
	case P9_STAT:
		p9_get_stat(r, to);
		break;
	case P9_END:
		break;
	}
}

static bool p9_has(const struct p9_field *f, enum cube_p9_dialect d)
{
	return f->only == 0 || (f->only & (unsigned)d) != 0;
}

uint32_t cube_p9_size(const void *head)
{
	struct p9_reader r = {.at = head, .end = (const unsigned char *)head + 4};

	return (uint32_t)p9_get(&r, 4);
}

int cube_p9_decode(const void *bytes, size_t len, enum cube_p9_dialect d, struct cube_p9_msg *ret)
{
	struct p9_reader r = {.at = bytes, .end = (const unsigned char *)bytes + len, .dialect = d};
	uint32_t size = (uint32_t)p9_get(&r, 4);

	memset(ret, 0, sizeof(*ret));
	ret->type = (uint8_t)p9_get(&r, 1);
	ret->tag = (uint16_t)p9_get(&r, 2);
	if (r.bad || size != len)
		return -EBADMSG;
	if (!cube_p9_known(ret->type, d))
		return -EOPNOTSUPP;
	for (const struct p9_field *f = p9_rows[ret->type].fields; f->kind != P9_END; f++)
		if (p9_has(f, d))
			p9_get_field(&r, f, ret);
	return r.bad || r.at != r.end ? -EBADMSG : 0;
}

/* ---- fields to bytes ---- */

static void p9_put(struct cube_buf *out, uint64_t v, unsigned len)
{
	unsigned char b[8];

	for (unsigned i = 0; i < len; i++)
		b[i] = (unsigned char)(v >> (8 * i));
	(void)cube_buf_add(out, b, len);
}

static void p9_put_str(struct cube_buf *out, const struct cube_p9_str *s)
{
	p9_put(out, s->len, 2);
	(void)cube_buf_add(out, s->s != NULL ? s->s : "", s->len);
}

static void p9_put_qid(struct cube_buf *out, const struct cube_p9_qid *q)
{
	p9_put(out, q->type, 1);
	p9_put(out, q->version, 4);
	p9_put(out, q->path, 8);
}

static void p9_put_names(struct cube_buf *out, const struct cube_p9_msg *m)
{
	p9_put(out, m->n_names, 2);
	for (unsigned i = 0; i < m->n_names; i++)
		p9_put_str(out, &m->names[i]);
}

static void p9_put_qids(struct cube_buf *out, const struct cube_p9_msg *m)
{
	p9_put(out, m->n_qids, 2);
	for (unsigned i = 0; i < m->n_qids; i++)
		p9_put_qid(out, &m->qids[i]);
}

static void p9_set(char *at, uint64_t v, unsigned len)
{
	for (unsigned i = 0; i < len; i++)
		at[i] = (char)(unsigned char)(v >> (8 * i));
}

static void p9_put_stat(struct cube_buf *out, enum cube_p9_dialect d, const struct cube_p9_stat *st)
{
	size_t begin = out->len;

	p9_put(out, 0, 2);
	if (cube_p9_stat_add(out, d, st) == 0)
		p9_set(out->data + begin, out->len - begin - 2, 2);
}

static void p9_put_field(struct cube_buf *out, const struct p9_field *f, enum cube_p9_dialect d,
			 const struct cube_p9_msg *m)
{
	const void *from = (const char *)m + f->at;

	switch ((enum p9_kind)f->kind) {
	case P9_U8:
		p9_put(out, *(const uint8_t *)from, 1);
		break;
	case P9_U16:
		p9_put(out, *(const uint16_t *)from, 2);
		break;
	case P9_REST32:
	case P9_U32:
		p9_put(out, *(const uint32_t *)from, 4);
		break;
	case P9_U64:
		p9_put(out, *(const uint64_t *)from, 8);
		break;
	case P9_STR:
		p9_put_str(out, from);
		break;
	case P9_QID:
		p9_put_qid(out, from);
		break;
	case P9_NAMES:
		p9_put_names(out, m);
		break;
	case P9_QIDS:
		p9_put_qids(out, m);
		break;
	case P9_DATA:
		p9_put(out, m->count, 4);
		(void)cube_buf_add(out, m->data != NULL ? m->data : "", m->count);
		break;
	case P9_STAT:
		p9_put_stat(out, d, from);
		break;
	case P9_END:
		break;
	}
}

int cube_p9_encode(const struct cube_p9_msg *m, enum cube_p9_dialect d, struct cube_buf *out)
{
	size_t begin = out->len;
	int error;

	if (!cube_p9_known(m->type, d))
		return -EOPNOTSUPP;
	if (out->error < 0)
		return out->error;
	if (m->n_names > CUBE_P9_WALK || m->n_qids > CUBE_P9_WALK)
		return -EMSGSIZE;
	p9_put(out, 0, 4);
	p9_put(out, m->type, 1);
	p9_put(out, m->tag, 2);
	for (const struct p9_field *f = p9_rows[m->type].fields; f->kind != P9_END; f++)
		if (p9_has(f, d))
			p9_put_field(out, f, d, m);
	if (out->error == 0) {
		p9_set(out->data + begin, out->len - begin, 4);
		return 0;
	}
	error = out->error;
	cube_buf_cut(out, begin);
	out->error = 0;
	return error;
}

void cube_p9_data_head(unsigned type, uint16_t tag, uint32_t count, void *at)
{
	char *to = at;

	p9_set(to, CUBE_P9_DATA_HEAD + (uint64_t)count, 4);
	p9_set(to + 4, type, 1);
	p9_set(to + 5, tag, 2);
	p9_set(to + 7, count, 4);
}

/* ---- entries of directories ---- */

#define P9_DIRENT 24 /* without the name */

int cube_p9_dirent_add(struct cube_buf *out, const struct cube_p9_dirent *e)
{
	if (out->error == 0 && out->max - out->len < (size_t)P9_DIRENT + e->name.len)
		return -EMSGSIZE;
	p9_put_qid(out, &e->qid);
	p9_put(out, e->offset, 8);
	p9_put(out, e->type, 1);
	p9_put_str(out, &e->name);
	return out->error;
}

ssize_t cube_p9_dirent_get(const void *data, size_t len, struct cube_p9_dirent *ret)
{
	struct p9_reader r = {.at = data, .end = (const unsigned char *)data + len};

	ret->qid = p9_get_qid(&r);
	ret->offset = p9_get(&r, 8);
	ret->type = (uint8_t)p9_get(&r, 1);
	ret->name = p9_get_str(&r);
	return r.bad ? -EBADMSG : r.at - (const unsigned char *)data;
}

/* ---- stat records ---- */

int cube_p9_stat_add(struct cube_buf *out, enum cube_p9_dialect d, const struct cube_p9_stat *st)
{
	size_t begin = out->len;

	p9_put(out, 0, 2);
	p9_put(out, st->type, 2);
	p9_put(out, st->dev, 4);
	p9_put_qid(out, &st->qid);
	p9_put(out, st->mode, 4);
	p9_put(out, st->atime, 4);
	p9_put(out, st->mtime, 4);
	p9_put(out, st->length, 8);
	p9_put_str(out, &st->name);
	p9_put_str(out, &st->uid);
	p9_put_str(out, &st->gid);
	p9_put_str(out, &st->muid);
	if (d == CUBE_P9_2000U) {
		p9_put_str(out, &st->extension);
		p9_put(out, st->n_uid, 4);
		p9_put(out, st->n_gid, 4);
		p9_put(out, st->n_muid, 4);
	}
	if (out->error == 0 && out->len - begin - 2 > UINT16_MAX)
		out->error = -EMSGSIZE;
	if (out->error == 0)
		p9_set(out->data + begin, out->len - begin - 2, 2);
	return out->error;
}

ssize_t cube_p9_stat_get(const void *data, size_t len, enum cube_p9_dialect d, struct cube_p9_stat *ret)
{
	struct p9_reader r = {.at = data, .end = (const unsigned char *)data + len, .dialect = d};
	size_t size = p9_get(&r, 2);

	memset(ret, 0, sizeof(*ret));
	if (r.bad || size > len - 2)
		return -EBADMSG;
	r.end = r.at + size;
	ret->type = (uint16_t)p9_get(&r, 2);
	ret->dev = (uint32_t)p9_get(&r, 4);
	ret->qid = p9_get_qid(&r);
	ret->mode = (uint32_t)p9_get(&r, 4);
	ret->atime = (uint32_t)p9_get(&r, 4);
	ret->mtime = (uint32_t)p9_get(&r, 4);
	ret->length = p9_get(&r, 8);
	ret->name = p9_get_str(&r);
	ret->uid = p9_get_str(&r);
	ret->gid = p9_get_str(&r);
	ret->muid = p9_get_str(&r);
	if (d == CUBE_P9_2000U) {
		ret->extension = p9_get_str(&r);
		ret->n_uid = (uint32_t)p9_get(&r, 4);
		ret->n_gid = (uint32_t)p9_get(&r, 4);
		ret->n_muid = (uint32_t)p9_get(&r, 4);
	}
	return r.bad || r.at != r.end ? -EBADMSG : r.at - (const unsigned char *)data;
}
