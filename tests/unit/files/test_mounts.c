/* SPDX-License-Identifier: Apache-2.0 */
/* What has a descriptor of its own in the tree, what is mounted inside, and the borders between them. */
#include "tests/unit/files/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/macros.h"

/* /workspace and, read only, /vol/data. */
static void mounted_stage(struct stage *s)
{
	stage_prepare(s, STAGE_PLAIN);
	stage_mkdir(s, "workspace");
	stage_write(s, "workspace/hidden", "");
	stage_mkdir(s, "vol");
	stage_mkdir(s, "vol/data");
	stage_mount(s, "/workspace", "ws", false);
	stage_mount(s, "/vol/data", "data", true);
	assert_int_equal(mkdirat(s->top_fd, "ws/dir", 0755), 0);
	assert_int_equal(mknodat(s->top_fd, "data/f", S_IFREG | 0644, 0), 0);
	assert_int_equal(mkdirat(s->top_fd, "data/sub", 0755), 0);
	stage_attach(s);
}

static void test_crossing(void **state)
{
	struct cube_files_entry e, up, listed;
	struct stage s;
	struct stat st;
	char buf[64];
	uint64_t ws;

	(void)state;
	mounted_stage(&s);
	assert_string_equal(stage_list(&s, "workspace", buf, sizeof(buf)), "dir ");
	assert_string_equal(stage_list(&s, "vol/data", buf, sizeof(buf)), "f sub ");
	assert_int_equal(stage_lookup(&s, "workspace", &e), 0);
	ws = e.id;
	assert_int_equal(stage_lookup(&s, "workspace/..", &up), 0);
	assert_int_equal(up.id, s.id);
	assert_int_equal(fstatat(s.top_fd, "ws", &st, 0), 0);
	assert_int_equal(e.st.st_mtim.tv_nsec, st.st_mtim.tv_nsec);
	assert_int_equal(cube_files_mkdir(s.space, &stage_cred, ws, "new", 0755, &listed), 0);
	assert_int_equal(fstatat(s.top_fd, "ws/new", &st, 0), 0);
	assert_int_equal(stage_node(&s, "workspace"), ws);
	stage_close(&s);
}

/* The listing of the directory above has the number of what is mounted. */
static int find_workspace(void *ctx, const char *name, const struct cube_files_entry *e, off_t next)
{
	(void)next;
	if (strcmp(name, "workspace") == 0)
		*(uint64_t *)ctx = e->st.st_ino;
	return 0;
}

static void test_number_in_listing(void **state)
{
	struct cube_files_handle *h;
	struct cube_files_entry e;
	struct stage s;
	uint64_t ino = 0;

	(void)state;
	mounted_stage(&s);
	assert_int_equal(stage_lookup(&s, "workspace", &e), 0);
	assert_int_equal(cube_files_opendir(s.space, s.id, &h), 0);
	assert_int_equal(cube_files_readdir(s.space, h, 0, false, find_workspace, &ino), 0);
	cube_files_release(h);
	assert_int_equal(ino, e.st.st_ino);
	stage_close(&s);
}

static void test_borders(void **state)
{
	struct cube_files_entry e;
	struct stage s;
	uint64_t ws;

	(void)state;
	mounted_stage(&s);
	stage_write(&s, "f", "");
	ws = stage_node(&s, "workspace");
	assert_int_equal(cube_files_rename(s.space, s.id, "f", ws, "f", 0), -EXDEV);
	assert_int_equal(cube_files_link(s.space, stage_node(&s, "f"), ws, "f", &e), -EXDEV);
	assert_int_equal(cube_files_rmdir(s.space, s.id, "workspace"), -EBUSY);
	assert_int_equal(cube_files_rename(s.space, s.id, "workspace", s.id, "other", 0), -EBUSY);
	assert_int_equal(cube_files_rename(s.space, s.id, "f", s.id, "workspace", 0), -EBUSY);
	assert_int_equal(cube_files_rename(s.space, s.id, "vol", s.id, "other", 0),
			 -EBUSY); /* one is below it */
	assert_int_equal(cube_files_rmdir(s.space, s.id, "vol"), -EBUSY);
	assert_int_equal(cube_files_mkdir(s.space, &stage_cred, s.id, "workspace", 0755, &e), -EEXIST);
	/* the mount is there even when the directory below it is not */
	assert_int_equal(unlinkat(s.fd, "workspace/hidden", 0), 0);
	assert_int_equal(unlinkat(s.fd, "workspace", AT_REMOVEDIR), 0);
	assert_int_equal(stage_lookup(&s, "workspace/dir", &e), 0);
	assert_int_equal(cube_files_mkdir(s.space, &stage_cred, s.id, "workspace", 0755, &e), -EEXIST);
	stage_close(&s);
}

