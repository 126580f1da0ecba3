/* SPDX-License-Identifier: Apache-2.0 */
/* cube-init: sessions. What one command leaves is there for the next; whatever it does to the shell, the
 * session goes on. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/file.h"
#include "tests/unit/agent/rig.h"

struct step {
	const char *text;
	const char *output; /* NULL: anything */
	int code;
};

static void steps(struct rig *r, const struct step *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		rig_expect(r, rig_say(r, all[i].text), all[i].output, CUBE_END_EXIT, all[i].code);
}

#define STEPS(r, all) steps(r, all, sizeof(all) / sizeof((all)[0]))

static void lives_on(struct rig *r)
{
	static const struct step all[] = {
		{"echo hello", "hello\n", 0},
		{"top=$PWD; x=5; f() { echo f $x; }; cd /usr", "", 0},
		{"f; pwd", "f 5\n/usr\n", 0},
		{"false", "", 1},
		{"echo $?", "1\n", 0},
		{"echo $?", "0\n", 0},
		{"(exit 77)", "", 77},
		{"echo $?; set -e", "77\n", 0},
		{"set +e; f", "f 5\n", 0},
		{"echo out; echo err >&2", "out\nerr\n", 0},
		{"return 9", NULL, 9},
		{"cat; read y; echo empty $y", "empty\n", 0},
		{"printf 'a\rb\tc'", "a\rb\tc", 0},
		{"cat <<E\nx is $x\nE", "x is 5\n", 0},
		{"", "", 0},
		{"# nothing", "", 0},
		{"   \n\n", "", 0},
		{"sleep 0.01 & wait $!; echo waited", "waited\n", 0},
		{"exec 3>&1; echo three >&3; exec 3>&-", "three\n", 0},
		{"cd /; cd /bin/..; pwd", NULL, 0},
		{"umask 077; umask", "0077\n", 0},
		{"umask; umask 022", "0077\n", 0},
		{"set -f; echo *; set +f", "*\n", 0},
		{"IFS=0; v=a0b; echo $v", "a b\n", 0},
		{"unset IFS; set -C; cd \"$top\"; echo a >c1", "", 0},
		{"echo b >c1 || echo refused", NULL, 0},
		{"set +C; set -u; echo $x", "5\n", 0},
		{"set +u; echo $x$nosuch", "5\n", 0},
	};

	STEPS(r, all);
}

static void test_lives_on(void **state)
{
	(void)state;
	rig_each(lives_on);
}

static void errors(struct rig *r)
{
	static const struct step all[] = {
		{"x=1", "", 0},
		{"echo \"a", NULL, 2},
		{"if", NULL, 2},
		{"for x in", NULL, 2},
		{"echo ok; )", NULL, 2},
		{"$(", NULL, 2},
		{"echo still $x", "still 1\n", 0},
		{"nosuchcommand", NULL, 127},
		{"/etc/passwd", NULL, 126},
		{"kill -TERM $(sh -c 'echo $$')", NULL, 1},
		{"sh -c 'kill -9 $$'", NULL, 137},
		{"echo still $x", "still 1\n", 0},
	};

	STEPS(r, all);
}

static void test_errors(void **state)
{
	(void)state;
	rig_each(errors);
}

