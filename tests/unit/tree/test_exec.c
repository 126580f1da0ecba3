/* SPDX-License-Identifier: Apache-2.0 */
/* exec: whose close runs the text, what becomes of killed and exiting writers, of interrupts. */
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

static void check_echo(void **state)
{
	(void)state;
	assert_string_equal(rig_cat("dev/exec"), "");
	assert_string_equal(rig_cat("dev/exit"), "-\n");
	assert_int_equal(rig_echo("echo one two", "dev/exec"), 0);
	assert_string_equal(rig_cat("dev/exec"), "one two\n");
	assert_string_equal(rig_cat("dev/exit"), "0\n");
	assert_int_equal(rig_echo("exit 3", "dev/exec"), 0);
	assert_string_equal(rig_cat("dev/exit"), "3\n");
	assert_string_equal(rig_cat("dev/exec"), "");
}

static void check_pieces_are_one_command(void **state)
{
	struct cube_handle *h;

	(void)state;
	assert_int_equal(rig_open("dev/exec", O_WRONLY, &h), 0);
	assert_int_equal(rig_write(h, "echo a"), 6);
	assert_int_equal(rig_write(h, "b\necho "), 7);
	assert_int_equal(rig_write(h, "c"), 1);
	assert_string_equal(rig_cat("dev/exec"), ""); /* of the command before */
	assert_int_equal(rig_flush(h), 0);
	assert_string_equal(rig_cat("dev/exec"), "ab\nc\n");
	assert_int_equal(rig_flush(h), 0); /* with nothing collected: nothing */
	rig_release(h);
	assert_string_equal(rig_cat("dev/exit"), "0\n");
}

/* { echo a; child; echo b; } > exec: the child's close is none. */
static void check_children(void **state)
{
	pid_t child = rig_person();
	struct cube_handle *h;

	(void)state;
	assert_int_equal(rig_open("dev/exec", O_WRONLY, &h), 0);
	assert_int_equal(rig_write(h, "echo a\n"), 7);
	assert_int_equal(rig_flush_by(child, h), 0);
	assert_int_equal(rig_write(h, "echo b\n"), 7);
	assert_int_equal(rig_flush(h), 0);
	rig_release(h);
	assert_string_equal(rig_cat("dev/exec"), "a\nb\n");
	rig_person_end(child, SIGKILL);
	rig_person_bury(child);
}

/* The opener went, its child has the descriptor yet: the last close runs it. */
static void check_release_runs_the_rest(void **state)
{
	static struct rig_call c;
	pid_t opener = rig_person();
	struct cube_handle *h, *x;

	(void)state;
	assert_int_equal(rig_open_by(opener, "dev/exec", O_WRONLY, &h), 0);
	assert_int_equal(rig_write(h, "echo left"), 9);
	assert_int_equal(rig_flush(h), 0);
	rig_release(h);
	assert_int_equal(rig_open("dev/exit", O_RDWR, &x), 0);
	assert_string_equal(rig_read(&c, x, 0), "0\n");
	rig_release(x);
	assert_string_equal(rig_cat("dev/exec"), "left\n");
	rig_person_end(opener, SIGKILL);
	rig_person_bury(opener);
}

static void check_killed_writer(void **state)
{
	pid_t writer = rig_person();
	struct cube_handle *h;

	(void)state;
	assert_int_equal(rig_echo("echo before", "dev/exec"), 0);
	assert_int_equal(rig_open_by(writer, "dev/exec", O_WRONLY, &h), 0);
	assert_int_equal(rig_write(h, "echo half"), 9);
	rig_person_end(writer, SIGKILL);
	assert_int_equal(rig_flush_by(writer, h), 0);
	rig_release(h);
	rig_person_bury(writer);
	assert_string_equal(rig_cat("dev/exec"), "before\n");
	assert_non_null(
		strstr(rig_cat("dev/error"), "the writer was killed before it closed 'exec' (signal 9)"));
}

static void check_exiting_writer(void **state)
{
	static struct rig_call c;
	pid_t writer = rig_person();
	struct cube_handle *h;

	(void)state;
	assert_int_equal(rig_echo("set exit_patience=1", "ctl"), 0);
	assert_int_equal(rig_open_by(writer, "dev/exec", O_WRONLY, &h), 0);
	assert_int_equal(rig_write(h, "echo on; await off; echo off"), 28);
	rig_person_end(writer, 0);
	/* It exits by itself, so its text is run and it waits, but not for ever. */
	rig_fill(&c, CUBE_REQ_FLUSH, 0);
	c.r.handle = h;
	c.r.caller.pid = writer;
	rig_start(&c);
	assert_false(rig_over(&c));
	assert_int_equal(rig_end(&c), 0);
	assert_string_equal(rig_cat("dev/exit"), "-\n");
	assert_non_null(strstr(rig_cat("dev/error"), "was let go"));
	rig_release(h);
	rig_person_bury(writer);
	rig_go("dev", "off");
	assert_int_equal(rig_echo("echo next", "dev/exec"), 0); /* waits for its turn */
	assert_string_equal(rig_cat("dev/exec"), "next\n");
}

