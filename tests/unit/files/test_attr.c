/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes: owners in both directions, inode numbers, changes that fail as a whole, access, statfs. */
#include "tests/unit/files/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "backends/base/macros.h"

#define OWNER (CUBE_SET_UID | CUBE_SET_GID)

static int set(struct stage *s, const char *path, unsigned what, const struct stat *want, struct stat *got)
{
	return cube_files_setattr(s->space, stage_node(s, path), NULL, want, what, got);
}

static void test_setattr(void **state)
{
	const struct stat want = {
		.st_mode = 04711,
		.st_size = 10,
		.st_atim = {.tv_sec = 1, .tv_nsec = 2},
		.st_mtim = {.tv_sec = 3, .tv_nsec = 999999999},
	};
	struct stage s;
	struct stat got;

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "hello");
	stage_mkdir(&s, "d");
	stage_symlink(&s, "f", "l");
	assert_int_equal(
		set(&s, "f", CUBE_SET_MODE | CUBE_SET_SIZE | CUBE_SET_ATIME | CUBE_SET_MTIME, &want, &got),
		0);
	assert_int_equal(got.st_mode, S_IFREG | 04711);
	assert_int_equal(got.st_size, 10);
	assert_int_equal(got.st_atim.tv_sec, 1);
	assert_int_equal(got.st_atim.tv_nsec, 2);
	assert_int_equal(got.st_mtim.tv_sec, 3);
	assert_int_equal(got.st_mtim.tv_nsec, 999999999);
	assert_int_equal(set(&s, "f", CUBE_SET_MTIME_NOW, &want, &got), 0);
	assert_int_equal(got.st_atim.tv_sec, 1); /* the other stays */
	assert_true(got.st_mtim.tv_sec > 1000000);
	assert_int_equal(set(&s, "d", CUBE_SET_MODE | CUBE_SET_MTIME, &want, &got), 0);
	assert_int_equal(got.st_mode, S_IFDIR | 04711);
	assert_int_equal(set(&s, "l", CUBE_SET_MTIME, &want, &got), 0); /* of the link itself */
	assert_int_equal(got.st_mtim.tv_sec, 3);
	stage_stat(&s, "f", &got);
	assert_true(got.st_mtim.tv_sec > 1000000);
	assert_int_equal(set(&s, "f", 0, &want, &got), 0);
	stage_close(&s);
}

static void test_setattr_errors(void **state)
{
	const struct stat want = {.st_mode = 0600, .st_size = -1};
	struct stage s;
	struct stat got;

	(void)state;
	stage_open(&s);
	stage_mkdir(&s, "d");
	stage_write(&s, "f", "");
	stage_symlink(&s, "f", "l");
	assert_int_equal(mkfifoat(s.fd, "p", 0644), 0);
	assert_int_equal(set(&s, "d", CUBE_SET_SIZE, &want, &got), -EISDIR);
	assert_int_equal(set(&s, "f", CUBE_SET_SIZE, &want, &got), -EINVAL);
	assert_int_equal(set(&s, "p", CUBE_SET_SIZE, &want, &got), -EINVAL);
	assert_int_equal(set(&s, "l", CUBE_SET_MODE, &want, &got), -EOPNOTSUPP);
	assert_int_equal(set(&s, "f", 1u << 20, &want, &got), -EINVAL);
	stage_stat(&s, "p", &got);
	assert_int_equal(got.st_mode, S_IFIFO | 0644);
	stage_close(&s);
}

/* What the last of several changes fails of, none of them is left. */
static void test_setattr_undone(void **state)
{
	struct stat want = {.st_mode = 0777, .st_uid = 5, .st_gid = 6, .st_size = (off_t)1 << 62};
	struct stage s;
	struct stat got;
	int r;

	(void)state;
	stage_need_root();
	stage_prepare(&s, STAGE_DISK); /* a file system with a largest file */
	stage_attach(&s);
	stage_write(&s, "f", "hello");
	r = set(&s, "f", CUBE_SET_MODE | OWNER | CUBE_SET_SIZE, &want, &got);
	assert_true(r == -EFBIG || r == -EINVAL);
	stage_stat(&s, "f", &got);
	assert_int_equal(got.st_mode, S_IFREG | 0644);
	assert_int_equal(got.st_uid, 0);
	assert_int_equal(got.st_gid, 0);
	assert_int_equal(got.st_size, 5);
	stage_close(&s);
}

