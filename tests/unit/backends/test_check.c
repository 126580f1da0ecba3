/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that are refused, ids, create lines. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/base/macros.h"
#include "backends/check.h"
#include "backends/registry.h"

/* ---- Tables ---- */

static void every_kind(void **state)
{
	(void)state;
	for (size_t i = 0; cube_backend_kinds[i] != NULL; i++) {
		struct cube_err err;

		if (cube_check_ops(cube_backend_kinds[i], &err) < 0)
			fail_msg("%s", err.text);
		assert_ptr_equal(cube_backend_find(cube_backend_kinds[i]->kind), cube_backend_kinds[i]);
	}
	assert_non_null(cube_backend_find("mem"));
	assert_null(cube_backend_find("no-such-kind"));
	assert_null(cube_backend_find(""));
}

#define CHANGE(field_)                                                                                       \
	{                                                                                                    \
		.what = #field_, .offset = offsetof(struct cube_backend_ops, field_)                         \
	}
static const struct {
	const char *what;
	size_t offset;
} pointers[] = {
	CHANGE(open),
	CHANGE(close),
	CHANGE(status),
	CHANGE(create),
	CHANGE(destroy),
	CHANGE(inspect),
	CHANGE(list),
	CHANGE(start),
	CHANGE(stop),
	CHANGE(pause),
	CHANGE(resume),
	CHANGE(limit),
	CHANGE(rename),
	CHANGE(adopt),
	CHANGE(let_go),
	CHANGE(link),
	CHANGE(root),
	CHANGE(usage),
	CHANGE(dial),
	CHANGE(listening),
	CHANGE(access),
	CHANGE(template_list),
	CHANGE(template_import),
	CHANGE(template_check),
	CHANGE(template_remove),
	CHANGE(template_config),
	CHANGE(template_commit),
	CHANGE(template_derive),
	CHANGE(template_keep),
};

static void expect_refused(const struct cube_backend_ops *ops, const char *word)
{
	struct cube_err err;

	assert_int_equal(cube_check_ops(ops, &err), -EINVAL);
	if (strstr(err.text, word) == NULL)
		fail_msg("'%s' does not say '%s'", err.text, word);
}

/* A table with everything, without one thing at a time. */
static void an_operation_is_missing(void **state)
{
	void (*const none)(void) = NULL;

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(pointers); i++) {
		struct cube_backend_ops ops = *cube_backend_find("mem");

		memcpy((char *)&ops + pointers[i].offset, &none, sizeof(none));
		expect_refused(&ops, pointers[i].what);
	}
}

static void a_capability_is_missing(void **state)
{
	static const struct {
		uint32_t cap;
		const char *word;
	} cases[] = {
		{CUBE_CAP_EXEC, "link"},           {CUBE_CAP_FILES, "root"},
		{CUBE_CAP_PAUSE, "pause"},         {CUBE_CAP_STOP, "start"},
		{CUBE_CAP_TEMPLATES, "template_"}, {CUBE_CAP_USAGE, "usage"},
		{CUBE_CAP_PORTS, "dial"},          {CUBE_CAP_RENAME, "rename"},
		{CUBE_CAP_ADOPT, "adopt"},         {CUBE_CAP_MEMORY | CUBE_CAP_PIDS, "limit"},
	};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		struct cube_backend_ops ops = *cube_backend_find("mem");

		ops.caps &= ~cases[i].cap;
		expect_refused(&ops, cases[i].word);
	}
}

static void other_tables(void **state)
{
	struct cube_backend_ops ops = *cube_backend_find("mem");

	(void)state;
	ops.abi++;
	expect_refused(&ops, "version");
	ops = *cube_backend_find("mem");
	ops.caps |= 1u << CUBE_CAP_COUNT;
	expect_refused(&ops, "unknown capabilities");
	ops = *cube_backend_find("mem");
	ops.kind = "../mem";
	expect_refused(&ops, "kind");
	ops = *cube_backend_find("mem");
	ops.summary = NULL;
	expect_refused(&ops, "summary");
	ops = *cube_backend_find("mem"); /* one of two limits is enough for `limit` */
	ops.caps &= ~(uint32_t)CUBE_CAP_MEMORY;
	assert_int_equal(cube_check_ops(&ops, NULL), 0);
}

static void capability_names(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CUBE_CAP_COUNT; i++) {
		assert_non_null(cube_cap_name(i));
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(cube_cap_name(i), cube_cap_name(j));
	}
	assert_string_equal(cube_cap_name(0), "exec");
	assert_string_equal(cube_cap_name(13), "users");
	assert_string_equal(cube_cap_name(14), "rename");
	assert_string_equal(cube_cap_name(16), "volumes");
	assert_string_equal(cube_cap_name(17), "bind");
	assert_null(cube_cap_name(CUBE_CAP_COUNT));
}

/* ---- Ids ---- */

static void ids(void **state)
{
	static const char *const good[] = {"a", "mem-0123", "A.b_c:d-9", "-x", "i:1"};
	static const char *const bad[] = {"", ".", "..", ".a", "a/b", "a b", "a\n", "\xc3\xa4", "a%"};
	char edge[CUBE_ID_MAX + 2];

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(good); i++)
		assert_true(cube_check_id(good[i]));
	for (size_t i = 0; i < CUBE_COUNT(bad); i++)
		assert_false(cube_check_id(bad[i]));
	assert_false(cube_check_id(NULL));
	memset(edge, 'x', sizeof(edge));
	edge[CUBE_ID_MAX + 1] = '\0';
	assert_false(cube_check_id(edge));
	edge[CUBE_ID_MAX] = '\0';
	assert_true(cube_check_id(edge));
}

