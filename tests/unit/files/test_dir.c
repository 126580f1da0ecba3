/* SPDX-License-Identifier: Apache-2.0 */
/* Listings: numbers as stat gives them, offsets, counts, what vanishes, large directories. */
#include "tests/unit/files/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/macros.h"

struct taken {
	struct {
		char name[64];
		struct cube_files_entry e;
		off_t next;
	} list[64];
	unsigned n, limit; /* limit 0: none */
	uint64_t refused;
};

static int take(void *ctx, const char *name, const struct cube_files_entry *e, off_t next)
{
	struct taken *t = ctx;

	if (t->limit != 0 && t->n == t->limit) {
		t->refused = e->id;
		return 1;
	}
	assert_true(t->n < CUBE_COUNT(t->list));
	(void)snprintf(t->list[t->n].name, sizeof(t->list[0].name), "%s", name);
	t->list[t->n].e = *e;
	t->list[t->n++].next = next;
	return 0;
}

static void fill(const struct stage *s)
{
	stage_mkdir(s, "d");
	stage_mkdir(s, "d/sub");
	stage_write(s, "d/file", "content");
	stage_symlink(s, "/x", "d/link");
	assert_int_equal(mkfifoat(s->fd, "d/fifo", 0600), 0);
}

static void check_numbers(struct stage *s, const char *dir, const struct taken *t)
{
	struct cube_files_entry e;
	char path[96];

	for (unsigned i = 0; i < t->n; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, t->list[i].name);
		assert_int_equal(stage_lookup(s, path, &e), 0);
		assert_int_equal(t->list[i].e.st.st_ino, e.st.st_ino);
		assert_int_equal(t->list[i].e.st.st_mode & S_IFMT, e.st.st_mode & S_IFMT);
	}
}

static void list_all(enum stage_kind kind, bool plus)
{
	struct taken t = {.n = 0};
	struct cube_files_handle *h;
	struct stage s;

	stage_prepare(&s, kind);
	if (kind == STAGE_OVERLAY) {
		assert_int_equal(mkdirat(s.top_fd, "lower/d", 0755), 0);
		assert_int_equal(mkdirat(s.top_fd, "lower/d/low", 0755), 0);
		assert_int_equal(mknodat(s.top_fd, "lower/d/lowfile", S_IFREG | 0644, 0), 0);
	}
	stage_attach(&s);
	if (kind == STAGE_OVERLAY)
		stage_write(&s, "d/upper", "");
	else
		fill(&s);
	assert_int_equal(cube_files_opendir(s.space, stage_node(&s, "d"), &h), 0);
	assert_int_equal(cube_files_readdir(s.space, h, 0, plus, take, &t), 0);
	assert_int_equal(t.n, kind == STAGE_OVERLAY ? 5 : 6);
	check_numbers(&s, "d", &t);
	for (unsigned i = 0; i < t.n; i++) {
		bool dot = t.list[i].name[0] == '.';

		assert_int_equal(t.list[i].e.id != 0, plus && !dot);
		if (t.list[i].e.id != 0)
			cube_files_forget(s.space, t.list[i].e.id, 1);
	}
	cube_files_release(h);
	stage_close(&s);
}

static void test_numbers(void **state)
{
	(void)state;
	list_all(STAGE_PLAIN, false);
	list_all(STAGE_PLAIN, true);
	list_all(STAGE_DISK, false);
}

static void test_numbers_overlay(void **state)
{
	(void)state;
	stage_need_root();
	list_all(STAGE_OVERLAY, false);
	list_all(STAGE_OVERLAY, true);
}

static void test_plus(void **state)
{
	struct taken t = {.n = 0, .limit = 3};
	struct cube_files_handle *h;
	struct stage s;
	struct stat st;

	(void)state;
	stage_open(&s);
	fill(&s);
	assert_int_equal(cube_files_opendir(s.space, stage_node(&s, "d"), &h), 0);
	assert_int_equal(cube_files_readdir(s.space, h, 0, true, take, &t), 0);
	assert_int_equal(t.n, 3);
	for (unsigned i = 0; i < t.n; i++) {
		if (t.list[i].e.id == 0)
			continue;
		assert_int_equal(cube_files_getattr(s.space, t.list[i].e.id, NULL, &st), 0);
		assert_int_equal(st.st_ino, t.list[i].e.st.st_ino);
		assert_int_equal(st.st_mode, t.list[i].e.st.st_mode);
		cube_files_forget(s.space, t.list[i].e.id, 1);
		assert_int_equal(cube_files_getattr(s.space, t.list[i].e.id, NULL, &st), -ESTALE);
	}
	assert_true(t.refused != 0); /* not counted */
	assert_int_equal(cube_files_getattr(s.space, t.refused, NULL, &st), -ESTALE);
	cube_files_release(h);
	stage_close(&s);
}

static int refuse(void *ctx, const char *name, const struct cube_files_entry *e, off_t next)
{
	(void)ctx;
	(void)name;
	(void)e;
	(void)next;
	return 1;
}

/* Who starts again gets the directory as it is now, also when nothing was taken the first time. */
static void test_start_again(void **state)
{
	struct taken t = {.n = 0};
	struct cube_files_handle *h;
	struct stage s;

	(void)state;
	stage_open(&s);
	assert_int_equal(cube_files_opendir(s.space, s.id, &h), 0);
	assert_int_equal(cube_files_readdir(s.space, h, 0, false, refuse, NULL), 0);
	stage_write(&s, "new", "");
	assert_int_equal(cube_files_readdir(s.space, h, 0, false, take, &t), 0);
	assert_int_equal(t.n, 3);
	cube_files_release(h);
	stage_close(&s);
}

