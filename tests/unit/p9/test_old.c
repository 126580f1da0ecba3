/* SPDX-License-Identifier: Apache-2.0 */
/* 9P2000 and 9P2000.u: what they do their own way. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/p9/peer.h"

static struct peer p;

static int open_all(void **state)
{
	if (peer_up(state) != 0)
		return -1;
	rig_cube("box");
	return 0;
}

static int close_all(void **state)
{
	rig_gone("box");
	return peer_down(state);
}

static struct cube_p9_str str(const char *s)
{
	return (struct cube_p9_str){s, (uint16_t)strlen(s)};
}

static int open_as(uint32_t fid, uint8_t mode)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TOPEN, .fid = fid, .open_mode = mode};

	return peer_rpc(&p, &m);
}

static int create_as(uint32_t fid, const char *name, uint32_t perm, uint8_t mode, const char *extension)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TCREATE,
				.fid = fid,
				.name = str(name),
				.mode = perm,
				.open_mode = mode,
				.second = str(extension)};

	return peer_rpc(&p, &m);
}

static int clunk(uint32_t fid)
{
	return peer_fid(&p, CUBE_P9_TCLUNK, fid);
}

static void check_sentence(const char *part)
{
	char text[512];

	assert_int_equal(p.r.type, CUBE_P9_RERROR);
	(void)snprintf(text, sizeof(text), "%.*s", p.r.name.len, p.r.name.s);
	if (strstr(text, part) == NULL)
		fail_msg("'%s' says nothing of '%s'", text, part);
}

/* The sentence of `error`, and in .u the number. */
static void check_errors(void **state)
{
	static const char *const versions[] = {"9P2000", "9P2000.u"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		peer_open(&p, versions[i], 8192, "");
		assert_int_equal(peer_walk(&p, 0, 1, "none"), -EREMOTEIO);
		check_sentence("No such file");
		assert_int_equal(p.r.error, i == 1 ? ENOENT : 0);
		assert_int_equal(peer_walk(&p, 0, 1, "box/status"), 0);
		assert_int_equal(open_as(1, CUBE_P9_OWRITE), -EREMOTEIO);
		check_sentence("'status' is read only");
		assert_int_equal(p.r.error, i == 1 ? EACCES : 0);
		assert_int_equal(peer_walk(&p, 0, 2, "box/ctl"), 0);
		assert_int_equal(open_as(2, CUBE_P9_OWRITE), 0);
		assert_int_equal(peer_write(&p, 2, 0, "frobnicate\n"), -EREMOTEIO);
		check_sentence("frobnicate");
		/* messages of the other dialect */
		peer_raw(&p, "\x0b\0\0\0\x08\x63\0\0\0\0\0", 11);
		assert_int_equal(peer_next(&p), 0x63);
		check_sentence("not of this dialect");
		peer_close(&p);
	}
}

static void check_command(void **state)
{
	char text[64];
	int n;

	(void)state;
	peer_open(&p, "9P2000", 8192, "/box");
	assert_int_equal(peer_walk(&p, 0, 1, "exec"), 0);
	assert_int_equal(open_as(1, CUBE_P9_OWRITE | CUBE_P9_OTRUNC), 0);
	assert_int_equal(peer_write(&p, 1, 0, "echo old\n"), 9);
	assert_int_equal(clunk(1), 0);
	assert_int_equal(peer_walk(&p, 0, 1, "exec"), 0);
	assert_int_equal(open_as(1, CUBE_P9_OREAD), 0);
	n = peer_read(&p, 1, 0, 100);
	(void)snprintf(text, sizeof(text), "%.*s", n, (const char *)p.r.data);
	assert_string_equal(text, "old\n");
	peer_close(&p);
}

/* Whole records, in pieces; from the start, or where the last piece ended. */
static void check_directory(void **state)
{
	struct cube_p9_stat st;
	char names[1024] = "";
	uint64_t off = 0;
	int n;

	(void)state;
	peer_open(&p, "9P2000.u", 8192, "");
	assert_int_equal(peer_walk(&p, 0, 1, ""), 0);
	assert_int_equal(open_as(1, CUBE_P9_OREAD), 0);
	assert_int_equal(peer_read(&p, 1, 0, 10), -EREMOTEIO);
	while ((n = peer_read(&p, 1, off, 160)) > 0) {
		ssize_t len;

		off += (uint64_t)n;
		for (const char *at = p.r.data; n > 0; at += len, n -= (int)len) {
			len = cube_p9_stat_get(at, (size_t)n, p.dialect, &st);
			assert_true(len > 0);
			(void)snprintf(names + strlen(names), sizeof(names) - strlen(names), "%.*s ",
				       st.name.len, st.name.s);
		}
	}
	assert_int_equal(n, 0);
	assert_string_equal(names, "README ctl list clone events error backends volumes box ");
	assert_int_equal(peer_read(&p, 1, 5, 160), -EREMOTEIO);
	check_sentence("piece by piece");
	assert_true(peer_read(&p, 1, 0, 8000) > 0); /* from the start again */
	peer_close(&p);
}