static void fresh_shell(struct rig *r)
{
	static const struct step all[] = {
		{"cd /usr; export A='b  c\nd'\\''\"$e'; x=1", "", 0},
		{"exit 3", "", 3},
		{"echo \"$A\"-$x; pwd", "b  c\nd'\"$e-\n/usr\n", 0},
		{"cd /bin/..; export B=2; exit", NULL, 0},
		{"echo $B", "2\n", 0},
		{"exec sh -c 'echo prog; exit 9'", "prog\n", 9},
		{"echo $B; x=2", "2\n", 0},
		{"set -e; false; echo never", "", 1},
		{"echo $B-$x; case $- in *e*) echo e;; esac", "2-\n", 0},
		{"set -u; export C=3; echo $nosuch; echo never", NULL, 0},
	};
	uint64_t id;

	steps(r, all, sizeof(all) / sizeof(all[0]) - 1);
	id = rig_say(r, all[9].text);
	rig_wait_end(r, id);
	assert_false(rig_has(r, id, "never"));
	assert_true(rig_job(r, id)->end.code != 0);
	rig_expect(r, rig_say(r, "echo $C; cd /usr"), "3\n", CUBE_END_EXIT, 0);
	rig_expect(r, rig_say(r, "kill -9 $$"), "", CUBE_END_SIGNAL, 137);
	rig_expect(r, rig_say(r, "echo $B; pwd"), "2\n/usr\n", CUBE_END_EXIT, 0);
	rig_expect(r, rig_say(r, "trap 'echo bye' EXIT; exit 4"), "bye\n", CUBE_END_EXIT, 4);
	rig_expect(r, rig_say(r, "echo $B; pwd"), "2\n/usr\n", CUBE_END_EXIT, 0);
}

static void test_fresh_shell(void **state)
{
	(void)state;
	rig_each(fresh_shell);
}

/* Names that the driver itself uses. What replaces them takes effect, and the session survives it. */
static void hostile_functions(struct rig *r)
{
	static const char *const names[] = {"echo", "printf",  "cd",      "export", "set",
					    "exec", "command", "builtin", "trap"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char text[96];
		uint64_t id;

		(void)snprintf(text, sizeof(text), "%s() { false; }", names[i]);
		id = rig_say(r, text);
		rig_wait_end(r, id);
		assert_true(rig_job(r, id)->end.how == CUBE_END_EXIT);
		/* A special builtin cannot be replaced in dash, which says so. */
		assert_true(rig_job(r, id)->end.code == 0 || rig_job(r, id)->end.code == 2);
		id = rig_say(r, "/bin/echo after");
		rig_expect(r, id, "after\n", CUBE_END_EXIT, 0);
		cube_link_session_close(r->link, 1, true);
	}
	assert_int_equal(rig_job(r, rig_say(r, "set -n"))->end.how, CUBE_END_EXIT);
	rig_expect(r, rig_say(r, "echo back"), "back\n", CUBE_END_EXIT, 0);
}

static void test_hostile_functions(void **state)
{
	(void)state;
	rig_each_shell(hostile_functions);
}

static void reports(struct rig *r)
{
	const struct rig_session *s;

	rig_expect(r, rig_say(r, "cd /usr"), "", CUBE_END_EXIT, 0);
	s = rig_session(r, 1);
	assert_non_null(s);
	assert_string_equal(s->cwd, "/usr");
	assert_false(s->fresh);
	rig_expect(r, rig_say(r, "export N='new one'"), "", CUBE_END_EXIT, 0);
	assert_non_null(s->exports);
	assert_non_null(strstr(s->exports, "N="));
	assert_non_null(strstr(s->exports, "new one"));
	{
		unsigned before = s->reports;

		rig_expect(r, rig_say(r, "true"), "", CUBE_END_EXIT, 0);
		assert_int_equal(s->reports, before);
	}
	rig_expect(r, rig_say(r, "cd /; exit 1"), "", CUBE_END_EXIT, 1);
	assert_string_equal(s->cwd, "/");
	assert_true(s->fresh);
	rig_expect(r, rig_say(r, "mkdir -p \"$D\"/'a\nb'; cd \"$D\"/'a\nb'"), NULL, CUBE_END_EXIT, 0);
}

static void test_reports(void **state)
{
	(void)state;
	rig_each(reports);
}

