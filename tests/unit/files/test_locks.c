/* SPDX-License-Identifier: Apache-2.0 */
/* Locks: between owners, between outside and inside, waits and their ends. */
#include "tests/unit/files/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/cancel.h"

enum { ME = 11, YOU = 22 };

static struct flock range(short type, off_t from, off_t len)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = from, .l_len = len};
}

static int lock(struct cube_files_handle *h, uint64_t owner, short type, off_t from, off_t len)
{
	const struct flock l = range(type, from, len);

	return cube_files_setlk(h, owner, &l, false, NULL);
}

static struct cube_files_handle *open_it(struct stage *s, int flags)
{
	struct cube_files_handle *h;

	assert_int_equal(cube_files_open(s->space, stage_node(s, "f"), flags, &h), 0);
	return h;
}

static void test_owners(void **state)
{
	struct cube_files_handle *a, *b;
	struct flock l;
	struct stage s;

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "0123456789");
	a = open_it(&s, O_RDWR);
	b = open_it(&s, O_RDWR);
	assert_int_equal(lock(a, ME, F_WRLCK, 0, 5), 0);
	assert_int_equal(lock(b, ME, F_WRLCK, 3, 5), 0); /* the same process, another descriptor */
	assert_int_equal(lock(b, YOU, F_RDLCK, 4, 1), -EAGAIN);
	assert_int_equal(lock(a, YOU, F_RDLCK, 8, 1), 0);
	l = range(F_WRLCK, 0, 0);
	assert_int_equal(cube_files_getlk(b, YOU, &l), 0);
	assert_int_equal(l.l_type, F_WRLCK);
	assert_int_equal(l.l_start, 0);
	assert_int_equal(l.l_len, 8);
	l = range(F_WRLCK, 0, 5);
	assert_int_equal(cube_files_getlk(a, ME, &l), 0);
	assert_int_equal(l.l_type, F_UNLCK); /* one's own is no conflict */
	assert_int_equal(lock(a, ME, F_UNLCK, 4, 1), 0);
	assert_int_equal(lock(b, YOU, F_RDLCK, 4, 1), 0);
	/* a close of either descriptor by the owner ends all its locks on the file */
	assert_int_equal(cube_files_flush(b, ME), 0);
	assert_int_equal(lock(b, YOU, F_WRLCK, 0, 0), 0);
	assert_int_equal(cube_files_flush(a, 99), 0); /* somebody who has none */
	cube_files_release(a);
	cube_files_release(b);
	a = open_it(&s, O_RDWR);
	assert_int_equal(lock(a, ME, F_WRLCK, 0, 0), 0); /* nothing is left without an open handle */
	cube_files_release(a);
	stage_close(&s);
}

/* An owner that is an open file goes with it; who holds a lock is said. */
static void test_of_handles(void **state)
{
	struct cube_files_handle *a, *b;
	struct flock l = range(F_WRLCK, 0, 10);
	struct stage s;

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "0123456789");
	a = open_it(&s, O_RDWR);
	b = open_it(&s, O_RDWR);
	l.l_pid = 4711;
	assert_int_equal(cube_files_setlk(a, ME, &l, false, NULL), 0);
	l = range(F_RDLCK, 2, 1);
	assert_int_equal(cube_files_getlk(b, YOU, &l), 0);
	assert_int_equal(l.l_type, F_WRLCK);
	assert_int_equal(l.l_pid, 4711);
	assert_int_equal(lock(b, YOU, F_WRLCK, 0, 0), -EAGAIN);
	assert_int_equal(lock(b, YOU, F_WRLCK, 10, 0), 0);
	cube_files_release(a);
	assert_int_equal(lock(b, YOU, F_WRLCK, 0, 0), 0);
	cube_files_release(b);
	stage_close(&s);
}

static void test_access(void **state)
{
	struct cube_files_handle *r, *w, *d;
	struct flock l = range(F_RDLCK, 0, 1);
	struct stage s;

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "");
	r = open_it(&s, O_RDONLY);
	w = open_it(&s, O_WRONLY);
	assert_int_equal(cube_files_opendir(s.space, s.id, &d), 0);
	assert_int_equal(lock(r, ME, F_WRLCK, 0, 1), -EBADF);
	assert_int_equal(lock(w, ME, F_RDLCK, 0, 1), -EBADF);
	assert_int_equal(lock(d, ME, F_RDLCK, 0, 1), -EBADF);
	assert_int_equal(cube_files_getlk(d, ME, &l), -EBADF);
	assert_int_equal(lock(r, ME, 77, 0, 1), -EINVAL);
	assert_int_equal(lock(r, ME, F_UNLCK, 0, 1), 0);
	/* read lock by the one, write lock by the other descriptor, of one owner */
	assert_int_equal(lock(r, ME, F_RDLCK, 0, 10), 0);
	assert_int_equal(lock(w, YOU, F_WRLCK, 0, 1), -EAGAIN);
	assert_int_equal(lock(w, ME, F_WRLCK, 2, 3), 0);
	assert_int_equal(lock(r, YOU, F_RDLCK, 2, 1), -EAGAIN);
	assert_int_equal(lock(w, YOU, F_WRLCK, 7, 1), -EAGAIN); /* the rest is still there */
	assert_int_equal(lock(r, ME, F_RDLCK, 2, 3), 0);        /* downgraded by the read-only one */
	assert_int_equal(lock(r, YOU, F_RDLCK, 2, 1), 0);
	assert_int_equal(lock(r, ME, F_UNLCK, 0, 0), 0);
	assert_int_equal(lock(r, YOU, F_UNLCK, 0, 0), 0);
	assert_int_equal(lock(w, YOU, F_WRLCK, 0, 0), 0);
	cube_files_release(r);
	cube_files_release(w);
	cube_files_release(d);
	stage_close(&s);
}

