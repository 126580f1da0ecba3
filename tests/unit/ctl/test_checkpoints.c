/* SPDX-License-Identifier: Apache-2.0 */
/* Other states of a sandbox's files: reset, checkpoints, restore; what becomes of all else meanwhile, and when it fails. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "ctl/checkpoint.h"
#include "ctl/ctl_priv.h"
#include "ctl/errlog.h"
#include "tests/unit/ctl/stage.h"

static void faulty(struct stage *s, const char *lines)
{
	char conf[256];

	(void)snprintf(conf, sizeof(conf), "[backend mem]\nkind=mem\n%s\n", lines);
	stage_open(s, conf);
}

static void expect_run(struct stage *s, struct cube_cube *c, const char *text, int code, const char *output)
{
	char *out = NULL;

	assert_int_equal(stage_exec(s, c, NULL, text, &out), code);
	assert_string_equal(out, output);
	cube_free(out);
}

/* ---- reset ---- */

static void reset_running(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "a env.A=b");
	struct cube_job *j;

	expect_run(s, c, "write /tmp/f mine; write /workspace/w kept", 0, "");
	j = stage_start(s, c, "long", "await never");
	assert_int_equal(stage_cube(s, c, "reset"), 0);
	assert_int_equal(c->phase, CUBE_RUNNING);
	assert_int_equal(c->generation, 1);
	assert_null(c->doing);
	assert_int_equal(j->state, CUBE_JOB_ENDED);
	assert_int_equal(j->end.how, CUBE_END_KILLED);
	assert_int_not_equal(stage_exec(s, c, NULL, "cat /tmp/f", NULL), 0);
	expect_run(s, c, "cat /workspace/w; echo $A", 0, "kept\nb\n");
	stage_unref(s, j);
}

static void reset_in_states(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "a");

	assert_int_equal(stage_cube(s, c, "pause"), 0);
	assert_int_equal(stage_cube(s, c, "reset"), 0);
	assert_int_equal(c->phase, CUBE_RUNNING);
	assert_int_equal(stage_cube(s, c, "stop 0"), 0);
	assert_int_equal(stage_cube(s, c, "reset"), 0);
	assert_int_equal(c->phase, CUBE_STOPPED);
	assert_int_equal(c->generation, 2);
	assert_int_equal(stage_cube(s, c, "reset x"), -EINVAL);
	assert_int_equal(c->generation, 2);
	assert_int_equal(stage_cube(s, c, "start"), 0);
	expect_run(s, c, "echo on", 0, "on\n");
}

/* The backend refuses: nothing has changed, and it goes on. */
static void reset_fails(void **state)
{
	struct stage s;
	struct cube_cube *c;

	(void)state;
	faulty(&s, "fail=reset:ENOSPC:1");
	c = stage_make(&s, "a");
	expect_run(&s, c, "X=1; write /tmp/f mine", 0, "");
	assert_int_equal(stage_cube(&s, c, "reset"), -ENOSPC);
	assert_int_equal(c->generation, 0);
	assert_null(c->doing);
	expect_run(&s, c, "cat /tmp/f", 0, "mine\n");
	assert_int_equal(stage_cube(&s, c, "reset"), 0);
	assert_int_equal(c->generation, 1);
	stage_close(&s);
}

static void reset_is_missing(void **state)
{
	struct stage s;
	struct cube_cube *c;

	(void)state;
	faulty(&s, "caps=-reset");
	c = stage_make(&s, "a");
	assert_int_equal(stage_cube(&s, c, "reset"), -EOPNOTSUPP);
	assert_int_equal(c->generation, 0);
	stage_close(&s);
}

/* ---- checkpoints ---- */

static struct cube_checkpoint_entry *find(struct stage *s, const char *cube, const char *name)
{
	struct cube_checkpoint_entry *e;

	cube_domain_enter(s->d);
	e = cube_checkpoint_find(cube_domain_find(s->d, cube), name);
	cube_domain_leave(s->d);
	return e;
}

static int drop(struct stage *s, const char *cube, const char *name)
{
	struct cube_checkpoint_entry *e = find(s, cube, name);
	int r;

	assert_non_null(e);
	cube_domain_enter(s->d);
	r = cube_checkpoint_remove(e, &s->err);
	cube_domain_leave(s->d);
	return r;
}

struct count {
	struct stage *s;
	unsigned want;
};