static void range_stage(struct stage *s, bool swap)
{
	stage_prepare(s, STAGE_PLAIN);
	s->root.uid_base = 100000;
	s->root.gid_base = 200000;
	s->root.id_count = 65536;
	s->root.swap_owner = swap;
	s->options.uid = 1000;
	s->options.gid = 1001;
	assert_int_equal(fchownat(s->fd, "", 100000, 200000, AT_EMPTY_PATH), 0);
	stage_attach(s);
}

static const struct {
	uid_t kernel, inside, swapped;
} owners[] = {
	{100000, 0, 1000},      {101000, 1000, 0},     {100001, 1, 1},    {165535, 65535, 65535},
	{165536, 65534, 65534}, {99999, 65534, 65534}, {0, 65534, 65534}, {165534, 65534, 65534},
};

static void test_owners_shown(void **state)
{
	struct cube_files_entry e;
	struct stage s;
	char name[16];

	(void)state;
	stage_need_root();
	for (int swap = 0; swap < 2; swap++) {
		range_stage(&s, swap != 0);
		for (size_t i = 0; i < CUBE_COUNT(owners); i++) {
			(void)snprintf(name, sizeof(name), "f%zu", i);
			stage_write(&s, name, "");
			assert_int_equal(fchownat(s.fd, name, owners[i].kernel, 200000, 0), 0);
			assert_int_equal(stage_lookup(&s, name, &e), 0);
			assert_int_equal(e.st.st_uid, swap ? owners[i].swapped : owners[i].inside);
			assert_int_equal(e.st.st_gid, swap ? 1001 : 0);
		}
		stage_close(&s);
	}
}

static void test_owners_set(void **state)
{
	struct stat want = {.st_uid = 0}, got;
	struct stage s;

	(void)state;
	stage_need_root();
	for (int swap = 0; swap < 2; swap++) {
		range_stage(&s, swap != 0);
		stage_write(&s, "f", "");
		for (size_t i = 0; i < 4; i++) {
			want.st_uid = swap ? owners[i].swapped : owners[i].inside;
			want.st_gid = want.st_uid;
			assert_int_equal(set(&s, "f", CUBE_SET_UID, &want, &got), 0);
			assert_int_equal(got.st_uid, want.st_uid);
			stage_stat(&s, "f", &got);
			assert_int_equal(got.st_uid, owners[i].kernel);
		}
		want.st_uid = 65536; /* nobody of that number inside */
		assert_int_equal(set(&s, "f", CUBE_SET_UID, &want, &got), -EINVAL);
		want.st_gid = (gid_t)-1;
		assert_int_equal(set(&s, "f", CUBE_SET_GID, &want, &got), -EINVAL);
		stage_close(&s);
	}
}

/* Files are the sandbox's root's from the start, also in directories that are others' and closed to all. */
static void test_owners_of_new(void **state)
{
	struct cube_files_handle *h;
	struct cube_files_entry e;
	struct stage s;
	struct stat st;
	uint64_t d;

	(void)state;
	stage_need_root();
	range_stage(&s, false);
	stage_mkdir(&s, "d");
	assert_int_equal(fchownat(s.fd, "d", 100007, 200007, 0), 0);
	assert_int_equal(fchmodat(s.fd, "d", 0700, 0), 0);
	d = stage_node(&s, "d");
	assert_int_equal(cube_files_create(s.space, &stage_cred, d, "f", O_RDWR, 0600, &e, &h), 0);
	cube_files_release(h);
	assert_int_equal(cube_files_mkdir(s.space, &stage_cred, d, "dir", 0700, &e), 0);
	assert_int_equal(e.st.st_uid, 0);
	assert_int_equal(cube_files_symlink(s.space, &stage_cred, d, "l", "x", &e), 0);
	assert_int_equal(cube_files_mknod(s.space, &stage_cred, d, "p", S_IFIFO | 0600, 0, &e), 0);
	for (const char *const *p = (const char *const[]){"d/f", "d/dir", "d/l", "d/p", NULL}; *p != NULL;
	     p++) {
		stage_stat(&s, *p, &st);
		assert_int_equal(st.st_uid, 100000);
		assert_int_equal(st.st_gid, 200000);
	}
	/* a setgid directory gives its group, and the bit */
	assert_int_equal(fchmodat(s.fd, "d", 02700, 0), 0);
	assert_int_equal(cube_files_mkdir(s.space, &stage_cred, d, "sg", 0700, &e), 0);
	assert_int_equal(e.st.st_gid, 7);
	assert_int_equal(e.st.st_mode, S_IFDIR | 02700);
	/* and this thread is who it was, with all it could do */
	assert_int_equal(setfsuid((uid_t)-1), 0);
	assert_int_equal(setfsgid((gid_t)-1), 0);
	stage_write(&s, "mine", "");
	stage_stat(&s, "mine", &st);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(fchownat(s.fd, "mine", 4711, 4711, 0), 0);
	assert_int_equal(cube_files_mkdir(s.space, &stage_cred, d, "dir", 0700, &e),
			 -EEXIST); /* after a failure too */
	assert_int_equal(setfsuid((uid_t)-1), 0);
	stage_close(&s);
}

