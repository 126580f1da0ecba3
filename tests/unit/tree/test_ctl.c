/* SPDX-License-Identifier: Apache-2.0 */
/* ctl: lines, pieces of lines, failures in the middle, waiting verbs, answers; env and its kin. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/tree/rig.h"

static int up(void **state)
{
	int code = rig_up(state);

	rig_cube("dev");
	return code;
}

static struct rig_call call;

static void check_lines(void **state)
{
	struct cube_handle *h;

	(void)state;
	assert_int_equal(rig_open("ctl", O_WRONLY, &h), 0);
	/* Pieces: a verb runs at its newline. */
	assert_int_equal(rig_write(h, "create "), 7);
	assert_int_equal(rig_write(h, "a\ncreate b\ncre"), 14);
	assert_int_equal(rig_lookup("a"), 0);
	assert_int_equal(rig_lookup("b"), 0);
	assert_int_equal(rig_write(h, "ate c"), 5);
	assert_int_equal(rig_lookup("c"), -ENOENT);
	assert_int_equal(rig_flush(h), 0); /* an unfinished one at the close */
	assert_int_equal(rig_lookup("c"), 0);
	assert_int_equal(rig_flush(h), 0);
	rig_release(h);
	rig_gone("a b c");
}

/* The third of four fails: what was done is counted, the rest is not done, the errno comes with the next
 * write. */
static void check_failure_in_the_middle(void **state)
{
	struct cube_handle *h;

	(void)state;
	assert_int_equal(rig_open("ctl", O_WRONLY, &h), 0);
	assert_int_equal(rig_write(h, "create a\ncreate b\ncreate a\ncreate d\n"), 18);
	assert_int_equal(rig_write(h, "create a\ncreate d\n"), -EEXIST);
	assert_int_equal(rig_write(h, "create a\ncreate d\n"), -EEXIST); /* some write it twice */
	assert_int_equal(rig_lookup("b"), 0);
	assert_int_equal(rig_lookup("d"), -ENOENT);
	assert_int_equal(rig_write(h, "create d\n"), 9); /* what failed is forgotten */
	assert_int_equal(rig_lookup("d"), 0);
	rig_release(h);
	rig_gone("a b d");
}

static void check_waiting_verb(void **state)
{
	static struct rig_call other;
	struct cube_handle *h, *g;

	(void)state;
	assert_int_equal(rig_open("dev/ctl", O_WRONLY, &h), 0);
	rig_fill(&call, CUBE_REQ_WRITE, 0);
	call.r.handle = h;
	call.r.data = "wait stopped\nset command_timeout=7\n";
	call.r.size = strlen(call.r.data);
	rig_start(&call);
	assert_false(rig_over(&call));
	/* Others pass it. */
	assert_int_equal(rig_open("dev/ctl", O_WRONLY, &g), 0);
	assert_int_equal(rig_write(g, "set command_timeout=5\n"), 22);
	rig_fill(&other, CUBE_REQ_WRITE, 0);
	other.r.handle = g;
	other.r.data = "wait stopped";
	other.r.size = strlen(other.r.data);
	assert_int_equal(rig_run(&other), 12);
	/* Interrupted in a close: only that one. */
	rig_fill(&other, CUBE_REQ_FLUSH, 0);
	other.r.handle = g;
	rig_start(&other);
	assert_false(rig_over(&other));
	cube_tree_cancel(rig.tree, other.r.key);
	assert_int_equal(rig_end(&other), -EINTR);
	rig_release(g);
	assert_false(rig_over(&call));
	assert_int_equal(rig_echo("stop", "dev/ctl"), 0);
	assert_int_equal(rig_end(&call), 35);
	rig_release(h);
	assert_int_equal(rig_echo("start", "dev/ctl"), 0);
}

/* Called off with one line behind it: what was done is said. */
static void check_called_off_in_the_middle(void **state)
{
	struct cube_handle *h;

	(void)state;
	assert_int_equal(rig_open("dev/ctl", O_WRONLY, &h), 0);
	rig_fill(&call, CUBE_REQ_WRITE, 0);
	call.r.handle = h;
	call.r.data = "set command_timeout=0\nwait stopped\nstop\n";
	call.r.size = strlen(call.r.data);
	rig_start(&call);
	assert_false(rig_over(&call));
	cube_tree_cancel(rig.tree, call.r.key);
	assert_int_equal(rig_end(&call), 22);
	rig_release(h);
	assert_non_null(strstr(rig_cat("dev/status"), "state running"));
}

static void check_answers(void **state)
{
	static struct rig_call reader;
	struct cube_handle *h;

	(void)state;
	assert_int_equal(rig_open("dev/ctl", O_RDWR, &h), 0);
	assert_string_equal(rig_read(&call, h, 0), ""); /* never waits without a verb */
	assert_int_equal(rig_write(h, "set command_timeout=0\n"), 22);
	assert_int_equal(rig_write(h, "nonsense\n"), -EINVAL);
	rig_read(&call, h, 0);
	assert_memory_equal(call.out, "ok\nEINVAL ", 10);
	assert_non_null(strstr(call.out, "nonsense"));
	assert_string_equal(rig_read(&call, h, 0), "");
	/* A read beside a verb that waits gets its answer. */
	rig_fill(&call, CUBE_REQ_WRITE, 0);
	call.r.handle = h;
	call.r.data = "wait stopped 1\n";
	call.r.size = strlen(call.r.data);
	rig_start(&call);
	rig_fill(&reader, CUBE_REQ_READ, 0);
	reader.r.handle = h;
	reader.r.size = 1000;
	rig_start(&reader);
	assert_false(rig_over(&reader));
	assert_int_equal(rig_end(&call), -ETIMEDOUT);
	assert_true(rig_end(&reader) > 0);
	assert_memory_equal(reader.out, "ETIMEDOUT ", 10);
	/* An unfinished line runs when its answer is asked for. */
	assert_int_equal(rig_write(h, "set command_timeout=1"), 21);
	assert_int_equal(rig_flush(h), 0);
	assert_string_equal(rig_read(&call, h, 0), "ok\n");
	rig_release(h);
	assert_int_equal(rig_echo("set command_timeout=0", "dev/ctl"), 0);
}

