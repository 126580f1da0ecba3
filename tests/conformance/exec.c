/* SPDX-License-Identifier: Apache-2.0 */
/* Commands: what starts, where, as whom, with which environment; output. */
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/spool.h"
#include "tests/conformance/conformance.h"

static void hello(struct subject *s)
{
	struct bed b = bed_open(s);
	const struct heard *started, *output;
	struct run r;

	run_init(&r, b.ear, "echo hello");
	run_expect(&r, CUBE_END_EXIT, 0);
	assert_string_equal(r.out, "hello\n");
	assert_string_equal(r.err_out, "");
	assert_int_equal(r.ended->end.total, 6);
	assert_int_equal(r.ended->end.signal, 0);
	assert_true(r.ended->end.wall_ns != 0);
	started = ear_wait(b.ear, HEARD_STARTED, r.start.job);
	output = ear_wait(b.ear, HEARD_OUTPUT, r.start.job);
	assert_true(started->pid > 0);
	assert_true(heard_before(started, output) && heard_before(output, r.ended));
	run_done(&r);
	bed_close(&b);
}

static void exit_codes(struct subject *s)
{
	static const struct {
		const char *text;
		int code;
	} cases[] = {
		{"", 0},
		{"true", 0},
		{"false", 1},
		{"exit 3", 3},
		{"exit 255", 255},
		{"false; true", 0},
		{"true\nfalse", 1},
		{"no-such-command", 127},
		{"exit 7; echo not reached", 7},
	};
	struct bed b = bed_open(s);

	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		struct run r;

		run_init(&r, b.ear, cases[i].text);
		run_expect(&r, CUBE_END_EXIT, cases[i].code);
		assert_string_equal(r.out, "");
		run_done(&r);
	}
	bed_close(&b);
}

static void syntax_error(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r;

	run_init(&r, b.ear, "echo 'no end");
	run_expect(&r, CUBE_END_EXIT, 2);
	assert_string_equal(r.out, "");
	assert_true(strlen(r.err_out) > 0);
	run_done(&r);
	bed_close(&b);
}

static void both_streams(struct subject *s)
{
	struct bed b = bed_open(s);
	const char *err = s->dialect->to_stderr;
	cube_auto_str text = cube_asprintf("echo o1\n%s\necho o2\n%s\n%s\necho o3\n", err, err, err);
	struct run r;

	run_init(&r, b.ear, text);
	run_expect(&r, CUBE_END_EXIT, 0);
	assert_string_equal(r.out, "o1\no2\no3\n");
	assert_string_equal(r.err_out, "e\ne\ne\n");
	assert_int_equal(r.ended->end.total, 15);
	assert_int_equal(r.ended->end.err_total, 6);
	run_done(&r);
	run_init(&r, b.ear, text); /* into one pipe: exactly as it was written */
	r.start.merge = true;
	run_expect(&r, CUBE_END_EXIT, 0);
	assert_string_equal(r.all, "o1\ne\no2\ne\ne\no3\n");
	assert_string_equal(r.out, r.all);
	assert_int_equal(r.ended->end.err_total, 0);
	run_done(&r);
	bed_close(&b);
}

/* Above the limit the command goes on and the first and last halves stay. */
static void output_limit(struct subject *s)
{
	struct bed b = bed_open(s);
	const uint64_t limit = UINT64_C(1) << 20;
	struct run r;

	run_init(&r, b.ear, s->dialect->megabytes);
	r.start.limit = limit;
	r.start.merge = true;
	run_expect(&r, CUBE_END_EXIT, 0);
	assert_int_equal(r.ended->end.total, 3 << 20);
	assert_int_equal(r.all_len, limit + CUBE_SPOOL_MARKER);
	assert_non_null(memmem(r.all + limit / 2, CUBE_SPOOL_MARKER, "[cubefs: ", 9));
	run_done(&r);
	bed_close(&b);
}

