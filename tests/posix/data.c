/* SPDX-License-Identifier: Apache-2.0 */
/* read, write, O_APPEND, mmap, copy_file_range, sendfile, fsync. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include "tests/posix/suite.h"

#define BLOCK 4096

static void data_offsets(void)
{
	char buf[16] = "";
	int fd = open("f", O_RDWR | O_CREAT, 0600);

	IS(write(fd, "0123456789", 10), 10);
	IS(lseek(fd, 0, SEEK_CUR), 10);
	IS(pread(fd, buf, 4, 3), 4);
	IS(memcmp(buf, "3456", 4), 0);
	IS(lseek(fd, 0, SEEK_CUR), 10);
	IS(pwrite(fd, "ab", 2, 1), 2);
	IS(lseek(fd, 1, SEEK_SET), 1);
	IS(read(fd, buf, 2), 2);
	IS(memcmp(buf, "ab", 2), 0);
	IS(read(fd, buf, sizeof(buf)), 7);
	IS(read(fd, buf, sizeof(buf)), 0);
	IS(pread(fd, buf, 4, 8), 2);
	IS(pread(fd, buf, 4, 100), 0);
	FAILS(EINVAL, pread(fd, buf, 4, -1));
	FAILS(EINVAL, pwrite(fd, buf, 4, -1));
	IS(pwrite(fd, "", 0, 100), 0);
	IS(suite_stat("f").st_size, 10);
	OK(close(fd));
}

static void data_vectors(void)
{
	char a[3], b[5], first[] = "abc", second[] = "defgh";
	const struct iovec out[2] = {{.iov_base = first, .iov_len = 3}, {.iov_base = second, .iov_len = 5}};
	const struct iovec in[2] = {{.iov_base = a, .iov_len = 3}, {.iov_base = b, .iov_len = 5}};
	int fd = open("f", O_RDWR | O_CREAT, 0600);

	IS(writev(fd, out, 2), 8);
	IS(preadv(fd, in, 2, 0), 8);
	IS(memcmp(a, "abc", 3) == 0 && memcmp(b, "defgh", 5) == 0, true);
	IS(pwritev(fd, out, 2, 4), 8);
	IS(suite_has("f", "abcdabcdefgh"), true);
	OK(close(fd));
}

static void data_large(void)
{
	static char out[3 << 20], in[3 << 20];
	int fd = open("f", O_RDWR | O_CREAT, 0600);

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (char)(i * 31 + i / 4099);
	IS(write(fd, out, sizeof(out)), sizeof(out));
	IS(pread(fd, in, sizeof(in), 0), sizeof(in));
	IS(memcmp(in, out, sizeof(in)), 0);
	IS(pread(fd, in, 100001, 4097), 100001);
	IS(memcmp(in, out + 4097, 100001), 0);
	OK(close(fd));
}

/* ---- O_APPEND ---- */

#define APPENDERS 4
#define APPENDED  500

static int data_appender(void)
{
	char line[32];
	int fd = open("f", O_WRONLY | O_APPEND), bad = 0;

	memset(line, 'a' + getpid() % 26, sizeof(line));
	line[sizeof(line) - 1] = '\n';
	for (int i = 0; i < APPENDED; i++)
		bad += write(fd, line, sizeof(line)) != sizeof(line);
	return bad > 0;
}

static void data_append_together(void)
{
	pid_t children[APPENDERS];
	char line[32];
	int fd, torn = 0;

	(void)suite_file("f", "");
	for (int i = 0; i < APPENDERS; i++)
		children[i] = suite_start(data_appender);
	for (int i = 0; i < APPENDERS; i++)
		IS(suite_end(children[i]), 0);
	IS(suite_stat("f").st_size, APPENDERS * APPENDED * sizeof(line));
	fd = open("f", O_RDONLY);
	while (read(fd, line, sizeof(line)) == sizeof(line)) {
		for (size_t i = 1; i < sizeof(line) - 1; i++)
			torn += line[i] != line[0];
		torn += line[sizeof(line) - 1] != '\n';
	}
	IS(torn, 0);
	OK(close(fd));
}

static void data_append(void)
{
	int fd, other;

	(void)suite_file("f", "one");
	fd = open("f", O_RDWR | O_APPEND);
	other = open("f", O_RDWR);
	IS(write(fd, "two", 3), 3);
	IS(lseek(fd, 0, SEEK_CUR), 6);
	IS(lseek(fd, 0, SEEK_SET), 0);
	IS(write(fd, "three", 5), 5);
	OK(ftruncate(other, 3));
	IS(write(fd, "four", 4), 4);
	IS(suite_has("f", "onefour"), true);
	IS(pwrite(other, "ONE", 3, 0), 3);
	IS(suite_has("f", "ONEfour"), true);
	OK(close(fd) + close(other));
}

