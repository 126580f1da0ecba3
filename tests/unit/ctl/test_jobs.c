/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: names, what is set before the start, stdin, output and its limits, what is forgotten. */
#include "tests/unit/ctl/stage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"

static int create(struct stage *s, struct cube_cube *c, const char *name, struct cube_job **ret)
{
	cube_domain_enter(s->d);
	int r = cube_job_create(c, name, ret, &s->err);
	cube_domain_leave(s->d);
	return r;
}

static int submit(struct stage *s, struct cube_job *j, bool argv, const char *text, size_t len)
{
	cube_domain_enter(s->d);
	int r = cube_job_submit(j, argv, text, len, &s->err);
	cube_domain_leave(s->d);
	return r;
}

static void expect_output(struct stage *s, struct cube_job *j, enum cube_stream stream, const char *want)
{
	char *out = stage_output(s, j, stream);

	assert_string_equal(out, want);
	cube_free(out);
}

static void names(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_job *j;

	assert_int_equal(create(s, c, "7", &j), -EINVAL);
	assert_int_equal(create(s, c, "last", &j), -EINVAL);
	assert_int_equal(create(s, c, "clone", &j), -EINVAL);
	assert_int_equal(create(s, c, "", &j), -EINVAL);
	assert_int_equal(create(s, c, "a/b", &j), -EINVAL);
	assert_int_equal(create(s, c, "b\x80\n c", &j), 0);
	assert_int_equal(create(s, c, "b\x80\n c", &(struct cube_job *){NULL}), -EEXIST);
	assert_int_equal(submit(s, j, false, "echo odd", 8), 0);
	assert_int_equal(submit(s, j, false, "echo odd", 8), -EBUSY);
	assert_int_equal(stage_end(s, j), 0);
	stage_unref(s, j);
	assert_int_equal(create(s, c, NULL, &j), 0);
	assert_string_equal(j->name, "2");
	cube_domain_enter(s->d);
	assert_ptr_equal(c->last_job, j);
	assert_int_equal(cube_job_remove(j, &s->err), 0);
	assert_int_equal(cube_job_remove(j, &s->err), -ENOENT);
	assert_string_equal(c->last_job->name, "b\x80\n c");
	assert_ptr_equal(cube_job_find(c, "b\x80\n c"), c->last_job);
	cube_job_unref(j);
	cube_domain_leave(s->d);
	assert_int_equal(create(s, c, NULL, &j), 0);
	assert_string_equal(j->name, "3"); /* no number twice */
	stage_unref(s, j);
}

static void streams(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_job *j = stage_start(s, c, "x", "echo a; err b; echo c");

	assert_int_equal(stage_end(s, j), 0);
	expect_output(s, j, CUBE_STREAM_OUTPUT, "a\nb\nc\n");
	expect_output(s, j, CUBE_STREAM_STDOUT, "a\nc\n");
	expect_output(s, j, CUBE_STREAM_STDERR, "b\n");
	stage_unref(s, j);
	assert_int_equal(create(s, c, "y", &j), 0);
	assert_int_equal(stage_job(s, j, "merge"), 0);
	assert_int_equal(submit(s, j, false, "echo a; err b", 13), 0);
	assert_int_equal(stage_end(s, j), 0);
	expect_output(s, j, CUBE_STREAM_STDOUT, "a\nb\n");
	expect_output(s, j, CUBE_STREAM_STDERR, "");
	assert_int_equal(stage_job(s, j, "merge"), -EBUSY);
	stage_unref(s, j);
}

static void words_without_a_shell(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_job *j;

	assert_int_equal(create(s, c, "x", &j), 0);
	assert_int_equal(submit(s, j, true, "", 0), -EINVAL);
	assert_int_equal(submit(s, j, true, "\0", 1), -EINVAL);
	assert_int_equal(submit(s, j, true, "echo\0a $HOME\0;", 14), 0);
	assert_int_equal(stage_end(s, j), 0);
	expect_output(s, j, CUBE_STREAM_STDOUT, "a $HOME ;\n");
	stage_unref(s, j);
	assert_int_equal(create(s, c, "y", &j), 0);
	assert_int_equal(submit(s, j, true, "nosuchprogram", 13), 0);
	assert_int_equal(stage_end(s, j), 127);
	assert_string_not_equal(j->why.text, "");
	stage_unref(s, j);
}

