/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with files, by 9P2000.L: commands and channels, real files, names, attributes, locks. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "tests/unit/p9/peer.h"

static struct peer p, q;

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

static void begin(struct peer *peer)
{
	peer_open(peer, "9P2000.L", 65536, "");
}

static struct cube_p9_str str(const char *s)
{
	return (struct cube_p9_str){s, (uint16_t)strlen(s)};
}

static int at(const char *path, uint32_t fid)
{
	return peer_walk(&p, 0, fid, path);
}

static int clunk(uint32_t fid)
{
	return peer_fid(&p, CUBE_P9_TCLUNK, fid);
}

/* ---- the tree's own files ---- */

static void check_command(void **state)
{
	(void)state;
	begin(&p);
	assert_int_equal(peer_echo(&p, "echo one\n", "box/exec"), 0);
	assert_string_equal(peer_cat(&p, "box/exec"), "one\n");
	assert_string_equal(peer_cat(&p, "box/exit"), "0\n");
	assert_int_equal(peer_echo(&p, "exit 3\n", "box/exec"), 0);
	assert_string_equal(peer_cat(&p, "box/exit"), "3\n");
	assert_int_equal(peer_echo(&p, "no-such-verb\n", "box/ctl"), -EINVAL);
	assert_int_equal(peer_echo(&p, "x", "box/status"), -EACCES);
	peer_close(&p);
}

static void check_channel(void **state)
{
	(void)state;
	begin(&p);
	assert_int_equal(at("box/exec", 1), 0);
	assert_int_equal(peer_lopen(&p, 1, 2), 0);
	assert_int_equal(peer_write(&p, 1, 0, "echo a; echo b\n"), 15);
	/* where a read is, is no matter */
	assert_int_equal(peer_read(&p, 1, 77777, 2), 2);
	assert_memory_equal(p.r.data, "a\n", 2);
	assert_int_equal(peer_read(&p, 1, 5, 100), 2);
	assert_memory_equal(p.r.data, "b\n", 2);
	assert_int_equal(peer_read(&p, 1, 0, 100), 0);
	assert_int_equal(peer_write(&p, 1, 3, "echo c\n"), 7);
	assert_int_equal(peer_read(&p, 1, 0, 100), 2);
	assert_memory_equal(p.r.data, "c\n", 2);
	assert_int_equal(clunk(1), 0);
	peer_close(&p);
}

/* A clunk that is called off interrupts the command; its fid is free, and one more clunk of it is well. */
static void check_clunk_flushed(void **state)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TCLUNK, .fid = 1};
	struct cube_p9_msg flush = {.type = CUBE_P9_TFLUSH};

	(void)state;
	begin(&p);
	assert_int_equal(at("box/exec", 1), 0);
	assert_int_equal(peer_lopen(&p, 1, 1), 0);
	assert_int_equal(peer_write(&p, 1, 0, "await never-comes\n"), 18);
	flush.oldtag = peer_send(&p, &m);
	assert_true(peer_quiet(&p, 50));
	assert_int_equal(peer_rpc(&p, &flush), 0); /* and no Rclunk */
	assert_int_equal(clunk(1), 0);
	assert_int_equal(clunk(1), -EBADF);
	assert_string_equal(peer_cat(&p, "box/exit"), "130\n");
	peer_close(&p);
}

static void check_hung_up(void **state)
{
	(void)state;
	begin(&p);
	begin(&q);
	assert_int_equal(peer_walk(&q, 0, 1, "box/exec"), 0);
	assert_int_equal(peer_lopen(&q, 1, 1), 0);
	assert_int_equal(peer_write(&q, 1, 0, "echo never\n"), 11);
	peer_close(&q);
	while (strstr(peer_cat(&p, "box/error"), "the connection ended") == NULL)
		(void)usleep(1000);
	assert_null(strstr(peer_cat(&p, "box/exec"), "never"));
	peer_close(&p);
}

/* ---- names ---- */

