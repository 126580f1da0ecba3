/* SPDX-License-Identifier: Apache-2.0 */
/* A process that ends at once, and the next one, which has its nodes: each as long as the kernel has it. */
#include "tests/unit/files/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_NAME "a-name-that-is-longer-than-fits-into-the-record-of-its-node"

struct before {
	uint64_t root, dir, file;
};

/* Looks up the directory five times and its file twice, forgets one of each, and is gone. */
static void live_and_die(struct stage *s, uint32_t record, struct before *b)
{
	stage_attach(s);
	cube_files_keep_as(s->tree, record);
	b->root = s->id;
	for (int i = 0; i < 5; i++)
		b->dir = stage_node(s, "d");
	b->file = stage_node(s, "d/" LONG_NAME);
	(void)stage_node(s, "d/" LONG_NAME);
	cube_files_forget(s->space, b->dir, 3);
	cube_files_forget(s->space, b->file, 1);
	_exit(0);
}

static void take_over(struct stage *s, struct cube_keep *keep, struct before *b)
{
	uint32_t record = cube_keep_take(&keep->roots);
	struct cube_keep_root *rec = cube_keep_at(&keep->roots, record);
	int status;
	pid_t pid = fork();

	if (pid == 0)
		live_and_die(s, record, b);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	atomic_store(&rec->key, b->root);
	s->root.fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);
	s->space = cube_files_space_new(&s->options);
	assert_non_null(s->space);
	assert_int_equal(
		cube_files_attach_again(s->space, &s->root, s->seed, &s->owner, b->root, record, &s->tree),
		0);
	s->id = cube_files_root(s->tree);
	assert_int_equal(s->id, b->root);
	assert_int_equal(cube_files_restore(s->space), 0);
}

/* What the kernel had is looked up once more while it forgets what it had: then it has one, and it must be there. */
static void test_counts(void **state)
{
	struct before *b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct cube_keep *keep;
	struct cube_err err;
	struct stage s;
	struct stat st;
	int fd;

	(void)state;
	assert_true(b != MAP_FAILED);
	stage_prepare(&s, STAGE_PLAIN);
	stage_mkdir(&s, "d");
	stage_write(&s, "d/" LONG_NAME, "x");
	assert_int_equal(cube_keep_make(&fd, &err), 0);
	assert_int_equal(cube_keep_open(fd, &keep, &err), 0);
	s.options.keep = keep;
	take_over(&s, keep, b);

	/* Of the directory it has 5, and 2 on the way to the file, less 3; of the file 2 less 1. */
	assert_int_equal(stage_node(&s, "d"), b->dir);
	cube_files_forget(s.space, b->file, 1);
	assert_int_equal(cube_files_getattr(s.space, b->file, NULL, &st), -ESTALE);
	cube_files_forget(s.space, b->dir, 4);
	assert_int_equal(cube_files_getattr(s.space, b->dir, NULL, &st), 0);
	cube_files_forget(s.space, b->dir, 1);
	assert_int_equal(cube_files_getattr(s.space, b->dir, NULL, &st), -ESTALE);

	stage_close(&s);
	cube_keep_close(keep);
	(void)close(fd);
	(void)munmap(b, sizeof(*b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
	};

	stage_main();
	return cmocka_run_group_tests_name("takeover", tests, NULL, NULL);
}
