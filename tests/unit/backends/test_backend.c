/* SPDX-License-Identifier: Apache-2.0 */
/* The wrappers against a backend that lies: a struct of switches. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/backend.h"
#include "backends/base/alloc.h"

static struct liar {
	struct cube_backend base;
	uint32_t caps;
	int result;            /* of every operation */
	const char *sentence;  /* with it; NULL: forgotten */
	const char *id;        /* of create */
	struct cube_info info; /* of inspect, list */
	struct cube_status status;
	struct cube_root root;
	bool no_link;
	unsigned calls, closes;
	char destroyed[64];
} liar;

static int lie(struct cube_err *err)
{
	liar.calls++;
	if (liar.result < 0 && liar.sentence != NULL)
		return cube_fail(err, liar.result, "%s", liar.sentence);
	return liar.result;
}

static const struct cube_backend_ops liar_ops;

static int liar_open(const struct cube_backend_env *env, struct cube_backend **ret, struct cube_err *err)
{
	if (liar.result < 0)
		return lie(err);
	liar.base = (struct cube_backend){.ops = &liar_ops, .name = env->name, .caps = liar.caps};
	*ret = &liar.base;
	return 0;
}

static void liar_close(struct cube_backend *b)
{
	(void)b;
	liar.closes++;
}

static int liar_status(struct cube_backend *b, struct cube_cancel *cancel, struct cube_status *ret,
		       struct cube_err *err)
{
	(void)b;
	(void)cancel;
	*ret = liar.status;
	return lie(err);
}

static int liar_create(struct cube_backend *b, const struct cube_spec *spec, struct cube_cancel *cancel,
		       char **ret_id, struct cube_err *err)
{
	(void)b;
	(void)spec;
	(void)cancel;
	if (liar.id != NULL)
		*ret_id = cube_strdup(liar.id);
	return lie(err);
}

static int liar_destroy(struct cube_backend *b, const char *id, struct cube_err *err)
{
	(void)b;
	(void)snprintf(liar.destroyed, sizeof(liar.destroyed), "%s", id);
	return lie(err);
}

static int liar_inspect(struct cube_backend *b, const char *id, struct cube_info *ret, struct cube_err *err)
{
	(void)b;
	(void)id;
	*ret = liar.info;
	return lie(err);
}

static int liar_list(struct cube_backend *b, struct cube_cancel *cancel,
		     void (*each)(void *ctx, const struct cube_info *info), void *ctx, struct cube_err *err)
{
	static const struct cube_info bad = {.id = "../../etc"};

	(void)b;
	(void)cancel;
	each(ctx, &bad);
	each(ctx, &liar.info);
	return lie(err);
}

static int liar_link(struct cube_backend *b, const char *id, const struct cube_link_handler *handler,
		     void *ctx, struct cube_cancel *cancel, struct cube_link **ret, struct cube_err *err)
{
	(void)b;
	(void)id;
	(void)handler;
	(void)ctx;
	(void)cancel;
	*ret = NULL;
	return lie(err);
}

static int liar_root(struct cube_backend *b, const char *id, struct cube_root *ret, struct cube_err *err)
{
	(void)b;
	(void)id;
	*ret = liar.root;
	return lie(err);
}

static int liar_pause(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
		      struct cube_err *err)
{
	(void)b;
	(void)id;
	(void)cancel;
	return lie(err);
}

static const struct cube_backend_ops liar_ops = {
	.abi = CUBE_BACKEND_ABI,
	.kind = "liar",
	.summary = "for tests",
	.caps = CUBE_CAP_EXEC | CUBE_CAP_FILES | CUBE_CAP_PAUSE,
	.open = liar_open,
	.close = liar_close,
	.status = liar_status,
	.create = liar_create,
	.destroy = liar_destroy,
	.inspect = liar_inspect,
	.list = liar_list,
	.pause = liar_pause,
	.resume = liar_pause,
	.link = liar_link,
	.root = liar_root,
};

static const struct cube_backend_env env = {.name = "l", .state_dir = "/"};
static const struct cube_spec spec = {.uid = "0123456789abcdef", .name = "box"};

static int setup(void **state)
{
	struct cube_backend *b;

	liar = (struct liar){.caps = liar_ops.caps, .id = "box-1", .info = {.id = "box-1"}};
	assert_int_equal(cube_backend_open(&liar_ops, &env, &b, NULL), 0);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	cube_backend_close(*state);
	return 0;
}

static void expect(int r, int code, const struct cube_err *err, const char *word)
{
	assert_int_equal(r, code);
	assert_int_equal(err->code, code);
	if (strstr(err->text, word) == NULL)
		fail_msg("'%s' does not say '%s'", err->text, word);
}