static void check_sandboxes(void **state)
{
	(void)state;
	begin(&p);
	assert_int_equal(peer_named(&p, CUBE_P9_TMKDIR, 0, "second", 0755), 0);
	assert_int_equal(p.r.qid.type, CUBE_P9_QTDIR);
	assert_int_equal(peer_named(&p, CUBE_P9_TMKDIR, 0, "second", 0755), -EEXIST);
	assert_int_equal(peer_named(&p, CUBE_P9_TMKDIR, 0, "-bad", 0755), -EINVAL);
	assert_int_equal(at("second", 1), 0);
	assert_int_equal(at("second/jobs", 2), 0);
	assert_int_equal(peer_named(&p, CUBE_P9_TMKDIR, 2, "build", 0755), 0);
	/* the fid holds the thing, not the name */
	{
		struct cube_p9_msg m = {.type = CUBE_P9_TRENAMEAT,
					.fid = 0,
					.newfid = 0,
					.name = str("second"),
					.second = str("third")};

		assert_int_equal(peer_rpc(&p, &m), 0);
	}
	assert_int_equal(peer_walk(&p, 1, 3, "status"), 0);
	assert_int_equal(at("second", 4), -ENOENT);
	assert_int_equal(peer_fid(&p, CUBE_P9_TREMOVE, 1), 0);
	assert_int_equal(clunk(1), -EBADF);
	assert_int_equal(at("third", 1), -ENOENT);
	assert_int_equal(peer_named(&p, CUBE_P9_TUNLINKAT, 0, "third", 0x200), -ENOENT);
	assert_int_equal(peer_named(&p, CUBE_P9_TUNLINKAT, 0, "box", 0x400), -EINVAL);
	peer_close(&p);
}

/* Who removes sees nothing below; another connection does. */
static void check_remover(void **state)
{
	struct cube_p9_msg list = {.type = CUBE_P9_TREADDIR, .fid = 2, .count = 4096};
	struct cube_p9_dirent e;

	(void)state;
	begin(&p);
	begin(&q);
	assert_int_equal(at("box", 1), 0);
	assert_int_equal(peer_named(&p, CUBE_P9_TUNLINKAT, 1, "status", 0), 0);
	for (int i = 0; i < 2; i++) {
		struct peer *who = i == 0 ? &p : &q;
		unsigned n = 0;

		assert_int_equal(peer_walk(who, 0, 2, "box/jobs"), 0);
		assert_int_equal(peer_lopen(who, 2, 0), 0);
		assert_int_equal(peer_rpc(who, &list), 0);
		for (size_t off = 0; off < who->r.count; n++)
			off += (size_t)cube_p9_dirent_get((const char *)who->r.data + off, who->r.count - off,
							  &e);
		if (i == 0)
			assert_int_equal(n, 2);
		else
			assert_true(n > 2);
	}
	peer_close(&p);
	peer_close(&q);
}

/* ---- real files ---- */

static int create(uint32_t dir, uint32_t fid, const char *name, uint32_t flags)
{
	struct cube_p9_msg m = {
		.type = CUBE_P9_TLCREATE, .fid = fid, .name = str(name), .flags = flags, .mode = 0640};
	int code = peer_walk(&p, dir, fid, "");

	return code < 0 ? code : peer_rpc(&p, &m);
}

