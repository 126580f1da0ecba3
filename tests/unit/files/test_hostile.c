/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile inside that changes the tree all the time: nothing of the host is ever reached. */
#include "tests/unit/files/walker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/macros.h"

enum { ROUNDS = 3000 };

struct hostile {
	struct stage s;
	atomic_bool stop;
	void (*act)(struct hostile *h);
	pthread_t thread;
};

static void *hostile_run(void *arg)
{
	struct hostile *h = arg;

	while (!atomic_load(&h->stop))
		h->act(h);
	return NULL;
}

static void hostile_start(struct hostile *h, void (*act)(struct hostile *h))
{
	h->act = act;
	assert_int_equal(pthread_create(&h->thread, NULL, hostile_run, h), 0);
}

static void hostile_end(struct hostile *h)
{
	atomic_store(&h->stop, true);
	(void)pthread_join(h->thread, NULL);
	stage_close(&h->s);
}

static bool harmless(int r)
{
	return r == -ENOENT || r == -ESTALE || r == -ENOTDIR || r == -ELOOP || r == -EEXIST || r == -EISDIR;
}

/* ---- a directory that is a link every other moment ---- */

static void swap_directory(struct hostile *h)
{
	(void)renameat2(h->s.fd, "d", h->s.fd, "evil", RENAME_EXCHANGE);
}

static void read_inside(struct hostile *h, uint64_t dir, unsigned *n)
{
	struct cube_files_handle *f;
	struct cube_files_entry e;
	char buf[64];
	ssize_t r = cube_files_lookup(h->s.space, dir, "secret", &e);

	if (r < 0) {
		assert_true(harmless((int)r));
		return;
	}
	r = cube_files_open(h->s.space, e.id, O_RDONLY, &f);
	if (r == 0) {
		r = cube_files_read(f, buf, sizeof(buf), 0);
		assert_int_equal(r, strlen("inside"));
		assert_memory_equal(buf, "inside", strlen("inside"));
		cube_files_release(f);
		++*n;
	} else {
		assert_true(harmless((int)r));
	}
	cube_files_forget(h->s.space, e.id, 1);
}

