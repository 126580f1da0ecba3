/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of 9P: every one there and back in each dialect, cut at every byte, and the sizes that the protocol's
 * text gives. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"
#include "backends/base/p9.h"
#include "tests/unit/base/unit.h"

static const enum cube_p9_dialect dialects[] = {CUBE_P9_2000, CUBE_P9_2000U, CUBE_P9_2000L};

static struct cube_p9_str str(const char *s)
{
	return (struct cube_p9_str){.s = s, .len = (uint16_t)strlen(s)};
}

static void fill_attr(struct cube_p9_attr *a)
{
	*a = (struct cube_p9_attr){.mode = 0100644,
				   .uid = 1001,
				   .gid = 1002,
				   .nlink = 3,
				   .rdev = 4,
				   .size = UINT64_C(0x123456789a),
				   .blksize = 4096,
				   .blocks = 17,
				   .atime_s = 11,
				   .atime_ns = 12,
				   .mtime_s = 13,
				   .mtime_ns = 14,
				   .ctime_s = 15,
				   .ctime_ns = 16,
				   .btime_s = 17,
				   .btime_ns = 18,
				   .gen = 19,
				   .data_version = 20};
}

static void fill_stat(struct cube_p9_stat *s)
{
	*s = (struct cube_p9_stat){.type = 1,
				   .dev = 2,
				   .qid = {CUBE_P9_QTDIR, 3, UINT64_C(0x8877665544332211)},
				   .mode = CUBE_P9_DMDIR | 0755,
				   .atime = 4,
				   .mtime = 5,
				   .length = UINT64_C(0x1122334455667788),
				   .name = str("name"),
				   .uid = str("user"),
				   .gid = str("group"),
				   .muid = str(""),
				   .extension = str("b 1 2"),
				   .n_uid = 6,
				   .n_gid = 7,
				   .n_muid = CUBE_P9_NOUID};
}

/* All members set, to values whose bytes differ; a message takes what it has. */
static void fill(struct cube_p9_msg *m, unsigned type)
{
	memset(m, 0, sizeof(*m));
	m->type = (uint8_t)type;
	m->tag = 0x4321;
	m->oldtag = 0x1234;
	m->fid = 0x01020304;
	m->newfid = 0x05060708;
	m->msize = 8192;
	m->iounit = 4000;
	m->error = ENOENT;
	m->flags = 0x0a0b0c0d;
	m->mode = 0755;
	m->major = 8;
	m->minor = 1;
	m->gid = 1002;
	m->uid = 1001;
	m->datasync = 1;
	m->offset = UINT64_C(0x1020304050607080);
	m->mask = 0x3fff;
	m->size = 65536;
	m->open_mode = CUBE_P9_ORDWR;
	m->status = CUBE_P9_LOCK_BLOCKED;
	m->name = str("a name");
	m->second = str("another one");
	m->qid = (struct cube_p9_qid){CUBE_P9_QTSYMLINK, 0x31415926, UINT64_C(0x0102030405060708)};
	m->n_names = m->n_qids = 3;
	for (unsigned i = 0; i < 3; i++) {
		m->names[i] = str(i == 1 ? "" : "step");
		m->qids[i] = m->qid;
		m->qids[i].path += i;
	}
	m->data = "some\0data";
	m->count = 9;
	fill_attr(&m->attr);
	fill_stat(&m->stat);
	m->statfs = (struct cube_p9_statfs){0x01021997, 4096, 1, 2, 3, 4, 5, 6, 255};
	m->lock = (struct cube_p9_lock){CUBE_P9_LOCK_WRITE, 1, 2, 3, 4, str("client")};
}

static unsigned known_types(enum cube_p9_dialect d)
{
	unsigned n = 0;

	for (unsigned type = 0; type < 256; type++)
		n += cube_p9_known(type, d);
	return n;
}

static void test_types(void **state)
{
	(void)state;
	assert_int_equal(known_types(CUBE_P9_2000), 27);
	assert_int_equal(known_types(CUBE_P9_2000U), 27);
	assert_int_equal(known_types(CUBE_P9_2000L), 57);
	assert_false(cube_p9_known(6, CUBE_P9_2000L));
	assert_false(cube_p9_known(106, CUBE_P9_2000));
	assert_string_equal(cube_p9_name(CUBE_P9_TLOPEN), "Tlopen");
	assert_string_equal(cube_p9_name(6), "?");
	assert_string_equal(cube_p9_name(255), "?");
}

