/* SPDX-License-Identifier: Apache-2.0 */
/* Links cannot lead astray: what is shown of which target, and where a kernel that follows what is shown ends
 * up. */
#include "tests/unit/files/walker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/base/macros.h"

/* What a process inside gets: stat(2) of the path with the sandbox's root as its root. */
static int inside_stat(const struct stage *s, const char *path, struct stat *st)
{
	const struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	int fd, r;

	do /* EAGAIN: somebody on this machine renamed something during a ".." */
		fd = (int)syscall(SYS_openat2, s->fd, path, &how, sizeof(how));
	while (fd < 0 && errno == EAGAIN);
	if (fd < 0)
		return -errno;
	r = fstat(fd, st);
	(void)close(fd);
	return r;
}

/* Both ways lead to the same object, or nowhere for the same reason. */
static void check_same(struct stage *s, const char *path)
{
	struct walker w = {.s = s, .at = {s->id}};
	struct cube_files_entry e, again;
	struct stat inside = {.st_size = 0};
	int r = inside_stat(s, path, &inside), out = walker_run(&w, path, &e);

	if (r != out) {
		char raw[PATH_MAX] = "", shown[PATH_MAX];

		if (readlinkat(s->fd, path, raw, sizeof(raw) - 1) < 0)
			raw[0] = '\0';
		fail_msg("%s (%s, shown as %s): inside %s, outside %s", path, raw,
			 stage_readlink(s, path, shown, sizeof(shown)), strerrorname_np(-r),
			 strerrorname_np(-out));
	}
	if (r != 0)
		return;
	assert_int_equal(inside.st_mode & S_IFMT, e.id == s->id ? S_IFDIR : e.st.st_mode & S_IFMT);
	if (!S_ISDIR(inside.st_mode)) {
		assert_int_equal(e.st.st_size, inside.st_size); /* each file has a size of its own */
		return;
	}
	/* directories are told by what is in them: each has an entry of its own name */
	if (cube_files_lookup(s->space, e.id, ".mark", &again) == 0) {
		char mark[PATH_MAX + 16];

		(void)snprintf(mark, sizeof(mark), "%s/.mark", path);
		assert_int_equal(inside_stat(s, mark, &inside), 0);
		assert_int_equal(again.st.st_size, inside.st_size);
	}
}

/* ---- the table ---- */

static const struct link_case {
	const char *dir; /* where the link lies */
	const char *target;
	const char *shown;
} link_cases[] = {
	/* stays inside: byte for byte */
	{"", "a", "a"},
	{"", "a/b", "a/b"},
	{"", "./a//b/", "./a//b/"},
	{"", ".", "."},
	{"a", "..", ".."},
	{"a/b", "../../a", "../../a"},
	{"a/b", ".././../a/b/c", ".././../a/b/c"},
	{"a", "...", "..."},
	{"a", "..x/y", "..x/y"},
	/* absolute: from the root of the sandbox */
	{"", "/a/b", "a/b"},
	{"", "/", "."},
	{"", "//", "."},
	{"a", "/", ".."},
	{"a/b", "/", "../.."},
	{"a", "/a/b", "../a/b"},
	{"a/b/c", "/etc/shadow", "../../../etc/shadow"},
	{"a", "/a/", "../a/"},
	{"a", "///a", "../a"},
	{"a", "/../../a", "../a"},
	{"", "/..", "."},
	{"a", "/proc/self/root", "../proc/self/root"},
	/* above the root: it stands still there */
	{"", "..", "."},
	{"", "../x", "x"},
	{"", "../../../etc/passwd", "etc/passwd"},
	{"a", "../../x", "../x"},
	{"a", "./../..//../x/y", "../x/y"},
	{"a/b", "../../..", "../.."},
	/* ".." behind a name is walked */
	{"", "a/..", "."},
	{"", "a/../a/b", "a/b"},
	{"a", "b/../c", "../a/c"},
	{"a/b", "c/../../..", "../.."},
	{"", "to-b/../x", "a/x"}, /* to-b leads to a/b, whose parent is a */
	{"", "to-root/../../x", "x"},
	{"a/b", "../../to-abs/../x", "../../a/b/x"}, /* to-abs: /a/b/c */
	{"a", "/to-b/../x", "../a/x"},
	{"", "chain/../x", "a/x"},
	/* broken inside: broken in the same way */
	{"", "none/../a", "none/a"},
	{"", "file/../a", "file/a"},
	{"a", "../loop/../x", "-ELOOP"},
	{"a", "../file/..", "../file/."},
	{"a", "none/../..", "../a/none/."},
	{"", "a/none/../../b", "a/none/b"},
};