static void strange_directory(struct rig *r)
{
	char expected[128];
	const struct rig_session *s;

	rig_expect(r, rig_say(r, "mkdir 'a\nb \\c'; cd 'a\nb \\c'"), "", CUBE_END_EXIT, 0);
	s = rig_session(r, 1);
	(void)snprintf(expected, sizeof(expected), "%s/a\nb \\c", r->dir);
	assert_string_equal(s->cwd, expected);
	rig_expect(r, rig_say(r, "exit 1"), "", CUBE_END_EXIT, 1);
	rig_expect(r, rig_say(r, "touch here; cd ..; ls 'a\nb \\c'"), "here\n", CUBE_END_EXIT, 0);
	/* A directory that is gone is left for the next best. */
	rig_expect(r, rig_say(r, "mkdir d; cd d; rmdir ../d; exit 5"), "", CUBE_END_EXIT, 5);
	rig_expect(r, rig_say(r, "pwd"), "/\n", CUBE_END_EXIT, 0);
}

static void test_strange_directory(void **state)
{
	(void)state;
	rig_each_shell(strange_directory);
}

/* Variables and directory of a START are set in the live shell, before its command. */
static void changes(struct rig *r)
{
	static const char env[] = "PATH=/bin:/usr/bin\0FIRST=1\0GONE=x";
	static const char change[] = "A=it's \"a\"\nvalue $x\0GONE\0B=\0not-a-name=1";
	struct rig_run run = {.text = "echo $FIRST$GONE", .session = 1, .env = env, .env_len = sizeof(env)};
	uint64_t id;

	rig_expect(r, rig_do(r, &run), "1x\n", CUBE_END_EXIT, 0);
	run = (struct rig_run){.text = "f() { echo kept; }", .session = 1};
	rig_expect(r, rig_do(r, &run), "", CUBE_END_EXIT, 0);
	run = (struct rig_run){
		.text = "echo \"$A[${GONE-unset}][${B-unset}]$FIRST\"; sh -c 'echo $A'; pwd; f",
		.session = 1,
		.env = change,
		.env_len = sizeof(change),
		.cwd = "/usr"};
	rig_expect(r, rig_do(r, &run), "it's \"a\"\nvalue $x[unset][]1\nit's \"a\" value $x\n/usr\nkept\n",
		   CUBE_END_EXIT, 0);
	run = (struct rig_run){.text = "echo never", .session = 1, .cwd = "/no/such/directory"};
	id = rig_do(r, &run);
	rig_expect(r, id, "", CUBE_END_EXIT, 126);
	assert_int_equal(rig_job(r, id)->err.code, -ENOENT);
	rig_expect(r, rig_say(r, "pwd; f"), "/usr\nkept\n", CUBE_END_EXIT, 0);
	/* Also where the shell has just ended. */
	rig_expect(r, rig_say(r, "exit 1"), "", CUBE_END_EXIT, 1);
	run = (struct rig_run){.text = "echo $NEW-$FIRST; pwd",
			       .session = 1,
			       .env = "NEW=n",
			       .env_len = 5,
			       .cwd = "/bin/.."};
	id = rig_do(r, &run);
	rig_expect(r, id, NULL, CUBE_END_EXIT, 0);
	assert_true(rig_has(r, id, "n-1\n"));
	/* A directory that is missing when the session begins. */
	run = (struct rig_run){.text = "echo never", .session = 2, .cwd = "/no/such/directory"};
	id = rig_do(r, &run);
	rig_expect(r, id, "", CUBE_END_EXIT, 126);
	run = (struct rig_run){.text = "echo 2", .session = 2, .cwd = "/"};
	rig_expect(r, rig_do(r, &run), "2\n", CUBE_END_EXIT, 0);
}

static void test_changes(void **state)
{
	(void)state;
	rig_each(changes);
}