static void opening(void **state)
{
	struct cube_backend_env bad = {.name = "a/b", .state_dir = "/"};
	struct cube_backend *b = NULL;
	struct cube_err err;

	(void)state;
	expect(cube_backend_open(&liar_ops, &bad, &b, &err), -EINVAL, &err, "a/b");
	liar.result = -EACCES;
	liar.sentence = "the key is refused";
	expect(cube_backend_open(&liar_ops, &env, &b, &err), -EACCES, &err, "backend l: the key is refused");
	liar.sentence = NULL;
	expect(cube_backend_open(&liar_ops, &env, &b, &err), -EACCES, &err, "backend l: Permission denied");
	liar.result = 0;
	liar.closes = 0;
	liar.caps = CUBE_CAP_STOP; /* its kind has none */
	expect(cube_backend_open(&liar_ops, &env, &b, &err), -EINVAL, &err, "claims");
	assert_int_equal(liar.closes, 1);
	assert_null(b);
	cube_backend_close(NULL);
}

static void reasons(void **state)
{
	struct cube_backend *b = NULL;
	struct cube_err err;

	(void)state;
	liar.caps = CUBE_CAP_EXEC;
	assert_int_equal(cube_backend_open(&liar_ops, &env, &b, NULL), 0);
	assert_int_equal(cube_backend_need(b, CUBE_CAP_EXEC, NULL), 0);
	expect(cube_backend_need(b, CUBE_CAP_PAUSE, &err), -EOPNOTSUPP, &err,
	       "pause a sandbox: not available here");
	(void)snprintf(b->missing[2], sizeof(b->missing[2]), "no freezer");
	expect(cube_backend_pause(b, "box-1", NULL, &err), -EOPNOTSUPP, &err, "no freezer");
	expect(cube_backend_need(b, CUBE_CAP_STOP, &err), -EOPNOTSUPP, &err, "its kind, liar");
	assert_int_equal(liar.calls, 0);
}

static void sentences(void **state)
{
	struct cube_backend *b = *state;
	struct cube_err err = {.code = 0};

	liar.result = -EDQUOT; /* and says nothing */
	expect(cube_backend_destroy(b, "box-1", &err), -EDQUOT, &err,
	       "backend l: destroy box-1: Disk quota exceeded");
	liar.sentence = "five at most";
	expect(cube_backend_destroy(b, "box-1", &err), -EDQUOT, &err, "five at most");
	assert_int_equal(cube_backend_destroy(b, "box-1", NULL), -EDQUOT);
	liar.result = 5;
	expect(cube_backend_pause(b, "box-1", NULL, &err), -EREMOTEIO, &err, "neither success nor an error");
	liar.result = 0;
	err = (struct cube_err){.code = -7, .text = "before"};
	assert_int_equal(cube_backend_pause(b, "box-1", NULL, &err), 0);
	assert_string_equal(err.text, "before"); /* success touches nothing */
}

static void bad_ids(void **state)
{
	static const char *const ids[] = {"../x", "", "a b", NULL};
	struct cube_backend *b = *state;
	struct cube_err err;

	for (size_t i = 0; i < CUBE_COUNT(ids); i++) {
		char *id = NULL;

		liar.id = ids[i];
		liar.destroyed[0] = '\0';
		expect(cube_backend_create(b, &spec, NULL, &id, &err), -EREMOTEIO, &err,
		       "an id that is none");
		assert_null(id);
		/* What cannot be used must not stay either. */
		assert_string_equal(liar.destroyed, ids[i] != NULL ? ids[i] : "");
	}
}

static void failed_create(void **state)
{
	struct cube_backend *b = *state;
	struct cube_err err;
	char *id = NULL;

	liar.result = -ENOSPC; /* and gives an id all the same */
	expect(cube_backend_create(b, &spec, NULL, &id, &err), -ENOSPC, &err, "create box");
	assert_null(id);
}

static void other_sandbox(void **state)
{
	struct cube_backend *b = *state;
	struct cube_info info = {.id = "untouched"};
	struct cube_err err;

	assert_int_equal(cube_backend_inspect(b, "box-1", &info, &err), 0);
	expect(cube_backend_inspect(b, "box-2", &info, &err), -EREMOTEIO, &err, "not this sandbox");
	assert_string_equal(info.id, "box-1");
	liar.info.state = (enum cube_state)42;
	expect(cube_backend_inspect(b, "box-1", &info, &err), -EREMOTEIO, &err, "not this sandbox");
	expect(cube_backend_inspect(b, "box/1", &info, &err), -EINVAL, &err, "id");
}