static void fill_tree(const struct stage *s)
{
	stage_mkdir(s, "a");
	stage_mkdir(s, "a/b");
	stage_mkdir(s, "a/b/c");
	stage_write(s, "file", "");
	stage_symlink(s, "a/b", "to-b");
	stage_symlink(s, "/", "to-root");
	stage_symlink(s, "/a/b/c", "to-abs");
	stage_symlink(s, "to-b", "chain");
	stage_symlink(s, "loop", "loop");
}

static void test_table(void **state)
{
	struct cube_files_entry e;
	char path[64], buf[PATH_MAX];
	struct stage s;
	struct stat st;

	(void)state;
	stage_open(&s);
	fill_tree(&s);
	for (size_t i = 0; i < CUBE_COUNT(link_cases); i++) {
		const struct link_case *c = &link_cases[i];

		(void)snprintf(path, sizeof(path), "%s%slink%zu", c->dir, *c->dir != '\0' ? "/" : "", i);
		stage_symlink(&s, c->target, path);
		assert_int_equal(stage_lookup(&s, path, &e), 0);
		assert_string_equal(stage_readlink(&s, path, buf, sizeof(buf)), c->shown);
		/* the length of the answer or, where there is none, of what is there */
		assert_int_equal(e.st.st_size, strlen(c->shown[0] == '-' ? c->target : c->shown));
		assert_int_equal(cube_files_getattr(s.space, e.id, NULL, &st), 0);
		assert_int_equal(st.st_size, e.st.st_size);
		check_same(&s, path);
	}
	stage_close(&s);
}

static void test_moved(void **state)
{
	char buf[PATH_MAX];
	struct stage s;
	uint64_t a, b, link;

	(void)state;
	stage_open(&s);
	fill_tree(&s);
	stage_symlink(&s, "/x", "a/b/abs");
	stage_symlink(&s, "../../x", "a/b/rel");
	a = stage_node(&s, "a");
	b = stage_node(&s, "a/b");
	link = stage_node(&s, "a/b/rel");
	assert_string_equal(stage_readlink(&s, "a/b/rel", buf, sizeof(buf)), "../../x");
	/* inside: the caller's path to the node is as long as before */
	assert_int_equal(renameat(s.fd, "a/b", s.fd, "up"), 0);
	assert_int_equal(cube_files_readlink(s.space, link, buf, sizeof(buf)), strlen("../../x"));
	assert_string_equal(stage_readlink(&s, "up/rel", buf, sizeof(buf)), "../x"); /* another path to it */
	assert_string_equal(stage_readlink(&s, "up/abs", buf, sizeof(buf)), "../x");
	assert_int_equal(renameat(s.fd, "up", s.fd, "a/b"), 0);
	/* by the caller: the path has changed */
	assert_int_equal(cube_files_rename(s.space, a, "b", s.id, "up", 0), 0);
	assert_int_equal(stage_node(&s, "up"), b);
	assert_int_equal(stage_node(&s, "up/rel"), link);
	assert_int_equal(cube_files_readlink(s.space, link, buf, sizeof(buf)), strlen("../x"));
	assert_string_equal(buf, "../x");
	stage_close(&s);
}

