/* SPDX-License-Identifier: Apache-2.0 */
/* Messages pass the hooks in order; what a hook takes goes no further. */
#include <errno.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "fs/fuse/wire.h"

static int pair[2];

static int setup(void **state)
{
	(void)state;
	return socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
}

static int teardown(void **state)
{
	(void)state;
	close(pair[0]);
	close(pair[1]);
	return 0;
}

struct seen {
	int in, out, code, written;
	uint64_t take; /* the unique of what goes no further */
	uint32_t add;  /* to the opcode */
};

static bool see_in(void *ctx, struct cube_wire_in *m)
{
	struct seen *s = ctx;

	s->in++;
	m->head->opcode += s->add;
	return m->head->unique != s->take;
}

static bool see_out(void *ctx, struct cube_wire_out *m)
{
	struct seen *s = ctx;

	s->out++;
	return m->head->unique != s->take;
}

static void see_written(void *ctx, const struct cube_wire_out *m, int code)
{
	struct seen *s = ctx;

	(void)m;
	s->written++;
	s->code = code;
}

static struct cube_wire_hook hook(struct seen *s)
{
	return (struct cube_wire_hook){.ctx = s, .in = see_in, .out = see_out, .written = see_written};
}

static void give(uint64_t unique, uint32_t opcode)
{
	struct fuse_in_header h = {.len = sizeof(h), .unique = unique, .opcode = opcode};

	assert_int_equal(send(pair[1], &h, sizeof(h), 0), sizeof(h));
}

static void test_in(void **state)
{
	struct cube_wire w = {0};
	struct seen a = {.take = 7, .add = 1}, b = {.add = 10};
	char buf[256];
	const struct fuse_in_header *h = (const void *)buf;

	(void)state;
	cube_wire_add(&w, &(struct cube_wire_hook){0});
	cube_wire_add(&w, &(struct cube_wire_hook){.ctx = &a, .in = see_in});
	cube_wire_add(&w, &(struct cube_wire_hook){.ctx = &b, .in = see_in});
	give(7, 1);
	give(8, 1);
	assert_int_equal(cube_wire_read(&w, pair[0], buf, sizeof(buf)), sizeof(*h));
	assert_int_equal(h->unique, 8);
	assert_int_equal(h->opcode, 12);
	assert_int_equal(a.in, 2);
	assert_int_equal(b.in, 1); /* what the first took it never saw */
	/* what is no message passes as it is */
	assert_int_equal(send(pair[1], "x", 1, 0), 1);
	assert_int_equal(cube_wire_read(&w, pair[0], buf, sizeof(buf)), 1);
	assert_int_equal(a.in, 2);
}

static int given;

static ssize_t one_first(void *ctx, void *buf, size_t size)
{
	struct fuse_in_header h = {.len = sizeof(h), .unique = 99};

	(void)ctx;
	assert_true(size >= sizeof(h));
	if (given++ > 0)
		return 0;
	memcpy(buf, &h, sizeof(h));
	return sizeof(h);
}

static void test_first(void **state)
{
	struct cube_wire w = {.first = one_first};
	char buf[256];
	const struct fuse_in_header *h = (const void *)buf;

	(void)state;
	given = 0;
	give(1, 1);
	assert_int_equal(cube_wire_read(&w, pair[0], buf, sizeof(buf)), sizeof(*h));
	assert_int_equal(h->unique, 99);
	assert_int_equal(cube_wire_read(&w, pair[0], buf, sizeof(buf)), sizeof(*h));
	assert_int_equal(h->unique, 1);
}

static _Atomic int ended;
static atomic_bool over;

static void *read_parked(void *arg)
{
	char buf[256];

	ended = cube_wire_read(arg, pair[0], buf, sizeof(buf)) < 0 ? errno : 0;
	over = true;
	return NULL;
}

static void woken(int sig)
{
	(void)sig;
}

