/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a sandbox: names, keys, states, what is refused, what is under way. */
#include "tests/unit/ctl/host.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"
#include "ctl/event.h"

static void expect_refused(struct stage *s, const char *line, int code, const char *part)
{
	int r = stage_root(s, line);

	if (r != code || strstr(s->err.text, part) == NULL)
		fail_msg("'%s': %s '%s', wanted %s with '%s'", line, cube_errno_name(r), s->err.text,
			 cube_errno_name(code), part);
}

static unsigned count_cubes(struct stage *s)
{
	unsigned n = 0;

	cube_domain_enter(s->d);
	for (struct cube_cube *c = cube_domain_next(s->d, 0); c != NULL; c = cube_domain_next(s->d, c->seq))
		n++;
	cube_domain_leave(s->d);
	return n;
}

static void names(void **state)
{
	static const char *const bad[] = {
		"create ''",       "create .hidden",
		"create -dash",    "create 'a b'",
		"create a/b",      "create README",
		"create ctl",      "create list",
		"create clone",    "create events",
		"create backends", "create jobs",
		"create pools",    "create aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	};
	struct stage *s = *state;

	for (size_t i = 0; i < CUBE_COUNT(bad); i++)
		expect_refused(s, bad[i], -EINVAL, "name");
	stage_make(s, "a");
	stage_make(s, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	expect_refused(s, "create a", -EEXIST, "'a' is there already");
	assert_int_equal(count_cubes(s), 2);
}

static void keys(void **state)
{
	struct stage *s = *state;

	expect_refused(s, "create x colour=red", -EINVAL, "no key 'colour'; known: backend, template, net");
	expect_refused(s, "create x memory", -EINVAL, "is no key=value");
	expect_refused(s, "create x memory=much", -EINVAL, "memory=much");
	expect_refused(s, "create x memory=1k", -EINVAL, "at least 4M");
	expect_refused(s, "create x pids=3", -EINVAL, "pids=3");
	expect_refused(s, "create x net=all", -EINVAL, "net=all");
	expect_refused(s, "create x net=policy", -EOPNOTSUPP, "policy");
	expect_refused(s, "create x net=open", -EOPNOTSUPP, "net");
	expect_refused(s, "create x cpus=2", -EOPNOTSUPP, "cpus");
	expect_refused(s, "create x disk=1G", -EOPNOTSUPP, "disk");
	expect_refused(s, "create x privileged=maybe", -EINVAL, "privileged=maybe");
	expect_refused(s, "create x command_timeout=-1", -EINVAL, "command_timeout");
	expect_refused(s, "create x backend=moon", -ENOENT, "moon");
	expect_refused(s, "create x template=nothing", -ENOENT, "nothing");
	expect_refused(s, "create x template=../x", -EINVAL, "template");
	expect_refused(s, "create x env.1A=b", -EINVAL, "env.1A");
	expect_refused(s, "create x label.=b", -EINVAL, "label.");
	expect_refused(s, "create x memory=64M memory=65M", -EINVAL, "twice");
	assert_int_equal(count_cubes(s), 0);

	struct cube_cube *c = stage_make(
		s, "x memory=64M pids=50 env.GREETING='hello world' label.team=red command_timeout=7");
	char *out;

	assert_int_equal(c->limits.memory, 64 << 20);
	assert_int_equal(c->limits.pids, 50);
	assert_int_equal(c->command_timeout_s, 7);
	assert_string_equal(cube_map_get(c->labels, "team"), "red");
	assert_int_equal(stage_exec(s, c, NULL, "echo $GREETING $HOME", &out), 0);
	assert_string_equal(out, "hello world /root\n");
	cube_free(out);
}

static void every_state(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	uint64_t started = c->started_wall;

	assert_int_equal(c->phase, CUBE_RUNNING);
	assert_int_not_equal(started, 0);
	assert_int_equal(stage_cube(s, c, "start"), 0);
	assert_int_equal(stage_cube(s, c, "resume"), 0);
	assert_int_equal(stage_cube(s, c, "pause"), 0);
	assert_int_equal(c->phase, CUBE_PAUSED);
	assert_int_equal(stage_cube(s, c, "pause"), 0);
	assert_int_equal(stage_cube(s, c, "start"), -EINVAL);
	assert_int_equal(stage_cube(s, c, "resume"), 0);
	assert_int_equal(c->phase, CUBE_RUNNING);
	assert_int_equal(stage_cube(s, c, "stop 0"), 0);
	assert_int_equal(c->phase, CUBE_STOPPED);
	assert_string_equal(c->reason, "stopped");
	assert_int_equal(stage_cube(s, c, "stop"), 0);
	assert_int_equal(stage_cube(s, c, "pause"), -EHOSTDOWN);
	assert_non_null(strstr(s->err.text, "stopped"));
	assert_int_equal(stage_cube(s, c, "resume"), -EHOSTDOWN);
	assert_int_equal(stage_cube(s, c, "kill TERM"), -EHOSTDOWN);
	assert_int_equal(stage_exec(s, c, NULL, "true", NULL), -EHOSTDOWN - 1000);
	assert_non_null(strstr(s->err.text, "`start` starts it"));
	assert_int_equal(stage_cube(s, c, "start"), 0);
	assert_int_equal(c->phase, CUBE_RUNNING);
	assert_int_equal(stage_cube(s, c, "restart"), 0);
	assert_int_equal(stage_exec(s, c, NULL, "true", NULL), 0);
	assert_int_equal(stage_cube(s, c, "pause"), 0);
	assert_int_equal(stage_cube(s, c, "stop"), 0);
	assert_int_equal(stage_cube(s, c, "restart"), 0);
	assert_int_equal(c->phase, CUBE_RUNNING);
	assert_int_equal(stage_root(s, "destroy dev"), 0);
	assert_int_equal(count_cubes(s), 0);
}

static void use_resumes(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_err err;

	assert_int_equal(stage_cube(s, c, "pause"), 0);
	cube_domain_enter(s->d);
	assert_int_equal(cube_cube_usable(c, false, &err), 1);
	assert_int_equal(cube_cube_files_usable(c, &err), 0);
	cube_domain_leave(s->d);
	assert_int_equal(c->phase, CUBE_PAUSED);
	assert_int_equal(stage_exec(s, c, NULL, "true", NULL), 0);
	assert_int_equal(c->phase, CUBE_RUNNING);

	assert_int_equal(stage_cube(s, c, "set resume=no"), 0);
	assert_int_equal(stage_cube(s, c, "pause"), 0);
	assert_int_equal(stage_exec(s, c, NULL, "true", NULL), -EHOSTDOWN - 1000);
	assert_non_null(strstr(s->err.text, "resume=no"));
	assert_int_equal(stage_cube(s, c, "resume"), 0);
	assert_int_equal(stage_exec(s, c, NULL, "true", NULL), 0);
}

static void stop_ends_jobs(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_job *named = stage_start(s, c, "server", "echo up; hang");
	struct cube_job *first = stage_run(s, c, NULL, "hang");
	struct cube_job *second = stage_run(s, c, NULL, "echo never");

	assert_int_equal(second->state, CUBE_JOB_WAITING);
	stage_printed(s, named, 3);
	assert_int_equal(stage_cube(s, c, "restart"), 0);
	assert_int_not_equal(stage_end(s, named), 0);
	assert_int_not_equal(stage_end(s, first), 0);
	assert_int_equal(named->end.how, CUBE_END_KILLED);
	assert_int_equal(first->end.how, CUBE_END_KILLED);
	(void)stage_end(s, second);
	assert_int_equal(second->end.how, CUBE_END_KILLED);
	assert_int_equal(second->started_wall, 0);
	char *out = stage_output(s, named, CUBE_STREAM_OUTPUT);

	assert_string_equal(out, "up\n");
	cube_free(out);
	assert_int_equal(stage_exec(s, c, NULL, "true", NULL), 0);
	stage_unref(s, named);
	stage_unref(s, first);
	stage_unref(s, second);
}

static void rename_goes_on(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "old");
	struct cube_job *j = stage_run(s, c, NULL, "await go; echo done");

	stage_make(s, "other");
	expect_refused(s, "rename old other", -EEXIST, "other");
	expect_refused(s, "rename none new", -ENOENT, "none");
	expect_refused(s, "rename old .x", -EINVAL, ".x");
	expect_refused(s, "rename old", -EINVAL, "usage: rename OLD NEW");
	assert_int_equal(stage_root(s, "rename old new"), 0);
	assert_int_equal(stage_root(s, "rename new new"), 0);
	stage_go(s, c, "go");
	assert_int_equal(stage_end(s, j), 0);
	cube_domain_enter(s->d);
	assert_null(cube_domain_find(s->d, "old"));
	assert_ptr_equal(cube_domain_find(s->d, "new"), c);
	cube_job_unref(j);
	cube_domain_leave(s->d);
	stage_make(s, "old");
}

static bool is_gone(void *ctx)
{
	return cube_own(ctx)->gone;
}

static void removal_frees_the_name(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev"), *again;
	struct cube_job *j = stage_run(s, c, NULL, "hang");
	struct cube_err err;
	char uid[17], path[64], *file;

	cube_domain_enter(s->d);
	cube_cube_ref(c);
	(void)snprintf(uid, sizeof(uid), "%s", c->uid);
	assert_int_equal(cube_cube_remove(c, NULL, &err), 0);
	assert_null(cube_domain_find(s->d, "dev"));
	assert_int_equal(cube_cube_remove(c, NULL, &err), -ENOENT);
	assert_int_equal(cube_cube_usable(c, true, &err), -EHOSTDOWN);
	cube_domain_leave(s->d);
	again = stage_make(s, "dev");
	assert_ptr_not_equal(again, c);
	assert_int_not_equal(stage_end(s, j), 0);
	assert_int_equal(j->end.how, CUBE_END_KILLED);
	stage_unref(s, j);
	assert_true(stage_until(s, is_gone, c));
	(void)snprintf(path, sizeof(path), "cubes/%s.removed/cube.json", uid);
	file = stage_file(s, path);
	assert_null(file);
	cube_domain_enter(s->d);
	cube_cube_unref(c);
	cube_domain_leave(s->d);
}

static void destroy_verb(void **state)
{
	struct stage *s = *state;

	stage_make(s, "a");
	stage_make(s, "b");
	expect_refused(s, "destroy a none", -ENOENT, "none");
	expect_refused(s, "destroy a a", -EINVAL, "twice");
	expect_refused(s, "destroy", -EINVAL, "usage: destroy NAME|label.NAME=VALUE ...");
	assert_int_equal(count_cubes(s), 2);
	assert_int_equal(stage_root(s, "destroy a b"), 0);
	assert_int_equal(count_cubes(s), 0);
}

/* ---- For whoever shows it ---- */

struct watched {
	unsigned added, removed, jobs, sessions;
	char name[32];
};

static void saw_added(void *ctx, struct cube_cube *c)
{
	struct watched *w = ctx;

	(void)c;
	w->added++;
}

static void saw_removed(void *ctx, struct cube_cube *c, const char *name)
{
	struct watched *w = ctx;

	(void)c;
	w->removed++;
	(void)snprintf(w->name, sizeof(w->name), "%s", name);
}

static void saw_entry(void *ctx, struct cube_cube *c, const char *dir, const char *name)
{
	struct watched *w = ctx;

	(void)c, (void)name;
	*(strcmp(dir, "jobs") == 0 ? &w->jobs : &w->sessions) += 1;
}

static void watched(void **state)
{
	struct stage *s = *state;
	struct watched w = {0};
	struct cube_session *in;

	cube_domain_enter(s->d);
	s->d->watcher = (struct cube_domain_watcher){
		.ctx = &w, .cube_added = saw_added, .cube_removed = saw_removed, .entry_changed = saw_entry};
	cube_domain_leave(s->d);
	struct cube_cube *c = stage_make(s, "dev");

	assert_int_equal(w.added, 1);
	stage_unref(s, stage_start(s, c, "x", "true"));
	assert_in_range(w.jobs, 1, 4); /* its name and `last` */
	cube_domain_enter(s->d);
	assert_int_equal(cube_session_create(c, "side", &in, &s->err), 0);
	cube_domain_leave(s->d);
	assert_int_equal(w.sessions, 1);
	assert_int_equal(stage_root(s, "rename dev prod"), 0);
	assert_int_equal(w.added, 2);
	assert_string_equal(w.name, "dev");
	assert_int_equal(stage_root(s, "destroy prod"), 0);
	assert_int_equal(w.removed, 2);
	assert_string_equal(w.name, "prod");
	cube_domain_enter(s->d);
	s->d->watcher = (struct cube_domain_watcher){0};
	cube_domain_leave(s->d);
}

static bool has_counters(void *ctx)
{
	return ((struct cube_cube *)ctx)->usage_wall != 0;
}

static void counters(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");

	assert_int_equal(c->usage_wall, 0); /* nobody has looked */
	cube_domain_enter(s->d);
	cube_cube_look(c);
	cube_domain_leave(s->d);
	assert_true(stage_until(s, has_counters, c));
	assert_int_equal(c->usage.pids, 0);
}

static void fresh_names(void **state)
{
	struct stage *s = *state;
	char name[CUBE_NAME_MAX + 1];

	stage_make(s, "sandbox-2");
	cube_domain_enter(s->d);
	cube_cube_fresh_name(s->d, name);
	assert_string_equal(name, "sandbox-1");
	cube_cube_fresh_name(s->d, name);
	assert_string_equal(name, "sandbox-3");
	cube_domain_leave(s->d);
}

/* ---- Files ---- */

struct root_wait {
	atomic_bool done;
	int code;
};

static void root_came(void *ctx, int code, struct cube_root *root, const struct cube_err *err)
{
	struct root_wait *w = ctx;

	(void)err;
	w->code = code;
	if (code == 0)
		cube_root_close(root);
	atomic_store(&w->done, true);
}

static bool root_is_done(void *ctx)
{
	return atomic_load(&((struct root_wait *)ctx)->done);
}

static void root_of_files(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct root_wait w = {.code = 1}, late = {.code = 1};

	cube_domain_enter(s->d);
	assert_int_equal(cube_cube_root_async(c, root_came, &w), 0);
	cube_domain_leave(s->d);
	assert_true(stage_until(s, root_is_done, &w));
	assert_int_equal(w.code, 0);
	cube_domain_enter(s->d);
	cube_cube_ref(c);
	cube_domain_leave(s->d);
	assert_int_equal(stage_root(s, "destroy dev"), 0);
	cube_domain_enter(s->d);
	assert_int_equal(cube_cube_root_async(c, root_came, &late), 0);
	cube_cube_unref(c);
	cube_domain_leave(s->d);
	assert_true(stage_until(s, root_is_done, &late));
	assert_int_not_equal(late.code, 0);
}

/* ---- With faults ---- */

static void faulty(struct stage *s, const char *lines)
{
	char conf[256];

	(void)snprintf(conf, sizeof(conf), "[backend mem]\nkind=mem\n%s\n", lines);
	stage_open(s, conf);
}

static void creation_fails(void **state)
{
	struct stage s;
	struct cube_cube *c;

	(void)state;
	faulty(&s, "fail=create:EREMOTEIO");
	assert_int_equal(stage_root(&s, "create dev"), -EREMOTEIO);
	assert_non_null(strstr(s.err.text, "create 'dev'"));
	assert_int_equal(count_cubes(&s), 0);
	assert_int_equal(stage_mkdir(&s, "dev", &c), 0);
	assert_true(stage_phase(&s, c, CUBE_ERROR));
	assert_int_equal(c->failure.code, -EREMOTEIO);
	assert_int_equal(stage_exec(&s, c, NULL, "true", NULL), -EHOSTDOWN - 1000);
	assert_int_equal(stage_cube(&s, c, "start"), -EHOSTDOWN);
	assert_int_equal(stage_cube(&s, c, "wait"), -EHOSTDOWN);
	assert_int_equal(stage_root(&s, "destroy dev"), 0);
	stage_close(&s);
}

static void link_fails(void **state)
{
	struct stage s;

	(void)state;
	faulty(&s, "fail=link:EHOSTUNREACH");
	assert_int_equal(stage_root(&s, "create dev"), -EHOSTUNREACH);
	assert_int_equal(count_cubes(&s), 0);
	assert_int_equal(stage_verb(&s, CUBE_SCOPE_BACKEND, s.d->default_service, "refresh"), 0);
	assert_int_equal(s.d->default_service->there.n, 0);
	stage_close(&s);
}

static void creation_is_waited_for(void **state)
{
	struct stage s;
	struct cube_cube *c;
	struct cube_err err;

	(void)state;
	faulty(&s, "delay=create:100");
	assert_int_equal(stage_mkdir(&s, "dev", &c), 0);
	cube_domain_enter(s.d);
	assert_int_equal(c->phase, CUBE_CREATING);
	assert_int_equal(cube_cube_usable(c, true, &err), 1);
	assert_int_equal(cube_cube_files_usable(c, &err), 1);
	cube_domain_leave(s.d);
	assert_int_equal(stage_cube(&s, c, "pause"), -EBUSY);
	assert_int_equal(stage_cube(&s, c, "stop"), -EBUSY);
	assert_int_equal(stage_exec(&s, c, NULL, "true", NULL), 0); /* waits for it */
	assert_int_equal(c->phase, CUBE_RUNNING);
	stage_close(&s);
}

static void destruction_wins(void **state)
{
	struct stage s;
	struct cube_cube *c;

	(void)state;
	faulty(&s, "delay=create:5000");
	assert_int_equal(stage_mkdir(&s, "dev", &c), 0);
	assert_int_equal(stage_root(&s, "destroy dev"), 0);
	assert_int_equal(count_cubes(&s), 0);
	assert_int_equal(stage_verb(&s, CUBE_SCOPE_BACKEND, s.d->default_service, "refresh"), 0);
	assert_int_equal(s.d->default_service->there.n, 0);
	stage_close(&s);
}

static void one_operation_at_a_time(void **state)
{
	struct stage s;

	(void)state;
	faulty(&s, "delay=pause:200");

	struct cube_cube *c = stage_make(&s, "dev");

	assert_int_equal(stage_cube(&s, c, "pause &"), 0);
	assert_int_equal(stage_cube(&s, c, "stop"), -EBUSY);
	assert_non_null(strstr(s.err.text, "pause is under way"));
	/* A use that comes meanwhile resumes it again. */
	assert_int_equal(stage_exec(&s, c, NULL, "true", NULL), 0);
	assert_int_equal(c->phase, CUBE_RUNNING);
	cube_domain_enter(s.d);
	assert_string_equal(cube_buf_str(&c->done), "done pause ok\n");
	cube_domain_leave(s.d);
	stage_close(&s);
}

static void destruction_is_tried_again(void **state)
{
	struct stage s;
	struct cube_cube *c;

	(void)state;
	faulty(&s, "fail=destroy:EHOSTUNREACH:1");
	c = stage_make(&s, "dev");
	cube_domain_enter(s.d);
	cube_cube_ref(c);
	cube_domain_leave(s.d);
	assert_int_equal(stage_root(&s, "destroy dev"), -EHOSTUNREACH);
	assert_non_null(strstr(s.err.text, "tried again"));
	assert_true(stage_until(&s, is_gone, c));
	cube_domain_enter(s.d);
	cube_cube_unref(c);
	cube_domain_leave(s.d);
	stage_close(&s);
}

static void operations_fail(void **state)
{
	struct stage s;

	(void)state;
	faulty(&s, "fail=pause:EREMOTEIO:1 stop:ETIMEDOUT:1 start:ENOSPC:1");

	struct cube_cube *c = stage_make(&s, "dev");

	assert_int_equal(stage_cube(&s, c, "pause"), -EREMOTEIO);
	assert_int_equal(c->phase, CUBE_RUNNING);
	assert_int_equal(stage_cube(&s, c, "stop"), -ETIMEDOUT);
	assert_int_equal(c->phase, CUBE_RUNNING);
	assert_int_equal(stage_exec(&s, c, NULL, "true", NULL), 0);
	assert_int_equal(stage_cube(&s, c, "restart"), -ENOSPC);
	assert_true(stage_phase(&s, c, CUBE_STOPPED));
	assert_int_equal(stage_cube(&s, c, "start"), 0);
	assert_int_equal(stage_exec(&s, c, NULL, "true", NULL), 0);
	stage_close(&s);
}

/* Who uses it is told that it cannot be resumed, and nobody asks the backend over and over. */
static void resume_fails(void **state)
{
	struct stage s;

	(void)state;
	host_open(&s);
	struct cube_cube *c = stage_make(&s, "dev");

	assert_int_equal(stage_cube(&s, c, "pause"), 0);
	assert_int_equal(cube_fault_fail(host_faults(), "resume", -EREMOTEIO, 0), 0);
	unsigned long before = cube_fault_calls(host_faults(), "resume");
	struct cube_job *j = stage_run(&s, c, NULL, "true");

	assert_true(stage_phase(&s, c, CUBE_PAUSED));
	assert_int_equal(stage_exec(&s, c, NULL, "true", NULL), -EHOSTDOWN - 1000);
	assert_non_null(strstr(s.err.text, "cannot be resumed"));
	assert_int_equal(cube_fault_calls(host_faults(), "resume"), before + 1);
	assert_int_equal(stage_cube(&s, c, "resume"), -EREMOTEIO);
	cube_fault_release(host_faults(), "resume");
	assert_int_equal(stage_cube(&s, c, "resume"), 0);
	assert_int_equal(stage_end(&s, j), 0); /* accepted while it was thought possible */
	stage_unref(&s, j);
	host_close(&s);
}

static void without_capabilities(void **state)
{
	struct stage s;

	(void)state;
	faulty(&s, "caps=exec");

	struct cube_cube *c = stage_make(&s, "dev");
	struct cube_err err;

	assert_int_equal(stage_cube(&s, c, "pause"), -EOPNOTSUPP);
	assert_int_equal(stage_cube(&s, c, "stop"), -EOPNOTSUPP);
	assert_int_equal(stage_root(&s, "create x template=base"), -EOPNOTSUPP);
	cube_domain_enter(s.d);
	assert_int_equal(cube_cube_files_usable(c, &err), -EOPNOTSUPP);
	cube_domain_leave(s.d);
	assert_int_equal(stage_exec(&s, c, NULL, "true", NULL), 0);
	stage_close(&s);

	faulty(&s, "caps=files");
	c = stage_make(&s, "dev");
	assert_int_equal(stage_exec(&s, c, NULL, "true", NULL), -EOPNOTSUPP - 1000);
	stage_close(&s);
}

/* ---- It ends by itself ---- */

static void it_ends(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_job *j = stage_run(s, c, NULL, "sleep 250; crash");

	(void)stage_end(s, j);
	assert_true(stage_phase(s, c, CUBE_STOPPED));
	assert_string_not_equal(c->reason, "stopped");
	assert_string_not_equal(c->reason, "");
	assert_false(c->terminal);
	assert_int_equal(j->end.how, CUBE_END_LOST);
	assert_int_equal(j->end.code, -1);
	stage_unref(s, j);
	assert_int_equal(stage_cube(s, c, "start"), 0);
	assert_int_equal(stage_exec(s, c, NULL, "true", NULL), 0);
}

static void link_breaks(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_job *j = stage_run(s, c, NULL, "echo before; drop; sleep 30; echo after");
	char *out;

	assert_int_equal(stage_end(s, j), 0);
	out = stage_output(s, j, CUBE_STREAM_OUTPUT);
	assert_string_equal(out, "before\nafter\n");
	cube_free(out);
	stage_unref(s, j);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(stage_exec(s, c, NULL, "drop; true", NULL), 0);
	assert_int_equal(stage_exec(s, c, NULL, "pwd", NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(keys, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(every_state, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(use_resumes, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(stop_ends_jobs, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(rename_goes_on, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(removal_frees_the_name, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(destroy_verb, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(watched, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(counters, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(fresh_names, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(root_of_files, stage_setup, stage_teardown),
		cmocka_unit_test(creation_fails),
		cmocka_unit_test(link_fails),
		cmocka_unit_test(creation_is_waited_for),
		cmocka_unit_test(destruction_wins),
		cmocka_unit_test(one_operation_at_a_time),
		cmocka_unit_test(destruction_is_tried_again),
		cmocka_unit_test(operations_fail),
		cmocka_unit_test(resume_fails),
		cmocka_unit_test(without_capabilities),
		cmocka_unit_test_setup_teardown(it_ends, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(link_breaks, stage_setup, stage_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