static void settings_of_a_job(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_job *j;

	assert_int_equal(create(s, c, "x", &j), 0);
	cube_domain_enter(s->d);
	j->cwd = cube_strdup("/tmp");
	j->user = cube_strdup("1000");
	assert_int_equal(cube_buf_add(&j->env, "A=job\0", 6), 0);
	j->has_env = true;
	cube_domain_leave(s->d);
	assert_int_equal(stage_job(s, j, "timeout x"), -EINVAL);
	assert_int_equal(stage_job(s, j, "timeout 60"), 0);
	assert_int_equal(submit(s, j, false, "pwd; id -u; echo $A [$HOME]", 27), 0);
	assert_int_equal(stage_end(s, j), 0);
	expect_output(s, j, CUBE_STREAM_STDOUT, "/tmp\n1000\njob [/root]\n");
	stage_unref(s, j);

	assert_int_equal(stage_exec(s, c, NULL, "cd /tmp; export S=1", NULL), 0);
	assert_int_equal(create(s, c, "y", &j), 0);
	assert_int_equal(stage_job(s, j, "session none"), -ENOENT);
	assert_int_equal(stage_job(s, j, "session main"), 0);
	assert_int_equal(submit(s, j, true, "pwd", 3), -EINVAL);
	assert_int_equal(submit(s, j, false, "pwd; echo $S", 12), 0);
	assert_int_equal(stage_end(s, j), 0);
	expect_output(s, j, CUBE_STREAM_OUTPUT, "/tmp\n1\n");
	cube_domain_enter(s->d); /* what `exec` shows is its own */
	assert_string_not_equal(cube_session_main(c)->latest->name, "y");
	cube_domain_leave(s->d);
	stage_unref(s, j);
}

static void terminals(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_job *j;

	assert_int_equal(create(s, c, "x", &j), 0);
	assert_int_equal(stage_job(s, j, "winsize 10 20"), -EINVAL);
	assert_int_equal(stage_job(s, j, "tty 0 80"), -EINVAL);
	assert_int_equal(stage_job(s, j, "tty 24"), -EINVAL);
	assert_int_equal(stage_job(s, j, "tty 24 80"), 0);
	assert_int_equal(submit(s, j, false, "stty size; echo $TERM; await go; stty size", 42), 0);
	stage_printed(s, j, 6);
	assert_int_equal(stage_job(s, j, "winsize 30 100"), 0);
	stage_go(s, c, "go");
	assert_int_equal(stage_end(s, j), 0);
	expect_output(s, j, CUBE_STREAM_STDOUT, "24 80\nxterm-256color\n30 100\n");
	expect_output(s, j, CUBE_STREAM_STDERR, "");
	stage_unref(s, j);
}

/* ---- stdin ---- */

static ssize_t input(struct stage *s, struct cube_job *j, const char *text)
{
	cube_domain_enter(s->d);
	ssize_t n = cube_job_input(j, text, strlen(text), &s->err);
	cube_domain_leave(s->d);
	return n;
}

static void opened(struct stage *s, struct cube_job *j, bool open)
{
	cube_domain_enter(s->d);
	if (open)
		cube_job_input_open(j);
	else
		cube_job_input_close(j);
	cube_domain_leave(s->d);
}

static void stdin_before_the_start(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_job *j;

	assert_int_equal(create(s, c, "x", &j), 0);
	opened(s, j, true);
	assert_int_equal(input(s, j, "one\n"), 4);
	opened(s, j, false);
	opened(s, j, true);
	assert_int_equal(input(s, j, "two\n"), 4);
	opened(s, j, false);
	assert_int_equal(submit(s, j, false, "cat; echo end", 13), 0);
	assert_int_equal(stage_end(s, j), 0);
	expect_output(s, j, CUBE_STREAM_STDOUT, "one\ntwo\nend\n");
	assert_int_equal(input(s, j, "x"), -EPIPE);
	stage_unref(s, j);

	j = stage_start(s, c, "none", "cat; echo end");
	assert_int_equal(stage_end(s, j), 0);
	expect_output(s, j, CUBE_STREAM_STDOUT, "end\n");
	stage_unref(s, j);
}

