/* SPDX-License-Identifier: Apache-2.0 */
/* Open files: which can be opened and how, creation, content, files that are removed while open. */
#include "tests/unit/files/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "backends/base/macros.h"

static ssize_t read_all(struct cube_files_handle *h, char *buf, size_t size)
{
	ssize_t n = cube_files_read(h, buf, size - 1, 0);

	buf[n > 0 ? n : 0] = '\0';
	return n;
}

static void test_flags(void **state)
{
	struct cube_files_handle *h;
	struct stage s;
	uint64_t f;
	char buf[64];

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "hello");
	f = stage_node(&s, "f");
	assert_int_equal(cube_files_open(s.space, f, O_RDONLY | O_DIRECT | O_NOFOLLOW | O_EXCL | O_CREAT, &h),
			 0);
	assert_int_equal(read_all(h, buf, sizeof(buf)), 5);
	assert_int_equal(cube_files_write(h, "x", 1, 0), -EBADF);
	assert_true((fcntl(cube_files_fd(h), F_GETFD) & FD_CLOEXEC) != 0);
	assert_true((fcntl(cube_files_fd(h), F_GETFL) & O_DIRECT) == 0);
	cube_files_release(h);
	assert_int_equal(cube_files_open(s.space, f, O_WRONLY | O_APPEND, &h), 0);
	assert_int_equal(cube_files_write(h, " world", 6, 0), 6); /* at the end, whatever the offset */
	assert_int_equal(cube_files_read(h, buf, sizeof(buf), 0), -EBADF);
	cube_files_release(h);
	assert_string_equal(stage_read(&s, "f", buf, sizeof(buf)), "hello world");
	assert_int_equal(cube_files_open(s.space, f, O_RDWR | O_TRUNC, &h), 0);
	assert_int_equal(read_all(h, buf, sizeof(buf)), 0);
	assert_int_equal(cube_files_write(h, "abc", 3, 4096), 3);
	assert_int_equal(cube_files_lseek(h, 0, SEEK_DATA), 4096);
	assert_int_equal(cube_files_lseek(h, 0, SEEK_HOLE), 0);
	assert_int_equal(cube_files_lseek(h, 5000, SEEK_DATA), -ENXIO);
	assert_int_equal(cube_files_lseek(h, 0, SEEK_SET), -EINVAL);
	cube_files_release(h);
	assert_int_equal(cube_files_open(s.space, f, O_ACCMODE, &h), -EINVAL);
	assert_int_equal(cube_files_open(s.space, f, O_RDONLY | O_DIRECTORY, &h), -ENOTDIR);
	stage_close(&s);
}

/* Nothing here may hang, and nothing may be touched. */
static void test_special(void **state)
{
	struct cube_files_handle *h;
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct stage s;
	int sock;

	(void)state;
	stage_open(&s);
	assert_int_equal(mkfifoat(s.fd, "fifo", 0666), 0);
	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s/root/sock", s.top);
	sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(sock, (const struct sockaddr *)(const void *)&at, sizeof(at)), 0);
	stage_symlink(&s, "fifo", "link");
	stage_mkdir(&s, "dir");
	if (geteuid() == 0)
		assert_int_equal(mknodat(s.fd, "null", S_IFCHR | 0666, makedev(1, 3)), 0);
	else
		assert_int_equal(mkfifoat(s.fd, "null", 0666), 0);
	for (int access = O_RDONLY; access <= O_RDWR; access++) {
		assert_int_equal(cube_files_open(s.space, stage_node(&s, "fifo"), access, &h), -ENXIO);
		assert_int_equal(cube_files_open(s.space, stage_node(&s, "sock"), access, &h), -ENXIO);
		assert_int_equal(cube_files_open(s.space, stage_node(&s, "null"), access, &h), -ENXIO);
		assert_int_equal(cube_files_open(s.space, stage_node(&s, "link"), access, &h), -ELOOP);
		assert_int_equal(cube_files_open(s.space, stage_node(&s, "dir"), access, &h), -EISDIR);
	}
	assert_int_equal(cube_files_opendir(s.space, stage_node(&s, "fifo"), &h), -ENOTDIR);
	(void)close(sock);
	stage_close(&s);
}

