/* SPDX-License-Identifier: Apache-2.0 */
/* What a create line wants inside: users, names of hosts, what is required; on disk and back. */
#include "tests/unit/ctl/stage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"

struct inside {
	struct cube_own own;
	struct cube_err err;
};

static struct inside *inside_new(void)
{
	struct inside *i = cube_calloc(1, sizeof(*i));

	assert_non_null(i);
	cube_inside_init(&i->own.inside);
	cube_buf_init(&i->own.env_keys, CUBE_ENV_MAX);
	return i;
}

static void inside_free(struct inside *i)
{
	cube_inside_done(&i->own.inside);
	cube_buf_done(&i->own.env_keys);
	cube_free(i);
}

static void users(void **state)
{
	static const struct {
		const char *value, *name;
		uint32_t uid;
	} good[] = {{"dev", "dev", 0},
		    {"_x-9:1", "_x-9", 1},
		    {"root", "root", 0},
		    {"dev:60000", "dev", 60000},
		    {"a2345678901234567890123456789012", "a2345678901234567890123456789012", 0}};
	static const char *const bad[] = {"",       ":",      ":5",     "Dev",
					  "1dev",   "-dev",   "de v",   "dev:",
					  "dev:0",  "dev:-1", "dev:1x", "dev:60001",
					  "root:5", "root:",  "d/v",    "a23456789012345678901234567890123"};

	(void)state;
	for (size_t n = 0; n < CUBE_COUNT(good); n++) {
		struct inside *i = inside_new();

		assert_int_equal(cube_inside_user(&i->own.c, good[n].value, &i->err), 0);
		assert_string_equal(i->own.inside.user, good[n].name);
		assert_string_equal(cube_inside_default_user(&i->own.c), good[n].name);
		assert_int_equal(i->own.inside.uid, good[n].uid);
		inside_free(i);
	}
	for (size_t n = 0; n < CUBE_COUNT(bad); n++) {
		struct inside *i = inside_new();

		assert_int_equal(cube_inside_user(&i->own.c, bad[n], &i->err), -EINVAL);
		assert_non_null(strstr(i->err.text, "user="));
		assert_string_equal(cube_inside_default_user(&i->own.c), "");
		inside_free(i);
	}
}

/* The home comes before what the line says, so that the line can say something else. */
static void environment(void **state)
{
	static const char want[] = "HOME=/home/dev\0USER=dev\0LOGNAME=dev\0HOME=/x";
	struct inside *i = inside_new(), *root = inside_new(), *none = inside_new();

	(void)state;
	assert_int_equal(cube_buf_add(&i->own.env_keys, "HOME=/x", 8), 0);
	assert_int_equal(cube_inside_user(&i->own.c, "dev", &i->err), 0);
	assert_int_equal(cube_inside_env(&i->own.c), 0);
	assert_int_equal(i->own.env_keys.len, sizeof(want));
	assert_memory_equal(i->own.env_keys.data, want, sizeof(want));
	assert_int_equal(cube_inside_user(&root->own.c, "root", &i->err), 0);
	assert_int_equal(cube_inside_env(&root->own.c), 0);
	assert_string_equal(root->own.env_keys.data, "HOME=/root");
	assert_int_equal(cube_inside_env(&none->own.c), 0);
	assert_int_equal(none->own.env_keys.len, 0);
	inside_free(i);
	inside_free(root);
	inside_free(none);
}