static void check_create(void **state)
{
	(void)state;
	peer_open(&p, "9P2000.u", 8192, "/box");
	assert_int_equal(peer_walk(&p, 0, 1, "files/workspace"), 0);
	assert_int_equal(peer_walk(&p, 1, 2, ""), 0);
	assert_int_equal(create_as(2, "dir", CUBE_P9_DMDIR | 0755, CUBE_P9_OREAD, ""), 0);
	assert_int_equal(p.r.qid.type, CUBE_P9_QTDIR);
	assert_int_equal(peer_read(&p, 2, 0, 1000), 0); /* open, and empty */
	assert_int_equal(clunk(2), 0);
	assert_int_equal(peer_walk(&p, 1, 2, "dir"), 0);
	assert_int_equal(create_as(2, "file", 0644, CUBE_P9_ORDWR | CUBE_P9_ORCLOSE, ""), 0);
	assert_int_equal(peer_write(&p, 2, 0, "text"), 4);
	assert_int_equal(peer_walk(&p, 1, 3, "dir/file"), 0);
	assert_int_equal(clunk(3), 0);
	assert_int_equal(clunk(2), 0); /* it is removed with that */
	assert_int_equal(peer_walk(&p, 1, 3, "dir/file"), -ENOENT);
	assert_int_equal(peer_walk(&p, 1, 2, "dir"), 0);
	assert_int_equal(create_as(2, "link", CUBE_P9_DMSYMLINK | 0777, 0, "some/where"), 0);
	assert_int_equal(peer_fid(&p, CUBE_P9_TSTAT, 2), 0);
	assert_int_equal(p.r.stat.mode & CUBE_P9_DMSYMLINK, CUBE_P9_DMSYMLINK);
	assert_int_equal(p.r.stat.extension.len, 10);
	assert_memory_equal(p.r.stat.extension.s, "some/where", 10);
	assert_int_equal(clunk(2), 0);
	assert_int_equal(peer_walk(&p, 1, 2, "dir"), 0);
	assert_int_equal(create_as(2, "device", CUBE_P9_DMDEVICE | 0600, 0, "c 1 3"), -EREMOTEIO);
	assert_int_equal(p.r.error, EPERM);
	assert_int_equal(create_as(2, "device", CUBE_P9_DMDEVICE | 0600, 0, "x 1"), -EREMOTEIO);
	assert_int_equal(p.r.error, EINVAL);
	assert_int_equal(create_as(2, "pipe", CUBE_P9_DMNAMEDPIPE | 0600, 0, ""), 0);
	assert_int_equal(clunk(2), 0);
	assert_int_equal(peer_walk(&p, 1, 2, "dir"), 0);
	assert_int_equal(create_as(2, "pipe", 0644, CUBE_P9_OWRITE, ""), -EREMOTEIO);
	assert_int_equal(p.r.error, EEXIST);
	peer_close(&p);
}

static void check_wstat(void **state)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TWSTAT, .fid = 2};
	const struct cube_p9_stat leave = {.type = 0xffff,
					   .dev = UINT32_MAX,
					   .qid = {0xff, UINT32_MAX, UINT64_MAX},
					   .mode = UINT32_MAX,
					   .atime = UINT32_MAX,
					   .mtime = UINT32_MAX,
					   .length = UINT64_MAX,
					   .n_uid = UINT32_MAX,
					   .n_gid = UINT32_MAX,
					   .n_muid = UINT32_MAX};

	(void)state;
	peer_open(&p, "9P2000", 8192, "/box");
	assert_int_equal(peer_walk(&p, 0, 1, "files/workspace"), 0);
	assert_int_equal(peer_walk(&p, 1, 2, ""), 0);
	assert_int_equal(create_as(2, "before", 0600, CUBE_P9_ORDWR, ""), 0);
	assert_int_equal(peer_write(&p, 2, 0, "longer"), 6);
	m.stat = leave;
	assert_int_equal(peer_rpc(&p, &m), 0);
	m.stat.mode = 0640;
	m.stat.length = 4;
	m.stat.mtime = 1000000000;
	m.stat.name = str("after");
	assert_int_equal(peer_rpc(&p, &m), 0);
	assert_int_equal(peer_fid(&p, CUBE_P9_TSTAT, 2), 0);
	assert_int_equal(p.r.stat.mode, 0640);
	assert_int_equal(p.r.stat.length, 4);
	assert_int_equal(p.r.stat.mtime, 1000000000);
	assert_int_equal(p.r.stat.name.len, 5);
	assert_memory_equal(p.r.stat.name.s, "after", 5);
	assert_int_equal(peer_walk(&p, 1, 3, "before"), -EREMOTEIO);
	m.stat = leave;
	m.stat.mode = CUBE_P9_DMDIR | 0700;
	assert_int_equal(peer_rpc(&p, &m), -EREMOTEIO);
	m.stat = leave;
	m.stat.name = str("a/b");
	assert_int_equal(peer_rpc(&p, &m), -EREMOTEIO);
	assert_int_equal(peer_fid(&p, CUBE_P9_TREMOVE, 2), 0);
	assert_int_equal(peer_walk(&p, 1, 3, "after"), -EREMOTEIO);
	/* a sandbox is renamed so, too, and not one's own root */
	m.fid = 0;
	m.stat = leave;
	m.stat.name = str("other");
	assert_int_equal(peer_rpc(&p, &m), -EREMOTEIO);
	peer_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_errors),    cmocka_unit_test(check_command),
		cmocka_unit_test(check_directory), cmocka_unit_test(check_create),
		cmocka_unit_test(check_wstat),
	};

	return cmocka_run_group_tests(tests, open_all, close_all);
}