static void test_round_trip(void **state)
{
	struct cube_p9_msg m, back;

	(void)state;
	for (unsigned type = 0; type < CUBE_P9_TYPES; type++) {
		for (size_t i = 0; i < CUBE_COUNT(dialects); i++) {
			struct cube_buf once = CUBE_BUF(8192), twice = CUBE_BUF(8192);

			fill(&m, type);
			if (!cube_p9_known(type, dialects[i])) {
				assert_int_equal(cube_p9_encode(&m, dialects[i], &once), -EOPNOTSUPP);
				assert_int_equal(once.len, 0);
				continue;
			}
			assert_int_equal(cube_p9_encode(&m, dialects[i], &once), 0);
			assert_int_equal(cube_p9_size(once.data), once.len);
			assert_int_equal(cube_p9_decode(once.data, once.len, dialects[i], &back), 0);
			assert_int_equal(back.type, type);
			assert_int_equal(back.tag, 0x4321);
			assert_int_equal(cube_p9_encode(&back, dialects[i], &twice), 0);
			assert_int_equal(once.len, twice.len);
			assert_memory_equal(once.data, twice.data, once.len);
			cube_buf_done(&once);
			cube_buf_done(&twice);
		}
	}
}

/* In a block of just that size, so that a read behind it is seen. */
static int decode_cut(const char *data, size_t len, enum cube_p9_dialect d, bool sized)
{
	char *block = cube_malloc(len);
	struct cube_p9_msg m;
	int code;

	assert_non_null(block);
	memcpy(block, data, len);
	for (unsigned i = 0; sized && i < 4 && i < len; i++)
		block[i] = (char)(len >> (8 * i));
	code = cube_p9_decode(block, len, d, &m);
	cube_free(block);
	return code;
}

static void test_cut(void **state)
{
	struct cube_p9_msg m;

	(void)state;
	for (unsigned type = 0; type < CUBE_P9_TYPES; type++) {
		for (size_t i = 0; i < CUBE_COUNT(dialects); i++) {
			struct cube_buf b = CUBE_BUF(8192);

			if (!cube_p9_known(type, dialects[i]))
				continue;
			fill(&m, type);
			assert_int_equal(cube_p9_encode(&m, dialects[i], &b), 0);
			assert_int_equal(cube_buf_addc(&b, 'x'), 0);
			for (size_t len = 0; len <= b.len; len++) {
				bool whole = len == b.len - 1;
				/* old peers end it there */
				bool old = type == CUBE_P9_TFSYNC && len == b.len - 5;

				assert_int_equal(decode_cut(b.data, len, dialects[i], false),
						 whole ? 0 : -EBADMSG);
				assert_int_equal(decode_cut(b.data, len, dialects[i], true),
						 whole || old ? 0 : -EBADMSG);
			}
			cube_buf_done(&b);
		}
	}
}

/* Of the whole message, from the protocol's text: strings are "a name" and "another one". */
static const struct {
	unsigned type;
	enum cube_p9_dialect dialect;
	size_t size;
} sizes[] = {
	{CUBE_P9_RLERROR, CUBE_P9_2000L, 11},
	{CUBE_P9_RSTATFS, CUBE_P9_2000L, 67},
	{CUBE_P9_TLOPEN, CUBE_P9_2000L, 15},
	{CUBE_P9_RLOPEN, CUBE_P9_2000L, 24},
	{CUBE_P9_TLCREATE, CUBE_P9_2000L, 25 + 6},
	{CUBE_P9_TSYMLINK, CUBE_P9_2000L, 19 + 6 + 11},
	{CUBE_P9_TMKNOD, CUBE_P9_2000L, 29 + 6},
	{CUBE_P9_TRENAME, CUBE_P9_2000L, 17 + 6},
	{CUBE_P9_RREADLINK, CUBE_P9_2000L, 9 + 6},
	{CUBE_P9_TGETATTR, CUBE_P9_2000L, 19},
	{CUBE_P9_RGETATTR, CUBE_P9_2000L, 160},
	{CUBE_P9_TSETATTR, CUBE_P9_2000L, 67},
	{CUBE_P9_TXATTRWALK, CUBE_P9_2000L, 17 + 6},
	{CUBE_P9_TXATTRCREATE, CUBE_P9_2000L, 25 + 6},
	{CUBE_P9_TREADDIR, CUBE_P9_2000L, 23},
	{CUBE_P9_TFSYNC, CUBE_P9_2000L, 15},
	{CUBE_P9_TLOCK, CUBE_P9_2000L, 38 + 6},
	{CUBE_P9_TGETLOCK, CUBE_P9_2000L, 34 + 6},
	{CUBE_P9_RGETLOCK, CUBE_P9_2000L, 30 + 6},
	{CUBE_P9_TLINK, CUBE_P9_2000L, 17 + 6},
	{CUBE_P9_TMKDIR, CUBE_P9_2000L, 21 + 6},
	{CUBE_P9_TRENAMEAT, CUBE_P9_2000L, 19 + 6 + 11},
	{CUBE_P9_TUNLINKAT, CUBE_P9_2000L, 17 + 6},
	{CUBE_P9_TVERSION, CUBE_P9_2000, 13 + 6},
	{CUBE_P9_TAUTH, CUBE_P9_2000L, 19 + 6 + 11},
	{CUBE_P9_TATTACH, CUBE_P9_2000L, 23 + 6 + 11},
	{CUBE_P9_TATTACH, CUBE_P9_2000, 19 + 6 + 11},
	{CUBE_P9_TWALK, CUBE_P9_2000L, 17 + 3 * 2 + 8},
	{CUBE_P9_RWALK, CUBE_P9_2000L, 9 + 3 * 13},
	{CUBE_P9_TREAD, CUBE_P9_2000L, 23},
	{CUBE_P9_RREAD, CUBE_P9_2000L, 11 + 9},
	{CUBE_P9_TWRITE, CUBE_P9_2000L, 23 + 9},
	{CUBE_P9_RERROR, CUBE_P9_2000, 9 + 6},
	{CUBE_P9_RERROR, CUBE_P9_2000U, 13 + 6},
	{CUBE_P9_TOPEN, CUBE_P9_2000, 12},
	{CUBE_P9_TCREATE, CUBE_P9_2000, 18 + 6},
	{CUBE_P9_TCREATE, CUBE_P9_2000U, 20 + 6 + 11},
	{CUBE_P9_RSTAT, CUBE_P9_2000, 9 + 49 + 4 + 4 + 5},
	{CUBE_P9_RSTAT, CUBE_P9_2000U, 9 + 49 + 4 + 4 + 5 + 14 + 5},
	{CUBE_P9_TWSTAT, CUBE_P9_2000, 13 + 49 + 4 + 4 + 5},
};