static void hosts(void **state)
{
	static const char *const bad[][2] = {{"", "1.2.3.4"},    {"-a", "1.2.3.4"},
					     {".a", "1.2.3.4"},  {"a b", "1.2.3.4"},
					     {"a=b", "1.2.3.4"}, {"a", ""},
					     {"a", "1.2.3"},     {"a", "1.2.3.4 "},
					     {"a", "b"},         {"a", "1.2.3.4\n5.6.7.8 c"},
					     {"a", "fe80::1%lo"}};
	struct inside *i = inside_new();
	char name[300];

	(void)state;
	assert_int_equal(cube_inside_host(&i->own.c, "db", "10.1.2.3", &i->err), 0);
	assert_int_equal(cube_inside_host(&i->own.c, "Six_1.example", "fd00::1", &i->err), 0);
	for (size_t n = 0; n < CUBE_COUNT(bad); n++) {
		assert_int_equal(cube_inside_host(&i->own.c, bad[n][0], bad[n][1], &i->err), -EINVAL);
		assert_non_null(strstr(i->err.text, "host."));
	}
	memset(name, 'a', sizeof(name));
	name[254] = '\0';
	assert_int_equal(cube_inside_host(&i->own.c, name, "1.2.3.4", &i->err), -EINVAL);
	assert_int_equal(i->own.inside.hosts.len, sizeof("db=10.1.2.3") + sizeof("Six_1.example=fd00::1"));
	inside_free(i);
}

static void on_disk_and_back(void **state)
{
	struct inside *i = inside_new(), *back = inside_new();
	struct cube_spec_parts p = {.hosts = NULL};

	(void)state;
	assert_int_equal(cube_inside_user(&i->own.c, "dev:1234", &i->err), 0);
	assert_int_equal(cube_inside_gpu(&i->own.c, "yes", &i->err), 0);
	assert_int_equal(cube_inside_gpu(&i->own.c, "many", &i->err), -EINVAL);
	assert_int_equal(cube_inside_host(&i->own.c, "db", "10.1.2.3", &i->err), 0);
	assert_int_equal(cube_inside_host(&i->own.c, "six", "::1", &i->err), 0);
	json_t *o = cube_inside_save(&i->own);

	assert_non_null(o);
	assert_int_equal(cube_inside_load(&back->own, o), 0);
	json_decref(o);
	assert_string_equal(back->own.inside.user, "dev");
	assert_int_equal(back->own.inside.uid, 1234);
	assert_true(back->own.inside.gpu);
	assert_int_equal(cube_inside_spec(&back->own.c, &p), 0);
	assert_string_equal(p.spec.user, "dev");
	assert_int_equal(p.spec.user_uid, 1234);
	assert_int_equal(p.spec.n_hosts, 2);
	assert_string_equal(p.spec.hosts[0].key, "db");
	assert_string_equal(p.spec.hosts[0].value, "10.1.2.3");
	assert_string_equal(p.spec.hosts[1].key, "six");
	assert_string_equal(p.spec.hosts[1].value, "::1");
	cube_free(p.hosts);
	cube_free(p.hosts_text);
	inside_free(i);
	inside_free(back);
	/* One of before there was such a thing. */
	back = inside_new();
	assert_int_equal(cube_inside_load(&back->own, NULL), 0);
	assert_string_equal(cube_inside_default_user(&back->own.c), "");
	inside_free(back);
}

static void required(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");

	cube_domain_enter(s->d);
	assert_int_equal(cube_inside_require(c, "root", &s->err), 0);
	assert_int_equal(cube_inside_require(c, "root,exec", &s->err), 0);
	assert_int_equal(cube_inside_require(c, "exec,kvm", &s->err), -EOPNOTSUPP);
	assert_non_null(strstr(s->err.text, "require=kvm"));
	assert_int_equal(cube_inside_require(c, "", &s->err), -EINVAL);
	assert_int_equal(cube_inside_require(c, "exec,", &s->err), -EINVAL);
	assert_int_equal(cube_inside_require(c, ",exec", &s->err), -EINVAL);
	assert_int_equal(cube_inside_require(c, "exe", &s->err), -EINVAL);
	assert_int_equal(cube_inside_require(c, "teleport", &s->err), -EINVAL);
	assert_non_null(strstr(s->err.text, "'teleport'"));
	cube_domain_leave(s->d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(users),
		cmocka_unit_test(environment),
		cmocka_unit_test(hosts),
		cmocka_unit_test(on_disk_and_back),
		cmocka_unit_test_setup_teardown(required, stage_setup, stage_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
