/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: how they begin and end, what a fid may, who is cut off, what a flush does. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "fs/p9/priv.h"
#include "tests/unit/p9/peer.h"

static struct peer p;

static void check_versions(void **state)
{
	static const struct {
		const char *asked, *given;
		uint32_t msize, got;
	} cases[] = {
		{"9P2000.L", "9P2000.L", 4096, 4096},
		{"9P2000.L", "9P2000.L", 0xffffffff, 1 << 20},
		{"9P2000.u", "9P2000.u", 8192, 8192},
		{"9P2000", "9P2000", 8192, 8192},
		{"9P2000.exotic", "9P2000", 65536, 65536},
		{"9P1999", "unknown", 8192, 8192},
		{"", "unknown", 8192, 8192},
	};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		peer_open(&p, cases[i].asked, cases[i].msize, NULL);
		assert_int_equal(p.r.msize, cases[i].got);
		assert_int_equal(p.r.name.len, strlen(cases[i].given));
		assert_memory_equal(p.r.name.s, cases[i].given, p.r.name.len);
		peer_close(&p);
	}
}

static void check_before_version(void **state)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TVERSION, .msize = 4095, .name = {"9P2000.L", 8}};

	(void)state;
	peer_open(&p, NULL, 0, NULL);
	assert_int_equal(peer_fid(&p, CUBE_P9_TCLUNK, 0), -EPROTO);
	assert_int_equal(peer_rpc(&p, &m), -EMSGSIZE);
	assert_int_equal(peer_fid(&p, CUBE_P9_TCLUNK, 0), -EPROTO);
	m.msize = 4096;
	assert_int_equal(peer_rpc(&p, &m), 0);
	assert_int_equal(peer_fid(&p, CUBE_P9_TCLUNK, 0), -EBADF);
	peer_close(&p);
}

/* Each of these is the last thing that the peer is heard of. */
static void check_cut_off(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} cases[] = {
		{"\x06\0\0\0\x64\0\0", 7},           /* shorter than its head */
		{"\xff\xff\xff\xff\x64\xff\xff", 7}, /* longer than any */
		{"\x0b\0\0\0\x79\1\0\0\0\0\0", 11},  /* a reply */
		{"\x07\0\0\0\0\1\0", 7},             /* no type */
	};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		peer_open(&p, "9P2000.L", 8192, "");
		peer_raw(&p, cases[i].bytes, cases[i].len);
		assert_int_equal(peer_next(&p), -1);
		peer_close(&p);
	}
}

/* Whatever of a message is there when the peer goes, nothing is left of it. */
static void check_half_messages(void **state)
{
	static const char walk[] = "\x16\0\0\0\x6e\x07\0\0\0\0\0\x02\0\0\0\x01\0\x03\0dev";

	(void)state;
	for (size_t len = 0; len < sizeof(walk) - 1; len++) {
		peer_open(&p, "9P2000.L", 8192, "");
		peer_raw(&p, walk, len);
		peer_close(&p);
	}
	/* byte by byte it is one all the same */
	peer_open(&p, "9P2000.L", 8192, "");
	for (size_t i = 0; i < sizeof(walk) - 1; i++)
		peer_raw(&p, walk + i, 1);
	assert_int_equal(peer_next(&p), 7);
	assert_int_equal(p.r.type, CUBE_P9_RLERROR);
	assert_int_equal(p.r.error, ENOENT);
	/* a body that is none is an error, and the next message is understood */
	peer_raw(&p, "\x0c\0\0\0\x78\x08\0\0\0\0\0x", 12);
	assert_int_equal(peer_next(&p), 8);
	assert_int_equal(p.r.error, EPROTO);
	peer_raw(&p, "\x07\0\0\0\x06\x09\0", 7);
	assert_int_equal(peer_next(&p), 9);
	assert_int_equal(p.r.error, EOPNOTSUPP);
	assert_int_equal(peer_fid(&p, CUBE_P9_TGETATTR, 0), 0);
	peer_close(&p);
}

