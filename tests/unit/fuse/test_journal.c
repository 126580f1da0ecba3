/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of one worker as the next one meets them: answered ones get the same answer, begun ones are told as such. The
 * worker is "killed" by beginning a new one on the same memory at any point between request and answer. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "fs/files/files.h"
#include "fs/fuse/journal.h"
#include "fs/fuse/life.h"

struct worker {
	struct cube_keep *k;
	struct cube_wire w;
	struct cube_fuse_journal j;
	struct cube_fuse_life l;
};

struct stage {
	int keep_fd, pair[2]; /* ours, the kernel's */
	struct worker a;
};

static void begin(struct stage *s)
{
	struct cube_err err;

	cube_keep_close(s->a.k);
	memset(&s->a, 0, sizeof(s->a));
	assert_int_equal(cube_keep_open(s->keep_fd, &s->a.k, &err), 0);
	atomic_fetch_add(&s->a.k->head->lives, 1);
	cube_fuse_journal_add(&s->a.j, s->a.k, s->pair[0], &s->a.w);
	cube_fuse_life_add(&s->a.l, s->a.k, s->pair[0], &s->a.w);
}

static int setup(void **state)
{
	struct stage *s = calloc(1, sizeof(*s));
	struct cube_err err;

	*state = s;
	if (cube_keep_make(&s->keep_fd, &err) < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s->pair) < 0)
		return -1;
	begin(s);
	return 0;
}

static int teardown(void **state)
{
	struct stage *s = *state;

	cube_keep_close(s->a.k);
	close(s->keep_fd);
	close(s->pair[0]);
	close(s->pair[1]);
	free(s);
	return 0;
}

/* The kernel asks; true: libfuse would get it. */
static bool ask(struct stage *s, uint64_t unique, uint32_t opcode, uint64_t node, const void *body,
		size_t len)
{
	char buf[512], got[512];
	struct fuse_in_header h = {
		.len = (uint32_t)(sizeof(h) + len), .unique = unique, .opcode = opcode, .nodeid = node};
	ssize_t n;

	memcpy(buf, &h, sizeof(h));
	if (len > 0)
		memcpy(buf + sizeof(h), body, len);
	assert_int_equal(send(s->pair[1], buf, sizeof(h) + len, 0), sizeof(h) + len);
	assert_int_equal(fcntl(s->pair[0], F_SETFL, O_NONBLOCK), 0);
	n = cube_wire_read(&s->a.w, s->pair[0], got, sizeof(got));
	return n == (ssize_t)(sizeof(h) + len);
}

static void answer(struct stage *s, uint64_t unique, int error, const char *body)
{
	char text[64];
	size_t len = strlen(body);
	struct fuse_out_header h = {.len = (uint32_t)(sizeof(h) + len), .error = error, .unique = unique};
	struct iovec iov[] = {{&h, sizeof(h)}, {text, len}};

	memcpy(text, body, len);
	assert_int_equal(cube_wire_writev(&s->a.w, s->pair[0], iov, len > 0 ? 2 : 1), sizeof(h) + len);
}

/* What the kernel got: the body; *unique, *error. "none" when nothing. */
static const char *hear(struct stage *s, uint64_t *unique, int *error)
{
	static char buf[512];
	struct fuse_out_header h;
	ssize_t n = recv(s->pair[1], buf, sizeof(buf) - 1, MSG_DONTWAIT);

	if (n < (ssize_t)sizeof(h))
		return "none";
	memcpy(&h, buf, sizeof(h));
	*unique = h.unique;
	*error = h.error;
	buf[n] = '\0';
	return buf + sizeof(h);
}

static void test_answered(void **state)
{
	struct stage *s = *state;
	uint64_t unique;
	int error;

	assert_true(ask(s, 10, FUSE_MKDIR, 1, "name", 5));
	assert_false(cube_fuse_journal_now().again);
	answer(s, 10, 0, "made");
	assert_string_equal(hear(s, &unique, &error), "made");
	/* it was answered: nothing is left of it */
	begin(s);
	assert_true(ask(s, 10 | CUBE_WIRE_RESENT, FUSE_MKDIR, 1, "name", 5));
	assert_true(cube_fuse_journal_now().resent);
	assert_false(cube_fuse_journal_now().again);
}

/* Killed between the note of the answer and the answer: it is given by the next, and nothing is served. */
static void test_noted(void **state)
{
	struct stage *s = *state;
	int kernel = s->pair[0], error;
	uint64_t unique;

	assert_true(ask(s, 12, FUSE_RENAME, 1, "a\0b", 4));
	s->a.w.hooks[0].written = NULL; /* the kill: what comes behind the write does not happen */
	answer(s, 12, -EEXIST, "");
	assert_string_equal(hear(s, &unique, &error), "");
	begin(s);
	assert_false(ask(s, 12 | CUBE_WIRE_RESENT, FUSE_RENAME, 1, "a\0b", 4));
	assert_string_equal(hear(s, &unique, &error), "");
	assert_int_equal(unique, 12 | CUBE_WIRE_RESENT);
	assert_int_equal(error, -EEXIST);
	/* once */
	assert_true(ask(s, 12 | CUBE_WIRE_RESENT, FUSE_RENAME, 1, "a\0b", 4));
	assert_int_equal(kernel, s->pair[0]);
}

