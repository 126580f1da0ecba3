/* SPDX-License-Identifier: Apache-2.0 */
/* What is agreed with the kernel beyond libfuse. What comes of it needs a kernel: tests/posix. */
#include <linux/fuse.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "fs/fuse/newer.h"

static int pair[2];
static struct cube_wire wire;
static struct cube_fuse_newer newer;

static int setup(void **state)
{
	(void)state;
	wire = (struct cube_wire){.n = 0};
	newer = (struct cube_fuse_newer){.init = 0};
	cube_fuse_newer_add(&newer, &wire);
	return socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
}

static int teardown(void **state)
{
	(void)state;
	close(pair[0]);
	close(pair[1]);
	return 0;
}

static void ask(uint32_t flags)
{
	struct {
		struct fuse_in_header head;
		struct fuse_init_in in;
	} m = {.head = {.len = sizeof(m), .opcode = FUSE_INIT, .unique = 2},
	       .in = {.major = 7, .minor = 40, .flags = flags}};
	char buf[512];

	assert_int_equal(send(pair[1], &m, sizeof(m), 0), sizeof(m));
	assert_int_equal(cube_wire_read(&wire, pair[0], buf, sizeof(buf)), sizeof(m));
}

/* The flags that the kernel gets. */
static uint32_t answer(uint64_t unique, int32_t error)
{
	struct fuse_init_out out = {.major = 7, .minor = 31, .flags = FUSE_ASYNC_READ};
	struct fuse_out_header head = {.len = sizeof(head) + sizeof(out), .error = error, .unique = unique};
	struct iovec iov[] = {{&head, sizeof(head)}, {&out, sizeof(out)}};
	char buf[512];

	assert_int_equal(cube_wire_writev(&wire, pair[0], iov, 2), head.len);
	assert_int_equal(recv(pair[1], buf, sizeof(buf), 0), head.len);
	assert_int_equal(out.flags, FUSE_ASYNC_READ); /* libfuse's own is as it was */
	memcpy(&out, buf + sizeof(head), sizeof(out));
	return out.flags;
}

static void test_setuid_bits(void **state)
{
	(void)state;
	ask(FUSE_HANDLE_KILLPRIV_V2 | FUSE_ASYNC_READ);
	assert_int_equal(answer(7, 0), FUSE_ASYNC_READ); /* another's */
	assert_int_equal(answer(2, 0), FUSE_ASYNC_READ | FUSE_HANDLE_KILLPRIV_V2);
	assert_int_equal(answer(2, 0), FUSE_ASYNC_READ); /* once */
}

static void test_not_offered(void **state)
{
	(void)state;
	ask(FUSE_ASYNC_READ);
	assert_int_equal(answer(2, 0), FUSE_ASYNC_READ);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_setuid_bits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_offered, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