static void refusals(struct rig *r)
{
	struct rig_run run = {.text = "sleep 300", .session = 1};
	uint64_t id = rig_start(r, &run);
	uint64_t other;

	run.text = "echo no";
	assert_int_equal(rig_refused(r, &run), -EBUSY);
	cube_link_kill(r->link, id, SIGKILL);
	rig_expect(r, id, "", CUBE_END_KILLED, 137);
	run.tty = true;
	other = rig_do(r, &run);
	rig_expect(r, other, "", CUBE_END_EXIT, 126);
	assert_int_equal(rig_job(r, other)->err.code, -EINVAL);
	run = (struct rig_run){.text = "a\0b", .text_len = 3, .session = 1};
	other = rig_do(r, &run);
	assert_int_equal(rig_job(r, other)->err.code, -EINVAL);
	run = (struct rig_run){.text = "true", .session = 1, .argv = true};
	other = rig_do(r, &run);
	assert_int_equal(rig_job(r, other)->err.code, -EINVAL);
	rig_expect(r, rig_say(r, "echo fine"), "fine\n", CUBE_END_EXIT, 0);
}

static void test_refusals(void **state)
{
	struct rig *r = rig_new(NULL, false, false);

	(void)state;
	refusals(r);
	rig_free(r);
}

static void tracing(struct rig *r)
{
	uint64_t id;

	rig_expect(r, rig_say(r, "set -x"), "", CUBE_END_EXIT, 0);
	id = rig_say(r, "echo traced");
	rig_expect(r, id, NULL, CUBE_END_EXIT, 0);
	assert_true(rig_has(r, id, "+ echo traced\ntraced\n"));
	assert_false(rig_has(r, id, "cube"));
	assert_false(rig_has(r, id, "printf"));
	id = rig_say(r, "echo again; set +x");
	assert_true(rig_has(r, id, "+ echo again\nagain\n"));
	rig_expect(r, rig_say(r, "echo quiet"), "quiet\n", CUBE_END_EXIT, 0);
}

static void test_tracing(void **state)
{
	(void)state;
	rig_each_shell(tracing);
}

/* Commands see 0, 1 and 2 alone, with every signal at its default; the input of each is its own. */
static void cleanliness(struct rig *r)
{
	rig_expect(r, rig_say(r, "ls /proc/self/fd | tr '\\n' ' '"), "0 1 2 3 ", CUBE_END_EXIT, 0);
	rig_expect(r, rig_say(r, "sed -n '/^Sig[BI]/p' /proc/self/status | tr -d '0\\t\\n'"),
		   "SigBlk:SigIgn:", CUBE_END_EXIT, 0);
	rig_expect(r, rig_say(r, "x=1; readlink /proc/self/fd/0"), "/dev/null\n", CUBE_END_EXIT, 0);
	rig_expect(r, rig_say(r, "exec >/dev/null 2>&1 </dev/zero; echo lost"), "", CUBE_END_EXIT, 0);
	rig_expect(r, rig_say(r, "echo $x; readlink /proc/self/fd/0"), "1\n/dev/null\n", CUBE_END_EXIT, 0);
	rig_expect(r, rig_say(r, "exec 1>&-; echo x; exec 2>&- 0>&-; :"), NULL, CUBE_END_EXIT, 0);
	rig_expect(r, rig_say(r, "echo $x"), "1\n", CUBE_END_EXIT, 0);
}

static void test_cleanliness(void **state)
{
	(void)state;
	rig_each(cleanliness);
}

static void long_text(struct rig *r)
{
	size_t len = 1u << 20;
	char *text = malloc(len + 8);
	uint64_t id;
	char *out;
	size_t n;

	assert_non_null(text);
	n = (size_t)snprintf(text, len, "cat <<'E'\n");
	memset(text + n, 'x', len - n);
	for (size_t i = n; i < len; i += 100)
		text[i] = '\n';
	memcpy(text + len, "\nE\n", 4);
	id = rig_do(r, &(struct rig_run){.text = text, .session = 1});
	out = rig_output(r, id, &n);
	assert_int_equal(n, len - 10 + 1);
	assert_memory_equal(out, text + 10, n);
	free(out);
	free(text);
	rig_expect(r, rig_say(r, "echo short"), "short\n", CUBE_END_EXIT, 0);
}

static void test_long_text(void **state)
{
	(void)state;
	rig_each_shell(long_text);
}

