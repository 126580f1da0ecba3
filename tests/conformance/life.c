/* SPDX-License-Identifier: Apache-2.0 */
/* Making, finding, listing and destroying sandboxes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "tests/conformance/conformance.h"

static void count_each(void *ctx, const struct cube_info *info)
{
	(void)info;
	(*(unsigned *)ctx)++;
}

static unsigned count(struct subject *s)
{
	unsigned n = 0;

	assert_int_equal(cube_backend_list(s->stage.b, NULL, count_each, &n, NULL), 0);
	return n;
}

static void created(struct subject *s)
{
	char uid[17];
	struct cube_spec spec = stage_spec(uid);
	struct cube_info info;
	struct cube_err err;
	char *id = NULL;

	if (cube_backend_create(s->stage.b, &spec, NULL, &id, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(cube_backend_inspect(s->stage.b, id, &info, &err), 0);
	assert_string_equal(info.id, id);
	assert_string_equal(info.uid, uid);
	assert_int_equal(info.state, CUBE_IS_RUNNING);
	assert_true(stage_listed(&s->stage, id));
	assert_int_equal(cube_backend_destroy(s->stage.b, id, &err), 0);
	cube_free(id);
}

/* The answer was lost, so it is asked again. */
static void created_again(struct subject *s)
{
	char uid[17];
	struct cube_spec spec = stage_spec(uid);
	char *first = NULL, *second = NULL;
	unsigned before = count(s);

	assert_int_equal(cube_backend_create(s->stage.b, &spec, NULL, &first, NULL), 0);
	assert_int_equal(cube_backend_create(s->stage.b, &spec, NULL, &second, NULL), 0);
	assert_string_equal(first, second);
	assert_int_equal(count(s), before + 1);
	assert_int_equal(cube_backend_destroy(s->stage.b, first, NULL), 0);
	cube_free(first);
	cube_free(second);
}

static void destroyed(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);
	struct cube_info info;
	struct cube_err err;

	assert_int_equal(cube_backend_destroy(s->stage.b, id, &err), 0);
	assert_false(stage_listed(&s->stage, id));
	expect_failure(cube_backend_inspect(s->stage.b, id, &info, &err), -ENOENT, &err);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, &err), 0); /* gone already is success */
	cube_free(id);
}

static void several(struct subject *s)
{
	char *ids[4];
	unsigned before = count(s);

	for (size_t i = 0; i < CUBE_COUNT(ids); i++)
		ids[i] = stage_create(&s->stage, NULL);
	assert_int_equal(count(s), before + CUBE_COUNT(ids));
	assert_string_not_equal(ids[0], ids[1]);
	assert_int_equal(cube_backend_destroy(s->stage.b, ids[1], NULL), 0);
	assert_true(stage_listed(&s->stage, ids[0]) && !stage_listed(&s->stage, ids[1]));
	for (size_t i = 0; i < CUBE_COUNT(ids); i++) {
		assert_int_equal(cube_backend_destroy(s->stage.b, ids[i], NULL), 0);
		cube_free(ids[i]);
	}
	assert_int_equal(count(s), before);
}

static void unknown_sandbox(struct subject *s)
{
	struct cube_info info;
	struct cube_err err;

	expect_failure(cube_backend_inspect(s->stage.b, "no-such-sandbox", &info, &err), -ENOENT, &err);
	assert_int_equal(cube_backend_destroy(s->stage.b, "no-such-sandbox", &err), 0);
}

static void malformed_ids(struct subject *s)
{
	static const char *const ids[] = {"", ".", "..", ".hidden", "a/b", "../x", "a b", "a\nb", "\xff"};
	char long_id[CUBE_ID_MAX + 2];
	struct cube_info info;
	struct cube_err err;

	for (size_t i = 0; i < CUBE_COUNT(ids); i++) {
		expect_failure(cube_backend_inspect(s->stage.b, ids[i], &info, &err), -EINVAL, &err);
		expect_failure(cube_backend_destroy(s->stage.b, ids[i], &err), -EINVAL, &err);
	}
	memset(long_id, 'a', sizeof(long_id) - 1);
	long_id[sizeof(long_id) - 1] = '\0';
	expect_failure(cube_backend_inspect(s->stage.b, long_id, &info, &err), -EINVAL, &err);
}

static void unknown_template(struct subject *s)
{
	char uid[17];
	struct cube_spec spec = stage_spec(uid);
	unsigned before = count(s);
	struct cube_err err;
	char *id = NULL;

	spec.template = "no-such-template";
	expect_failure(cube_backend_create(s->stage.b, &spec, NULL, &id, &err), -ENOENT, &err);
	assert_null(id);
	assert_int_equal(count(s), before);
}

/* Either it has had no effect, or it is finished. */
static void cancelled_create(struct subject *s)
{
	struct cube_cancel *cancel = cube_cancel_new();
	char uid[17];
	struct cube_spec spec = stage_spec(uid);
	unsigned before = count(s);
	struct cube_err err;
	char *id = NULL;
	int r;

	cube_cancel_fire(cancel);
	r = cube_backend_create(s->stage.b, &spec, cancel, &id, &err);
	if (r < 0) {
		expect_failure(r, -EINTR, &err);
		assert_int_equal(count(s), before);
	} else {
		assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	}
	cube_free(id);
	cube_cancel_unref(cancel);
}

static void unknown_key(struct subject *s)
{
	const struct cube_pair extra = {"no_backend_has_this", "1"};
	char uid[17];
	struct cube_spec spec = stage_spec(uid);
	struct cube_err err;
	char *id = NULL;

	spec.extra = &extra;
	spec.n_extra = 1;
	expect_failure(cube_backend_check_spec(s->stage.b, &spec, &err), -EINVAL, &err);
	expect_failure(cube_backend_create(s->stage.b, &spec, NULL, &id, &err), -EINVAL, &err);
}

static void status(struct subject *s)
{
	struct cube_status st;
	struct cube_err err;

	if (cube_backend_status(s->stage.b, NULL, &st, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(st.reachable);
	assert_true(st.version[0] != '\0');
	assert_int_equal(st.caps, s->stage.b->caps);
	for (unsigned i = 0; i < CUBE_CAP_COUNT; i++) {
		bool missing = (s->stage.b->ops->caps & ~s->stage.b->caps & (1u << i)) != 0;

		assert_true(!missing || s->stage.b->missing[i][0] != '\0');
	}
}

static void usage(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);
	struct cube_usage u;
	struct cube_err err;

	assert_int_equal(cube_backend_usage(s->stage.b, id, &u, &err), 0);
	assert_true(u.pids == UINT64_MAX || u.pids < 1000);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	expect_failure(cube_backend_usage(s->stage.b, id, &u, &err), -ENOENT, &err);
	cube_free(id);
}

const struct check checks_life[] = {
	{"create, inspect, list", 0, 0, created},
	{"create again with the same mark", 0, 0, created_again},
	{"destroy, and again", 0, 0, destroyed},
	{"several side by side", 0, 0, several},
	{"a sandbox that is not there", 0, 0, unknown_sandbox},
	{"ids that are none", 0, 0, malformed_ids},
	{"a template that is not there", 0, 0, unknown_template},
	{"create that is cancelled", 0, 0, cancelled_create},
	{"a key that is not there", 0, 0, unknown_key},
	{"status", 0, 0, status},
	{"usage", CUBE_CAP_USAGE, 0, usage},
	{.name = NULL},
};
