/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration as the domain takes it: backends, the default one, settings; and what is refused. */
#include "tests/unit/ctl/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/file.h"
#include "ctl/ctl_priv.h"

static int try(const char *text, struct cube_err *err)
{
	struct cube_domain_options o = {.loop = cube_loop_new()};
	char dir[] = "/tmp/cubefs-services-XXXXXX";
	struct cube_domain *d = NULL;
	struct cube_conf *conf;
	int r;

	assert_non_null(o.loop);
	assert_non_null(mkdtemp(dir));
	assert_int_equal(cube_conf_parse(text, strlen(text), "test.conf", &conf, err), 0);
	o.state_dir = dir;
	o.conf = conf;
	r = cube_domain_open(&o, &d, err);
	if (r == 0)
		cube_domain_close(d);
	cube_loop_free(o.loop);
	cube_conf_free(conf);
	assert_int_equal(cube_file_remove_tree(AT_FDCWD, dir), 0);
	return r;
}

static void refused(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *part;
	} cases[] = {
		{"[backend x]\nkind=moon\n", -EINVAL, "no kind 'moon'"},
		{"[backend mars]\n", -EINVAL, "no kind 'mars'"},
		{"[backend .x]\nkind=mem\n", -EINVAL, "'.x' is no name"},
		{"[backend x]\nkind=mem\ndefault=perhaps\n", -EINVAL, "default=perhaps"},
		{"[backend x]\nkind=mem\ndefault=yes\n[backend y]\nkind=mem\ndefault=yes\n", -EINVAL,
		 "both the default"},
		{"[backend x]\nkind=mem\nnosuchkey=1\n", -EINVAL, "nosuchkey"},
		{"[daemon]\njobs_kept=none\n[backend x]\nkind=mem\n", -EINVAL, "[daemon]: jobs_kept=none"},
		{"[daemon]\nspeed=fast\n[backend x]\nkind=mem\n", -EINVAL, "no setting 'speed'"},
		{"[daemon]\noutput_limit=1\n[backend x]\nkind=mem\n", -EINVAL, "output_limit=1"},
	};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		struct cube_err err = {0};
		int r = try(cases[i].text, &err);

		if (r != cases[i].code || strstr(err.text, cases[i].part) == NULL)
			fail_msg("case %zu: %s '%s'", i, cube_errno_name(r), err.text);
	}
}

static void taken(void **state)
{
	struct cube_service *first, *second;
	struct stage s;

	(void)state;
	stage_open(&s, "[daemon]\njobs_kept=7\noutput_limit=1M\nspool_limit=2M\nexit_patience=9\n"
		       "[backend one]\nkind=mem\n[backend mem]\ndefault=yes\n");
	assert_int_equal(s.d->jobs_kept, 7);
	assert_int_equal(s.d->output_limit, 1 << 20);
	assert_int_equal(s.d->spool_limit, 2 << 20);
	assert_int_equal(s.d->exit_patience_s, 9);
	cube_domain_enter(s.d);
	first = cube_list_entry(s.d->services.next, struct cube_service, link);
	second = cube_list_entry(s.d->services.next->next, struct cube_service, link);
	assert_string_equal(first->backend->name, "mem"); /* the default stands first */
	assert_string_equal(second->backend->name, "one");
	assert_ptr_equal(s.d->default_service, first);
	assert_true(first->seq < second->seq);
	assert_ptr_equal(cube_domain_service(s.d, "one"), second);
	assert_null(cube_domain_service(s.d, "two"));
	cube_domain_leave(s.d);
	struct cube_cube *c = stage_make(&s, "dev backend=one");

	assert_ptr_equal(c->service, second);
	c = stage_make(&s, "other");
	assert_ptr_equal(c->service, first);
	cube_domain_enter(s.d);
	assert_ptr_equal(cube_service_cube(first, c->uid), c);
	assert_null(cube_service_cube(second, c->uid));
	cube_domain_leave(s.d);
	stage_close(&s);
}

/* A sandbox whose backend is not configured any more is named and kept for the day it is again. */
static void backend_that_left(void **state)
{
	static const char without[] = "[backend mem]\nkind=mem\n",
			  with[] = "[backend mem]\nkind=mem\n[backend one]\nkind=mem\n";
	struct stage s;

	(void)state;
	stage_open(&s, with);
	(void)stage_make(&s, "dev backend=one");
	stage_down(&s);
	cube_conf_free(s.conf);
	assert_int_equal(cube_conf_parse(without, strlen(without), "test", &s.conf, &s.err), 0);
	stage_up(&s);
	cube_domain_enter(s.d);
	assert_null(cube_domain_find(s.d, "dev"));
	cube_domain_leave(s.d);
	stage_down(&s);
	cube_conf_free(s.conf);
	assert_int_equal(cube_conf_parse(with, strlen(with), "test", &s.conf, &s.err), 0);
	stage_up(&s);
	cube_domain_enter(s.d);
	assert_non_null(cube_domain_find(s.d, "dev"));
	cube_domain_leave(s.d);
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused),
		cmocka_unit_test(taken),
		cmocka_unit_test(backend_that_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