/* Others who were let in make files of their own; where there is no such id inside, nobody's. */
static void test_owners_of_others(void **state)
{
	static const struct {
		uid_t uid, inside;
	} cases[] = {{0, 0}, {33, 33}, {65535, 65535}, {70000, 65534}};
	struct cube_files_entry e;
	struct stage s;
	struct stat st;

	(void)state;
	stage_need_root();
	range_stage(&s, false);
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		const struct cube_files_cred c = {.uid = cases[i].uid, .gid = cases[i].uid, .pid = 1};

		assert_int_equal(cube_files_mkdir(s.space, &c, s.id, "d", 0700, &e), 0);
		assert_int_equal(e.st.st_uid, cases[i].inside);
		assert_int_equal(e.st.st_gid, cases[i].inside);
		stage_stat(&s, "d", &st);
		assert_int_equal(st.st_uid, 100000 + cases[i].inside);
		assert_int_equal(st.st_gid, 200000 + cases[i].inside);
		assert_int_equal(setfsuid((uid_t)-1), 0); /* this thread is who it was */
		assert_int_equal(setfsgid((gid_t)-1), 0);
		assert_int_equal(unlinkat(s.fd, "d", AT_REMOVEDIR), 0);
	}
	stage_close(&s);
}

/* Without ids of its own: an ordinary user's daemon, in its own user namespace. */
static void test_owners_exchanged_only(void **state)
{
	const struct cube_files_cred mounter = {.uid = 1000, .gid = 1000, .pid = 1};
	struct cube_files_entry e;
	struct stage s;
	struct stat want, got;

	(void)state;
	stage_need_root();
	for (int raw = 0; raw < 2; raw++) {
		stage_prepare(&s, STAGE_PLAIN);
		s.root.swap_owner = true;
		s.root.id_count = UINT32_MAX;
		s.options = (struct cube_files_options){.uid = 1000, .gid = 1000, .owners_raw = raw != 0};
		stage_attach(&s);
		assert_int_equal(cube_files_mkdir(s.space, &mounter, s.id, "d", 0755, &e), 0);
		assert_int_equal(e.st.st_uid, raw ? 0 : 1000);
		stage_stat(&s, "d", &got);
		assert_int_equal(got.st_uid, 0);
		want.st_uid = want.st_gid = raw ? 1000 : 0;
		assert_int_equal(set(&s, "d", OWNER, &want, &got), 0);
		stage_stat(&s, "d", &got);
		assert_int_equal(got.st_uid, 1000);
		assert_int_equal(got.st_gid, 1000);
		stage_close(&s);
	}
}

static uint64_t number_with(uint64_t seed, struct stage *s, const char *path)
{
	uint64_t ino;
	struct cube_files_entry e;

	stage_prepare(s, STAGE_DISK);
	s->seed = seed;
	stage_attach(s);
	stage_write(s, path, "");
	assert_int_equal(stage_lookup(s, path, &e), 0);
	ino = e.st.st_ino;
	assert_int_equal(e.st.st_ino >> 63, 0);
	return ino;
}

