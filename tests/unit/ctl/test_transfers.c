/* SPDX-License-Identifier: Apache-2.0 */
/* put and get as verbs: what comes and goes, what is refused, what is left after a kill. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "tests/unit/ctl/stage.h"

static char host[96];

/* A directory of this machine with f, d/g and links of both kinds. */
static void host_make(const struct stage *s)
{
	cube_auto_fd dir = -1, sub = -1, f = -1, g = -1;

	(void)snprintf(host, sizeof(host), "%s.host", s->dir);
	assert_int_equal(mkdir(host, 0755), 0);
	dir = open(host, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f = openat(dir, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(write(f, "one\n", 4), 4);
	assert_int_equal(mkdirat(dir, "d", 0755), 0);
	sub = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	g = openat(sub, "g", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(g, "two\n", 4), 4);
	assert_int_equal(symlinkat("../f", sub, "up"), 0);
	assert_int_equal(symlinkat("../../x", sub, "out"), 0);
	assert_int_equal(symlinkat("d/../../x", dir, "sly"), 0);
	assert_int_equal(symlinkat("/etc", dir, "abs"), 0);
}

static void host_remove(void)
{
	assert_int_equal(cube_file_remove_tree(AT_FDCWD, host), 0);
}

static int verb(struct stage *s, struct cube_cube *c, const char *before, const char *path, const char *after)
{
	char line[320];

	(void)snprintf(line, sizeof(line), "%s%s%s", before, path, after);
	return stage_cube(s, c, line);
}

static void expect_inside(struct stage *s, struct cube_cube *c, const char *command, const char *text)
{
	char *out = NULL;

	assert_int_equal(stage_exec(s, c, NULL, command, &out), 0);
	assert_string_equal(out, text);
	cube_free(out);
}

static bool there(const char *name)
{
	char path[160];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s%s", host, name);
	return lstat(path, &st) == 0;
}

static void both_ways(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");

	host_make(s);
	assert_int_equal(verb(s, c, "put ", host, " /workspace/p"), 0);
	assert_string_equal(s->answer, "files=7 bytes=8 skipped=0");
	expect_inside(s, c, "cat /workspace/p/f; cat /workspace/p/d/g", "one\ntwo\n");
	assert_int_equal(stage_exec(s, c, NULL, "write /workspace/p/old x", NULL), 0);
	assert_int_equal(verb(s, c, "put ", host, "/d /workspace/p mode=640 remove=/workspace/none"), 0);
	assert_int_not_equal(stage_exec(s, c, NULL, "cat /workspace/p/old", NULL), 0);
	expect_inside(s, c, "cat /workspace/p/g", "two\n");
	assert_int_equal(verb(s, c, "put ", host, " /q"), 0);
	assert_int_equal(verb(s, c, "get /q ", host, ".got"), 0);
	assert_string_equal(s->answer, "files=4 bytes=8 skipped=3"); /* out, sly, abs */
	assert_true(there(".got/f") && there(".got/d/up"));
	assert_false(there(".got/d/out") || there(".got/sly") || there(".got/abs"));
	assert_int_equal(verb(s, c, "get /q ", host, ".got"), -EEXIST);
	assert_int_equal(verb(s, c, "get /q/f ", host, ".got/f"), 0);
	host_remove();
	(void)snprintf(host, sizeof(host), "%s.host.got", s->dir);
	host_remove();
}

static void refused(void **state)
{
	static const struct {
		const char *before, *after;
		int code;
	} cases[] = {
		{"put ", "", -EINVAL},
		{"put ", " p", -EINVAL},
		{"put ", " /", -EINVAL},
		{"put ", " /dev/x", -EINVAL},
		{"put ", " /workspace", -EBUSY},
		{"put ", " /p owner=1", -EINVAL},
		{"put ", " /p owner=:1", -EINVAL},
		{"put ", " /p mode=888", -EINVAL},
		{"put ", " /p mode=", -EINVAL},
		{"put ", " /p remove=x", -EINVAL},
		{"put ", " /p remove=/workspace", -EBUSY},
		{"put ", " /p color=red", -EINVAL},
		{"put ", "/f /p", -EINVAL},
		{"put ", "/none /p", -ENOENT},
		{"put relative", " /p", -EINVAL},
		{"get /none ", ".got", -ENOENT},
		{"get p ", ".got", -EINVAL},
		{"get /etc ", "/none/x", -ENOENT},
		{"get /etc ", "/", -EINVAL},
		{"get /etc relative", "", -EINVAL},
	};
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");

	host_make(s);
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		int r = verb(s, c, cases[i].before, host, cases[i].after);

		if (r != cases[i].code)
			fail_msg("%s...%s: %d (%s)", cases[i].before, cases[i].after, r, s->err.text);
		assert_int_not_equal(stage_exec(s, c, NULL, "cat /p/f", NULL), 0);
	}
	assert_false(there(".got"));
	host_remove();
}

/* No put without native files. */
static void not_here(void **state)
{
	struct stage s;

	(void)state;
	stage_open(&s, "[backend mem]\nkind=mem\ncaps=-files\n");
	assert_int_equal(stage_cube(&s, stage_make(&s, "dev"), "put /tmp /p"), -EOPNOTSUPP);
	stage_close(&s);
}

static void root_fails(void **state)
{
	struct stage s;
	struct cube_cube *c;

	(void)state;
	stage_open(&s, "[backend mem]\nkind=mem\nfail=root:EIO:1\n");
	c = stage_make(&s, "dev");
	host_make(&s);
	assert_int_equal(verb(&s, c, "put ", host, " /p"), -EIO);
	assert_int_equal(verb(&s, c, "put ", host, " /p"), 0);
	host_remove();
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(both_ways, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(refused, stage_setup, stage_teardown),
		cmocka_unit_test(not_here),
		cmocka_unit_test(root_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