static void test_sizes(void **state)
{
	struct cube_p9_msg m;

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(sizes); i++) {
		struct cube_buf b = CUBE_BUF(8192);

		fill(&m, sizes[i].type);
		assert_int_equal(cube_p9_encode(&m, sizes[i].dialect, &b), 0);
		assert_int_equal(b.len, sizes[i].size);
		cube_buf_done(&b);
	}
}

/* Byte for byte, written down by hand. */
static void test_bytes(void **state)
{
	static const char version[] = "\x15\0\0\0\x64\xff\xff\0\x20\0\0\x08\0"
				      "9P2000.L";
	static const char walk[] = "\x16\0\0\0\x6e\x07\0\x01\0\0\0\x02\0\0\0\x01\0\x03\0dev";
	struct cube_buf b = CUBE_BUF(8192);
	struct cube_p9_msg m;

	(void)state;
	assert_int_equal(cube_p9_decode(version, sizeof(version) - 1, CUBE_P9_2000L, &m), 0);
	assert_int_equal(m.type, CUBE_P9_TVERSION);
	assert_int_equal(m.tag, CUBE_P9_NOTAG);
	assert_int_equal(m.msize, 8192);
	assert_int_equal(m.name.len, 8);
	assert_memory_equal(m.name.s, "9P2000.L", 8);
	assert_int_equal(cube_p9_decode(walk, sizeof(walk) - 1, CUBE_P9_2000L, &m), 0);
	assert_int_equal(m.tag, 7);
	assert_int_equal(m.fid, 1);
	assert_int_equal(m.newfid, 2);
	assert_int_equal(m.n_names, 1);
	assert_memory_equal(m.names[0].s, "dev", 3);
	assert_int_equal(cube_p9_encode(&m, CUBE_P9_2000L, &b), 0);
	assert_int_equal(b.len, sizeof(walk) - 1);
	assert_memory_equal(b.data, walk, b.len);
	cube_buf_done(&b);
}

static void test_refused(void **state)
{
	static const char huge[] = "\x17\0\0\0\x76\x07\0\x01\0\0\0\0\0\0\0\0\0\0\0\xff\xff\xff\xff";
	static const char unknown[] = "\x07\0\0\0\x06\x09\0";
	struct cube_buf b = CUBE_BUF(8192);
	struct cube_p9_msg m;

	(void)state;
	assert_int_equal(cube_p9_decode(huge, sizeof(huge) - 1, CUBE_P9_2000L, &m), -EBADMSG);
	assert_int_equal(m.type, CUBE_P9_TWRITE);
	assert_int_equal(m.tag, 7);
	assert_int_equal(cube_p9_decode(unknown, sizeof(unknown) - 1, CUBE_P9_2000L, &m), -EOPNOTSUPP);
	assert_int_equal(m.tag, 9);
	/* seventeen names */
	fill(&m, CUBE_P9_TWALK);
	m.n_names = 16;
	assert_int_equal(cube_p9_encode(&m, CUBE_P9_2000L, &b), 0);
	assert_int_equal(cube_p9_decode(b.data, b.len, CUBE_P9_2000L, &m), 0);
	b.data[15] = 17;
	assert_int_equal(cube_buf_add(&b, "\0", 2), 0);
	b.data[0] = (char)b.len;
	assert_int_equal(cube_p9_decode(b.data, b.len, CUBE_P9_2000L, &m), -EBADMSG);
	m.n_names = 17;
	m.type = CUBE_P9_TWALK;
	assert_int_equal(cube_p9_encode(&m, CUBE_P9_2000L, &b), -EMSGSIZE);
	cube_buf_done(&b);
}

