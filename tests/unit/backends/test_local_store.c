/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of layers in each store that this machine has: made, copied, replaced, emptied, removed; the image, and what
 * becomes of it on a disk that is full. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/local/image.h"
#include "backends/local/keep.h"
#include "backends/local/store.h"
#include "tests/unit/backends/den.h"

#define MIB (UINT64_C(1) << 20)

/* A state directory with a store of one kind. */
struct shop {
	const char *word;
	char dir[48];
	int state;
	struct cube_conf *conf;
	struct cube_local_store store;
};

static struct cube_ns_ids ids; /* whoever runs this */

static int shop_open_store(struct shop *s, struct cube_err *err)
{
	return cube_local_store_open(&s->store, s->state, s->dir, cube_conf_find(s->conf, "backend local"),
				     geteuid() == 0 ? CUBE_STORE_ANY : CUBE_STORE_PLAIN, err);
}

/* False: this machine has no such store. */
static bool shop_open(struct shop *s, const char *word, const char *dir)
{
	char text[128];
	struct cube_err err = {0};
	int rc;

	*s = (struct shop){.word = word, .store = CUBE_LOCAL_STORE_NONE};
	ids = (struct cube_ns_ids){.uid = geteuid(), .gid = getegid(), .count = 1};
	(void)snprintf(s->dir, sizeof(s->dir), "%s/cubefs-store.XXXXXX", dir);
	assert_non_null(mkdtemp(s->dir));
	s->state = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(s->state >= 0);
	(void)snprintf(text, sizeof(text), "[backend local]\nstore = %s\nstore_limit = 4G\n", word);
	assert_int_equal(cube_conf_parse(text, strlen(text), "test", &s->conf, NULL), 0);
	rc = shop_open_store(s, &err);
	if (rc == 0)
		return true;
	assert_int_equal(rc, -EOPNOTSUPP);
	print_message("store %s: %s\n", word, err.text);
	return false;
}

static void shop_close(struct shop *s)
{
	cube_local_store_close(&s->store);
	cube_conf_free(s->conf);
	(void)close(s->state);
	assert_int_equal(den_remove(s->dir), 0);
}

