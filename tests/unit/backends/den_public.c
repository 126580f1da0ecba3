/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that every user can run: a build may lie where an ordinary user cannot go, below root's home. */
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/macros.h"
#include "tests/unit/backends/den.h"

static char dir[] = "/tmp/cubefs-public.XXXXXX";
static char program[PATH_MAX];

/* @from as the last part of its name in the directory, whose path is put into @to. */
static void public_copy(const char *from, char to[PATH_MAX])
{
	cube_auto_fd in = open(from, O_RDONLY | O_CLOEXEC);
	cube_auto_fd out = -1;
	struct stat st;

	(void)snprintf(to, PATH_MAX, "%s%s", dir, strrchr(from, '/'));
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	assert_true(in >= 0 && out >= 0 && fstat(in, &st) == 0);
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = sendfile(out, in, NULL, (size_t)left);

		assert_true(n > 0);
		left -= n;
	}
	assert_int_equal(fchmod(out, 0755), 0);
}

void den_public_make(void)
{
	char self[PATH_MAX], agent[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(n > 0);
	self[n] = '\0';
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chmod(dir, 0755), 0);
	public_copy(self, program);
	public_copy(getenv("CUBEFS_AGENT"), agent); /* NOLINT(concurrency-mt-unsafe): one thread yet */
	assert_int_equal(setenv("CUBEFS_AGENT", agent, 1), 0); /* NOLINT(concurrency-mt-unsafe) */
}

const char *den_public(void)
{
	return program[0] != '\0' ? program : NULL;
}

void den_public_remove(void)
{
	if (program[0] != '\0')
		(void)den_remove(dir);
}
