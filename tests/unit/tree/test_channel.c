/* SPDX-License-Identifier: Apache-2.0 */
/* Channels: conversations with exec, exit, output, logs and events, clone; polling. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
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

static void check_conversation(void **state)
{
	struct cube_handle *h, *other;

	(void)state;
	assert_int_equal(rig_open("dev/exec", O_RDWR, &h), 0);
	assert_int_equal(rig_open("dev/exec", O_RDWR, &other), 0);
	assert_string_equal(rig_read(&call, h, 0), ""); /* no command ever: the end at once */
	assert_int_equal(rig_write(h, "echo mi"), 7);
	assert_int_equal(rig_flush(h), 0); /* a copy was closed: nothing runs */
	assert_int_equal(rig_write(h, "ne\n"), 3);
	assert_int_equal(rig_write(other, "echo other\n"), 11);
	assert_string_equal(rig_read(&call, h, 77), "mine\n"); /* offsets mean nothing */
	assert_string_equal(rig_read(&call, other, 0), "other\n");
	assert_string_equal(rig_read(&call, h, 0), "");
	assert_string_equal(rig_read(&call, h, 0), "");
	assert_int_equal(rig_write(h, "echo again\n"), 11);
	assert_string_equal(rig_read(&call, h, 0), "again\n");
	assert_string_equal(rig_read(&call, h, 0), "");
	rig_release(h);
	/* Without writing: the latest, from its first byte. */
	assert_int_equal(rig_open("dev/exec", O_RDWR, &h), 0);
	assert_string_equal(rig_read(&call, h, 0), "again\n");
	assert_string_equal(rig_read(&call, h, 0), "");
	rig_release(h);
	rig_release(other);
}

/* Pieces smaller than what comes at once are kept in order. */
static void check_small_reads(void **state)
{
	char got[16] = "";
	struct cube_handle *h;

	(void)state;
	assert_int_equal(rig_open("dev/exec", O_RDWR, &h), 0);
	assert_int_equal(rig_write(h, "echo abcdefg\n"), 13);
	for (int i = 0; i < 8; i++) {
		rig_fill(&call, CUBE_REQ_READ, 0);
		call.r.handle = h;
		call.r.size = 1;
		assert_int_equal(rig_run(&call), 1);
		got[i] = call.out[0];
	}
	assert_string_equal(got, "abcdefg\n");
	assert_string_equal(rig_read(&call, h, 0), "");
	rig_release(h);
}

static void start_read(struct rig_call *c, struct cube_handle *h, unsigned flags)
{
	rig_fill(c, CUBE_REQ_READ, 0);
	c->r.handle = h;
	c->r.size = 100;
	c->r.flags = flags;
	rig_start(c);
}

/* An interrupted read is only that: the next goes on where it was. */
static void check_interrupted_read(void **state)
{
	struct cube_handle *h;

	(void)state;
	assert_int_equal(rig_open("dev/exec", O_RDWR, &h), 0);
	assert_int_equal(rig_write(h, "await read; echo on\n"), 20);
	start_read(&call, h, O_NONBLOCK);
	assert_int_equal(rig_end(&call), -EAGAIN);
	start_read(&call, h, 0);
	assert_false(rig_over(&call));
	cube_tree_cancel(rig.tree, call.r.key);
	assert_int_equal(rig_end(&call), -EINTR);
	rig_go("dev", "read");
	assert_string_equal(rig_read(&call, h, 0), "on\n");
	assert_string_equal(rig_read(&call, h, 0), "");
	rig_release(h);
	assert_string_equal(rig_cat("dev/exit"), "0\n");
}

static void check_last_close_interrupts(void **state)
{
	struct cube_handle *h, *x;

	(void)state;
	assert_int_equal(rig_open("dev/exec", O_RDWR, &h), 0);
	assert_int_equal(rig_write(h, "hang\n"), 5);
	start_read(&call, h, O_NONBLOCK);
	assert_int_equal(rig_end(&call), -EAGAIN);
	assert_string_equal(rig_cat("dev/exit"), "-\n");
	rig_release(h);
	assert_int_equal(rig_open("dev/exit", O_RDWR, &x), 0);
	assert_string_equal(rig_read(&call, x, 0), "130\n");
	assert_string_equal(rig_read(&call, x, 0), "");
	rig_release(x);
}

