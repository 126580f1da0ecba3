/* SPDX-License-Identifier: Apache-2.0 */
/* mkdir, rmdir and mv as verbs: the tree's own operations, by path; what a path may not be. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "ctl/cube.h"
#include "ctl/verb.h"
#include "tests/unit/tree/rig.h"

static int up(void **state)
{
	int code = rig_up(state);

	rig_cube("dev");
	return code;
}

static struct rig_call call;

/* The sentence of a verb that is refused. */
static const char *answer(const char *path, const char *line, int code)
{
	struct cube_handle *h;

	assert_int_equal(rig_open(path, O_RDWR, &h), 0);
	assert_int_equal(rig_write(h, line), code);
	rig_read(&call, h, 0);
	rig_release(h);
	return call.out;
}

static void check_root(void **state)
{
	(void)state;
	assert_int_equal(rig_echo("mkdir a", "ctl"), 0);
	assert_int_equal(rig_lookup("a"), 0);
	assert_int_equal(rig_echo("wait running", "a/ctl"), 0);
	assert_int_equal(rig_echo("mkdir a", "ctl"), -EEXIST);
	assert_int_equal(rig_echo("mv a b", "ctl"), 0);
	assert_int_equal(rig_lookup("a"), -ENOENT);
	assert_int_equal(rig_lookup("b"), 0);
	assert_int_equal(rig_echo("mv b dev", "ctl"), -EEXIST);
	assert_int_equal(rig_echo("mv a c", "ctl"), -ENOENT);
	assert_int_equal(rig_echo("mv b ctl", "ctl"), -EEXIST);
	assert_int_equal(rig_echo("mkdir 'bad name'", "ctl"), -EINVAL);
	/* Deeper, and what surrounds a word does not matter. */
	assert_int_equal(rig_echo("mkdir ./b//jobs/x/", "ctl"), 0);
	assert_int_equal(rig_lookup("b/jobs/x"), 0);
	assert_int_equal(rig_echo("rmdir b/jobs/x/.", "ctl"), 0);
	assert_int_equal(rig_lookup("b/jobs/x"), -ENOENT);
	assert_int_equal(rig_echo("rmdir b", "ctl"), 0);
	assert_int_equal(rig_lookup("b"), -ENOENT);
	assert_int_equal(rig_echo("rmdir b", "ctl"), -ENOENT);
}

static void check_cube(void **state)
{
	(void)state;
	assert_int_equal(rig_echo("mkdir jobs/build", "dev/ctl"), 0);
	assert_int_equal(rig_lookup("dev/jobs/build"), 0);
	assert_int_equal(rig_echo("mkdir jobs/7", "dev/ctl"), -EINVAL);
	assert_int_equal(rig_echo("mv jobs/build jobs/other", "dev/ctl"), -EPERM);
	assert_int_equal(rig_echo("rmdir jobs/build", "dev/ctl"), 0);
	assert_int_equal(rig_echo("mkdir sessions/s", "dev/ctl"), 0);
	assert_int_equal(rig_lookup("dev/sessions/s/exec"), 0);
	assert_int_equal(rig_echo("rmdir sessions/s", "dev/ctl"), 0);
	assert_int_equal(rig_echo("rmdir sessions/main", "dev/ctl"), -EBUSY);
	assert_int_equal(rig_echo("rmdir sessions", "dev/ctl"), -EPERM);
	assert_int_equal(rig_echo("rmdir status", "dev/ctl"), -ENOTDIR);
	assert_int_equal(rig_echo("mkdir other", "dev/ctl"), -ENOENT);
}

