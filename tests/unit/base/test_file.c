/* SPDX-License-Identifier: Apache-2.0 */
/* Files of our own state: reads, atomic replacement, directories, descriptors over sockets. */
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"

static void make_file(int dirfd, const char *name, const char *text)
{
	cube_auto_fd fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(cube_file_write_all(fd, text, strlen(text)), 0);
}

static void file_is(int dirfd, const char *name, const char *text)
{
	struct cube_buf b = CUBE_BUF(1000);

	assert_int_equal(cube_file_read(dirfd, name, &b), 0);
	assert_string_equal(cube_buf_str(&b), text);
	cube_buf_done(&b);
}

static void test_read(void **state)
{
	struct place *p = *state;
	struct cube_buf b = CUBE_BUF(10);

	make_file(p->fd, "f", "0123456789");
	assert_int_equal(cube_file_read(p->fd, "f", &b), 0);
	assert_string_equal(cube_buf_str(&b), "0123456789");
	cube_buf_reset(&b);
	make_file(p->fd, "f", "0123456789a");
	assert_int_equal(cube_file_read(p->fd, "f", &b), -EMSGSIZE);
	cube_buf_reset(&b);
	assert_int_equal(cube_file_read(p->fd, "none", &b), -ENOENT);
	assert_int_equal(cube_file_read(p->fd, ".", &b), -EISDIR);
	make_file(p->fd, "f", "");
	assert_int_equal(cube_file_read(p->fd, "f", &b), 0);
	assert_int_equal(b.len, 0);
	cube_buf_done(&b);
}

static void test_read_adds(void **state)
{
	struct place *p = *state;
	struct cube_buf b = CUBE_BUF(100000);

	char big[40001];

	memset(big, 'b', 40000);
	big[40000] = '\0';
	make_file(p->fd, "big", big);
	assert_int_equal(cube_buf_adds(&b, "before:"), 0);
	assert_int_equal(cube_file_read(p->fd, "big", &b), 0);
	assert_int_equal(b.len, 40007);
	assert_memory_equal(b.data, "before:bbb", 10);
	cube_alloc_fail_at(1);
	assert_int_equal(cube_file_read(p->fd, "big", &b), -ENOMEM);
	cube_buf_done(&b);
}