/* ---- Create lines ---- */

static const char *const own_keys[] = {"flavour", NULL};
static const struct cube_backend_ops plain_ops = {.kind = "plain", .caps = CUBE_CAP_MEMORY, .keys = own_keys};
static const struct cube_backend plain = {.ops = &plain_ops, .name = "p", .caps = CUBE_CAP_MEMORY};

static struct cube_spec line(void)
{
	return (struct cube_spec){.uid = "0123456789abcdef", .name = "box"};
}

static void expect_line(const struct cube_spec *spec, int code, const char *word)
{
	struct cube_err err = {.code = 0};
	int r = cube_check_mark(spec, &err);

	if (r == 0)
		r = cube_check_spec(&plain, spec, &err);
	assert_int_equal(r, code);
	if (code < 0 && strstr(err.text, word) == NULL)
		fail_msg("'%s' does not say '%s'", err.text, word);
}

static void marks(void **state)
{
	static const char *const bad[] = {
		NULL, "", "0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF", "0123456789abcdeg"};
	struct cube_spec spec = line();

	(void)state;
	expect_line(&spec, 0, "");
	for (size_t i = 0; i < CUBE_COUNT(bad); i++) {
		spec.uid = bad[i];
		expect_line(&spec, -EINVAL, "mark");
	}
	spec = line();
	spec.name = "a/b";
	expect_line(&spec, -EINVAL, "name");
}

static void words(void **state)
{
	const struct cube_pair good_env = {"A_1", "x=y"}, bad_env = {"1A", ""};
	struct cube_spec spec = line();

	(void)state;
	spec.template = "ds:v1";
	spec.env = &good_env;
	spec.n_env = 1;
	expect_line(&spec, 0, "");
	spec.env = &bad_env;
	expect_line(&spec, -EINVAL, "1A");
	spec.n_env = 0;
	spec.template = "a/b";
	expect_line(&spec, -EINVAL, "a/b");
}

static void keys(void **state)
{
	const struct cube_pair extra[] = {{"flavour", "x"}, {"colour", "x"}};
	struct cube_spec spec = line();

	(void)state;
	spec.extra = extra;
	spec.n_extra = 1;
	expect_line(&spec, 0, "");
	spec.n_extra = 2;
	expect_line(&spec, -EINVAL, "colour");
}

static void limits(void **state)
{
	struct cube_spec spec = line();

	(void)state;
	spec.limits.memory = 1;
	expect_line(&spec, 0, "");
	spec.limits.pids = 1;
	expect_line(&spec, -EOPNOTSUPP, "pids");
	spec = line();
	spec.limits.cpus_milli = 1;
	expect_line(&spec, -EOPNOTSUPP, "cpus");
	spec = line();
	spec.limits.disk = 1;
	expect_line(&spec, -EOPNOTSUPP, "disk");
	spec = line();
	spec.net = CUBE_NET_OPEN;
	expect_line(&spec, -EOPNOTSUPP, "network");
}

/* ---- Answers ---- */

static void infos(void **state)
{
	struct cube_info info = {
		.id = "a", .uid = "0123456789abcdef", .state = CUBE_IS_PAUSED, .reason = "a\nb"};

	(void)state;
	assert_true(cube_check_info(&info));
	assert_string_equal(info.reason, "a?b");
	memcpy(info.uid, "somebody else's", 16);
	assert_true(cube_check_info(&info));
	assert_string_equal(info.uid, "");
	info.state = (enum cube_state)9;
	assert_false(cube_check_info(&info));
	info.state = CUBE_IS_RUNNING;
	memset(info.id, 'a', sizeof(info.id)); /* without an end */
	assert_true(cube_check_info(&info));
	assert_int_equal(strlen(info.id), CUBE_ID_MAX);
	memcpy(info.id, "a/b", 4);
	assert_false(cube_check_info(&info));
}

static void roots(void **state)
{
	static const char *const bad[] = {"", "/", "workspace", "/a/", "/a//b", "/a/../b", "/./a/./b"};
	struct cube_root root = {.fd = 0, .id_count = 1, .n_mounts = 1, .mounts[0] = {.path = "/workspace"}};

	(void)state;
	assert_true(cube_check_root(&root));
	for (size_t i = 0; i < CUBE_COUNT(bad); i++) {
		memcpy(root.mounts[0].path, bad[i], strlen(bad[i]) + 1);
		assert_false(cube_check_root(&root));
	}
	memset(root.mounts[0].path, '/', sizeof(root.mounts[0].path));
	assert_false(cube_check_root(&root));
	root.n_mounts = CUBE_MOUNTS_MAX + 1;
	assert_false(cube_check_root(&root));
	root.n_mounts = 0;
	root.fd = -1;
	assert_false(cube_check_root(&root));
	root.fd = 0;
	root.id_count = 0;
	assert_false(cube_check_root(&root));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind),
		cmocka_unit_test(an_operation_is_missing),
		cmocka_unit_test(a_capability_is_missing),
		cmocka_unit_test(other_tables),
		cmocka_unit_test(capability_names),
		cmocka_unit_test(ids),
		cmocka_unit_test(marks),
		cmocka_unit_test(words),
		cmocka_unit_test(keys),
		cmocka_unit_test(limits),
		cmocka_unit_test(infos),
		cmocka_unit_test(roots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
