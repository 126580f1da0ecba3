/* SPDX-License-Identifier: Apache-2.0 */
/* Scarcity: descriptors, memory, names remembered of a file; and file systems that are not of this machine.
 */
#include "tests/unit/files/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/cancel.h"
#include "backends/base/macros.h"

static void test_many_names(void **state)
{
	enum { NAMES = 40 };
	struct stage s;
	struct stat st;
	char name[16];
	uint64_t f;

	(void)state;
	stage_open(&s);
	stage_write(&s, "f0", "");
	for (int i = 1; i < NAMES; i++) {
		(void)snprintf(name, sizeof(name), "f%d", i);
		assert_int_equal(linkat(s.fd, "f0", s.fd, name, 0), 0);
	}
	f = stage_node(&s, "f0");
	for (int i = 1; i < NAMES; i++) {
		(void)snprintf(name, sizeof(name), "f%d", i);
		assert_int_equal(stage_node(&s, name), f);
		if (i < NAMES - 1)
			continue;
		assert_int_equal(cube_files_getattr(s.space, f, NULL, &st), 0);
		assert_int_equal(st.st_nlink, NAMES);
	}
	for (int i = 1; i < NAMES; i++) {
		(void)snprintf(name, sizeof(name), "f%d", i);
		assert_int_equal(unlinkat(s.fd, name, 0), 0);
	}
	/* not all of them are remembered; whoever looks one up has the node again */
	assert_int_equal(cube_files_getattr(s.space, f, NULL, &st), -ESTALE);
	assert_int_equal(stage_node(&s, "f0"), f);
	assert_int_equal(cube_files_getattr(s.space, f, NULL, &st), 0);
	stage_close(&s);
}