/* Two sessions at once, each with its own shell, and a third one of another user. */
static void test_several(void **state)
{
	struct rig *r = rig_new(NULL, false, false);
	struct rig_run run = {.text = "x=two; sleep 0.3; echo $x", .session = 2, .cwd = "/"};
	uint64_t two = rig_start(r, &run);

	(void)state;
	rig_expect(r, rig_say(r, "x=one; echo $x"), "one\n", CUBE_END_EXIT, 0);
	rig_expect(r, two, "two\n", CUBE_END_EXIT, 0);
	run = (struct rig_run){.text = "echo $x", .session = 2};
	rig_expect(r, rig_do(r, &run), "two\n", CUBE_END_EXIT, 0);
	if (geteuid() == 0) {
		run = (struct rig_run){
			.text = "id -un; cd /usr; export U=1", .session = 3, .user = "nobody", .cwd = "/"};
		rig_expect(r, rig_do(r, &run), "nobody\n", CUBE_END_EXIT, 0);
		run = (struct rig_run){
			.text = "echo $U; pwd; read x; echo got $x", .session = 3, .input = true};
		two = rig_start(r, &run);
		assert_int_equal(cube_link_input(r->link, two, "in\n", 3), 3);
		cube_link_eof(r->link, two);
		rig_expect(r, two, "1\n/usr\ngot in\n", CUBE_END_EXIT, 0);
		/* It cannot read what another session's command was. */
		run = (struct rig_run){.session = 3};
		{
			char text[256];

			(void)snprintf(text, sizeof(text),
				       "cat %s/run/*/t >/dev/null 2>&1; echo $?; ls %s/run", r->dir, r->dir);
			run.text = text;
			rig_expect(r, rig_do(r, &run), NULL, CUBE_END_EXIT, 2);
		}
		run = (struct rig_run){.text = "exit 4", .session = 3};
		rig_expect(r, rig_do(r, &run), "", CUBE_END_EXIT, 4);
		run = (struct rig_run){.text = "id -un; pwd", .session = 3};
		rig_expect(r, rig_do(r, &run), "nobody\n/usr\n", CUBE_END_EXIT, 0);
	}
	rig_free(r);
}

/* The very first command of another user has an input of its own and a directory; and after an end of the shell. */
static void other_user(struct rig *r)
{
	struct rig_run run = {.text = "cat; pwd", .session = 1, .user = "nobody", .cwd = "/", .input = true};
	uint64_t id = rig_start(r, &run);

	assert_int_equal(cube_link_input(r->link, id, "in\n", 3), 3);
	cube_link_eof(r->link, id);
	rig_expect(r, id, "in\n/\n", CUBE_END_EXIT, 0);
	rig_expect(r, rig_say(r, "export A=1; exit 1"), "", CUBE_END_EXIT, 1);
	run = (struct rig_run){.text = "cat; echo $A$B; pwd; id -un",
			       .session = 1,
			       .env = "B=2",
			       .env_len = 3,
			       .cwd = "/usr",
			       .input = true};
	id = rig_start(r, &run);
	cube_link_eof(r->link, id);
	rig_expect(r, id, "12\n/usr\nnobody\n", CUBE_END_EXIT, 0);
	run = (struct rig_run){.text = "echo never", .session = 2, .user = "no-such-user", .cwd = "/"};
	id = rig_do(r, &run);
	rig_expect(r, id, "", CUBE_END_EXIT, 126);
	assert_non_null(strstr(rig_job(r, id)->err.text, "no-such-user"));
}

static void test_other_user(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	rig_each(other_user);
}

/* A session that is closed and one that is reset. */
static void closing(struct rig *r)
{
	struct rig_run run = {.text = "echo ready; sleep 300", .session = 1};
	uint64_t id;

	rig_expect(r, rig_say(r, "cd /usr; export A=1; x=1"), "", CUBE_END_EXIT, 0);
	cube_link_session_close(r->link, 1, true);
	rig_expect(r, rig_say(r, "echo $A$x; pwd"), "1\n/usr\n", CUBE_END_EXIT, 0);
	id = rig_start(r, &run);
	rig_wait_total(r, id, 6);
	cube_link_session_close(r->link, 1, true);
	rig_expect(r, id, "ready\n", CUBE_END_KILLED, 137);
	rig_expect(r, rig_say(r, "echo $A; pwd"), "1\n/usr\n", CUBE_END_EXIT, 0);
	id = rig_start(r, &run);
	rig_wait_total(r, id, 6);
	cube_link_session_close(r->link, 1, false);
	rig_expect(r, id, "ready\n", CUBE_END_KILLED, 137);
}

