/* SPDX-License-Identifier: Apache-2.0 */
/* What only `mem` has: its words, faults on request, limits, its configuration. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/mem/mem_priv.h"
#include "backends/registry.h"
#include "tests/unit/backends/stage.h"

struct scene {
	struct stage stage;
	char *id;
	struct ear *ear;
};

static int setup(void **state)
{
	static struct scene s;
	struct cube_err err;

	if (stage_open(&s.stage, cube_backend_find("mem"), NULL, &err) < 0)
		fail_msg("%s", err.text);
	s.id = stage_create(&s.stage, NULL);
	s.ear = ear_open(&s.stage, s.id);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	ear_close(s->ear);
	cube_free(s->id);
	stage_close(&s->stage);
	return 0;
}

static void expect(struct scene *s, const char *text, int code, const char *out, const char *err)
{
	struct run r;

	run_init(&r, s->ear, text);
	run_expect(&r, CUBE_END_EXIT, code);
	assert_string_equal(r.out, out);
	assert_string_equal(r.err_out, err);
	run_done(&r);
}

static void expect_end(struct scene *s, uint64_t session, const char *text, enum cube_end how, int code)
{
	struct run r;

	run_init(&r, s->ear, text);
	r.start.session = session;
	run_expect(&r, how, code);
	run_done(&r);
}

static void output_words(void **state)
{
	struct scene *s = *state;

	expect(s, "echo a  'b  c' ''", 0, "a b  c \n", "");
	expect(s, "echo; err x y; err", 0, "\n", "x y\n\n");
	expect(s, "bytes 5", 0, "01234", "");
	expect(s, "bytes 66", 0, "0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmn\n01", "");
	expect(s, "bytes many", 1, "", "mem: bytes: many: not a size\n");
	expect(s, "bytes 0; pwd", 0, "/workspace\n", "");
}

static void usage_errors(void **state)
{
	struct scene *s = *state;

	expect(s, "nonsense x", 127, "", "mem: nonsense: no such word\n");
	expect(s, "bytes", 2, "", "mem: usage: bytes SIZE\n");
	expect(s, "pwd x", 2, "", "mem: usage: pwd \n");
	expect(s, "sleep soon", 1, "", "mem: sleep: soon: not a number of milliseconds\n");
	expect(s, "exit x", 1, "", "mem: exit: x: not a number\n");
	expect(s, "kill WHAT", 1, "", "mem: kill: WHAT: no such signal\n");
	expect(s, "ignore WHAT", 1, "", "mem: ignore: WHAT: no such signal\n");
	expect(s, "export 1=2", 1, "", "mem: export: 1=2: not a name\n");
	expect(s, "stty speed", 1, "", "mem: stty: speed: only size is known\n");
	expect(s, "stty size", 1, "", "mem: stty: stdin: not a terminal\n");
	expect(s, "echo 'a", 2, "", "mem: syntax error: no end of the quote '\n");
}

static void shell_words(void **state)
{
	struct scene *s = *state;

	expect(s, "a=1; export b=2; env; echo $a", 0, "b=2\n1\n", "");
	expect(s, "export x='it is' y; export", 0, "export x='it is'\nexport y=''\n", "");
	expect(s, "x=1; export x; unset x y; env; echo \"[$x]\"", 0, "[]\n", "");
	expect(s, "false; echo $?; true; echo $?; nonsense; echo $?", 0, "1\n0\n127\n",
	       "mem: nonsense: no such word\n");
	expect(s, "id; id -u; id -g", 0, "uid=0 gid=0\n0\n0\n", "");
	expect(s, "HOME=/tmp; cd; pwd; unset HOME; cd; pwd", 0, "/tmp\n/\n", "");
	expect(s, "false; exit", 1, "", "");
	expect(s, "exit 256", 0, "", "");
	expect(s, "cd /nowhere; pwd", 0, "/workspace\n", "mem: cd: /nowhere: No such file or directory\n");
	expect(s, "cd /etc/passwd", 1, "", "mem: cd: /etc/passwd: Not a directory\n");
}

static void file_words(void **state)
{
	struct scene *s = *state;

	expect(s, "write f a b; append f c; cat f; cat /workspace/f", 0, "a b\nc\na b\nc\n", "");
	expect(s, "write f x; cat f; rm f; cat f", 1, "x\n", "mem: cat: f: No such file or directory\n");
	expect(s, "cat /tmp; write /tmp y", 1, "",
	       "mem: cat: /tmp: Is a directory\nmem: write: /tmp: Is a directory\n");
	expect(s, "rm /workspace/none", 1, "", "mem: rm: /workspace/none: No such file or directory\n");
	expect(s, "write empty; cat empty; rm empty", 0, "\n", "");
}

/* Links and special files made from outside lead nobody out and hang nobody. */
static void hostile_files(void **state)
{
	struct scene *s = *state;
	struct cube_root root;
	int workspace;

	assert_int_equal(cube_backend_root(s->stage.b, s->id, &root, NULL), 0);
	workspace = root.mounts[0].fd;
	assert_int_equal(symlinkat("/etc/passwd", root.fd, "tmp/abs"), 0);
	assert_int_equal(symlinkat("../../../../../../etc/hostname", root.fd, "tmp/up"), 0);
	assert_int_equal(mkfifoat(workspace, "fifo", 0600), 0);
	expect(s, "cat /tmp/up", 1, "", "mem: cat: /tmp/up: No such file or directory\n");
	expect(s, "cat fifo", 1, "", "mem: cat: fifo: No such device or address\n");
	expect(s, "write fifo x", 1, "", "mem: write: fifo: No such device or address\n");
	expect(s, "cat /tmp/abs", 0,
	       "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/:/usr/sbin/nologin\n"
	       "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
	       "");
	cube_root_close(&root);
}