static void test_read_only(void **state)
{
	struct cube_files_handle *h;
	struct cube_files_entry e;
	struct stat st = {.st_mode = 0777};
	struct stage s;
	uint64_t data, f;

	(void)state;
	mounted_stage(&s);
	data = stage_node(&s, "vol/data");
	f = stage_node(&s, "vol/data/f");
	assert_int_equal(cube_files_mkdir(s.space, &stage_cred, data, "x", 0755, &e), -EROFS);
	assert_int_equal(cube_files_create(s.space, &stage_cred, data, "x", O_RDWR, 0644, &e, &h), -EROFS);
	assert_int_equal(cube_files_open(s.space, f, O_RDWR, &h), -EROFS);
	assert_int_equal(cube_files_open(s.space, f, O_RDONLY | O_TRUNC, &h), -EROFS);
	assert_int_equal(cube_files_unlink(s.space, data, "f"), -EROFS);
	assert_int_equal(cube_files_rmdir(s.space, data, "sub"), -EROFS);
	assert_int_equal(cube_files_rename(s.space, data, "f", data, "g", 0), -EROFS);
	assert_int_equal(cube_files_link(s.space, f, data, "g", &e), -EROFS);
	assert_int_equal(cube_files_setattr(s.space, f, NULL, &st, CUBE_SET_MODE, &st), -EROFS);
	assert_int_equal(cube_files_setxattr(s.space, f, "user.x", "1", 1, 0), -EROFS);
	assert_int_equal(cube_files_removexattr(s.space, f, "user.x"), -EROFS);
	assert_int_equal(cube_files_access(s.space, &stage_cred, f, W_OK), -EROFS);
	assert_int_equal(cube_files_access(s.space, &stage_cred, f, R_OK), 0);
	assert_int_equal(cube_files_open(s.space, f, O_RDONLY, &h), 0);
	cube_files_release(h);
	stage_close(&s);
}

/* Links across mounts: the depth is that of the caller's path, and a walk crosses as inside. */
static void test_links(void **state)
{
	struct stage s;
	char buf[256];

	(void)state;
	mounted_stage(&s);
	assert_int_equal(symlinkat("/etc/x", s.top_fd, "ws/dir/abs"), 0);
	assert_int_equal(symlinkat("../../../..", s.top_fd, "ws/dir/up"), 0);
	assert_int_equal(symlinkat("/vol/data/sub/../f", s.top_fd, "ws/to-f"), 0);
	stage_symlink(&s, "workspace/dir/../../vol", "to-vol");
	assert_string_equal(stage_readlink(&s, "workspace/dir/abs", buf, sizeof(buf)), "../../etc/x");
	assert_string_equal(stage_readlink(&s, "workspace/dir/up", buf, sizeof(buf)), "../..");
	assert_string_equal(stage_readlink(&s, "workspace/to-f", buf, sizeof(buf)), "../vol/data/f");
	assert_string_equal(stage_readlink(&s, "to-vol", buf, sizeof(buf)), "vol");
	stage_close(&s);
}

static void mount_inside(const struct stage *s, const char *type, const char *path)
{
	char at[128];

	(void)snprintf(at, sizeof(at), "%s/root/%s", s->top, path);
	assert_int_equal(mount("inside", at, type, 0, NULL), 0);
}