static void test_closing(void **state)
{
	(void)state;
	rig_each(closing);
}

/* The run directory is inside, and what is inside is hostile. */
static void removed(struct rig *r)
{
	char path[80], text[256];
	uint64_t id;

	rig_expect(r, rig_say(r, "cd /usr; export A=1"), "", CUBE_END_EXIT, 0);
	(void)snprintf(path, sizeof(path), "%s/run", r->dir);
	assert_int_equal(cube_file_remove_tree(AT_FDCWD, path), 0);
	rig_expect(r, rig_say(r, "echo $A; pwd"), "1\n/usr\n", CUBE_END_EXIT, 0);
	/* By the command itself: it still ends, and the next one finds a shell. */
	(void)snprintf(text, sizeof(text), "rm -rf %s; echo removed", path);
	id = rig_say(r, text);
	rig_wait_end(r, id);
	assert_true(rig_has(r, id, "removed\n"));
	rig_expect(r, rig_say(r, "echo $A; pwd"), "1\n/usr\n", CUBE_END_EXIT, 0);
	/* Something else in its place. */
	(void)snprintf(text, sizeof(text), "rm -rf %s; ln -s /etc %s", path, path);
	rig_wait_end(r, rig_say(r, text));
	id = rig_say(r, "echo $A");
	rig_expect(r, id, "", CUBE_END_EXIT, 126);
	assert_true(rig_job(r, id)->err.text[0] != '\0');
	rig_expect(r, rig_do(r, &(struct rig_run){.text = "echo jobs work"}), "jobs work\n", CUBE_END_EXIT,
		   0);
	assert_int_equal(unlink(path), 0);
	rig_expect(r, rig_say(r, "echo $A; pwd"), "1\n/usr\n", CUBE_END_EXIT, 0);
}

static void test_removed(void **state)
{
	(void)state;
	rig_each_shell(removed);
}

/* Nonsense in the channel by which the shell reports. */
static void nonsense(struct rig *r)
{
	char text[512];

	(void)snprintf(text, sizeof(text),
		       "for f in %s/run/*/s; do head -c 300000 /dev/zero | tr '\\0' A >$f; echo 'd 99 0 x "
		       "/etc' >$f; echo 'e 99' >$f; "
		       "echo 'u 5 5' >$f; echo 'd' >$f; echo 'i' >$f; printf 'd 1 2 3' >$f; echo >$f; done; "
		       "echo wrote",
		       r->dir);
	rig_expect(r, rig_say(r, "x=1"), "", CUBE_END_EXIT, 0);
	rig_expect(r, rig_say(r, text), "wrote\n", CUBE_END_EXIT, 0);
	rig_expect(r, rig_say(r, "echo $x"), "1\n", CUBE_END_EXIT, 0);
}

static void test_nonsense(void **state)
{
	(void)state;
	rig_each_shell(nonsense);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lives_on),    cmocka_unit_test(test_errors),
		cmocka_unit_test(test_fresh_shell), cmocka_unit_test(test_hostile_functions),
		cmocka_unit_test(test_reports),     cmocka_unit_test(test_strange_directory),
		cmocka_unit_test(test_changes),     cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_tracing),     cmocka_unit_test(test_cleanliness),
		cmocka_unit_test(test_long_text),   cmocka_unit_test(test_several),
		cmocka_unit_test(test_closing),     cmocka_unit_test(test_other_user),
		cmocka_unit_test(test_removed),     cmocka_unit_test(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
