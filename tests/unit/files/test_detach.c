/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a tree: what is stale, what is let go, what goes on; also while others are at it. */
#include "tests/unit/files/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static int never(void *ctx, const char *name, const struct cube_files_entry *e, off_t next)
{
	(void)ctx;
	(void)name;
	(void)e;
	(void)next;
	fail_msg("an entry of a tree that is gone");
	return 1;
}

static void test_stale(void **state)
{
	const struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct cube_files_handle *h, *d, *more;
	struct cube_files_entry e;
	struct stage s;
	struct stat st;
	uint64_t f, dir;
	char buf[8];

	(void)state;
	stage_open(&s);
	stage_mkdir(&s, "d");
	stage_write(&s, "d/f", "hello");
	dir = stage_node(&s, "d");
	f = stage_node(&s, "d/f");
	assert_int_equal(cube_files_open(s.space, f, O_RDWR, &h), 0);
	assert_int_equal(cube_files_opendir(s.space, dir, &d), 0);
	assert_ptr_equal(cube_files_owner(s.space, f), &s.owner);
	stage_detach(&s);
	assert_null(cube_files_owner(s.space, f));
	assert_null(cube_files_owner(s.space, 17));
	assert_int_equal(cube_files_getattr(s.space, f, NULL, &st), -ESTALE);
	assert_int_equal(cube_files_getattr(s.space, f, h, &st), -ESTALE);
	assert_int_equal(cube_files_getattr(s.space, s.id, NULL, &st), -ESTALE);
	assert_int_equal(cube_files_lookup(s.space, dir, "f", &e), -ESTALE);
	assert_int_equal(cube_files_read(h, buf, sizeof(buf), 0), -ESTALE);
	assert_int_equal(cube_files_write(h, "x", 1, 0), -ESTALE);
	assert_int_equal(cube_files_fsync(h, false), -ESTALE);
	assert_int_equal(cube_files_fallocate(h, 0, 0, 1), -ESTALE);
	assert_int_equal(cube_files_lseek(h, 0, SEEK_DATA), -ESTALE);
	assert_int_equal(cube_files_copy_range(h, 0, h, 10, 1, 0), -ESTALE);
	assert_int_equal(cube_files_setlk(h, 1, &l, false, NULL), -ESTALE);
	assert_int_equal(cube_files_flock(h, 1, LOCK_EX, NULL), -ESTALE);
	assert_int_equal(cube_files_flush(h, 1), -ESTALE);
	assert_int_equal(cube_files_readdir(s.space, d, 0, true, never, NULL), -ESTALE);
	assert_int_equal(cube_files_open(s.space, f, O_RDONLY, &more), -ESTALE);
	cube_files_forget(s.space, f, 1);
	cube_files_release(d);
	cube_files_release(h);
	cube_files_forget(s.space, dir, 2);
	stage_close(&s);
}

/* Nothing holds the file system of a tree that is gone, whatever is still open of it. */
static void test_lets_go(void **state)
{
	struct cube_files_handle *h, *d;
	struct stage s;

	(void)state;
	stage_need_root();
	stage_open(&s);
	stage_mkdir(&s, "d");
	stage_write(&s, "d/f", "");
	assert_int_equal(cube_files_open(s.space, stage_node(&s, "d/f"), O_RDWR, &h), 0);
	assert_int_equal(cube_files_opendir(s.space, stage_node(&s, "d"), &d), 0);
	(void)close(s.fd);
	(void)close(s.top_fd);
	assert_int_equal(umount2(s.top, 0), -1);
	assert_int_equal(errno, EBUSY);
	stage_detach(&s);
	assert_int_equal(umount2(s.top, 0), 0);
	s.fd = s.top_fd = open(s.top, O_PATH | O_CLOEXEC);
	cube_files_release(h);
	cube_files_release(d);
	stage_close(&s);
}

static void test_locks_end(void **state)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct cube_files_handle *h;
	struct stage s;
	int fd;

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "");
	assert_int_equal(cube_files_open(s.space, stage_node(&s, "f"), O_RDWR, &h), 0);
	assert_int_equal(cube_files_setlk(h, 1, &l, false, NULL), 0);
	assert_int_equal(cube_files_flock(h, 1, LOCK_EX, NULL), 0);
	stage_detach(&s);
	fd = openat(s.fd, "f", O_RDWR | O_CLOEXEC);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &l), 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	(void)close(fd);
	cube_files_release(h);
	stage_close(&s);
}

/* A restore: the same seed, other nodes; the old ones stay stale. */
static void test_replaced(void **state)
{
	struct cube_files_entry e;
	struct cube_root root;
	struct stage s;
	struct stat st;
	uint64_t old, ino;

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "");
	assert_int_equal(stage_lookup(&s, "f", &e), 0);
	old = e.id;
	ino = e.st.st_ino;
	stage_detach(&s);
	root = (struct cube_root){.fd = fcntl(s.fd, F_DUPFD_CLOEXEC, 0), .generation = 2};
	assert_int_equal(cube_files_attach(s.space, &root, s.seed, NULL, &s.tree), 0);
	s.id = cube_files_root(s.tree);
	assert_int_equal(stage_lookup(&s, "f", &e), 0);
	assert_int_not_equal(e.id, old);
	assert_int_equal(e.st.st_ino, ino);
	assert_int_equal(cube_files_getattr(s.space, old, NULL, &st), -ESTALE);
	stage_close(&s);
}

