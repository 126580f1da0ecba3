/* SPDX-License-Identifier: Apache-2.0 */
/* cube-init: output and input: every byte, in order, however fast or slow; terminals; what outlives its
 * command. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/spool.h"
#include "tests/unit/agent/rig.h"

/* The last byte before a fast exit is there, every time. */
static void fast_exits(struct rig *r)
{
	char expected[32];

	for (int i = 0; i < 60; i++) {
		char text[64];

		(void)snprintf(text, sizeof(text), "printf '%d.'; exit %d", i, i);
		(void)snprintf(expected, sizeof(expected), "%d.", i);
		rig_expect(r, rig_do(r, &(struct rig_run){.text = text, .session = i % 2}), expected,
			   CUBE_END_EXIT, i);
	}
}

static void test_fast_exits(void **state)
{
	(void)state;
	rig_each(fast_exits);
}

/* 48 MiB of numbered lines: none missing, none twice. */
static void big(struct rig *r, uint64_t session)
{
	uint64_t id = rig_do(r, &(struct rig_run){.text = "seq -f '%015.0f' 3000000", .session = session});
	size_t len;
	char *out = rig_output(r, id, &len);

	rig_expect(r, id, NULL, CUBE_END_EXIT, 0);
	assert_int_equal(len, 3000000 * 16);
	for (unsigned i = 0; i < 3000000; i += 997) {
		char line[24];

		(void)snprintf(line, sizeof(line), "%015u\n", i + 1);
		assert_memory_equal(out + (size_t)i * 16, line, 16);
	}
	free(out);
}

static void test_big(void **state)
{
	struct rig *r = rig_new(NULL, false, false);

	(void)state;
	big(r, 0);
	big(r, 1);
	rig_free(r);
	r = rig_new(NULL, true, false);
	big(r, 0);
	rig_free(r);
}

static char *view(struct rig *r, uint64_t id, enum cube_stream stream)
{
	const struct rig_job *job = rig_job(r, id);
	struct cube_spool_view v = {
		.out_fd = job->out_fd,
		.order_fd = job->order_fd,
		.total = job->total,
		.err_total = job->err_total,
		.limit = RIG_LIMIT,
	};
	uint64_t size = cube_spool_size(&v, stream);
	char *out = calloc(1, size + 1);

	assert_non_null(out);
	assert_int_equal(cube_spool_pread(&v, stream, out, size, 0), (ssize_t)size);
	return out;
}

static void separate(struct rig *r)
{
	uint64_t id = rig_do(
		r, &(struct rig_run){
			   .text = "for i in 1 2 3; do echo o$i; sleep 0.02; echo e$i >&2; sleep 0.02; done",
			   .separate = true});
	char *both = view(r, id, CUBE_STREAM_OUTPUT), *out = view(r, id, CUBE_STREAM_STDOUT),
	     *err = view(r, id, CUBE_STREAM_STDERR);

	assert_string_equal(both, "o1\ne1\no2\ne2\no3\ne3\n");
	assert_string_equal(out, "o1\no2\no3\n");
	assert_string_equal(err, "e1\ne2\ne3\n");
	assert_int_equal(rig_job(r, id)->end.err_total, 9);
	free(both);
	free(out);
	free(err);
}

static void test_separate(void **state)
{
	struct rig *r = rig_new(NULL, false, false);

	(void)state;
	separate(r);
	rig_free(r);
	r = rig_new(NULL, true, false);
	separate(r);
	rig_free(r);
}

/* The command ends when its main process does; what a child prints later is added. */
static void late(struct rig *r, uint64_t session)
{
	uint64_t id = rig_do(
		r, &(struct rig_run){.text = "(sleep 0.3; echo late) & echo first", .session = session});

	rig_expect(r, id, NULL, CUBE_END_EXIT, 0);
	assert_int_equal(rig_job(r, id)->end.total, 6);
	cube_link_forget(r->link, id);
	if (session != 0)
		rig_expect(r, rig_say(r, "echo meanwhile"), "meanwhile\n", CUBE_END_EXIT, 0);
	rig_wait_total(r, id, 11);
	assert_true(rig_has(r, id, "first\nlate\n"));
}

static void late_both(struct rig *r)
{
	late(r, 0);
	rig_expect(r, rig_say(r, ":"), "", CUBE_END_EXIT, 0);
	late(r, 1);
}

static void test_late(void **state)
{
	(void)state;
	rig_each(late_both);
}

static void feed(struct rig *r, uint64_t id, const char *data, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ptrdiff_t n = cube_link_input(r->link, id, data + done, len - done);

		assert_true(n >= 0);
		done += (size_t)n;
		if (n == 0)
			(void)usleep(2000);
	}
}

