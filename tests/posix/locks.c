/* SPDX-License-Identifier: Apache-2.0 */
/* flock, POSIX record locks, open file description locks; also between both sides. */
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include "tests/posix/suite.h"

static int lock(int fd, int cmd, short type, off_t start, off_t len)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};

	return fcntl(fd, cmd, &l);
}

/* The type of what is in the way of a write lock, F_UNLCK for nothing. */
static int lock_in_the_way(int fd, int cmd, off_t start, off_t len, struct flock *ret)
{
	*ret = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
	return fcntl(fd, cmd, ret) < 0 ? -1 : ret->l_type;
}

static void locks_pause(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
}

/* What went with the close of a descriptor may take a moment for the inside, and for locks of directories, since nobody
 * waits for it. */
static int lock_soon(int fd, int cmd, short type, off_t start, off_t len)
{
	int r = lock(fd, cmd, type, start, len);

	for (int i = 0; i < 500 && r < 0; i++) {
		locks_pause();
		r = lock(fd, cmd, type, start, len);
	}
	return r;
}

static int flock_soon(int fd, int operation)
{
	int r = flock(fd, operation);

	for (int i = 0; i < 500 && r < 0; i++) {
		locks_pause();
		r = flock(fd, operation);
	}
	return r;
}

/* ---- flock ---- */

static void locks_flock(void)
{
	int a = open("f", O_RDWR | O_CREAT, 0600), b = open("f", O_RDONLY), c = dup(a);

	OK(flock(a, LOCK_SH | LOCK_NB));
	OK(flock(b, LOCK_SH | LOCK_NB));
	FAILS(EWOULDBLOCK, flock(a, LOCK_EX | LOCK_NB));
	OK(flock(b, LOCK_UN));
	OK(flock(a, LOCK_EX | LOCK_NB));
	FAILS(EWOULDBLOCK, flock(b, LOCK_SH | LOCK_NB));
	OK(flock(c, LOCK_EX | LOCK_NB)); /* of the same open */
	OK(close(a));
	FAILS(EWOULDBLOCK, flock(b, LOCK_SH | LOCK_NB));
	OK(close(c));
	OK(flock(b, LOCK_EX | LOCK_NB)); /* a descriptor for reading will do */
	FAILS(EINVAL, flock(b, 77));
	FAILS(EBADF, flock(-1, LOCK_SH));
	OK(close(b));
}

static void locks_flock_directory(void)
{
	int a, b;

	OK(mkdir("d", 0755));
	a = open("d", O_RDONLY);
	b = open("d", O_RDONLY);
	OK(flock(a, LOCK_EX | LOCK_NB));
	FAILS(EWOULDBLOCK, flock(b, LOCK_EX | LOCK_NB));
	OK(close(a));
	OK(flock_soon(b, LOCK_EX | LOCK_NB));
	OK(close(b));
}

/* ---- record locks ---- */

static int locks_child_checks(void)
{
	struct flock l;
	int fd = open("f", O_RDWR), bad = 0;

	bad += lock(fd, F_SETLK, F_WRLCK, 15, 1) != -1 || (errno != EAGAIN && errno != EACCES);
	bad += lock(fd, F_SETLK, F_WRLCK, 0, 10) != 0;
	bad += lock(fd, F_SETLK, F_WRLCK, 20, 0) != 0;
	bad += lock_in_the_way(fd, F_GETLK, 0, 0, &l) != F_WRLCK;
	bad += l.l_start != 10 || l.l_len != 10;
	bad += l.l_pid != getppid();
	bad += lock_in_the_way(fd, F_GETLK, 0, 10, &l) != F_UNLCK;
	return bad;
}

static void locks_posix(void)
{
	int fd = open("f", O_RDWR | O_CREAT, 0600), other;

	OK(lock(fd, F_SETLK, F_WRLCK, 10, 10));
	IS(suite_child(locks_child_checks), 0);
	OK(lock(fd, F_SETLK, F_WRLCK, 0, 0)); /* what the child had ended with it */
	OK(lock(fd, F_SETLK, F_UNLCK, 0, 10));
	OK(lock(fd, F_SETLK, F_UNLCK, 20, 0));
	IS(suite_child(locks_child_checks), 0); /* the middle is left */
	other = open("f", O_RDWR);
	OK(lock(other, F_SETLK, F_WRLCK, 12, 1)); /* one's own are not in the way */
	OK(close(other));                         /* ... and any close lets all go */
	IS(suite_child(locks_child_checks) > 0, true);
	FAILS(EINVAL, lock(fd, F_SETLK, 99, 0, 0));
	FAILS(EINVAL, lock(fd, F_SETLK, F_WRLCK, -1, 1));
	OK(close(fd));
}

static int locks_shared_child(void)
{
	int fd = open("f", O_RDONLY), bad = 0;

	bad += lock(fd, F_SETLK, F_RDLCK, 0, 0) != 0;
	return bad;
}