static void check_real_files(void **state)
{
	struct cube_p9_msg fsync = {.type = CUBE_P9_TFSYNC, .fid = 2};
	struct cube_p9_msg set = {
		.type = CUBE_P9_TSETATTR, .fid = 2, .flags = CUBE_P9_SETATTR_SIZE, .attr.size = 3};

	(void)state;
	begin(&p);
	assert_int_equal(at("box/files/workspace", 1), 0);
	assert_int_equal(create(1, 2, "file", 2), 0);
	assert_int_equal(p.r.iounit, 65536 - 24);
	assert_int_equal(peer_write(&p, 2, 0, "some text"), 9);
	assert_int_equal(peer_read(&p, 2, 5, 100), 4);
	assert_memory_equal(p.r.data, "text", 4);
	assert_int_equal(peer_rpc(&p, &fsync), 0);
	assert_int_equal(peer_rpc(&p, &set), 0);
	assert_int_equal(peer_fid(&p, CUBE_P9_TGETATTR, 2), 0);
	assert_int_equal(p.r.attr.size, 3);
	assert_int_equal(p.r.attr.mode, S_IFREG | 0640);
	assert_int_equal(p.r.mask, CUBE_P9_GETATTR_BASIC);
	set.flags = 0x200;
	assert_int_equal(peer_rpc(&p, &set), -EINVAL);
	assert_int_equal(clunk(2), 0);
	assert_int_equal(create(1, 2, "file", 2 | CUBE_P9_OPEN_EXCL), -EEXIST);
	assert_int_equal(clunk(2), 0);
	/* the inside sees it */
	assert_int_equal(peer_echo(&p, "cat /workspace/file\n", "box/exec"), 0);
	assert_string_equal(peer_cat(&p, "box/exec"), "som");
	/* open ones outlive their name */
	assert_int_equal(at("box/files/workspace/file", 2), 0);
	assert_int_equal(peer_read(&p, 2, 0, 10), -EBADF);
	assert_int_equal(peer_lopen(&p, 2, 0), 0);
	assert_int_equal(peer_write(&p, 2, 0, "x"), -EBADF);
	assert_int_equal(peer_named(&p, CUBE_P9_TUNLINKAT, 1, "file", 0), 0);
	assert_int_equal(peer_read(&p, 2, 0, 10), 3);
	assert_int_equal(peer_fid(&p, CUBE_P9_TGETATTR, 2), 0);
	assert_int_equal(clunk(2), 0);
	peer_close(&p);
}

static void check_real_names(void **state)
{
	struct cube_p9_msg link = {
		.type = CUBE_P9_TSYMLINK, .fid = 1, .name = str("link"), .second = str("d/f")};
	struct cube_p9_msg hard = {.type = CUBE_P9_TLINK, .fid = 1, .newfid = 3, .name = str("hard")};
	struct cube_p9_msg move = {.type = CUBE_P9_TRENAME, .fid = 3, .newfid = 1, .name = str("moved")};
	struct cube_p9_msg node = {
		.type = CUBE_P9_TMKNOD, .fid = 1, .name = str("fifo"), .mode = S_IFIFO | 0600};

	(void)state;
	begin(&p);
	assert_int_equal(at("box/files/workspace", 1), 0);
	assert_int_equal(peer_named(&p, CUBE_P9_TMKDIR, 1, "d", 0700), 0);
	assert_int_equal(peer_walk(&p, 1, 2, "d"), 0);
	assert_int_equal(create(2, 3, "f", 1), 0);
	assert_int_equal(clunk(3), 0);
	assert_int_equal(peer_rpc(&p, &link), 0);
	assert_int_equal(p.r.qid.type, CUBE_P9_QTSYMLINK);
	assert_int_equal(peer_walk(&p, 1, 3, "link"), 0);
	assert_int_equal(peer_fid(&p, CUBE_P9_TREADLINK, 3), 0);
	assert_int_equal(p.r.name.len, 3);
	assert_memory_equal(p.r.name.s, "d/f", 3);
	assert_int_equal(peer_lopen(&p, 3, 0), -ELOOP);
	assert_int_equal(clunk(3), 0);
	assert_int_equal(peer_walk(&p, 2, 3, "f"), 0);
	assert_int_equal(peer_rpc(&p, &hard), 0);
	assert_int_equal(peer_fid(&p, CUBE_P9_TGETATTR, 3), 0);
	assert_int_equal(p.r.attr.nlink, 2);
	assert_int_equal(peer_rpc(&p, &move), 0); /* d/f -> moved, and the fid knows */
	assert_int_equal(peer_fid(&p, CUBE_P9_TREMOVE, 3), 0);
	assert_int_equal(peer_walk(&p, 1, 3, "moved"), -ENOENT);
	assert_int_equal(peer_rpc(&p, &node), 0);
	assert_int_equal(peer_walk(&p, 1, 3, "fifo"), 0);
	assert_int_equal(peer_lopen(&p, 3, 0), -ENXIO);
	assert_int_equal(clunk(3), 0);
	node.mode = S_IFCHR | 0600;
	node.name = str("device");
	assert_int_equal(peer_rpc(&p, &node), -EPERM);
	assert_int_equal(peer_named(&p, CUBE_P9_TUNLINKAT, 1, "d", 0), -EISDIR);
	assert_int_equal(peer_named(&p, CUBE_P9_TUNLINKAT, 1, "d", 0x200), 0);
	/* what has another name now is not removed under the old one */
	assert_int_equal(peer_walk(&p, 1, 3, "hard"), 0);
	assert_int_equal(peer_walk(&p, 1, 5, "hard"), 0);
	assert_int_equal(peer_lopen(&p, 5, 0), 0); /* open, so that its number stays its own */
	assert_int_equal(peer_named(&p, CUBE_P9_TUNLINKAT, 1, "hard", 0), 0);
	assert_int_equal(create(1, 4, "hard", 1), 0);
	assert_int_equal(peer_fid(&p, CUBE_P9_TREMOVE, 3), -ESTALE);
	peer_close(&p);
}