static void test_several_names(void **state)
{
	char buf[PATH_MAX];
	struct stage s;
	struct cube_files_entry e;

	(void)state;
	stage_open(&s);
	fill_tree(&s);
	stage_symlink(&s, "/file", "abs");
	stage_symlink(&s, "file", "rel");
	assert_int_equal(linkat(s.fd, "abs", s.fd, "a/abs", 0), 0);
	assert_int_equal(linkat(s.fd, "rel", s.fd, "a/rel", 0), 0);
	assert_string_equal(stage_readlink(&s, "a/abs", buf, sizeof(buf)), "-ELOOP");
	assert_string_equal(stage_readlink(&s, "abs", buf, sizeof(buf)), "-ELOOP");
	assert_string_equal(stage_readlink(&s, "a/rel", buf, sizeof(buf)), "file");
	assert_int_equal(stage_lookup(&s, "abs", &e), 0); /* it can be looked at and removed */
	assert_int_equal(e.st.st_size, strlen("/file"));
	assert_int_equal(cube_files_unlink(s.space, s.id, "abs"), 0);
	assert_string_equal(stage_readlink(&s, "a/abs", buf, sizeof(buf)), "../file");
	stage_close(&s);
}

static void test_long(void **state)
{
	char target[PATH_MAX], buf[PATH_MAX];
	struct cube_files_entry e;
	struct stage s;

	(void)state;
	stage_open(&s);
	fill_tree(&s);
	memset(target, 'x', sizeof(target));
	for (size_t i = 200; i < sizeof(target); i += 200)
		target[i] = '/';
	target[sizeof(target) - 1] = '\0';
	stage_symlink(&s, target, "rel");
	assert_string_equal(stage_readlink(&s, "rel", buf, sizeof(buf)), target);
	target[0] = '/';
	stage_symlink(&s, target, "abs"); /* one shorter at the root */
	assert_string_equal(stage_readlink(&s, "abs", buf, sizeof(buf)), target + 1);
	stage_symlink(&s, target, "a/b/abs"); /* no room for the way up */
	assert_string_equal(stage_readlink(&s, "a/b/abs", buf, sizeof(buf)), "-ENAMETOOLONG");
	assert_int_equal(stage_lookup(&s, "a/b/abs", &e), 0);
	stage_symlink(&s, "/file", "short");
	assert_int_equal(cube_files_readlink(s.space, stage_node(&s, "short"), buf, 4), -ENAMETOOLONG);
	assert_int_equal(cube_files_readlink(s.space, stage_node(&s, "short"), buf, 5), 4);
	assert_int_equal(cube_files_readlink(s.space, stage_node(&s, "file"), buf, sizeof(buf)), -EINVAL);
	assert_int_equal(cube_files_readlink(s.space, s.id, buf, sizeof(buf)), -EINVAL);
	stage_close(&s);
}

/* A ".." behind a chain of links that grows at each step, and one behind more directories than a walk may
 * look at. */
static void test_bombs(void **state)
{
	char name[16], target[PATH_MAX], buf[PATH_MAX];
	struct stage s;

	(void)state;
	stage_open(&s);
	fill_tree(&s);
	for (int i = 0; i < 60; i++) {
		(void)snprintf(name, sizeof(name), "l%d", i);
		(void)snprintf(target, sizeof(target), "l%d/../l%d/../l%d", i + 1, i + 1, i + 1);
		stage_symlink(&s, target, name);
		assert_true(strlen(stage_readlink(&s, name, buf, sizeof(buf))) > 0);
		check_same(&s, name);
	}
	*target = '\0';
	for (int i = 0; i < 680; i++)
		memcpy(target + 5 * i, "a/../", sizeof("a/../"));
	stage_symlink(&s, target, "many");
	assert_string_equal(stage_readlink(&s, "many", buf, sizeof(buf)), ".");
	stage_close(&s);
}