/* A killed writer's half line is not run. */
static void check_killed(void **state)
{
	pid_t writer = rig_person();
	struct cube_handle *h;

	(void)state;
	assert_int_equal(rig_open_by(writer, "dev/ctl", O_WRONLY, &h), 0);
	assert_int_equal(rig_write(h, "stop"), 4);
	rig_person_end(writer, SIGKILL);
	assert_int_equal(rig_flush_by(writer, h), 0);
	rig_release(h);
	rig_person_bury(writer);
	assert_non_null(strstr(rig_cat("dev/status"), "state running"));
}

static void check_env(void **state)
{
	struct cube_handle *h;

	(void)state;
	assert_int_equal(rig_echo("A=1", "dev/env"), 0);
	assert_string_equal(rig_cat("dev/env"), "A=1\n");
	/* Added lines, in force at the close. */
	assert_int_equal(rig_open("dev/env", O_WRONLY | O_APPEND, &h), 0);
	assert_int_equal(rig_write(h, "B=2\n"), 4);
	assert_string_equal(rig_cat("dev/env"), "A=1\n");
	assert_int_equal(rig_flush(h), 0);
	assert_string_equal(rig_cat("dev/env"), "A=1\nB=2\n");
	rig_release(h);
	/* All of it or none; refused at the write. */
	assert_int_equal(rig_open("dev/env", O_WRONLY | O_TRUNC, &h), 0);
	assert_int_equal(rig_write(h, "C=3\n"), 4);
	assert_int_equal(rig_write(h, "no equals sign\n"), -EINVAL);
	assert_int_equal(rig_flush(h), 0);
	rig_release(h);
	assert_string_equal(rig_cat("dev/env"), "A=1\nB=2\n");
	/* In the middle, as a program writes that has it open for both. */
	assert_int_equal(rig_open("dev/env", O_RDWR, &h), 0);
	assert_string_equal(rig_read(&call, h, 0), "A=1\nB=2\n");
	rig_fill(&call, CUBE_REQ_WRITE, 0);
	call.r.handle = h;
	call.r.data = "7";
	call.r.size = 1;
	call.r.offset = 2;
	assert_int_equal(rig_run(&call), 1);
	assert_int_equal(rig_flush(h), 0);
	rig_release(h);
	assert_string_equal(rig_cat("dev/env"), "A=7\nB=2\n");
	/* Nothing is a new whole too. */
	assert_int_equal(rig_open("dev/env", O_WRONLY | O_TRUNC, &h), 0);
	assert_int_equal(rig_flush(h), 0);
	assert_string_equal(rig_cat("dev/env"), "A=7\nB=2\n");
	assert_int_equal(rig_flush(h), 0);
	assert_string_equal(rig_cat("dev/env"), "");
	rig_release(h);
}

static void check_cwd_and_user(void **state)
{
	struct cube_handle *h;

	(void)state;
	assert_int_equal(rig_on(CUBE_REQ_MKDIR, "dev/sessions", "s"), 0);
	assert_int_equal(rig_echo("relative", "dev/sessions/s/cwd"), -EINVAL);
	assert_int_equal(rig_echo("/tmp", "dev/sessions/s/cwd"), 0);
	assert_int_equal(rig_echo("nobody", "dev/sessions/s/user"), 0);
	assert_int_equal(rig_echo("pwd; id -u", "dev/sessions/s/exec"), 0);
	assert_string_equal(rig_cat("dev/sessions/s/exec"), "/tmp\n65534\n");
	assert_int_equal(rig_open("dev/sessions/s/user", O_WRONLY, &h), -EBUSY);
	assert_int_equal(rig_on(CUBE_REQ_MKDIR, "dev/jobs", "j"), 0);
	assert_int_equal(rig_echo("/usr", "dev/jobs/j/cwd"), 0);
	assert_int_equal(rig_echo("X=here", "dev/jobs/j/env"), 0);
	assert_int_equal(rig_echo("pwd; echo $X", "dev/jobs/j/cmd"), 0);
	assert_int_equal(rig_open("dev/jobs/j/exit", O_RDWR, &h), 0);
	assert_string_equal(rig_read(&call, h, 0), "0\n");
	rig_release(h);
	assert_string_equal(rig_cat("dev/jobs/j/output"), "/usr\nhere\n");
	assert_int_equal(rig_open("dev/jobs/j/cwd", O_WRONLY, &h), -EBUSY);
	assert_int_equal(rig_on(CUBE_REQ_RMDIR, "dev/sessions", "s"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_lines),        cmocka_unit_test(check_failure_in_the_middle),
		cmocka_unit_test(check_waiting_verb), cmocka_unit_test(check_called_off_in_the_middle),
		cmocka_unit_test(check_answers),      cmocka_unit_test(check_killed),
		cmocka_unit_test(check_env),          cmocka_unit_test(check_cwd_and_user),
	};

	return cmocka_run_group_tests(tests, up, rig_down);
}