static void count_one(void *ctx, const struct cube_checkpoint *c)
{
	(void)c;
	++*(unsigned *)ctx;
}

/* Under the lock: mem does not wait for anybody. */
static bool counts(void *ctx)
{
	const struct count *n = ctx;
	unsigned is = 0;

	assert_int_equal(
		cube_backend_checkpoint_list(n->s->d->default_service->backend, count_one, &is, NULL), 0);
	return is == n->want;
}

/* The backend has so many, by and by. */
static void expect_count(struct stage *s, unsigned want)
{
	struct count n = {.s = s, .want = want};

	assert_true(stage_until(s, counts, &n));
}

static void names(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "a");

	assert_int_equal(stage_cube(s, c, "checkpoint one"), 0);
	assert_int_equal(stage_cube(s, c, "checkpoint 'two words' memory=no"), 0);
	assert_non_null(find(s, "a", "two words"));
	assert_int_equal(stage_cube(s, c, "checkpoint one"), -EEXIST);
	assert_int_equal(stage_cube(s, c, "checkpoint last"), -EINVAL);
	assert_int_equal(stage_cube(s, c, "checkpoint clone"), -EINVAL);
	assert_int_equal(stage_cube(s, c, "checkpoint ''"), -EINVAL);
	assert_int_equal(stage_cube(s, c, "checkpoint a/b"), -EINVAL);
	assert_int_equal(stage_cube(s, c, "checkpoint .."), -EINVAL);
	assert_int_equal(stage_cube(s, c, "checkpoint m memory=yes"), -EOPNOTSUPP);
	assert_int_equal(stage_cube(s, c, "checkpoint m memory=x"), -EINVAL);
	assert_int_equal(stage_cube(s, c, "checkpoint m x=y"), -EINVAL);
	expect_count(s, 2);
	cube_domain_enter(s->d);
	assert_int_equal(cube_checkpoint_rename(cube_checkpoint_find(c, "one"), "two words", &s->err),
			 -EEXIST);
	assert_int_equal(cube_checkpoint_rename(cube_checkpoint_find(c, "one"), "last", &s->err), -EINVAL);
	assert_int_equal(cube_checkpoint_rename(cube_checkpoint_find(c, "one"), "1", &s->err), 0);
	cube_domain_leave(s->d);
	assert_null(find(s, "a", "one"));
	assert_int_equal(drop(s, "a", "1"), 0);
	expect_count(s, 1);
	assert_int_equal(stage_root(s, "destroy a"), 0);
	expect_count(s, 0);
}

static void restored(void **state)
{
	struct stage *s = *state;
	struct cube_cube *a = stage_make(s, "a"), *b = stage_make(s, "b");

	expect_run(s, a, "write /tmp/f one; write /workspace/f one", 0, "");
	assert_int_equal(stage_cube(s, a, "checkpoint one"), 0);
	expect_run(s, a, "write /tmp/f two; write /workspace/f two", 0, "");
	assert_int_equal(stage_cube(s, a, "checkpoint two"), 0);
	assert_string_equal(find(s, "a", "two")->parent, find(s, "a", "one")->id);
	assert_int_equal(stage_cube(s, a, "restore one"), 0);
	assert_int_equal(a->generation, 1);
	expect_run(s, a, "cat /tmp/f; cat /workspace/f", 0, "one\none\n");
	assert_int_equal(stage_cube(s, b, "restore a/two"), 0);
	expect_run(s, b, "cat /tmp/f", 0, "two\n");
	assert_int_equal(stage_cube(s, b, "restore two"), -ENOENT);
	assert_int_equal(stage_cube(s, b, "restore a/three"), -ENOENT);
	assert_int_equal(stage_cube(s, b, "restore c/two"), -ENOENT);
	assert_int_equal(stage_cube(s, b, "checkpoint of"), 0);
	assert_string_equal(find(s, "b", "of")->parent, find(s, "a", "two")->id);
	/* what came from one that is deleted came from its parent */
	assert_int_equal(drop(s, "a", "two"), 0);
	expect_count(s, 2);
	assert_string_equal(find(s, "b", "of")->parent, find(s, "a", "one")->id);
	assert_int_equal(stage_verb(s, CUBE_SCOPE_CHECKPOINT, find(s, "a", "one"), "set label.x=y"), 0);
	assert_int_equal(stage_verb(s, CUBE_SCOPE_CHECKPOINT, find(s, "a", "one"), "set x=y"), -EINVAL);
	assert_int_equal(stage_cube(s, a, "stop 0"), 0);
	assert_int_equal(stage_verb(s, CUBE_SCOPE_CHECKPOINT, find(s, "a", "one"), "restore"), 0);
	assert_int_equal(a->phase, CUBE_STOPPED);
}

