/* SPDX-License-Identifier: Apache-2.0 */
/* The section of an instance of `mem`: capabilities switched off, faults, a quota. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/registry.h"
#include "tests/unit/backends/stage.h"

static void stage_with(struct stage *s, const char *conf)
{
	struct cube_err err;

	if (stage_open(s, cube_backend_find("mem"), conf, &err) < 0)
		fail_msg("%s: %s", conf, err.text);
}

static void refused(void **state)
{
	static const struct {
		const char *conf, *word;
	} cases[] = {
		{"colour = red", "colour"},        {"caps = exec, flying", "flying"},
		{"caps = -disk", "disk"},          {"caps = exe", "exe"},
		{"max_sandboxes = many", "many"},  {"fail = create", "create"},
		{"fail = explode:EIO", "explode"}, {"lose = create:NOSUCH", "NOSUCH"},
		{"delay = create:soon", "soon"},
	};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		struct stage s;
		struct cube_err err;

		assert_int_equal(stage_open(&s, cube_backend_find("mem"), cases[i].conf, &err), -EINVAL);
		if (strstr(err.text, cases[i].word) == NULL)
			fail_msg("'%s' does not say '%s'", err.text, cases[i].word);
	}
}

static void taken(void **state)
{
	static const char *const confs[] = {"kind = mem\ndefault = yes",
					    "caps =", "fail =", "max_sandboxes = 0"};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(confs); i++) {
		struct stage s;

		stage_with(&s, confs[i]);
		assert_int_equal(s.b->caps, cube_backend_find("mem")->caps);
		stage_close(&s);
	}
}

static void capabilities(void **state)
{
	static const struct {
		const char *conf;
		uint32_t caps;
	} cases[] = {
		{"caps = exec", CUBE_CAP_EXEC},
		{"caps = exec, files", CUBE_CAP_EXEC | CUBE_CAP_FILES},
		{"caps = exec files -exec", CUBE_CAP_FILES},
	};
	struct stage s;
	struct cube_err err;

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		stage_with(&s, cases[i].conf);
		assert_int_equal(s.b->caps, cases[i].caps);
		assert_int_equal(cube_backend_need(s.b, CUBE_CAP_PAUSE, &err), -EOPNOTSUPP);
		assert_non_null(strstr(err.text, "switched off by caps"));
		stage_close(&s);
	}
	stage_with(&s, "caps = -pause");
	assert_int_equal(s.b->caps, cube_backend_find("mem")->caps & ~(uint32_t)CUBE_CAP_PAUSE);
	stage_close(&s);
}

static void quota(void **state)
{
	char uid[17];
	struct cube_spec spec;
	struct cube_err err;
	struct stage s;
	char *first, *id = NULL;

	(void)state;
	stage_with(&s, "max_sandboxes = 1");
	first = stage_create(&s, NULL);
	spec = stage_spec(uid);
	assert_int_equal(cube_backend_create(s.b, &spec, NULL, &id, &err), -EDQUOT);
	assert_non_null(strstr(err.text, "max_sandboxes"));
	assert_int_equal(cube_backend_destroy(s.b, first, NULL), 0);
	assert_int_equal(cube_backend_create(s.b, &spec, NULL, &id, &err), 0);
	cube_free(first);
	cube_free(id);
	stage_close(&s);
}

static void faults(void **state)
{
	char uid[17];
	struct cube_spec spec = stage_spec(uid);
	struct cube_status st;
	struct cube_err err;
	struct stage s;
	uint64_t from;
	char *id = NULL;

	(void)state;
	stage_with(&s, "fail = create:EHOSTUNREACH:1\nlose = create:ETIMEDOUT:1\ndelay = status:50");
	assert_int_equal(cube_backend_create(s.b, &spec, NULL, &id, &err), -EHOSTUNREACH);
	assert_int_equal(cube_backend_create(s.b, &spec, NULL, &id, &err), 0);
	assert_true(stage_listed(&s, id));
	from = cube_clock_mono();
	assert_int_equal(cube_backend_status(s.b, NULL, &st, &err), 0);
	assert_true(cube_clock_mono() - from >= UINT64_C(50000000));
	cube_free(id);
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused), cmocka_unit_test(taken),  cmocka_unit_test(capabilities),
		cmocka_unit_test(quota),   cmocka_unit_test(faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
