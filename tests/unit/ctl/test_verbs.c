/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs: dispatch, what is refused and how, waiting, ` &`, cancelling, templates, usage. */
#include "tests/unit/ctl/stage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "ctl/ctl_priv.h"
#include "ctl/event.h"

static void expect(struct stage *s, enum cube_scope scope, void *object, const char *line, int code,
		   const char *part)
{
	int r = stage_verb(s, scope, object, line);

	if (r != code || (part != NULL && strstr(s->err.text, part) == NULL))
		fail_msg("'%s': %s '%s', wanted %s with '%s'", line, cube_errno_name(r), s->err.text,
			 cube_errno_name(code), part);
}

static void dispatch(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");

	expect(s, CUBE_SCOPE_ROOT, NULL, "", 0, "");
	expect(s, CUBE_SCOPE_ROOT, NULL, "   # a comment", 0, "");
	expect(s, CUBE_SCOPE_ROOT, NULL, "fly", -EINVAL,
	       "no verb 'fly' here; known: create, destroy, rename, fork, mkdir");
	expect(s, CUBE_SCOPE_ROOT, NULL, "create", -EINVAL, "usage: create NAME [key=value ...]");
	expect(s, CUBE_SCOPE_ROOT, NULL, "create 'open", -EINVAL, NULL);
	expect(s, CUBE_SCOPE_CUBE, c, "stop 1 2", -EINVAL, "usage: stop [SECONDS]");
	expect(s, CUBE_SCOPE_CUBE, c, "stop soon", -EINVAL, "'soon' is no number of seconds");
	expect(s, CUBE_SCOPE_CUBE, c, "kill", -EINVAL, "usage: kill SIGNAL");
	expect(s, CUBE_SCOPE_CUBE, c, "kill SIGFOO", -EINVAL, "no signal 'SIGFOO'");
	expect(s, CUBE_SCOPE_CUBE, c, "kill 65", -EINVAL, "no signal '65'");
	expect(s, CUBE_SCOPE_CUBE, c, "kill sigusr1", 0, "");
	expect(s, CUBE_SCOPE_CUBE, c, "set", -EINVAL, "usage: set key=value");
	expect(s, CUBE_SCOPE_CUBE, c, "set resume", -EINVAL, "is no key=value");
	expect(s, CUBE_SCOPE_CUBE, c, "set colour=red", -EINVAL, "no setting 'colour'");
	expect(s, CUBE_SCOPE_CUBE, c, "set resume=perhaps", -EINVAL, "resume=perhaps");
	expect(s, CUBE_SCOPE_CUBE, c, "set command_timeout=x", -EINVAL, "command_timeout=x");
	expect(s, CUBE_SCOPE_CUBE, c, "set command_timeout=9", 0, "");
	expect(s, CUBE_SCOPE_CUBE, c, "set label.x=y", 0, "");
	assert_string_equal(cube_map_get(c->labels, "x"), "y");
	expect(s, CUBE_SCOPE_CUBE, c, "set label.x=", 0, "");
	assert_null(cube_map_get(c->labels, "x"));
	expect(s, CUBE_SCOPE_CUBE, c, "set memory=2", -EINVAL, "memory=2");
	expect(s, CUBE_SCOPE_CUBE, c, "set cpus=2", -EOPNOTSUPP, "cpus");
	expect(s, CUBE_SCOPE_CUBE, c, "set memory=128M", 0, "");
	assert_int_equal(c->limits.memory, 128 << 20);
	expect(s, CUBE_SCOPE_CUBE, c, "set pids=99", 0, "");
	assert_int_equal(c->limits.pids, 99);
	expect(s, CUBE_SCOPE_ROOT, NULL, "set output_limit=1", -EINVAL, "output_limit=1");
	expect(s, CUBE_SCOPE_ROOT, NULL, "set nothing=1", -EINVAL, "no setting 'nothing'");
	expect(s, CUBE_SCOPE_ROOT, NULL, "set exit_patience=5", 0, "");
	assert_int_equal(s->d->exit_patience_s, 5);
	expect(s, CUBE_SCOPE_BACKEND, s->d->default_service, "refresh", 0, "");
	expect(s, CUBE_SCOPE_BACKEND, s->d->default_service, "refresh now", -EINVAL, "usage: refresh");
	assert_true(s->d->default_service->status.reachable);
	assert_int_equal(s->d->default_service->there.n, 1);
}

