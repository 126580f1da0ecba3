/* SPDX-License-Identifier: Apache-2.0 */
/* Names: lookup, what is made and removed, renames, and which node stands for what. */
#include "tests/unit/files/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/macros.h"

static void test_lookup(void **state)
{
	struct cube_files_entry a, b, up;
	struct stage s;
	struct stat st;

	(void)state;
	stage_open(&s);
	stage_mkdir(&s, "d");
	stage_write(&s, "d/f", "hello");
	assert_int_equal(stage_lookup(&s, "d/f", &a), 0);
	stage_stat(&s, "d/f", &st);
	assert_int_equal(a.st.st_size, 5);
	assert_int_equal(a.st.st_mode, st.st_mode);
	assert_int_equal(a.st.st_mtim.tv_sec, st.st_mtim.tv_sec);
	assert_int_equal(a.st.st_mtim.tv_nsec, st.st_mtim.tv_nsec);
	assert_true((a.id & CUBE_FILES_ID) != 0);
	assert_int_equal(stage_lookup(&s, "d/f", &b), 0);
	assert_int_equal(a.id, b.id);
	assert_int_equal(stage_lookup(&s, "d/..", &up), 0);
	assert_int_equal(up.id, s.id);
	assert_int_equal(stage_lookup(&s, "..", &up), 0); /* never above */
	assert_int_equal(up.id, s.id);
	assert_int_equal(stage_lookup(&s, "d/.", &b), 0);
	assert_int_equal(b.id, stage_node(&s, "d"));
	stage_close(&s);
}

static void test_lookup_errors(void **state)
{
	static const struct {
		const char *name;
		int error;
	} cases[] = {
		{"missing", ENOENT}, {"", EINVAL}, {"a/b", EINVAL}, {"/", EINVAL}, {"../x", EINVAL},
	};
	struct cube_files_entry e;
	char longest[NAME_MAX + 2];
	struct stage s;

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "");
	for (size_t i = 0; i < CUBE_COUNT(cases); i++)
		assert_int_equal(cube_files_lookup(s.space, s.id, cases[i].name, &e), -cases[i].error);
	memset(longest, 'x', sizeof(longest));
	longest[NAME_MAX + 1] = '\0';
	assert_int_equal(cube_files_lookup(s.space, s.id, longest, &e), -ENAMETOOLONG);
	longest[NAME_MAX] = '\0';
	assert_int_equal(cube_files_lookup(s.space, s.id, longest, &e), -ENOENT);
	assert_int_equal(cube_files_lookup(s.space, stage_node(&s, "f"), "x", &e), -ENOTDIR);
	assert_int_equal(cube_files_lookup(s.space, 12345, "x", &e), -ESTALE);
	stage_close(&s);
}

static void test_make(void **state)
{
	struct cube_files_entry e;
	struct stage s;
	struct stat st;
	char buf[256];

	(void)state;
	stage_open(&s);
	assert_int_equal(cube_files_mkdir(s.space, &stage_cred, s.id, "d", 0750, &e), 0);
	assert_int_equal(e.st.st_mode, S_IFDIR | 0750);
	assert_int_equal(cube_files_mknod(s.space, &stage_cred, e.id, "f", S_IFREG | 0640, 0, &e), 0);
	assert_int_equal(e.st.st_mode, S_IFREG | 0640);
	assert_int_equal(cube_files_mknod(s.space, &stage_cred, s.id, "fifo", S_IFIFO | 0600, 0, &e), 0);
	assert_int_equal(cube_files_mknod(s.space, &stage_cred, s.id, "sock", S_IFSOCK | 0777, 0, &e), 0);
	assert_int_equal(cube_files_symlink(s.space, &stage_cred, s.id, "l", "d/f", &e), 0);
	assert_int_equal(e.st.st_mode & S_IFMT, S_IFLNK);
	assert_string_equal(stage_readlink(&s, "l", buf, sizeof(buf)), "d/f");
	assert_string_equal(stage_list(&s, "", buf, sizeof(buf)), "d fifo l sock ");
	stage_stat(&s, "sock", &st);
	assert_int_equal(st.st_mode, S_IFSOCK | 0777);
	stage_close(&s);
}