static void other_backend(void **state)
{
	struct stage s;
	struct cube_cube *a, *b, *c;

	(void)state;
	stage_open(&s, "[backend one]\nkind=mem\n[backend two]\nkind=mem\n[backend bare]\nkind=mem\n"
		       "caps=-checkpoints\n");
	a = stage_make(&s, "a backend=one");
	b = stage_make(&s, "b backend=two");
	c = stage_make(&s, "c backend=bare");
	assert_int_equal(stage_cube(&s, a, "checkpoint x"), 0);
	assert_int_equal(stage_cube(&s, b, "restore a/x"), -EINVAL);
	assert_int_equal(stage_cube(&s, c, "checkpoint x"), -EOPNOTSUPP);
	stage_close(&s);
}

/* Whole or not at all; the name is free after a failure. */
static void taking_fails(void **state)
{
	struct stage s;
	struct cube_cube *c;

	(void)state;
	faulty(&s, "fail=checkpoint:ENOSPC:1 checkpoint_remove:EREMOTEIO:1\nlose=restore:EREMOTEIO:1");
	c = stage_make(&s, "a");
	assert_int_equal(stage_cube(&s, c, "checkpoint x"), -ENOSPC);
	assert_null(find(&s, "a", "x"));
	assert_null(c->doing);
	expect_run(&s, c, "write /tmp/f mine", 0, "");
	assert_int_equal(stage_cube(&s, c, "checkpoint x"), 0);
	expect_count(&s, 1);
	/* done, and its answer lost: what is there is looked at */
	expect_run(&s, c, "write /tmp/f other", 0, "");
	assert_int_equal(stage_cube(&s, c, "restore x"), -EREMOTEIO);
	expect_run(&s, c, "cat /tmp/f", 0, "mine\n");
	stage_close(&s);
}

static bool busy(void *ctx)
{
	return ((struct cube_cube *)ctx)->doing != NULL;
}

static int take(struct stage *s, struct cube_cube *c, struct cube_checkpoint_entry **ret)
{
	int r;

	cube_domain_enter(s->d);
	r = cube_checkpoint_take(c, "x", ret, &s->err);
	cube_domain_leave(s->d);
	return r;
}

static void let_go(struct stage *s, struct cube_checkpoint_entry *e)
{
	cube_domain_enter(s->d);
	cube_checkpoint_unref(e);
	cube_domain_leave(s->d);
}

static bool over(void *ctx)
{
	return ((const struct cube_checkpoint_entry *)ctx)->phase != CUBE_CHECKPOINT_TAKING;
}

/* Who asked gives up, or the sandbox goes: there is none, here and at the backend. */
static void taking_is_called_off(void **state)
{
	struct cube_checkpoint_entry *e;
	struct stage s;
	struct cube_cube *c;

	(void)state;
	faulty(&s, "delay=checkpoint:300");
	c = stage_make(&s, "a");
	assert_int_equal(take(&s, c, &e), 0);
	assert_true(stage_until(&s, busy, c));
	assert_int_equal(stage_cube(&s, c, "checkpoint y"), -EBUSY);
	cube_domain_enter(s.d);
	assert_int_equal(cube_checkpoint_take(c, "x", &(struct cube_checkpoint_entry *){NULL}, &s.err),
			 -EEXIST);
	cube_checkpoint_leave(e);
	cube_domain_leave(s.d);
	assert_true(stage_until(&s, over, e));
	assert_int_equal(e->phase, CUBE_CHECKPOINT_FAILED);
	assert_int_equal(e->failure.code, -EINTR);
	let_go(&s, e);
	expect_count(&s, 0);
	assert_int_equal(take(&s, c, &e), 0);
	assert_int_equal(stage_root(&s, "destroy a"), 0);
	assert_true(stage_until(&s, over, e));
	assert_int_equal(e->phase, CUBE_CHECKPOINT_FAILED);
	let_go(&s, e);
	expect_count(&s, 0);
	stage_close(&s);
}