static void create_says_the_name(void **state)
{
	struct stage *s = *state;

	assert_int_equal(stage_root(s, "create dev"), 0);
	assert_string_equal(s->answer, "name=dev");
}

/* ---- Waiting ---- */

struct waiting {
	struct cube_verb_call call;
	bool done;
	int code;
};

static void waiting_done(struct cube_verb_call *call, int code)
{
	struct waiting *w = cube_container_of(call, struct waiting, call);

	assert_false(w->done);
	w->done = true;
	w->code = code;
}

static bool waiting_is_done(void *ctx)
{
	return ((struct waiting *)ctx)->done;
}

static void begin(struct stage *s, struct waiting *w, enum cube_scope scope, void *object, const char *line)
{
	*w = (struct waiting){
		.call = {.domain = s->d,
			 .scope = scope,
			 .object = object,
			 .done = waiting_done,
			 .by = {.pid = getpid(), .uid = getuid(), .gid = getgid(), .local = true}}};
	cube_domain_enter(s->d);
	cube_verb_start(&w->call, line, strlen(line));
	cube_domain_leave(s->d);
}

static int finish(struct stage *s, struct waiting *w)
{
	assert_true(stage_until(s, waiting_is_done, w));
	return w->code;
}

static void cancel(struct stage *s, struct waiting *w)
{
	cube_domain_enter(s->d);
	cube_verb_cancel(&w->call);
	cube_domain_leave(s->d);
}

static void waits(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct waiting w;

	expect(s, CUBE_SCOPE_CUBE, c, "wait", 0, "");
	expect(s, CUBE_SCOPE_CUBE, c, "wait running 1", 0, "");
	expect(s, CUBE_SCOPE_CUBE, c, "wait flying", -EINVAL, "'flying'");
	expect(s, CUBE_SCOPE_CUBE, c, "wait running soon", -EINVAL, "wait");
	expect(s, CUBE_SCOPE_CUBE, c, "wait paused 0", -ETIMEDOUT, "in time");
	begin(s, &w, CUBE_SCOPE_CUBE, c, "wait paused 20");
	assert_false(w.done);
	expect(s, CUBE_SCOPE_CUBE, c, "pause", 0, "");
	assert_int_equal(finish(s, &w), 0);
	begin(s, &w, CUBE_SCOPE_CUBE, c, "wait");
	expect(s, CUBE_SCOPE_CUBE, c, "stop", 0, "");
	assert_int_equal(finish(s, &w), -EHOSTDOWN);
	expect(s, CUBE_SCOPE_CUBE, c, "wait", -EHOSTDOWN, "`start` starts it");
	begin(s, &w, CUBE_SCOPE_CUBE, c, "wait running 30");
	assert_true(w.done); /* nothing is about to start it */
	begin(s, &w, CUBE_SCOPE_CUBE, c, "wait error");
	cube_domain_enter(s->d);
	cube_cube_ref(c);
	cube_domain_leave(s->d);
	expect(s, CUBE_SCOPE_ROOT, NULL, "destroy dev", 0, "");
	assert_int_equal(finish(s, &w), -EHOSTDOWN);
	cube_domain_enter(s->d);
	cube_cube_unref(c);
	cube_domain_leave(s->d);
}

static void kill_passes_a_wait(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_job *j = stage_start(s, c, "x", "hang");
	struct waiting w;

	begin(s, &w, CUBE_SCOPE_JOB, j, "wait");
	assert_false(w.done);
	expect(s, CUBE_SCOPE_JOB, j, "wait 0", -ETIMEDOUT, NULL);
	expect(s, CUBE_SCOPE_JOB, j, "kill", 0, "");
	assert_int_equal(finish(s, &w), 0);
	stage_unref(s, j);
}

