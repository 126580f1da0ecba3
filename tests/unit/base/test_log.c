/* SPDX-License-Identifier: Apache-2.0 */
/* The log: levels, escaping, the cut, errno. */
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/base/log.h"

static const _Atomic uint64_t then = UINT64_C(1795980186120000000);

struct capture {
	int fds[2];
	char text[4096];
};

static int capture_setup(void **state)
{
	static struct capture c;

	*state = &c;
	cube_clock_fake(&then);
	return pipe2(c.fds, O_CLOEXEC | O_NONBLOCK);
}

static int capture_teardown(void **state)
{
	struct capture *c = *state;

	cube_clock_fake(NULL);
	cube_log_setup(STDERR_FILENO, CUBE_LOG_INFO);
	(void)close(c->fds[0]);
	(void)close(c->fds[1]);
	return 0;
}

static const char *captured(struct capture *c)
{
	ssize_t n = read(c->fds[0], c->text, sizeof(c->text) - 1);

	c->text[n > 0 ? n : 0] = '\0';
	return c->text;
}

static void test_line(void **state)
{
	struct capture *c = *state;

	cube_log_setup(c->fds[1], CUBE_LOG_INFO);
	errno = EXDEV;
	cube_log(CUBE_LOG_WARNING, "loop", "n=%d text='%s'", 3, "a\nb\x1b");
	assert_int_equal(errno, EXDEV);
	assert_string_equal(captured(c), "2026-11-29T19:23:06.120Z warning loop n=3 text='a\\x0ab\\x1b'\n");
}

static void test_levels(void **state)
{
	struct capture *c = *state;

	cube_log_setup(c->fds[1], CUBE_LOG_WARNING);
	cube_log(CUBE_LOG_INFO, "m", "not seen");
	cube_log(CUBE_LOG_DEBUG, "m", "not seen");
	assert_string_equal(captured(c), "");
	cube_log(CUBE_LOG_ERROR, "m", "seen");
	assert_string_equal(captured(c), "2026-11-29T19:23:06.120Z error m seen\n");
	cube_log_setup(c->fds[1], CUBE_LOG_DEBUG);
	cube_log(CUBE_LOG_DEBUG, "m", "seen");
	assert_string_equal(captured(c), "2026-11-29T19:23:06.120Z debug m seen\n");
}

static void test_cut(void **state)
{
	struct capture *c = *state;
	char text[3000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	cube_log_setup(c->fds[1], CUBE_LOG_INFO);
	cube_log(CUBE_LOG_INFO, "m", "%s", text);
	assert_int_equal(strlen(captured(c)), 1024);
	assert_int_equal(c->text[1023], '\n');
	assert_int_equal(c->text[1022], 'x');
	cube_log(CUBE_LOG_INFO, text, "%s", "module names are cut too");
	assert_non_null(strstr(captured(c), "x module names are cut too\n"));
}

static void test_nobody_reads(void **state)
{
	(void)state;
	cube_log_setup(-1, CUBE_LOG_INFO);
	errno = EXDEV;
	cube_log(CUBE_LOG_ERROR, "m", "lost");
	assert_int_equal(errno, EXDEV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_line, capture_setup, capture_teardown),
		cmocka_unit_test_setup_teardown(test_levels, capture_setup, capture_teardown),
		cmocka_unit_test_setup_teardown(test_cut, capture_setup, capture_teardown),
		cmocka_unit_test_setup_teardown(test_nobody_reads, capture_setup, capture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