/* As many links as the kernel follows, and one more. */
static void test_chain(void **state)
{
	char name[16], target[16], buf[PATH_MAX];
	struct stage s;

	(void)state;
	stage_open(&s);
	fill_tree(&s);
	stage_symlink(&s, "a/b", "c0");
	for (int i = 1; i < 45; i++) {
		(void)snprintf(name, sizeof(name), "c%d", i);
		(void)snprintf(target, sizeof(target), "c%d", i - 1);
		stage_symlink(&s, target, name);
		(void)snprintf(name, sizeof(name), "up%d", i);
		(void)snprintf(target, sizeof(target), "c%d/..", i);
		stage_symlink(&s, target, name);
		assert_string_equal(stage_readlink(&s, name, buf, sizeof(buf)), i < 39 ? "a" : "-ELOOP");
		check_same(&s, name);
	}
	stage_close(&s);
}

static void test_raw(void **state)
{
	char buf[PATH_MAX];
	struct stage s;

	(void)state;
	stage_prepare(&s, STAGE_PLAIN);
	s.options.symlinks_raw = true;
	stage_attach(&s);
	stage_mkdir(&s, "a");
	stage_symlink(&s, "/etc/passwd", "a/abs");
	stage_symlink(&s, "../../x/..", "a/rel");
	assert_string_equal(stage_readlink(&s, "a/abs", buf, sizeof(buf)), "/etc/passwd");
	assert_string_equal(stage_readlink(&s, "a/rel", buf, sizeof(buf)), "../../x/..");
	stage_close(&s);
}

/* ---- random trees ---- */

static unsigned test_random(unsigned *seed, unsigned below)
{
	*seed = *seed * 1103515245u + 12345u;
	return (*seed >> 16) % below;
}

static void random_target(unsigned *seed, char *out, size_t size)
{
	static const char *const parts[] = {"..", "..", "..", "d0", "d1", "d2", "l0",
					    "l1", "l2", "f0", "f1", ".",  "",   "none"};
	size_t at = 0;
	unsigned n = 1 + test_random(seed, 6);

	if (test_random(seed, 3) == 0)
		out[at++] = '/';
	for (unsigned i = 0; i < n; i++)
		at += (size_t)snprintf(out + at, size - at, "%s%s",
				       parts[test_random(seed, CUBE_COUNT(parts))], i + 1 < n ? "/" : "");
	if (at == 0)
		(void)snprintf(out, size, "d0");
}

/* Each directory has three directories, links and two files; sizes and marks tell all of them apart. */
static void random_fill(const struct stage *s, unsigned *seed, const char *dir, int levels, unsigned *size)
{
	char path[256], target[128], text[2048];

	for (unsigned i = 0; i < 3; i++) {
		memset(text, '.', sizeof(text));
		text[++*size] = '\0';
		(void)snprintf(path, sizeof(path), "%s%s", dir, i == 0 ? ".mark" : i == 1 ? "f0" : "f1");
		stage_write(s, path, text);
		random_target(seed, target, sizeof(target));
		(void)snprintf(path, sizeof(path), "%sl%u", dir, i);
		stage_symlink(s, target, path);
		if (levels == 0)
			continue;
		(void)snprintf(path, sizeof(path), "%sd%u", dir, i);
		stage_mkdir(s, path);
		(void)snprintf(path, sizeof(path), "%sd%u/", dir, i);
		random_fill(s, seed, path, levels - 1, size);
	}
}

static void check_all(struct stage *s, const char *dir, int levels)
{
	char path[256];

	for (unsigned i = 0; i < 3; i++) {
		(void)snprintf(path, sizeof(path), "%sl%u", dir, i);
		check_same(s, path);
		if (levels == 0)
			continue;
		(void)snprintf(path, sizeof(path), "%sd%u/", dir, i);
		check_all(s, path, levels - 1);
	}
}

static void test_random_trees(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (int round = 0; round < 12; round++) {
		struct stage s;
		unsigned size = 0;

		stage_open(&s);
		random_fill(&s, &seed, "", 3, &size);
		check_all(&s, "", 3);
		stage_close(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),         cmocka_unit_test(test_moved),
		cmocka_unit_test(test_several_names), cmocka_unit_test(test_long),
		cmocka_unit_test(test_bombs),         cmocka_unit_test(test_chain),
		cmocka_unit_test(test_raw),           cmocka_unit_test(test_random_trees),
	};

	stage_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