static void cancelled(void **state)
{
	struct stage s;
	struct waiting w;

	(void)state;
	stage_open(&s, "[backend mem]\nkind=mem\ndelay=pause:300 create:300 destroy:50\n");
	begin(&s, &w, CUBE_SCOPE_ROOT, NULL, "create gone");
	cancel(&s, &w);
	assert_int_equal(w.code, -EINTR);
	cube_domain_enter(s.d);
	assert_null(cube_domain_find(s.d, "gone"));
	cube_domain_leave(s.d);

	struct cube_cube *c = stage_make(&s, "dev");

	begin(&s, &w, CUBE_SCOPE_CUBE, c, "wait stopped");
	cancel(&s, &w);
	assert_int_equal(w.code, -EINTR);
	begin(&s, &w, CUBE_SCOPE_CUBE, c, "pause");
	cancel(&s, &w);
	assert_int_equal(w.code, -EINTR);
	cancel(&s, &w);                               /* twice is harmless */
	assert_true(stage_phase(&s, c, CUBE_PAUSED)); /* it went on */
	begin(&s, &w, CUBE_SCOPE_ROOT, NULL, "destroy dev");
	cancel(&s, &w);
	assert_int_equal(w.code, -EINTR);
	begin(&s, &w, CUBE_SCOPE_BACKEND, s.d->default_service, "refresh");
	cancel(&s, &w);
	stage_close(&s);
}

static void left_to_itself(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");

	expect(s, CUBE_SCOPE_CUBE, c, "stop soon &", -EINVAL, "'soon'");
	expect(s, CUBE_SCOPE_CUBE, c, "wait stopped 0 &", 0, "");
	expect(s, CUBE_SCOPE_CUBE, c, "pause &", 0, "");
	assert_true(stage_phase(s, c, CUBE_PAUSED));
	expect(s, CUBE_SCOPE_CUBE, c, "wait stopped 0", -ETIMEDOUT, NULL); /* later than the one before */
	cube_domain_enter(s->d);
	assert_non_null(strstr(cube_buf_str(&c->done), "done pause ok\n"));
	assert_non_null(strstr(cube_buf_str(&c->done), "done wait ETIMEDOUT wait: "));
	cube_domain_leave(s->d);
	expect(s, CUBE_SCOPE_ROOT, NULL, "create '&'", -EINVAL, "'&'");
	expect(s, CUBE_SCOPE_ROOT, NULL, "create other &", 0, "");
	expect(s, CUBE_SCOPE_ROOT, NULL, "create other", -EEXIST, NULL);
	for (unsigned i = 0; i < 900; i++)
		expect(s, CUBE_SCOPE_CUBE, c, "set resume=yes &", 0, "");
	cube_domain_enter(s->d);
	assert_in_range(c->done.len, 1000, CUBE_DONE_MAX);
	assert_memory_equal(c->done.data, "done set ok\n", 12);
	cube_domain_leave(s->d);
}

/* By labels: all that have one, each once, or a sentence. */
static void destroy_by_label(void **state)
{
	struct stage *s = *state;

	(void)stage_make(s, "a label.team=red label.n=1");
	(void)stage_make(s, "b label.team=red");
	(void)stage_make(s, "c label.team=blue");
	(void)stage_make(s, "d");
	expect(s, CUBE_SCOPE_ROOT, NULL, "destroy label.team=green", -ENOENT,
	       "no sandbox has label.team=green");
	expect(s, CUBE_SCOPE_ROOT, NULL, "destroy label.team=", -EINVAL, "neither of them empty");
	expect(s, CUBE_SCOPE_ROOT, NULL, "destroy label.=x", -EINVAL, "neither of them empty");
	expect(s, CUBE_SCOPE_ROOT, NULL, "destroy label.team", -ENOENT, "no sandbox 'label.team'");
	expect(s, CUBE_SCOPE_ROOT, NULL, "destroy d d", -EINVAL, "named twice");
	/* All or none. */
	expect(s, CUBE_SCOPE_ROOT, NULL, "destroy label.team=red nobody", -ENOENT, "no sandbox 'nobody'");
	expect(s, CUBE_SCOPE_ROOT, NULL, "destroy d label.team=green", -ENOENT, "label.team=green");
	assert_int_equal(cube_map_count(s->d->by_name), 4);
	expect(s, CUBE_SCOPE_ROOT, NULL, "destroy label.n=1 label.team=red a", 0, "");
	assert_int_equal(cube_map_count(s->d->by_name), 2);
	expect(s, CUBE_SCOPE_ROOT, NULL, "destroy c d", 0, "");
}