static void list_each(void *ctx, const struct cube_info *info)
{
	assert_string_equal(info->id, "box-1");
	(*(int *)ctx)++;
}

static void listing(void **state)
{
	struct cube_backend *b = *state;
	int n = 0;

	assert_int_equal(cube_backend_list(b, NULL, list_each, &n, NULL), 0);
	assert_int_equal(n, 1); /* the one that cannot be a directory entry is left out */
}

static void status(void **state)
{
	struct cube_backend *b = *state;
	struct cube_status st;

	liar.status.caps = 0xffffffff;
	memset(liar.status.version, 'v', sizeof(liar.status.version));
	liar.status.fingerprint[0] = '\x1b';
	assert_int_equal(cube_backend_status(b, NULL, &st, NULL), 0);
	assert_int_equal(st.caps, liar_ops.caps);
	assert_int_equal(strlen(st.version), sizeof(st.version) - 1);
	assert_string_equal(st.fingerprint, "?");
}

static void bad_root(void **state)
{
	struct cube_backend *b = *state;
	struct cube_root root = {.fd = -5};
	struct cube_err err;
	int fd = open("/", O_PATH | O_CLOEXEC);

	liar.root = (struct cube_root){
		.fd = fd, .id_count = 1, .n_mounts = 1, .mounts[0] = {.path = "/a", .fd = -1}};
	expect(cube_backend_root(b, "box-1", &root, &err), -EREMOTEIO, &err, "a root that is none");
	assert_int_equal(root.fd, -5);
	assert_int_equal(fcntl(fd, F_GETFD), -1); /* closed, not leaked */
}

static void never(void *ctx, uint64_t n)
{
	(void)ctx;
	(void)n;
	fail();
}

static void never_left(void *ctx, uint64_t n, bool still)
{
	(void)still;
	never(ctx, n);
}

static void never_synced(void *ctx)
{
	never(ctx, 0);
}

static void never_started(void *ctx, uint64_t job, int pid)
{
	(void)pid;
	never(ctx, job);
}

static void never_output(void *ctx, uint64_t job, uint64_t total, uint64_t err_total)
{
	(void)total;
	(void)err_total;
	never(ctx, job);
}

static void never_input(void *ctx, uint64_t job, uint64_t got)
{
	(void)got;
	never(ctx, job);
}

static void never_session(void *ctx, const struct cube_link_session *s)
{
	never(ctx, s->session);
}

static void never_ended(void *ctx, uint64_t job, const struct cube_end_record *end,
			const struct cube_err *err)
{
	(void)end;
	(void)err;
	never(ctx, job);
}

static void never_down(void *ctx, const struct cube_err *err)
{
	(void)err;
	never(ctx, 0);
}

static void no_link(void **state)
{
	static const struct cube_link_handler handler = {
		.up = never,
		.synced = never_synced,
		.started = never_started,
		.output = never_output,
		.input = never_input,
		.session = never_session,
		.ended = never_ended,
		.left = never_left,
		.down = never_down,
	};
	struct cube_backend *b = *state;
	struct cube_link *l = NULL;
	struct cube_err err;

	expect(cube_backend_link(b, "box-1", &handler, NULL, NULL, &l, &err), -EREMOTEIO, &err, "no link");
	assert_null(l);
}

static void concurrency(void **state)
{
	struct cube_backend *b = *state;
	int cube;

	b->par = CUBE_PAR_NONE;
	assert_ptr_equal(cube_backend_queue_key(b, &cube), b);
	b->par = CUBE_PAR_PER_CUBE;
	assert_ptr_equal(cube_backend_queue_key(b, &cube), &cube);
	b->par = CUBE_PAR_FULL;
	assert_null(cube_backend_queue_key(b, &cube));
}

static void limits(void **state)
{
	const struct cube_limits none = {.pids = 0}, pids = {.pids = 9};
	struct cube_backend *b = *state;
	struct cube_err err;

	assert_int_equal(cube_backend_limit(b, "box-1", &none, &err),
			 0); /* nothing asked for, nothing to do */
	expect(cube_backend_limit(b, "box-1", &pids, &err), -EOPNOTSUPP, &err, "pids");
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH(opening),       WITH(reasons),       WITH(sentences),   WITH(bad_ids),
		WITH(failed_create), WITH(other_sandbox), WITH(listing),     WITH(status),
		WITH(bad_root),      WITH(no_link),       WITH(concurrency), WITH(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
