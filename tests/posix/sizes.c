/* SPDX-License-Identifier: Apache-2.0 */
/* truncate, fallocate, holes, large files. */
#include <linux/falloc.h>
#include <stdint.h>
#include <string.h>

#include "tests/posix/suite.h"

#define BLOCK 4096
#define GIB   (INT64_C(1) << 30)

static void sizes_truncate(void)
{
	char buf[16];
	int fd;

	(void)suite_file("f", "some text");
	OK(truncate("f", 4));
	IS(suite_has("f", "some"), true);
	OK(truncate("f", 6));
	IS(suite_stat("f").st_size, 6);
	fd = open("f", O_RDWR);
	IS(read(fd, buf, sizeof(buf)), 6);
	IS(memcmp(buf, "some\0\0", 6), 0);
	OK(ftruncate(fd, 0));
	IS(suite_stat("f").st_size, 0);
	IS(lseek(fd, 0, SEEK_CUR), 6);
	IS(write(fd, "x", 1), 1);
	IS(suite_stat("f").st_size, 7);
	FAILS(EINVAL, ftruncate(fd, -1));
	OK(close(fd));
	FAILS(EINVAL, truncate("f", -1));
	FAILS(ENOENT, truncate("nothing", 0));
	FAILS(ENOTDIR, truncate("f/x", 0));
	OK(mkdir("d", 0755));
	FAILS(EISDIR, truncate("d", 0));
	OK(symlink("f", "link"));
	OK(truncate("link", 1));
	IS(suite_stat("f").st_size, 1);
	OK(symlink("loop", "loop"));
	FAILS(ELOOP, truncate("loop", 0));
	OK(mkfifo("p", 0644));
	FAILS(EINVAL, truncate("p", 0));
}

static void sizes_truncate_user(void)
{
	FAILS(EACCES, truncate("f", 0));
	FAILS(EACCES, truncate("closed/f", 0));
	OK(truncate("public", 0));
}

static void sizes_truncate_rights(void)
{
	(void)umask(0);
	(void)suite_file("f", "text");
	(void)suite_file("public", "text");
	OK(chmod("f", 0644) + chmod("public", 0666) + mkdir("closed", 0700));
	(void)suite_file("closed/f", "");
	suite_as_user(sizes_truncate_user);
	IS(suite_has("f", "text"), true);
}

/* What was cut off does not come back when the file grows again. */
static void sizes_no_old_data(void)
{
	static char block[2 * BLOCK];
	int fd = open("f", O_RDWR | O_CREAT, 0600);

	memset(block, 'x', sizeof(block));
	IS(write(fd, block, sizeof(block)), sizeof(block));
	OK(ftruncate(fd, 100));
	OK(ftruncate(fd, sizeof(block)));
	IS(pread(fd, block, sizeof(block), 0), sizeof(block));
	IS(block[99], 'x');
	for (size_t i = 100; i < sizeof(block); i++) {
		if (block[i] != 0)
			IS(block[i], 0);
	}
	OK(close(fd));
}

static void sizes_sparse(void)
{
	char byte = 1;
	int fd = open("f", O_RDWR | O_CREAT, 0600);

	OK(ftruncate(fd, 8 * GIB));
	IS(suite_stat("f").st_size, 8 * GIB);
	IS(suite_stat("f").st_blocks <= 64, true);
	IS(pwrite(fd, "end", 3, 8 * GIB + 5), 3);
	IS(suite_stat("f").st_size, 8 * GIB + 8);
	IS(pread(fd, &byte, 1, 5 * GIB), 1);
	IS(byte, 0);
	IS(pread(fd, &byte, 1, 8 * GIB + 6), 1);
	IS(byte, 'n');
	IS(lseek(fd, 0, SEEK_END), 8 * GIB + 8);
	IS(suite_stat("f").st_blocks <= 128, true);
	IS(pread(fd, &byte, 1, 8 * GIB + 8), 0);
	IS(pread(fd, &byte, 1, 100 * GIB), 0);
	OK(close(fd));
}

static void sizes_seek(void)
{
	int fd = open("f", O_RDWR | O_CREAT, 0600);

	FAILS(ENXIO, lseek(fd, 0, SEEK_DATA));
	FAILS(ENXIO, lseek(fd, 0, SEEK_HOLE));
	OK(ftruncate(fd, 1 << 20));
	IS(lseek(fd, 0, SEEK_HOLE), 0);
	FAILS(ENXIO, lseek(fd, 0, SEEK_DATA));
	IS(pwrite(fd, "data", 4, 1 << 19), 4);
	IS(lseek(fd, 0, SEEK_DATA), 1 << 19);
	IS(lseek(fd, 1 << 19, SEEK_DATA), 1 << 19);
	IS(lseek(fd, (1 << 19) + 2, SEEK_DATA), (1 << 19) + 2);
	IS(lseek(fd, 1 << 19, SEEK_HOLE), (1 << 19) + BLOCK);
	IS(lseek(fd, 100, SEEK_HOLE), 100);
	FAILS(ENXIO, lseek(fd, (1 << 19) + BLOCK, SEEK_DATA));
	FAILS(ENXIO, lseek(fd, 1 << 20, SEEK_HOLE));
	FAILS(EINVAL, lseek(fd, -1, SEEK_SET));
	FAILS(EINVAL, lseek(fd, 0, 99));
	IS(lseek(fd, 10, SEEK_SET), 10);
	FAILS(EINVAL, lseek(fd, -11, SEEK_CUR));
	IS(lseek(fd, 5, SEEK_CUR), 15);
	IS(lseek(fd, -1, SEEK_END), (1 << 20) - 1);
	OK(close(fd));
}