/* As many holders as there are: the last one's end is the sandbox's. */
static void hold(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_hold one = {0}, two = {0};
	struct cube_err err = {0};

	expect(s, CUBE_SCOPE_CUBE, c, "hold", -EINVAL, "open for reading and writing");
	expect(s, CUBE_SCOPE_CUBE, c, "hold &", -EINVAL, "without &");
	cube_domain_enter(s->d);
	cube_hold_end(&one); /* holds nothing */
	assert_int_equal(cube_hold_take(&one, c, &err), 0);
	assert_int_equal(cube_hold_take(&one, c, &err), 0); /* once */
	assert_int_equal(cube_hold_take(&two, c, &err), 0);
	cube_hold_end(&one);
	cube_hold_end(&one);
	assert_int_equal(c->phase, CUBE_RUNNING);
	cube_hold_end(&two);
	assert_null(cube_domain_find(s->d, "dev"));
	cube_domain_leave(s->d);
	/* Destroyed by another while it is held. */
	c = stage_make(s, "dev");
	cube_domain_enter(s->d);
	assert_int_equal(cube_hold_take(&one, c, &err), 0);
	cube_domain_leave(s->d);
	expect(s, CUBE_SCOPE_ROOT, NULL, "destroy dev", 0, "");
	cube_domain_enter(s->d);
	assert_int_equal(cube_hold_take(&two, c, &err), -EHOSTDOWN);
	cube_hold_end(&one);
	cube_domain_leave(s->d);
}

/* What is waited for ends with the daemon: everybody is told. */
static void the_end(void **state)
{
	struct stage s;
	struct waiting w[4];

	(void)state;
	stage_open(&s, "[backend mem]\nkind=mem\ndelay=pause:300\n");
	struct cube_cube *c = stage_make(&s, "dev");
	struct cube_job *j = stage_start(&s, c, "x", "hang");

	begin(&s, &w[0], CUBE_SCOPE_CUBE, c, "wait error");
	begin(&s, &w[1], CUBE_SCOPE_JOB, j, "wait");
	begin(&s, &w[2], CUBE_SCOPE_CUBE, c, "pause");
	stage_unref(&s, j);
	cube_domain_shutdown(s.d, 5000);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(w[i].done);
		assert_int_equal(w[i].code, -EHOSTDOWN);
	}
	expect(&s, CUBE_SCOPE_ROOT, NULL, "create late", -EHOSTDOWN, "ending");
	stage_close(&s);
}

/* ---- Templates ---- */

static struct cube_template_entry *template_make(struct stage *s, const char *name)
{
	struct cube_template_entry *t = NULL;

	cube_domain_enter(s->d);
	if (cube_template_create(s->d->default_service, name, &t, &s->err) < 0)
		t = NULL;
	else
		cube_template_ref(t);
	cube_domain_leave(s->d);
	return t;
}

static void template_unref(struct stage *s, struct cube_template_entry *t)
{
	cube_domain_enter(s->d);
	cube_template_unref(t);
	cube_domain_leave(s->d);
}

static int template_remove(struct stage *s, struct cube_template_entry *t)
{
	cube_domain_enter(s->d);
	int r = cube_template_remove(t, &s->err);
	cube_domain_leave(s->d);
	return r;
}

static bool template_listed(void *ctx)
{
	struct cube_template_entry *t = ctx;

	return t->listed;
}

