/* SPDX-License-Identifier: Apache-2.0 */
/* The mount point before anything is mounted. What needs the device is done by root alone, in a mount namespace of
 * the test's own. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "fs/mount.h"

static char dir[64];

static int up(void **state)
{
	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/cubefs-point.XXXXXX");
	return mkdtemp(dir) == NULL || chdir(dir) < 0 ? -1 : 0;
}

static int down(void **state)
{
	(void)state;
	return chdir("/") < 0 || cube_file_remove_tree(AT_FDCWD, dir) < 0 ? -1 : 0;
}

static void make(const char *name)
{
	assert_int_equal(mkdir(name, 0755), 0);
}

static void make_file(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	(void)close(fd);
}

/* The mount point @given becomes @name below the test's directory. */
static void expect(const char *given, bool nonempty, const char *name)
{
	char path[PATH_MAX];
	struct cube_mount m = {0};
	struct cube_err err = {0};

	if (cube_mount_point(given, nonempty, &m, &err) < 0)
		fail_msg("%s: %s", given, err.text);
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_string_equal(m.path, path);
	assert_int_equal(m.id, -1);
	cube_free(m.path);
}

static void expect_refused(const char *given, int code, const char *says)
{
	struct cube_mount m = {0};
	struct cube_err err = {0};

	assert_int_equal(cube_mount_point(given, false, &m, &err), code);
	assert_null(m.path);
	if (strstr(err.text, says) == NULL)
		fail_msg("%s: '%s' does not say '%s'", given, err.text, says);
}

static void made(void **state)
{
	struct stat st;

	(void)state;
	(void)umask(022);
	expect("new", false, "new");
	assert_int_equal(stat("new", &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
	expect("new", false, "new"); /* as it is now */
	expect("slashes///", false, "slashes");
	expect("./new/../dots", false, "dots");
	assert_int_equal(chdir("new"), 0);
	expect(".", false, "new");
	assert_int_equal(chdir(dir), 0);
}

static void missing_parent(void **state)
{
	(void)state;
	expect_refused("no/such", -ENOENT, "no/such: its parent directory");
	assert_int_equal(access("no", F_OK), -1); /* and nothing was made */
	make_file("file");
	expect_refused("file/x", -ENOTDIR, "file/x");
}

static void wrong_things(void **state)
{
	char name[NAME_MAX + 3];

	(void)state;
	make_file("a-file");
	expect_refused("a-file", -ENOTDIR, "a-file is not a directory");
	assert_int_equal(mkfifo("fifo", 0644), 0);
	expect_refused("fifo", -ENOTDIR, "fifo is not a directory");
	expect_refused("", -ENOENT, "");
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	expect_refused(name, -ENAMETOOLONG, "too long");
}

static void not_empty(void **state)
{
	(void)state;
	make("full");
	make_file("full/.hidden");
	expect_refused("full", -ENOTEMPTY, "-o nonempty");
	expect("full", true, "full");
}

/* A link to a directory is where it leads; one to nothing is no place. */
static void links(void **state)
{
	(void)state;
	make("target");
	assert_int_equal(symlink("target", "link"), 0);
	expect("link", false, "target");
	make("parent");
	assert_int_equal(symlink("parent", "up"), 0);
	expect("up/new", false, "parent/new");
	assert_int_equal(symlink("nowhere", "dangling"), 0);
	expect_refused("dangling", -EEXIST, "dangling: cannot make the mount point");
	assert_int_equal(symlink("loop", "loop"), 0);
	expect_refused("loop", -ELOOP, "loop");
}

static void no_rights(void **state)
{
	uid_t me = geteuid();

	(void)state;
	make("closed");
	assert_int_equal(chmod("closed", 0555), 0);
	assert_int_equal(chmod(dir, 0755), 0);
	if (me == 0)
		assert_int_equal(seteuid(65534), 0);
	expect_refused("closed/x", -EACCES, "cannot make the mount point");
	assert_int_equal(seteuid(me), 0);
}

/* ---- what an earlier one left ---- */

/* A mount of ours on @name, whose kernel end is returned; -1: this test cannot have one. */
static int mount_ours(const char *name)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[80];

	(void)snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (fd < 0 || mount("cubefs", name, "fuse.cubefs", 0, options) < 0)
		fail_msg("fuse: %s", strerror(errno)); /* NOLINT(concurrency-mt-unsafe) */
	return fd;
}

static int apart(void **state)
{
	(void)state;
	if (geteuid() != 0)
		return 0;
	return unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? -1 : 0;
}

/* Their daemon is gone: one, or several on top of each other. */
static void dead(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	make("dead");
	(void)close(mount_ours("dead"));
	expect("dead", false, "dead");
	for (int i = 0; i < 3; i++)
		(void)close(mount_ours("dead"));
	expect("dead", false, "dead");
	make_file("dead/free"); /* nothing is mounted there any more */
	assert_int_equal(unlink("dead/free"), 0);
}

/* Its daemon does not answer: as good as dead, and nobody waits for it. */
static void hung(void **state)
{
	int fd;

	(void)state;
	if (geteuid() != 0)
		skip();
	make("hung");
	fd = mount_ours("hung");
	expect("hung", false, "hung");
	(void)close(fd);
	make_file("hung/free");
	assert_int_equal(unlink("hung/free"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(made),
		cmocka_unit_test(missing_parent),
		cmocka_unit_test(wrong_things),
		cmocka_unit_test(not_empty),
		cmocka_unit_test(links),
		cmocka_unit_test(no_rights),
		cmocka_unit_test_setup(dead, apart),
		cmocka_unit_test_setup(hung, apart),
	};

	return cmocka_run_group_tests(tests, up, down);
}