static void own_ends(void **state)
{
	struct scene *s = *state;

	expect_end(s, 0, "kill TERM", CUBE_END_SIGNAL, 143);
	expect_end(s, 0, "ignore TERM; kill TERM; kill CHLD; exit 5", CUBE_END_EXIT, 5);
	expect_end(s, 0, "oom", CUBE_END_OOM, 137);
	expect_end(s, 0, "sleep 30; exit 6", CUBE_END_EXIT, 6);
}

static void session_ends(void **state)
{
	struct scene *s = *state;

	expect_end(s, 3, "cd /tmp; x=1; kill KILL", CUBE_END_SIGNAL, 137);
	assert_true(ear_wait(s->ear, HEARD_SESSION, 3)->fresh);
	expect_end(s, 3, "oom", CUBE_END_OOM, 137);
	expect_end(s, 3, "false", CUBE_END_EXIT, 1);
	expect_end(s, 3, "exit $?", CUBE_END_EXIT, 1); /* the status lives on */
	expect_end(s, 3, "", CUBE_END_EXIT, 0);
}

static void stops_itself(void **state)
{
	struct scene *s = *state;
	struct run r;

	run_init(&r, s->ear, "echo a; kill STOP; echo b");
	run_start(&r);
	ear_wait_output(s->ear, r.start.job, 2);
	assert_null(ear_listen(s->ear, HEARD_ENDED, r.start.job, 100));
	cube_link_kill(s->ear->link, r.start.job, SIGCONT);
	run_wait(&r);
	assert_string_equal(r.out, "a\nb\n");
	run_done(&r);
}

static void dropped_connection(void **state)
{
	struct scene *s = *state;
	const struct heard *down;
	struct run r;

	run_init(&r, s->ear, "echo a; drop; echo b; exit 3");
	run_start(&r);
	down = ear_wait(s->ear, HEARD_DOWN, 0);
	assert_non_null(strstr(down->err.text, "dropped by a command"));
	ear_close(s->ear);
	s->ear = ear_open(&s->stage, s->id);
	r.ear = s->ear;
	run_wait(&r);
	assert_string_equal(r.out, "a\nb\n");
	assert_int_equal(r.ended->end.code, 3);
	run_done(&r);
}