static void templates(void **state)
{
	struct stage *s = *state;
	struct cube_template_entry *t = template_make(s, "mine:v1");
	char path[96], line[128];

	assert_non_null(t);
	assert_null(template_make(s, "mine:v1"));
	assert_int_equal(s->err.code, -EEXIST);
	assert_null(template_make(s, "a/b"));
	assert_int_equal(s->err.code, -EINVAL);
	expect(s, CUBE_SCOPE_ROOT, NULL, "create x template=mine:v1", -ENOENT, "not ready");
	expect(s, CUBE_SCOPE_TEMPLATE, t, "import", -EINVAL, "usage: import SOURCE");
	expect(s, CUBE_SCOPE_TEMPLATE, t, "import relative", -EINVAL, "absolute path");
	expect(s, CUBE_SCOPE_TEMPLATE, t, "import /no/such/place", -ENOENT, "/no/such/place");
	assert_string_equal(t->info.state, "error");
	assert_int_equal(t->failure.code, -ENOENT);
	expect(s, CUBE_SCOPE_TEMPLATE, t, "cancel", 0, "");
	(void)snprintf(path, sizeof(path), "%s/source", s->dir);
	assert_int_equal(cube_file_mkdir_path(path, 0755), 0);
	(void)snprintf(line, sizeof(line), "%s/hello", path);
	assert_int_equal(cube_state_replace(-1, line, "world\n", 6), 0);
	(void)snprintf(line, sizeof(line), "import %s", path);
	expect(s, CUBE_SCOPE_TEMPLATE, t, line, 0, "");
	assert_string_equal(t->info.state, "ready");
	assert_int_equal(t->failure.code, 0);
	assert_non_null(strstr(cube_buf_str(&t->log.text), "import /"));
	assert_true(stage_until(s, template_listed, t));

	struct cube_cube *c = stage_make(s, "x template=mine:v1");
	char *out;

	assert_int_equal(stage_exec(s, c, NULL, "cat /hello", &out), 0);
	assert_string_equal(out, "world\n");
	cube_free(out);
	assert_int_equal(template_remove(s, t), -EBUSY);
	assert_non_null(strstr(s->err.text, "'x'"));
	expect(s, CUBE_SCOPE_ROOT, NULL, "destroy x", 0, "");
	assert_int_equal(template_remove(s, t), 0);
	assert_int_equal(template_remove(s, t), -ENOENT);
	template_unref(s, t);
	expect(s, CUBE_SCOPE_ROOT, NULL, "create x template=mine:v1", -ENOENT, "no template");
}

/* A list of the backend's templates that was made while an import ran comes in when it has ended. */
static void an_older_list_is_no_news(void **state)
{
	struct stage *s = *state;
	struct cube_template_known list = {.t = {.name = "late", .state = "importing"}};
	struct cube_service *service = s->d->default_service;
	struct cube_template_entry *t = template_make(s, "late");

	cube_domain_enter(s->d);
	uint64_t begun = cube_service_stamp(service);
	cube_domain_leave(s->d);
	expect(s, CUBE_SCOPE_TEMPLATE, t, "import /no/such/place", -ENOENT, "/no/such/place");
	cube_domain_enter(s->d);
	cube_templates_take(s->d, service, &list, 1, begun);
	assert_string_equal(t->info.state, "error");
	cube_templates_take(s->d, service, &list, 1, cube_service_stamp(service));
	assert_string_equal(t->info.state, "importing"); /* by somebody else */
	cube_domain_leave(s->d);
	template_unref(s, t);
}

static void templates_outlive_the_daemon(void **state)
{
	struct stage *s = *state;
	struct cube_template_entry *t = template_make(s, "only-made");

	template_unref(s, t);
	stage_down(s);
	stage_up(s);
	cube_domain_enter(s->d);
	t = cube_template_find(s->d->default_service, "only-made");
	assert_non_null(t);
	assert_string_equal(t->info.state, "none");
	cube_domain_leave(s->d);
	assert_int_equal(template_remove(s, t), 0);
	stage_down(s);
	stage_up(s);
	cube_domain_enter(s->d);
	assert_null(cube_template_find(s->d->default_service, "only-made"));
	cube_domain_leave(s->d);
}