static void stdin_that_goes_on(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_job *j;

	assert_int_equal(create(s, c, "x", &j), 0);
	opened(s, j, true);
	assert_int_equal(input(s, j, "one\n"), 4);
	assert_int_equal(submit(s, j, false, "cat; echo end", 13), 0);
	stage_printed(s, j, 4);
	assert_int_equal(input(s, j, "two\n"), 4);
	stage_printed(s, j, 8);
	opened(s, j, false);
	assert_int_equal(stage_end(s, j), 0);
	expect_output(s, j, CUBE_STREAM_STDOUT, "one\ntwo\nend\n");
	stage_unref(s, j);
}

static void stdin_pipe_and_stream(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_job *j;

	assert_int_equal(create(s, c, "pipe", &j), 0);
	assert_int_equal(stage_job(s, j, "stdin file"), -EINVAL);
	assert_int_equal(stage_job(s, j, "stdin pipe"), 0);
	assert_int_equal(submit(s, j, false, "cat; echo end", 13), 0);
	assert_int_equal(stage_job(s, j, "stdin stream"), -EBUSY);
	opened(s, j, true);
	assert_int_equal(input(s, j, "late\n"), 5);
	opened(s, j, false);
	assert_int_equal(stage_end(s, j), 0);
	expect_output(s, j, CUBE_STREAM_STDOUT, "late\nend\n");
	stage_unref(s, j);

	assert_int_equal(create(s, c, "stream", &j), 0);
	assert_int_equal(stage_job(s, j, "stdin stream"), 0);
	assert_int_equal(submit(s, j, false, "cat; echo end", 13), 0);
	for (unsigned i = 0; i < 3; i++) {
		opened(s, j, true);
		assert_int_equal(input(s, j, "x\n"), 2);
		opened(s, j, false);
		stage_printed(s, j, 2 * (i + 1));
	}
	assert_int_equal(stage_job(s, j, "wait 0"), -ETIMEDOUT);
	assert_int_equal(stage_job(s, j, "eof"), 0);
	assert_int_equal(input(s, j, "x"), -EPIPE);
	assert_int_equal(stage_job(s, j, "wait"), 0);
	assert_int_equal(stage_job(s, j, "eof"), 0);
	expect_output(s, j, CUBE_STREAM_STDOUT, "x\nx\nx\nend\n");
	stage_unref(s, j);
}

/* What nobody reads is not taken without end; what was kept on disk is passed on in order and whole. */
static void stdin_flows(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	size_t len = 3 << 20;
	char *data = malloc(len + 1), *out;
	struct cube_job *j;
	ssize_t n, taken = 0;

	for (size_t i = 0; i < len; i++)
		data[i] = (char)('a' + i / 4096 % 26);
	data[len] = '\0';
	assert_int_equal(create(s, c, "kept", &j), 0);
	opened(s, j, true);
	assert_int_equal(input(s, j, data), len);
	opened(s, j, false);
	assert_int_equal(submit(s, j, false, "cat", 3), 0);
	assert_int_equal(stage_end(s, j), 0);
	out = stage_output(s, j, CUBE_STREAM_STDOUT);
	assert_int_equal(strlen(out), len);
	assert_memory_equal(out, data, len);
	cube_free(out);
	stage_unref(s, j);

	assert_int_equal(create(s, c, "stalled", &j), 0);
	assert_int_equal(stage_job(s, j, "stdin stream"), 0);
	assert_int_equal(submit(s, j, false, "hang", 4), 0);
	opened(s, j, true);
	while ((n = input(s, j, data)) > 0)
		taken += n;
	assert_int_equal(n, 0);
	assert_in_range(taken, 1, 2 << 20);
	opened(s, j, false);
	cube_domain_enter(s->d);
	assert_int_equal(cube_job_remove(j, &s->err), 0);
	assert_int_equal(j->end.how, CUBE_END_KILLED);
	cube_domain_leave(s->d);
	stage_unref(s, j);
	free(data);
}

/* ---- Ends ---- */