/* A process inside: classic locks. Holds what @type says of bytes 0 to 9 until the pipe closes; 'l' when it
 * has it. */
static pid_t inside_holds(const struct stage *s, short type, int ready[2], int hold[2])
{
	pid_t pid;
	char c;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct flock l = range(type, 0, 10);
		int fd = openat(s->fd, "f", O_RDWR | O_CLOEXEC);

		(void)close(hold[1]);
		if (fcntl(fd, F_SETLK, &l) < 0 || flock(fd, LOCK_EX) < 0)
			_exit(1);
		(void)!write(ready[1], "l", 1);
		(void)!read(hold[0], &c, 1);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	return pid;
}

static void inside_ends(pid_t pid, int ready[2], int hold[2])
{
	int status;

	for (int i = 0; i < 2; i++) {
		(void)close(ready[i]);
		(void)close(hold[i]);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_inside(void **state)
{
	struct cube_files_handle *h;
	struct flock l = range(F_WRLCK, 0, 0);
	int ready[2], hold[2];
	struct stage s;
	pid_t pid;
	int fd;

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "");
	h = open_it(&s, O_RDWR);
	pid = inside_holds(&s, F_WRLCK, ready, hold);
	assert_int_equal(lock(h, ME, F_RDLCK, 5, 1), -EAGAIN);
	assert_int_equal(lock(h, ME, F_RDLCK, 10, 1), 0);
	assert_int_equal(cube_files_getlk(h, ME, &l), 0);
	assert_int_equal(l.l_type, F_WRLCK);
	assert_int_equal(l.l_pid, pid);
	assert_int_equal(cube_files_flock(h, ME, LOCK_EX | LOCK_NB, NULL), -EAGAIN);
	inside_ends(pid, ready, hold);
	assert_int_equal(lock(h, ME, F_WRLCK, 5, 1), 0);
	assert_int_equal(cube_files_flock(h, ME, LOCK_EX | LOCK_NB, NULL), 0);
	/* the other way */
	fd = openat(s.fd, "f", O_RDWR | O_CLOEXEC);
	l = range(F_WRLCK, 5, 1);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &l), -1);
	assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), -1);
	assert_int_equal(cube_files_flock(h, ME, LOCK_UN, NULL), 0);
	assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), 0);
	cube_files_release(h);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &l), 0);
	(void)close(fd);
	stage_close(&s);
}

/* ---- waiting ---- */

struct waiting {
	struct cube_files_handle *h;
	uint64_t owner;
	struct cube_cancel *cancel;
	bool flock;
	atomic_int result; /* 1: still waits */
	pthread_t thread;
};

static void *wait_run(void *arg)
{
	struct waiting *w = arg;
	const struct flock l = range(F_WRLCK, 0, 10);

	atomic_store(&w->result, w->flock ? cube_files_flock(w->h, w->owner, LOCK_EX, w->cancel)
					  : cube_files_setlk(w->h, w->owner, &l, true, w->cancel));
	return NULL;
}

static void wait_start(struct waiting *w)
{
	atomic_store(&w->result, 1);
	assert_int_equal(pthread_create(&w->thread, NULL, wait_run, w), 0);
}

static void test_waits(void **state)
{
	struct cube_files_handle *a, *b;
	struct stage s;

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "");
	a = open_it(&s, O_RDWR);
	b = open_it(&s, O_RDWR);
	for (int kind = 0; kind < 4; kind++) {
		struct cube_cancel *cancel = kind & 1 ? NULL : cube_cancel_new();
		struct waiting w = {.h = b, .owner = YOU, .cancel = cancel, .flock = (kind & 2) != 0};

		assert_int_equal(lock(a, ME, F_WRLCK, 0, 1), 0);
		assert_int_equal(cube_files_flock(a, ME, LOCK_EX, cancel), 0);
		wait_start(&w);
		(void)poll(NULL, 0, 20);
		assert_int_equal(atomic_load(&w.result), 1);
		assert_int_equal(lock(a, ME, F_UNLCK, 0, 0), 0);
		assert_int_equal(cube_files_flock(a, ME, LOCK_UN, NULL), 0);
		(void)pthread_join(w.thread, NULL);
		assert_int_equal(w.result, 0);
		assert_int_equal(lock(b, YOU, F_UNLCK, 0, 0), 0);
		assert_int_equal(cube_files_flock(b, YOU, LOCK_UN, NULL), 0);
		cube_cancel_unref(cancel);
	}
	cube_files_release(a);
	cube_files_release(b);
	stage_close(&s);
}