static void test_references(void **state)
{
	struct cube_files *f;
	struct stage s;

	(void)state;
	stage_open(&s);
	f = cube_files_ref(s.tree);
	stage_detach(&s);
	assert_int_equal(cube_files_open_count(f), 0);
	assert_int_equal(cube_files_root(f), s.id);
	cube_files_unref(f);
	cube_files_unref(NULL);
	cube_files_space_free(NULL);
	stage_close(&s);
}

/* ---- at the same time ---- */

struct busy {
	struct stage *s;
	atomic_ullong root;
	atomic_bool stop;
	atomic_ulong served;
};

static bool expected(int r)
{
	return r >= 0 || r == -ESTALE || r == -ENOENT || r == -EEXIST || r == -ENOTEMPTY;
}

static int sum(void *ctx, const char *name, const struct cube_files_entry *e, off_t next)
{
	struct busy *b = ctx;

	(void)name;
	(void)next;
	if (e->id != 0)
		cube_files_forget(b->s->space, e->id, 1);
	return 0;
}

/* One round of what a user does in the directory @dir. */
static int busy_round(struct busy *b, uint64_t dir, const char *name)
{
	struct cube_files_space *space = b->s->space;
	struct cube_files_handle *h;
	struct cube_files_entry e, again;
	char buf[16];
	int r = cube_files_create(space, &stage_cred, dir, name, O_RDWR, 0644, &e, &h), got;

	if (r < 0)
		return r;
	got = (int)cube_files_write(h, "content", 7, 0);
	assert_true(got == 7 || got == -ESTALE);
	got = (int)cube_files_read(h, buf, sizeof(buf), 0);
	assert_true(got == 7 || got == -ESTALE);
	assert_true(expected(cube_files_getattr(space, e.id, h, &e.st)));
	assert_true(expected(cube_files_rename(space, dir, name, dir, "renamed", 0)));
	if (cube_files_lookup(space, dir, "renamed", &again) == 0)
		cube_files_forget(space, again.id, 1);
	assert_true(expected(cube_files_unlink(space, dir, "renamed")));
	assert_true(expected(cube_files_flush(h, dir)));
	cube_files_release(h);
	cube_files_forget(space, e.id, 1);
	r = cube_files_opendir(space, dir, &h);
	if (r == 0) {
		assert_true(expected(cube_files_readdir(space, h, 0, true, sum, b)));
		cube_files_release(h);
	}
	return r;
}

static void *busy_run(void *arg)
{
	static atomic_int number;
	struct busy *b = arg;
	struct cube_files_entry d;
	char name[16];

	(void)snprintf(name, sizeof(name), "n%d", atomic_fetch_add(&number, 1));
	while (!atomic_load(&b->stop)) {
		int r = cube_files_mkdir(b->s->space, &stage_cred, atomic_load(&b->root), name, 0755, &d);

		if (r == -EEXIST)
			r = cube_files_lookup(b->s->space, atomic_load(&b->root), name, &d);
		assert_true(expected(r));
		if (r < 0)
			continue;
		for (int i = 0; i < 5; i++)
			assert_true(expected(busy_round(b, d.id, name)));
		assert_true(expected(cube_files_rmdir(b->s->space, atomic_load(&b->root), name)));
		cube_files_forget(b->s->space, d.id, 1);
		atomic_fetch_add(&b->served, 1);
	}
	return NULL;
}

static void test_busy(void **state)
{
	enum { THREADS = 4, ROUNDS = 60 };
	unsigned before = stage_open_fds();
	pthread_t threads[THREADS];
	struct busy b = {.stop = false};
	struct stage s;

	(void)state;
	stage_open(&s);
	b.s = &s;
	atomic_store(&b.root, s.id);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, busy_run, &b), 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct cube_root root = {.fd = fcntl(s.fd, F_DUPFD_CLOEXEC, 0)};
		unsigned long served = atomic_load(&b.served);

		while (atomic_load(&b.served) < served + 3) /* something is done on each tree */
			(void)usleep(200);
		cube_files_detach(s.tree);
		assert_int_equal(cube_files_attach(s.space, &root, (uint64_t)i, NULL, &s.tree), 0);
		atomic_store(&b.root, cube_files_root(s.tree));
	}
	atomic_store(&b.stop, true);
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	assert_int_equal(cube_files_open_count(s.tree), 0);
	stage_close(&s);
	assert_int_equal(stage_open_fds(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stale),      cmocka_unit_test(test_lets_go),
		cmocka_unit_test(test_locks_end),  cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_references), cmocka_unit_test(test_busy),
	};

	stage_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