static void check_jobs(void **state)
{
	struct cube_handle *out, *plain, *x;

	(void)state;
	assert_int_equal(rig_on(CUBE_REQ_MKDIR, "dev/jobs", "j"), 0);
	assert_int_equal(rig_open("dev/jobs/j/exit", O_RDWR, &x), 0);
	assert_int_equal(rig_echo("echo one; err two; await three; echo three", "dev/jobs/j/cmd"), 0);
	assert_int_equal(rig_open("dev/jobs/j/cmd", O_WRONLY, &out), -EBUSY);
	assert_int_equal(rig_open("dev/jobs/j/argv", O_WRONLY, &out), -EBUSY);
	assert_int_equal(rig_open("dev/jobs/j/stdout", O_RDWR, &out), 0);
	assert_int_equal(rig_open("dev/jobs/j/output", O_RDONLY, &plain), 0);
	assert_string_equal(rig_read(&call, out, 0), "one\n");
	rig_go("dev", "three");
	assert_string_equal(rig_read(&call, out, 0), "three\n");
	assert_string_equal(rig_read(&call, out, 0), "");
	assert_string_equal(rig_read(&call, x, 0), "0\n");
	assert_string_equal(rig_read(&call, plain, 4), "two\nthree\n"); /* a plain reader sees it grow */
	assert_string_equal(rig_read(&call, plain, 4), "two\nthree\n");
	assert_string_equal(rig_cat("dev/jobs/j/stderr"), "two\n");
	assert_string_equal(rig_cat("dev/jobs/j/cmd"), "echo one; err two; await three; echo three\n");
	rig_release(out);
	rig_release(plain);
	rig_release(x);
	assert_int_equal(rig_on(CUBE_REQ_RMDIR, "dev/jobs", "j"), 0);
	assert_int_equal(rig_lookup("dev/jobs/j"), -ENOENT);
}

static void check_stdin(void **state)
{
	struct cube_handle *in, *x;

	(void)state;
	assert_int_equal(rig_on(CUBE_REQ_MKDIR, "dev/jobs", "in"), 0);
	assert_int_equal(rig_open("dev/jobs/in/stdin", O_WRONLY, &in), 0);
	assert_int_equal(rig_write(in, "before "), 7);
	assert_int_equal(rig_echo("cat", "dev/jobs/in/cmd"), 0);
	assert_int_equal(rig_write(in, "after"), 5);
	rig_release(in);
	assert_int_equal(rig_open("dev/jobs/in/exit", O_RDWR, &x), 0);
	assert_string_equal(rig_read(&call, x, 0), "0\n");
	rig_release(x);
	assert_string_equal(rig_cat("dev/jobs/in/output"), "before after");
	assert_string_equal(rig_cat("dev/jobs/in/stdin"), "");
	assert_int_equal(rig_open("dev/jobs/in/stdin", O_WRONLY, &in), -EPIPE);
	assert_int_equal(rig_open("dev/jobs/in/stdin", O_RDWR, &in), -EACCES);
}

/* A job that got no command is forgotten with the channel that made it. */
static void check_clone(void **state)
{
	struct cube_handle *h;
	char path[64];

	(void)state;
	assert_int_equal(rig_open("dev/jobs/clone", O_RDWR, &h), 0);
	rig_read(&call, h, 0);
	call.out[strcspn(call.out, "\n")] = '\0';
	(void)snprintf(path, sizeof(path), "dev/jobs/%.40s", call.out);
	assert_int_equal(rig_lookup(path), 0);
	assert_string_equal(rig_read(&call, h, 0), "");
	assert_int_equal(rig_write(h, "x"), -EPERM);
	rig_release(h);
	assert_int_equal(rig_lookup(path), -ENOENT);
	assert_int_equal(rig_open("clone", O_RDONLY, &h), 0); /* plain: makes nothing */
	assert_true(rig_read(&call, h, 0)[0] != '\0');
	rig_release(h);
	assert_string_equal(rig_ls(""), ". .. README ctl list clone events error backends volumes dev ");
	assert_int_equal(rig_open("clone", O_RDWR, &h), 0);
	rig_read(&call, h, 0);
	call.out[strcspn(call.out, "\n")] = '\0';
	(void)snprintf(path, sizeof(path), "%.40s", call.out);
	rig_release(h);
	assert_int_equal(rig_lookup(path), 0);
	assert_int_equal(rig_on(CUBE_REQ_RMDIR, "", path), 0);
}

/* A channel that has written `hold`: the sandbox goes with it. */
static void check_hold(void **state)
{
	struct cube_handle *h, *g;
	char path[64];

	(void)state;
	assert_int_equal(rig_open("clone", O_RDWR, &h), 0);
	rig_read(&call, h, 0);
	call.out[strcspn(call.out, "\n")] = '\0';
	(void)snprintf(path, sizeof(path), "%.40s", call.out);
	assert_int_equal(rig_write(h, "held\n"), -EINVAL);
	assert_int_equal(rig_write(h, "hold it\n"), -EINVAL);
	assert_int_equal(rig_write(h, "'hold\n"), -EINVAL);
	assert_int_equal(rig_write(h, "\n"), 1);
	assert_int_equal(rig_write(h, "ho"), 2); /* in pieces */
	assert_int_equal(rig_write(h, "ld\n"), 3);
	assert_int_equal(rig_flush(h), 0); /* a copy is closed: others may be there */
	assert_int_equal(rig_lookup(path), 0);
	rig_release(h);
	assert_int_equal(rig_lookup(path), -ENOENT);
	/* Two of them, by its ctl; and by another name. */
	rig_cube("held");
	assert_int_equal(rig_echo("hold", "held/ctl"), -EINVAL); /* no channel */
	assert_int_equal(rig_open("held/ctl", O_RDWR, &h), 0);
	assert_int_equal(rig_open("held/ctl", O_RDWR, &g), 0);
	assert_int_equal(rig_write(h, "hold\nhold\n"), 10);
	assert_string_equal(rig_read(&call, h, 0), "ok\nok\n");
	assert_int_equal(rig_write(g, "hold\n"), 5);
	rig_release(h);
	assert_int_equal(rig_echo("rename held kept", "ctl"), 0);
	assert_int_equal(rig_lookup("kept"), 0);
	rig_release(g);
	assert_int_equal(rig_lookup("kept"), -ENOENT);
	/* An unfinished line is run when it is asked for. */
	assert_int_equal(rig_open("clone", O_RDWR, &h), 0);
	assert_int_equal(rig_write(h, "hold"), 4);
	rig_read(&call, h, 0);
	call.out[strcspn(call.out, "\n")] = '\0';
	(void)snprintf(path, sizeof(path), "%.40s", call.out);
	rig_release(h);
	assert_int_equal(rig_lookup(path), -ENOENT);
}