/* With few descriptors few directories stay open; when none is left, those are closed. */
static void test_few_descriptors(void **state)
{
	enum { DIRS = 200, HOGS = 200 };
	struct rlimit old, few;
	struct cube_files_handle *h;
	struct stage s;
	int hogs[HOGS], n = 0;
	unsigned before;
	char path[32];

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = (struct rlimit){.rlim_cur = 128, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	stage_open(&s);
	before = stage_open_fds();
	for (int i = 0; i < DIRS; i++) {
		(void)snprintf(path, sizeof(path), "d%d", i);
		stage_mkdir(&s, path);
		(void)snprintf(path, sizeof(path), "d%d/f", i);
		stage_write(&s, path, path);
		(void)stage_node(&s, path);
	}
	assert_true(stage_open_fds() - before <= 32);
	while (n < HOGS && (hogs[n] = dup(0)) >= 0)
		n++;
	assert_true(n < HOGS);
	for (int i = 0; i < DIRS; i++) {
		(void)snprintf(path, sizeof(path), "d%d/f", i);
		assert_int_equal(cube_files_open(s.space, stage_node(&s, path), O_RDONLY, &h), 0);
		cube_files_release(h);
	}
	while (n > 0)
		(void)close(hogs[--n]);
	stage_close(&s);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
}

/* ---- memory ---- */

static int add(void *ctx, const char *name, const struct cube_files_entry *e, off_t next)
{
	const struct stage *s = ctx;

	(void)name;
	(void)next;
	if (e->id != 0)
		cube_files_forget(s->space, e->id, 1);
	return 0;
}

static int list(struct stage *s, uint64_t dir)
{
	struct cube_files_handle *h;
	int r = cube_files_opendir(s->space, dir, &h);

	if (r < 0)
		return r;
	r = cube_files_readdir(s->space, h, 0, true, add, s);
	cube_files_release(h);
	return r;
}

static int lock(struct cube_files_handle *h, const struct stage *s)
{
	const struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct cube_cancel *cancel = cube_cancel_new();
	int r = cancel == NULL ? -ENOMEM : cube_files_setlk(h, 1, &l, true, cancel);

	(void)s;
	cube_cancel_unref(cancel);
	return r;
}

/* A bit of everything that takes memory; the first failure. */
static int scenario(struct stage *s)
{
	struct cube_files_handle *h = NULL;
	struct cube_files_entry d, f, e;
	char buf[256];
	int r = cube_files_mkdir(s->space, &stage_cred, s->id, "d", 0755, &d);

	if (r < 0)
		return r;
	r = cube_files_create(s->space, &stage_cred, d.id, "f", O_RDWR, 0644, &f, &h);
	if (r == 0) {
		r = lock(h, s);
		cube_files_release(h);
		if (r == 0)
			r = cube_files_rename(s->space, d.id, "f", s->id, "f", 0);
		if (r == 0)
			r = cube_files_link(s->space, f.id, d.id, "g", &e);
		if (r == 0)
			cube_files_forget(s->space, e.id, 1);
		cube_files_forget(s->space, f.id, 1);
	}
	if (r == 0)
		r = cube_files_symlink(s->space, &stage_cred, s->id, "l", "d/../d/g", &e);
	if (r == 0) {
		r = (int)cube_files_readlink(s->space, e.id, buf, sizeof(buf));
		cube_files_forget(s->space, e.id, 1);
	}
	if (r >= 0)
		r = list(s, d.id);
	if (r == 0)
		r = (int)cube_files_listxattr(s->space, d.id, buf, sizeof(buf));
	cube_files_forget(s->space, d.id, 1);
	return r < 0 ? r : 0;
}

static void clean(const struct stage *s)
{
	static const char *const names[] = {"d/f", "d/g", "f", "l"};

	for (size_t i = 0; i < CUBE_COUNT(names); i++)
		(void)unlinkat(s->fd, names[i], 0);
	(void)unlinkat(s->fd, "d", AT_REMOVEDIR);
}

static void test_no_memory(void **state)
{
	struct stage s;
	int r = -1;

	(void)state;
	stage_open(&s);
	for (unsigned long n = 1; r != 0; n++) {
		assert_true(n < 1000);
		cube_alloc_fail_at(n);
		r = scenario(&s);
		cube_alloc_fail_at(0);
		assert_true(r == 0 || r == -ENOMEM);
		assert_int_equal(cube_files_open_count(s.tree), 0);
		clean(&s);
	}
	stage_close(&s);
}

static void test_no_memory_to_begin(void **state)
{
	struct cube_files_options options = {.uid = 0};
	struct cube_files_space *space = NULL;
	struct cube_files *f = NULL;
	unsigned before = stage_open_fds();
	struct cube_root root = {.n_mounts = 1, .mounts = {{.path = "/a/b"}}};
	int r = -1;

	(void)state;
	for (unsigned long n = 1; space == NULL; n++) {
		assert_true(n < 100);
		cube_alloc_fail_at(n);
		space = cube_files_space_new(&options);
		cube_alloc_fail_at(0);
		if (space == NULL)
			assert_int_equal(stage_open_fds(), before);
	}
	root.fd = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	root.mounts[0].fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (unsigned long n = 1; r != 0; n++) {
		assert_true(n < 100);
		cube_alloc_fail_at(n);
		r = cube_files_attach(space, &root, 1, NULL, &f);
		cube_alloc_fail_at(0);
		assert_true(r == 0 || r == -ENOMEM);
		assert_true((fcntl(root.fd, F_GETFD) >= 0) ==
			    (r < 0)); /* the caller's still, or not any more */
	}
	cube_files_detach(f);
	cube_files_space_free(space);
	assert_int_equal(stage_open_fds(), before);
}

/* A file system whose attributes may have to be asked for somewhere (procfs is none of those that are known
 * not to). */
static void test_not_local(void **state)
{
	struct cube_files_entry e;
	struct stage s;
	char buf[64], at[128];

	(void)state;
	stage_need_root();
	stage_prepare(&s, STAGE_PLAIN);
	(void)snprintf(at, sizeof(at), "%s/root", s.top);
	assert_int_equal(mount("proc", at, "proc", MS_RDONLY, NULL), 0);
	(void)close(s.fd);
	s.fd = openat(s.top_fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	stage_attach(&s);
	assert_string_equal(stage_read(&s, "sys/kernel/ostype", buf, sizeof(buf)), "Linux\n");
	assert_int_equal(stage_lookup(&s, "sys/kernel/none", &e), -ENOENT);
	(void)snprintf(at, sizeof(at), "%d/root", (int)getpid());
	assert_int_equal(stage_lookup(&s, at, &e), 0); /* a link that is magic elsewhere: text here */
	assert_string_equal(stage_readlink(&s, at, buf, sizeof(buf)), "..");
	(void)snprintf(at, sizeof(at), "%d/root/etc", (int)getpid());
	assert_int_equal(stage_lookup(&s, at, &e), -ENOTDIR);
	stage_close(&s);
}

static void test_not_local_mounted(void **state)
{
	struct cube_files_entry e;
	struct stage s;
	char at[128];

	(void)state;
	stage_need_root();
	stage_prepare(&s, STAGE_PLAIN);
	(void)snprintf(at, sizeof(at), "%s/root", s.top);
	assert_int_equal(mount("proc", at, "proc", 0, NULL), 0);
	(void)snprintf(at, sizeof(at), "%s/root/sys", s.top);
	assert_int_equal(mount("inside", at, "tmpfs", 0, NULL), 0);
	(void)close(s.fd);
	s.fd = openat(s.top_fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	stage_attach(&s);
	assert_int_equal(stage_lookup(&s, "sys", &e), 0);
	assert_int_equal(e.st.st_mode, S_IFDIR | 0555);
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_names), cmocka_unit_test(test_few_descriptors),
		cmocka_unit_test(test_no_memory),  cmocka_unit_test(test_no_memory_to_begin),
		cmocka_unit_test(test_not_local),  cmocka_unit_test(test_not_local_mounted),
	};

	stage_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