/* In as many pieces as there are entries; the place of each is kept. */
static void check_listing(void **state)
{
	struct cube_p9_msg list = {.type = CUBE_P9_TREADDIR, .fid = 1, .count = 40};
	struct cube_p9_dirent e = {.offset = 0};
	char names[1024] = "";
	static const char *const dirs[] = {"", "box/files/workspace"};

	(void)state;
	begin(&p);
	for (size_t i = 0; i < CUBE_COUNT(dirs); i++) {
		assert_int_equal(at(dirs[i], 1), 0);
		assert_int_equal(peer_rpc(&p, &list), -EBADF);
		assert_int_equal(peer_lopen(&p, 1, 0), 0);
		assert_int_equal(peer_read(&p, 1, 0, 100), -EISDIR);
		for (list.offset = 0;; list.offset = e.offset) {
			list.count = 60;
			assert_int_equal(peer_rpc(&p, &list), 0);
			if (p.r.count == 0)
				break;
			assert_true(cube_p9_dirent_get(p.r.data, p.r.count, &e) > 0);
			(void)snprintf(names + strlen(names), sizeof(names) - strlen(names), "%.*s ",
				       e.name.len, e.name.s);
			assert_int_equal(e.qid.version, 0);
		}
		list.offset = 0;
		list.count = 10;
		assert_int_equal(peer_rpc(&p, &list), -EINVAL); /* none fits in */
		assert_int_equal(clunk(1), 0);
	}
	assert_non_null(strstr(names, ". .. README "));
	assert_non_null(strstr(names, " box "));
	assert_non_null(strstr(names, " hard "));
	peer_close(&p);
}

/* ---- attributes and locks ---- */