/* More than any buffer on the way holds, and the window keeps what is in between small. */
static void input(struct rig *r, uint64_t session)
{
	size_t len = 3000000, got;
	char *data = malloc(len);
	struct rig_run run = {.text = "cat; echo; echo end", .input = true, .session = session};
	uint64_t id = rig_start(r, &run);
	char *out;

	assert_non_null(data);
	for (size_t i = 0; i < len; i++)
		data[i] = (char)(i * 7 + i / 251);
	feed(r, id, data, len);
	cube_link_eof(r->link, id);
	rig_wait_end(r, id);
	out = rig_output(r, id, &got);
	assert_int_equal(got, len + 5);
	assert_memory_equal(out, data, len);
	assert_memory_equal(out + len, "\nend\n", 5);
	free(out);
	run.text = "cat; echo .";
	id = rig_start(r, &run);
	cube_link_eof(r->link, id);
	rig_expect(r, id, ".\n", CUBE_END_EXIT, 0);
	free(data);
}

static void input_both(struct rig *r)
{
	input(r, 0);
	input(r, 1);
}

static void test_input(void **state)
{
	(void)state;
	rig_each(input_both);
}

static bool has_space(struct rig *r, void *ctx)
{
	(void)r;
	return ((struct rig_job *)ctx)->inputs > 0;
}

/* A command that does not read: the window fills, and a word says when there is room. */
static void test_window(void **state)
{
	struct rig *r = rig_new(NULL, false, false);
	size_t len = 1u << 20;
	char *data = calloc(1, len);
	uint64_t id = rig_start(r, &(struct rig_run){.text = "sleep 60", .input = true});
	ptrdiff_t n;

	(void)state;
	assert_non_null(data);
	n = cube_link_input(r->link, id, data, len);
	assert_true(n > 0 && n <= 256 << 10);
	for (int i = 0; i < 10; i++) {
		(void)usleep(5000);
		n += cube_link_input(r->link, id, data, len);
	}
	assert_true(n <= (256 << 10) + (128 << 10)); /* with what its pipe holds */
	cube_link_kill(r->link, id, 9);
	rig_expect(r, id, "", CUBE_END_KILLED, 137);
	assert_int_equal(cube_link_input(r->link, id, data, 1), 0);
	assert_int_equal(cube_link_input(r->link, 99999, data, 1), 0);
	id = rig_start(r, &(struct rig_run){.text = "sleep 0.1; cat >/dev/null; echo ok", .input = true});
	assert_true(cube_link_input(r->link, id, data, len) < (ptrdiff_t)len);
	rig_wait(r, has_space, rig_job(r, id));
	cube_link_eof(r->link, id);
	rig_expect(r, id, "ok\n", CUBE_END_EXIT, 0);
	free(data);
	rig_free(r);
}

/* A reader that goes away early takes nothing down. */
static void test_no_reader(void **state)
{
	struct rig *r = rig_new(NULL, false, false);
	char data[4096] = "line\n";
	uint64_t id = rig_start(
		r, &(struct rig_run){.text = "head -c 5; exec <&-; sleep 0.1; echo done", .input = true});

	(void)state;
	for (int i = 0; i < 200; i++)
		(void)cube_link_input(r->link, id, data, sizeof(data));
	rig_expect(r, id, "line\ndone\n", CUBE_END_EXIT, 0);
	rig_free(r);
}

static void tty(struct rig *r)
{
	struct rig_run run = {.text = "tty >/dev/null && stty size; trap 'stty size; exit 4' WINCH; echo "
				      "ready; while :; do sleep 0.05; done",
			      .tty = true,
			      .rows = 24,
			      .cols = 80};
	uint64_t id = rig_start(r, &run);

	rig_wait_total(r, id, strlen("24 80\r\nready\r\n"));
	cube_link_winsize(r->link, id, 50, 132);
	rig_expect(r, id, "24 80\r\nready\r\n50 132\r\n", CUBE_END_EXIT, 4);
	run = (struct rig_run){.text = "stty -echo; echo ready; read x; echo got $x; cat; echo end",
			       .tty = true,
			       .input = true};
	id = rig_start(r, &run);
	rig_wait_total(r, id, 7);
	feed(r, id, "hello\nmore\n", 11);
	cube_link_eof(r->link, id);
	rig_expect(r, id, "ready\r\ngot hello\r\nmore\r\nend\r\n", CUBE_END_EXIT, 0);
	/* Ctrl-C is the terminal's business. */
	run = (struct rig_run){.text = "stty -echo; echo ready; sleep 60", .tty = true, .input = true};
	id = rig_start(r, &run);
	rig_wait_total(r, id, 7);
	/* dash loses one that comes while it forks. */
	for (int i = 0; i < 200 && !rig_job(r, id)->ended; i++) {
		(void)cube_link_input(r->link, id, "\003", 1);
		(void)usleep(20000);
	}
	rig_expect(r, id, NULL, CUBE_END_SIGNAL, 130);
}

