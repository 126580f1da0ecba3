/* SPDX-License-Identifier: Apache-2.0 */
/* What may be kept, and that who asks for the news has all of them. */
#include "tests/unit/files/stage.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

struct told {
	struct stage *s;
	int fd; /* of the watch */
	unsigned names, attrs;
	bool ask_too;         /* in `attr`, another thread asks for the news */
	bool early;           /* it was through before `attr` was */
	atomic_bool is_asked; /* it is through */
	pthread_t thread;
};

static void told_name(void *ctx, uint64_t dir, const char *name, bool again)
{
	struct told *t = ctx;

	(void)dir;
	(void)name;
	(void)again;
	t->names++;
}

static void *ask_run(void *arg)
{
	struct told *t = arg;

	cube_files_tell(t->s->space);
	atomic_store(&t->is_asked, true);
	return NULL;
}

static void told_attr(void *ctx, uint64_t id)
{
	struct told *t = ctx;

	(void)id;
	t->attrs++;
	if (!t->ask_too)
		return;
	t->ask_too = false;
	assert_int_equal(pthread_create(&t->thread, NULL, ask_run, t), 0);
	(void)poll(NULL, 0, 20);
	t->early = atomic_load(&t->is_asked);
}

static void told_all(void *ctx)
{
	(void)ctx;
}

static void told_ask(void *ctx, uint64_t id)
{
	(void)ctx;
	(void)id;
}

static void watch_it(struct stage *s, struct told *t)
{
	const struct cube_files_watcher to = {
		.ctx = t, .name = told_name, .attr = told_attr, .all = told_all, .ask = told_ask};

	stage_open(s);
	*t = (struct told){.s = s, .fd = cube_files_watch(s->space, &to)};
	assert_true(t->fd >= 0);
	stage_mkdir(s, "d");
	stage_write(s, "d/f", "");
}

static bool is_more(const struct told *t)
{
	struct pollfd p = {.fd = t->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void test_names(void **state)
{
	struct cube_files_entry e;
	struct told t;
	struct stage s;

	(void)state;
	watch_it(&s, &t);
	assert_int_equal(stage_lookup(&s, "d/f", &e), 0);
	assert_true(e.keep_name);
	assert_false(e.keep_attr); /* who knows what runs inside */
	assert_int_equal(stage_lookup(&s, "d/g", &e), -ENOENT);
	assert_true(e.keep_name);
	stage_write(&s, "d/g", "");
	assert_true(is_more(&t));
	cube_files_tell(s.space);
	assert_int_equal(t.names, 1);
	stage_close(&s);
}

/* Behind the last that is watched there is nothing left to be told either: who waits for news would never rest. */
static void test_last_gone(void **state)
{
	struct cube_files_entry d, f;
	struct told t;
	struct stage s;

	(void)state;
	watch_it(&s, &t);
	assert_int_equal(stage_lookup(&s, "d", &d), 0);
	assert_int_equal(stage_lookup(&s, "d/f", &f), 0);
	cube_files_forget(s.space, f.id, 1);
	cube_files_forget(s.space, d.id, 2);
	cube_files_tell(s.space);
	assert_false(is_more(&t));
	stage_close(&s);
}

/* Who asks while another tells the last there is waits until it is told. */
static void test_barrier(void **state)
{
	struct stat st;
	struct told t;
	struct stage s;
	uint64_t id;
	bool keep;

	(void)state;
	watch_it(&s, &t);
	stage_write(&s, "f", "one");
	id = stage_node(&s, "f");
	cube_files_quiet(s.tree, true);
	assert_int_equal(cube_files_getattr_keep(s.space, id, NULL, &st, &keep), 0);
	assert_true(keep);
	stage_write(&s, "f", "longer");
	t.ask_too = true;
	cube_files_tell(s.space);
	assert_int_equal(t.attrs, 1);
	(void)pthread_join(t.thread, NULL);
	assert_false(t.early);
	assert_true(atomic_load(&t.is_asked));
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_last_gone),
		cmocka_unit_test(test_barrier),
	};

	stage_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
