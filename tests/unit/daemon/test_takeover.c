/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker listened at is taken over by the next, though the one before has not ended. */
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/heir.h"
#include "fs/takeover.h"

static struct sockaddr_in any_port(void)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

/* The worker before: it listens, has a holder, and lives on. */
static pid_t start_worker(struct cube_keep *k, struct sockaddr_in *ret_at)
{
	int told[2];
	pid_t pid;

	assert_int_equal(pipe(told), 0);
	pid = fork();
	if (pid == 0) {
		struct sockaddr_in a = any_port();
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		socklen_t len = sizeof(a);
		struct cube_err err;

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, 4) == 0 &&
		    getsockname(fd, (struct sockaddr *)&a, &len) == 0 && cube_takeover(k, &err) == 0)
			(void)!write(told[1], &a, sizeof(a));
		(void)pause();
		_exit(0);
	}
	(void)close(told[1]);
	assert_int_equal(read(told[0], ret_at, sizeof(*ret_at)), sizeof(*ret_at));
	(void)close(told[0]);
	return pid;
}

static int client_of(const struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (const struct sockaddr *)at, sizeof(*at)), 0);
	return fd;
}

static void test_listener(void **state)
{
	struct sockaddr_in at, other = any_port();
	struct cube_keep *k;
	struct cube_err err;
	int keep_fd, fd, early, late;
	pid_t worker;

	(void)state;
	assert_int_equal(cube_keep_make(&keep_fd, &err), 0);
	assert_int_equal(cube_keep_open(keep_fd, &k, &err), 0);
	worker = start_worker(k, &at);
	early = client_of(&at);
	assert_int_equal(cube_takeover(k, &err), 0);
	assert_int_equal(cube_heir_take((const struct sockaddr *)&other), -1);
	fd = cube_heir_take((const struct sockaddr *)&at);
	assert_true(fd >= 0);
	assert_int_equal(cube_heir_take((const struct sockaddr *)&at), -1); /* once */
	late = client_of(&at);
	assert_true(accept(fd, NULL, NULL) >= 0); /* the descriptor goes with this process */
	assert_true(accept(fd, NULL, NULL) >= 0);
	cube_heir_drop();
	(void)close(early);
	(void)close(late);
	(void)close(fd);
	cube_takeover_end(k);
	assert_int_equal(kill(worker, SIGKILL), 0);
	assert_int_equal(waitpid(worker, NULL, 0), worker);
	cube_keep_close(k);
	(void)close(keep_fd);
}

static void test_dropped(void **state)
{
	struct sockaddr_in at = any_port();
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(at);

	(void)state;
	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	cube_heir_add(dup(fd)); /* it does not listen */
	assert_int_equal(cube_heir_take((const struct sockaddr *)&at), -1);
	assert_int_equal(listen(fd, 4), 0);
	cube_heir_add(fd);
	cube_heir_drop();
	assert_int_equal(cube_heir_take((const struct sockaddr *)&at), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_listener),
		cmocka_unit_test(test_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