static void test_make_errors(void **state)
{
	struct cube_files_entry e;
	struct stage s;

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "");
	assert_int_equal(cube_files_mkdir(s.space, &stage_cred, s.id, "f", 0755, &e), -EEXIST);
	assert_int_equal(cube_files_mkdir(s.space, &stage_cred, s.id, ".", 0755, &e), -EEXIST);
	assert_int_equal(cube_files_mkdir(s.space, &stage_cred, s.id, "..", 0755, &e), -EEXIST);
	assert_int_equal(cube_files_mkdir(s.space, &stage_cred, s.id, "a/b", 0755, &e), -EINVAL);
	assert_int_equal(cube_files_mkdir(s.space, &stage_cred, stage_node(&s, "f"), "x", 0755, &e),
			 -ENOTDIR);
	assert_int_equal(cube_files_mknod(s.space, &stage_cred, s.id, "c", S_IFCHR | 0600, 0x103, &e),
			 -EPERM);
	assert_int_equal(cube_files_mknod(s.space, &stage_cred, s.id, "b", S_IFBLK | 0600, 0x800, &e),
			 -EPERM);
	assert_int_equal(cube_files_mknod(s.space, &stage_cred, s.id, "w", S_IFCHR | 0600, 0, &e), -EPERM);
	assert_int_equal(cube_files_mknod(s.space, &stage_cred, s.id, "d", S_IFDIR | 0600, 0, &e), -EINVAL);
	assert_int_equal(cube_files_symlink(s.space, &stage_cred, s.id, "l", "", &e), -ENOENT);
	stage_close(&s);
}

static void test_hard_links(void **state)
{
	struct cube_files_entry e;
	struct stage s;
	uint64_t f, dir;
	char buf[16];
	struct stat st;

	(void)state;
	stage_open(&s);
	stage_mkdir(&s, "d");
	stage_write(&s, "f", "one");
	f = stage_node(&s, "f");
	dir = stage_node(&s, "d");
	assert_int_equal(cube_files_link(s.space, f, dir, "g", &e), 0);
	assert_int_equal(e.id, f); /* one node an inode */
	assert_int_equal(e.st.st_nlink, 2);
	/* any name that still fits reaches it */
	assert_int_equal(unlinkat(s.fd, "f", 0), 0);
	assert_int_equal(cube_files_getattr(s.space, f, NULL, &st), 0);
	assert_int_equal(st.st_nlink, 1);
	assert_string_equal(stage_read(&s, "d/g", buf, sizeof(buf)), "one");
	assert_int_equal(cube_files_link(s.space, f, dir, "g", &e), -EEXIST);
	assert_int_equal(cube_files_link(s.space, dir, s.id, "x", &e), -EPERM);
	/* a link itself, not what it leads to */
	stage_symlink(&s, "d/g", "l");
	assert_int_equal(cube_files_link(s.space, stage_node(&s, "l"), s.id, "l2", &e), 0);
	assert_int_equal(e.st.st_mode & S_IFMT, S_IFLNK);
	assert_int_equal(e.st.st_nlink, 2);
	stage_close(&s);
}