static void check_attach(void **state)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TATTACH, .fid = 1, .newfid = CUBE_P9_NOFID};
	struct cube_p9_msg auth = {.type = CUBE_P9_TAUTH, .newfid = 5};

	(void)state;
	rig_cube("box");
	peer_open(&p, "9P2000.L", 8192, "/box");
	assert_int_equal(p.r.qid.type, CUBE_P9_QTDIR);
	assert_int_equal(peer_rpc(&p, &auth), -ENOENT);
	/* never above where one came in, however long the way */
	assert_int_equal(peer_walk(&p, 0, 1, "../../.."), 0);
	assert_int_equal(p.r.qids[2].path, p.r.qids[0].path);
	assert_int_equal(peer_walk(&p, 1, 2, "status"), 0);
	assert_int_equal(peer_walk(&p, 1, 3, "README"), -ENOENT);
	assert_int_equal(peer_walk(&p, 1, 3, "jobs/../../box"), -ENOENT);
	m.fid = 0;
	assert_int_equal(peer_rpc(&p, &m), -EBADF); /* in use */
	m.fid = 9;
	m.newfid = 5;
	assert_int_equal(peer_rpc(&p, &m), -EINVAL);
	m.newfid = CUBE_P9_NOFID;
	m.second = (struct cube_p9_str){"/none", 5};
	assert_int_equal(peer_rpc(&p, &m), -ENOENT);
	m.second = (struct cube_p9_str){"/box/status", 11};
	assert_int_equal(peer_rpc(&p, &m), -ENOTDIR);
	m.second = (struct cube_p9_str){"/..", 3};
	assert_int_equal(peer_rpc(&p, &m), -EINVAL);
	/* a second one beside it */
	m.second = (struct cube_p9_str){"/", 1};
	assert_int_equal(peer_rpc(&p, &m), 0);
	assert_int_equal(peer_walk(&p, 9, 10, "README"), 0);
	peer_close(&p);
	rig_gone("box");
}

static void check_token(void **state)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TATTACH, .fid = 1, .newfid = CUBE_P9_NOFID};
	static const char *const wrong[] = {
		"", "/", "secret", "secret-word-wrong/", "secret-word-right-and-more/", "/secret-word-right"};

	(void)state;
	peer_token("secret-word-right");
	peer_open(&p, "9P2000.L", 8192, NULL);
	for (size_t i = 0; i < CUBE_COUNT(wrong); i++) {
		m.second = (struct cube_p9_str){wrong[i], (uint16_t)strlen(wrong[i])};
		assert_int_equal(peer_rpc(&p, &m), -EACCES);
	}
	m.second = (struct cube_p9_str){"secret-word-right/volumes", 25};
	assert_int_equal(peer_rpc(&p, &m), 0);
	m.fid = 2;
	m.second = (struct cube_p9_str){"secret-word-right", 17};
	assert_int_equal(peer_rpc(&p, &m), 0);
	peer_token(NULL);
	peer_close(&p);
}

static void check_walks(void **state)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TWALK, .fid = 0, .newfid = 7, .n_names = 2};

	(void)state;
	peer_open(&p, "9P2000.L", 8192, "");
	assert_int_equal(peer_walk(&p, 0, 1, ""), 0);      /* a copy */
	assert_int_equal(peer_walk(&p, 0, 1, ""), -EBADF); /* in use */
	assert_int_equal(peer_walk(&p, 5, 6, ""), -EBADF); /* not known */
	assert_int_equal(peer_walk(&p, 0, CUBE_P9_NOFID, ""), -EBADF);
	assert_int_equal(peer_walk(&p, 1, 1, "volumes"), 0); /* it moves */
	assert_int_equal(peer_walk(&p, 1, 1, ".."), 0);
	assert_int_equal(peer_walk(&p, 1, 2, "README/x"), -ENOENT);
	assert_int_equal(p.r.n_qids, 1); /* as far as it went */
	assert_int_equal(peer_fid(&p, CUBE_P9_TCLUNK, 2), -EBADF);
	m.names[0] = (struct cube_p9_str){"vol/umes", 8};
	m.names[1] = (struct cube_p9_str){"x", 1};
	assert_int_equal(peer_rpc(&p, &m), -EINVAL);
	m.names[0] = (struct cube_p9_str){"", 0};
	assert_int_equal(peer_rpc(&p, &m), -ENOENT);
	m.names[0] = (struct cube_p9_str){"a\0b", 3};
	assert_int_equal(peer_rpc(&p, &m), -EINVAL);
	/* from an open one to another, but it stays itself */
	assert_int_equal(peer_lopen(&p, 1, 0), 0);
	assert_int_equal(peer_lopen(&p, 1, 0), -EINVAL);
	assert_int_equal(peer_walk(&p, 1, 1, "volumes"), -EBUSY);
	assert_int_equal(peer_walk(&p, 1, 2, "volumes"), 0);
	assert_int_equal(peer_fid(&p, CUBE_P9_TCLUNK, 1), 0);
	assert_int_equal(peer_fid(&p, CUBE_P9_TCLUNK, 1), -EBADF);
	peer_close(&p);
}