static void test_replace(void **state)
{
	struct place *p = *state;
	mode_t before = umask(077);
	struct stat st;

	assert_int_equal(cube_file_replace(p->fd, "f", "one", 3, 0644), 0);
	umask(before);
	file_is(p->fd, "f", "one");
	assert_int_equal(fstatat(p->fd, "f", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	cube_auto_fd old = openat(p->fd, "f", O_RDONLY | O_CLOEXEC);
	assert_int_equal(cube_file_replace(p->fd, "f", "two", 3, 0600), 0);
	file_is(p->fd, "f", "two");
	char text[4] = "";
	assert_int_equal(pread(old, text, 3, 0), 3); /* who has the old one open still has it */
	assert_string_equal(text, "one");
	assert_int_equal(cube_file_replace(p->fd, "f", "", 0, 0600), 0);
	file_is(p->fd, "f", "");
}

static void test_replace_below_o_path(void **state)
{
	struct place *p = *state;
	cube_auto_fd dir = open(p->path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(cube_file_replace(dir, "f", "x", 1, 0600), 0);
	file_is(p->fd, "f", "x");
}

static void test_replace_refused(void **state)
{
	struct place *p = *state;

	assert_int_equal(cube_file_replace(p->fd, "a/b", "x", 1, 0600), -EINVAL);
	assert_int_equal(cube_file_replace(p->fd, "", "x", 1, 0600), -EINVAL);
	assert_int_equal(cube_file_replace(-1, "f", "x", 1, 0600), -EBADF);
	assert_int_equal(mkdirat(p->fd, "dir", 0755), 0);
	assert_int_equal(cube_file_replace(p->fd, "dir", "x", 1, 0600), -EISDIR);
	cube_alloc_fail_at(1);
	assert_int_equal(cube_file_replace(p->fd, "f", "x", 1, 0600), -ENOMEM);
	/* nothing was left behind */
	assert_int_equal(unlinkat(p->fd, "dir", AT_REMOVEDIR), 0);
	assert_int_equal(rmdir(p->path), 0);
	assert_int_equal(mkdir(p->path, 0700), 0);
}

/* A crash leaves the temporary file, perhaps not as a plain one: the next replacement gets rid of it. */
static void test_replace_after_crash(void **state)
{
	struct place *p = *state;
	char temp[64];

	(void)snprintf(temp, sizeof(temp), ".f.new.%d", (int)gettid());
	make_file(p->fd, temp, "half of the new content that was");
	assert_int_equal(cube_file_replace(p->fd, "f", "new", 3, 0600), 0);
	file_is(p->fd, "f", "new");
	assert_int_equal(faccessat(p->fd, temp, F_OK, AT_SYMLINK_NOFOLLOW), -1);
	make_file(p->fd, "victim", "safe");
	assert_int_equal(symlinkat("victim", p->fd, temp), 0);
	assert_int_equal(cube_file_replace(p->fd, "f", "newer", 5, 0600), 0);
	file_is(p->fd, "victim", "safe");
	file_is(p->fd, "f", "newer");
}

static void *replace_often(void *arg)
{
	struct place *p = arg;

	for (int i = 0; i < 50; i++) {
		if (cube_file_replace(p->fd, "f", "the same text by everyone", 25, 0600) < 0)
			return p;
	}
	return NULL;
}

static void test_replace_by_many(void **state)
{
	struct place *p = *state;
	pthread_t threads[4];

	for (size_t i = 0; i < CUBE_COUNT(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, replace_often, p), 0);
	for (size_t i = 0; i < CUBE_COUNT(threads); i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	file_is(p->fd, "f", "the same text by everyone");
}

static void test_mkdir(void **state)
{
	struct place *p = *state;
	struct stat st;
	int fd = -1;

	assert_int_equal(cube_file_mkdir(p->fd, "d", 0700, &fd), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(mkdirat(fd, "inside", 0700), 0);
	(void)close(fd);
	assert_int_equal(cube_file_mkdir(p->fd, "d", 0755, NULL), 0); /* there already; its mode stays */
	assert_int_equal(fstatat(p->fd, "d", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(symlinkat("d", p->fd, "link"), 0);
	fd = -7;
	assert_int_equal(cube_file_mkdir(p->fd, "link", 0700, &fd), -ENOTDIR);
	make_file(p->fd, "f", "");
	assert_int_equal(cube_file_mkdir(p->fd, "f", 0700, &fd), -ENOTDIR);
	assert_int_equal(cube_file_mkdir(p->fd, "none/d", 0700, &fd), -ENOENT);
	assert_int_equal(fd, -7);
}

static void test_mkdir_path(void **state)
{
	struct place *p = *state;
	char path[128];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s//a/b/c//", p->path);
	assert_int_equal(cube_file_mkdir_path(path, 0700), 0);
	assert_int_equal(cube_file_mkdir_path(path, 0700), 0);
	assert_int_equal(fstatat(p->fd, "a/b", &st, 0), 0);
	assert_int_equal(st.st_mode & 0700, 0700);
	assert_int_equal(fstatat(p->fd, "a/b/c", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(symlinkat("a", p->fd, "la"), 0);
	(void)snprintf(path, sizeof(path), "%s/la/b2", p->path); /* parents may be links */
	assert_int_equal(cube_file_mkdir_path(path, 0700), 0);
	assert_int_equal(fstatat(p->fd, "a/b2", &st, 0), 0);
	(void)snprintf(path, sizeof(path), "%s/la", p->path); /* the last may not */
	assert_int_equal(cube_file_mkdir_path(path, 0700), -ENOTDIR);
	make_file(p->fd, "f", "");
	(void)snprintf(path, sizeof(path), "%s/f/x", p->path);
	assert_int_equal(cube_file_mkdir_path(path, 0700), -ENOTDIR);
	assert_int_equal(cube_file_mkdir_path("relative", 0700), -EINVAL);
	assert_int_equal(cube_file_mkdir_path("/", 0700), 0);
	(void)snprintf(path, sizeof(path), "%s/x/y", p->path);
	cube_alloc_fail_at(2);
	assert_int_equal(cube_file_mkdir_path(path, 0700), -ENOMEM);
	cube_alloc_fail_at(0);
}

static void test_write_all_fails(void **state)
{
	cube_auto_fd full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(cube_file_write_all(full, "x", 1), -ENOSPC);
	assert_int_equal(cube_file_write_all(full, "", 0), 0);
	assert_int_equal(cube_file_write_all(-1, "x", 1), -EBADF);
}

/* More than a pipe holds, taken in small pieces by the other side. */
static void *read_slowly(void *arg)
{
	int fd = *(int *)arg;
	char piece[777];
	size_t total = 0;
	ssize_t n;

	while ((n = read(fd, piece, sizeof(piece))) > 0)
		total += (size_t)n;
	return total == 1000000 ? NULL : arg;
}

static void test_write_all_of_much(void **state)
{
	cube_auto_str much = cube_calloc(1, 1000000);
	pthread_t thread;
	void *failed;
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(pthread_create(&thread, NULL, read_slowly, &fds[0]), 0);
	assert_int_equal(cube_file_write_all(fds[1], much, 1000000), 0);
	(void)close(fds[1]);
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	(void)close(fds[0]);
}

static bool same_file(int a, int b)
{
	struct stat sa, sb;

	return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_ino == sb.st_ino && sa.st_dev == sb.st_dev;
}

static int count_open(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void test_descriptors(void **state)
{
	struct place *p = *state;
	int pair[2], got[4], send[3], open_before;
	char data[8];
	unsigned n = 9;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	for (unsigned i = 0; i < 3; i++)
		send[i] = p->fd;
	assert_int_equal(cube_fd_send(pair[0], "ab", 2, send, 3), 2);
	assert_int_equal(cube_fd_recv(pair[1], data, sizeof(data), got, 4, &n), 2);
	assert_memory_equal(data, "ab", 2);
	assert_int_equal(n, 3);
	for (unsigned i = 0; i < n; i++) {
		assert_true(same_file(got[i], p->fd));
		assert_int_equal(fcntl(got[i], F_GETFD), FD_CLOEXEC);
		(void)close(got[i]);
	}
	assert_int_equal(cube_fd_send(pair[0], "c", 1, NULL, 0), 1);
	assert_int_equal(cube_fd_recv(pair[1], data, sizeof(data), got, 4, &n), 1);
	assert_int_equal(n, 0);
	/* more than wanted: none of them is leaked */
	open_before = count_open();
	assert_int_equal(cube_fd_send(pair[0], "d", 1, send, 3), 1);
	n = 9;
	assert_int_equal(cube_fd_recv(pair[1], data, sizeof(data), got, 2, &n), -EMSGSIZE);
	assert_int_equal(n, 9);
	assert_int_equal(count_open(), open_before);
	assert_int_equal(cube_fd_send(pair[0], "e", 1, send, 1), 1);
	assert_int_equal(cube_fd_recv(pair[1], data, sizeof(data), NULL, 0, &n), -EMSGSIZE);
	assert_int_equal(count_open(), open_before);
	assert_int_equal(cube_fd_send(pair[0], "", 0, send, 1), -EINVAL);
	assert_int_equal(cube_fd_send(pair[0], "x", 1, send, CUBE_FDS_MAX + 1), -EINVAL);
	(void)close(pair[0]);
	assert_int_equal(cube_fd_recv(pair[1], data, sizeof(data), got, 4, &n), 0);
	assert_int_equal(cube_fd_send(pair[1], "x", 1, NULL, 0), -EPIPE); /* and no SIGPIPE */
	(void)close(pair[1]);
}

static void test_descriptors_at_most(void **state)
{
	struct place *p = *state;
	static int send[CUBE_FDS_MAX], got[CUBE_FDS_MAX];
	int pair[2];
	unsigned n;
	char c;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	for (unsigned i = 0; i < CUBE_FDS_MAX; i++)
		send[i] = p->fd;
	assert_int_equal(cube_fd_send(pair[0], "x", 1, send, CUBE_FDS_MAX), 1);
	assert_int_equal(cube_fd_recv(pair[1], &c, 1, got, CUBE_FDS_MAX, &n), 1);
	assert_int_equal(n, CUBE_FDS_MAX);
	while (n > 0)
		(void)close(got[--n]);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

#define IN_PLACE(fn) cmocka_unit_test_setup_teardown(fn, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(test_read),
		IN_PLACE(test_read_adds),
		IN_PLACE(test_replace),
		IN_PLACE(test_replace_below_o_path),
		IN_PLACE(test_replace_refused),
		IN_PLACE(test_replace_after_crash),
		IN_PLACE(test_replace_by_many),
		IN_PLACE(test_mkdir),
		IN_PLACE(test_mkdir_path),
		IN_PLACE(test_write_all_fails),
		IN_PLACE(test_write_all_of_much),
		IN_PLACE(test_descriptors),
		IN_PLACE(test_descriptors_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