static void locks_posix_shared(void)
{
	int fd = open("f", O_RDWR | O_CREAT, 0600), reader = open("f", O_RDONLY),
	    writer = open("f", O_WRONLY);

	FAILS(EBADF, lock(reader, F_SETLK, F_WRLCK, 0, 0));
	FAILS(EBADF, lock(writer, F_SETLK, F_RDLCK, 0, 0));
	OK(lock(fd, F_SETLK, F_RDLCK, 0, 0));
	IS(suite_child(locks_shared_child), 0);
	OK(lock(fd, F_SETLK, F_WRLCK, 0, 0));
	IS(suite_child(locks_shared_child), 1);
	OK(close(fd) + close(reader) + close(writer));
}

static void locks_ofd(void)
{
	struct flock l;
	int a = open("f", O_RDWR | O_CREAT, 0600), b = open("f", O_RDWR);

	OK(lock(a, F_OFD_SETLK, F_WRLCK, 0, 10));
	FAILS(EAGAIN, lock(b, F_OFD_SETLK, F_WRLCK, 5, 1));
	OK(lock(b, F_OFD_SETLK, F_WRLCK, 10, 1));
	IS(lock_in_the_way(b, F_OFD_GETLK, 0, 5, &l), F_WRLCK);
	IS(l.l_start == 0 && l.l_len == 10, true);
	OK(close(open("f", O_RDONLY))); /* another's close lets nothing go */
	FAILS(EAGAIN, lock(b, F_OFD_SETLK, F_WRLCK, 5, 1));
	FAILS(EAGAIN, lock(b, F_SETLK, F_WRLCK, 5, 1)); /* the two kinds know each other */
	OK(close(a));
	OK(lock(b, F_OFD_SETLK, F_WRLCK, 5, 1));
	OK(close(b));
}

/* The next one has it at once, whoever had it before. */
static void locks_closed(void)
{
	int fd, other, taken = 0;

	for (int i = 0; i < 200; i++) {
		fd = open("f", O_RDWR | O_CREAT, 0600);
		taken += flock(fd, LOCK_EX | LOCK_NB) < 0;
		taken += lock(fd, F_OFD_SETLK, F_WRLCK, 0, 0) < 0;
		(void)close(fd);
	}
	IS(taken, 0);
	fd = open("f", O_RDWR);
	OK(flock(fd, LOCK_EX));
	OK(close(dup(fd))); /* which ends nothing */
	other = open("f", O_RDWR);
	FAILS(EWOULDBLOCK, flock(other, LOCK_SH | LOCK_NB));
	FAILS(EWOULDBLOCK, flock(other, LOCK_SH | LOCK_NB));
	OK(close(fd) + close(other));
}

/* ---- waiting ---- */

static int locks_waiter(void)
{
	int fd = open("f", O_RDWR), go = open("waits", O_WRONLY | O_CREAT, 0600);

	(void)close(go);
	return lock(fd, F_SETLKW, F_WRLCK, 0, 0) == 0 ? 0 : 1;
}

static int locks_flock_waiter(void)
{
	int fd = open("f", O_RDWR), go = open("waits", O_WRONLY | O_CREAT, 0600);

	(void)close(go);
	return flock(fd, LOCK_EX) == 0 ? 0 : 1;
}

static void locks_until(const char *name)
{
	for (int i = 0; i < 1000 && access(name, F_OK) < 0; i++)
		locks_pause();
}

static void locks_wait(void)
{
	int fd = open("f", O_RDWR | O_CREAT, 0600);
	pid_t pid;

	OK(lock(fd, F_SETLK, F_WRLCK, 0, 0));
	pid = suite_start(locks_waiter);
	locks_until("waits");
	locks_pause();
	OK(lock(fd, F_SETLK, F_UNLCK, 0, 0));
	IS(suite_end(pid), 0);
	OK(flock(fd, LOCK_EX));
	OK(unlink("waits"));
	pid = suite_start(locks_flock_waiter);
	locks_until("waits");
	locks_pause();
	OK(flock(fd, LOCK_UN));
	IS(suite_end(pid), 0);
	OK(close(fd));
}

static void locks_wait_killed(void)
{
	int fd = open("f", O_RDWR | O_CREAT, 0600);
	pid_t pid;

	OK(lock(fd, F_SETLK, F_WRLCK, 0, 0));
	OK(flock(fd, LOCK_EX));
	pid = suite_start(locks_waiter);
	locks_until("waits");
	locks_pause();
	OK(kill(pid, SIGKILL));
	IS(suite_end(pid), 128 + SIGKILL);
	OK(unlink("waits"));
	pid = suite_start(locks_flock_waiter);
	locks_until("waits");
	locks_pause();
	OK(kill(pid, SIGTERM));
	IS(suite_end(pid), 128 + SIGTERM);
	OK(close(fd));
}

