/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of the kernel in the answer to INIT, and what happens where it has no passthrough. The rest needs a
 * kernel: tests/shell/passthrough.sh. */
#include <errno.h>
#include <linux/fuse.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "fs/fuse/passthrough.h"

#define EXT         (1u << 30)
#define PASSTHROUGH (1u << 5)

static int pair[2];
static struct cube_wire wire;
static struct cube_fuse_pass pass;

static int setup(void **state)
{
	(void)state;
	wire = (struct cube_wire){.n = 0};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
		return -1;
	return cube_fuse_pass_init(&pass, &wire, pair[0]);
}

static int teardown(void **state)
{
	(void)state;
	cube_fuse_pass_done(&pass);
	close(pair[0]);
	close(pair[1]);
	return 0;
}

static void ask(uint32_t flags, uint32_t flags2)
{
	struct {
		struct fuse_in_header head;
		struct fuse_init_in in;
	} m = {.head = {.len = sizeof(m), .opcode = FUSE_INIT, .unique = 2},
	       .in = {.major = 7, .minor = 40, .flags = flags, .flags2 = flags2}};
	char buf[512];

	assert_int_equal(send(pair[1], &m, sizeof(m), 0), sizeof(m));
	assert_int_equal(cube_wire_read(&wire, pair[0], buf, sizeof(buf)), sizeof(m));
}

static void answer(uint64_t unique, struct fuse_init_out *ret)
{
	struct fuse_init_out out = {.major = 7, .minor = 31, .flags = FUSE_ASYNC_READ, .max_write = 4096};
	struct fuse_out_header head = {.len = sizeof(head) + sizeof(out), .unique = unique};
	struct iovec iov[] = {{&head, sizeof(head)}, {&out, sizeof(out)}};
	char buf[512];

	assert_int_equal(cube_wire_writev(&wire, pair[0], iov, 2), head.len);
	assert_int_equal(recv(pair[1], buf, sizeof(buf), 0), head.len);
	memcpy(ret, buf + sizeof(head), sizeof(*ret));
	assert_int_equal(out.flags, FUSE_ASYNC_READ); /* libfuse's own is as it was */
}

static void test_asked_for(void **state)
{
	struct fuse_init_out out;

	(void)state;
	ask(EXT, PASSTHROUGH);
	answer(7, &out); /* another's */
	assert_int_equal(out.flags2, 0);
	answer(2, &out);
	assert_int_equal(out.flags, FUSE_ASYNC_READ | EXT);
	assert_int_equal(out.flags2, PASSTHROUGH);
	assert_int_equal(out.unused[0], 2);
	assert_int_equal(out.max_write, 4096);
	answer(2, &out); /* once */
	assert_int_equal(out.flags2, 0);
}

static void test_not_offered(void **state)
{
	struct fuse_init_out out;
	int32_t id = 5;

	(void)state;
	ask(EXT, 0);
	answer(2, &out);
	assert_int_equal(out.flags2, 0);
	assert_string_equal(cube_fuse_pass_why_not(&pass), "this kernel has no FUSE passthrough (Linux 6.9)");
	assert_int_equal(cube_fuse_pass_open(&pass, 1, pair[1], &id), 0);
	assert_int_equal(id, 0);
	cube_fuse_pass_close(&pass, 1);
}

/* A socket is no /dev/fuse: it is refused, and served. */
static void test_refused(void **state)
{
	struct fuse_init_out out;
	int32_t id = 5;

	(void)state;
	ask(EXT, PASSTHROUGH);
	answer(2, &out);
	assert_int_equal(cube_fuse_pass_open(&pass, 1, pair[1], &id), 0);
	assert_int_equal(id, 0);
	assert_string_equal(cube_fuse_pass_why_not(&pass), strerrordesc_np(ENOTTY));
	cube_fuse_pass_close(&pass, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_asked_for, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_offered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
