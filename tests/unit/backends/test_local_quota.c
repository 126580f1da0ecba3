/* SPDX-License-Identifier: Apache-2.0 */
/* Limits on what sets take: kept by the image's quotas, one set at a time, over a restart; removing works in a full one;
 * copies begin at nothing; accounts of what is gone are closed. Stores without quotas say so, and a file system that is
 * not ours is used as it is. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>

#include "backends/base/macros.h"
#include "backends/local/keep.h"
#include "backends/local/store.h"
#include "tests/unit/backends/den.h"

#define MIB (UINT64_C(1) << 20)

struct ledger {
	char dir[48];
	int state;
	struct cube_conf *conf;
	struct cube_local_store store;
};

static struct cube_ns_ids ids; /* whoever runs this */

static int ledger_open_store(struct ledger *l, struct cube_err *err)
{
	return cube_local_store_open(&l->store, l->state, l->dir, cube_conf_find(l->conf, "backend local"),
				     geteuid() == 0 ? CUBE_STORE_ANY : CUBE_STORE_PLAIN, err);
}

static void ledger_close(struct ledger *l)
{
	cube_local_store_close(&l->store);
	cube_conf_free(l->conf);
	(void)close(l->state);
	assert_int_equal(den_remove(l->dir), 0);
}

/* False: this machine has no such store in the directory @dir. */
static bool ledger_open(struct ledger *l, const char *word, const char *dir)
{
	struct cube_err err = {0};
	char text[128];
	int rc;

	*l = (struct ledger){.store = CUBE_LOCAL_STORE_NONE};
	(void)snprintf(l->dir, sizeof(l->dir), "%s/cubefs-quota.XXXXXX", dir);
	ids = (struct cube_ns_ids){.uid = geteuid(), .gid = getegid(), .count = 1};
	assert_non_null(mkdtemp(l->dir));
	l->state = open(l->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(l->state >= 0);
	(void)snprintf(text, sizeof(text), "[backend local]\nstore = %s\nstore_limit = 2G\n", word);
	assert_int_equal(cube_conf_parse(text, strlen(text), "test", &l->conf, NULL), 0);
	rc = ledger_open_store(l, &err);
	if (rc == 0)
		return true;
	assert_int_equal(rc, -EOPNOTSUPP);
	print_message("store %s: %s\n", word, err.text);
	ledger_close(l);
	return false;
}

/* An image with quotas; skips the test where there is none. */
static void ledger_image(struct ledger *l)
{
	if (!ledger_open(l, "image", "/tmp"))
		skip();
	if (l->store.quota) {
		assert_string_equal(l->store.quota_why, "");
		return;
	}
	print_message("%s\n", l->store.quota_why);
	assert_string_not_equal(l->store.quota_why, "");
	ledger_close(l);
	skip();
}

static void make(const struct ledger *l, const char *id)
{
	assert_int_equal(cube_local_set_make(&l->store, id, &ids, NULL), 0);
}

static int workspace(const struct ledger *l, const char *id)
{
	struct cube_local_layer layer;
	int fd;

	assert_int_equal(cube_local_set_open(&l->store, id, CUBE_PART_WORKSPACE, &layer, NULL), 0);
	fd = openat(layer.upper, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	cube_local_layer_close(&layer);
	return fd;
}

/* Adds up to @most MiB to a file of the set; how many there was room for. What stops it must be the quota. */
static unsigned write_some(const struct ledger *l, const char *id, const char *name, unsigned most)
{
	static char block[MIB];
	cube_auto_fd dir = workspace(l, id);
	cube_auto_fd fd = openat(dir, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	unsigned done = 0;

	memset(block, 'x', sizeof(block));
	if (fd < 0) {
		assert_int_equal(errno, EDQUOT);
		return 0;
	}
	for (ssize_t n; done < most; done++) {
		n = write(fd, block, sizeof(block));
		if (n < 0)
			assert_int_equal(errno, EDQUOT);
		if (n != (ssize_t)sizeof(block))
			break;
	}
	assert_int_equal(syncfs(fd), 0);
	return done;
}

static uint64_t used(const struct ledger *l, const char *id)
{
	return cube_local_quota_used(l->store.quota, id);
}

static void limit(const struct ledger *l, const char *id, uint64_t mib)
{
	struct cube_err err = {0};

	if (cube_local_set_limit(&l->store, id, mib * MIB, &err) < 0)
		fail_msg("%s", err.text);
}

/* ---- tests ---- */

static void test_limit(void **state)
{
	struct ledger l;
	unsigned n;

	(void)state;
	ledger_image(&l);
	make(&l, "hog");
	make(&l, "meek");
	limit(&l, "hog", 8);
	n = write_some(&l, "hog", "big", 64);
	assert_in_range(n, 4, 8);
	assert_in_range(used(&l, "hog"), n * MIB, 8 * MIB);
	assert_int_equal(write_some(&l, "meek", "big", 16), 16);
	assert_in_range(used(&l, "meek"), 16 * MIB, 18 * MIB);
	limit(&l, "hog", 16); /* more */
	n += write_some(&l, "hog", "big", 64);
	assert_in_range(n, 12, 16);
	limit(&l, "hog", 1); /* less than it has: what is there stays, nothing comes */
	assert_int_equal(write_some(&l, "hog", "more", 4), 0);
	assert_in_range(used(&l, "hog"), n * MIB, 16 * MIB);
	limit(&l, "hog", 0);
	assert_int_equal(write_some(&l, "hog", "big", 32), 32);
	ledger_close(&l);
}

static void test_room_again(void **state)
{
	struct ledger l;

	(void)state;
	ledger_image(&l);
	make(&l, "a");
	limit(&l, "a", 8);
	assert_in_range(write_some(&l, "a", "big", 64), 4, 8);
	{
		cube_auto_fd dir = workspace(&l, "a");

		assert_int_equal(unlinkat(dir, "big", 0), 0);
		assert_int_equal(syncfs(dir), 0);
	}
	assert_in_range(write_some(&l, "a", "again", 4), 4, 4);
	ledger_close(&l);
}

/* The limit is the file system's: no daemon need be there for it. */
static void test_restart(void **state)
{
	struct ledger l;
	struct cube_err err = {0};

	(void)state;
	ledger_image(&l);
	make(&l, "a");
	limit(&l, "a", 8);
	cube_local_store_close(&l.store);
	if (ledger_open_store(&l, &err) < 0)
		fail_msg("%s", err.text);
	assert_non_null(l.store.quota);
	assert_in_range(write_some(&l, "a", "big", 64), 4, 8);
	ledger_close(&l);
}

/* What is shared is charged to who wrote it, until it is free. */
static void test_copies(void **state)
{
	struct ledger l;
	unsigned n;

	(void)state;
	ledger_image(&l);
	make(&l, "a");
	limit(&l, "a", 16);
	n = write_some(&l, "a", "big", 8);
	assert_int_equal(n, 8);
	assert_int_equal(cube_local_set_copy(&l.store, "a", "cp", NULL, NULL), 0);
	assert_in_range(used(&l, "cp"), 1, MIB);
	assert_in_range(used(&l, "a"), 8 * MIB, 9 * MIB);        /* the copy costs it nothing */
	assert_int_equal(write_some(&l, "cp", "other", 32), 32); /* and has no limit */
	assert_in_range(used(&l, "a"), 8 * MIB, 9 * MIB);

	/* In the place of another one it is limited as the caller says. */
	assert_int_equal(cube_local_set_stage(&l.store, "cp", "a", NULL, NULL), 0);
	assert_int_equal(cube_local_set_switch(&l.store, "a", NULL), 0);
	cube_local_set_discard(&l.store, "a");
	limit(&l, "a", 16);
	assert_in_range(used(&l, "a"), 1, MIB);
	assert_in_range(write_some(&l, "a", "more", 64), 12, 16);

	/* Emptied, a part gives back what it had. */
	limit(&l, "a", 0);
	assert_int_equal(cube_local_set_empty(&l.store, "a", CUBE_PART_WORKSPACE, &ids, NULL), 0);
	limit(&l, "a", 8);
	assert_in_range(write_some(&l, "a", "new", 4), 4, 4);
	ledger_close(&l);
}

static unsigned accounts(const struct ledger *l)
{
	cube_auto_fd fd = openat(l->store.sets, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct btrfs_ioctl_search_args args = {.key = {.tree_id = BTRFS_QUOTA_TREE_OBJECTID,
						       .min_type = BTRFS_QGROUP_INFO_KEY,
						       .max_type = BTRFS_QGROUP_INFO_KEY,
						       .min_offset = BTRFS_FIRST_FREE_OBJECTID,
						       .max_offset = UINT64_MAX,
						       .max_transid = UINT64_MAX,
						       .nr_items = 64}};

	assert_int_equal(ioctl(fd, BTRFS_IOC_TREE_SEARCH, &args), 0);
	return args.key.nr_items;
}

/* btrfs cleans up behind removed subvolumes; the copy keeps an account open beyond that. */
static void test_accounts(void **state)
{
	struct ledger l;
	unsigned left = 1;

	(void)state;
	ledger_image(&l);
	assert_int_equal(accounts(&l), 0);
	make(&l, "a");
	(void)write_some(&l, "a", "big", 2);
	assert_int_equal(accounts(&l), 1);
	assert_int_equal(cube_local_set_copy(&l.store, "a", "cp", NULL, NULL), 0);
	assert_int_equal(cube_local_set_remove(&l.store, "a", NULL), 0);
	assert_int_equal(used(&l, "a"), UINT64_MAX);
	assert_int_equal(cube_local_set_remove(&l.store, "cp", NULL), 0);
	/* btrfs removes what is gone when it is mounted or, where that came too early, half a minute later; the
	 * account is closed at the next start. */
	for (unsigned i = 0; i < 60 && left > 0; i++) {
		struct cube_err err = {0};

		(void)usleep(100000);
		if (i == 40 || i == 50)
			(void)sleep(35);
		cube_local_store_close(&l.store);
		if (ledger_open_store(&l, &err) < 0)
			fail_msg("%s", err.text);
		left = accounts(&l);
	}
	assert_int_equal(left, 0);
	ledger_close(&l);
}

#define OTHERS "/tmp/cubefs-others"

/* A file system that is not ours: quotas that are off stay off, and those that are on are used. */
static void test_others(void **state)
{
	struct cube_err err = {0};
	struct ledger l;

	(void)state;
	if (geteuid() != 0 || den_host("mkdir " OTHERS " && truncate -s 512M " OTHERS
				       ".img && mkfs.btrfs -q -f " OTHERS ".img && "
				       "mount -o loop " OTHERS ".img " OTHERS " || { rm -rf " OTHERS
				       " " OTHERS ".img; exit 1; }") != 0)
		skip();
	assert_true(ledger_open(&l, "snapshots", OTHERS));
	assert_null(l.store.quota);
	assert_non_null(strstr(l.store.quota_why, "quotas are off on the btrfs of the state directory"));
	make(&l, "a");
	assert_int_equal(cube_local_set_limit(&l.store, "a", MIB, NULL), -EOPNOTSUPP);
	cube_local_store_close(&l.store);
	assert_int_equal(
		den_host("btrfs quota enable " OTHERS " && btrfs quota rescan -w " OTHERS " >/dev/null"), 0);
	if (ledger_open_store(&l, &err) < 0)
		fail_msg("%s", err.text);
	assert_non_null(l.store.quota);
	limit(&l, "a", 8);
	assert_in_range(write_some(&l, "a", "big", 64), 4, 8);
	assert_in_range(used(&l, "a"), 4 * MIB, 8 * MIB);
	ledger_close(&l);
	assert_int_equal(den_host("umount " OTHERS " && rm -r " OTHERS " " OTHERS ".img"), 0);
}

static void test_wrong(void **state)
{
	struct cube_err err = {0};
	struct ledger l;

	(void)state;
	ledger_image(&l);
	assert_int_equal(cube_local_set_limit(&l.store, "none", MIB, &err), -ENOENT);
	assert_non_null(strstr(err.text, "cannot limit what none takes"));
	assert_int_equal(used(&l, "none"), UINT64_MAX);
	ledger_close(&l);
}

static void test_without(void **state)
{
	struct cube_err err = {0};
	struct ledger l;

	(void)state;
	assert_true(ledger_open(&l, "copies", "/tmp"));
	assert_null(l.store.quota);
	make(&l, "a");
	assert_int_equal(cube_local_set_limit(&l.store, "a", MIB, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "the store 'copies' counts nothing for one sandbox"));
	assert_int_equal(cube_local_set_limit(&l.store, "a", 0, NULL), 0);
	ledger_close(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limit),    cmocka_unit_test(test_room_again),
		cmocka_unit_test(test_restart),  cmocka_unit_test(test_copies),
		cmocka_unit_test(test_accounts), cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_without),  cmocka_unit_test(test_others),
	};

	if (cube_local_keep_setup("/tmp", NULL) < 0)
		return den_skip("mounts cannot be kept here");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
