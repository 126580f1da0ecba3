/* SPDX-License-Identifier: Apache-2.0 */
/* Root's range of ids: whose numbers are in the way, what is chosen, what is kept. */
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

#include "backends/base/file.h"
#include "backends/local/idrange.h"

static char dir[64];

static int up(void **state)
{
	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/cubefs-range.XXXXXX");
	return mkdtemp(dir) == NULL ? -1 : 0;
}

static int down(void **state)
{
	(void)state;
	return cube_file_remove_tree(AT_FDCWD, dir);
}

static void has(const char *file, const char *text)
{
	char path[128];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void in_the_way(void **state)
{
	static const struct {
		const char *file, *text;
		uint32_t next; /* 0: it is not */
	} cases[] = {
		{"subuid", "me:100000:65536\n", 165536},
		{"subgid", "me:100000:65536\n", 165536},
		{"subuid", "1000:165535:1\n", 165536},
		{"subuid", "a:99999:2", 100001},
		{"subuid", "a:99990:10\nb:165536:65536\n", 0},
		{"subuid", "a:1:5\nb:120000:7\nc:110000:5\n", 120007},
		{"subuid", "a:0:4294967295\n", UINT32_MAX},
		{"subuid", "a:100000:0\nb\n:\nc:100000\nd:x:y\ne:100000:99999999999\n\n", 0},
		{"passwd", "root:x:0:0::/root:/bin/sh\nbig:x:100007:5::/:/bin/sh\n", 100008},
		{"passwd", "gidonly:x:7:100007::/:/bin/sh\n", 0},
		{"group", "g:x:165535:a,b\n", 165536},
		{"group", "g:x:165536:\n", 0},
	};
	uint32_t next;
	char who[128];

	(void)state;
	assert_false(cube_local_idrange_taken(dir, 100000, &next, who)); /* none of the files is there */
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		has(cases[i].file, cases[i].text);
		if (cube_local_idrange_taken(dir, 100000, &next, who) != (cases[i].next != 0))
			fail_msg("%s: %s", cases[i].file, cases[i].text);
		if (cases[i].next != 0) {
			assert_int_equal(next, cases[i].next);
			assert_non_null(strstr(who, cases[i].file));
		}
		has(cases[i].file, "");
	}
}

static void chosen_and_kept(void **state)
{
	struct cube_err err = {0};
	uint32_t first;

	(void)state;
	has("subuid", "a:100000:65536\nb:231072:65536\n");
	has("subgid", "a:165536:65536\n");
	has("passwd", "x:x:296700:1::/:/bin/sh\n");
	has("group", "");
	assert_int_equal(cube_local_idrange(dir, dir, &first, &err), 0);
	assert_int_equal(first, 296701);
	has("subuid", "a:296701:65536\n"); /* whoever comes later */
	assert_int_equal(cube_local_idrange(dir, dir, &first, &err), 0);
	assert_int_equal(first, 296701);
	has("uid_base", "5000\n");
	assert_int_equal(cube_local_idrange(dir, dir, &first, &err), 0);
	assert_int_equal(first, 5000);
}

static void refused(void **state)
{
	static const char *const bad[] = {"", "\n", "x\n", "999\n", "4294967295\n", "-1\n", "10 0\n"};
	struct cube_err err = {0};
	uint32_t first = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		has("uid_base", bad[i]);
		assert_int_equal(cube_local_idrange(dir, dir, &first, &err), -EINVAL);
		assert_non_null(strstr(err.text, "uid_base"));
	}
	assert_int_equal(cube_local_idrange("/nonexistent", dir, &first, &err), -ENOENT);
	assert_int_equal(first, 7);
}

static void full(void **state)
{
	struct cube_err err = {0};
	uint32_t first;

	(void)state;
	has("subuid", "all:100000:4294867295\n");
	assert_int_equal(cube_local_idrange(dir, dir, &first, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "uid_base"));
}

/* A directory with sandboxes and without the file: they have the ids that there were. */
static void older(void **state)
{
	struct cube_err err = {0};
	char path[80];
	uint32_t first;

	(void)state;
	has("subuid", "a:100000:65536\n");
	(void)snprintf(path, sizeof(path), "%s/cubes", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(cube_local_idrange(dir, dir, &first, &err), 0);
	assert_int_equal(first, 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(in_the_way, up, down),
		cmocka_unit_test_setup_teardown(chosen_and_kept, up, down),
		cmocka_unit_test_setup_teardown(refused, up, down),
		cmocka_unit_test_setup_teardown(full, up, down),
		cmocka_unit_test_setup_teardown(older, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