static void sizes_allocate(void)
{
	int fd = open("f", O_RDWR | O_CREAT, 0600);

	OK(fallocate(fd, 0, 0, 8 * BLOCK));
	IS(suite_stat("f").st_size, 8 * BLOCK);
	IS(suite_stat("f").st_blocks >= 8 * BLOCK / 512, true);
	OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 8 * BLOCK, 8 * BLOCK));
	IS(suite_stat("f").st_size, 8 * BLOCK);
	IS(suite_stat("f").st_blocks >= 16 * BLOCK / 512, true);
	OK(posix_fallocate(fd, 0, 20 * BLOCK) == 0 ? 0 : -1);
	IS(suite_stat("f").st_size, 20 * BLOCK);
	FAILS(EINVAL, fallocate(fd, 0, 0, 0));
	FAILS(EINVAL, fallocate(fd, 0, -1, 1));
	FAILS(EINVAL, fallocate(fd, 0, 0, -1));
	FAILS(EFBIG, fallocate(fd, 0, INT64_MAX - 1, 10));
	FAILS(EOPNOTSUPP, fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, BLOCK)); /* only with KEEP_SIZE */
	FAILS(EOPNOTSUPP, fallocate(fd, 0x8000, 0, BLOCK));
	OK(close(fd));
}

static void sizes_punch(void)
{
	static char block[3 * BLOCK];
	int fd = open("f", O_RDWR | O_CREAT, 0600);

	memset(block, 'x', sizeof(block));
	IS(write(fd, block, sizeof(block)), sizeof(block));
	OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, BLOCK, BLOCK));
	IS(pread(fd, block, sizeof(block), 0), sizeof(block));
	IS(block[BLOCK - 1] == 'x' && block[BLOCK] == 0 && block[2 * BLOCK - 1] == 0 &&
		   block[2 * BLOCK] == 'x',
	   true);
	IS(suite_stat("f").st_size, 3 * BLOCK);
	IS(lseek(fd, 0, SEEK_HOLE), BLOCK);
	OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 10, 20));
	IS(pread(fd, block, 40, 0), 40);
	IS(block[9] == 'x' && block[10] == 0 && block[29] == 0 && block[30] == 'x', true);
	OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2 * BLOCK, 10 * BLOCK));
	IS(suite_stat("f").st_size, 3 * BLOCK);
	OK(close(fd));
}

static void sizes_zero_range(void)
{
	static char block[2 * BLOCK];
	int fd = open("f", O_RDWR | O_CREAT, 0600);

	memset(block, 'x', sizeof(block));
	IS(write(fd, block, sizeof(block)), sizeof(block));
	OK(fallocate(fd, FALLOC_FL_ZERO_RANGE, 100, BLOCK));
	IS(pread(fd, block, sizeof(block), 0), sizeof(block));
	IS(block[99] == 'x' && block[100] == 0 && block[BLOCK + 99] == 0 && block[BLOCK + 100] == 'x', true);
	OK(fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 2 * BLOCK, BLOCK));
	IS(suite_stat("f").st_size, 2 * BLOCK);
	OK(fallocate(fd, FALLOC_FL_ZERO_RANGE, 2 * BLOCK, BLOCK));
	IS(suite_stat("f").st_size, 3 * BLOCK);
	OK(close(fd));
}

/* Modes that move data, which ext4 has and overlayfs passes on. */
static void sizes_collapse(void)
{
	static char block[3 * BLOCK];
	int fd = open("f", O_RDWR | O_CREAT, 0600);

	memset(block, 'a', BLOCK);
	memset(block + BLOCK, 'b', BLOCK);
	memset(block + 2 * BLOCK, 'c', BLOCK);
	IS(write(fd, block, sizeof(block)), sizeof(block));
	OK(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, BLOCK, BLOCK));
	IS(suite_stat("f").st_size, 2 * BLOCK);
	IS(pread(fd, block, BLOCK, BLOCK), BLOCK);
	IS(block[0], 'c');
	OK(fallocate(fd, FALLOC_FL_INSERT_RANGE, BLOCK, BLOCK));
	IS(suite_stat("f").st_size, 3 * BLOCK);
	IS(pread(fd, block, BLOCK, BLOCK), BLOCK);
	IS(block[0], 0);
	OK(close(fd));
}

static void sizes_blocks(void)
{
	static char block[64 * 1024];
	struct stat st;
	int fd = open("f", O_RDWR | O_CREAT, 0600);

	memset(block, 'x', sizeof(block));
	IS(write(fd, block, sizeof(block)), sizeof(block));
	OK(fsync(fd));
	OK(fstat(fd, &st));
	IS(st.st_blocks * 512 >= (long long)sizeof(block), true);
	IS(st.st_blocks * 512 < 2 * (long long)sizeof(block), true);
	IS(st.st_blksize, BLOCK);
	OK(ftruncate(fd, 0));
	IS(suite_stat("f").st_blocks < 64, true);
	OK(close(fd));
}

const struct suite_case suite_sizes[] = {
	{"sizes.truncate", sizes_truncate, 0},
	{"sizes.truncate_rights", sizes_truncate_rights, SUITE_ROOT},
	{"sizes.no_old_data", sizes_no_old_data, 0},
	{"sizes.sparse", sizes_sparse, 0},
	{"sizes.seek", sizes_seek, 0},
	{"sizes.allocate", sizes_allocate, 0},
	{"sizes.punch", sizes_punch, 0},
	{"sizes.zero_range", sizes_zero_range, 0},
	{"sizes.collapse", sizes_collapse, 0},
	{"sizes.blocks", sizes_blocks, 0},
	{NULL, NULL, 0},
};