/* The sandbox ends by itself: no end record, another boot, nothing known of before. */
static void crashed(void **state)
{
	struct scene *s = *state;
	uint64_t boot = ear_wait(s->ear, HEARD_UP, 0)->id;
	struct cube_info info;
	struct run r;

	run_init(&r, s->ear, "crash");
	run_start(&r);
	(void)ear_wait(s->ear, HEARD_DOWN, 0);
	assert_null(ear_listen(s->ear, HEARD_ENDED, r.start.job, 0));
	assert_int_equal(cube_backend_inspect(s->stage.b, s->id, &info, NULL), 0);
	assert_int_equal(info.state, CUBE_IS_STOPPED);
	assert_string_equal(info.reason, "exited");
	ear_close(s->ear);
	assert_int_equal(cube_backend_start(s->stage.b, s->id, NULL, NULL), 0);
	s->ear = ear_open(&s->stage, s->id);
	assert_int_not_equal(ear_wait(s->ear, HEARD_UP, 0)->id, boot);
	assert_null(ear_listen(s->ear, HEARD_STARTED, r.start.job, 0));
	run_done(&r);
}

static void taken_over(void **state)
{
	struct scene *s = *state;
	struct ear *second = ear_open(&s->stage, s->id);

	assert_non_null(strstr(ear_wait(s->ear, HEARD_DOWN, 0)->err.text, "another connection"));
	cube_free(run_text(second, "true"));
	ear_close(s->ear);
	s->ear = second;
}

/* ---- Limits ---- */

static void memory_limit(void **state)
{
	struct scene *s = *state;
	const struct cube_limits limits = {.memory = 1 << 20};
	struct cube_usage usage;
	struct run r;

	expect_end(s, 0, "eat 100M", CUBE_END_EXIT, 0); /* no limit yet */
	assert_int_equal(cube_backend_limit(s->stage.b, s->id, &limits, NULL), 0);
	run_init(&r, s->ear, "eat 600K; echo ok; cat");
	r.start.in = CUBE_STDIN_PIPE;
	run_start(&r);
	ear_wait_output(s->ear, r.start.job, 3);
	assert_int_equal(cube_backend_usage(s->stage.b, s->id, &usage, NULL), 0);
	assert_int_equal(usage.memory, 600 * 1024);
	assert_int_equal(usage.pids, 1);
	assert_int_equal(usage.oom_kills, 0);
	expect_end(s, 0, "eat 600K; echo not reached", CUBE_END_OOM, 137);
	cube_link_eof(s->ear->link, r.start.job);
	run_wait(&r);
	run_done(&r);
	expect_end(s, 0, "eat 600K", CUBE_END_EXIT, 0);
	assert_int_equal(cube_backend_usage(s->stage.b, s->id, &usage, NULL), 0);
	assert_int_equal(usage.oom_kills, 1);
	assert_int_equal(usage.memory, 0);
}

static void process_limit(void **state)
{
	struct scene *s = *state;
	const struct cube_limits limits = {.pids = 2};
	struct run r[3];

	assert_int_equal(cube_backend_limit(s->stage.b, s->id, &limits, NULL), 0);
	for (size_t i = 0; i < CUBE_COUNT(r); i++) {
		run_init(&r[i], s->ear, "hang");
		run_start(&r[i]);
	}
	run_wait(&r[2]);
	assert_int_equal(r[2].ended->end.code, 126);
	assert_non_null(strstr(r[2].ended->err.text, "2 processes"));
	cube_link_kill_all(s->ear->link, SIGKILL);
	for (size_t i = 0; i < CUBE_COUNT(r); i++) {
		if (i < 2)
			run_wait(&r[i]);
		run_done(&r[i]);
	}
	cube_free(run_text(s->ear, "true"));
}

/* ---- Stop ---- */

