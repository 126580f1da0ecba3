/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: what one command leaves behind is there for the next. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "tests/conformance/conformance.h"

#define SESSION (b.session) /* of the bed that is called so */

static void lives_on(struct subject *s)
{
	struct bed b = bed_open(s);

	expect_output(&b, SESSION, "cd /tmp; export FOO=bar; local=x", "");
	expect_output(&b, SESSION, "pwd; echo $FOO $local", "/tmp\nbar x\n");
	expect_output(&b, SESSION + 1, "pwd; echo $FOO $local", "/workspace\n\n"); /* another one */
	expect_output(&b, 0, "echo $FOO", "\n");
	bed_close(&b);
}

/* Told before the end of the command that changed it. */
static void told(struct subject *s)
{
	struct bed b = bed_open(s);
	const struct heard *session;
	struct run r;

	run_init(&r, b.ear, "cd /tmp\nexport NAME='it is'");
	r.start.session = SESSION;
	run_expect(&r, CUBE_END_EXIT, 0);
	session = ear_wait(b.ear, HEARD_SESSION, SESSION);
	assert_true(heard_before(session, r.ended));
	assert_string_equal(session->cwd, "/tmp");
	assert_false(session->fresh);
	assert_non_null(session->exports);
	assert_non_null(strstr(session->exports, "NAME="));
	assert_non_null(strstr(session->exports, "it is"));
	run_done(&r);
	bed_close(&b);
}

static void busy(struct subject *s)
{
	struct bed b = bed_open(s);
	struct cube_err err;
	struct run r, other;

	run_init(&r, b.ear, s->dialect->hang);
	r.start.session = SESSION;
	run_start(&r);
	run_init(&other, b.ear, "true");
	other.start.session = SESSION;
	expect_failure(cube_link_start(b.ear->link, &other.start, &err), -EBUSY, &err);
	cube_link_kill(b.ear->link, r.start.job, SIGKILL);
	run_wait(&r);
	assert_int_equal(r.ended->end.how, CUBE_END_KILLED);
	run_done(&r);
	run_done(&other);
	bed_close(&b);
}

/* The command is killed, the shell is not. */
static void killed_command(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r;

	expect_output(&b, SESSION, "cd /tmp; export KEPT=yes", "");
	run_init(&r, b.ear, s->dialect->hang);
	r.start.session = SESSION;
	run_start(&r);
	(void)ear_wait(b.ear, HEARD_STARTED, r.start.job);
	assert_null(ear_listen(b.ear, HEARD_ENDED, r.start.job, 200)); /* it is at it now */
	cube_link_kill(b.ear->link, r.start.job, SIGTERM);
	run_wait(&r);
	assert_int_equal(r.ended->end.how, CUBE_END_KILLED);
	assert_int_equal(r.ended->end.code, 128 + SIGTERM);
	run_done(&r);
	expect_output(&b, SESSION, "pwd; echo $KEPT", "/tmp\nyes\n");
	bed_close(&b);
}

/* `exit` ends the shell; a fresh one begins in the same directory, with what was exported. */
static void left(struct subject *s)
{
	struct bed b = bed_open(s);
	const struct heard *session;
	struct run r;

	run_init(&r, b.ear, "cd /tmp; export FOO=kept; gone=x; exit 3");
	r.start.session = SESSION;
	run_expect(&r, CUBE_END_EXIT, 3);
	session = ear_wait(b.ear, HEARD_SESSION, SESSION);
	while (!session->fresh) /* what else it tells of the session */
		session = ear_wait_after(b.ear, session, HEARD_SESSION, SESSION);
	assert_true(heard_before(session, r.ended));
	assert_string_equal(session->cwd, "/tmp");
	run_done(&r);
	expect_output(&b, SESSION, "pwd; echo $FOO $gone", "/tmp\nkept\n");
	bed_close(&b);
}