static void check_xattrs(void **state)
{
	struct cube_p9_msg walk = {
		.type = CUBE_P9_TXATTRWALK, .fid = 1, .newfid = 2, .name = str("user.note")};
	struct cube_p9_msg make = {
		.type = CUBE_P9_TXATTRCREATE, .fid = 2, .name = str("user.note"), .size = 5};

	(void)state;
	begin(&p);
	assert_int_equal(at("box/files/workspace", 1), 0);
	assert_int_equal(peer_rpc(&p, &walk), -ENODATA);
	assert_int_equal(peer_walk(&p, 1, 2, ""), 0);
	assert_int_equal(peer_rpc(&p, &make), 0);
	assert_int_equal(peer_write(&p, 2, 0, "val"), 3);
	assert_int_equal(peer_write(&p, 2, 3, "ue!"), -EINVAL); /* more than was announced */
	assert_int_equal(peer_write(&p, 2, 3, "ue"), 2);
	assert_int_equal(clunk(2), 0);
	assert_int_equal(peer_rpc(&p, &walk), 0);
	assert_int_equal(p.r.size, 5);
	assert_int_equal(peer_read(&p, 2, 1, 100), 4);
	assert_memory_equal(p.r.data, "alue", 4);
	assert_int_equal(clunk(2), 0);
	walk.name = str("");
	assert_int_equal(peer_rpc(&p, &walk), 0);
	assert_true(p.r.size >= 10);
	assert_int_equal(clunk(2), 0);
	/* fewer bytes than were announced */
	assert_int_equal(peer_walk(&p, 1, 2, ""), 0);
	assert_int_equal(peer_rpc(&p, &make), 0);
	assert_int_equal(clunk(2), -EINVAL);
	assert_int_equal(clunk(2), -EBADF);
	/* an empty one that replaces: none */
	assert_int_equal(peer_walk(&p, 1, 2, ""), 0);
	make.size = 0;
	make.flags = CUBE_P9_XATTR_REPLACE;
	assert_int_equal(peer_rpc(&p, &make), 0);
	assert_int_equal(clunk(2), 0);
	walk.name = str("user.note");
	assert_int_equal(peer_rpc(&p, &walk), -ENODATA);
	assert_int_equal(peer_walk(&p, 1, 2, ""), 0);
	make.size = 65537;
	assert_int_equal(peer_rpc(&p, &make), -E2BIG);
	walk.fid = 0;
	walk.newfid = 9;
	assert_int_equal(peer_rpc(&p, &walk), -EOPNOTSUPP);
	peer_close(&p);
}

static void check_locks(void **state)
{
	struct cube_p9_msg lock = {.type = CUBE_P9_TLOCK,
				   .fid = 2,
				   .lock = {.type = CUBE_P9_LOCK_WRITE, .proc = 1, .client = str("here")}};
	struct cube_p9_msg look = {.type = CUBE_P9_TGETLOCK,
				   .fid = 2,
				   .lock = {.type = CUBE_P9_LOCK_WRITE, .proc = 2, .client = str("here")}};

	(void)state;
	begin(&p);
	begin(&q);
	assert_int_equal(at("box/files/workspace", 1), 0);
	assert_int_equal(create(1, 2, "locked", 2), 0);
	assert_int_equal(peer_rpc(&p, &lock), 0);
	assert_int_equal(p.r.status, CUBE_P9_LOCK_SUCCESS);
	assert_int_equal(peer_rpc(&p, &look), 0);
	assert_int_equal(p.r.lock.type, CUBE_P9_LOCK_WRITE);
	/* another process, and the same number on another connection, are others */
	lock.lock.proc = 2;
	assert_int_equal(peer_rpc(&p, &lock), 0);
	assert_int_equal(p.r.status, CUBE_P9_LOCK_BLOCKED);
	lock.lock.proc = 1;
	assert_int_equal(peer_walk(&q, 0, 2, "box/files/workspace/locked"), 0);
	assert_int_equal(peer_lopen(&q, 2, 2), 0);
	assert_int_equal(peer_rpc(&q, &lock), 0);
	assert_int_equal(q.r.status, CUBE_P9_LOCK_BLOCKED);
	assert_int_equal(clunk(2), 0); /* it goes with the fid */
	assert_int_equal(peer_rpc(&q, &lock), 0);
	assert_int_equal(q.r.status, CUBE_P9_LOCK_SUCCESS);
	assert_int_equal(peer_rpc(&q, &look), 0);
	/* processes that come and go leave nothing behind */
	for (look.lock.proc = 1000; look.lock.proc < 1000 + 4200; look.lock.proc++)
		assert_int_equal(peer_rpc(&q, &look), 0);
	assert_int_equal(q.r.lock.type, CUBE_P9_LOCK_WRITE);
	/* nor do those that lock through one fid, one after the other */
	lock.lock.type = CUBE_P9_LOCK_UNLOCK;
	assert_int_equal(peer_rpc(&q, &lock), 0);
	for (lock.lock.proc = 10000; lock.lock.proc < 10000 + 4200; lock.lock.proc++) {
		lock.lock.type = CUBE_P9_LOCK_WRITE;
		assert_int_equal(peer_rpc(&q, &lock), 0);
		assert_int_equal(q.r.status, CUBE_P9_LOCK_SUCCESS);
		lock.lock.type = CUBE_P9_LOCK_UNLOCK;
		assert_int_equal(peer_rpc(&q, &lock), 0);
	}
	assert_int_equal(peer_rpc(&q, &look), 0);
	assert_int_equal(q.r.lock.type, CUBE_P9_LOCK_UNLOCK);
	lock.lock.type = 7;
	assert_int_equal(peer_rpc(&q, &lock), -EINVAL);
	assert_int_equal(at("README", 5), 0);
	assert_int_equal(peer_lopen(&p, 5, 0), 0);
	lock.fid = 5;
	lock.lock.type = CUBE_P9_LOCK_READ;
	assert_int_equal(peer_rpc(&p, &lock), -EOPNOTSUPP);
	peer_close(&p);
	peer_close(&q);
}