static void check_interrupt(void **state)
{
	static struct rig_call c;
	struct cube_handle *h;
	bool lasting = false;
	pid_t pid = 0;

	(void)state;
	assert_int_equal(rig_open("dev/exec", O_WRONLY, &h), 0);
	assert_int_equal(rig_write(h, "hang"), 4);
	rig_fill(&c, CUBE_REQ_FLUSH, 0);
	c.r.handle = h;
	rig_start(&c);
	assert_false(rig_over(&c));
	assert_true(cube_tree_waiting(rig.tree, c.r.key, &pid, &lasting));
	assert_int_equal(pid, getpid());
	assert_true(lasting);
	cube_tree_cancel(rig.tree, c.r.key);
	assert_int_equal(rig_end(&c), -EINTR);
	assert_false(cube_tree_waiting(rig.tree, c.r.key, &pid, &lasting));
	rig_release(h);
	assert_int_equal(rig_echo("echo lives", "dev/exec"), 0); /* the session survives */
	assert_string_equal(rig_cat("dev/exec"), "lives\n");
}

static void check_patience(void **state)
{
	(void)state;
	assert_int_equal(rig_echo("set patience=1", "dev/sessions/main/ctl"), 0);
	assert_int_equal(rig_echo("await late; echo late", "dev/exec"), 0);
	assert_string_equal(rig_cat("dev/exit"), "-\n");
	assert_int_equal(rig_echo("set patience=0", "dev/sessions/main/ctl"), 0);
	rig_go("dev", "late");
	assert_int_equal(rig_echo("echo after", "dev/exec"), 0);
	assert_string_equal(rig_cat("dev/exec"), "after\n");
}

static void check_too_much(void **state)
{
	char *big = calloc(1, (4u << 20) + 2);
	struct cube_handle *h;

	(void)state;
	memset(big, ' ', (4u << 20) + 1);
	memcpy(big, "echo big", 8);
	assert_int_equal(rig_open("dev/exec", O_WRONLY, &h), 0);
	assert_int_equal(rig_write(h, big), -EFBIG);
	big[4u << 20] = '\0';
	assert_int_equal(rig_write(h, big), 4 << 20);
	assert_int_equal(rig_write(h, "x"), -EFBIG);
	assert_int_equal(rig_flush(h), 0);
	rig_release(h);
	free(big);
	assert_string_equal(rig_cat("dev/exec"), "big\n");
	assert_int_equal(rig_open("dev/exec", O_WRONLY, &h), 0);
	{
		static struct rig_call c;

		rig_fill(&c, CUBE_REQ_WRITE, 0);
		c.r.handle = h;
		c.r.data = "a\0b";
		c.r.size = 3;
		assert_int_equal(rig_run(&c), -EINVAL);
	}
	rig_release(h);
}

/* What cannot run refuses the open. */
static void check_stopped(void **state)
{
	struct cube_handle *h;

	(void)state;
	assert_int_equal(rig_echo("stop", "dev/ctl"), 0);
	assert_int_equal(rig_open("dev/exec", O_WRONLY, &h), -EHOSTDOWN);
	assert_int_equal(rig_open("dev/exec", O_RDWR, &h), -EHOSTDOWN);
	assert_string_equal(rig_cat("dev/exec"), "big\n");
	assert_int_equal(rig_on(CUBE_REQ_MKDIR, "dev/sessions", "x"), -EHOSTDOWN);
	assert_int_equal(rig_echo("start", "dev/ctl"), 0);
	assert_int_equal(rig_echo("echo again", "dev/exec"), 0);
	assert_string_equal(rig_cat("dev/exec"), "again\n");
}

/* mkdir returns at once; to write to exec waits until it runs. */
static void check_creating(void **state)
{
	(void)state;
	assert_int_equal(rig_on(CUBE_REQ_MKDIR, "", "fresh"), 0);
	assert_int_equal(rig_echo("echo ready", "fresh/exec"), 0);
	assert_string_equal(rig_cat("fresh/exec"), "ready\n");
	assert_int_equal(rig_on(CUBE_REQ_RMDIR, "", "fresh"), 0);
	assert_int_equal(rig_lookup("fresh"), -ENOENT);
}

/* A writer that waits when its sandbox goes is told. */
static void check_removed_under_it(void **state)
{
	static struct rig_call c;
	struct cube_handle *h, *r;

	(void)state;
	rig_cube("doomed");
	assert_int_equal(rig_open("doomed/exec", O_WRONLY, &h), 0);
	assert_int_equal(rig_open("doomed/exec", O_RDONLY, &r), 0);
	assert_int_equal(rig_write(h, "hang"), 4);
	rig_fill(&c, CUBE_REQ_FLUSH, 0);
	c.r.handle = h;
	rig_start(&c);
	assert_int_equal(rig_on(CUBE_REQ_RMDIR, "", "doomed"), 0);
	(void)rig_end(&c);
	rig_release(h);
	rig_release(r);
	assert_int_equal(rig_lookup("doomed"), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_echo),          cmocka_unit_test(check_pieces_are_one_command),
		cmocka_unit_test(check_children),      cmocka_unit_test(check_release_runs_the_rest),
		cmocka_unit_test(check_killed_writer), cmocka_unit_test(check_exiting_writer),
		cmocka_unit_test(check_interrupt),     cmocka_unit_test(check_patience),
		cmocka_unit_test(check_too_much),      cmocka_unit_test(check_stopped),
		cmocka_unit_test(check_creating),      cmocka_unit_test(check_removed_under_it),
	};

	return cmocka_run_group_tests(tests, up, rig_down);
}