static void test_cancelled(void **state)
{
	enum { MANY = 16 };
	struct cube_files_handle *a;
	struct waiting w[MANY];
	struct stage s;

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "");
	a = open_it(&s, O_RDWR);
	assert_int_equal(lock(a, ME, F_WRLCK, 0, 1), 0);
	assert_int_equal(cube_files_flock(a, ME, LOCK_EX, NULL), 0);
	for (int i = 0; i < MANY; i++) {
		w[i] = (struct waiting){.h = open_it(&s, O_RDWR),
					.owner = 100 + (uint64_t)i,
					.cancel = cube_cancel_new(),
					.flock = i % 2 != 0};
		if (i == 0)
			cube_cancel_fire(w[i].cancel); /* before it begins */
		wait_start(&w[i]);
	}
	(void)pthread_join(w[0].thread, NULL);
	assert_int_equal(w[0].result, -EINTR);
	(void)poll(NULL, 0, 20);
	for (int i = 1; i < MANY; i++)
		assert_int_equal(atomic_load(&w[i].result), 1);
	for (int i = MANY - 1; i > 0; i--) {
		cube_cancel_fire(w[i].cancel);
		(void)pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].result, -EINTR);
	}
	assert_int_equal(lock(a, ME, F_UNLCK, 0, 0), 0);
	assert_int_equal(lock(a, YOU, F_WRLCK, 0, 0), 0); /* none of them has got it */
	for (int i = 0; i < MANY; i++) {
		cube_files_release(w[i].h);
		cube_cancel_unref(w[i].cancel);
	}
	cube_files_release(a);
	stage_close(&s);
}

/* An owner that waits for more keeps what it has when the wait is cancelled. */
static void test_cancelled_keeps(void **state)
{
	struct cube_files_handle *a, *b;
	struct waiting w;
	struct stage s;

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "");
	a = open_it(&s, O_RDWR);
	b = open_it(&s, O_RDWR);
	assert_int_equal(lock(a, ME, F_WRLCK, 5, 1), 0);
	assert_int_equal(lock(b, YOU, F_RDLCK, 0, 2), 0);
	w = (struct waiting){.h = b, .owner = YOU, .cancel = cube_cancel_new()};
	wait_start(&w);
	(void)poll(NULL, 0, 20);
	cube_cancel_fire(w.cancel);
	(void)pthread_join(w.thread, NULL);
	assert_int_equal(w.result, -EINTR);
	assert_int_equal(lock(a, ME, F_WRLCK, 1, 1), -EAGAIN);
	cube_cancel_unref(w.cancel);
	cube_files_release(a);
	cube_files_release(b);
	stage_close(&s);
}

/* One thread waits while another gives up all that their process has: what the first gets then is his. */
static void test_given_up(void **state)
{
	struct cube_files_handle *a, *b;
	struct waiting w;
	struct stage s;

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "");
	a = open_it(&s, O_RDWR);
	b = open_it(&s, O_RDWR);
	for (int close = 0; close < 2; close++) {
		assert_int_equal(lock(a, ME, F_WRLCK, 5, 1), 0);
		w = (struct waiting){.h = b, .owner = YOU};
		wait_start(&w);
		(void)poll(NULL, 0, 20);
		assert_int_equal(atomic_load(&w.result), 1);
		assert_int_equal(close ? cube_files_flush(a, YOU) : lock(b, YOU, F_UNLCK, 0, 0), 0);
		assert_int_equal(lock(a, ME, F_UNLCK, 0, 0), 0);
		(void)pthread_join(w.thread, NULL);
		assert_int_equal(w.result, 0);
		assert_int_equal(lock(a, ME, F_RDLCK, 5, 1), -EAGAIN);
		assert_int_equal(lock(b, YOU, F_UNLCK, 0, 0), 0);
		assert_int_equal(lock(a, ME, F_RDLCK, 5, 1), 0);
	}
	cube_files_release(a);
	cube_files_release(b);
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_owners),          cmocka_unit_test(test_access),
		cmocka_unit_test(test_of_handles),      cmocka_unit_test(test_inside),
		cmocka_unit_test(test_waits),           cmocka_unit_test(test_cancelled),
		cmocka_unit_test(test_cancelled_keeps), cmocka_unit_test(test_given_up),
	};

	stage_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
