/* SPDX-License-Identifier: Apache-2.0 */
/* The decorators: what is traced, what is made to fail, when. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/decor/fault.h"
#include "backends/decor/trace.h"
#include "backends/registry.h"
#include "tests/unit/backends/stage.h"

struct scene {
	struct stage stage;
	struct cube_fault *rules;
	char lines[8][256];
	unsigned n_lines;
};

static void keep_line(void *ctx, const char *line)
{
	struct scene *s = ctx;

	if (s->n_lines < CUBE_COUNT(s->lines))
		(void)snprintf(s->lines[s->n_lines++], sizeof(s->lines[0]), "%s", line);
}

/* trace over fault over mem */
static int setup(void **state)
{
	static struct scene s;
	struct cube_err err;

	s = (struct scene){.n_lines = 0};
	if (stage_open(&s.stage, cube_backend_find("mem"), NULL, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(cube_fault_wrap(s.stage.b, &s.stage.b, &s.rules, NULL), 0);
	assert_int_equal(cube_trace_wrap(s.stage.b, keep_line, &s, &s.stage.b, NULL), 0);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	stage_close(&s->stage);
	return 0;
}

static void same_instance(void **state)
{
	struct scene *s = *state;
	const struct cube_backend_ops *mem = cube_backend_find("mem");

	assert_string_equal(s->stage.b->ops->kind, "mem");
	assert_int_equal(s->stage.b->caps, mem->caps);
	assert_int_equal(s->stage.b->par, mem->par);
	assert_string_equal(s->stage.b->name, "test");
}

static void traced(void **state)
{
	struct scene *s = *state;
	struct cube_info info;
	char *id = stage_create(&s->stage, NULL);
	char want[128];

	assert_int_equal(cube_backend_inspect(s->stage.b, "nothing", &info, NULL), -ENOENT);
	assert_int_equal(s->n_lines, 2);
	assert_non_null(strstr(s->lines[0], "test create box: 0, "));
	assert_non_null(strstr(s->lines[1], "test inspect nothing: ENOENT, "));
	assert_non_null(strstr(s->lines[1], "has no sandbox nothing"));
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	(void)snprintf(want, sizeof(want), "test destroy %s: 0, ", id);
	assert_non_null(strstr(s->lines[2], want));
	cube_free(id);
}

static int try_create(struct scene *s, char **ret_id, struct cube_err *err)
{
	char uid[17];
	struct cube_spec spec = stage_spec(uid);

	return cube_backend_create(s->stage.b, &spec, NULL, ret_id, err);
}

static void fails_once(void **state)
{
	struct scene *s = *state;
	struct cube_err err;
	char *id = NULL;

	assert_int_equal(cube_fault_fail(s->rules, "create", -EDQUOT, 2), 0);
	assert_int_equal(try_create(s, &id, &err), 0);
	cube_free(id);
	id = NULL;
	assert_int_equal(try_create(s, &id, &err), -EDQUOT);
	assert_non_null(strstr(err.text, "made to fail"));
	assert_null(id);
	assert_int_equal(try_create(s, &id, &err), 0);
	assert_int_equal(cube_fault_calls(s->rules, "create"), 3);
	assert_int_equal(cube_fault_calls(s->rules, "any"), 3);
	assert_int_equal(cube_fault_calls(s->rules, "destroy"), 0);
	assert_int_equal(cube_fault_calls(s->rules, "no-such"), 0);
	cube_free(id);
}

static void fails_always(void **state)
{
	struct scene *s = *state;
	struct cube_info info;
	struct cube_err err;

	assert_int_equal(cube_fault_fail(s->rules, "any", -EHOSTUNREACH, 0), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(cube_backend_inspect(s->stage.b, "x", &info, &err), -EHOSTUNREACH);
	cube_fault_release(s->rules, "any");
	assert_int_equal(cube_backend_inspect(s->stage.b, "x", &info, &err), -ENOENT);
}

/* The answer of create is lost: asked again with the same mark, it is the same sandbox. */
static void loses_an_answer(void **state)
{
	struct scene *s = *state;
	char uid[17];
	struct cube_spec spec = stage_spec(uid);
	struct cube_err err;
	char *id = NULL;

	assert_int_equal(cube_fault_lose(s->rules, "create", -ETIMEDOUT, 1), 0);
	assert_int_equal(cube_backend_create(s->stage.b, &spec, NULL, &id, &err), -ETIMEDOUT);
	assert_null(id);
	assert_int_equal(cube_backend_create(s->stage.b, &spec, NULL, &id, &err), 0);
	assert_true(stage_listed(&s->stage, id));
	assert_int_equal(cube_fault_lose(s->rules, "destroy", -ETIMEDOUT, 1), 0);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, &err), -ETIMEDOUT);
	assert_false(stage_listed(&s->stage, id));
	cube_free(id);
}

/* What came with a lost answer is released: descriptors, the link. */
static void loses_what_it_gave(void **state)
{
	struct scene *s = *state;
	char *id = stage_create(&s->stage, NULL);
	struct cube_root root = {.fd = -7};
	struct cube_err err;
	struct ear *e = NULL;

	assert_int_equal(cube_fault_lose(s->rules, "root", -EIO, 1), 0);
	assert_int_equal(cube_backend_root(s->stage.b, id, &root, &err), -EIO);
	assert_int_equal(root.fd, -7);
	assert_int_equal(cube_fault_lose(s->rules, "link", -EIO, 1), 0);
	assert_int_equal(ear_try(&s->stage, id, &e, &err), -EIO);
	e = ear_open(&s->stage, id);
	cube_free(run_text(e, "true"));
	ear_close(e);
	cube_free(id);
}

static void comes_late(void **state)
{
	struct scene *s = *state;
	uint64_t from = cube_clock_mono();
	struct cube_cancel *cancel = cube_cancel_new();
	struct cube_status st;
	struct cube_err err;

	assert_int_equal(cube_fault_delay(s->rules, "status", 60), 0);
	assert_int_equal(cube_backend_status(s->stage.b, cancel, &st, &err), 0);
	assert_true(cube_clock_mono() - from >= UINT64_C(60000000));
	assert_int_equal(cube_fault_delay(s->rules, "status", 3600000), 0);
	cube_cancel_fire(cancel);
	assert_int_equal(cube_backend_status(s->stage.b, cancel, &st, &err), -EINTR);
	cube_cancel_unref(cancel);
}

struct held {
	struct scene *scene;
	struct cube_cancel *cancel;
	int result;
};

static void *call_status(void *arg)
{
	struct held *h = arg;
	struct cube_status st;

	h->result = cube_backend_status(h->scene->stage.b, h->cancel, &st, NULL);
	return NULL;
}

static void wait_calls(struct scene *s, unsigned long n)
{
	while (cube_fault_calls(s->rules, "status") < n)
		(void)usleep(1000);
}

static void held_until_released(void **state)
{
	struct held h = {.scene = *state, .result = 77};
	pthread_t thread;

	assert_int_equal(cube_fault_hold(h.scene->rules, "status"), 0);
	assert_int_equal(pthread_create(&thread, NULL, call_status, &h), 0);
	wait_calls(h.scene, 1);
	cube_fault_release(h.scene->rules, "status");
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(h.result, 0);
}

static void held_until_cancelled(void **state)
{
	struct held h = {.scene = *state, .cancel = cube_cancel_new(), .result = 77};
	pthread_t thread;

	assert_int_equal(cube_fault_hold(h.scene->rules, "status"), 0);
	assert_int_equal(pthread_create(&thread, NULL, call_status, &h), 0);
	wait_calls(h.scene, 1);
	cube_cancel_fire(h.cancel);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(h.result, -EINTR);
	cube_cancel_unref(h.cancel);
}

static void no_such_operation(void **state)
{
	struct scene *s = *state;

	assert_int_equal(cube_fault_fail(s->rules, "explode", -EIO, 0), -EINVAL);
	assert_int_equal(cube_fault_hold(s->rules, ""), -EINVAL);
	cube_fault_release(s->rules, "explode");
}

static void as_text(void **state)
{
	static const struct {
		const char *key, *value;
		int code;
	} cases[] = {
		{"fail", "create:EDQUOT", 0},
		{"fail", "create:EDQUOT:2, destroy:EIO", 0},
		{"lose", "link:ETIMEDOUT:1", 0},
		{"delay", "create:20", 0},
		{"fail", "", 0},
		{"fail", "create", -EINVAL},
		{"fail", "create:", -EINVAL},
		{"fail", "create:NOSUCH", -EINVAL},
		{"fail", "create:5", -EINVAL},
		{"fail", "explode:EIO", -EINVAL},
		{"fail", "create:EIO:0", -EINVAL},
		{"fail", "create:EIO:x", -EINVAL},
		{"fail", "create:EIO:1:2", -EINVAL},
		{"delay", "create:soon", -EINVAL},
		{"delay", "create:1:2", -EINVAL},
		{"delay", "create:999999999", -EINVAL},
		{"explode", "create:EIO", -EINVAL},
	};
	struct scene *s = *state;

	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		struct cube_err err = {.code = 0};

		assert_int_equal(cube_fault_parse(s->rules, cases[i].key, cases[i].value, &err),
				 cases[i].code);
		assert_int_equal(err.text[0] == '\0', cases[i].code == 0);
	}
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH(same_instance),
		WITH(traced),
		WITH(fails_once),
		WITH(fails_always),
		WITH(loses_an_answer),
		WITH(loses_what_it_gave),
		WITH(comes_late),
		WITH(held_until_released),
		WITH(held_until_cancelled),
		WITH(no_such_operation),
		WITH(as_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