static void ends(void **state)
{
	static const struct {
		const char *text;
		enum cube_end how;
		int code;
	} cases[] = {
		{"exit 7", CUBE_END_EXIT, 7},
		{"kill SEGV", CUBE_END_SIGNAL, 139},
		{"oom", CUBE_END_OOM, 137},
		{"nosuch", CUBE_END_EXIT, 127},
	};
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_job *j;

	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		j = stage_start(s, c, NULL, cases[i].text);
		assert_int_equal(stage_end(s, j), cases[i].code);
		assert_int_equal(j->end.how, cases[i].how);
		stage_unref(s, j);
	}
	assert_int_equal(create(s, c, "new", &j), 0);
	assert_int_equal(stage_job(s, j, "kill"), -EBUSY);
	assert_int_equal(submit(s, j, false, "hang", 4), 0);
	assert_int_equal(stage_job(s, j, "timeout 1"), 0);
	assert_int_equal(stage_end(s, j), 124);
	assert_int_equal(stage_job(s, j, "kill"), 0);
	stage_unref(s, j);
	j = stage_start(s, c, NULL, "hang");
	assert_int_equal(stage_cube(s, c, "kill USR1"), 0);
	assert_int_equal(stage_end(s, j), 128 + 10);
	assert_int_equal(j->end.how, CUBE_END_KILLED);
	stage_unref(s, j);
}

static unsigned count_jobs(struct stage *s, struct cube_cube *c)
{
	unsigned n = 0;

	cube_domain_enter(s->d);
	for (struct cube_job *j = cube_job_next(c, 0); j != NULL; j = cube_job_next(c, j->seq))
		n++;
	cube_domain_leave(s->d);
	return n;
}

static bool all_settled(void *ctx)
{
	struct cube_cube *c = ctx;

	return cube_own(c)->ended_numbered <= c->domain->jobs_kept && c->last_job->state == CUBE_JOB_ENDED &&
	       !cube_job_own(c->last_job)->unsettled;
}

static void old_ones_are_forgotten(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_job *named = stage_start(s, c, "kept", "echo kept");

	(void)stage_end(s, named);
	assert_int_equal(stage_root(s, "set jobs_kept=5"), 0);
	for (unsigned i = 0; i < 12; i++) {
		char text[32], want[32], *out;

		(void)snprintf(text, sizeof(text), "echo number %u", i);
		(void)snprintf(want, sizeof(want), "number %u\n", i);
		assert_int_equal(stage_exec(s, c, NULL, text, &out), 0);
		assert_string_equal(out, want);
		cube_free(out);
	}
	assert_true(stage_until(s, all_settled, c));
	assert_int_equal(count_jobs(s, c), 6);
	expect_output(s, named, CUBE_STREAM_STDOUT, "kept\n");
	cube_domain_enter(s->d);
	assert_null(cube_job_find(c, "2"));
	assert_non_null(cube_job_find(c, "13"));
	assert_int_equal(cube_own(c)->spool_bytes, 5 + 3 * 9 + 2 * 10);
	cube_domain_leave(s->d);
	stage_unref(s, named);
}

/* A reader of a forgotten job keeps what it reads, also when its file would be used again. */
static void readers_outlive_the_job(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_spool_view v;
	struct cube_output *o;
	char text[16];

	assert_int_equal(stage_root(s, "set jobs_kept=1"), 0);
	assert_int_equal(stage_exec(s, c, NULL, "echo mine", NULL), 0);
	cube_domain_enter(s->d);
	o = cube_job_view(cube_job_find(c, "1"), &v);
	cube_domain_leave(s->d);
	assert_non_null(o);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(stage_exec(s, c, NULL, "echo other", NULL), 0);
	cube_domain_enter(s->d);
	assert_null(cube_job_find(c, "1"));
	cube_domain_leave(s->d);
	assert_int_equal(cube_spool_pread(&v, CUBE_STREAM_OUTPUT, text, sizeof(text), 0), 5);
	assert_memory_equal(text, "mine\n", 5);
	cube_output_unref(o);
}

/* ---- Limits of output ---- */

static void output_limit(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_job *j;
	char *out;

	assert_int_equal(stage_root(s, "set output_limit=64k"), 0);
	j = stage_start(s, c, "x", "echo first; bytes 4M; echo last");
	assert_int_equal(stage_end(s, j), 0);
	out = stage_output(s, j, CUBE_STREAM_STDOUT);
	assert_int_equal(strlen(out), 65536 + CUBE_SPOOL_MARKER);
	assert_memory_equal(out, "first\n", 6);
	assert_string_equal(out + strlen(out) - 5, "last\n");
	assert_non_null(strstr(out, "[cubefs: "));
	assert_int_equal(j->end.total, 6 + (4 << 20) + 5);
	cube_free(out);
	cube_domain_enter(s->d);
	assert_in_range(cube_own(c)->spool_bytes, 65536, 65536);
	cube_domain_leave(s->d);
	stage_unref(s, j);
}