static volatile sig_atomic_t locks_alarms;

static void locks_alarm(int signal)
{
	locks_alarms += signal == SIGALRM;
}

static int locks_interrupted_child(void)
{
	const struct sigaction act = {.sa_handler = locks_alarm};
	int fd = open("f", O_RDWR), bad = 0;

	(void)sigaction(SIGALRM, &act, NULL);
	(void)alarm(1);
	bad += lock(fd, F_SETLKW, F_WRLCK, 0, 0) != -1 || errno != EINTR;
	(void)alarm(1);
	bad += flock(fd, LOCK_EX) != -1 || errno != EINTR;
	return bad + (locks_alarms != 2);
}

static void locks_wait_interrupted(void)
{
	int fd = open("f", O_RDWR | O_CREAT, 0600);

	OK(lock(fd, F_SETLK, F_WRLCK, 0, 0));
	OK(flock(fd, LOCK_EX));
	IS(suite_child(locks_interrupted_child), 0);
	OK(close(fd));
}

/* ---- both sides ---- */

static int locks_inner_waiter(void)
{
	int fd = open(suite_inner("f"), O_RDWR), go = open("waits", O_WRONLY | O_CREAT, 0600);

	(void)close(go);
	return lock(fd, F_SETLKW, F_WRLCK, 0, 0) == 0 && flock(fd, LOCK_EX) == 0 ? 0 : 1;
}

static void locks_both_sides(void)
{
	int here = open("f", O_RDWR | O_CREAT, 0666), there = open(suite_inner("f"), O_RDWR);
	struct flock l;

	OK(flock(here, LOCK_EX | LOCK_NB));
	FAILS(EWOULDBLOCK, flock(there, LOCK_SH | LOCK_NB));
	OK(flock(here, LOCK_UN));
	OK(flock(there, LOCK_EX | LOCK_NB));
	FAILS(EWOULDBLOCK, flock(here, LOCK_SH | LOCK_NB));
	OK(flock(there, LOCK_UN));
	OK(lock(there, F_OFD_SETLK, F_WRLCK, 5, 5));
	FAILS(EAGAIN, lock(here, F_SETLK, F_WRLCK, 0, 0));
	FAILS(EAGAIN, lock(here, F_OFD_SETLK, F_RDLCK, 9, 1));
	OK(lock(here, F_SETLK, F_WRLCK, 0, 5));
	IS(lock_in_the_way(here, F_GETLK, 0, 0, &l), F_WRLCK);
	IS(l.l_start == 5 && l.l_len == 5, true);
	FAILS(EAGAIN, lock(there, F_OFD_SETLK, F_WRLCK, 0, 1));
	IS(lock_in_the_way(there, F_OFD_GETLK, 0, 1, &l), F_WRLCK);
	IS(l.l_start == 0 && l.l_len == 5, true);
	OK(close(here));
	OK(lock_soon(there, F_OFD_SETLK, F_WRLCK, 0, 0));
	OK(close(there));
}

static void locks_both_sides_wait(void)
{
	int here = open("f", O_RDWR | O_CREAT, 0666), there = open(suite_inner("f"), O_RDWR);
	pid_t pid;

	OK(lock(there, F_OFD_SETLK, F_WRLCK, 0, 0));
	pid = suite_start(locks_waiter);
	locks_until("waits");
	locks_pause();
	OK(lock(there, F_OFD_SETLK, F_UNLCK, 0, 0));
	IS(suite_end(pid), 0);
	OK(unlink("waits"));
	OK(lock(here, F_OFD_SETLK, F_WRLCK, 0, 0));
	pid = suite_start(locks_inner_waiter);
	locks_until("waits");
	locks_pause();
	OK(lock(here, F_OFD_SETLK, F_UNLCK, 0, 0));
	IS(suite_end(pid), 0);
	OK(flock(there, LOCK_EX));
	IS(suite_child(locks_interrupted_child) > 0, true); /* it has the first, the second is interrupted */
	OK(lock(there, F_OFD_SETLK, F_WRLCK, 0, 0));
	IS(suite_child(locks_interrupted_child), 0);
	OK(close(here) + close(there));
}

const struct suite_case suite_locks[] = {
	{"locks.flock", locks_flock, 0},
	{"locks.flock_directory", locks_flock_directory, 0},
	{"locks.posix", locks_posix, 0},
	{"locks.posix_shared", locks_posix_shared, 0},
	{"locks.ofd", locks_ofd, 0},
	{"locks.closed", locks_closed, 0},
	{"locks.wait", locks_wait, 0},
	{"locks.wait_killed", locks_wait_killed, 0},
	{"locks.wait_interrupted", locks_wait_interrupted, 0},
	{"locks.both_sides", locks_both_sides, SUITE_INNER},
	{"locks.both_sides_wait", locks_both_sides_wait, SUITE_INNER},
	{NULL, NULL, 0},
};
