/* SPDX-License-Identifier: Apache-2.0 */
/* A process that is killed at the moment in which it takes a request leaves it to the next one. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fs/fuse/room.h"

#define AGAIN 7 /* FUSE_NOTIFY_RESEND */

static struct {
	char dir[64];
	int fd, cpu;
	struct cube_rooms rooms;
	int asked; /* what the request came back with */
} t;

static int setup(void **state)
{
	(void)state;
	cube_rooms_init(&t.rooms);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cube_rooms_done(&t.rooms);
	if (t.dir[0] != '\0') {
		(void)umount2(t.dir, MNT_DETACH);
		(void)rmdir(t.dir);
		(void)close(t.fd);
	}
	return 0;
}

static void test_pool(void **state)
{
	char *a = cube_room_take(&t.rooms), *b = cube_room_take(&t.rooms);

	(void)state;
	assert_non_null(a);
	assert_non_null(b);
	assert_ptr_not_equal(a, b);
	memset(a, 1, CUBE_ROOM_SIZE);
	memset(b, 2, CUBE_ROOM_SIZE);
	cube_room_give(&t.rooms, a);
	cube_room_give(&t.rooms, b);
	cube_room_give(&t.rooms, NULL);
	assert_ptr_equal(cube_room_take(&t.rooms), b);
	assert_ptr_equal(cube_room_take(&t.rooms), a);
	cube_room_give(&t.rooms, a);
	cube_room_give(&t.rooms, b);
}

/* ---- with the kernel ---- */

/* All on one processor, where the one of a higher class runs first. */
static int run_as(pid_t pid, int policy, int priority)
{
	struct sched_param p = {.sched_priority = priority};
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(t.cpu, &one);
	if (sched_setaffinity(pid, sizeof(one), &one) < 0)
		return -errno;
	return sched_setscheduler(pid, policy, &p) < 0 ? -errno : 0;
}

static void answer(uint64_t unique, int error, const void *body, size_t len)
{
	struct {
		struct fuse_out_header h;
		char body[sizeof(struct fuse_init_out)];
	} out = {.h = {.len = (uint32_t)(sizeof(out.h) + len), .error = error, .unique = unique}};

	if (len > 0)
		memcpy(out.body, body, len);
	assert_int_equal(write(t.fd, &out, out.h.len), out.h.len);
}

static bool mounted(void)
{
	char options[128];

	(void)snprintf(t.dir, sizeof(t.dir), "/tmp/test_room.XXXXXX");
	assert_non_null(mkdtemp(t.dir));
	t.fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	(void)snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", t.fd);
	if (t.fd >= 0 && mount("test_room", t.dir, "fuse", MS_NOSUID | MS_NODEV, options) == 0)
		return true;
	(void)rmdir(t.dir);
	(void)close(t.fd);
	t.dir[0] = '\0';
	return false;
}

static void begin(char *room)
{
	const struct fuse_in_header *h = (const void *)room;
	struct fuse_init_out out = {.major = 7, .minor = 31, .max_write = 4096, .max_readahead = 4096};

	assert_true(read(t.fd, room, CUBE_ROOM_SIZE) > 0);
	assert_int_equal(h->opcode, FUSE_INIT);
	answer(h->unique, 0, &out, sizeof(out));
}

/* It takes a room, makes a child, and waits for a request. */
static pid_t start_reader(void)
{
	int told[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(told), 0);
	pid = fork();
	if (pid == 0) {
		void *room = cube_room_take(&t.rooms);
		const pid_t self = getpid();

		if (fork() == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() == self) /* it may be dead already */
				(void)pause();
			_exit(0);
		}
		if (write(told[1], "", 1) == 1)
			(void)!read(t.fd, room, CUBE_ROOM_SIZE);
		(void)pause();
		_exit(0);
	}
	(void)close(told[1]);
	assert_int_equal(read(told[0], &c, 1), 1);
	(void)close(told[0]);
	return pid;
}

/* In the read: it waits nowhere else. */
static bool sleeps(pid_t pid)
{
	char path[64], text[512];
	const char *at;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strrchr(text, ')');
	return at != NULL && at[2] == 'S';
}

static void *ask(void *arg)
{
	struct stat st;

	t.asked = stat(t.dir, &st) < 0 ? errno : 0;
	return arg;
}

/* What is asked wakes the reader, which has no chance to run before it is killed. */
static void kill_reader(pid_t pid, pthread_t *ret)
{
	assert_int_equal(run_as(0, SCHED_FIFO, 2), 0);
	assert_int_equal(pthread_create(ret, NULL, ask, NULL),
			 0); /* of the same class, and the same processor */
	(void)sched_yield();
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(run_as(0, SCHED_OTHER, 0), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_kill(void **state)
{
	struct fuse_out_header again = {.len = sizeof(again), .error = AGAIN};
	char *room = cube_room_take(&t.rooms);
	const struct fuse_in_header *h = (const void *)room;
	pthread_t asker;
	pid_t reader;

	(void)state;
	if (!mounted()) {
		cube_room_give(&t.rooms, room);
		skip();
	}
	begin(room);
	reader = start_reader();
	t.cpu = sched_getcpu();
	assert_int_equal(run_as(reader, SCHED_OTHER, 0), 0);
	while (!sleeps(reader))
		(void)sched_yield();
	kill_reader(reader, &asker);
	assert_int_equal(write(t.fd, &again, sizeof(again)), sizeof(again));
	assert_int_equal(fcntl(t.fd, F_SETFL, O_NONBLOCK), 0);
	assert_true(read(t.fd, room, CUBE_ROOM_SIZE) > 0);
	assert_int_equal(h->opcode, FUSE_GETATTR);
	answer(h->unique, -ENXIO, NULL, 0);
	assert_int_equal(pthread_join(asker, NULL), 0);
	assert_int_equal(t.asked, ENXIO);
	cube_room_give(&t.rooms, room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_pool, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kill, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