static void test_remove(void **state)
{
	struct stage s;
	uint64_t f;
	struct stat st;

	(void)state;
	stage_open(&s);
	stage_mkdir(&s, "d");
	stage_write(&s, "d/f", "");
	f = stage_node(&s, "d/f");
	assert_int_equal(cube_files_rmdir(s.space, s.id, "d"), -ENOTEMPTY);
	assert_int_equal(cube_files_rmdir(s.space, stage_node(&s, "d"), "f"), -ENOTDIR);
	assert_int_equal(cube_files_unlink(s.space, s.id, "d"), -EISDIR);
	assert_int_equal(cube_files_unlink(s.space, s.id, "x"), -ENOENT);
	assert_int_equal(cube_files_unlink(s.space, s.id, ".."), -EISDIR);
	assert_int_equal(cube_files_rmdir(s.space, s.id, "."), -EINVAL);
	assert_int_equal(cube_files_rmdir(s.space, s.id, ".."), -ENOTEMPTY);
	assert_int_equal(cube_files_unlink(s.space, stage_node(&s, "d"), "f"), 0);
	assert_int_equal(cube_files_getattr(s.space, f, NULL, &st), -ESTALE);
	assert_int_equal(cube_files_rmdir(s.space, s.id, "d"), 0);
	assert_int_equal(fstatat(s.fd, "d", &st, 0), -1);
	stage_close(&s);
}

/* A file that is removed while it is not open is another one than the next that gets its number. */
static void test_number_reused(void **state)
{
	struct stage s;
	uint64_t f;

	(void)state;
	stage_prepare(&s, STAGE_DISK);
	stage_attach(&s);
	stage_write(&s, "f", "");
	f = stage_node(&s, "f");
	assert_int_equal(cube_files_unlink(s.space, s.id, "f"), 0);
	stage_write(&s, "f", "");
	assert_int_not_equal(stage_node(&s, "f"), f);
	stage_close(&s);
}

static void test_renamed_inside(void **state)
{
	struct stage s;
	uint64_t f, d, sub;
	struct stat st;

	(void)state;
	stage_open(&s);
	stage_mkdir(&s, "d");
	stage_mkdir(&s, "d/sub");
	stage_write(&s, "f", "x");
	f = stage_node(&s, "f");
	d = stage_node(&s, "d");
	sub = stage_node(&s, "d/sub");
	assert_int_equal(renameat(s.fd, "f", s.fd, "g"), 0);
	assert_int_equal(cube_files_getattr(s.space, f, NULL, &st),
			 -ESTALE);                /* its only name leads nowhere */
	assert_int_equal(stage_node(&s, "g"), f); /* found again */
	assert_int_equal(cube_files_getattr(s.space, f, NULL, &st), 0);
	/* A directory has a node a path: moved inside, it is another one there. */
	assert_int_equal(renameat(s.fd, "d/sub", s.fd, "up"), 0);
	assert_int_not_equal(stage_node(&s, "up"), sub);
	assert_int_equal(cube_files_lookup(s.space, d, "sub", &(struct cube_files_entry){.id = 0}), -ENOENT);
	stage_close(&s);
}

static void test_replaced_inside(void **state)
{
	struct cube_files_entry e;
	struct stage s;
	uint64_t d;

	(void)state;
	stage_open(&s);
	stage_mkdir(&s, "d");
	stage_write(&s, "d/f", "old");
	d = stage_node(&s, "d");
	(void)stage_node(&s, "d/f");
	assert_int_equal(renameat(s.fd, "d", s.fd, "away"), 0);
	stage_symlink(&s, "/", "d");
	/* whoever stands in the directory still does; by name there is a link now */
	assert_int_equal(cube_files_lookup(s.space, d, "f", &e), 0);
	assert_int_not_equal(stage_node(&s, "d"), d);
	assert_int_equal(cube_files_lookup(s.space, stage_node(&s, "d"), "etc", &e), -ENOTDIR);
	stage_close(&s);
}

/* Another file of that name: nobody who knows the old one gets the new. */
static void test_file_replaced_inside(void **state)
{
	struct cube_files_handle *h;
	struct stage s;
	struct stat st;
	uint64_t f;

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "old");
	stage_write(&s, "g", "new");
	f = stage_node(&s, "f");
	assert_int_equal(renameat(s.fd, "g", s.fd, "f"), 0);
	assert_int_equal(cube_files_open(s.space, f, O_RDONLY, &h), -ESTALE);
	assert_int_equal(cube_files_getattr(s.space, f, NULL, &st), -ESTALE);
	assert_int_equal(cube_files_setattr(s.space, f, NULL, &st, CUBE_SET_MTIME_NOW, &st), -ESTALE);
	assert_int_not_equal(stage_node(&s, "f"), f);
	stage_close(&s);
}