static int layer_dir(const struct shop *s, const char *id, enum cube_local_part part)
{
	struct cube_local_layer l;
	int fd;

	assert_int_equal(cube_local_set_open(&s->store, id, part, &l, NULL), 0);
	fd = openat(l.upper, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	cube_local_layer_close(&l);
	return fd;
}

static void put(int dir, const char *name, const char *text)
{
	cube_auto_fd fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);

	if (fd < 0) {
		fail_msg("%s: %s", name, strerror(errno));
		return;
	}
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void holds(int dir, const char *name, const char *text)
{
	struct cube_buf got = CUBE_BUF(4096);

	assert_int_equal(cube_file_read(dir, name, &got), 0);
	assert_string_equal(cube_buf_str(&got), text);
	cube_buf_done(&got);
}

/* One of everything that a layer can hold. */
static void fill(const struct shop *s, const char *id)
{
	cube_auto_fd root = layer_dir(s, id, CUBE_PART_ROOT);
	cube_auto_fd work = layer_dir(s, id, CUBE_PART_WORKSPACE);
	const struct timespec times[2] = {{1000000000, 123456789}, {1000000001, 987654321}};
	cube_auto_fd sparse = -1;

	put(root, "a", "first");
	assert_int_equal(linkat(root, "a", root, "b", 0), 0);
	assert_int_equal(symlinkat("../nowhere", root, "link"), 0);
	assert_int_equal(mkdirat(root, "dir", 0751), 0);
	assert_int_equal(mkfifoat(root, "fifo", 0600), 0);
	put(root, "dir/two words\n", "x");
	sparse = openat(root, "sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(pwrite(sparse, "end", 3, (off_t)(64 * MIB)), 3);
	if (geteuid() == 0)
		assert_int_equal(mknodat(root, "whiteout", S_IFCHR, makedev(0, 0)), 0);
	assert_int_equal(utimensat(root, "a", times, 0), 0);
	put(work, "w", "work");
}

static void check(const struct shop *s, const char *id)
{
	cube_auto_fd root = layer_dir(s, id, CUBE_PART_ROOT);
	cube_auto_fd work = layer_dir(s, id, CUBE_PART_WORKSPACE);
	char target[32] = "";
	struct stat a, b;

	holds(root, "a", "first");
	holds(root, "dir/two words\n", "x");
	holds(work, "w", "work");
	assert_int_equal(fstatat(root, "a", &a, 0), 0);
	assert_int_equal(fstatat(root, "b", &b, 0), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	assert_int_equal(a.st_nlink, 2);
	assert_int_equal(a.st_mode & 07777, 0640);
	assert_int_equal(a.st_mtim.tv_sec, 1000000001);
	assert_int_equal(a.st_mtim.tv_nsec, 987654321);
	assert_int_equal(readlinkat(root, "link", target, sizeof(target)), strlen("../nowhere"));
	assert_string_equal(target, "../nowhere");
	assert_int_equal(fstatat(root, "dir", &a, 0), 0);
	assert_int_equal(a.st_mode & 07777, 0751);
	assert_int_equal(fstatat(root, "fifo", &a, 0), 0);
	assert_true(S_ISFIFO(a.st_mode));
	assert_int_equal(fstatat(root, "sparse", &a, 0), 0);
	assert_int_equal(a.st_size, 64 * MIB + 3);
	assert_true((uint64_t)a.st_blocks * 512 < MIB);
	if (geteuid() == 0) {
		assert_int_equal(fstatat(root, "whiteout", &a, AT_SYMLINK_NOFOLLOW), 0);
		assert_true(S_ISCHR(a.st_mode) && a.st_rdev == 0);
	}
}

/* ---- every store ---- */

static void copies_are_whole(struct shop *s)
{
	cube_auto_fd from = -1, to = -1;

	assert_int_equal(cube_local_set_make(&s->store, "one", &ids, NULL), 0);
	assert_int_equal(cube_local_set_make(&s->store, "one", &ids, NULL) < 0, 1);
	fill(s, "one");
	assert_int_equal(cube_local_set_copy(&s->store, "one", "two", NULL, NULL), 0);
	check(s, "two");
	from = layer_dir(s, "one", CUBE_PART_ROOT);
	to = layer_dir(s, "two", CUBE_PART_ROOT);
	put(to, "a", "changed");
	holds(from, "a", "first");
	put(from, "dir/two words\n", "y");
	holds(to, "dir/two words\n", "x");
	assert_int_equal(cube_local_set_copy(&s->store, "none", "three", NULL, NULL), -ENOENT);
	assert_false(cube_local_set_there(&s->store, "three"));
	assert_int_equal(cube_local_set_copy(&s->store, "one", "two", NULL, NULL), -EEXIST);
	holds(to, "a", "changed");
}

/* The copy of a copy, its origin gone. */
static void copies_stand_alone(struct shop *s)
{
	assert_int_equal(cube_local_set_make(&s->store, "a1", &ids, NULL), 0);
	fill(s, "a1");
	assert_int_equal(cube_local_set_copy(&s->store, "a1", "a2", NULL, NULL), 0);
	assert_int_equal(cube_local_set_remove(&s->store, "a1", NULL), 0);
	assert_int_equal(cube_local_set_copy(&s->store, "a2", "a3", NULL, NULL), 0);
	assert_int_equal(cube_local_set_remove(&s->store, "a2", NULL), 0);
	assert_int_equal(cube_local_set_remove(&s->store, "a2", NULL), 0);
	assert_false(cube_local_set_there(&s->store, "a2"));
	check(s, "a3");
}

static void replaced_in_one_step(struct shop *s)
{
	cube_auto_fd before = -1, after = -1;

	assert_int_equal(cube_local_set_make(&s->store, "old", &ids, NULL), 0);
	assert_int_equal(cube_local_set_make(&s->store, "new", &ids, NULL), 0);
	fill(s, "new");
	before = layer_dir(s, "old", CUBE_PART_ROOT);
	put(before, "mine", "m");
	assert_int_equal(cube_local_set_stage(&s->store, "none", "old", NULL, NULL), -ENOENT);
	assert_int_equal(cube_local_set_switch(&s->store, "old", NULL), -ENOENT);
	assert_int_equal(cube_local_set_stage(&s->store, "new", "old", NULL, NULL), 0);
	holds(before, "mine", "m");
	assert_int_equal(cube_local_set_switch(&s->store, "old", NULL), 0);
	cube_local_set_discard(&s->store, "old");
	check(s, "old");
	check(s, "new");
	after = layer_dir(s, "old", CUBE_PART_ROOT);
	assert_int_equal(faccessat(after, "mine", F_OK, 0), -1);
}

static void emptied_by_parts(struct shop *s)
{
	cube_auto_fd root = -1, work = -1;

	assert_int_equal(cube_local_set_make(&s->store, "e", &ids, NULL), 0);
	fill(s, "e");
	assert_int_equal(cube_local_set_empty(&s->store, "e", CUBE_PART_ROOT, &ids, NULL), 0);
	root = layer_dir(s, "e", CUBE_PART_ROOT);
	work = layer_dir(s, "e", CUBE_PART_WORKSPACE);
	assert_int_equal(faccessat(root, "a", F_OK, 0), -1);
	holds(work, "w", "work");
}

static bool knows_kept(void *ctx, const char *id)
{
	(void)ctx;
	return strcmp(id, "kept") == 0;
}

static void swept(struct shop *s)
{
	cube_auto_fd inside = -1;

	assert_int_equal(cube_local_set_make(&s->store, "kept", &ids, NULL), 0);
	assert_int_equal(cube_local_set_make(&s->store, "lost", &ids, NULL), 0);
	assert_int_equal(cube_local_set_make(&s->store, ".half.new", &ids, NULL), 0);
	fill(s, "lost");
	inside = openat(s->store.sets, "kept", O_RDONLY | O_DIRECTORY);
	assert_int_equal(mkdirat(inside, ".root.new", 0700), 0); /* of a reset */
	assert_int_equal(mkdirat(inside, ".root.new/upper", 0700), 0);
	cube_local_set_sweep(&s->store, knows_kept, NULL);
	assert_int_equal(faccessat(inside, ".root.new", F_OK, 0), -1);
	assert_int_equal(faccessat(inside, "root", F_OK, 0), 0);
	assert_true(cube_local_set_there(&s->store, "kept"));
	assert_false(cube_local_set_there(&s->store, "lost"));
	assert_false(cube_local_set_there(&s->store, ".half.new"));
}

/* Marks that tie a layer to its place do not go along, other xattrs do. */
static void unbound(struct shop *s)
{
	cube_auto_fd from = -1, to = -1;
	char value[8];

	assert_int_equal(cube_local_set_make(&s->store, "m", &ids, NULL), 0);
	from = layer_dir(s, "m", CUBE_PART_ROOT);
	if (fsetxattr(from, "user.overlay.origin", "o", 1, 0) < 0) {
		print_message("store %s: no user.* xattrs here\n", s->word);
		return;
	}
	assert_int_equal(fsetxattr(from, "user.overlay.opaque", "y", 1, 0), 0);
	assert_int_equal(cube_local_set_copy(&s->store, "m", "n", NULL, NULL), 0);
	to = layer_dir(s, "n", CUBE_PART_ROOT);
	assert_int_equal(fgetxattr(to, "user.overlay.opaque", value, sizeof(value)), 1);
	assert_int_equal(fgetxattr(to, "user.overlay.origin", value, sizeof(value)), -1);
	assert_int_equal(errno, ENODATA);
	assert_int_equal(fgetxattr(from, "user.overlay.origin", value, sizeof(value)), 1);
}

/* The choice stands; another one later does not count. */
static void chosen_once(struct shop *s)
{
	const char *what = s->store.ops->name;

	assert_int_equal(cube_local_set_make(&s->store, "still", &ids, NULL), 0);
	fill(s, "still");
	cube_local_store_close(&s->store);
	cube_conf_free(s->conf);
	assert_int_equal(cube_conf_parse("[backend local]\nstore = auto\n", 29, "test", &s->conf, NULL), 0);
	assert_int_equal(shop_open_store(s, NULL), 0);
	assert_string_equal(s->store.ops->name, what);
	check(s, "still");
}

static void every(const char *word, const char *dir)
{
	static void (*const tests[])(struct shop * s) = {
		copies_are_whole, copies_stand_alone, replaced_in_one_step, emptied_by_parts, swept,
		unbound,          chosen_once,
	};

	for (size_t i = 0; i < CUBE_COUNT(tests); i++) {
		struct shop s;
		bool there = shop_open(&s, word, dir);

		if (there)
			tests[i](&s);
		shop_close(&s);
		if (!there)
			skip();
	}
}

static void test_copies(void **state)
{
	(void)state;
	every("copies", "/tmp");
}

static void test_image(void **state)
{
	(void)state;
	every("image", "/tmp");
}

static void test_reflinks(void **state)
{
	(void)state;
	if (geteuid() != 0 || den_host("command -v mkfs.xfs >/dev/null") != 0)
		skip();
	assert_int_equal(den_host("mkdir -p /tmp/cubefs-xfs && truncate -s 400M /tmp/cubefs-xfs.img &&"
				  " mkfs.xfs -q -f /tmp/cubefs-xfs.img && mount -o loop /tmp/cubefs-xfs.img "
				  "/tmp/cubefs-xfs"),
			 0);
	every("reflinks", "/tmp/cubefs-xfs");
	assert_int_equal(
		den_host("umount /tmp/cubefs-xfs && rmdir /tmp/cubefs-xfs && rm /tmp/cubefs-xfs.img"), 0);
}

static void test_wrong_words(void **state)
{
	static const char *const texts[] = {"store = best", "store = image\nstore_limit = much",
					    "store = image\nstore_limit = 1M"};
	struct shop s = {.store = CUBE_LOCAL_STORE_NONE};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(texts); i++) {
		struct cube_err err = {0};
		char text[128];
		int rc;

		(void)snprintf(s.dir, sizeof(s.dir), "/tmp/cubefs-store.XXXXXX");
		assert_non_null(mkdtemp(s.dir));
		s.state = open(s.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		(void)snprintf(text, sizeof(text), "[backend local]\n%s\n", texts[i]);
		assert_int_equal(cube_conf_parse(text, strlen(text), "test", &s.conf, NULL), 0);
		rc = shop_open_store(&s, &err);
		assert_true(rc == -EINVAL || (i > 0 && (rc == -EOPNOTSUPP || rc == -ENOSPC)));
		assert_true(strlen(err.text) > 10);
		shop_close(&s);
	}
}

/* ---- the image ---- */

static uint64_t blocks_of_image(const struct shop *s)
{
	struct stat st;

	assert_int_equal(fstatat(s->state, CUBE_LOCAL_IMAGE, &st, 0), 0);
	return (uint64_t)st.st_blocks * 512;
}

static void test_ahead(void **state)
{
	cube_auto_fd dir = -1;
	uint64_t top = 0;
	struct shop s;

	(void)state;
	if (!shop_open(&s, "image", "/tmp")) {
		shop_close(&s);
		skip();
	}
	dir = openat(s.store.sets, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(cube_local_grow_top(dir, &top), 0);
	assert_true(top > 0);
	assert_true(blocks_of_image(&s) >= top + 1024 * MIB);
	(void)close(cube_steal_fd(&dir));
	shop_close(&s);
}

/* The second daemon has the file system of the first, which something holds still. */
static void test_same_again(void **state)
{
	cube_auto_fd held = -1;
	struct shop s;

	(void)state;
	if (!shop_open(&s, "image", "/tmp")) {
		shop_close(&s);
		skip();
	}
	assert_int_equal(cube_local_set_make(&s.store, "x", &ids, NULL), 0);
	held = layer_dir(&s, "x", CUBE_PART_ROOT);
	cube_local_store_close(&s.store);
	put(held, "late", "written without a daemon");
	assert_int_equal(shop_open_store(&s, NULL), 0);
	{
		cube_auto_fd root = layer_dir(&s, "x", CUBE_PART_ROOT);

		holds(root, "late", "written without a daemon");
		put(root, "new", "n");
		holds(held, "new", "n");
	}
	(void)close(cube_steal_fd(&held));
	shop_close(&s);
}

/* btrfs takes its empty chunks back behind. */
static void await_room(int dir)
{
	int fd = -1;

	for (unsigned i = 0; i < 200 && fd < 0; i++) {
		fd = openat(dir, "room", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0) {
			assert_int_equal(errno, ENOSPC); /* and not EROFS */
			(void)usleep(50000);
		}
	}
	assert_true(fd >= 0);
	(void)close(fd);
}

/* A small disk: who writes too much gets ENOSPC; what the others have stays writable, and there is room again when
 * he has removed it. */
static void test_full_disk(void **state)
{
	static char block[1 << 20];
	struct shop s;
	int rc = 0;

	(void)state;
	if (geteuid() != 0 || mkdir("/tmp/cubefs-small", 0700) < 0 ||
	    mount("none", "/tmp/cubefs-small", "tmpfs", 0, "size=700m") < 0)
		skip();
	if (!shop_open(&s, "image", "/tmp/cubefs-small")) {
		shop_close(&s);
		(void)umount("/tmp/cubefs-small");
		(void)rmdir("/tmp/cubefs-small");
		skip();
	}
	assert_int_equal(cube_local_set_make(&s.store, "hog", &ids, NULL), 0);
	assert_int_equal(cube_local_set_make(&s.store, "meek", &ids, NULL), 0);
	{
		cube_auto_fd hog = layer_dir(&s, "hog", CUBE_PART_WORKSPACE);
		cube_auto_fd meek = layer_dir(&s, "meek", CUBE_PART_WORKSPACE);
		cube_auto_fd file = openat(hog, "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		memset(block, 'x', sizeof(block));
		for (unsigned i = 0; i < 4096 && rc == 0; i++)
			if (write(file, block, sizeof(block)) < 0 || (i % 64 == 63 && fsync(file) < 0))
				rc = -errno;
		assert_int_equal(rc, -ENOSPC);
		assert_int_equal(ftruncate(file, 0), 0);
		assert_int_equal(syncfs(file), 0);
		await_room(meek);
		put(meek, "small", "still written");
		assert_int_equal(syncfs(file), 0);
		holds(meek, "small", "still written");
	}
	shop_close(&s);
	/* The loop device lets go of the file a moment after the last mount. */
	assert_int_equal(den_host("for i in $(seq 100); do umount /tmp/cubefs-small 2>/dev/null && exit; "
				  "sleep 0.1; done;"
				  " exit 1"),
			 0);
	assert_int_equal(rmdir("/tmp/cubefs-small"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies),    cmocka_unit_test(test_image),
		cmocka_unit_test(test_reflinks),  cmocka_unit_test(test_wrong_words),
		cmocka_unit_test(test_ahead),     cmocka_unit_test(test_same_again),
		cmocka_unit_test(test_full_disk),
	};

	if (cube_local_keep_setup("/tmp", NULL) < 0)
		return den_skip("mounts cannot be kept here");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