static void void_stage(struct stage *s)
{
	char from[128], to[128];

	stage_open(s);
	stage_mkdir(s, "proc");
	stage_mkdir(s, "mnt");
	stage_write(s, "file", "");
	stage_write(s, "secret", "secret");
	mount_inside(s, "proc", "proc");
	mount_inside(s, "tmpfs", "mnt");
	stage_write(s, "mnt/f", "");
	(void)snprintf(from, sizeof(from), "%s/root/secret", s->top);
	(void)snprintf(to, sizeof(to), "%s/root/file", s->top);
	assert_int_equal(mount(from, to, NULL, MS_BIND, NULL), 0);
}

static void test_mounted_inside(void **state)
{
	struct cube_files_handle *h;
	struct cube_files_entry e;
	struct stage s;
	uint64_t proc, file;
	char buf[64], c;

	(void)state;
	stage_need_root();
	void_stage(&s);
	assert_int_equal(stage_lookup(&s, "proc", &e), 0);
	proc = e.id;
	assert_int_equal(e.st.st_mode, S_IFDIR | 0555);
	assert_int_equal(stage_node(&s, "proc"), proc);
	assert_string_equal(stage_list(&s, "proc", buf, sizeof(buf)), "");
	assert_string_equal(stage_list(&s, "mnt", buf, sizeof(buf)), "");
	assert_int_equal(stage_lookup(&s, "proc/self", &e), -ENOENT);
	assert_int_equal(stage_lookup(&s, "proc/..", &e), 0);
	assert_int_equal(e.id, s.id);
	assert_int_equal(cube_files_mkdir(s.space, &stage_cred, proc, "x", 0755, &e), -EROFS);
	assert_int_equal(cube_files_create(s.space, &stage_cred, proc, "x", O_RDWR, 0644, &e, &h), -EROFS);
	assert_int_equal(cube_files_setattr(s.space, proc, NULL, &e.st, CUBE_SET_MODE, &e.st), -EROFS);
	assert_int_equal(cube_files_rmdir(s.space, s.id, "proc"), -EBUSY);
	assert_int_equal(cube_files_rename(s.space, s.id, "mnt", s.id, "x", 0), -EBUSY);
	assert_int_equal(cube_files_rename(s.space, s.id, "secret", s.id, "file", 0), -EBUSY);
	assert_int_equal(cube_files_unlink(s.space, s.id, "file"), -EBUSY);
	assert_int_equal(cube_files_access(s.space, &stage_cred, proc, W_OK), -EROFS);
	assert_int_equal(cube_files_listxattr(s.space, proc, NULL, 0), 0);
	assert_int_equal(cube_files_getxattr(s.space, proc, "user.x", NULL, 0), -ENODATA);
	assert_int_equal(cube_files_statfs(s.space, proc, &(struct statvfs){.f_bsize = 0}), 0);
	/* a file with a mount on it is an empty one */
	assert_int_equal(stage_lookup(&s, "file", &e), 0);
	assert_int_equal(e.st.st_mode, S_IFREG | 0444);
	assert_int_equal(e.st.st_size, 0);
	file = e.id;
	assert_int_equal(cube_files_open(s.space, file, O_RDWR, &h), -EROFS);
	assert_int_equal(cube_files_open(s.space, file, O_RDONLY, &h), 0);
	assert_int_equal(cube_files_read(h, &c, 1, 0), 0);
	assert_int_equal(cube_files_getattr(s.space, file, h, &e.st), 0);
	assert_int_equal(e.st.st_mode, S_IFREG | 0444);
	cube_files_release(h);
	stage_close(&s);
}

static int check_number(void *ctx, const char *name, const struct cube_files_entry *e, off_t next)
{
	struct cube_files_entry seen;
	struct stage *s = ctx;

	(void)next;
	assert_int_equal(cube_files_lookup(s->space, s->id, name, &seen), 0);
	assert_int_equal(seen.st.st_ino, e->st.st_ino);
	assert_int_equal(seen.st.st_mode & S_IFMT, e->st.st_mode & S_IFMT);
	return 0;
}

