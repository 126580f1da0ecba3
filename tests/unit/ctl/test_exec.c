/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of sessions: order, output, codes, what lives on from one to the next. */
#include "tests/unit/ctl/stage.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"

static void expect_in(struct stage *s, struct cube_cube *c, const char *session, const char *text, int code,
		      const char *output)
{
	char *out;
	int is = stage_exec(s, c, session, text, &out);

	if (is < -1)
		fail_msg("'%s': %s", text, s->err.text);
	if (is != code || strcmp(out, output) != 0)
		fail_msg("'%s': code %d, output '%s'", text, is, out);
	cube_free(out);
}

static void expect(struct stage *s, struct cube_cube *c, const char *text, int code, const char *output)
{
	expect_in(s, c, NULL, text, code, output);
}

static void write_then_read(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");

	expect(s, c, "echo hello", 0, "hello\n");
	expect(s, c, "echo out; err err; echo out", 0, "out\nerr\nout\n");
	expect(s, c, "false", 1, "");
	expect(s, c, "cd /tmp", 0, "");
	expect(s, c, "pwd", 0, "/tmp\n");
	expect(s, c, "export A=1", 0, "");
	expect(s, c, "exit 3", 3, "");
	expect(s, c, "pwd; echo $A", 0, "/tmp\n1\n");
	expect(s, c, "", 0, "");
	expect(s, c, "kill KILL", 137, "");
	expect(s, c, "pwd", 0, "/tmp\n");
}

static struct cube_session *add_session(struct stage *s, struct cube_cube *c, const char *name)
{
	struct cube_session *in = NULL;

	cube_domain_enter(s->d);
	if (cube_session_create(c, name, &in, &s->err) < 0)
		in = NULL;
	cube_domain_leave(s->d);
	return in;
}

static void sessions_are_apart(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_session *me = add_session(s, c, "me");
	struct cube_session *m;

	assert_non_null(me);
	assert_null(add_session(s, c, "me"));
	assert_int_equal(s->err.code, -EEXIST);
	assert_null(add_session(s, c, "last"));
	assert_int_equal(s->err.code, -EINVAL);
	assert_null(add_session(s, c, "a/b"));
	assert_int_equal(s->err.code, -EINVAL);
	expect_in(s, c, "me", "cd /tmp; export X=me", 0, "");
	expect(s, c, "pwd; echo [$X]", 0, "/workspace\n[]\n");
	expect_in(s, c, "me", "pwd; echo [$X]", 0, "/tmp\n[me]\n");
	cube_domain_enter(s->d);
	m = cube_session_main(c);
	assert_int_equal(cube_session_remove(m, &s->err), -EBUSY);
	assert_string_equal(me->cwd, "/tmp");
	assert_int_equal(cube_session_remove(me, &s->err), 0);
	assert_null(cube_session_find(c, "me"));
	cube_domain_leave(s->d);
	assert_non_null(add_session(s, c, "me"));
	expect_in(s, c, "me", "pwd", 0, "/workspace\n");
}

static void removed_session_ends_its_commands(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_session *me = add_session(s, c, "me");
	struct cube_job *runs = stage_run(s, c, "me", "hang");
	struct cube_job *waits = stage_run(s, c, "me", "echo never");

	cube_domain_enter(s->d);
	assert_int_equal(cube_session_remove(me, &s->err), 0);
	assert_int_equal(runs->state, CUBE_JOB_ENDED);
	assert_int_equal(waits->state, CUBE_JOB_ENDED);
	assert_int_equal(runs->end.how, CUBE_END_KILLED);
	assert_int_equal(waits->end.how, CUBE_END_KILLED);
	cube_job_unref(runs);
	cube_job_unref(waits);
	cube_domain_leave(s->d);
	expect(s, c, "true", 0, "");
}

static void one_after_the_other(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_job *j[5];
	struct cube_session *m = cube_session_main(c);

	assert_null(m->latest);
	for (unsigned i = 0; i < 5; i++) {
		char text[64];

		(void)snprintf(text, sizeof(text), "append /tmp/order %u; sleep 5", i);
		j[i] = stage_run(s, c, NULL, text);
		assert_non_null(j[i]);
	}
	cube_domain_enter(s->d);
	assert_ptr_equal(m->latest, j[0]);
	assert_int_equal(j[4]->state, CUBE_JOB_WAITING);
	cube_domain_leave(s->d);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(stage_end(s, j[i]), 0);
		stage_unref(s, j[i]);
	}
	cube_domain_enter(s->d);
	assert_string_equal(m->latest->name, "5");
	assert_string_equal(c->last_job->name, "5");
	cube_domain_leave(s->d);
	expect(s, c, "cat /tmp/order", 0, "0\n1\n2\n3\n4\n");
}

