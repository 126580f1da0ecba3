/* SPDX-License-Identifier: Apache-2.0 */
/* Import of archives: what is unpacked, and what is refused without leaving anything. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/local/template_priv.h"
#include "tests/unit/backends/den.h"

#define BASE 200000

static const struct cube_ns_ids ids = {.uid = BASE, .gid = BASE, .count = 1000};

struct place {
	char path[32];
	struct cube_local_import im;
};

static void no_log(void *ctx, const char *line)
{
	(void)ctx;
	assert_non_null(line);
}

static void no_percent(void *ctx, unsigned percent)
{
	(void)ctx;
	assert_true(percent <= 100);
}

static const struct cube_template_order order = {
	.name = "t", .source = "/t.tar", .fd = -1, .log = no_log, .progress = no_percent};

static void place_open(struct place *p)
{
	*p = (struct place){.path = "/tmp/cubefs-import.XXXXXX",
			    .im = {.ids = &ids, .order = &order, .to = 100}};
	assert_non_null(mkdtemp(p->path));
	p->im.root = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(p->im.root >= 0);
}

static void place_close(struct place *p)
{
	assert_int_equal(close(p->im.root), 0);
	assert_int_equal(den_remove(p->path), 0);
}

/* Unpacks and closes @fd. */
static int unpack(struct place *p, int fd, struct cube_err *err)
{
	int r = cube_local_import_tar(&p->im, fd, CUBE_TAR_PLAIN, err);

	assert_int_equal(close(fd), 0);
	return r;
}

