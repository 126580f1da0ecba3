/* SPDX-License-Identifier: Apache-2.0 */
/* What may be kept, and that who asks for the news has all of them. */
#include "tests/unit/files/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"

struct told {
	struct stage *s;
	int fd; /* of the watch */
	unsigned names, attrs, alls;
	bool again;           /* of the last name */
	uint64_t attr;        /* the last */
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
	t->again = again;
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

	t->attr = id;
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
	struct told *t = ctx;

	t->alls++;
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

/* And a file of which the attributes can be kept. */
static uint64_t watch_file(struct stage *s, struct told *t)
{
	uint64_t id;

	watch_it(s, t);
	stage_write(s, "f", "one");
	id = stage_node(s, "f");
	cube_files_quiet(s->tree, true);
	return id;
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
	id = watch_file(&s, &t);
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

/* More than the kernel has room for: all is told, and what is looked at from then on can be kept as before. */
static void test_overflow(void **state)
{
	struct cube_files_entry e;
	struct told t;
	struct stage s;
	char room[32];
	FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
	unsigned long most;

	(void)state;
	assert_non_null(f);
	assert_non_null(fgets(room, sizeof(room), f));
	(void)fclose(f);
	most = strtoul(room, NULL, 10);
	watch_it(&s, &t);
	assert_int_equal(stage_lookup(&s, "d/f", &e), 0);
	for (unsigned long i = 0; i <= most / 2;
	     i++) { /* two events each, of which no two that follow are the same */
		assert_int_equal(renameat(s.fd, "d/f", s.fd, "d/g"), 0);
		assert_int_equal(renameat(s.fd, "d/g", s.fd, "d/f"), 0);
	}
	cube_files_tell(s.space);
	assert_int_equal(t.alls, 1);
	assert_true(t.attrs > 0);
	t.names = 0;
	assert_int_equal(stage_lookup(&s, "d/h", &e), -ENOENT);
	assert_true(e.keep_name);
	stage_write(&s, "d/h", "");
	cube_files_tell(s.space);
	assert_int_equal(t.names, 1);
	assert_int_equal(t.alls, 1);
	stage_close(&s);
}

/* Without memory for a piece of news all is told; never is less told than has happened. */
static void test_no_memory(void **state)
{
	struct cube_files_entry e;
	struct told t;
	struct stage s;
	unsigned alls = 0;

	(void)state;
	watch_it(&s, &t);
	for (unsigned long nth = 1; t.alls >= alls; nth++) {
		const unsigned names = t.names;

		alls = t.alls + 1;
		assert_int_equal(stage_lookup(&s, "d/g", &e), -ENOENT);
		assert_true(e.keep_name);
		stage_write(&s, "d/g", "");
		cube_alloc_fail_at(nth);
		cube_files_tell(s.space);
		cube_alloc_fail_at(0);
		assert_true(t.names > names || t.alls == alls);
		assert_int_equal(unlinkat(s.fd, "d/g", 0), 0);
		cube_files_tell(s.space);
	}
	assert_true(alls > 1);
	stage_close(&s);
}

#define TRIES 24

/* Without memory for a watch nothing is said to be kept: what is said to be is told. */
static void test_no_watch(void **state)
{
	struct told t;
	struct stage s;
	unsigned kept = 0, missed = 0;

	(void)state;
	watch_it(&s, &t);
	for (unsigned long nth = 1; nth <= TRIES; nth++) {
		struct cube_files_entry e = {.id = 0};
		const unsigned told = t.names + t.alls;
		char dir[32], path[48];
		uint64_t d;
		int r;

		(void)snprintf(dir, sizeof(dir), "d/%lu", nth);
		stage_mkdir(&s, dir);
		d = stage_node(&s, dir);
		cube_files_tell(s.space);
		cube_alloc_fail_at(nth);
		r = cube_files_lookup(s.space, d, "name", &e);
		cube_alloc_fail_at(0);
		if (r != -ENOENT || !e.keep_name) {
			missed++;
			continue;
		}
		kept++;
		(void)snprintf(path, sizeof(path), "%s/name", dir);
		stage_write(&s, path, "");
		cube_files_tell(s.space);
		assert_true(t.names + t.alls > told);
	}
	assert_true(kept > 0 && missed > 0);
	stage_close(&s);
}

/* What the name of a directory that went is told as: not only to be asked for again, since an answer from before may be
 * on its way to whoever asked again. */
static void test_directories(void **state)
{
	struct cube_files_entry e;
	struct told t;
	struct stage s;

	(void)state;
	watch_it(&s, &t);
	stage_mkdir(&s, "d/e");
	assert_int_equal(stage_lookup(&s, "d/e", &e), 0);
	assert_int_equal(unlinkat(s.fd, "d/e", AT_REMOVEDIR), 0);
	cube_files_tell(s.space);
	assert_int_equal(t.names, 1);
	assert_false(t.again);
	stage_mkdir(&s, "d/e");
	cube_files_tell(s.space);
	assert_false(t.again);
	stage_write(&s, "d/new", "");
	cube_files_tell(s.space);
	assert_true(t.again);
	stage_close(&s);
}

/* The directory d, of which f is known. */
static uint64_t watch_d(struct stage *s, struct told *t)
{
	struct cube_files_entry e;

	watch_it(s, t);
	assert_int_equal(stage_lookup(s, "d/f", &e), 0);
	return stage_node(s, "d");
}

/* The kernel asks for a name's end. */
static void own_unlink(struct stage *s, uint64_t dir, const char *name)
{
	struct cube_files_own own;

	cube_files_own_begin(s->space, &own, dir, name, false);
	assert_int_equal(cube_files_unlink(s->space, dir, name), 0);
	cube_files_own_end(s->space, &own, true);
}

/* ... for another name, */
static void own_rename(struct stage *s, uint64_t dir, const char *name, const char *new_name)
{
	struct cube_files_own from, to;

	cube_files_own_begin(s->space, &from, dir, name, false);
	cube_files_own_begin(s->space, &to, dir, new_name, true);
	assert_int_equal(cube_files_rename(s->space, dir, name, dir, new_name, 0), 0);
	cube_files_own_end(s->space, &from, true);
	cube_files_own_end(s->space, &to, true);
}

/* ... for a new one; @early, its event is read before the end. */
static void own_mkdir(struct stage *s, uint64_t dir, const char *name, bool early)
{
	const struct cube_files_cred c = {.uid = getuid(), .gid = getgid()};
	struct cube_files_own own;
	struct cube_files_entry e;

	cube_files_own_begin(s->space, &own, dir, name, true);
	assert_int_equal(cube_files_mkdir(s->space, &c, dir, name, 0755, &e), 0);
	if (early)
		cube_files_tell(s->space);
	cube_files_own_end(s->space, &own, true);
}

static unsigned told_of(struct stage *s, struct told *t)
{
	unsigned n;

	cube_files_tell(s->space);
	n = t->names;
	t->names = 0;
	return n;
}

/* What the kernel does itself it knows, and is not told, whenever the event is read; what others do to the same name it
 * is, before and behind it. */
static void test_own(void **state)
{
	struct told t;
	struct stage s;
	uint64_t d;

	(void)state;
	d = watch_d(&s, &t);
	own_unlink(&s, d, "f");
	assert_int_equal(told_of(&s, &t), 0);
	for (int early = 0; early < 2; early++) {
		own_mkdir(&s, d, "own", early != 0);
		own_rename(&s, d, "own", "owned");
		assert_int_equal(told_of(&s, &t), 0);
		assert_int_equal(unlinkat(s.fd, "d/owned", AT_REMOVEDIR), 0);
		assert_int_equal(told_of(&s, &t), 1);
	}
	stage_write(&s, "d/f", "");
	assert_int_equal(unlinkat(s.fd, "d/f", 0), 0);
	assert_int_equal(told_of(&s, &t), 2);
	stage_write(&s, "d/f", "");
	assert_int_equal(cube_files_unlink(s.space, d, "f"), 0); /* another front end */
	assert_int_equal(told_of(&s, &t), 2);
	stage_write(&s, "d/f", ""); /* others, we, others */
	assert_int_equal(unlinkat(s.fd, "d/f", 0), 0);
	stage_write(&s, "d/f", "");
	assert_int_equal(told_of(&s, &t), 3);
	own_unlink(&s, d, "f");
	stage_write(&s, "d/f", "");
	assert_int_equal(unlinkat(s.fd, "d/f", 0), 0);
	assert_int_equal(told_of(&s, &t), 2);
	stage_close(&s);
}

/* Refused, while another did it: nobody else says so. */
static void test_own_refused(void **state)
{
	struct cube_files_own own;
	struct told t;
	struct stage s;
	uint64_t d;

	(void)state;
	d = watch_d(&s, &t);
	cube_files_own_begin(s.space, &own, d, "f", false);
	assert_int_equal(unlinkat(s.fd, "d/f", 0), 0);
	assert_int_equal(told_of(&s, &t), 0);
	cube_files_own_end(s.space, &own, false);
	assert_int_equal(t.names, 1);
	assert_false(t.again);
	t.names = 0;
	cube_files_own_begin(s.space, &own, d, "f", false); /* and nothing happened */
	assert_int_equal(cube_files_unlink(s.space, d, "f"), -ENOENT);
	cube_files_own_end(s.space, &own, false);
	stage_write(&s, "d/f", "");
	assert_int_equal(unlinkat(s.fd, "d/f", 0), 0);
	assert_int_equal(told_of(&s, &t), 2);
	stage_close(&s);
}

/* Without an event of its own it does not take another's, later. */
static void test_own_silent(void **state)
{
	struct told t;
	struct stage s;
	uint64_t d;

	(void)state;
	d = watch_d(&s, &t);
	assert_int_equal(linkat(s.fd, "d/f", s.fd, "d/same", 0), 0);
	assert_int_equal(told_of(&s, &t), 1);
	own_rename(&s, d, "f", "same"); /* both stay */
	assert_int_equal(unlinkat(s.fd, "d/f", 0), 0);
	assert_int_equal(told_of(&s, &t), 1);
	stage_close(&s);
}

/* Who has had it open for both outside may have it mapped, for ever. */
static void test_mapped(void **state)
{
	struct cube_files_handle *h;
	struct stat st;
	struct told t;
	struct stage s;
	uint64_t id;
	bool keep;

	(void)state;
	id = watch_file(&s, &t);
	assert_int_equal(cube_files_open(s.space, id, O_RDWR, &h), 0);
	assert_int_equal(cube_files_getattr_keep(s.space, id, NULL, &st, &keep), 0);
	assert_false(keep);
	cube_files_release(h);
	cube_files_tell(s.space);
	assert_int_equal(cube_files_getattr_keep(s.space, id, NULL, &st, &keep), 0);
	assert_true(keep);
	assert_int_equal(cube_files_open(s.space, id, O_RDWR, &h), 0);
	cube_files_mapped(h);
	cube_files_release(h);
	cube_files_tell(s.space);
	assert_int_equal(cube_files_getattr_keep(s.space, id, NULL, &st, &keep), 0);
	assert_false(keep);
	stage_close(&s);
}

/* What is cached of the data holds from one open to the next, both while the same nothing runs inside. */
static void test_pages(void **state)
{
	struct told t;
	struct stage s;
	uint64_t id;

	(void)state;
	id = watch_file(&s, &t);
	assert_false(cube_files_holds_pages(s.space, id));
	assert_true(cube_files_holds_pages(s.space, id));
	cube_files_quiet(s.tree, false);
	assert_false(cube_files_holds_pages(s.space, id));
	assert_false(cube_files_holds_pages(s.space, id));
	cube_files_quiet(s.tree, true);
	assert_false(cube_files_holds_pages(s.space, id)); /* it was cached while something ran */
	assert_true(cube_files_holds_pages(s.space, id));
	cube_files_quiet(s.tree, false); /* what ran between two opens is over when the second asks */
	cube_files_quiet(s.tree, true);
	assert_false(cube_files_holds_pages(s.space, id));
	assert_true(cube_files_holds_pages(s.space, id));
	cube_files_keep_nothing(s.tree);
	assert_false(cube_files_holds_pages(s.space, id));
	assert_false(cube_files_holds_pages(s.space, id + 1)); /* nobody's */
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),       cmocka_unit_test(test_last_gone),
		cmocka_unit_test(test_barrier),     cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_no_memory),   cmocka_unit_test(test_no_watch),
		cmocka_unit_test(test_directories), cmocka_unit_test(test_own),
		cmocka_unit_test(test_own_refused), cmocka_unit_test(test_own_silent),
		cmocka_unit_test(test_mapped),      cmocka_unit_test(test_pages),
	};

	stage_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