static void whole_output(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r;

	run_init(&r, b.ear, s->dialect->megabytes);
	run_expect(&r, CUBE_END_EXIT, 0);
	assert_int_equal(r.ended->end.total, 3 << 20);
	ear_wait_output(b.ear, r.start.job, 3 << 20);
	run_done(&r);
	bed_close(&b);
}

static void words(struct subject *s)
{
	static const char text[] = "echo\0a b\0$HOME\0'q'\0line\nline";
	struct bed b = bed_open(s);
	struct run r;

	run_init_argv(&r, b.ear, text, sizeof(text)); /* with a last NUL */
	run_expect(&r, CUBE_END_EXIT, 0);
	assert_string_equal(r.out, "a b $HOME 'q' line\nline\n");
	run_done(&r);
	run_init_argv(&r, b.ear, text, sizeof(text) - 1); /* without */
	run_expect(&r, CUBE_END_EXIT, 0);
	assert_string_equal(r.out, "a b $HOME 'q' line\nline\n");
	run_done(&r);
	bed_close(&b);
}

/* Accepted, and then it could not be started: an end with a reason. */
static void expect_no_start(struct run *r, int code)
{
	run_start(r);
	run_wait(r);
	assert_int_equal(r->ended->end.how, CUBE_END_EXIT);
	assert_int_equal(r->ended->end.code, code);
	assert_true(r->ended->err.text[0] != '\0');
	assert_int_equal(r->ended->end.total, 0);
	run_done(r);
}

static void no_start(struct subject *s)
{
	static const char text[] = "no-such-program";
	struct bed b = bed_open(s);
	struct run r;

	run_init_argv(&r, b.ear, text, sizeof(text));
	expect_no_start(&r, 127);
	run_init_argv(&r, b.ear, "", 0);
	expect_no_start(&r, 127);
	run_init(&r, b.ear, "true");
	r.start.cwd = "/no/such/directory";
	expect_no_start(&r, 126);
	cube_free(run_text(b.ear, "true"));
	bed_close(&b);
}

/* All of it, and nothing that nobody gave but PWD. */
static void environment(struct subject *s)
{
	static const char env[] = "PATH=/usr/bin:/bin\0FOO=two words\0EMPTY=\0";
	static const char given[] = "PATH=/usr/bin:/bin\nFOO=two words\nEMPTY=\n";
	static const char text[] = "env";
	struct bed b = bed_open(s);
	struct run r;

	run_init_argv(&r, b.ear, text, sizeof(text));
	r.start.env = env;
	r.start.env_len = sizeof(env) - 1;
	run_expect(&r, CUBE_END_EXIT, 0);
	assert_memory_equal(r.out, given, strlen(given));
	if (r.out[strlen(given)] != '\0')
		assert_string_equal(r.out + strlen(given), "PWD=/workspace\n");
	run_done(&r);
	run_init(&r, b.ear, "echo \"$FOO\" \"$EMPTY\" \"$NOT\"");
	r.start.env = env;
	r.start.env_len = sizeof(env) - 1;
	run_expect(&r, CUBE_END_EXIT, 0);
	assert_string_equal(r.out, "two words  \n");
	run_done(&r);
	bed_close(&b);
}

static void directory(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r;

	expect_output(&b, 0, "pwd", "/workspace\n");
	run_init(&r, b.ear, "pwd");
	r.start.cwd = "/tmp";
	run_expect(&r, CUBE_END_EXIT, 0);
	assert_string_equal(r.out, "/tmp\n");
	run_done(&r);
	expect_output(&b, 0, "cd /\ncd tmp\npwd", "/tmp\n");
	bed_close(&b);
}

static void expect_user(struct bed *b, const char *user, const char *ids)
{
	struct run r;

	run_init(&r, b->ear, "id -u; id -g");
	r.start.user = user;
	run_expect(&r, CUBE_END_EXIT, 0);
	assert_string_equal(r.out, ids);
	run_done(&r);
}

static void users(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r;

	expect_user(&b, "", "0\n0\n");
	expect_user(&b, "root", "0\n0\n");
	expect_user(&b, "nobody", "65534\n65534\n");
	expect_user(&b, "1:2", "1\n2\n");
	run_init(&r, b.ear, "true");
	r.start.user = "no-such-user";
	expect_no_start(&r, 126);
	bed_close(&b);
}