static void test_begun(void **state)
{
	struct stage *s = *state;
	uint64_t unique, noted = 0;
	int error;

	assert_true(ask(s, 14, FUSE_WRITE, 3, "verb", 5));
	cube_fuse_journal_note(&s->a.j, 14, 4711);
	begin(s);
	assert_false(cube_fuse_journal_noted(&s->a.j, 16, &noted));
	assert_true(ask(s, 14 | CUBE_WIRE_RESENT, FUSE_WRITE, 3, "verb", 5));
	assert_true(cube_fuse_journal_now().again);
	assert_int_equal(cube_fuse_journal_now().unique, 14);
	assert_true(cube_fuse_journal_noted(&s->a.j, 14, &noted));
	assert_int_equal(noted, 4711);
	/* killed again: it is still as begun */
	begin(s);
	assert_true(ask(s, 14 | CUBE_WIRE_RESENT, FUSE_WRITE, 3, "verb", 5));
	assert_true(cube_fuse_journal_now().again);
	answer(s, 14 | CUBE_WIRE_RESENT, 0, "ok");
	assert_string_equal(hear(s, &unique, &error), "ok");
	assert_int_equal(unique, 14 | CUBE_WIRE_RESENT);
	assert_true(ask(s, 14 | CUBE_WIRE_RESENT, FUSE_WRITE, 3, "verb", 5));
	assert_false(cube_fuse_journal_now().again);
}

/* What may be done twice needs no record. */
static void test_harmless(void **state)
{
	struct fuse_write_in w = {.flags = O_WRONLY};
	struct stage *s = *state;

	assert_true(ask(s, 20, FUSE_LOOKUP, 1, "x", 2));
	assert_true(ask(s, 22, FUSE_WRITE, CUBE_FILES_ID | 4, &w, sizeof(w)));
	assert_true(ask(s, 24, FUSE_FLUSH, CUBE_FILES_ID | 4, NULL, 0));
	assert_true(ask(s, 28, FUSE_WRITE, CUBE_FILES_ID | 4, "cut", 3));
	w.flags = O_WRONLY | O_APPEND;
	assert_true(ask(s, 26, FUSE_WRITE, CUBE_FILES_ID | 4, &w, sizeof(w)));
	begin(s);
	for (uint64_t unique = 20; unique <= 28; unique += 2) {
		assert_true(ask(s, unique | CUBE_WIRE_RESENT, FUSE_LOOKUP, 1, "x", 2));
		assert_int_equal(cube_fuse_journal_now().again, unique == 26);
	}
}

/* Many that are never answered take a bounded place, and stand in nobody's way for long. */
static void test_many(void **state)
{
	struct stage *s = *state;
	uint64_t unique;
	int error;

	for (uint64_t i = 0; i < 20000; i++)
		assert_true(ask(s, 2 * i + 2, FUSE_MKDIR, 1, "n", 2));
	answer(s, 2, 0, "first");
	assert_string_equal(hear(s, &unique, &error), "first");
	begin(s);
	assert_true(ask(s, 4 | CUBE_WIRE_RESENT, FUSE_MKDIR, 1, "n", 2));
	assert_true(cube_fuse_journal_now().again);
}

static void test_init(void **state)
{
	struct fuse_init_in in = {.major = 7, .minor = 38};
	struct stage *s = *state;
	char buf[512];
	const struct fuse_in_header *h = (const void *)buf;
	uint64_t unique;
	int error;

	assert_true(ask(s, 2, FUSE_INIT, 0, &in, sizeof(in)));
	answer(s, 2, 0, "agreed");
	assert_string_equal(hear(s, &unique, &error), "agreed");
	begin(s);
	/* the same request comes first, and its answer goes nowhere */
	assert_int_equal(cube_wire_read(&s->a.w, s->pair[0], buf, sizeof(buf)), sizeof(*h) + sizeof(in));
	assert_int_equal(h->opcode, FUSE_INIT);
	assert_memory_equal(h + 1, &in, sizeof(in));
	answer(s, 2, 0, "agreed");
	assert_string_equal(hear(s, &unique, &error), "none");
	/* then the kernel is asked for what has no answer */
	assert_int_equal(cube_fuse_life_go_on(&s->a.l), 0);
	assert_string_equal(hear(s, &unique, &error), "");
	assert_int_equal(error, 8);
	assert_string_equal(hear(s, &unique, &error), "");
	assert_int_equal(error, 7);
	assert_int_equal(unique, 0);
	/* a later answer of that number is another request's */
	answer(s, 2, 0, "other");
	assert_string_equal(hear(s, &unique, &error), "other");
}

/* Whoever polled is woken by the next worker, once. */
static void test_pollers(void **state)
{
	struct fuse_init_in in = {.major = 7};
	struct fuse_poll_in p = {.fh = 1, .kh = 99, .flags = FUSE_POLL_SCHEDULE_NOTIFY};
	struct stage *s = *state;
	struct cube_keep_handle *k;
	struct fuse_notify_poll_wakeup_out out;
	const char *body;
	uint64_t unique;
	int error;

	assert_true(ask(s, 2, FUSE_INIT, 0, &in, sizeof(in)));
	answer(s, 2, 0, "agreed");
	(void)hear(s, &unique, &error);
	assert_int_equal(cube_keep_take(&s->a.k->handles), 0);
	k = cube_keep_at(&s->a.k->handles, 0);
	k->fd = k->in.fd = k->text.fd = -1;
	atomic_store(&k->key, 5);
	assert_true(ask(s, 30, FUSE_POLL, 5, &p, sizeof(p)));
	for (int life = 0; life < 2; life++) {
		begin(s);
		assert_int_equal(cube_fuse_life_go_on(&s->a.l), 0);
		(void)hear(s, &unique, &error);
		(void)hear(s, &unique, &error);
		body = hear(s, &unique, &error);
		if (life == 1) {
			assert_string_equal(body, "none");
			continue;
		}
		memcpy(&out, body, sizeof(out));
		assert_int_equal(error, FUSE_NOTIFY_POLL);
		assert_int_equal(out.kh, 99);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_answered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_noted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_begun, setup, teardown),
		cmocka_unit_test_setup_teardown(test_harmless, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_init, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pollers, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