static void check_limit_of_fids(void **state)
{
	unsigned n = 1;

	(void)state;
	peer_open(&p, "9P2000.L", 8192, "");
	while (peer_walk(&p, 0, n, "") == 0)
		assert_in_range(++n, 1, limits.fids);
	assert_int_equal(p.r.error, EMFILE);
	assert_int_equal(n, limits.fids);
	assert_int_equal(peer_fid(&p, CUBE_P9_TCLUNK, 1), 0);
	assert_int_equal(peer_walk(&p, 0, 1, ""), 0);
	peer_close(&p);
}

/* Tversion ends all that was there before. */
static void check_reset(void **state)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TVERSION, .msize = 16384, .name = {"9P2000.L", 8}};
	struct cube_p9_msg wait = {.type = CUBE_P9_TREAD, .fid = 1, .count = 100};

	(void)state;
	peer_open(&p, "9P2000.L", 8192, "");
	assert_int_equal(peer_walk(&p, 0, 1, "events"), 0);
	assert_int_equal(peer_lopen(&p, 1, 2), 0);
	(void)peer_send(&p, &wait);
	assert_int_equal(peer_rpc(&p, &m), 0); /* and no reply to the read */
	assert_int_equal(p.r.msize, 16384);
	assert_int_equal(peer_fid(&p, CUBE_P9_TCLUNK, 0), -EBADF);
	assert_int_equal(peer_fid(&p, CUBE_P9_TCLUNK, 1), -EBADF);
	assert_true(peer_quiet(&p, 0));
	peer_close(&p);
}

static void flush(uint16_t tag)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TFLUSH, .oldtag = tag};

	(void)peer_send(&p, &m);
}

static void check_flush(void **state)
{
	struct cube_p9_msg wait = {.type = CUBE_P9_TREAD, .fid = 1, .count = 100};
	uint16_t tag, other;

	(void)state;
	peer_open(&p, "9P2000.L", 8192, "");
	flush(999); /* nothing is known of it */
	assert_int_equal(peer_next(&p), p.tag - 1);
	assert_int_equal(p.r.type, CUBE_P9_RFLUSH);
	assert_int_equal(peer_walk(&p, 0, 1, "events"), 0);
	assert_int_equal(peer_lopen(&p, 1, 2), 0);
	tag = peer_send(&p, &wait);
	other = peer_send(&p, &wait);
	flush(tag);
	assert_int_equal(peer_next(&p), p.tag - 1); /* no reply to the read */
	assert_int_equal(p.r.type, CUBE_P9_RFLUSH);
	/* twice, and of a flush: all are answered, in order */
	flush(other);
	flush(other);
	flush(p.tag - 1);
	for (int i = 3; i > 0; i--) {
		assert_int_equal(peer_next(&p), p.tag - i);
		assert_int_equal(p.r.type, CUBE_P9_RFLUSH);
	}
	/* a clunk ends a read that waits through the fid */
	tag = peer_send(&p, &wait);
	wait.type = CUBE_P9_TCLUNK;
	other = peer_send(&p, &wait);
	assert_int_equal(peer_next(&p), tag);
	assert_int_equal(p.r.error, EINTR);
	assert_int_equal(peer_next(&p), other);
	assert_int_equal(p.r.type, CUBE_P9_RCLUNK);
	peer_close(&p);
}

/* However many wait, what ends them gets in. */
static void check_many_wait(void **state)
{
	struct cube_p9_msg wait = {.type = CUBE_P9_TREAD, .fid = 1, .count = 100};
	uint16_t first;

	(void)state;
	peer_open(&p, "9P2000.L", 8192, "");
	assert_int_equal(peer_walk(&p, 0, 1, "events"), 0);
	assert_int_equal(peer_walk(&p, 0, 2, ""), 0);
	assert_int_equal(peer_lopen(&p, 1, 2), 0);
	first = p.tag;
	for (unsigned i = 0; i < limits.tags; i++)
		(void)peer_send(&p, &wait);
	assert_int_equal(peer_fid(&p, CUBE_P9_TGETATTR, 0), -EAGAIN);
	assert_int_equal(peer_fid(&p, CUBE_P9_TREMOVE, 2), -EBUSY);
	assert_int_equal(peer_fid(&p, CUBE_P9_TCLUNK, 2), -EBADF);
	flush(first);
	assert_int_equal(peer_next(&p), p.tag - 1);
	assert_int_equal(peer_fid(&p, CUBE_P9_TGETATTR, 0), 0);
	peer_close(&p); /* and nothing hangs */
}

/* ---- those that stop in the middle ---- */

/* The only connection: looked at as if it were so many seconds later, on the loop's thread. */
struct look {
	struct cube_post post;
	unsigned seconds;
	pthread_mutex_t lock;
	pthread_cond_t done;
	bool over;
};

