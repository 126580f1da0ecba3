/* SPDX-License-Identifier: Apache-2.0 */
/* Removal of trees: depth, breadth, modes, links, mounts. */
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"

static bool exists(int dirfd, const char *name)
{
	return faccessat(dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void touch(int dirfd, const char *name)
{
	cube_auto_fd fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
}

static void test_small(void **state)
{
	struct place *p = *state;

	assert_int_equal(cube_file_remove_tree(p->fd, "none"), 0);
	assert_int_equal(cube_file_remove_tree(p->fd, "none/x"), 0);
	touch(p->fd, "f");
	assert_int_equal(cube_file_remove_tree(p->fd, "f"), 0);
	assert_false(exists(p->fd, "f"));
	assert_int_equal(mkdirat(p->fd, "d", 0755), 0);
	assert_int_equal(cube_file_remove_tree(p->fd, "d"), 0);
	assert_false(exists(p->fd, "d"));
	touch(p->fd, "f");
	assert_int_equal(cube_file_remove_tree(p->fd, "f/x"), -ENOTDIR);
}

/* Deeper than the levels that are held open, and than any path is long: PATH_MAX is 4096 bytes. */
static void test_deep(void **state)
{
	struct place *p = *state;
	int at = openat(p->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < 1000; i++) {
		int next;

		assert_int_equal(mkdirat(at, "deep", 0755), 0);
		if (i % 50 == 0)
			touch(at, "f");
		next = openat(at, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		(void)close(at);
		at = next;
	}
	(void)close(at);
	assert_int_equal(cube_file_remove_tree(p->fd, "deep"), 0);
	assert_false(exists(p->fd, "deep"));
}

/* @levels directories of the name @name in each other. */
static void chain(int dirfd, const char *name, int levels)
{
	char path[4096] = "";

	for (int i = 0; i < levels; i++) {
		size_t len = strlen(path);

		(void)snprintf(path + len, sizeof(path) - len, "%s%s", i > 0 ? "/" : "", name);
		assert_int_equal(mkdirat(dirfd, path, 0755), 0);
	}
}

/* Names that the removal uses itself for what it moves up are there already, in whatever order they are
 * found. */
static void test_deep_with_taken_names(void **state)
{
	struct place *p = *state;
	int top;

	assert_int_equal(cube_file_mkdir(p->fd, "top", 0755, &top), 0);
	for (int i = 0; i < 8; i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "chain-%d", i);
		chain(top, name, 40);
		(void)snprintf(name, sizeof(name), ".cubefs-removed-%d", i);
		if (i % 2) {
			touch(top, name);
			continue;
		}
		assert_int_equal(mkdirat(top, name, 0755), 0);
		(void)snprintf(name, sizeof(name), ".cubefs-removed-%d/f", i);
		touch(top, name);
	}
	(void)close(top);
	assert_int_equal(cube_file_remove_tree(p->fd, "top"), 0);
	assert_false(exists(p->fd, "top"));
}

static void test_wide(void **state)
{
	struct place *p = *state;
	char name[32];

	assert_int_equal(mkdirat(p->fd, "wide", 0755), 0);
	for (int i = 0; i < 1500; i++) {
		(void)snprintf(name, sizeof(name), "wide/a-longer-name-%d", i);
		touch(p->fd, name);
	}
	assert_int_equal(cube_file_remove_tree(p->fd, "wide"), 0);
	assert_false(exists(p->fd, "wide"));
}

static void test_links_are_not_followed(void **state)
{
	struct place *p = *state;

	assert_int_equal(mkdirat(p->fd, "safe", 0755), 0);
	touch(p->fd, "safe/kept");
	assert_int_equal(mkdirat(p->fd, "d", 0755), 0);
	assert_int_equal(symlinkat("../safe", p->fd, "d/relative"), 0);
	assert_int_equal(symlinkat(p->path, p->fd, "d/absolute"), 0);
	assert_int_equal(symlinkat("/nowhere", p->fd, "d/dangling"), 0);
	assert_int_equal(mkfifoat(p->fd, "d/fifo", 0600), 0);
	assert_int_equal(cube_file_remove_tree(p->fd, "d"), 0);
	assert_false(exists(p->fd, "d"));
	assert_true(exists(p->fd, "safe/kept"));
	assert_int_equal(symlinkat("safe", p->fd, "link"), 0);
	assert_int_equal(cube_file_remove_tree(p->fd, "link"), 0);
	assert_false(exists(p->fd, "link"));
	assert_true(exists(p->fd, "safe/kept"));
}

/* Runs @fn in a process of its own, which may lose its rights. Its result is the test's. */
static int in_child(int (*fn)(struct place *p), struct place *p)
{
	pid_t pid = fork();
	int status = 0;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fn(p));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* An ordinary user is one already. */
static bool become_ordinary(struct place *p)
{
	return geteuid() != 0 ||
	       (fchown(p->fd, 65534, 65534) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
}

static int remove_own_locked(struct place *p)
{
	if (!become_ordinary(p))
		return 1;
	if (mkdirat(p->fd, "d", 0755) < 0 || mkdirat(p->fd, "d/locked", 0755) < 0 ||
	    mkdirat(p->fd, "d/locked/in", 0755) < 0 || mkdirat(p->fd, "d/read-only", 0755) < 0)
		return 2;
	touch(p->fd, "d/read-only/f");
	if (fchmodat(p->fd, "d/locked", 0, 0) < 0 || fchmodat(p->fd, "d/read-only", 0555, 0) < 0 ||
	    fchmodat(p->fd, "d", 0500, 0) < 0)
		return 3;
	if (cube_file_remove_tree(p->fd, "d") < 0)
		return 4;
	return exists(p->fd, "d") ? 5 : 0;
}

/* An owner who is not root and took his own rights away. */
static void test_modes(void **state)
{
	struct place *p = *state;

	assert_int_equal(in_child(remove_own_locked, p), 0);
}

enum { NO_RIGHTS = 100 };

/* d/f, d/sub/f, a tmpfs on d/mnt with a file in it, a file with another one mounted on it. */
static int remove_round_mounts(struct place *p)
{
	char path[128];
	int r;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return NO_RIGHTS;
	(void)mkdirat(p->fd, "d", 0755);
	(void)mkdirat(p->fd, "d/mnt", 0755);
	(void)mkdirat(p->fd, "d/sub", 0755);
	touch(p->fd, "d/f");
	touch(p->fd, "d/sub/f");
	touch(p->fd, "d/on");
	(void)snprintf(path, sizeof(path), "%s/d/mnt", p->path);
	if (mount("none", path, "tmpfs", 0, NULL) < 0)
		return NO_RIGHTS;
	touch(p->fd, "d/mnt/kept");
	(void)snprintf(path, sizeof(path), "%s/d/on", p->path);
	if (mount("/etc/passwd", path, NULL, MS_BIND, NULL) < 0)
		return NO_RIGHTS;
	r = cube_file_remove_tree(p->fd, "d");
	if (r != -EXDEV)
		return 1;
	if (exists(p->fd, "d/f") || exists(p->fd, "d/sub") || !exists(p->fd, "d/mnt/kept") ||
	    !exists(p->fd, "d/on"))
		return 2;
	if (cube_file_remove_tree(p->fd, "d/mnt") != -EXDEV || !exists(p->fd, "d/mnt/kept"))
		return 3;
	if (umount(path) < 0)
		return 4;
	(void)snprintf(path, sizeof(path), "%s/d/mnt", p->path);
	return umount(path) < 0 || cube_file_remove_tree(p->fd, "d") != 0 || exists(p->fd, "d") ? 5 : 0;
}

/* A mount on the way down to what is deeper than the removal goes: that is moved up and must not be forgotten
 * there. */
static int remove_below_mount(struct place *p)
{
	char path[128];
	int d;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return NO_RIGHTS;
	if (cube_file_mkdir(p->fd, "d", 0755, &d) < 0)
		return 1;
	chain(d, "x", 70);
	if (mkdirat(d, "x/x/mnt", 0755) < 0)
		return 2;
	(void)snprintf(path, sizeof(path), "%s/d/x/x/mnt", p->path);
	if (mount("none", path, "tmpfs", 0, NULL) < 0)
		return NO_RIGHTS;
	if (cube_file_remove_tree(p->fd, "d") != -EXDEV || umount(path) < 0)
		return 3;
	/* all is gone but the way to the mount: from the inside out each one is empty */
	return unlinkat(d, "x/x/mnt", AT_REMOVEDIR) < 0 || unlinkat(d, "x/x", AT_REMOVEDIR) < 0 ||
			       unlinkat(d, "x", AT_REMOVEDIR) < 0 || unlinkat(p->fd, "d", AT_REMOVEDIR) < 0
		       ? 4
		       : 0;
}

static void test_below_mount(void **state)
{
	struct place *p = *state;
	int r = in_child(remove_below_mount, p);

	if (r == NO_RIGHTS && geteuid() != 0)
		skip();
	assert_int_equal(r, 0);
}

static void test_mounts(void **state)
{
	struct place *p = *state;
	int r = in_child(remove_round_mounts, p);

	if (r == NO_RIGHTS && geteuid() != 0)
		skip();
	assert_int_equal(r, 0);
}

/* What cannot be removed is reported, the rest is removed all the same. */
static int remove_foreign(struct place *p)
{
	if (mkdirat(p->fd, "d", 0777) < 0 || mkdirat(p->fd, "d/sub", 0777) < 0 ||
	    mkdirat(p->fd, "d/foreign", 0755) < 0)
		return 1;
	touch(p->fd, "d/foreign/kept");
	touch(p->fd, "d/sub/f");
	if (fchmodat(p->fd, "d", 0777, 0) < 0 || fchmodat(p->fd, "d/sub", 0777, 0) < 0 ||
	    fchmod(p->fd, 0777) < 0 || setgid(65534) < 0 || setuid(65534) < 0)
		return 2;
	if (cube_file_remove_tree(p->fd, "d") != -EACCES)
		return 3;
	return exists(p->fd, "d/sub") || !exists(p->fd, "d/foreign/kept") ? 4 : 0;
}

static void test_goes_on(void **state)
{
	struct place *p = *state;

	if (geteuid() != 0)
		skip();
	assert_int_equal(in_child(remove_foreign, p), 0);
}

static void test_out_of_memory(void **state)
{
	struct place *p = *state;

	assert_int_equal(mkdirat(p->fd, "d", 0755), 0);
	touch(p->fd, "d/f");
	cube_alloc_fail_at(1);
	assert_int_equal(cube_file_remove_tree(p->fd, "d"), -ENOMEM);
	assert_int_equal(cube_file_remove_tree(p->fd, "d"), 0);
}

#define IN_PLACE(fn) cmocka_unit_test_setup_teardown(fn, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(test_small),
		IN_PLACE(test_deep),
		IN_PLACE(test_deep_with_taken_names),
		IN_PLACE(test_wide),
		IN_PLACE(test_links_are_not_followed),
		IN_PLACE(test_modes),
		IN_PLACE(test_mounts),
		IN_PLACE(test_below_mount),
		IN_PLACE(test_goes_on),
		IN_PLACE(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