static void check_rings(void **state)
{
	struct cube_handle *logs, *events;

	(void)state;
	rig_cube("quiet"); /* nothing of an earlier test is still on its way into its log */
	assert_int_equal(rig_open("quiet/logs", O_RDWR, &logs), 0);
	assert_int_equal(rig_open("events", O_RDWR, &events), 0);
	start_read(&call, logs, O_NONBLOCK);
	assert_int_equal(rig_end(&call), -EAGAIN);
	assert_int_equal(rig_write(logs, "x"), -EPERM);
	start_read(&call, logs, 0);
	assert_false(rig_over(&call));
	assert_int_equal(rig_echo("echo said", "quiet/exec"), 0);
	assert_true(rig_end(&call) > 0);
	assert_non_null(strstr(call.out, " in echo said"));
	assert_non_null(strstr(rig_read(&call, events, 0), "\"event\":\"job.started\""));
	assert_non_null(strstr(rig_cat("quiet/logs"), " out said"));
	assert_non_null(strstr(rig_cat("events"), "\"event\":\"created\""));
	rig_release(logs);
	rig_release(events);
	rig_gone("quiet");
}

/* ---- polling ---- */

struct polled {
	struct cube_poller p;
	atomic_int told, dropped;
};

static void polled_done(struct cube_poller *p)
{
	struct polled *x = cube_container_of(p, struct polled, p);

	(void)atomic_fetch_add(p->news ? &x->told : &x->dropped, 1);
}

static int poll_once(struct cube_handle *h, struct polled *x)
{
	rig_fill(&call, CUBE_REQ_POLL, 0);
	call.r.handle = h;
	call.r.flags = POLLIN;
	if (x != NULL) {
		x->p.fn = polled_done;
		call.r.poller = &x->p;
	}
	return rig_run(&call);
}

/* Who polls is told by whoever brought the news, beside the answer to who reads. */
static int polled_in_time(struct polled *x)
{
	for (int i = 0; i < 10000 && atomic_load(&x->told) + atomic_load(&x->dropped) == 0; i++)
		(void)usleep(1000);
	return atomic_load(&x->told) + atomic_load(&x->dropped);
}

static void check_polling(void **state)
{
	static struct polled first, second;
	struct cube_handle *h;

	(void)state;
	assert_int_equal(rig_open("dev/status", O_RDONLY, &h), 0);
	assert_true(poll_once(h, NULL) & POLLIN);
	rig_release(h);
	assert_int_equal(rig_open("dev/exec", O_RDWR, &h), 0);
	assert_int_equal(rig_write(h, "await poll; echo polled\n"), 24);
	assert_false(poll_once(h, &first) & POLLIN); /* starts it: who polls is about to read */
	assert_false(poll_once(h, &second) & POLLIN);
	/* One a file: the newest. It may have been told of the start, which is news too. */
	assert_int_equal(polled_in_time(&first), 1);
	rig_go("dev", "poll");
	assert_string_equal(rig_read(&call, h, 0), "polled\n");
	assert_int_equal(polled_in_time(&second), 1);
	assert_int_equal(atomic_load(&second.told), 1);
	assert_string_equal(rig_read(&call, h, 0), "");
	assert_true(poll_once(h, NULL) & POLLIN); /* the end can be read */
	rig_release(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_conversation),
		cmocka_unit_test(check_small_reads),
		cmocka_unit_test(check_interrupted_read),
		cmocka_unit_test(check_last_close_interrupts),
		cmocka_unit_test(check_jobs),
		cmocka_unit_test(check_stdin),
		cmocka_unit_test(check_clone),
		cmocka_unit_test(check_hold),
		cmocka_unit_test(check_rings),
		cmocka_unit_test(check_polling),
	};

	return cmocka_run_group_tests(tests, up, rig_down);
}