/* A directory that was found to be gone is another one when it is there again, whatever its number. */
static void test_directory_again(void **state)
{
	struct cube_files_entry e;
	struct stage s;
	uint64_t d;

	(void)state;
	stage_prepare(&s, STAGE_DISK);
	stage_attach(&s);
	stage_mkdir(&s, "d");
	d = stage_node(&s, "d");
	assert_int_equal(unlinkat(s.fd, "d", AT_REMOVEDIR), 0);
	assert_int_equal(stage_lookup(&s, "d", &e), -ENOENT);
	stage_mkdir(&s, "d");
	assert_int_not_equal(stage_node(&s, "d"), d);
	stage_close(&s);
}

static void test_rename(void **state)
{
	struct cube_files_entry e;
	struct stage s;
	uint64_t d, f, sub, deep;
	char buf[32];
	struct stat st;

	(void)state;
	stage_open(&s);
	stage_mkdir(&s, "d");
	stage_mkdir(&s, "d/sub");
	stage_write(&s, "d/sub/deep", "deep");
	stage_write(&s, "f", "f");
	stage_write(&s, "g", "g");
	d = stage_node(&s, "d");
	f = stage_node(&s, "f");
	sub = stage_node(&s, "d/sub");
	deep = stage_node(&s, "d/sub/deep");
	assert_int_equal(cube_files_rename(s.space, s.id, "f", d, "f2", 0), 0);
	assert_int_equal(stage_node(&s, "d/f2"), f);
	assert_int_equal(cube_files_getattr(s.space, f, NULL, &st), 0);
	/* a directory keeps its node, and what is below is reached through it */
	assert_int_equal(cube_files_rename(s.space, d, "sub", s.id, "moved", 0), 0);
	assert_int_equal(stage_node(&s, "moved"), sub);
	assert_int_equal(cube_files_getattr(s.space, deep, NULL, &st), 0);
	assert_string_equal(stage_read(&s, "moved/deep", buf, sizeof(buf)), "deep");
	assert_int_equal(cube_files_lookup(s.space, sub, "..", &e), 0);
	assert_int_equal(e.id, s.id);
	/* over another file */
	assert_int_equal(cube_files_rename(s.space, d, "f2", s.id, "g", RENAME_NOREPLACE), -EEXIST);
	assert_int_equal(cube_files_rename(s.space, d, "f2", s.id, "g", 0), 0);
	assert_string_equal(stage_read(&s, "g", buf, sizeof(buf)), "f");
	assert_int_equal(stage_node(&s, "g"), f);
	/* exchange */
	assert_int_equal(cube_files_rename(s.space, s.id, "g", s.id, "moved", RENAME_EXCHANGE), 0);
	assert_int_equal(stage_node(&s, "g"), sub);
	assert_int_equal(stage_node(&s, "moved"), f);
	assert_int_equal(cube_files_getattr(s.space, deep, NULL, &st), 0);
	stage_close(&s);
}