static void test_mounted_inside_listing(void **state)
{
	struct cube_files_handle *h;
	struct cube_files_entry e, dot;
	struct stage s;
	uint64_t ino = 0;

	(void)state;
	stage_need_root();
	void_stage(&s);
	(void)unlinkat(s.fd, "secret", 0);
	{
		char at[128];

		(void)snprintf(at, sizeof(at), "%s/root/file", s.top);
		assert_int_equal(umount2(at, MNT_DETACH), 0);
	}
	assert_int_equal(cube_files_opendir(s.space, s.id, &h), 0);
	assert_int_equal(cube_files_readdir(s.space, h, 0, false, check_number, &s), 0);
	cube_files_release(h);
	/* the empty directory's own */
	assert_int_equal(stage_lookup(&s, "proc", &e), 0);
	assert_int_equal(cube_files_opendir(s.space, e.id, &h), 0);
	assert_int_equal(cube_files_fd(h), -1);
	assert_int_equal(cube_files_readdir(s.space, h, 0, true, find_workspace, &ino), 0);
	assert_int_equal(cube_files_readdir(s.space, h, 2, true, check_number, &s), 0); /* behind its end */
	assert_int_equal(cube_files_fsyncdir(h, false), 0);
	assert_int_equal(cube_files_getattr(s.space, e.id, h, &dot.st), 0);
	assert_int_equal(dot.st.st_ino, e.st.st_ino);
	cube_files_release(h);
	stage_close(&s);
}

/* It appears and goes while somebody stands below. */
static void test_mounted_over(void **state)
{
	struct cube_files_entry e;
	struct stage s;
	uint64_t f;
	char at[128];
	struct stat st;

	(void)state;
	stage_need_root();
	stage_open(&s);
	stage_mkdir(&s, "d");
	stage_mkdir(&s, "d/sub");
	stage_write(&s, "d/sub/f", "");
	f = stage_node(&s, "d/sub/f");
	mount_inside(&s, "tmpfs", "d/sub");
	assert_int_equal(stage_lookup(&s, "d/sub/f", &e), -ENOENT);
	(void)snprintf(at, sizeof(at), "%s/root/d/sub", s.top);
	assert_int_equal(umount2(at, 0), 0);
	assert_int_equal(cube_files_getattr(s.space, f, NULL, &st), 0);
	assert_int_equal(stage_node(&s, "d/sub/f"), f);
	stage_close(&s);
}

/* Mounts of a namespace that is not ours, reached as those of a sandbox are: through /proc/PID/root. The
 * kernel would let us remove what they are on, and unmount them. */
