/* SPDX-License-Identifier: Apache-2.0 */
/* A listener that is handed over: both sides, knocks by others, and nobody who comes. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/agent/door.h"
#include "backends/agent/init/door.h"
#include "backends/agent/listener.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"

struct place {
	char dir[64], path[108];
	int fd;
};

static int setup(void **state)
{
	static struct place p;

	(void)snprintf(p.dir, sizeof(p.dir), "/tmp/cubefs-door.XXXXXX");
	assert_non_null(mkdtemp(p.dir));
	(void)snprintf(p.path, sizeof(p.path), "%s/" CUBE_AGENT_DOOR, p.dir);
	p.fd = open(p.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(p.fd >= 0);
	*state = &p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;

	close(p->fd);
	return cube_file_remove_tree(AT_FDCWD, p->dir);
}

#define GOT_IT 3

/* A child that knocks as the agent does; GOT_IT: it was handed a listening socket. */
static pid_t agent(const char *path)
{
	pid_t pid = fork();
	int on = 0, fd;
	socklen_t len = sizeof(on);

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	fd = init_door_enter(path);
	_exit(fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) == 0 && on == 1 ? GOT_IT : 1);
}

static int end_of(pid_t pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void knock(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	close(fd);
}

/* It knocks before there is a door; others knock before it. */
static void test_handed(void **state)
{
	const struct place *p = *state;
	pid_t pid = agent(p->path);
	struct cube_err err;
	int door, listener;

	assert_int_equal(cube_agent_listener_make(p->fd, &listener, &err), 0);
	assert_int_equal(cube_agent_door_open(p->fd, &door, &err), 0);
	knock(p->path);
	knock(p->path);
	assert_int_equal(cube_agent_door_hand(door, pid, listener, 20000, NULL, &err), 0);
	cube_agent_door_close(p->fd, door);
	assert_int_equal(WEXITSTATUS(end_of(pid)), GOT_IT);
	assert_int_equal(access(p->path, F_OK), -1);
	close(listener);
}

/* Who is not process 1 gets nothing, and the door does not wait for ever. */
static void test_others(void **state)
{
	const struct place *p = *state;
	struct cube_err err = {0};
	int door, listener;
	pid_t pid;

	assert_int_equal(cube_agent_listener_make(p->fd, &listener, &err), 0);
	assert_int_equal(cube_agent_door_open(p->fd, &door, &err), 0);
	pid = agent(p->path);
	assert_int_equal(cube_agent_door_hand(door, getpid(), listener, 300, NULL, &err), -ETIMEDOUT);
	assert_true(err.text[0] != '\0');
	/* It still knocks, and ends when it is told to. */
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_not_equal(WEXITSTATUS(end_of(pid)), GOT_IT);
	cube_agent_door_close(p->fd, door);
	close(listener);
}

static void test_cancelled(void **state)
{
	const struct place *p = *state;
	struct cube_cancel *cancel = cube_cancel_new();
	struct cube_err err;
	int door;

	assert_int_equal(cube_agent_door_open(p->fd, &door, &err), 0);
	cube_cancel_fire(cancel);
	assert_int_equal(cube_agent_door_hand(door, getpid(), p->fd, 20000, cancel, &err), -EINTR);
	cube_agent_door_close(p->fd, door);
	cube_agent_door_close(p->fd, -1);
	cube_cancel_unref(cancel);
}

static void test_long_path(void **state)
{
	char path[200];

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(init_door_enter(path), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_handed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cancelled, setup, teardown),
		cmocka_unit_test(test_long_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