static void stop_grace(void **state)
{
	struct scene *s = *state;
	uint64_t from = cube_clock_mono();
	struct run polite, deaf;

	run_init(&polite, s->ear, "hang");
	run_init(&deaf, s->ear, "ignore TERM; echo deaf; hang");
	run_start(&polite);
	run_start(&deaf);
	ear_wait_output(s->ear, deaf.start.job, 5);
	assert_int_equal(cube_backend_stop(s->stage.b, s->id, 1, NULL, NULL), 0);
	assert_true(cube_clock_mono() - from >= UINT64_C(900000000));
	run_wait(&polite);
	run_wait(&deaf);
	assert_int_equal(polite.ended->end.code, 143);
	assert_int_equal(deaf.ended->end.code, 137);
	assert_int_equal(deaf.ended->end.how, CUBE_END_KILLED);
	(void)ear_wait(s->ear, HEARD_DOWN, 0);
	run_done(&polite);
	run_done(&deaf);
}

static void *fire_soon(void *arg)
{
	(void)usleep(50000);
	cube_cancel_fire(arg);
	return NULL;
}

/* Half stopped is no state: a cancel cuts the grace short and the stop is done. */
static void stop_cancelled(void **state)
{
	struct scene *s = *state;
	struct cube_cancel *cancel = cube_cancel_new();
	pthread_t thread;
	struct run r;

	run_init(&r, s->ear, "ignore TERM; echo deaf; hang");
	run_start(&r);
	ear_wait_output(s->ear, r.start.job, 5);
	assert_int_equal(pthread_create(&thread, NULL, fire_soon, cancel), 0);
	assert_int_equal(cube_backend_stop(s->stage.b, s->id, 1000, cancel, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(stage_state(&s->stage, s->id), CUBE_IS_STOPPED);
	assert_int_equal(cube_backend_start(s->stage.b, s->id, cancel, NULL), -EINTR);
	assert_int_equal(stage_state(&s->stage, s->id), CUBE_IS_STOPPED);
	run_done(&r);
	cube_cancel_unref(cancel);
}

/* Signals that come in a pause are for the time after it. */
static void killed_in_pause(void **state)
{
	struct scene *s = *state;
	struct run r;

	run_init(&r, s->ear, "hang");
	run_start(&r);
	(void)ear_wait(s->ear, HEARD_STARTED, r.start.job);
	assert_int_equal(cube_backend_pause(s->stage.b, s->id, NULL, NULL), 0);
	cube_link_kill(s->ear->link, r.start.job, SIGTERM);
	assert_null(ear_listen(s->ear, HEARD_ENDED, r.start.job, 100));
	assert_int_equal(cube_backend_resume(s->stage.b, s->id, NULL, NULL), 0);
	run_wait(&r);
	assert_int_equal(r.ended->end.code, 143);
	run_done(&r);
}

/* A fresh instance starts with nothing: what an earlier one left is swept away. */
static void left_overs(void **state)
{
	struct scene *s = *state;
	struct cube_backend *second = NULL;
	struct cube_info info;
	char *id = s->id;
	char path[128];

	ear_close(s->ear);
	(void)snprintf(path, sizeof(path), "%s/mem-00/root", s->stage.dir);
	assert_int_equal(cube_file_mkdir_path(path, 0755), 0);
	assert_int_equal(cube_backend_open(cube_backend_find("mem"), &s->stage.env, &second, NULL), 0);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_equal(cube_backend_inspect(second, id, &info, NULL), -ENOENT);
	cube_backend_close(second);
	cube_free(s->id);
	s->id = stage_create(&s->stage, NULL);
	s->ear = ear_open(&s->stage, s->id);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH(output_words),       WITH(usage_errors), WITH(shell_words),    WITH(file_words),
		WITH(hostile_files),      WITH(own_ends),     WITH(session_ends),   WITH(stops_itself),
		WITH(dropped_connection), WITH(crashed),      WITH(taken_over),     WITH(memory_limit),
		WITH(process_limit),      WITH(stop_grace),   WITH(stop_cancelled), WITH(killed_in_pause),
		WITH(left_overs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
