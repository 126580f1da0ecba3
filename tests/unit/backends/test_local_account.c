/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts in the files of a template, which nobody vouches for. As root, since homes are given away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/ns/account.h"

#define PASSWD "root:x:0:0::/root:/bin/sh\nold:x:1000:1000::/home/old:/bin/sh\n"
#define GROUP  "root:x:0:\nold:x:1000:\nstaff:x:1001:\n"

static const struct cube_ns_ids ids = {.uid = 300000, .gid = 400000, .count = 65536};

struct box {
	char path[32];
	int root, work;
	struct cube_err err;
};

static void box_write(const struct box *b, const char *name, const char *text)
{
	cube_auto_fd fd = openat(b->root, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(cube_file_write_all(fd, text, strlen(text)), 0);
}

static void box_has(const struct box *b, const char *name, const char *text)
{
	struct cube_buf got = CUBE_BUF(1 << 16);

	assert_int_equal(cube_file_read(b->root, name, &got), 0);
	assert_string_equal(cube_buf_str(&got), text);
	cube_buf_done(&got);
}

static struct stat box_stat(const struct box *b, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(b->root, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st;
}

static void box_open(struct box *b)
{
	if (geteuid() != 0)
		skip();
	*b = (struct box){.path = "/tmp/cubefs-account.XXXXXX"};
	assert_non_null(mkdtemp(b->path));
	b->root = open(b->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(b->root, "etc", 0755), 0);
	assert_int_equal(mkdirat(b->root, "work", 0755), 0);
	b->work = openat(b->root, "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	box_write(b, "etc/passwd", PASSWD);
	box_write(b, "etc/group", GROUP);
}

static void box_close(struct box *b)
{
	close(b->work);
	close(b->root);
	assert_int_equal(cube_file_remove_tree(AT_FDCWD, b->path), 0);
}

static int account(struct box *b, const char *name, uint32_t uid)
{
	return cube_ns_account(b->root, b->work, name, uid, &ids, &b->err);
}

/* The first number that is neither a user's nor a group's. */
static void made(void **state)
{
	struct box b;
	struct stat st;

	(void)state;
	box_open(&b);
	assert_int_equal(account(&b, "dev", 0), 0);
	box_has(&b, "etc/passwd", PASSWD "dev:*:1002:1002::/home/dev:/bin/sh\n");
	box_has(&b, "etc/group", GROUP "dev:*:1002:\n");
	st = box_stat(&b, "home");
	assert_int_equal(st.st_uid, 300000);
	st = box_stat(&b, "home/dev");
	assert_int_equal(st.st_uid, 301002);
	assert_int_equal(st.st_gid, 401002);
	assert_int_equal(st.st_mode & 07777, 0755);
	st = box_stat(&b, "work");
	assert_int_equal(st.st_uid, 301002);
	/* The same again is nothing; another number for it is refused. */
	assert_int_equal(account(&b, "dev", 0), 0);
	assert_int_equal(account(&b, "dev", 1002), 0);
	assert_int_equal(account(&b, "dev", 1003), -EINVAL);
	assert_non_null(strstr(b.err.text, "the number 1002"));
	box_has(&b, "etc/passwd", PASSWD "dev:*:1002:1002::/home/dev:/bin/sh\n");
	/* A number of one's own, also when the last line was never ended. */
	box_write(&b, "etc/passwd", "root:x:0:0::/root:/bin/sh");
	assert_int_equal(account(&b, "own", 1234), 0);
	box_has(&b, "etc/passwd", "root:x:0:0::/root:/bin/sh\nown:*:1234:1234::/home/own:/bin/sh\n");
	box_close(&b);
}

static void refused(void **state)
{
	struct box b;

	(void)state;
	box_open(&b);
	assert_int_equal(account(&b, "dev", 1000), -EINVAL);
	assert_non_null(strstr(b.err.text, "another user of that number"));
	box_has(&b, "etc/passwd", PASSWD);
	assert_int_equal(account(&b, "root", 0), 0);
	box_has(&b, "etc/passwd", PASSWD);
	assert_int_equal(box_stat(&b, "work").st_uid, 0);
	/* There, with a number that the range has not. */
	box_write(&b, "etc/passwd", PASSWD "far:x:70000:70000::/:/bin/sh\n");
	assert_int_equal(account(&b, "far", 0), -EOPNOTSUPP);
	assert_non_null(strstr(b.err.text, "it needs 70000"));
	assert_int_equal(unlinkat(b.root, "etc/group", 0), 0);
	assert_int_equal(account(&b, "dev", 0), -ENOENT);
	assert_non_null(strstr(b.err.text, "/etc/group"));
	box_close(&b);
}

/* Nothing of it leads out of the template, and nothing hangs. */
static void hostile(void **state)
{
	struct box b;

	(void)state;
	box_open(&b);
	box_write(&b, "outside", "untouched");
	assert_int_equal(unlinkat(b.root, "etc/passwd", 0), 0);
	assert_int_equal(symlinkat("../outside", b.root, "etc/passwd"), 0);
	assert_int_equal(account(&b, "dev", 0), -ELOOP);
	assert_int_equal(unlinkat(b.root, "etc/passwd", 0), 0);
	assert_int_equal(mkfifoat(b.root, "etc/passwd", 0666), 0);
	assert_int_equal(account(&b, "dev", 0), -EINVAL);
	assert_int_equal(unlinkat(b.root, "etc/passwd", 0), 0);
	box_write(&b, "etc/passwd", "dev\n:::\ndev:x\nx:x:99999999999:0\n:x:1000:\n");
	/* Where /home is a link, no home is made behind it. */
	assert_int_equal(mkdirat(b.root, "elsewhere", 0755), 0);
	assert_int_equal(symlinkat("elsewhere", b.root, "home"), 0);
	assert_true(account(&b, "dev", 0) < 0);
	assert_int_equal(faccessat(b.root, "elsewhere/dev", F_OK, 0), -1);
	assert_int_equal(box_stat(&b, "elsewhere").st_uid, 0);
	box_has(&b, "outside", "untouched");
	/* A home that is somebody's already stays his. */
	assert_int_equal(unlinkat(b.root, "home", 0), 0);
	assert_int_equal(mkdirat(b.root, "home", 0755), 0);
	assert_int_equal(mkdirat(b.root, "home/two", 0700), 0);
	assert_int_equal(account(&b, "two", 0), 0);
	assert_int_equal(box_stat(&b, "home/two").st_uid, 0);
	assert_int_equal(box_stat(&b, "home/two").st_mode & 07777, 0700);
	box_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(made),
		cmocka_unit_test(refused),
		cmocka_unit_test(hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