/* None has started: the first that waits. It is given up: the next one. */
static void latest_of_those_that_wait(void **state)
{
	struct stage s;
	struct cube_cube *c;

	(void)state;
	stage_open(&s, "[backend mem]\nkind=mem\ndelay=create:150\n");
	assert_int_equal(stage_mkdir(&s, "dev", &c), 0);

	struct cube_job *first = stage_run(&s, c, NULL, "echo 1");
	struct cube_job *second = stage_run(&s, c, NULL, "echo 2");

	cube_domain_enter(s.d);
	assert_ptr_equal(cube_session_main(c)->latest, first);
	cube_job_interrupt(first);
	assert_int_equal(first->state, CUBE_JOB_ENDED);
	assert_int_equal(first->end.how, CUBE_END_KILLED);
	assert_ptr_equal(cube_session_main(c)->latest, second);
	cube_domain_leave(s.d);
	assert_int_equal(stage_end(&s, second), 0);
	stage_unref(&s, first);
	stage_unref(&s, second);
	stage_close(&s);
}

static void interrupted(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_job *j = stage_run(s, c, NULL, "export A=1; cd /tmp; echo up; hang");

	stage_printed(s, j, 3);
	cube_domain_enter(s->d);
	cube_job_interrupt(j);
	cube_domain_leave(s->d);
	assert_int_equal(stage_end(s, j), 130);
	assert_int_equal(j->end.how, CUBE_END_KILLED);
	stage_unref(s, j);
	expect(s, c, "pwd; echo $A", 0, "/tmp\n1\n");
}

static void killed_by_the_session(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_session *m = cube_session_main(c);

	assert_int_equal(stage_verb(s, CUBE_SCOPE_SESSION, m, "kill"), 0);

	struct cube_job *j = stage_run(s, c, NULL, "echo x; hang");

	stage_printed(s, j, 2);
	assert_int_equal(stage_verb(s, CUBE_SCOPE_SESSION, m, "kill NOSUCH"), -EINVAL);
	assert_int_equal(stage_verb(s, CUBE_SCOPE_SESSION, m, "kill"), 0);
	assert_int_equal(stage_end(s, j), 143);
	assert_int_equal(j->end.how, CUBE_END_KILLED);
	stage_unref(s, j);
	expect(s, c, "cd /tmp; keep=1", 0, "");
	assert_int_equal(stage_verb(s, CUBE_SCOPE_SESSION, m, "reset"), 0);
	expect(s, c, "pwd; echo [$keep]", 0, "/tmp\n[]\n");
}

static void timed_out(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_session *m = cube_session_main(c);

	assert_int_equal(stage_verb(s, CUBE_SCOPE_SESSION, m, "set timeout=1"), 0);
	assert_int_equal(stage_verb(s, CUBE_SCOPE_SESSION, m, "set patience=x"), -EINVAL);
	assert_int_equal(stage_verb(s, CUBE_SCOPE_SESSION, m, "set patience=5"), 0);
	assert_int_equal(m->patience_s, 5);

	struct cube_job *j = stage_run(s, c, NULL, "hang");

	assert_int_equal(stage_end(s, j), 124);
	assert_int_equal(j->end.how, CUBE_END_TIMEOUT);
	stage_unref(s, j);
}

/* ---- The environment ---- */

static void set_env(struct stage *s, struct cube_cube *c, const char *env, size_t len)
{
	cube_domain_enter(s->d);
	assert_int_equal(cube_cube_set_env(c, env, len, &s->err), 0);
	cube_domain_leave(s->d);
}

static void env_of_the_sandbox(void **state)
{
	static const char first[] = "A=1\0B=2\0C=3", then[] = "A=1\0B=two\0D=4";
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");

	expect(s, c, "echo $HOME", 0, "/root\n");
	set_env(s, c, first, sizeof(first));
	expect(s, c, "echo [$A] [$B] [$C] [$D] [$HOME]", 0, "[1] [2] [3] [] [/root]\n");
	expect(s, c, "export A=mine", 0, "");
	set_env(s, c, then, sizeof(then));
	/* A did not change, so the shell's own stays. */
	expect(s, c, "echo [$A] [$B] [$C] [$D]", 0, "[mine] [two] [] [4]\n");
	expect(s, c, "echo [$A] [$B] [$C] [$D]", 0, "[mine] [two] [] [4]\n");
}

static bool session_env_has(struct stage *s, struct cube_session *in, const char *line)
{
	struct cube_buf out = CUBE_BUF(1 << 20);
	bool found;

	cube_domain_enter(s->d);
	assert_int_equal(cube_session_env(in, &out), 0);
	cube_domain_leave(s->d);
	found = strstr(cube_buf_str(&out), line) != NULL;
	cube_buf_done(&out);
	return found;
}

static void env_of_a_session(void **state)
{
	static const char whole[] = "NEW=yes\0HOME=/tmp";
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_session *m = cube_session_main(c);

	assert_true(session_env_has(s, m, "HOME=/root\n"));
	expect(s, c, "export X=1", 0, "");
	assert_true(session_env_has(s, m, "X=1\n"));
	cube_domain_enter(s->d);
	assert_int_equal(cube_session_set_env(m, whole, sizeof(whole), &s->err), 0);
	cube_domain_leave(s->d);
	assert_true(session_env_has(s, m, "NEW=yes\n"));
	assert_false(session_env_has(s, m, "X=1\n"));
	expect(s, c, "echo [$NEW] [$X] [$HOME]", 0, "[yes] [] [/tmp]\n");
}