static pid_t other_namespace(const struct stage *s, int hold[2])
{
	int ready[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char at[128];

		(void)close(hold[1]);
		(void)snprintf(at, sizeof(at), "%s/root/trap", s->top);
		if (unshare(CLONE_NEWNS) < 0 || mount("inside", at, "tmpfs", 0, NULL) < 0)
			_exit(1);
		(void)!write(ready[1], "r", 1);
		(void)!read(hold[0], &c, 1);
		_exit(0);
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	(void)close(ready[0]);
	return pid;
}

static void test_mounted_elsewhere(void **state)
{
	struct cube_files_entry e;
	struct stage s;
	char path[128];
	int hold[2], status;
	pid_t pid;

	(void)state;
	stage_need_root();
	stage_prepare(&s, STAGE_PLAIN);
	stage_mkdir(&s, "trap");
	pid = other_namespace(&s, hold);
	(void)close(s.fd);
	(void)snprintf(path, sizeof(path), "/proc/%d/root%s/root", (int)pid, s.top);
	s.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(s.fd >= 0);
	stage_attach(&s);
	assert_int_equal(stage_lookup(&s, "trap", &e), 0);
	assert_int_equal(e.st.st_mode, S_IFDIR | 0555);
	assert_int_equal(cube_files_rmdir(s.space, s.id, "trap"), -EBUSY);
	assert_int_equal(cube_files_rename(s.space, s.id, "trap", s.id, "x", 0), -EBUSY);
	(void)close(hold[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	(void)close(hold[0]);
	stage_close(&s);
}

/* The same file, mounted on itself: by its node it is not reached either. */
static void test_mounted_on_itself(void **state)
{
	struct cube_files_handle *h;
	struct stage s;
	char at[128];
	struct stat st;
	uint64_t f;

	(void)state;
	stage_need_root();
	stage_open(&s);
	stage_write(&s, "f", "");
	f = stage_node(&s, "f");
	(void)snprintf(at, sizeof(at), "%s/root/f", s.top);
	assert_int_equal(mount(at, at, NULL, MS_BIND, NULL), 0);
	assert_int_equal(cube_files_open(s.space, f, O_RDONLY, &h), -ESTALE);
	assert_int_equal(cube_files_getattr(s.space, f, NULL, &st), -ESTALE);
	stage_close(&s);
}

/* A file system of a hostile process that never answers: nothing of ours waits for it. */
static void test_mounted_hanging(void **state)
{
	int dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	struct cube_files_handle *h;
	struct cube_files_entry e;
	char at[128], data[128];
	struct stage s;

	(void)state;
	stage_need_root();
	if (dev < 0)
		skip();
	stage_open(&s);
	stage_mkdir(&s, "trap");
	(void)snprintf(at, sizeof(at), "%s/root/trap", s.top);
	(void)snprintf(data, sizeof(data), "fd=%d,rootmode=40000,user_id=0,group_id=0", dev);
	assert_int_equal(mount("trap", at, "fuse", 0, data), 0);
	(void)alarm(20); /* a hang ends the test */
	assert_int_equal(stage_lookup(&s, "trap", &e), 0);
	assert_int_equal(e.st.st_mode, S_IFDIR | 0555);
	assert_int_equal(stage_lookup(&s, "trap/x", &e), -ENOENT);
	assert_int_equal(cube_files_opendir(s.space, s.id, &h), 0);
	assert_int_equal(cube_files_readdir(s.space, h, 0, false, check_number, &s), 0);
	cube_files_release(h);
	assert_int_equal(cube_files_rmdir(s.space, s.id, "trap"), -EBUSY);
	assert_int_equal(cube_files_mkdir(s.space, &stage_cred, s.id, "trap", 0755, &e), -EEXIST);
	assert_int_equal(umount2(at, MNT_DETACH), 0);
	(void)alarm(0);
	(void)close(dev);
	stage_close(&s);
}

static void test_bad_roots(void **state)
{
	static const char *const paths[] = {"workspace", "/a/../b", "/./a", "/"};
	struct cube_files *f;
	struct stage s;

	(void)state;
	stage_open(&s);
	for (size_t i = 0; i < CUBE_COUNT(paths); i++) {
		struct cube_root root = {.fd = s.fd, .n_mounts = 1, .mounts = {{.fd = s.top_fd}}};

		(void)snprintf(root.mounts[0].path, sizeof(root.mounts[0].path), "%s", paths[i]);
		assert_int_equal(cube_files_attach(s.space, &root, 1, NULL, &f), -EINVAL);
		assert_int_equal(root.fd, s.fd); /* still the caller's, and open */
		assert_true(fcntl(s.fd, F_GETFD) >= 0);
		assert_true(fcntl(s.top_fd, F_GETFD) >= 0);
	}
	assert_int_equal(cube_files_attach(s.space, &(struct cube_root){.fd = -1}, 1, NULL, &f), -EBADF);
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crossing),
		cmocka_unit_test(test_number_in_listing),
		cmocka_unit_test(test_borders),
		cmocka_unit_test(test_read_only),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_mounted_inside),
		cmocka_unit_test(test_mounted_inside_listing),
		cmocka_unit_test(test_mounted_over),
		cmocka_unit_test(test_mounted_elsewhere),
		cmocka_unit_test(test_mounted_on_itself),
		cmocka_unit_test(test_mounted_hanging),
		cmocka_unit_test(test_bad_roots),
	};

	stage_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
