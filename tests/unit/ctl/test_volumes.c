/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes: what belongs to whom, what a failed creation leaves, and what is there after an end of the daemon. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "ctl/volume.h"
#include "tests/unit/ctl/stage.h"

static void faulty(struct stage *s, const char *lines)
{
	char conf[256];

	(void)snprintf(conf, sizeof(conf), "[backend mem]\nkind=mem\n%s\n", lines);
	stage_open(s, conf);
}

static struct cube_volume_entry *find(struct stage *s, const char *name)
{
	struct cube_volume_entry *v;

	cube_domain_enter(s->d);
	v = cube_volume_find(s->d, name);
	cube_domain_leave(s->d);
	return v;
}

/* Until it is there or has failed. */
static int make(struct stage *s, const char *name)
{
	struct cube_volume_entry *v = NULL;
	int r;

	cube_domain_enter(s->d);
	r = cube_volume_create(s->d, name, &v, &s->err);
	for (unsigned i = 0; r == 0 && v->phase == CUBE_VOLUME_MAKING && i < 10000; i++) {
		cube_domain_leave(s->d);
		(void)usleep(1000);
		cube_domain_enter(s->d);
	}
	if (r == 0 && v->phase == CUBE_VOLUME_FAILED) {
		r = v->failure.code;
		s->err = v->failure;
	}
	cube_volume_unref(v);
	cube_domain_leave(s->d);
	return r;
}

static int drop(struct stage *s, const char *name)
{
	struct cube_volume_entry *v = find(s, name);
	int r;

	assert_non_null(v);
	cube_domain_enter(s->d);
	r = cube_volume_remove(v, &s->err);
	cube_domain_leave(s->d);
	return r;
}

static bool on_disk(const struct stage *s, const char *uid)
{
	char path[160];

	(void)snprintf(path, sizeof(path), "%s/backends/mem/volumes/%s", s->dir, uid);
	return access(path, F_OK) == 0;
}

static void wait_gone(const struct stage *s, const char *uid)
{
	for (unsigned i = 0; on_disk(s, uid); i++) {
		assert_true(i < 10000);
		(void)usleep(1000);
	}
}

static void made_by_a_sandbox(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "a volume=k volume./data=l,ro");
	char *out = NULL;

	assert_non_null(c);
	assert_non_null(find(s, "k"));
	assert_non_null(find(s, "l"));
	assert_int_equal(stage_exec(s, c, NULL, "write /workspace/f text; cat /workspace/f", &out), 0);
	assert_string_equal(out, "text\n");
	cube_free(out);
	assert_int_not_equal(stage_exec(s, c, NULL, "write /data/f text", NULL), 0);
	assert_int_equal(drop(s, "k"), -EBUSY);
	assert_non_null(strstr(s->err.text, "used by a"));
	assert_int_equal(stage_root(s, "destroy a"), 0);
	assert_int_equal(drop(s, "k"), 0);
	assert_null(find(s, "k"));
}

static void refused(void **state)
{
	static const char *const lines[] = {
		"create a volume=",
		"create a volume=.k",
		"create a volume=k,w",
		"create a volume.x=k",
		"create a volume./=k",
		"create a volume./proc=k",
		"create a volume./a/../b=k",
		"create a volume=k volume./workspace=l",
		"create a volume./a=k memory=lots",
	};
	struct stage *s = *state;

	for (size_t i = 0; i < CUBE_COUNT(lines); i++) {
		assert_int_equal(stage_root(s, lines[i]), -EINVAL);
		assert_null(find(s, "k"));
	}
	assert_int_equal(make(s, "k"), 0);
	assert_int_equal(make(s, "k"), -EEXIST);
	assert_int_equal(make(s, "a b"), -EINVAL);
}