static void test_park(void **state)
{
	struct cube_wire w = {0};
	struct seen s = {0};
	char buf[256];
	const struct sigaction wake = {.sa_handler = woken};
	pthread_t thread;

	(void)state;
	ended = 0;
	over = false;
	assert_int_equal(sigaction(SIGUSR1, &wake, NULL), 0);
	cube_wire_add(&w, &(struct cube_wire_hook){.ctx = &s, .in = see_in});
	give(1, 1);
	assert_int_equal(cube_wire_read(&w, pair[0], buf, sizeof(buf)), sizeof(struct fuse_in_header));
	assert_false(cube_wire_park(&w)); /* that one is being served */
	give(2, 1);
	assert_int_equal(pthread_create(&thread, NULL, read_parked, &w), 0);
	while (recv(pair[0], buf, sizeof(buf), MSG_PEEK | MSG_DONTWAIT) > 0)
		(void)sched_yield(); /* it has been read ... */
	cube_wire_served(&w);
	while (!cube_wire_park(&w))
		(void)sched_yield(); /* ... and is not begun */
	while (!over) {              /* it waits for a signal */
		assert_int_equal(pthread_kill(thread, SIGUSR1), 0);
		(void)sched_yield();
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(ended, EINTR);
	assert_int_equal(s.in, 1);
}

/* The kernel gives them once: nobody else would serve them. */
static void test_parked_forget(void **state)
{
	struct cube_wire w = {0};
	struct fuse_in_header h;
	char buf[256];

	(void)state;
	assert_true(cube_wire_park(&w));
	give(0, FUSE_FORGET);
	give(0, FUSE_BATCH_FORGET);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cube_wire_read(&w, pair[0], buf, sizeof(buf)), sizeof(h));
		memcpy(&h, buf, sizeof(h));
		assert_int_equal(h.opcode, i == 0 ? FUSE_FORGET : FUSE_BATCH_FORGET);
		assert_false(cube_wire_park(&w));
		cube_wire_served(&w);
	}
	assert_true(cube_wire_park(&w));
}

static void test_out(void **state)
{
	struct cube_wire w = {0};
	struct seen a = {.take = 7};
	struct cube_wire_hook k = hook(&a);
	struct fuse_out_header h = {.len = sizeof(h) + 3, .unique = 7};
	char text[] = "abc", buf[64];
	struct iovec iov[] = {{&h, sizeof(h)}, {text, 3}};

	(void)state;
	cube_wire_add(&w, &k);
	assert_int_equal(cube_wire_writev(&w, pair[0], iov, 2), sizeof(h) + 3);
	assert_int_equal(a.written, 0);
	h.unique = 8;
	assert_int_equal(cube_wire_writev(&w, pair[0], iov, 2), sizeof(h) + 3);
	assert_int_equal(a.out, 2);
	assert_int_equal(a.written, 1);
	assert_int_equal(a.code, 0);
	assert_int_equal(recv(pair[1], buf, sizeof(buf), 0), sizeof(h) + 3); /* the second alone */
	memcpy(&h, buf, sizeof(h));
	assert_int_equal(h.unique, 8);
	assert_memory_equal(buf + sizeof(h), "abc", 3);
	assert_int_equal(recv(pair[1], buf, sizeof(buf), MSG_DONTWAIT), -1);
	/* a failure is told as it was */
	assert_int_equal(cube_wire_writev(&w, -1, iov, 2), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(a.code, -EBADF);
}

static void test_send(void **state)
{
	struct fuse_out_header h;
	char buf[64];

	(void)state;
	assert_int_equal(cube_wire_send(pair[0], 0, 7, NULL, 0), 0);
	assert_int_equal(recv(pair[1], buf, sizeof(buf), 0), sizeof(h));
	memcpy(&h, buf, sizeof(h));
	assert_int_equal(h.error, 7);
	assert_int_equal(h.unique, 0);
	assert_int_equal(cube_wire_send(pair[0], 5, 0, "xy", 2), 0);
	assert_int_equal(recv(pair[1], buf, sizeof(buf), 0), sizeof(h) + 2);
	assert_int_equal(cube_wire_send(-1, 5, 0, NULL, 0), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_in, setup, teardown),
		cmocka_unit_test_setup_teardown(test_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_park, setup, teardown),
		cmocka_unit_test_setup_teardown(test_parked_forget, setup, teardown),
		cmocka_unit_test_setup_teardown(test_out, setup, teardown),
		cmocka_unit_test_setup_teardown(test_send, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