static void environment(struct subject *s)
{
	static const char first[] = "PATH=/usr/bin:/bin\0A=1\0B=2";
	static const char change[] = "A=one\0B\0C=3";
	struct bed b = bed_open(s);
	struct run r;

	run_init(&r, b.ear, "echo $A $B $C");
	r.start.session = SESSION;
	r.start.env = first;
	r.start.env_len = sizeof(first);
	run_expect(&r, CUBE_END_EXIT, 0);
	assert_string_equal(r.out, "1 2\n");
	run_done(&r);
	run_init(&r, b.ear, "echo $A $B $C");
	r.start.session = SESSION;
	r.start.env = change;
	r.start.env_len = sizeof(change);
	run_expect(&r, CUBE_END_EXIT, 0);
	assert_string_equal(r.out, "one 3\n");
	run_done(&r);
	bed_close(&b);
}

static void directory(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r;

	run_init(&r, b.ear, "pwd");
	r.start.session = SESSION;
	r.start.cwd = "/tmp";
	run_expect(&r, CUBE_END_EXIT, 0);
	assert_string_equal(r.out, "/tmp\n");
	run_done(&r);
	run_init(&r, b.ear, "pwd");
	r.start.session = SESSION;
	r.start.cwd = "/";
	run_expect(&r, CUBE_END_EXIT, 0);
	assert_string_equal(r.out, "/\n");
	run_done(&r);
	expect_output(&b, SESSION, "pwd", "/\n");
	bed_close(&b);
}

static void reset(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r;

	expect_output(&b, SESSION, "cd /tmp; export FOO=kept; gone=x", "");
	run_init(&r, b.ear, s->dialect->hang);
	r.start.session = SESSION;
	run_start(&r);
	(void)ear_wait(b.ear, HEARD_STARTED, r.start.job);
	cube_link_session_close(b.ear->link, SESSION, true);
	run_wait(&r);
	assert_int_equal(r.ended->end.how, CUBE_END_KILLED);
	run_done(&r);
	expect_output(&b, SESSION, "pwd; echo $FOO $gone", "/tmp\nkept\n");
	bed_close(&b);
}

static void closed(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r;

	run_init(&r, b.ear, s->dialect->hang);
	r.start.session = SESSION;
	run_start(&r);
	(void)ear_wait(b.ear, HEARD_STARTED, r.start.job);
	cube_link_session_close(b.ear->link, SESSION, false);
	run_wait(&r);
	assert_int_equal(r.ended->end.how, CUBE_END_KILLED);
	run_done(&r);
	cube_link_session_close(b.ear->link, SESSION, false); /* again */
	cube_link_session_close(b.ear->link, 99999, true);
	cube_free(run_text(b.ear, "true"));
	bed_close(&b);
}

static void syntax_error(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r;

	expect_output(&b, SESSION, "kept=yes", "");
	run_init(&r, b.ear, "echo \"no end");
	r.start.session = SESSION;
	run_expect(&r, CUBE_END_EXIT, 2);
	run_done(&r);
	expect_output(&b, SESSION, "echo $kept", "yes\n");
	bed_close(&b);
}

static void timed_out(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r;

	expect_output(&b, SESSION, "export KEPT=yes", "");
	run_init(&r, b.ear, s->dialect->hang);
	r.start.session = SESSION;
	r.start.timeout_s = 1;
	run_expect(&r, CUBE_END_TIMEOUT, 124);
	run_done(&r);
	expect_output(&b, SESSION, "echo $KEPT", "yes\n");
	bed_close(&b);
}

const struct check checks_session[] = {
	{"a session lives on", CUBE_CAP_EXEC, 0, lives_on},
	{"directory and exports are told", CUBE_CAP_EXEC, 0, told},
	{"one command at a time", CUBE_CAP_EXEC, 0, busy},
	{"a session outlives its command", CUBE_CAP_EXEC, 0, killed_command},
	{"a session whose shell ends", CUBE_CAP_EXEC, 0, left},
	{"changes to its environment", CUBE_CAP_EXEC, 0, environment},
	{"changes to its directory", CUBE_CAP_EXEC, 0, directory},
	{"reset", CUBE_CAP_EXEC, 0, reset},
	{"closed", CUBE_CAP_EXEC, 0, closed},
	{"a syntax error in a session", CUBE_CAP_EXEC, 0, syntax_error},
	{"a time-out in a session", CUBE_CAP_EXEC, 0, timed_out},
	{.name = NULL},
};
