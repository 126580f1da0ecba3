/* SPDX-License-Identifier: Apache-2.0 */
/* What a hypervisor asks of process 1: lines in any pieces, each with its answer. What would change this machine is not asked. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/agent/init/ev.h"
#include "backends/agent/init/port.h"
#include "backends/base/macros.h"

static int ends[2];
static char heard[4096];
static size_t heard_len;
static unsigned wanted; /* lines */

static unsigned lines(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < heard_len; i++)
		n += heard[i] == '\n';
	return n;
}

static void listen_more(void)
{
	ssize_t n = recv(ends[1], heard + heard_len, sizeof(heard) - 1 - heard_len, MSG_DONTWAIT);

	heard_len += n > 0 ? (size_t)n : 0;
	heard[heard_len] = '\0';
	if (lines() >= wanted)
		init_ev_stop();
}

static void nobody(void)
{
}

static void no_signal(int sig)
{
	(void)sig;
}

static void say(const char *text, size_t len)
{
	assert_int_equal(write(ends[1], text, len), len);
}

static const struct {
	const char *line;
	int code;
} cases[] = {
	{"", ENOSYS},      {"nonsense", ENOSYS}, {"freezer", ENOSYS}, {"name", EINVAL},
	{"name ", EINVAL}, {"time", EINVAL},     {"time x", EINVAL},  {"time 1x", EINVAL},
	{"seed", EINVAL},  {"seed abc", EINVAL}, {"seed zz", EINVAL}, {"seed AB", EINVAL},
	{"freeze", 0},     {"freeze", 0},        {"thaw", 0},         {"thaw", 0},
};

static size_t answer(char *out, size_t size, int code)
{
	int n = code == 0 ? snprintf(out, size, "ok\n") : snprintf(out, size, "error %d\n", code);

	return (size_t)n;
}

/* All at once: what is read of it ends anywhere in a line. A line that is longer than any is one, too. */
static void asked(void **state)
{
	char longest[1000], expected[4096];
	size_t len = 0;

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		say(cases[i].line, strlen(cases[i].line));
		say("\n", 1);
		len += answer(expected + len, sizeof(expected) - len, cases[i].code);
	}
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\n';
	say(longest, sizeof(longest));
	len += answer(expected + len, sizeof(expected) - len, EMSGSIZE);
	say("thaw\n", 5);
	(void)answer(expected + len, sizeof(expected) - len, 0);
	wanted = CUBE_COUNT(cases) + 2;
	init_ev_run(listen_more);
	assert_string_equal(heard, expected);
}

static int setup(void **state)
{
	(void)state;
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0 ||
			       init_ev_open(nobody, no_signal) < 0 || init_port_open(ends[0]) < 0
		       ? -1
		       : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(asked)};

	return cmocka_run_group_tests(tests, setup, NULL);
}
