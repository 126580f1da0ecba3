/* SPDX-License-Identifier: Apache-2.0 */
/* Steps and Dockerfiles as lists of steps. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/recipe.h"

static struct cube_recipe parse(const char *text)
{
	struct cube_recipe r;
	struct cube_err err;

	if (cube_recipe_parse(text, strlen(text), true, &r, &err) < 0)
		fail_msg("%s", err.text);
	return r;
}

static void step_is(const struct cube_recipe *r, size_t n, enum cube_step_kind kind, unsigned line,
		    const char *text, size_t len)
{
	assert_true(n < r->n);
	assert_int_equal(r->steps[n].kind, kind);
	assert_int_equal(r->steps[n].line, line);
	assert_int_equal(r->steps[n].text.len, len);
	assert_memory_equal(cube_buf_str(&r->steps[n].text), text, len);
}
#define STEP_IS(r, n, kind, line, text) step_is(r, n, kind, line, text, sizeof(text) - 1)

static void refused(const char *text, int code, const char *word)
{
	struct cube_recipe r;
	struct cube_err err = {0};

	assert_int_equal(cube_recipe_parse(text, strlen(text), true, &r, &err), code);
	if (strstr(err.text, word) == NULL)
		fail_msg("'%s' does not say '%s'", err.text, word);
	assert_null(r.steps);
	assert_int_equal(r.n, 0);
}

static void steps(void **state)
{
	struct cube_recipe r = parse("# of steps\n\nfrom base:1\nrun echo 'a  b' \\\n  c\nenv A=\"x y\"\n"
				     "copy /a '/b c'\nuser me:2\nnet open\napt one two\nworkdir /w");

	(void)state;
	assert_false(r.docker);
	assert_false(r.context);
	assert_int_equal(r.n, 8);
	STEP_IS(&r, 0, CUBE_STEP_FROM, 3, "base:1");
	STEP_IS(&r, 1, CUBE_STEP_RUN, 4, "echo 'a  b' \n  c");
	STEP_IS(&r, 2, CUBE_STEP_ENV, 6, "A=x y");
	STEP_IS(&r, 3, CUBE_STEP_COPY, 7, "/a\0");
	assert_string_equal(r.steps[3].to, "/b c");
	STEP_IS(&r, 4, CUBE_STEP_USER, 8, "me:2");
	STEP_IS(&r, 5, CUBE_STEP_NET, 9, "open");
	assert_non_null(
		strstr(cube_buf_str(&r.steps[6].text), "install --no-install-recommends 'one' 'two'"));
	STEP_IS(&r, 7, CUBE_STEP_WORKDIR, 11, "/w");
	cube_recipe_done(&r);
}

/* What is not ended yet is not looked at. */
static void unfinished(void **state)
{
	static const char text[] = "from a\nfrobni";
	struct cube_recipe r;
	struct cube_err err;

	(void)state;
	assert_int_equal(cube_recipe_parse(text, strlen(text), false, &r, &err), 0);
	assert_int_equal(r.n, 1);
	cube_recipe_done(&r);
	assert_int_equal(cube_recipe_parse("", 0, true, &r, &err), 0);
	assert_int_equal(r.n, 0);
	refused(text, -EINVAL, "line 2: 'frobni'");
}

static void docker(void **state)
{
	struct cube_recipe r = parse("ARG V=1\nfrom x:$V AS y\nENV A=b C=\"$A ${N:-o}\" D='$A'\nENV E f g\n"
				     "WORKDIR /w\nWORKDIR v\nCOPY a b ./\nRUN one && \\\n# no\n\n  two\n"
				     "RUN [\"x\", \"y z\"]\nCMD [\"p\"]\nENTRYPOINT q $A\nLABEL a=b\n");

	(void)state;
	assert_true(r.docker);
	assert_true(r.context);
	assert_int_equal(r.n, 13);
	STEP_IS(&r, 0, CUBE_STEP_FROM, 2, "x:1");
	STEP_IS(&r, 1, CUBE_STEP_ENV, 3, "A=b");
	STEP_IS(&r, 2, CUBE_STEP_ENV, 3, "C= o"); /* a line's variables are those of the lines before */
	STEP_IS(&r, 3, CUBE_STEP_ENV, 3, "D=$A");
	STEP_IS(&r, 4, CUBE_STEP_ENV, 4, "E=f g");
	STEP_IS(&r, 5, CUBE_STEP_WORKDIR, 5, "/w");
	STEP_IS(&r, 6, CUBE_STEP_WORKDIR, 6, "/w/v");
	STEP_IS(&r, 7, CUBE_STEP_COPY, 7, "a\0b\0");
	assert_string_equal(r.steps[7].to, "/w/v/./");
	STEP_IS(&r, 8, CUBE_STEP_RUN, 8, "one &&   two");
	assert_int_equal(r.steps[8].env.len, 4);
	assert_string_equal(r.steps[8].env.data, "V=1");
	STEP_IS(&r, 9, CUBE_STEP_RUN, 12, "x\0y z\0");
	assert_true(r.steps[9].argv);
	STEP_IS(&r, 10, CUBE_STEP_CMD, 13, "p\0");
	STEP_IS(&r, 11, CUBE_STEP_ENTRYPOINT, 14, "/bin/sh\0-c\0q $A\0");
	STEP_IS(&r, 12, CUBE_STEP_NOTE, 15, "LABEL");
	cube_recipe_done(&r);
}

static void refusals(void **state)
{
	(void)state;
	refused("run x\n", -EINVAL, "from TEMPLATE");
	refused("from a\nfrom b\n", -EINVAL, "line 2");
	refused("from\n", -EINVAL, "line 1: from takes 1");
	refused("from a\ncopy /a /workspace\n", -EINVAL, "line 2: /workspace");
	refused("from a\nenv =x\n", -EINVAL, "NAME=VALUE");
	refused("from a\nuser a/b\n", -EINVAL, "no user");
	refused("from a\npip \"a'b\"\n", -EINVAL, "no name of a package");
	refused("from a\nbrew x\n", -EOPNOTSUPP, "line 2: brew");
	refused("FROM a\nCOPY a\n", -EINVAL, "line 2");
	refused("FROM a\nCOPY a b c\n", -EINVAL, "ends in /");
	refused("FROM a\nENV A=${B:?x}\n", -EINVAL, "cannot be replaced");
	refused("FROM a\nUSER\n", -EINVAL, "lacks");
	refused("FROM a b\n", -EINVAL, "line 1");
	refused("RUN x\n", -EINVAL, "FROM stands before");
}

/* More steps than there may be are refused as a whole. */
static void many(void **state)
{
	struct cube_buf text = CUBE_BUF(65536);

	(void)state;
	cube_buf_adds(&text, "from a\n");
	for (unsigned i = 0; i < CUBE_RECIPE_STEPS; i++)
		cube_buf_adds(&text, "run x\n");
	refused(cube_buf_str(&text), -EINVAL, "more than 512 steps");
	cube_buf_done(&text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps),    cmocka_unit_test(unfinished), cmocka_unit_test(docker),
		cmocka_unit_test(refusals), cmocka_unit_test(many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
