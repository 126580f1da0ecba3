/* SPDX-License-Identifier: Apache-2.0 */
/* Why memory is in no checkpoint: each reason, with programs that are made for it. */
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
#include "backends/local/criu.h"
#include "backends/local/find.h"
#include "tests/unit/backends/den.h"

static char dir[40], crun[64], path[4096];

static void put(const char *name, const char *text)
{
	char at[64];
	int fd;

	(void)snprintf(at, sizeof(at), "%s/%s", dir, name);
	fd = open(at, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	assert_true(fd >= 0);
	assert_int_equal(cube_file_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(close(fd), 0);
}

static int set_up(void **state)
{
	const char *old = getenv("PATH"); /* NOLINT(concurrency-mt-unsafe): one thread */

	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/cubefs-criu.XXXXXX");
	assert_non_null(mkdtemp(dir));
	(void)snprintf(crun, sizeof(crun), "%s/crun", dir);
	(void)snprintf(path, sizeof(path), "%s:%s", dir, old != NULL ? old : "/usr/bin:/bin");
	return setenv("PATH", path, 1); /* NOLINT(concurrency-mt-unsafe): one thread */
}

static int tear_down(void **state)
{
	(void)state;
	return den_remove(dir);
}

static void expect_why(const char *text)
{
	char why[160] = "";

	cube_local_criu_why(crun, why, sizeof(why));
	if (strstr(why, text) == NULL)
		fail_msg("'%s' does not say '%s'", why, text);
}

static void each_reason(void **state)
{
	char there[4096];

	(void)state;
	if (!cube_local_find_program("criu", there, sizeof(there)))
		expect_why("criu is not installed");
	put("criu",
	    "#!/bin/sh\n[ \"$*\" = check ] || exit 9\necho 'Error (criu/kerndat.c:1): no such kernel' >&2\n"
	    "exit 1\n");
	put("crun",
	    "#!/bin/sh\n[ \"$*\" = --version ] || exit 9\nprintf 'crun version 1.8\\n+CAP +YAJL\\n'\n");
	expect_why("criu check fails: exit code 1: Error (criu/kerndat.c:1): no such kernel");
	put("criu", "#!/bin/sh\n[ \"$*\" = check ] || exit 9\necho 'Looks good.'\n");
	expect_why("without CRIU");
	put("crun", "#!/bin/sh\nprintf 'crun version 1.8\\n+CAP +CRIU +YAJL\\n'\n");
	expect_why("CRIU does not carry over");
	put("crun", "#!/bin/sh\nexit 3\n");
	expect_why("crun --version fails: exit code 3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_reason, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