static void test_create(void **state)
{
	struct cube_files_handle *h;
	struct cube_files_entry e;
	struct stage s;
	char buf[16];

	(void)state;
	stage_open(&s);
	assert_int_equal(cube_files_create(s.space, &stage_cred, s.id, "f", O_RDWR | O_EXCL, 0400, &e, &h),
			 0);
	assert_int_equal(e.st.st_mode, S_IFREG | 0400);
	assert_int_equal(cube_files_write(h, "new", 3, 0), 3); /* whatever the mode says */
	assert_int_equal(cube_files_open_count(s.tree), 1);
	assert_int_equal(stage_node(&s, "f"), e.id);
	cube_files_release(h);
	assert_int_equal(fchmodat(s.fd, "f", 0600, 0), 0);
	assert_int_equal(cube_files_open_count(s.tree), 0);
	assert_int_equal(cube_files_create(s.space, &stage_cred, s.id, "f", O_RDWR | O_EXCL, 0600, &e, &h),
			 -EEXIST);
	assert_int_equal(cube_files_create(s.space, &stage_cred, s.id, "f", O_RDWR, 0600, &e, &h), 0);
	assert_int_equal(e.st.st_size, 3);
	assert_int_equal(read_all(h, buf, sizeof(buf)), 3);
	cube_files_release(h);
	assert_int_equal(cube_files_create(s.space, &stage_cred, s.id, "f", O_RDWR | O_TRUNC, 0600, &e, &h),
			 0);
	assert_int_equal(e.st.st_size, 0);
	cube_files_release(h);
	stage_close(&s);
}

static void test_create_errors(void **state)
{
	struct cube_files_handle *h;
	struct cube_files_entry e;
	struct stage s;

	(void)state;
	stage_open(&s);
	stage_mkdir(&s, "d");
	stage_symlink(&s, "/etc/new", "l");
	assert_int_equal(mkfifoat(s.fd, "fifo", 0666), 0);
	assert_int_equal(cube_files_create(s.space, &stage_cred, s.id, "d", O_RDWR, 0600, &e, &h), -EISDIR);
	assert_int_equal(cube_files_create(s.space, &stage_cred, s.id, "l", O_RDWR, 0600, &e, &h), -ELOOP);
	assert_int_equal(cube_files_create(s.space, &stage_cred, s.id, "fifo", O_WRONLY, 0600, &e, &h),
			 -ENXIO);
	assert_int_equal(cube_files_create(s.space, &stage_cred, s.id, "..", O_RDWR, 0600, &e, &h), -EEXIST);
	assert_int_equal(cube_files_create(s.space, &stage_cred, s.id, "a/b", O_RDWR, 0600, &e, &h), -EINVAL);
	assert_int_equal(cube_files_create(s.space, &stage_cred, s.id, "x", O_ACCMODE, 0600, &e, &h),
			 -EINVAL);
	assert_int_equal(cube_files_open_count(s.tree), 0);
	stage_close(&s);
}

/* A process that runs with a umask of its own gives the modes it is asked for all the same. */
static void test_umask(void **state)
{
	struct cube_files_handle *h;
	struct cube_files_entry e;
	struct stage s;
	mode_t old = umask(0077);

	(void)state;
	stage_open(&s);
	assert_int_equal(cube_files_create(s.space, &stage_cred, s.id, "f", O_RDWR, 0666, &e, &h), 0);
	cube_files_release(h);
	assert_int_equal(e.st.st_mode, S_IFREG | 0666);
	assert_int_equal(cube_files_mkdir(s.space, &stage_cred, s.id, "d", 01777, &e), 0);
	assert_int_equal(e.st.st_mode, S_IFDIR | 01777);
	assert_int_equal(cube_files_mknod(s.space, &stage_cred, s.id, "p", S_IFIFO | 0622, 0, &e), 0);
	assert_int_equal(e.st.st_mode, S_IFIFO | 0622);
	stage_close(&s);
	(void)umask(old);
}

static void test_unlinked(void **state)
{
	struct cube_files_handle *h, *h2;
	struct stat st = {.st_mode = 0600, .st_size = 2}, got;
	struct stage s;
	uint64_t f;
	char buf[16];

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "data");
	f = stage_node(&s, "f");
	assert_int_equal(cube_files_open(s.space, f, O_RDWR, &h), 0);
	assert_int_equal(cube_files_unlink(s.space, s.id, "f"), 0);
	assert_int_equal(cube_files_getattr(s.space, f, h, &got), 0);
	assert_int_equal(got.st_nlink, 0);
	assert_int_equal(cube_files_getattr(s.space, f, NULL, &got),
			 0); /* fstat, fchmod, ... come without the handle */
	assert_int_equal(cube_files_setattr(s.space, f, h, &st, CUBE_SET_SIZE, &got), 0);
	assert_int_equal(got.st_size, 2);
	assert_int_equal(cube_files_setattr(s.space, f, NULL, &st, CUBE_SET_MODE | CUBE_SET_MTIME_NOW, &got),
			 0);
	assert_int_equal(got.st_mode, S_IFREG | 0600);
	assert_int_equal(read_all(h, buf, sizeof(buf)), 2);
	assert_int_equal(cube_files_open(s.space, f, O_RDONLY, &h2), 0); /* /proc/PID/fd/N */
	cube_files_release(h2);
	/* the next of that name is another one */
	stage_write(&s, "f", "next");
	assert_int_not_equal(stage_node(&s, "f"), f);
	assert_int_equal(read_all(h, buf, sizeof(buf)), 2);
	cube_files_release(h);
	assert_int_equal(cube_files_getattr(s.space, f, NULL, &got), -ESTALE);
	stage_close(&s);
}