static bool pinned(void *ctx)
{
	return ((const struct cube_checkpoint_entry *)ctx)->uses > 0;
}

static void restoring_keeps_it(void **state)
{
	struct cube_life_call call = {.what = CUBE_LIFE_RESTORE};
	struct cube_checkpoint_entry *e;
	struct stage s;
	struct cube_cube *c;

	(void)state;
	faulty(&s, "delay=restore:300");
	c = stage_make(&s, "a");
	assert_int_equal(stage_cube(&s, c, "checkpoint x"), 0);
	e = find(&s, "a", "x");
	call.checkpoint = e;
	call.cancelled = true; /* nobody waits */
	cube_domain_enter(s.d);
	assert_int_equal(cube_cube_life(c, &call, &s.err), 0);
	assert_true(pinned(e));
	assert_int_equal(cube_checkpoint_remove(e, &s.err), -EBUSY);
	cube_domain_leave(s.d);
	assert_int_equal(stage_cube(&s, c, "wait running 20"), 0);
	while (drop(&s, "a", "x") == -EBUSY)
		(void)stage_phase(&s, c, CUBE_RUNNING);
	expect_count(&s, 0);
	stage_close(&s);
}

static char *error_text(struct stage *s, struct cube_cube *c)
{
	struct cube_buf text = CUBE_BUF(65536);
	char *copy;

	cube_domain_enter(s->d);
	assert_int_equal(cube_errlog_text(c->errors, &text), 0);
	cube_domain_leave(s->d);
	copy = cube_strdup(cube_buf_str(&text));
	cube_buf_done(&text);
	return copy;
}

/* mem has lost it by then: that is said, and it is listed no more. What outlives a daemon: tests/shell/checkpoints.sh */
static void over_a_kill(void **state)
{
	struct stage s;
	struct cube_cube *c;
	char *text;

	(void)state;
	faulty(&s, "");
	c = stage_make(&s, "a");
	assert_int_equal(stage_cube(&s, c, "checkpoint 'a\\b'"), 0);
	assert_int_equal(stage_verb(&s, CUBE_SCOPE_CHECKPOINT, find(&s, "a", "a\\b"), "set label.l=v"), 0);
	stage_killed(&s);
	stage_up(&s);
	for (unsigned i = 0; find(&s, "a", "a\\b") != NULL; i++) {
		assert_true(i < 10000);
		(void)usleep(1000);
	}
	c = cube_domain_find(s.d, "a");
	text = error_text(&s, c);
	assert_non_null(strstr(text, "backend 'mem' has lost checkpoint 'a"));
	cube_free(text);
	stage_close(&s);
}

/* ---- templates of them ---- */

static struct cube_template_entry *template(struct stage *s, const char *name)
{
	struct cube_template_entry *t;

	cube_domain_enter(s->d);
	t = cube_template_find(s->d->default_service, name);
	cube_domain_leave(s->d);
	return t;
}

static struct cube_template_entry *template_make(struct stage *s, const char *name)
{
	struct cube_template_entry *t;

	cube_domain_enter(s->d);
	assert_int_equal(cube_template_create(s->d->default_service, name, &t, &s->err), 0);
	cube_domain_leave(s->d);
	return t;
}

static void templates(void **state)
{
	struct stage *s = *state;
	struct cube_cube *a = stage_make(s, "a");
	struct cube_template_entry *t;

	expect_run(s, a, "write /tmp/f one; write /workspace/f one", 0, "");
	assert_int_equal(stage_cube(s, a, "checkpoint one"), 0);
	expect_run(s, a, "write /tmp/f two; write /workspace/f two", 0, "");
	assert_int_equal(stage_verb(s, CUBE_SCOPE_CHECKPOINT, find(s, "a", "one"), "template t"), 0);
	assert_string_equal(template(s, "t")->info.state, "ready");
	assert_string_equal(template(s, "t")->info.source, "sandbox:a/one");
	assert_int_equal(stage_verb(s, CUBE_SCOPE_CHECKPOINT, find(s, "a", "one"), "template t"), -EEXIST);
	assert_int_equal(stage_verb(s, CUBE_SCOPE_CHECKPOINT, find(s, "a", "one"), "template a/b"), -EINVAL);
	assert_int_equal(stage_verb(s, CUBE_SCOPE_CHECKPOINT, find(s, "a", "one"), "template"), -EINVAL);
	t = template_make(s, "live");
	assert_int_equal(stage_verb(s, CUBE_SCOPE_TEMPLATE, t, "import sandbox:a memory=64M"), 0);
	expect_count(s, 1); /* the one without a name is gone */
	assert_int_equal(stage_verb(s, CUBE_SCOPE_TEMPLATE, t, "import sandbox:b"), -ENOENT);
	assert_int_equal(stage_verb(s, CUBE_SCOPE_TEMPLATE, t, "import sandbox:a/two"), -ENOENT);
	assert_int_equal(stage_verb(s, CUBE_SCOPE_TEMPLATE, t, "import sandbox:a uefi=yes"), -EINVAL);
	assert_string_equal(t->info.state, "ready"); /* as it was */
	assert_int_equal(drop(s, "a", "one"), 0);
	assert_int_equal(stage_root(s, "destroy a"), 0);
	expect_run(s, stage_make(s, "b template=t"), "cat /tmp/f; cat /workspace/f", 0, "one\none\n");
	a = stage_make(s, "c template=live");
	expect_run(s, a, "cat /tmp/f; cat /workspace/f", 0, "two\ntwo\n");
	assert_int_equal(a->limits.memory, 64 << 20);
}