static void test_rename_errors(void **state)
{
	struct stage s;
	uint64_t d;

	(void)state;
	stage_open(&s);
	stage_mkdir(&s, "d");
	stage_mkdir(&s, "e");
	stage_write(&s, "e/f", "");
	stage_write(&s, "f", "");
	d = stage_node(&s, "d");
	assert_int_equal(cube_files_rename(s.space, s.id, "x", s.id, "y", 0), -ENOENT);
	assert_int_equal(cube_files_rename(s.space, s.id, "d", d, "into", 0), -EINVAL);
	assert_int_equal(cube_files_rename(s.space, s.id, "d", s.id, "e", 0), -ENOTEMPTY);
	assert_int_equal(cube_files_rename(s.space, s.id, "d", s.id, "f", 0), -ENOTDIR);
	assert_int_equal(cube_files_rename(s.space, s.id, "f", s.id, "d", 0), -EISDIR);
	assert_int_equal(cube_files_rename(s.space, s.id, "f", s.id, "g", RENAME_WHITEOUT), -EINVAL);
	assert_int_equal(cube_files_rename(s.space, s.id, "f", s.id, "none", RENAME_EXCHANGE), -ENOENT);
	assert_int_equal(cube_files_rename(s.space, s.id, ".", s.id, "g", 0), -EBUSY);
	assert_int_equal(cube_files_rename(s.space, s.id, "f", s.id, "..", 0), -EBUSY);
	assert_int_equal(cube_files_rename(s.space, s.id, "f", s.id, "a/b", 0), -EINVAL);
	stage_close(&s);
}

static void test_forget(void **state)
{
	struct cube_files_entry e;
	struct stage s;
	uint64_t d, f;
	struct stat st;

	(void)state;
	stage_open(&s);
	stage_mkdir(&s, "d");
	stage_write(&s, "d/f", "");
	d = stage_node(&s, "d");
	assert_int_equal(cube_files_lookup(s.space, d, "f", &e), 0);
	assert_int_equal(cube_files_lookup(s.space, d, "f", &e), 0);
	f = e.id;
	cube_files_forget(s.space, f, 1);
	assert_int_equal(cube_files_getattr(s.space, f, NULL, &st), 0);
	cube_files_forget(s.space, d, 1); /* kept by what is below */
	assert_int_equal(cube_files_getattr(s.space, f, NULL, &st), 0);
	cube_files_forget(s.space, f, 1);
	assert_int_equal(cube_files_getattr(s.space, f, NULL, &st), -ESTALE);
	assert_int_equal(cube_files_getattr(s.space, d, NULL, &st), -ESTALE);
	cube_files_forget(s.space, s.id, 100); /* the root needs no count */
	assert_int_equal(cube_files_getattr(s.space, s.id, NULL, &st), 0);
	cube_files_forget(s.space, 99, 1);
	assert_int_not_equal(stage_node(&s, "d"), d); /* ids are not used again */
	stage_close(&s);
}

static void test_deep(void **state)
{
	struct stage s;
	uint64_t id;
	struct cube_files_entry e;
	struct stat st;
	unsigned fds;

	(void)state;
	stage_open(&s);
	fds = stage_open_fds();
	id = s.id;
	for (int i = 0; i < 3000; i++) {
		assert_int_equal(cube_files_mkdir(s.space, &stage_cred, id, "d", 0755, &e), 0);
		id = e.id;
	}
	assert_int_equal(cube_files_getattr(s.space, id, NULL, &st), 0);
	assert_true(stage_open_fds() - fds <= 1024 + 4); /* a bounded number of them stays open */
	for (int i = 0; i < 2999; i++) {
		assert_int_equal(cube_files_lookup(s.space, id, "..", &e), 0);
		id = e.id;
	}
	assert_int_equal(cube_files_getattr(s.space, id, NULL, &st), 0);
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lookup),
		cmocka_unit_test(test_lookup_errors),
		cmocka_unit_test(test_make),
		cmocka_unit_test(test_make_errors),
		cmocka_unit_test(test_hard_links),
		cmocka_unit_test(test_remove),
		cmocka_unit_test(test_number_reused),
		cmocka_unit_test(test_renamed_inside),
		cmocka_unit_test(test_replaced_inside),
		cmocka_unit_test(test_file_replaced_inside),
		cmocka_unit_test(test_directory_again),
		cmocka_unit_test(test_rename),
		cmocka_unit_test(test_rename_errors),
		cmocka_unit_test(test_forget),
		cmocka_unit_test(test_deep),
	};

	stage_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
