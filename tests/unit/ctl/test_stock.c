/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: lines, what is kept and taken, failures, the end of the daemon. */
#include "tests/unit/ctl/stage.h"

#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/stock_priv.h"

static struct cube_stock *pool(struct stage *s, const char *name)
{
	struct cube_stock *p = NULL;

	cube_domain_enter(s->d);
	if (cube_stock_find(s->d->default_service, name) == NULL)
		assert_int_equal(cube_stock_create(s->d->default_service, name, &p, &s->err), 0);
	p = cube_stock_find(s->d->default_service, name);
	cube_domain_leave(s->d);
	return p;
}

static void size(struct stage *s, struct cube_stock *p, const char *text)
{
	cube_domain_enter(s->d);
	assert_int_equal(cube_stock_set_size(p, text, &s->err), 0);
	cube_domain_leave(s->d);
}

static int template(struct stage *s, struct cube_stock *p, const char *text)
{
	cube_domain_enter(s->d);
	int r = cube_stock_set_template(p, text, &s->err);
	cube_domain_leave(s->d);
	return r;
}

static bool is_full(void *ctx)
{
	const struct cube_stock *p = ctx;

	return cube_stock_ready(p) == p->max && cube_stock_making(p) == 0;
}

static bool is_failing(void *ctx)
{
	return ((const struct cube_stock *)ctx)->failures > 0;
}

static void full(struct stage *s, struct cube_stock *p)
{
	assert_true(stage_until(s, is_full, p));
}

/* Only then does it know that there is no such template. */
static bool is_listed(void *ctx)
{
	return cube_service_listed(((struct cube_stock *)ctx)->service);
}

static void refused_lines(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *part;
	} cases[] = {
		{"x", -EINVAL, "'x' is no key=value"},
		{"=x", -EINVAL, "no key=value"},
		{"pool=q", -EINVAL, "not made from a pool"},
		{"backend=moon", -EINVAL, "this pool is of backend 'mem'"},
		{"env.A=1 env.A=2", -EINVAL, "given twice"},
		{"memory=1", -EINVAL, "memory=1"},
		{"cpus=1", -EOPNOTSUPP, "cpus"},
		{"template=none", -ENOENT, "no template 'none'"},
		{"env.A='", -EINVAL, "quote"},
		{"env.A=1\nenv.B=2", -EINVAL, "one line"},
	};
	struct stage *s = *state;
	struct cube_stock *p = pool(s, "p");

	assert_true(stage_until(s, is_listed, p));
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		int r = template(s, p, cases[i].text);

		if (r != cases[i].code || strstr(s->err.text, cases[i].part) == NULL)
			fail_msg("'%s': %s '%s'", cases[i].text, cube_errno_name(r), s->err.text);
		assert_string_equal(p->template, "");
	}
	assert_int_equal(template(s, p, "backend=mem env.A='a b' label.x=y # all of it"), 0);
}

static void taken(void **state)
{
	struct stage *s = *state;
	struct cube_stock *p = pool(s, "p");
	struct cube_cube *c;
	char *out = NULL;

	assert_int_equal(template(s, p, "env.A=template env.B=template label.x=template"), 0);
	size(s, p, "2");
	full(s, p);
	assert_int_equal(cube_map_count(s->d->by_name), 0);
	c = stage_make(s, "one pool=p env.B=mine label.y=mine");
	assert_string_equal(s->answer, "name=one");
	assert_string_equal(c->pool, "p");
	assert_false(c->pool_cold);
	assert_string_equal(cube_map_get(c->labels, "x"), "template");
	assert_string_equal(cube_map_get(c->labels, "y"), "mine");
	assert_int_equal(stage_exec(s, c, NULL, "hostname; echo $A $B", &out), 0);
	assert_string_equal(out, "one\ntemplate mine\n");
	cube_free(out);
	full(s, p);
	assert_int_equal(stage_verb(s, CUBE_SCOPE_POOL, p, "drain"), 0);
	assert_int_equal(cube_stock_ready(p), 0);
	c = stage_make(s, "two pool=p");
	assert_string_equal(s->answer, "name=two pool=cold");
	assert_true(c->pool_cold);
	assert_int_equal(stage_verb(s, CUBE_SCOPE_POOL, p, "refill"), 0);
	assert_int_equal(cube_stock_ready(p), 2);
	assert_int_equal(stage_root(s, "create two pool=p"), -EEXIST);
	assert_int_equal(stage_root(s, "create three pool=p memory=64M"), -EINVAL);
	assert_int_equal(stage_root(s, "create three pool=none"), -ENOENT);
	assert_int_equal(cube_stock_ready(p), 2);
	assert_int_equal(stage_root(s, "destroy one"), 0);
	assert_int_equal(stage_root(s, "destroy two"), 0);
}

/* What is kept of a template keeps it from being removed; a pool that goes lets it go. */
static void removed(void **state)
{
	struct stage *s = *state;
	struct cube_stock *p = pool(s, "p");

	size(s, p, "3");
	full(s, p);
	cube_domain_enter(s->d);
	cube_stock_ref(p);
	assert_int_equal(cube_stock_remove(p, &s->err), 0);
	assert_null(cube_stock_find(s->d->default_service, "p"));
	assert_int_equal(cube_stock_remove(p, &s->err), -ENOENT);
	assert_int_equal(cube_stock_set_size(p, "1", &s->err), -ENOENT);
	cube_stock_unref(p);
	cube_domain_leave(s->d);
}

/* In order and killed: what was asked for is there again, and as much is kept. */
static void again(void **state)
{
	struct stage *s = *state;
	struct cube_stock *p = pool(s, "p");

	assert_int_equal(template(s, p, "label.x='\xff \"1\"'"), 0);
	size(s, p, "1 3");
	full(s, p);
	for (unsigned i = 0; i < 2; i++) {
		if (i == 0)
			stage_down(s);
		else
			stage_killed(s);
		stage_up(s);
		p = pool(s, "p");
		assert_string_equal(p->template, "label.x='\xff \"1\"'");
		assert_int_equal(p->min, 1);
		assert_int_equal(p->max, 3);
		full(s, p);
		assert_int_equal(p->failures, 0);
		assert_int_equal(cube_map_count(s->d->by_name), 0);
	}
}

static void failures(void **state)
{
	struct stage s;
	struct cube_stock *p;

	(void)state;
	stage_open(&s, "[backend mem]\nfail = create:EHOSTUNREACH:1\n");
	p = pool(&s, "p");
	size(&s, p, "1");
	assert_true(stage_until(&s, is_failing, p));
	cube_domain_enter(s.d);
	assert_int_equal(p->failure.code, -EHOSTUNREACH);
	assert_string_equal(cube_stock_state(p), "failing");
	assert_true(p->again_wall > 0);
	assert_int_equal(cube_stock_making(p), 0);
	cube_domain_leave(s.d);
	full(&s, p); /* the second attempt comes by itself */
	assert_int_equal(p->failures, 0);
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(refused_lines, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(taken, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(removed, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(again, stage_setup, stage_teardown),
		cmocka_unit_test(failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