static void test_numbers(void **state)
{
	struct cube_files *other, *again;
	struct cube_files_entry e;
	struct cube_root root;
	struct stage s;
	uint64_t ino = number_with(1, &s, "f"), id;

	(void)state;
	/* another sandbox with the same files: other numbers; the same one again: the same */
	root = (struct cube_root){.fd = fcntl(s.fd, F_DUPFD_CLOEXEC, 0)};
	assert_int_equal(cube_files_attach(s.space, &root, 2, NULL, &other), 0);
	assert_int_equal(cube_files_lookup(s.space, cube_files_root(other), "f", &e), 0);
	assert_int_not_equal(e.st.st_ino, ino);
	id = e.id;
	cube_files_detach(other);
	assert_int_equal(cube_files_getattr(s.space, id, NULL, &e.st), -ESTALE);
	root.fd = fcntl(s.fd, F_DUPFD_CLOEXEC, 0);
	assert_int_equal(cube_files_attach(s.space, &root, 1, NULL, &again), 0);
	assert_int_equal(cube_files_lookup(s.space, cube_files_root(again), "f", &e), 0);
	assert_int_equal(e.st.st_ino, ino);
	assert_int_not_equal(e.id, stage_node(&s, "f"));
	/* hard links have one number, also after a rename */
	assert_int_equal(linkat(s.fd, "f", s.fd, "g", 0), 0);
	assert_int_equal(stage_lookup(&s, "g", &e), 0);
	assert_int_equal(e.st.st_ino, ino);
	cube_files_detach(again);
	stage_close(&s);
}

/* They do not depend on the device's number, which is another one after each mount. */
static void test_numbers_of_a_device(void **state)
{
	struct cube_files_entry e;
	struct stage s[2];
	uint64_t ino[2];

	(void)state;
	stage_need_root();
	for (int i = 0; i < 2; i++) {
		stage_open(&s[i]);
		assert_int_equal(stage_lookup(&s[i], "", &e), 0);
		assert_int_equal(cube_files_getattr(s[i].space, s[i].id, NULL, &e.st), 0);
		ino[i] = e.st.st_ino;
	}
	assert_int_equal(ino[0], ino[1]);
	stage_close(&s[0]);
	stage_close(&s[1]);
}

static void test_access(void **state)
{
	static const struct {
		uid_t uid;
		gid_t gid;
		mode_t mode;
		int mask, want;
	} cases[] = {
		{1000, 1000, 0000, R_OK | W_OK, 0}, /* who mounted acts as root */
		{1000, 1000, 0000, X_OK, -EACCES},
		{1000, 1000, 0001, X_OK, 0},
		{0, 0, 0000, R_OK | W_OK, 0},
		{7, 7, 0700, R_OK | W_OK | X_OK, 0},
		{7, 7, 0077, R_OK, -EACCES}, /* the owner's bits alone count */
		{8, 7, 0750, R_OK | X_OK, 0},
		{8, 7, 0750, W_OK, -EACCES},
		{8, 8, 0754, R_OK, 0},
		{8, 8, 0754, X_OK, -EACCES},
		{8, 8, 0000, F_OK, 0},
	};
	struct stage s;
	uint64_t f;

	(void)state;
	stage_need_root();
	stage_prepare(&s, STAGE_PLAIN);
	s.options.uid = 1000;
	stage_attach(&s);
	stage_write(&s, "f", "");
	assert_int_equal(fchownat(s.fd, "f", 7, 7, 0), 0);
	f = stage_node(&s, "f");
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		const struct cube_files_cred c = {.uid = cases[i].uid, .gid = cases[i].gid};

		assert_int_equal(fchmodat(s.fd, "f", cases[i].mode, 0), 0);
		assert_int_equal(cube_files_access(s.space, &c, f, cases[i].mask), cases[i].want);
	}
	stage_close(&s);
}

static void test_statfs(void **state)
{
	struct statvfs got, want;
	struct stage s;

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "");
	assert_int_equal(cube_files_statfs(s.space, stage_node(&s, "f"), &got), 0);
	assert_int_equal(fstatvfs(s.fd, &want), 0);
	assert_int_equal(got.f_blocks, want.f_blocks);
	assert_int_equal(got.f_bsize, want.f_bsize);
	assert_int_equal(got.f_namemax, want.f_namemax);
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_setattr),          cmocka_unit_test(test_setattr_errors),
		cmocka_unit_test(test_setattr_undone),   cmocka_unit_test(test_owners_shown),
		cmocka_unit_test(test_owners_set),       cmocka_unit_test(test_owners_of_new),
		cmocka_unit_test(test_owners_of_others), cmocka_unit_test(test_owners_exchanged_only),
		cmocka_unit_test(test_numbers),          cmocka_unit_test(test_numbers_of_a_device),
		cmocka_unit_test(test_access),           cmocka_unit_test(test_statfs),
	};

	stage_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