static void check_refused(void **state)
{
	static const struct {
		const char *line;
		int code;
	} bad[] = {
		{"mkdir /x", -EINVAL},          {"mkdir ..", -EINVAL},          {"mkdir ../x", -EINVAL},
		{"mkdir jobs/../x", -EINVAL},   {"mkdir jobs/..", -EINVAL},     {"mkdir ''", -EINVAL},
		{"mkdir .", -EINVAL},           {"mkdir ./", -EINVAL},          {"mkdir", -EINVAL},
		{"mkdir a b", -EINVAL},         {"mv jobs", -EINVAL},           {"mv jobs /x", -EINVAL},
		{"mv jobs jobs/../y", -EINVAL}, {"rmdir workspace/x", -ELOOP},  {"mkdir status/x", -ENOTDIR},
		{"mkdir none/x", -ENOENT},      {"rmdir jobs/none/x", -ENOENT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (rig_echo(bad[i].line, "dev/ctl") != bad[i].code)
			fail_msg("'%s' is not refused with %d", bad[i].line, bad[i].code);
	assert_non_null(strstr(answer("dev/ctl", "mkdir ../x\n", -EINVAL), "'../x'"));
	assert_non_null(strstr(answer("dev/ctl", "mkdir none/x\n", -ENOENT), "mkdir 'none/x'"));
	assert_non_null(strstr(answer("ctl", "mv dev/jobs dev/x\n", -EPERM), "mv 'dev/jobs' 'dev/x'"));
	/* A long name, in a path and at its end. */
	char line[400] = "mkdir jobs/";

	memset(line + strlen(line), 'x', 300);
	assert_int_equal(rig_echo(line, "dev/ctl"), -ENAMETOOLONG);
}

/* What the verb makes can be looked up and forgotten like anything else; nothing is counted twice. */
static void check_counts(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(rig_echo("mkdir dev/jobs/again", "ctl"), 0);
		assert_int_equal(rig_lookup("dev/jobs/again/cmd"), 0);
		assert_int_equal(rig_echo("rmdir dev/jobs/again", "ctl"), 0);
	}
}

/* It waits as the command does: a session needs the sandbox running. */
static void check_waits(void **state)
{
	(void)state;
	assert_int_equal(rig_echo("mkdir slow", "ctl"), 0);
	assert_int_equal(rig_echo("mkdir slow/sessions/s", "ctl"), 0);
	assert_int_equal(rig_lookup("slow/sessions/s/exec"), 0);
	assert_int_equal(rig_echo("rmdir slow", "ctl"), 0);
	/* Left to itself. */
	assert_int_equal(rig_echo("mkdir dev/jobs/b &", "ctl"), 0);
	assert_int_equal(rig_echo("rmdir dev/jobs/b &", "ctl"), 0);
	assert_int_equal(rig_echo("rmdir nowhere/x &", "ctl"), -ENOENT);
	assert_int_equal(rig_echo("mkdir jobs/b &", "dev/ctl"), 0);
	assert_non_null(strstr(rig_cat("ctl"), "done mkdir ok\n"));
	assert_non_null(strstr(rig_cat("dev/status"), "done mkdir ok\n"));
}

static int ended;

static void call_ended(struct cube_verb_call *v, int code)
{
	(void)v;
	ended = code;
}

/* Under the lock nothing can come between: it is being created, the verb waits, and is called off. */
static void check_called_off(void **state)
{
	static struct cube_verb_call verb;
	struct cube_cube *c = NULL;

	(void)state;
	ended = 1;
	cube_domain_enter(rig.domain);
	assert_int_equal(cube_cube_create(rig.domain, &verb.by, "slow", NULL, 0, &c, NULL), 0);
	verb = (struct cube_verb_call){
		.domain = rig.domain, .scope = CUBE_SCOPE_CUBE, .object = c, .done = call_ended};
	cube_verb_start(&verb, "mkdir sessions/s", 16);
	assert_int_equal(ended, 1);
	cube_verb_cancel(&verb);
	assert_int_equal(ended, -EINTR);
	cube_domain_leave(rig.domain);
	assert_int_equal(rig_echo("wait running", "slow/ctl"), 0);
	assert_int_equal(rig_lookup("slow/sessions/s"), -ENOENT);
	rig_gone("slow");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_root),    cmocka_unit_test(check_cube),
		cmocka_unit_test(check_refused), cmocka_unit_test(check_counts),
		cmocka_unit_test(check_waits),   cmocka_unit_test(check_called_off),
	};

	return cmocka_run_group_tests(tests, up, rig_down);
}
