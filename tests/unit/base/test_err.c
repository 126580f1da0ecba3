/* SPDX-License-Identifier: Apache-2.0 */
/* Failures: code and sentence, context, escaping, the cut. */
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <string.h>

#include "backends/base/err.h"

static void test_fail(void **state)
{
	struct cube_err err = {0};

	(void)state;
	assert_int_equal(cube_fail(&err, -ENOENT, "no sandbox named '%s'", "x"), -ENOENT);
	assert_int_equal(err.code, -ENOENT);
	assert_string_equal(err.text, "no sandbox named 'x'");
	assert_int_equal(cube_fail(&err, EBUSY, "positive"), -EBUSY);
	assert_int_equal(err.code, -EBUSY);
	assert_int_equal(cube_fail(NULL, -EPERM, "%d", 1), -EPERM);
}

static void test_context(void **state)
{
	struct cube_err err = {0};

	(void)state;
	(void)cube_fail(&err, -EACCES, "key refused");
	assert_int_equal(cube_fail_in(&err, "backend '%s'", "e2b"), -EACCES);
	assert_string_equal(err.text, "backend 'e2b': key refused");
	assert_int_equal(err.code, -EACCES);
	assert_int_equal(cube_fail_in(NULL, "x"), -EIO);
}

static void test_context_of_nothing(void **state)
{
	struct cube_err err = {0};

	(void)state;
	assert_int_equal(cube_fail_in(&err, "backend"), -EIO);
	assert_string_equal(err.text, "backend: Input/output error");
}

static void test_own_text_as_argument(void **state)
{
	struct cube_err err = {0};

	(void)state;
	(void)cube_fail(&err, -EIO, "inner");
	(void)cube_fail(&err, -EINVAL, "outer (%s)", err.text);
	assert_string_equal(err.text, "outer (inner)");
}

static void test_errno(void **state)
{
	struct cube_err err = {0};

	(void)state;
	errno = ENOSPC;
	assert_int_equal(cube_fail_errno(&err, "disk %d", 3), -ENOSPC);
	assert_string_equal(err.text, "disk 3: No space left on device");
	errno = ENOSPC;
	assert_int_equal(cube_fail_errno(NULL, "disk"), -ENOSPC);
	errno = 0;
	assert_int_equal(cube_fail_errno(&err, "odd"), -EIO);
}

static void test_escaping(void **state)
{
	struct cube_err err = {0};

	(void)state;
	(void)cube_fail(&err, -EINVAL, "a\nb\x1b[31m c\td \x7f \xff \xc3\xa9 \xe2\x80\xae");
	assert_string_equal(err.text, "a\\x0ab\\x1b[31m c\\x09d \\x7f \\xff \xc3\xa9 \\xe2\\x80\\xae");
}

static void test_cut(void **state)
{
	struct cube_err err = {0};
	char text[2000];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	(void)cube_fail(&err, -EINVAL, "%s", text);
	assert_int_equal(strlen(err.text), CUBE_ERR_TEXT - 1);
	(void)cube_fail_in(&err, "front");
	assert_int_equal(strlen(err.text), CUBE_ERR_TEXT - 1);
	assert_memory_equal(err.text, "front: xxx", 10);
	(void)cube_fail_in(&err, "%s", text);
	assert_int_equal(err.code, -EINVAL);
}

/* A character or an escape is there as a whole or not at all. */
static void test_cut_between_characters(void **state)
{
	struct cube_err err = {0};
	char text[CUBE_ERR_TEXT + 8];

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text + CUBE_ERR_TEXT - 2, "\xc3\xa9", 3);
	(void)cube_fail(&err, -EINVAL, "%s", text);
	assert_int_equal(strlen(err.text), CUBE_ERR_TEXT - 2);
	memcpy(text + CUBE_ERR_TEXT - 4, "\nyy", 4);
	(void)cube_fail(&err, -EINVAL, "%s", text);
	assert_int_equal(strlen(err.text), CUBE_ERR_TEXT - 4);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(cube_errno_name(ENOENT), "ENOENT");
	assert_string_equal(cube_errno_name(-EDQUOT), "EDQUOT");
	assert_string_equal(cube_errno_name(0), "E?");
	assert_string_equal(cube_errno_name(99999), "E?");
	assert_string_equal(cube_errno_text(-ENOENT), "No such file or directory");
	assert_string_equal(cube_errno_text(99999), "Unknown error");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fail),
		cmocka_unit_test(test_context),
		cmocka_unit_test(test_context_of_nothing),
		cmocka_unit_test(test_own_text_as_argument),
		cmocka_unit_test(test_errno),
		cmocka_unit_test(test_escaping),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_cut_between_characters),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