/* None is left of one that failed; one that mkdir made stays, and says why. */
static void template_fails(void **state)
{
	struct stage s;
	struct cube_cube *a;
	struct cube_template_entry *t;

	(void)state;
	faulty(&s, "fail=template_keep:ENOSPC:1 template_keep:ENOSPC:2 checkpoint:EREMOTEIO:1");
	a = stage_make(&s, "a");
	assert_int_equal(stage_cube(&s, a, "checkpoint one"), -EREMOTEIO);
	assert_int_equal(stage_cube(&s, a, "checkpoint one"), 0);
	assert_int_equal(stage_verb(&s, CUBE_SCOPE_CHECKPOINT, find(&s, "a", "one"), "template t"), -ENOSPC);
	assert_null(template(&s, "t"));
	t = template_make(&s, "t");
	assert_int_equal(stage_verb(&s, CUBE_SCOPE_TEMPLATE, t, "import sandbox:a"), -ENOSPC);
	assert_string_equal(t->info.state, "error");
	expect_count(&s, 1);
	assert_int_equal(stage_verb(&s, CUBE_SCOPE_TEMPLATE, t, "import sandbox:a"), 0);
	assert_string_equal(t->info.state, "ready");
	assert_int_equal(drop(&s, "a", "one"), 0);
	expect_count(&s, 0);
	stage_close(&s);
	faulty(&s, "fail=checkpoint:ENOSPC:1");
	a = stage_make(&s, "a");
	t = template_make(&s, "t");
	assert_int_equal(stage_verb(&s, CUBE_SCOPE_TEMPLATE, t, "import sandbox:a"), -ENOSPC);
	assert_string_equal(t->info.state, "error");
	assert_null(t->import);
	expect_count(&s, 0);
	stage_close(&s);
	faulty(&s, "caps=-keep");
	a = stage_make(&s, "a");
	assert_int_equal(stage_cube(&s, a, "checkpoint one"), 0);
	assert_int_equal(stage_verb(&s, CUBE_SCOPE_CHECKPOINT, find(&s, "a", "one"), "template t"),
			 -EOPNOTSUPP);
	t = template_make(&s, "t");
	assert_int_equal(stage_verb(&s, CUBE_SCOPE_TEMPLATE, t, "import sandbox:a"), -EOPNOTSUPP);
	stage_close(&s);
}

static bool importing(void *ctx)
{
	return ((const struct cube_template_entry *)ctx)->import != NULL;
}

static bool ended(void *ctx)
{
	return !importing(ctx);
}

static void template_is_called_off(void **state)
{
	struct stage s;
	struct cube_cube *a;
	struct cube_template_entry *t;
	struct cube_import *i;
	const struct cube_caller by = {.pid = 0};

	(void)state;
	faulty(&s, "delay=checkpoint:300");
	a = stage_make(&s, "a");
	t = template_make(&s, "t");
	cube_domain_enter(s.d);
	assert_int_equal(cube_template_import(s.d, t, &by, "sandbox:a", NULL, 0, &i, &s.err), 0);
	cube_domain_leave(s.d);
	assert_true(importing(t));
	assert_int_equal(stage_cube(&s, a, "checkpoint y"), -EBUSY);
	assert_int_equal(stage_verb(&s, CUBE_SCOPE_TEMPLATE, t, "import sandbox:a"), -EBUSY);
	assert_int_equal(stage_verb(&s, CUBE_SCOPE_TEMPLATE, t, "cancel"), 0);
	assert_true(stage_until(&s, ended, t));
	assert_string_equal(t->info.state, "error");
	assert_int_equal(t->failure.code, -EINTR);
	expect_count(&s, 0);
	stage_close(&s);
}