static void terminal(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r;

	run_init(&r, b.ear, "stty size");
	r.start.tty = true;
	r.start.in = CUBE_STDIN_PIPE;
	r.start.rows = 33;
	r.start.cols = 111;
	run_start(&r);
	cube_link_eof(b.ear->link, r.start.job);
	run_wait(&r);
	assert_int_equal(r.ended->end.code, 0);
	assert_non_null(strstr(r.all, "33 111"));
	run_done(&r);
	bed_close(&b);
}

static void terminal_resized(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r;

	run_init(&r, b.ear, "echo ready\ncat\nstty size");
	r.start.tty = true;
	r.start.in = CUBE_STDIN_PIPE;
	r.start.rows = 10;
	r.start.cols = 20;
	run_start(&r);
	ear_wait_output(b.ear, r.start.job, 6);
	cube_link_winsize(b.ear->link, r.start.job, 44, 122);
	cube_link_eof(b.ear->link, r.start.job);
	run_wait(&r);
	assert_non_null(strstr(r.all, "44 122"));
	run_done(&r);
	bed_close(&b);
}

static void many(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r[20];

	for (size_t i = 0; i < CUBE_COUNT(r); i++) {
		run_init(&r[i], b.ear, i % 2 == 0 ? "echo even" : "echo odd; exit 5");
		run_start(&r[i]);
	}
	for (size_t i = 0; i < CUBE_COUNT(r); i++) {
		run_wait(&r[i]);
		assert_string_equal(r[i].out, i % 2 == 0 ? "even\n" : "odd\n");
		assert_int_equal(r[i].ended->end.code, i % 2 == 0 ? 0 : 5);
		run_done(&r[i]);
	}
	bed_close(&b);
}

static void large_command(struct subject *s)
{
	const size_t half = 512 * 1024;
	char *text = cube_calloc(1, 2 * half + 16);
	struct bed b = bed_open(s);
	struct cube_err err;
	struct run r;

	memcpy(text, "echo ", 5);
	memset(text + 5, 'x', half);
	run_init(&r, b.ear, text);
	run_expect(&r, CUBE_END_EXIT, 0);
	assert_int_equal(r.ended->end.total, half + 1);
	run_done(&r);
	run_init(&r, b.ear, text);
	r.start.text_len = (4 << 20) + 1; /* it is refused before it is read */
	expect_failure(cube_link_start(b.ear->link, &r.start, &err), -EMSGSIZE, &err);
	run_done(&r);
	bed_close(&b);
	cube_free(text);
}

const struct check checks_exec[] = {
	{"a command", CUBE_CAP_EXEC, 0, hello},
	{"exit codes", CUBE_CAP_EXEC, 0, exit_codes},
	{"a syntax error", CUBE_CAP_EXEC, 0, syntax_error},
	{"stdout and stderr", CUBE_CAP_EXEC, 0, both_streams},
	{"output up to the last byte", CUBE_CAP_EXEC, 0, whole_output},
	{"output above the limit", CUBE_CAP_EXEC, 0, output_limit},
	{"words without a shell", CUBE_CAP_EXEC, 0, words},
	{"what cannot be started", CUBE_CAP_EXEC, 0, no_start},
	{"the environment", CUBE_CAP_EXEC, 0, environment},
	{"the directory", CUBE_CAP_EXEC, 0, directory},
	{"users", CUBE_CAP_EXEC | CUBE_CAP_USERS, 0, users},
	{"a terminal", CUBE_CAP_EXEC | CUBE_CAP_TTY, 0, terminal},
	{"a terminal that is resized", CUBE_CAP_EXEC | CUBE_CAP_TTY, 0, terminal_resized},
	{"many at once", CUBE_CAP_EXEC, 0, many},
	{"large commands", CUBE_CAP_EXEC, 0, large_command},
	{.name = NULL},
};