/* A sandbox made of a template whose import is under way waits in `creating`. */
static void import_is_waited_for(void **state)
{
	struct stage s;
	struct waiting w, made;
	char line[128];

	(void)state;
	stage_open(&s, "[backend mem]\nkind=mem\ndelay=template_import:200\n");
	struct cube_template_entry *t = template_make(&s, "slow");

	(void)snprintf(line, sizeof(line), "import %s/cubes", s.dir);
	begin(&s, &w, CUBE_SCOPE_TEMPLATE, t, line);
	assert_int_equal(stage_verb(&s, CUBE_SCOPE_TEMPLATE, t, line), -EBUSY);
	assert_int_equal(template_remove(&s, t), -EBUSY);
	begin(&s, &made, CUBE_SCOPE_ROOT, NULL, "create x template=slow");
	assert_false(made.done);
	assert_int_equal(finish(&s, &w), 0);
	assert_int_equal(finish(&s, &made), 0);
	assert_int_equal(stage_root(&s, "destroy x"), 0);
	begin(&s, &w, CUBE_SCOPE_TEMPLATE, t, line);
	assert_int_equal(stage_verb(&s, CUBE_SCOPE_TEMPLATE, t, "cancel"), 0);
	assert_int_equal(finish(&s, &w), -EINTR);
	template_unref(&s, t);
	stage_close(&s);
}

/* Who is told that it is there finds its size, however long the next list takes. */
static void import_is_known(void **state)
{
	struct cube_template_entry *t;
	struct stage s;
	char path[96], line[128];

	(void)state;
	stage_open(&s, "[backend mem]\nkind=mem\ndelay=template_list:300\n");
	t = template_make(&s, "mine");
	(void)snprintf(path, sizeof(path), "%s/source", s.dir);
	assert_int_equal(cube_file_mkdir_path(path, 0755), 0);
	(void)snprintf(line, sizeof(line), "import %s", path);
	expect(&s, CUBE_SCOPE_TEMPLATE, t, line, 0, "");
	assert_string_equal(t->info.state, "ready");
	assert_true(t->info.size != UINT64_MAX);
	template_unref(&s, t);
	stage_close(&s);
}

/* ---- Usage ---- */

static void usage(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_buf out = CUBE_BUF(1 << 16);

	cube_domain_enter(s->d);
	assert_int_equal(cube_verb_usage(CUBE_SCOPE_CUBE, c, &out), 0);
	cube_domain_leave(s->d);
	assert_non_null(strstr(cube_buf_str(&out), "stop [SECONDS]"));
	assert_non_null(strstr(cube_buf_str(&out), "pause "));
	expect(s, CUBE_SCOPE_CUBE, c, "stop", 0, "");
	cube_buf_reset(&out);
	cube_domain_enter(s->d);
	assert_int_equal(cube_verb_usage(CUBE_SCOPE_CUBE, c, &out), 0);
	cube_domain_leave(s->d);
	assert_null(strstr(cube_buf_str(&out), "pause "));
	assert_non_null(strstr(cube_buf_str(&out), "start "));
	cube_buf_done(&out);
}

static void tables_are_sound(void **state)
{
	(void)state;
	for (unsigned scope = 0; scope < CUBE_SCOPE_COUNT; scope++)
		for (const struct cube_verb *const *v = cube_verbs((enum cube_scope)scope); *v != NULL; v++) {
			assert_non_null((*v)->run);
			assert_true((*v)->min <= (*v)->max);
			assert_string_not_equal((*v)->summary, "");
			assert_true((*v)->args[0] != '\0' || (*v)->max == 0);
			for (const struct cube_verb *const *w = v + 1; *w != NULL; w++)
				assert_string_not_equal((*v)->name, (*w)->name);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(dispatch, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(create_says_the_name, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(waits, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(kill_passes_a_wait, stage_setup, stage_teardown),
		cmocka_unit_test(cancelled),
		cmocka_unit_test_setup_teardown(destroy_by_label, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(hold, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(left_to_itself, stage_setup, stage_teardown),
		cmocka_unit_test(the_end),
		cmocka_unit_test_setup_teardown(templates, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(an_older_list_is_no_news, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(templates_outlive_the_daemon, stage_setup, stage_teardown),
		cmocka_unit_test(import_is_waited_for),
		cmocka_unit_test(import_is_known),
		cmocka_unit_test_setup_teardown(usage, stage_setup, stage_teardown),
		cmocka_unit_test(tables_are_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