static void of_another_backend(void **state)
{
	struct stage s;

	(void)state;
	stage_open(&s, "[backend one]\nkind=mem\n[backend two]\nkind=mem\n[backend "
		       "bare]\nkind=mem\ncaps=-volumes\n");
	assert_non_null(stage_make(&s, "a backend=two volume=k"));
	assert_string_equal(find(&s, "k")->service->backend->name, "two");
	assert_int_equal(stage_root(&s, "create b volume=k"), -EINVAL);
	assert_non_null(strstr(s.err.text, "belongs to backend 'two'"));
	assert_non_null(stage_make(&s, "b backend=two volume./k=k"));
	assert_int_equal(make(&s, "l"), 0);
	assert_string_equal(find(&s, "l")->service->backend->name, "one");
	assert_int_equal(stage_root(&s, "create c backend=bare volume=m"), -EOPNOTSUPP);
	assert_null(find(&s, "m"));
	stage_close(&s);
}

/* What a creation brought along goes with it; what was there stays. */
static void failed_creation(void **state)
{
	struct stage s;
	char uid[17];

	(void)state;
	faulty(&s, "fail=create:EREMOTEIO:1");
	assert_int_equal(make(&s, "old"), 0);
	(void)snprintf(uid, sizeof(uid), "%s", find(&s, "old")->uid);
	assert_int_equal(stage_root(&s, "create a volume=old volume./n=fresh"), -EREMOTEIO);
	assert_null(find(&s, "fresh"));
	assert_non_null(find(&s, "old"));
	assert_true(on_disk(&s, uid));
	assert_non_null(stage_make(&s, "a volume=old volume./n=fresh"));
	assert_non_null(find(&s, "fresh"));
	stage_close(&s);
}

static void backend_fails(void **state)
{
	struct stage s;
	char uid[17];

	(void)state;
	faulty(&s, "fail=volume_make:ENOSPC:1 volume_remove:EREMOTEIO:1");
	assert_int_equal(make(&s, "k"), -ENOSPC);
	assert_null(find(&s, "k"));
	assert_int_equal(make(&s, "k"), 0);
	(void)snprintf(uid, sizeof(uid), "%s", find(&s, "k")->uid);
	assert_int_equal(drop(&s, "k"), 0); /* the name is free; the backend is asked until it has done it */
	assert_int_equal(make(&s, "k"), 0);
	assert_string_not_equal(find(&s, "k")->uid, uid);
	wait_gone(&s, uid);
	stage_close(&s);
}

/* A removal that the backend cannot do as long as a sandbox is being destroyed. */
static void removed_with_its_sandbox(void **state)
{
	struct stage s;
	char uid[17];
	struct cube_cube *c;

	(void)state;
	faulty(&s, "delay=destroy:300");
	c = stage_make(&s, "a volume=k");
	(void)snprintf(uid, sizeof(uid), "%s", find(&s, "k")->uid);
	cube_domain_enter(s.d);
	assert_int_equal(cube_cube_remove(c, NULL, NULL), 0);
	cube_domain_leave(s.d);
	assert_int_equal(drop(&s, "k"), 0);
	assert_null(find(&s, "k"));
	wait_gone(&s, uid);
	stage_close(&s);
}

static void over_a_kill(void **state)
{
	struct stage s;
	char uid[17];

	(void)state;
	faulty(&s, "");
	assert_non_null(stage_make(&s, "a volume=k volume./l=l,ro"));
	assert_int_equal(make(&s, "gone"), 0);
	(void)snprintf(uid, sizeof(uid), "%s", find(&s, "k")->uid);
	cube_domain_enter(s.d);
	assert_int_equal(cube_volume_rename(cube_volume_find(s.d, "l"), "renamed", NULL), 0);
	cube_domain_leave(s.d);
	assert_int_equal(drop(&s, "gone"), 0);
	stage_killed(&s);
	stage_up(&s);
	assert_string_equal(find(&s, "k")->uid, uid);
	assert_non_null(find(&s, "renamed"));
	assert_null(find(&s, "gone"));
	assert_int_equal(drop(&s, "k"), -EBUSY); /* of a sandbox that the backend lost: it is known still */
	assert_int_equal(stage_root(&s, "destroy a"), 0);
	assert_int_equal(drop(&s, "k"), 0);
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(made_by_a_sandbox, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(refused, stage_setup, stage_teardown),
		cmocka_unit_test(of_another_backend),
		cmocka_unit_test(failed_creation),
		cmocka_unit_test(backend_fails),
		cmocka_unit_test(removed_with_its_sandbox),
		cmocka_unit_test(over_a_kill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