static void test_tty(void **state)
{
	(void)state;
	if (access("/dev/pts/ptmx", F_OK) < 0)
		skip();
	rig_each(tty);
}

static long ticks(int pid)
{
	char path[64], text[1024] = "";
	long user = 0, system = 0;
	char *at;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	(void)close(fd);
	at = strrchr(text, ')');
	assert_non_null(at);
	for (int field = 2; field < 14; field++)
		at = strchr(at + 1, ' ');
	user = strtol(at, &at, 10);
	system = strtol(at, NULL, 10);
	return user + system;
}

/* A terminal, pipes and an input that the command has let go of while it runs on keep nobody busy. */
static void test_let_go(void **state)
{
	struct rig *r = rig_new(NULL, false, false);
	struct rig_run run = {.text = "exec </dev/null >/dev/null 2>&1; sleep 1", .tty = true, .input = true};
	uint64_t ids[3];
	long before = ticks(r->agent);

	(void)state;
	ids[0] = rig_start(r, &run);
	run.tty = false;
	ids[1] = rig_start(r, &run);
	run.session = 1;
	ids[2] = rig_start(r, &run);
	for (unsigned i = 0; i < 3; i++)
		rig_expect(r, ids[i], "", CUBE_END_EXIT, 0);
	assert_true(ticks(r->agent) - before < 30);
	rig_free(r);
}

/* Beyond twice the limit the middle is given back even if no daemon is there. */
static void test_limit(void **state)
{
	struct rig *r = rig_new(NULL, false, false);
	uint64_t id =
		rig_do(r, &(struct rig_run){.text = "head -c 64000000 /dev/zero | tr '\\0' x; printf end",
					    .limit = 4u << 20});
	struct stat st;
	char text[4];

	(void)state;
	assert_int_equal(rig_job(r, id)->end.total, 64000003);
	assert_int_equal(fstat(rig_job(r, id)->out_fd, &st), 0);
	assert_true(st.st_blocks * 512 < 20 << 20);
	assert_int_equal(pread(rig_job(r, id)->out_fd, text, 3, 64000000), 3);
	assert_memory_equal(text, "end", 3);
	rig_free(r);
}

/* A full disk: the command goes on, the bytes are counted as lost and in no total. */
static void test_full(void **state)
{
	struct rig *r;
	char path[96], file[128];
	uint64_t id;
	int fd;

	(void)state;
	if (geteuid() != 0)
		skip();
	r = rig_new(NULL, false, false);
	(void)snprintf(path, sizeof(path), "%s/small", r->dir);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(mount("none", path, "tmpfs", 0, "size=64k"), 0);
	(void)snprintf(file, sizeof(file), "%s/spool", path);
	fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	id = rig_do(r, &(struct rig_run){.text = "head -c 1000000 /dev/zero; echo survived >&2; exit 6",
					 .out_fd = fd});
	assert_int_equal(rig_job(r, id)->end.how, CUBE_END_EXIT);
	assert_int_equal(rig_job(r, id)->end.code, 6);
	assert_int_equal(rig_job(r, id)->end.total + rig_job(r, id)->end.lost, 1000009);
	assert_true(rig_job(r, id)->end.total <= 65536 && rig_job(r, id)->end.total > 0);
	(void)close(fd);
	(void)close(rig_job(r, id)->out_fd);
	rig_job(r, id)->out_fd = -1;
	assert_int_equal(umount2(path, MNT_DETACH), 0);
	rig_free(r);
}

/* A spool that takes no splice (opened for appending) is written all the same. */
static void test_append(void **state)
{
	struct rig *r = rig_new(NULL, false, false);
	char path[96];
	uint64_t id;
	int fd;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/appended", r->dir);
	fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	id = rig_do(r, &(struct rig_run){.text = "echo one; seq 100000 | tail -n 1", .out_fd = fd});
	rig_expect(r, id, "one\n100000\n", CUBE_END_EXIT, 0);
	(void)close(fd);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fast_exits), cmocka_unit_test(test_big),
		cmocka_unit_test(test_separate),   cmocka_unit_test(test_late),
		cmocka_unit_test(test_input),      cmocka_unit_test(test_window),
		cmocka_unit_test(test_no_reader),  cmocka_unit_test(test_tty),
		cmocka_unit_test(test_limit),      cmocka_unit_test(test_full),
		cmocka_unit_test(test_append),     cmocka_unit_test(test_let_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