static void entries(void **state)
{
	struct den_tar *t = den_tar_new(NULL);
	struct cube_err err = {0};
	struct place p;
	struct stat st, other;
	char target[64] = "";

	(void)state;
	den_tar_add(t, "./", S_IFDIR, 0700, 5, NULL, 0);
	den_tar_add(t, "./etc/", S_IFDIR, 0750, 0, NULL, 0);
	den_tar_add(t, "./etc/mine", S_IFREG, 04640, 42, "text", 4);
	den_tar_add(t, "stranger", S_IFREG, 0600, 5000, "x", 1);
	den_tar_add(t, "deep/er/file", S_IFREG, 0644, 0, "deep", 4);
	den_tar_link(t, "abs", "/etc/mine", false);
	den_tar_link(t, "lib", "usr/lib", false);
	den_tar_add(t, "usr/lib/", S_IFDIR, 0755, 0, NULL, 0);
	den_tar_add(t, "lib/through", S_IFREG, 0644, 0, "inside", 6);
	den_tar_link(t, "hard", "./etc/mine", true);
	den_tar_add(t, "dev/null", S_IFCHR, 0666, 0, NULL, 0);
	place_open(&p);
	if (unpack(&p, den_tar_end(t), &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(fstatat(p.im.root, "etc", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0750);
	assert_int_equal(fstatat(p.im.root, "etc/mine", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 04640);
	assert_int_equal(st.st_uid, BASE + 42);
	assert_int_equal(st.st_size, 4);
	assert_int_equal(fstatat(p.im.root, "hard", &other, 0), 0);
	assert_int_equal(other.st_ino, st.st_ino);
	assert_int_equal(fstatat(p.im.root, "stranger", &st, 0), 0);
	assert_int_equal(st.st_uid, BASE); /* beyond the range: root's */
	assert_int_equal(fstatat(p.im.root, "deep/er", &st, 0), 0);
	assert_int_equal(st.st_uid, BASE);
	assert_int_equal(fstatat(p.im.root, "usr/lib/through", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(readlinkat(p.im.root, "abs", target, sizeof(target)) > 0);
	assert_string_equal(target, "/etc/mine");
	assert_int_equal(faccessat(p.im.root, "dev/null", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	assert_int_equal(p.im.skipped, 1);
	place_close(&p);
}

/* Each adds one entry that must not be unpacked. */
static void bad_parent(struct den_tar *t)
{
	den_tar_add(t, "a/../../../tmp/cubefs-evil", S_IFREG, 0644, 0, "evil", 4);
}

static void bad_absolute(struct den_tar *t)
{
	den_tar_add(t, "/tmp/cubefs-evil", S_IFREG, 0644, 0, "evil", 4);
}

static void bad_link_out(struct den_tar *t)
{
	den_tar_link(t, "out", "/tmp", false);
	den_tar_add(t, "out/cubefs-evil", S_IFREG, 0644, 0, "evil", 4);
}

static void bad_link_up(struct den_tar *t)
{
	den_tar_link(t, "out", "../../../../../../../../tmp", false);
	den_tar_add(t, "out/cubefs-evil", S_IFREG, 0644, 0, "evil", 4);
}

static void bad_dir_out(struct den_tar *t)
{
	den_tar_link(t, "out", "/tmp", false);
	den_tar_add(t, "out/cubefs-evil/", S_IFDIR, 0755, 0, NULL, 0);
}

static void bad_hard_out(struct den_tar *t)
{
	den_tar_link(t, "passwd", "/etc/passwd", true);
}

static void bad_hard_through(struct den_tar *t)
{
	den_tar_link(t, "out", "/etc", false);
	den_tar_link(t, "passwd", "out/passwd", true);
}

static void bad_hard_missing(struct den_tar *t)
{
	den_tar_link(t, "a", "b", true);
}

static void bad_circle(struct den_tar *t)
{
	den_tar_link(t, "a", "a", false);
	den_tar_add(t, "a/x", S_IFREG, 0644, 0, "x", 1);
}

static void bad_block(struct den_tar *t)
{
	den_tar_add(t, "disk", S_IFBLK, 0666, 0, NULL, 0);
}

static void bad_char(struct den_tar *t)
{
	den_tar_add(t, "etc/mem", S_IFCHR, 0666, 0, NULL, 0);
}

static void bad_fifo(struct den_tar *t)
{
	den_tar_add(t, "pipe", S_IFIFO, 0666, 0, NULL, 0);
}

static void bad_under_file(struct den_tar *t)
{
	den_tar_add(t, "etc/passwd/x", S_IFREG, 0644, 0, "x", 1);
}

static const struct {
	void (*add)(struct den_tar *t);
	const char *says;
} bad[] = {
	{bad_parent, "'..'"},
	{bad_absolute, "absolute"},
	{bad_link_out, "leads out"},
	{bad_link_up, "leads out"},
	{bad_dir_out, "leads out"},
	{bad_hard_out, "absolute"},
	{bad_hard_through, "leads out"},
	{bad_hard_missing, "not there"},
	{bad_circle, "circles"},
	{bad_block, "device"},
	{bad_char, "device"},
	{bad_fifo, "fifo"},
	{bad_under_file, "no directory"},
};

static void refusals(void **state)
{
	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(bad); i++) {
		struct den_tar *t = den_tar_new("gzip");
		struct cube_err err = {0};
		struct place p;

		den_tar_add(t, "etc/passwd", S_IFREG, 0644, 0, "root", 4);
		bad[i].add(t);
		place_open(&p);
		assert_int_equal(unpack(&p, den_tar_end(t), &err), -EINVAL);
		assert_non_null(strstr(err.text, "damaged archive"));
		if (strstr(err.text, bad[i].says) == NULL)
			fail_msg("'%s' does not say '%s'", err.text, bad[i].says);
		assert_int_equal(access("/tmp/cubefs-evil", F_OK), -1);
		place_close(&p);
	}
}

static void filters(void **state)
{
	static const char *const names[] = {NULL, "gzip", "bzip2", "xz", "zstd"};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(names); i++) {
		struct den_tar *t = den_tar_new(names[i]);
		struct cube_err err = {0};
		struct place p;
		struct stat st;

		den_tar_add(t, "f", S_IFREG, 0644, 0, "four", 4);
		place_open(&p);
		if (unpack(&p, den_tar_end(t), &err) < 0)
			fail_msg("%s", err.text);
		assert_int_equal(fstatat(p.im.root, "f", &st, 0), 0);
		assert_int_equal(st.st_size, 4);
		place_close(&p);
	}
}

static void cut_short(void **state)
{
	static const char *const names[] = {NULL, "gzip", "xz", "zstd"};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(names); i++) {
		struct den_tar *t = den_tar_new(names[i]);
		struct cube_err err = {0};
		struct stat st;
		struct place p;
		int fd;

		den_tar_root(t);
		fd = den_tar_end(t);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(ftruncate(fd, st.st_size / 2), 0);
		place_open(&p);
		assert_int_equal(unpack(&p, fd, &err), -EINVAL);
		assert_non_null(strstr(err.text, "damaged archive"));
		place_close(&p);
	}
}

static void no_archive(void **state)
{
	char path[] = "/tmp/cubefs-junk.XXXXXX";
	int fd = mkstemp(path);
	struct cube_err err = {0};
	struct place p;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	for (unsigned i = 0; i < 10000; i++)
		assert_int_equal(write(fd, "this is no archive\n", 19), 19);
	place_open(&p);
	assert_int_equal(unpack(&p, fd, &err), -EINVAL);
	place_close(&p);
}

static void what_is_missing(void **state)
{
	struct den_tar *t = den_tar_new(NULL);
	struct cube_err err = {0};
	char reason[160];
	struct place p;
	struct stat st;

	(void)state;
	den_tar_link(t, "proc", "/somewhere", false);
	den_tar_add(t, "bin/sh", S_IFREG, 0755, 0, "#!/bin/sh\n", 10);
	place_open(&p);
	assert_int_equal(unpack(&p, den_tar_end(t), &err), 0);
	assert_int_equal(cube_local_import_finish(&p.im, reason, sizeof(reason), &err), 0);
	assert_non_null(strstr(reason, "/bin/sh"));
	assert_int_equal(fstatat(p.im.root, "proc", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(fstatat(p.im.root, "tmp", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 01777);
	place_close(&p);
}

/* @mib files of 1 MiB of zeros each, which take next to nothing packed by @filter, where 4 MiB are the bound. */
static void bomb_data(const char *filter, unsigned mib)
{
	static char zeros[1 << 20];
	struct den_tar *t = den_tar_new(filter);
	struct cube_err err = {0};
	struct place p;
	char name[32];

	for (unsigned i = 0; i < mib; i++) {
		(void)snprintf(name, sizeof(name), "zeros-%u", i);
		den_tar_add(t, name, S_IFREG, 0644, 0, zeros, sizeof(zeros));
	}
	place_open(&p);
	p.im.bounds.bytes = 4 << 20;
	assert_int_equal(unpack(&p, den_tar_end(t), &err), mib <= 4 ? 0 : -EDQUOT);
	if (mib > 4)
		assert_non_null(strstr(err.text, "template_size"));
	assert_true(p.im.bytes <= 5 << 20);
	place_close(&p);
}

/* @n names, of which many are the same: entries are counted, not what is left of them. */
static void bomb_names(const char *filter, unsigned n)
{
	struct den_tar *t = den_tar_new(filter);
	struct cube_err err = {0};
	struct place p;
	char name[32];

	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "e%u", i % 500);
		den_tar_add(t, name, S_IFREG, 0644, 0, NULL, 0);
	}
	place_open(&p);
	p.im.bounds.files = 1000;
	assert_int_equal(unpack(&p, den_tar_end(t), &err), n <= 1000 ? 0 : -EDQUOT);
	if (n > 1000)
		assert_non_null(strstr(err.text, "1000 entries (template_files)"));
	place_close(&p);
}

/* A small archive that becomes a large template, by its data or by names alone, ends at the bounds. */
static void bombs(void **state)
{
	static const char *const filters[] = {NULL, "gzip", "bzip2", "xz", "zstd"};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(filters); i++) {
		bomb_data(filters[i], 4);
		bomb_data(filters[i], 8);
		bomb_names(filters[i], 1000);
		bomb_names(filters[i], 1001);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries),   cmocka_unit_test(refusals),   cmocka_unit_test(filters),
		cmocka_unit_test(cut_short), cmocka_unit_test(no_archive), cmocka_unit_test(what_is_missing),
		cmocka_unit_test(bombs),
	};

	if (geteuid() != 0)
		return den_skip("owners are given away: root's");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