/* What fcntl(2) says of an open file later counts, not what its open said. */
static void test_append(void **state)
{
	struct cube_files_handle *h;
	struct stage s;
	char buf[16];

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "one");
	assert_int_equal(cube_files_open(s.space, stage_node(&s, "f"), O_RDWR | O_APPEND, &h), 0);
	assert_int_equal(cube_files_write(h, "two", 3, 0), 3);
	assert_int_equal(cube_files_write_flags(h, "ONE", 3, 0, O_RDWR), 3);
	assert_int_equal(cube_files_write_flags(h, "three", 5, 0, O_RDWR | O_APPEND), 5);
	assert_int_equal(read_all(h, buf, sizeof(buf)), 11);
	assert_memory_equal(buf, "ONEtwothree", 11);
	assert_int_equal(fcntl(cube_files_fd(h), F_GETFL) & O_APPEND, 0);
	cube_files_release(h);
	stage_close(&s);
}

static void test_truncated_by(void **state)
{
	const struct cube_files_cred stranger = {.uid = 4242, .gid = 4242};
	struct cube_files_handle *h;
	struct stage s;
	struct stat st;

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "program");
	assert_int_equal(cube_files_open(s.space, stage_node(&s, "f"), O_RDWR, &h), 0);
	assert_int_equal(fchmod(cube_files_fd(h), 06755), 0);
	cube_files_truncated(h, &stage_cred);
	assert_int_equal(cube_files_getattr(s.space, 0, h, &st), 0);
	assert_int_equal(st.st_mode & 07777, 06755);
	cube_files_truncated(h, &stranger);
	assert_int_equal(cube_files_getattr(s.space, 0, h, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	cube_files_release(h);
	stage_close(&s);
}

static void test_removed_directory(void **state)
{
	struct cube_files_handle *h;
	struct cube_files_entry e;
	struct stage s;
	struct stat st;
	uint64_t d;

	(void)state;
	stage_open(&s);
	stage_mkdir(&s, "d");
	d = stage_node(&s, "d");
	assert_int_equal(cube_files_opendir(s.space, d, &h), 0);
	assert_int_equal(cube_files_rmdir(s.space, s.id, "d"), 0);
	assert_int_equal(cube_files_getattr(s.space, d, h, &st), 0);
	assert_int_equal(cube_files_mkdir(s.space, &stage_cred, d, "x", 0755, &e), -ENOENT);
	cube_files_release(h);
	/* whose working directory it is sees what a local file system shows, whatever has the name now */
	stage_mkdir(&s, "d");
	stage_write(&s, "d/f", "");
	assert_int_equal(cube_files_mkdir(s.space, &stage_cred, d, "x", 0755, &e), -ENOENT);
	assert_int_equal(cube_files_lookup(s.space, d, "f", &e), -ENOENT);
	assert_int_equal(cube_files_getattr(s.space, d, NULL, &st), 0);
	assert_int_equal(st.st_nlink, 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(cube_files_opendir(s.space, d, &h), 0);
	cube_files_release(h);
	stage_close(&s);
}

static void test_ranges(void **state)
{
	struct cube_files_handle *from, *to;
	struct stage s;
	struct stat st;
	char buf[32];

	(void)state;
	stage_open(&s);
	stage_write(&s, "from", "0123456789");
	stage_write(&s, "to", "");
	assert_int_equal(cube_files_open(s.space, stage_node(&s, "from"), O_RDONLY, &from), 0);
	assert_int_equal(cube_files_open(s.space, stage_node(&s, "to"), O_RDWR, &to), 0);
	assert_int_equal(cube_files_copy_range(from, 2, to, 1, 5, 0), 5);
	assert_int_equal(read_all(to, buf, sizeof(buf)), 6);
	assert_memory_equal(buf, "\00023456", 6);
	assert_int_equal(cube_files_copy_range(from, 2, to, 1, 5, 77), -EINVAL);
	assert_int_equal(cube_files_copy_range(to, 2, from, 1, 5, 0), -EBADF);
	assert_int_equal(cube_files_fallocate(to, 0, 0, 10000), 0);
	assert_int_equal(cube_files_getattr(s.space, 0, to, &st), 0);
	assert_int_equal(st.st_size, 10000);
	assert_int_equal(cube_files_fallocate(to, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 10000), 0);
	assert_int_equal(read_all(to, buf, 7), 6);
	assert_memory_equal(buf, "\0\0\0\0\0", 6);
	assert_int_equal(cube_files_fallocate(to, 0x4000, 0, 1), -EOPNOTSUPP);
	assert_int_equal(cube_files_fallocate(from, 0, 0, 1), -EBADF);
	assert_int_equal(cube_files_fsync(to, false), 0);
	assert_int_equal(cube_files_fsync(to, true), 0);
	assert_int_equal(cube_files_flush(to, 7), 0);
	cube_files_release(from);
	cube_files_release(to);
	stage_close(&s);
}

/* The file is copied up when it is opened for writing, and may get another number: it stays the same node. */
static void test_copy_up(void **state)
{
	struct cube_files_handle *before, *h;
	struct stat st = {.st_mode = 0600};
	struct cube_files_entry e;
	struct stage s;
	uint64_t f, g;
	char buf[16];

	(void)state;
	stage_need_root();
	stage_prepare(&s, STAGE_OVERLAY);
	assert_int_equal(mknodat(s.top_fd, "lower/f", S_IFREG | 0644, 0), 0);
	assert_int_equal(mknodat(s.top_fd, "lower/g", S_IFREG | 0644, 0), 0);
	/* of hard links overlayfs does not remember the number */
	assert_int_equal(linkat(s.top_fd, "lower/f", s.top_fd, "lower/f2", 0), 0);
	assert_int_equal(linkat(s.top_fd, "lower/g", s.top_fd, "lower/g2", 0), 0);
	stage_attach(&s);
	f = stage_node(&s, "f");
	g = stage_node(&s, "g");
	assert_int_equal(cube_files_open(s.space, f, O_RDONLY, &before), 0);
	assert_int_equal(cube_files_open(s.space, f, O_RDWR, &h), 0);
	assert_int_equal(cube_files_write(h, "up", 2, 0), 2);
	assert_int_equal(stage_node(&s, "f"), f);
	assert_int_equal(read_all(before, buf, sizeof(buf)), 2);
	cube_files_release(before);
	cube_files_release(h);
	assert_int_equal(cube_files_getattr(s.space, f, NULL, &st), 0);
	assert_int_equal(st.st_size, 2);
	st.st_mode = 0600;
	assert_int_equal(cube_files_setattr(s.space, g, NULL, &st, CUBE_SET_MODE, &st), 0);
	assert_int_equal(stage_node(&s, "g"), g);
	assert_int_equal(cube_files_getattr(s.space, g, NULL, &st), 0);
	/* a hard link of a lower file */
	assert_int_equal(cube_files_link(s.space, g, s.id, "g3", &e), 0);
	assert_int_equal(e.id, g);
	stage_close(&s);
}

/* A node is kept by its handles alone, and goes with the last. */
static void test_forgotten(void **state)
{
	struct cube_files_handle *h;
	struct stage s;
	struct stat st;
	uint64_t f;

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "");
	f = stage_node(&s, "f");
	assert_int_equal(cube_files_open(s.space, f, O_RDONLY, &h), 0);
	cube_files_forget(s.space, f, 1);
	assert_int_equal(cube_files_getattr(s.space, f, NULL, &st), 0);
	cube_files_release(h);
	assert_int_equal(cube_files_getattr(s.space, f, NULL, &st), -ESTALE);
	assert_int_not_equal(stage_node(&s, "f"), f);
	stage_close(&s);
}

static void test_no_descriptors_left(void **state)
{
	unsigned before = stage_open_fds();
	struct cube_files_handle *h;
	struct stage s;

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "");
	for (int i = 0; i < 100; i++) {
		assert_int_equal(cube_files_open(s.space, stage_node(&s, "f"), O_RDWR, &h), 0);
		assert_int_equal(cube_files_flush(h, 1), 0);
		cube_files_release(h);
	}
	cube_files_release(NULL);
	stage_close(&s);
	assert_int_equal(stage_open_fds(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_special),
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_create_errors),
		cmocka_unit_test(test_umask),
		cmocka_unit_test(test_unlinked),
		cmocka_unit_test(test_append),
		cmocka_unit_test(test_truncated_by),
		cmocka_unit_test(test_removed_directory),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_copy_up),
		cmocka_unit_test(test_forgotten),
		cmocka_unit_test(test_no_descriptors_left),
	};

	stage_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