/* Linux: pwrite on a file that is opened to append appends. */
static void data_append_at(void)
{
	int fd;

	(void)suite_file("f", "one");
	fd = open("f", O_RDWR | O_APPEND);
	IS(pwrite(fd, "two", 3, 0), 3);
	IS(suite_has("f", "onetwo"), true);
	OK(close(fd));
}

/* ---- mmap ---- */

static void data_map_private(void)
{
	char *m, byte;
	int fd;

	(void)suite_file("f", "text");
	fd = open("f", O_RDONLY);
	m = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	IS(m != MAP_FAILED, true);
	if (m == MAP_FAILED)
		return;
	IS(memcmp(m, "text\0\0", 6), 0);
	m[0] = 'T';
	IS(pread(fd, &byte, 1, 0), 1);
	IS(byte, 't');
	OK(munmap(m, BLOCK));
	OK(close(fd));
}

static void data_map_shared(void)
{
	char buf[5] = "", *m;
	int fd = open("f", O_RDWR | O_CREAT, 0600);

	OK(ftruncate(fd, 3 * BLOCK));
	m = mmap(NULL, 3 * BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	IS(m != MAP_FAILED, true);
	if (m == MAP_FAILED)
		return;
	m[BLOCK] = 'm';
	IS(pread(fd, buf, 1, BLOCK), 1);
	IS(buf[0], 'm');
	IS(pwrite(fd, "w", 1, BLOCK + 1), 1);
	IS(m[BLOCK + 1], 'w');
	OK(msync(m, 3 * BLOCK, MS_SYNC));
	OK(close(fd));
	m[2 * BLOCK] = 'l'; /* the mapping outlives the descriptor */
	OK(munmap(m, 3 * BLOCK));
	fd = open("f", O_RDONLY);
	IS(pread(fd, buf, 1, 2 * BLOCK), 1);
	IS(buf[0], 'l');
	FAILS(EACCES, mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
	OK(close(fd));
}

static void data_map_shared_read(void)
{
	const char *m;
	int fd;

	(void)suite_file("f", "text");
	fd = open("f", O_RDONLY);
	m = mmap(NULL, BLOCK, PROT_READ, MAP_SHARED, fd, 0);
	IS(m != MAP_FAILED, true);
	if (m == MAP_FAILED)
		return;
	IS(memcmp(m, "text", 4), 0);
	(void)suite_file("f", "TEXT");
	IS(memcmp(m, "TEXT", 4), 0);
	OK(close(fd));
}

static int data_beyond_end(void)
{
	int fd = signal(SIGBUS, SIG_DFL) == SIG_ERR ? -1 : open("f", O_RDONLY);
	volatile const char *m = mmap(NULL, 2 * BLOCK, PROT_READ, MAP_PRIVATE, fd, 0);

	return m == MAP_FAILED ? 1 : m[BLOCK];
}

static void data_map_end(void)
{
	(void)suite_file("f", "text");
	IS(suite_child(data_beyond_end), 128 + SIGBUS);
}

/* ---- copies ---- */

static void data_copy_range(void)
{
	loff_t from = 2, to = 0;
	int in, out;

	(void)suite_file("f", "0123456789");
	in = open("f", O_RDONLY);
	out = open("g", O_RDWR | O_CREAT, 0600);
	IS(copy_file_range(in, &from, out, &to, 5, 0), 5);
	IS(from, 7);
	IS(to, 5);
	IS(suite_has("g", "23456"), true);
	IS(copy_file_range(in, &from, out, &to, 100, 0), 3);
	IS(copy_file_range(in, &from, out, &to, 100, 0), 0);
	IS(suite_has("g", "23456789"), true);
	IS(lseek(in, 0, SEEK_CUR), 0);
	IS(copy_file_range(in, NULL, out, NULL, 4, 0), 4);
	IS(lseek(in, 0, SEEK_CUR), 4);
	IS(suite_has("g", "01236789"), true);
	FAILS(EBADF, copy_file_range(out, NULL, in, NULL, 1, 0));
	FAILS(EINVAL, copy_file_range(in, NULL, out, NULL, 1, 1));
	from = 0;
	to = 2;
	FAILS(EINVAL, copy_file_range(out, &from, out, &to, 5, 0)); /* the two overlap */
	to = 20;
	IS(copy_file_range(out, &from, out, &to, 4, 0), 4);
	IS(suite_stat("g").st_size, 24);
	OK(mkdir("d", 0755));
	FAILS(EISDIR, copy_file_range(open("d", O_RDONLY), NULL, out, NULL, 1, 0));
	OK(close(in) + close(out));
}

static void data_sendfile(void)
{
	static char block[100000];
	off_t at = 0;
	int in = open("f", O_RDWR | O_CREAT, 0600), out = open("g", O_RDWR | O_CREAT, 0600), ends[2];

	memset(block, 's', sizeof(block));
	IS(write(in, block, sizeof(block)), sizeof(block));
	IS(sendfile(out, in, &at, sizeof(block)), sizeof(block));
	IS(suite_stat("g").st_size, sizeof(block));
	OK(pipe(ends));
	at = 99990;
	IS(splice(in, &at, ends[1], NULL, 100, 0), 10);
	IS(read(ends[0], block, sizeof(block)), 10);
	IS(write(ends[1], "piped", 5), 5);
	at = 0;
	IS(splice(ends[0], NULL, out, &at, 5, 0), 5);
	IS(pread(out, block, 5, 0), 5);
	IS(memcmp(block, "piped", 5), 0);
	OK(close(in) + close(out) + close(ends[0]) + close(ends[1]));
}

static void data_sync(void)
{
	int fd = open("f", O_RDWR | O_CREAT, 0600), dir = open(".", O_RDONLY);

	IS(write(fd, "x", 1), 1);
	OK(fsync(fd));
	OK(fdatasync(fd));
	OK(syncfs(fd));
	OK(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
	OK(fsync(dir));
	OK(fdatasync(dir));
	FAILS(EBADF, fsync(-1));
	OK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0 ? 0 : -1);
	OK(readahead(fd, 0, 100));
	OK(close(fd) + close(dir));
}

static int data_shared_child_fd;

static int data_shared_child(void)
{
	return write(data_shared_child_fd, "child", 5) == 5 ? 0 : 1;
}

/* A descriptor that a child inherits has one position. */
static void data_shared_position(void)
{
	int fd = open("f", O_RDWR | O_CREAT, 0600), again = dup(fd);

	data_shared_child_fd = fd;
	IS(write(fd, "parent", 6), 6);
	IS(suite_child(data_shared_child), 0);
	IS(write(again, "dup", 3), 3);
	IS(suite_has("f", "parentchilddup"), true);
	OK(close(fd) + close(again));
}

static void data_two_opens(void)
{
	char buf[8];
	int a = open("f", O_RDWR | O_CREAT, 0600), b = open("f", O_RDWR);

	IS(write(a, "abc", 3), 3);
	IS(read(b, buf, sizeof(buf)), 3);
	IS(write(b, "def", 3), 3);
	IS(read(a, buf, sizeof(buf)), 3);
	IS(memcmp(buf, "def", 3), 0);
	OK(ftruncate(b, 1));
	IS(pread(a, buf, sizeof(buf), 0), 1);
	OK(close(a) + close(b));
}

static void data_both_sides(void)
{
	char buf[16];
	int here = open("f", O_RDWR | O_CREAT, 0666), there = open(suite_inner("f"), O_RDWR);

	OK(there);
	IS(write(here, "outside", 7), 7);
	IS(read(there, buf, sizeof(buf)), 7);
	IS(memcmp(buf, "outside", 7), 0);
	IS(pwrite(there, "INSIDE", 6, 3), 6);
	IS(pread(here, buf, sizeof(buf), 0), 9);
	IS(memcmp(buf, "outINSIDE", 9), 0);
	OK(ftruncate(here, 4));
	IS(pread(there, buf, sizeof(buf), 0), 4);
	OK(close(here) + close(there));
}

const struct suite_case suite_data[] = {
	{"data.offsets", data_offsets, 0},
	{"data.vectors", data_vectors, 0},
	{"data.large", data_large, 0},
	{"data.append", data_append, 0},
	{"data.append_at", data_append_at, 0},
	{"data.append_together", data_append_together, 0},
	{"data.map_private", data_map_private, 0},
	{"data.map_shared", data_map_shared, 0},
	{"data.map_shared_read", data_map_shared_read, 0},
	{"data.map_end", data_map_end, 0},
	{"data.copy_range", data_copy_range, 0},
	{"data.sendfile", data_sendfile, 0},
	{"data.sync", data_sync, 0},
	{"data.shared_position", data_shared_position, 0},
	{"data.two_opens", data_two_opens, 0},
	{"data.both_sides", data_both_sides, SUITE_INNER},
	{NULL, NULL, 0},
};