static void looked(struct cube_post *post)
{
	struct look *l = cube_container_of(post, struct look, post);
	uint64_t now = cube_clock_mono() / 1000000 + l->seconds * 1000;

	cube_list_each (i, &server->conns)
		cube_p9_conn_check(cube_list_entry(i, struct p9_conn, link), now);
	(void)pthread_mutex_lock(&l->lock);
	l->over = true;
	(void)pthread_cond_signal(&l->done);
	(void)pthread_mutex_unlock(&l->lock);
}

static void later(unsigned seconds)
{
	struct look l = {.post.fn = looked,
			 .seconds = seconds,
			 .lock = PTHREAD_MUTEX_INITIALIZER,
			 .done = PTHREAD_COND_INITIALIZER};

	cube_loop_post(rig.loop, &l.post);
	(void)pthread_mutex_lock(&l.lock);
	while (!l.over)
		(void)pthread_cond_wait(&l.done, &l.lock);
	(void)pthread_mutex_unlock(&l.lock);
}

/* What was sent may be on its way yet: it is looked at until then. */
static bool cut_off(unsigned seconds, unsigned looks)
{
	struct pollfd end = {.fd = p.fd, .events = POLLRDHUP};

	while (looks-- > 0) {
		later(seconds);
		if (poll(&end, 1, 5) == 1)
			return true;
	}
	return false;
}

/* Reads of which each has its answer, all at once. */
static void many_reads(unsigned count)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TREAD, .fid = 1, .count = 8000};
	struct cube_buf b = CUBE_BUF(1u << 16);

	for (m.tag = 100; m.tag < 100 + count; m.tag++)
		assert_int_equal(cube_p9_encode(&m, CUBE_P9_2000L, &b), 0);
	peer_raw(&p, b.data, b.len);
	cube_buf_done(&b);
}

/* Who does not come in, sends half a message or takes no answers is cut off in the end; a mount that nobody uses is
 * not. */
static void check_slow_peers(void **state)
{
	(void)state;
	peer_open(&p, NULL, 0, NULL);
	assert_false(cut_off(25, 1));
	assert_true(cut_off(31, 2000));
	peer_close(&p);

	peer_open(&p, "9P2000.L", 8192, "");
	assert_false(cut_off(24 * 3600, 1));
	assert_int_equal(peer_fid(&p, CUBE_P9_TGETATTR, 0), 0);
	peer_raw(&p, "\x13\0\0\0\x18", 5);
	assert_false(cut_off(55, 20));
	assert_true(cut_off(61, 2000));
	peer_close(&p);

	peer_open(&p, "9P2000.L", 8192, "");
	assert_int_equal(peer_walk(&p, 0, 1, "README"), 0);
	assert_int_equal(peer_lopen(&p, 1, 0), 0);
	many_reads(1000);
	assert_false(cut_off(55, 20));
	assert_true(cut_off(61, 2000));
	peer_close(&p);
}

/* Without memory a request is refused with that, or the connection ends: nobody waits in vain. */
static void check_no_memory(void **state)
{
	static const char getattr[] = "\x13\0\0\0\x18\x05\0\0\0\0\0\xff\xff\0\0\0\0\0\0";
	int tag = -1;

	(void)state;
	for (unsigned long n = 1; tag < 0 || p.r.type == CUBE_P9_RLERROR; n++) {
		assert_in_range(n, 1, 100);
		peer_open(&p, "9P2000.L", 8192, "");
		cube_alloc_fail_at(n);
		peer_raw(&p, getattr, sizeof(getattr) - 1);
		assert_false(peer_quiet(&p, 10000));
		cube_alloc_fail_at(0);
		tag = peer_next(&p);
		if (tag >= 0 && p.r.type == CUBE_P9_RLERROR)
			assert_int_equal(p.r.error, ENOMEM);
		peer_hang_up(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_versions),   cmocka_unit_test(check_before_version),
		cmocka_unit_test(check_cut_off),    cmocka_unit_test(check_half_messages),
		cmocka_unit_test(check_attach),     cmocka_unit_test(check_token),
		cmocka_unit_test(check_walks),      cmocka_unit_test(check_limit_of_fids),
		cmocka_unit_test(check_reset),      cmocka_unit_test(check_flush),
		cmocka_unit_test(check_many_wait),  cmocka_unit_test(check_no_memory),
		cmocka_unit_test(check_slow_peers),
	};

	limits = (struct cube_p9_limits){.connections = 16, .fids = 64, .tags = 32, .msize = 1u << 20};
	return cmocka_run_group_tests(tests, peer_up, peer_down);
}