/* Taken one at a time, from each offset once more, and from the start again. */
static void test_offsets(void **state)
{
	struct taken all = {.n = 0}, one, again = {.n = 0};
	struct cube_files_handle *h;
	struct stage s;

	(void)state;
	stage_open(&s);
	fill(&s);
	assert_int_equal(cube_files_opendir(s.space, stage_node(&s, "d"), &h), 0);
	assert_int_equal(cube_files_readdir(s.space, h, 0, false, take, &all), 0);
	for (unsigned i = 0; i < all.n; i++) {
		one = (struct taken){.limit = 1};
		assert_int_equal(
			cube_files_readdir(s.space, h, i == 0 ? 0 : all.list[i - 1].next, false, take, &one),
			0);
		assert_int_equal(one.n, 1);
		assert_string_equal(one.list[0].name, all.list[i].name);
		assert_int_equal(one.list[0].next, all.list[i].next);
	}
	one = (struct taken){.limit = 1};
	assert_int_equal(cube_files_readdir(s.space, h, all.list[1].next, false, take, &one), 0); /* back */
	assert_string_equal(one.list[0].name, all.list[2].name);
	one = (struct taken){.limit = 0};
	assert_int_equal(cube_files_readdir(s.space, h, all.list[all.n - 1].next, false, take, &one), 0);
	assert_int_equal(one.n, 0);
	stage_write(&s, "d/later", ""); /* from the start: read again */
	assert_int_equal(cube_files_readdir(s.space, h, 0, false, take, &again), 0);
	assert_int_equal(again.n, all.n + 1);
	cube_files_release(h);
	stage_close(&s);
}

struct remover {
	const struct stage *s;
	unsigned taken;
};

/* All but the first that is given are removed before they are: it may be any of them. */
static int take_and_remove(void *ctx, const char *name, const struct cube_files_entry *e, off_t next)
{
	struct remover *r = ctx;
	bool dot = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;

	(void)next;
	assert_true(e->st.st_ino != 0);
	assert_true(dot || r->taken == 0);
	(void)unlinkat(r->s->fd, "d/file", 0);
	(void)unlinkat(r->s->fd, "d/sub", AT_REMOVEDIR);
	(void)unlinkat(r->s->fd, "d/link", 0);
	(void)unlinkat(r->s->fd, "d/fifo", 0);
	r->taken++;
	return 0;
}

static void test_vanished(void **state)
{
	struct cube_files_handle *h;
	struct remover r;
	struct stage s;

	(void)state;
	stage_open(&s);
	fill(&s);
	r = (struct remover){.s = &s};
	assert_int_equal(cube_files_opendir(s.space, stage_node(&s, "d"), &h), 0);
	assert_int_equal(cube_files_readdir(s.space, h, 0, true, take_and_remove, &r), 0);
	assert_true(r.taken == 2 || r.taken == 3);
	cube_files_release(h);
	stage_close(&s);
}

static void test_wrong_handles(void **state)
{
	struct taken t = {.n = 0};
	struct cube_files_handle *h;
	struct stage s;
	char c;

	(void)state;
	stage_open(&s);
	stage_write(&s, "f", "");
	assert_int_equal(cube_files_open(s.space, stage_node(&s, "f"), O_RDONLY, &h), 0);
	assert_int_equal(cube_files_readdir(s.space, h, 0, false, take, &t), -ENOTDIR);
	cube_files_release(h);
	assert_int_equal(cube_files_opendir(s.space, s.id, &h), 0);
	assert_int_equal(cube_files_read(h, &c, 1, 0), -EISDIR);
	assert_int_equal(cube_files_write(h, &c, 1, 0), -EISDIR);
	assert_int_equal(cube_files_fsyncdir(h, false), 0);
	cube_files_release(h);
	stage_close(&s);
}

static int count(void *ctx, const char *name, const struct cube_files_entry *e, off_t next)
{
	unsigned long *sum = ctx;
	unsigned long i;

	(void)next;
	assert_true(e->st.st_ino != 0);
	if (sscanf(name, "entry-%lu", &i) == 1) {
		sum[0]++;
		sum[1] += i;
	}
	return 0;
}

static void test_large(void **state)
{
	enum { LARGE = 100000 };
	unsigned long sum[2] = {0, 0};
	struct cube_files_handle *h;
	struct stage s;
	char name[32];

	(void)state;
	stage_open(&s);
	for (int i = 0; i < LARGE; i++) {
		(void)snprintf(name, sizeof(name), "entry-%d", i);
		assert_int_equal(mknodat(s.fd, name, S_IFREG | 0600, 0), 0);
	}
	assert_int_equal(cube_files_opendir(s.space, s.id, &h), 0);
	assert_int_equal(cube_files_readdir(s.space, h, 0, false, count, sum), 0);
	assert_int_equal(sum[0], LARGE);
	assert_int_equal(sum[1], (unsigned long)LARGE * (LARGE - 1) / 2);
	cube_files_release(h);
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),       cmocka_unit_test(test_numbers_overlay),
		cmocka_unit_test(test_plus),          cmocka_unit_test(test_offsets),
		cmocka_unit_test(test_start_again),   cmocka_unit_test(test_vanished),
		cmocka_unit_test(test_wrong_handles), cmocka_unit_test(test_large),
	};

	stage_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