/* What has no room is not there at all, and what stood before it is whole. */
static void test_ceiling(void **state)
{
	struct cube_p9_msg m;

	(void)state;
	fill(&m, CUBE_P9_RGETATTR);
	for (size_t max = 0; max < 160; max++) {
		struct cube_buf b = CUBE_BUF(max + 2);

		assert_int_equal(cube_buf_adds(&b, "ab"), 0);
		assert_int_equal(cube_p9_encode(&m, CUBE_P9_2000L, &b), -EMSGSIZE);
		assert_int_equal(b.len, 2);
		assert_int_equal(b.error, 0);
		assert_string_equal(cube_buf_str(&b), "ab");
		cube_buf_done(&b);
	}
}

static void test_data_head(void **state)
{
	char bytes[CUBE_P9_DATA_HEAD + 4] = {0};
	struct cube_p9_msg m;

	(void)state;
	memcpy(bytes + CUBE_P9_DATA_HEAD, "text", 4);
	cube_p9_data_head(CUBE_P9_RREAD, 77, 4, bytes);
	assert_int_equal(cube_p9_decode(bytes, sizeof(bytes), CUBE_P9_2000L, &m), 0);
	assert_int_equal(m.tag, 77);
	assert_int_equal(m.count, 4);
	assert_memory_equal(m.data, "text", 4);
}

static void test_dirents(void **state)
{
	struct cube_p9_dirent e = {.qid = {0, 0, 5}, .offset = 6, .type = 8, .name = str("entry")}, back;
	struct cube_buf b = CUBE_BUF(60);

	(void)state;
	assert_int_equal(cube_p9_dirent_add(&b, &e), 0);
	assert_int_equal(b.len, 29);
	assert_int_equal(cube_p9_dirent_add(&b, &e), 0);
	assert_int_equal(cube_p9_dirent_add(&b, &e), -EMSGSIZE);
	assert_int_equal(b.len, 58);
	assert_int_equal(cube_p9_dirent_get(b.data, b.len, &back), 29);
	assert_int_equal(back.qid.path, 5);
	assert_int_equal(back.offset, 6);
	assert_int_equal(back.type, 8);
	assert_memory_equal(back.name.s, "entry", 5);
	for (size_t len = 0; len < 29; len++)
		assert_int_equal(cube_p9_dirent_get(b.data, len, &back), -EBADMSG);
	cube_buf_done(&b);
}

static void test_stats(void **state)
{
	struct cube_p9_stat st, back;
	struct cube_buf b = CUBE_BUF(8192);
	char *name = cube_malloc(60000);

	(void)state;
	fill_stat(&st);
	assert_int_equal(cube_p9_stat_add(&b, CUBE_P9_2000U, &st), 0);
	assert_int_equal(cube_p9_stat_get(b.data, b.len, CUBE_P9_2000U, &back), (ssize_t)b.len);
	assert_int_equal(back.mode, st.mode);
	assert_int_equal(back.length, st.length);
	assert_int_equal(back.n_gid, 7);
	assert_memory_equal(back.extension.s, "b 1 2", 5);
	/* one of the other dialect has bytes too many, or too few */
	assert_int_equal(cube_p9_stat_get(b.data, b.len, CUBE_P9_2000, &back), -EBADMSG);
	for (size_t len = 0; len < b.len; len++)
		assert_int_equal(cube_p9_stat_get(b.data, len, CUBE_P9_2000U, &back), -EBADMSG);
	cube_buf_done(&b);
	b.max = 200000;
	assert_non_null(name);
	memset(name, 'n', 60000);
	st.name = st.uid = (struct cube_p9_str){name, 60000};
	assert_int_equal(cube_p9_stat_add(&b, CUBE_P9_2000U, &st), -EMSGSIZE);
	cube_free(name);
	cube_buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),   cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_cut),     cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_bytes),   cmocka_unit_test(test_refused),
		cmocka_unit_test(test_ceiling), cmocka_unit_test(test_data_head),
		cmocka_unit_test(test_dirents), cmocka_unit_test(test_stats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