static void test_swapped_directory(void **state)
{
	static struct hostile h;
	struct cube_files_entry d, e;
	struct cube_files_handle *f;
	unsigned n = 0;
	struct stat st;
	char outside[96];

	(void)state;
	stage_open(&h.s);
	assert_int_equal(mkdirat(h.s.top_fd, "outside", 0777), 0);
	assert_int_equal(mknodat(h.s.top_fd, "outside/secret", S_IFREG | 0644, 0), 0);
	(void)snprintf(outside, sizeof(outside), "%s/outside", h.s.top);
	stage_mkdir(&h.s, "d");
	stage_write(&h.s, "d/secret", "inside");
	stage_symlink(&h.s, outside, "evil");
	hostile_start(&h, swap_directory);
	for (int i = 0; i < ROUNDS; i++) {
		int r = cube_files_lookup(h.s.space, h.s.id, "d", &d);

		if (r < 0)
			continue;
		read_inside(&h, d.id, &n);
		if (cube_files_create(h.s.space, &stage_cred, d.id, "new", O_RDWR, 0644, &e, &f) == 0) {
			cube_files_release(f);
			cube_files_forget(h.s.space, e.id, 1);
		}
		if (i % 2 == 0)
			(void)cube_files_unlink(h.s.space, d.id, "new");
		(void)cube_files_mkdir(h.s.space, &stage_cred, d.id, "newdir", 0755, &e);
		(void)cube_files_setxattr(h.s.space, d.id, "user.x", "1", 1, 0);
		st.st_mode = 0750;
		(void)cube_files_setattr(h.s.space, d.id, NULL, &st, CUBE_SET_MODE, &st);
		cube_files_forget(h.s.space, d.id, 1);
	}
	assert_true(n > 0);
	assert_int_equal(fstatat(h.s.top_fd, "outside", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0777);
	assert_int_equal(fstatat(h.s.top_fd, "outside/new", &st, 0), -1);
	assert_int_equal(fstatat(h.s.top_fd, "outside/newdir", &st, 0), -1);
	assert_int_equal(fstatat(h.s.top_fd, "outside/secret", &st, 0), 0);
	assert_int_equal(st.st_size, 0);
	hostile_end(&h);
}

/* ---- a file that is a fifo, a link, a directory every other moment ---- */

static void swap_file(struct hostile *h)
{
	static const char *const others[] = {"fifo", "link", "dir"};
	static unsigned at;

	(void)renameat2(h->s.fd, "f", h->s.fd, others[at++ / 2 % CUBE_COUNT(others)], RENAME_EXCHANGE);
}

static void test_swapped_file(void **state)
{
	static struct hostile h;
	struct cube_files_handle *f;
	struct cube_files_entry e;
	char host[96], buf[16];
	struct stat st;
	unsigned n = 0;

	(void)state;
	stage_open(&h.s);
	assert_int_equal(mknodat(h.s.top_fd, "host", S_IFREG | 0600, 0), 0);
	(void)snprintf(host, sizeof(host), "%s/host", h.s.top);
	stage_write(&h.s, "f", "inside");
	stage_symlink(&h.s, host, "link");
	stage_mkdir(&h.s, "dir");
	assert_int_equal(mkfifoat(h.s.fd, "fifo", 0666), 0);
	hostile_start(&h, swap_file);
	(void)alarm(60); /* an open that waits for a fifo's other end */
	for (int i = 0; i < ROUNDS; i++) {
		int r = cube_files_create(h.s.space, &stage_cred, h.s.id, "f", O_RDWR, 0644, &e, &f);

		/* there is always something; what was swapped between two looks is stale (the kernel asks again) */
		if (r != 0 && r != -ENXIO && r != -ELOOP && r != -EISDIR && r != -ESTALE)
			fail_msg("create says %s", cube_errno_name(r));
		if (r < 0)
			continue;
		assert_int_equal(cube_files_read(f, buf, sizeof(buf), 0), 6);
		cube_files_release(f);
		st.st_mode = 0666;
		r = cube_files_setattr(h.s.space, e.id, NULL, &st, CUBE_SET_MODE | CUBE_SET_MTIME_NOW, &st);
		assert_true(r == 0 || harmless(r));
		cube_files_forget(h.s.space, e.id, 1);
		n++;
	}
	(void)alarm(0);
	assert_true(n > 0);
	assert_int_equal(fstatat(h.s.top_fd, "host", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	hostile_end(&h);
}

/* ---- directories that move up and down under links that climb ---- */

static void move_about(struct hostile *h)
{
	(void)renameat(h->s.fd, "a/b/c", h->s.fd, "c");
	(void)renameat2(h->s.fd, "a/link", h->s.fd, "a/b", RENAME_EXCHANGE);
	(void)renameat(h->s.fd, "c", h->s.fd, "a/b/c");
	(void)renameat2(h->s.fd, "a/link", h->s.fd, "a/b", RENAME_EXCHANGE);
}

static void test_moved(void **state)
{
	static const char *const paths[] = {"a/b/c/up", "a/b/c/mixed", "c/up", "a/link/c/up",
					    "a/b/c/abs/link"};
	static struct hostile h;
	static struct walker w;
	struct cube_files_entry e;
	unsigned n = 0;

	(void)state;
	stage_open(&h.s);
	stage_mkdir(&h.s, "a");
	stage_mkdir(&h.s, "a/b");
	stage_mkdir(&h.s, "a/b/c");
	stage_symlink(&h.s, "/", "a/link");
	stage_symlink(&h.s, "../../..", "a/b/c/up");
	stage_symlink(&h.s, "../../../a/b/../../../..", "a/b/c/mixed");
	stage_symlink(&h.s, "/a/b", "a/b/c/abs");
	hostile_start(&h, move_about);
	for (int i = 0; i < ROUNDS; i++) {
		int r;

		w = (struct walker){.s = &h.s, .at = {h.s.id}};
		r = walker_run(&w, paths[(unsigned)i % CUBE_COUNT(paths)], &e); /* fails if it gets above */
		assert_true(r == 0 || harmless(r));
		n += r == 0;
	}
	assert_true(n > 0);
	hostile_end(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_swapped_directory),
		cmocka_unit_test(test_swapped_file),
		cmocka_unit_test(test_moved),
	};

	stage_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