static void cwd_and_user(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_session *m = cube_session_main(c);

	cube_domain_enter(s->d);
	assert_int_equal(cube_session_set_cwd(m, "tmp", &s->err), -EINVAL);
	assert_int_equal(cube_session_set_cwd(m, "/tmp", &s->err), 0);
	assert_int_equal(cube_session_set_user(m, "a b", &s->err), -EINVAL);
	assert_int_equal(cube_session_set_user(m, "1000:1000", &s->err), 0);
	cube_domain_leave(s->d);
	expect(s, c, "pwd; id -u", 0, "/tmp\n1000\n");
	cube_domain_enter(s->d);
	assert_int_equal(cube_session_set_user(m, "0", &s->err), -EBUSY);
	assert_int_equal(cube_session_set_cwd(m, "/workspace", &s->err), 0);
	cube_domain_leave(s->d);
	expect(s, c, "pwd", 0, "/workspace\n");
}

/* ---- Texts ---- */

static void odd_texts(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	size_t big = ((size_t)1 << 20) + 17;
	char *text = calloc(1, (5 << 20));
	struct cube_buf back = CUBE_BUF(8 << 20);
	struct cube_job *j;
	char *out;

	memset(text, '#', big);
	memcpy(text + big, "\necho end", 9);
	assert_int_equal(stage_exec(s, c, NULL, text, &out), 0);
	assert_string_equal(out, "end\n");
	cube_free(out);
	cube_domain_enter(s->d);
	assert_int_equal(cube_job_text(c->last_job, false, &back), 0);
	assert_int_equal(back.len, strlen(text));
	assert_memory_equal(back.data, text, back.len);
	assert_int_equal(cube_session_run(cube_session_main(c), "a\0b", 3, &j, &s->err), -EINVAL);
	memset(text, '#', (4 << 20) + 1);
	assert_int_equal(cube_session_run(cube_session_main(c), text, (4 << 20) + 1, &j, &s->err), -EFBIG);
	cube_domain_leave(s->d);
	text[4 << 20] = '\0';
	assert_int_equal(stage_exec(s, c, NULL, text, NULL), 0);
	assert_int_equal(stage_exec(s, c, NULL, "echo \"open", NULL), 2);
	cube_buf_done(&back);
	free(text);
}

/* A long text that waits is not in memory; it is the same when its turn comes. */
static void long_texts_wait(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	struct cube_job *first = stage_run(s, c, NULL, "await go");
	char *text = calloc(1, 100000);
	struct cube_job *j;
	char *out;

	memset(text, '#', 90000);
	memcpy(text + 90000, "\necho long", 10);
	j = stage_run(s, c, NULL, text);
	assert_int_equal(j->state, CUBE_JOB_WAITING);
	assert_null(cube_job_own(j)->text);
	stage_go(s, c, "go");
	assert_int_equal(stage_end(s, j), 0);
	out = stage_output(s, j, CUBE_STREAM_OUTPUT);
	assert_string_equal(out, "long\n");
	cube_free(out);
	stage_unref(s, first);
	stage_unref(s, j);
	free(text);
}

static void transcript(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");
	char path[64], *log;

	expect(s, c, "echo one; err two", 0, "one\ntwo\n");

	struct cube_job *j = stage_start(s, c, "both", "echo three; err four");

	(void)stage_end(s, j);
	stage_unref(s, j);
	stage_down(s);
	(void)snprintf(path, sizeof(path), "cubes/%s/log.0", "");
	stage_up(s);
	cube_domain_enter(s->d);
	c = cube_domain_find(s->d, "dev");
	(void)snprintf(path, sizeof(path), "cubes/%s/log.0", c->uid);
	cube_domain_leave(s->d);
	log = stage_file(s, path);
	assert_non_null(log);
	assert_non_null(strstr(log, " life creating\n"));
	assert_non_null(strstr(log, " life running\n"));
	assert_non_null(strstr(log, " 1 in echo one; err two\n"));
	assert_non_null(strstr(log, " 1 out one\n"));
	assert_non_null(strstr(log, " 1 out two\n"));
	assert_non_null(strstr(log, " 2 out three\n"));
	assert_non_null(strstr(log, " 2 err four\n"));
	cube_free(log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(write_then_read, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(sessions_are_apart, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(removed_session_ends_its_commands, stage_setup,
						stage_teardown),
		cmocka_unit_test_setup_teardown(one_after_the_other, stage_setup, stage_teardown),
		cmocka_unit_test(latest_of_those_that_wait),
		cmocka_unit_test_setup_teardown(interrupted, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(killed_by_the_session, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(timed_out, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(env_of_the_sandbox, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(env_of_a_session, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(cwd_and_user, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(odd_texts, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(long_texts_wait, stage_setup, stage_teardown),
		cmocka_unit_test_setup_teardown(transcript, stage_setup, stage_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
