/* SPDX-License-Identifier: Apache-2.0 */
/* The section [files] of the configuration. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fs/fuse/fuse.h"

static int keeps(const char *text, struct cube_err *err)
{
	struct cube_conf *conf;
	enum cube_fuse_keeps keep = CUBE_FUSE_KEEPS_ASKED;
	int r;

	assert_int_equal(cube_conf_parse(text, strlen(text), "conf", &conf, err), 0);
	r = cube_fuse_conf(conf, &keep, err);
	cube_conf_free(conf);
	return r < 0 ? r : (int)keep;
}

static void test_on_unless_set(void **state)
{
	struct cube_err err;
	enum cube_fuse_keeps keep = CUBE_FUSE_KEEPS_NOTHING;

	(void)state;
	assert_int_equal(cube_fuse_conf(NULL, &keep, &err), 0);
	assert_int_equal(keep, CUBE_FUSE_KEEPS_IF_IT_CAN);
	assert_int_equal(keeps("", &err), CUBE_FUSE_KEEPS_IF_IT_CAN);
	assert_int_equal(keeps("[daemon]\njobs_kept = 3\n", &err), CUBE_FUSE_KEEPS_IF_IT_CAN);
	assert_int_equal(keeps("[files]\n", &err), CUBE_FUSE_KEEPS_IF_IT_CAN);
	assert_int_equal(keeps("[files]\nkeep = no\n", &err), CUBE_FUSE_KEEPS_NOTHING);
	assert_int_equal(keeps("[files]\nkeep = yes\n", &err), CUBE_FUSE_KEEPS_ASKED);
}

static void test_refused(void **state)
{
	struct cube_err err;

	(void)state;
	assert_int_equal(keeps("[files]\nkeep = perhaps\n", &err), -EINVAL);
	assert_non_null(strstr(err.text, "keep=perhaps"));
	assert_int_equal(keeps("[files]\nkept = yes\n", &err), -EINVAL);
	assert_non_null(strstr(err.text, "kept"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_on_unless_set),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
