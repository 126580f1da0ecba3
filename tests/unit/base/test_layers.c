/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between two views of layers (backends/base/differ.h), while things go away and descriptors are short. */
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/differ.h"
#include "backends/base/file.h"

/* A file that is new, below a directory of both views. */
struct views {
	int now, was, layer;
	struct cube_buf told;
	bool takes_away; /* the directory, when it has been seen */
	int leaves;      /* so many descriptors then; -1: as many as there are */
	struct rlimit before;
};

static int view_make(int place, const char *name, bool file)
{
	int dir = -1, sub = -1;

	assert_int_equal(cube_file_mkdir(place, name, 0755, &dir), 0);
	assert_int_equal(cube_file_mkdir(dir, "d", 0755, &sub), 0);
	if (file)
		assert_int_equal(cube_file_replace(sub, "new", "x", 1, 0644), 0);
	(void)close(sub);
	return dir;
}

static void views_told(void *ctx, char kind, const char *path)
{
	struct views *v = ctx;

	(void)cube_buf_printf(&v->told, "%c %s\n", kind, path);
}

static bool views_skip(void *ctx, int dir, const char *path, const char *name)
{
	struct views *v = ctx;
	int next;

	if (strcmp(path, "/d") != 0)
		return false;
	if (v->takes_away) {
		assert_int_equal(unlinkat(dir, "d/new", 0), 0);
		assert_int_equal(unlinkat(dir, name, AT_REMOVEDIR), 0);
	}
	if (v->leaves >= 0) {
		next = fcntl(dir, F_DUPFD_CLOEXEC, 0);
		assert_true(next >= 0);
		(void)close(next);
		assert_int_equal(setrlimit(RLIMIT_NOFILE,
					   &(struct rlimit){(rlim_t)(next + v->leaves), v->before.rlim_max}),
				 0);
	}
	return false;
}

static int views_run(struct place *p, bool takes_away, int leaves, const char *expected)
{
	struct views v = {.told = CUBE_BUF(4096), .takes_away = takes_away, .leaves = leaves};
	struct cube_differ d = {.n_layers = 1, .path = "", .each = views_told, .skip = views_skip, .ctx = &v};
	int rc;

	v.now = view_make(p->fd, "now", true);
	v.was = view_make(p->fd, "was", false);
	v.layer = view_make(p->fd, "layer", true);
	d.now = v.now;
	d.was = v.was;
	d.layers = &v.layer;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &v.before), 0);
	rc = cube_differ_run(&d, NULL);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &v.before), 0);
	assert_string_equal(cube_buf_str(&v.told), expected);
	cube_buf_done(&v.told);
	(void)close(v.now);
	(void)close(v.was);
	(void)close(v.layer);
	return rc;
}

static void what_is_new(void **state)
{
	assert_int_equal(views_run(*state, false, -1, "A /d/new\n"), 0);
}

/* A directory that went after it was seen is told as before or after, and nothing in it is looked for. */
static void what_went(void **state)
{
	assert_int_equal(views_run(*state, true, -1, ""), 0);
}

/* A layer that cannot be looked at is not one without differences. */
static void what_cannot_be_opened(void **state)
{
	for (int leaves = 0; leaves < 3; leaves++) {
		assert_int_equal(views_run(*state, false, leaves, ""), -EMFILE);
		for (size_t i = 0; i < 3; i++)
			assert_int_equal(cube_file_remove_tree(((struct place *)*state)->fd,
							       ((const char *[]){"now", "was", "layer"})[i]),
					 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_new, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(what_went, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_opened, place_setup, place_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