/* Waits until nobody else has it any more, and locks it. */
static void take_held(void)
{
	struct cube_p9_msg lock = {.type = CUBE_P9_TLOCK,
				   .fid = 1,
				   .lock = {.type = CUBE_P9_LOCK_WRITE, .proc = 1, .client = str("here")}};

	begin(&p);
	assert_int_equal(at("box/files/workspace/held", 1), 0);
	assert_int_equal(peer_lopen(&p, 1, 2), 0);
	for (int ms = 0; peer_rpc(&p, &lock) == 0 && p.r.status == CUBE_P9_LOCK_BLOCKED; ms++) {
		assert_in_range(ms, 0, 10000);
		(void)usleep(1000);
	}
	assert_int_equal(p.r.type, CUBE_P9_RLOCK);
}

/* Whatever memory there is when the peer goes, what it had open is closed. */
static void check_hung_up_without_memory(void **state)
{
	(void)state;
	begin(&p);
	assert_int_equal(at("box/files/workspace", 1), 0);
	assert_int_equal(create(1, 2, "held", 2), 0);
	peer_hang_up(&p);
	for (unsigned long n = 1; n <= 4; n++) { /* each fid, and each step of its end */
		take_held();
		cube_alloc_fail_at(n);
		peer_hang_up(&p);
		cube_alloc_fail_at(0);
	}
	take_held();
	peer_close(&p);
}

static void check_statfs(void **state)
{
	(void)state;
	begin(&p);
	assert_int_equal(peer_fid(&p, CUBE_P9_TSTATFS, 0), 0);
	assert_int_equal(p.r.statfs.namelen, 255);
	assert_true(p.r.statfs.blocks > 0);
	assert_int_equal(at("box/files/workspace", 1), 0);
	assert_int_equal(peer_fid(&p, CUBE_P9_TSTATFS, 1), 0);
	assert_true(p.r.statfs.bsize > 0);
	peer_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_command),       cmocka_unit_test(check_channel),
		cmocka_unit_test(check_clunk_flushed), cmocka_unit_test(check_hung_up),
		cmocka_unit_test(check_sandboxes),     cmocka_unit_test(check_remover),
		cmocka_unit_test(check_real_files),    cmocka_unit_test(check_real_names),
		cmocka_unit_test(check_listing),       cmocka_unit_test(check_xattrs),
		cmocka_unit_test(check_locks),         cmocka_unit_test(check_hung_up_without_memory),
		cmocka_unit_test(check_statfs),
	};

	return cmocka_run_group_tests(tests, open_all, close_all);
}