/* A plain reader sees to its end what was there at its open, though the middle is given back meanwhile. */
static void pinned_output(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	size_t size = 60 << 10;
	char *first = malloc(size), *again = malloc(size);
	struct cube_spool_view v, late;
	struct cube_output *o, *p;
	struct cube_job *j;

	assert_int_equal(stage_root(s, "set output_limit=64k"), 0);
	cube_domain_enter(s->d);
	assert_int_equal(cube_job_create(c, "y", &j, &s->err), 0);
	cube_domain_leave(s->d);
	assert_int_equal(stage_job(s, j, "stdin stream"), 0);
	assert_int_equal(submit(s, j, false, "bytes 60k; cat; bytes 2M; echo last", 35), 0);
	stage_printed(s, j, size);
	cube_domain_enter(s->d);
	o = cube_job_view(j, &v);
	cube_output_pin(o, &v);
	cube_domain_leave(s->d);
	assert_int_equal(cube_spool_pread(&v, CUBE_STREAM_STDOUT, first, size, 0), size);
	assert_int_equal(stage_root(s, "set output_limit=1M"), 0); /* for those that start later */
	assert_int_equal(stage_job(s, j, "eof"), 0);
	assert_int_equal(stage_end(s, j), 0);
	/* So much more has come that the pin no longer counts; what the limit keeps is as it was. */
	assert_int_equal(cube_spool_pread(&v, CUBE_STREAM_STDOUT, again, size, 0), size);
	assert_memory_equal(first, again, 32 << 10);
	cube_domain_enter(s->d);
	cube_output_unpin(o, &v);
	cube_output_unpin(o, &v);
	p = cube_job_view(j, &late);
	cube_domain_leave(s->d);
	assert_int_equal(late.limit, 64 << 10);
	cube_output_unref(o);
	cube_output_unref(p);
	stage_unref(s, j);

	cube_domain_enter(s->d);
	assert_int_equal(cube_job_create(c, "z", &j, &s->err), 0);
	cube_domain_leave(s->d);
	assert_int_equal(stage_root(s, "set output_limit=64k"), 0);
	assert_int_equal(stage_job(s, j, "stdin stream"), 0);
	assert_int_equal(submit(s, j, false, "bytes 60k; cat; bytes 100k", 26), 0);
	stage_printed(s, j, size);
	cube_domain_enter(s->d);
	o = cube_job_view(j, &v);
	cube_output_pin(o, &v);
	cube_domain_leave(s->d);
	assert_int_equal(stage_job(s, j, "eof"), 0);
	assert_int_equal(stage_end(s, j), 0);
	assert_int_equal(cube_spool_pread(&v, CUBE_STREAM_STDOUT, again, size, 0), size);
	assert_memory_equal(first, again, size);
	cube_domain_enter(s->d);
	cube_output_unpin(o, &v);
	cube_domain_leave(s->d);
	cube_output_unref(o);
	stage_unref(s, j);
	free(first);
	free(again);
}

static void spool_limit(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_job *first = stage_start(s, c, "first", "bytes 60k");
	struct cube_job *j;
	char *out;

	(void)stage_end(s, first);
	assert_int_equal(stage_root(s, "set spool_limit=100k"), 0);
	j = stage_start(s, c, "second", "bytes 60k");
	(void)stage_end(s, j);
	assert_int_equal(stage_exec(s, c, NULL, "true", NULL), 0);
	out = stage_output(s, j, CUBE_STREAM_STDOUT);
	assert_int_equal(strlen(out), 60 << 10);
	cube_free(out);
	out = stage_output(s, first, CUBE_STREAM_OUTPUT);
	assert_int_equal(strlen(out), CUBE_SPOOL_MARKER);
	assert_non_null(strstr(out, "00000061440 bytes"));
	cube_free(out);
	stage_unref(s, first);
	stage_unref(s, j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(streams, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(words_without_a_shell, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(settings_of_a_job, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(terminals, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(stdin_before_the_start, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(stdin_that_goes_on, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(stdin_pipe_and_stream, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(stdin_flows, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(ends, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(old_ones_are_forgotten, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(readers_outlive_the_job, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(output_limit, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(pinned_output, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(spool_limit, stage_setup, stage_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