/* ---- fork ---- */

static struct cube_cube *named(struct stage *s, const char *name)
{
	struct cube_cube *c;

	cube_domain_enter(s->d);
	c = cube_domain_find(s->d, name);
	cube_domain_leave(s->d);
	return c;
}

static void forked(void **state)
{
	struct stage *s = *state;
	struct cube_cube *a = stage_make(s, "a pids=77 env.A=b label.l=v command_timeout=9");

	expect_run(s, a, "write /tmp/f one", 0, "");
	assert_int_equal(stage_cube(s, a, "checkpoint cp"), 0);
	expect_run(s, a, "write /tmp/f two", 0, "");
	assert_int_equal(stage_cube(s, a, "fork b c env.X=y"), 0);
	expect_run(s, named(s, "b"), "cat /tmp/f; echo $A $X", 0, "two\nb y\n");
	assert_int_equal(named(s, "c")->limits.pids, 77);
	assert_int_equal(named(s, "c")->command_timeout_s, 9);
	assert_string_equal(cube_map_get(named(s, "c")->labels, "l"), "v");
	assert_string_equal(named(s, "c")->parent, "a");
	assert_int_equal(stage_root(s, "fork a d from=cp"), 0);
	expect_run(s, named(s, "d"), "cat /tmp/f", 0, "one\n");
	assert_string_equal(named(s, "d")->parent, "a/cp");
	assert_int_equal(stage_root(s, "create e from=a/cp"), 0);
	assert_int_equal(stage_root(s, "create f from=d"), 0);
	expect_run(s, named(s, "f"), "cat /tmp/f", 0, "one\n");
	expect_count(s, 1); /* those without a name are gone */
	assert_int_equal(stage_root(s, "fork a g g"), -EEXIST);
	assert_int_equal(stage_root(s, "fork a g b"), -EEXIST);
	assert_int_equal(stage_root(s, "fork a g x=y"), -EINVAL);
	assert_int_equal(stage_root(s, "fork a g pool=p"), -EINVAL);
	assert_int_equal(stage_root(s, "fork a g from=no"), -ENOENT);
	assert_int_equal(stage_root(s, "fork a g memory=yes"), -EOPNOTSUPP);
	assert_int_equal(stage_root(s, "fork no g"), -ENOENT);
	assert_int_equal(stage_root(s, "fork a from=cp"), -EINVAL);
	assert_null(named(s, "g"));
	expect_count(s, 1);
}

/* One cannot be made: none is there. */
static void fork_fails(void **state)
{
	struct stage s;
	struct cube_cube *a;

	(void)state;
	faulty(&s, "max_sandboxes=3");
	a = stage_make(&s, "a");
	assert_int_equal(stage_cube(&s, a, "fork b c d"), -EDQUOT);
	assert_null(named(&s, "b"));
	assert_null(named(&s, "c"));
	assert_null(named(&s, "d"));
	expect_count(&s, 0);
	while (stage_cube(&s, a, "fork b c") == -EDQUOT) /* the last of those before are just going */
		(void)usleep(1000);
	assert_non_null(named(&s, "b"));
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reset_running, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(reset_in_states, stage_setup, stage_teardown),
		cmocka_unit_test(reset_fails),
		cmocka_unit_test(reset_is_missing),
		cmocka_unit_test_setup_teardown(names, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(restored, stage_setup, stage_teardown),
		cmocka_unit_test(other_backend),
		cmocka_unit_test(taking_fails),
		cmocka_unit_test(taking_is_called_off),
		cmocka_unit_test(restoring_keeps_it),
		cmocka_unit_test_setup_teardown(templates, stage_setup, stage_teardown),
		cmocka_unit_test(template_fails),
		cmocka_unit_test(template_is_called_off),
		cmocka_unit_test(over_a_kill),
		cmocka_unit_test_setup_teardown(forked, stage_setup, stage_teardown),
		cmocka_unit_test(fork_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
