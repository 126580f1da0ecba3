/* SPDX-License-Identifier: Apache-2.0 */
/* What outlives a worker: records are there in whole or not at all, and are found again by who maps the memory next. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fs/keep/keep.h"

struct stage {
	int fd;
	struct cube_keep *k;
	struct cube_err err;
};

static int setup(void **state)
{
	struct stage *s = calloc(1, sizeof(*s));

	*state = s;
	return cube_keep_make(&s->fd, &s->err) < 0 || cube_keep_open(s->fd, &s->k, &s->err) < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	struct stage *s = *state;

	cube_keep_close(s->k);
	close(s->fd);
	free(s);
	return 0;
}

static void again(struct stage *s)
{
	cube_keep_close(s->k);
	assert_int_equal(cube_keep_open(s->fd, &s->k, &s->err), 0);
}

static void test_records(void **state)
{
	struct stage *s = *state;
	struct cube_keep_node *n;
	uint32_t a = cube_keep_take(&s->k->nodes), b = cube_keep_take(&s->k->nodes);

	assert_int_not_equal(a, b);
	n = cube_keep_at(&s->k->nodes, b);
	n->obj = 77;
	n->slot = 3;
	atomic_store(&n->key, 5);
	/* a was taken and never filled: whoever comes next finds it free */
	again(s);
	n = cube_keep_at(&s->k->nodes, b);
	assert_int_equal(atomic_load(&n->key), 5);
	assert_int_equal(n->obj, 77);
	assert_int_equal(cube_keep_used(&s->k->nodes), 2);
	assert_int_equal(cube_keep_take(&s->k->nodes), a);
	assert_int_equal(cube_keep_take(&s->k->nodes), 2);
	cube_keep_give(&s->k->nodes, b);
	assert_int_equal(atomic_load(&n->key), 0);
	assert_int_equal(cube_keep_take(&s->k->nodes), b);
	cube_keep_give(&s->k->nodes, CUBE_KEEP_NONE);
}

static void test_full(void **state)
{
	struct stage *s = *state;
	uint32_t max = s->k->marks.max;

	for (uint32_t i = 0; i < max; i++)
		assert_int_equal(cube_keep_take(&s->k->marks), i);
	assert_int_equal(cube_keep_take(&s->k->marks), CUBE_KEEP_NONE);
	assert_int_equal(cube_keep_used(&s->k->marks), max);
	cube_keep_give(&s->k->marks, 17);
	assert_int_equal(cube_keep_take(&s->k->marks), 17);
	assert_int_equal(cube_keep_take(&s->k->marks), CUBE_KEEP_NONE);
}

/* Whoever is killed between any two stores leaves each record whole or free. */
static void test_killed(void **state)
{
	struct stage *s = *state;

	for (int round = 0; round < 20; round++) {
		pid_t pid = fork();
		unsigned live = 0;

		if (pid == 0) {
			struct cube_keep *k;
			struct cube_err err;

			if (cube_keep_open(s->fd, &k, &err) < 0)
				_exit(1);
			for (uint64_t i = 1;; i++) {
				uint32_t at = cube_keep_take(&k->nodes);
				struct cube_keep_node *n = cube_keep_at(&k->nodes, at);

				n->obj = i;
				n->slot = (uint32_t)(i * 3);
				atomic_store(&n->key, i * 7);
				if (i % 3 != 0)
					cube_keep_give(&k->nodes, at);
			}
		}
		usleep(2000); /* anywhere in it */
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		again(s);
		for (uint32_t i = 0; i < cube_keep_used(&s->k->nodes); i++) {
			const struct cube_keep_node *n = cube_keep_at(&s->k->nodes, i);
			uint64_t key = atomic_load(&n->key);

			if (key == 0)
				continue;
			live++;
			assert_int_equal(key, n->obj * 7);
			assert_int_equal(n->slot, (uint32_t)(n->obj * 3));
		}
		assert_true(live <= cube_keep_used(&s->k->nodes));
	}
}

static void test_texts(void **state)
{
	struct cube_keep_text t = {.fd = -1};
	char in[1000], out[1000];
	int fd;

	(void)state;
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (char)('a' + i % 26);
	assert_int_equal(cube_keep_text_put(&t, 0, in, 100), 0);
	assert_int_equal(t.fd, -1); /* it fits */
	assert_int_equal(cube_keep_text_get(&t, 0, out, 100), 0);
	assert_memory_equal(in, out, 100);
	assert_int_equal(cube_keep_text_put(&t, 100, in + 100, 900), 0);
	assert_true(t.fd >= 0);
	assert_int_equal(cube_keep_text_get(&t, 0, out, 1000), 0);
	assert_memory_equal(in, out, 1000);
	assert_int_equal(cube_keep_text_get(&t, 500, out, 501), -EIO);
	assert_int_equal(cube_keep_text_put(&t, 3, "XYZ", 3), 0);
	assert_int_equal(cube_keep_text_get(&t, 2, out, 5), 0);
	assert_memory_equal(out, "cXYZg", 5);
	fd = t.fd;
	t.fd = CUBE_KEEP_LOST; /* what it began with is not what it is */
	assert_int_equal(cube_keep_text_get(&t, 0, out, 10), -EIO);
	t.fd = fd;
	cube_keep_text_drop(&t);
	assert_int_equal(t.fd, -1);
	assert_int_equal(cube_keep_text_get(&t, 100, out, 61), -EIO);
}

static void test_strangers(void **state)
{
	struct stage *s = *state;
	struct cube_keep *k = NULL;
	uint64_t other = 1;
	int fd = memfd_create("other", MFD_CLOEXEC);

	assert_int_equal(cube_keep_open(fd, &k, &s->err), -EPROTO);
	assert_int_equal(ftruncate(fd, (off_t)s->k->size), 0);
	assert_int_equal(cube_keep_open(fd, &k, &s->err), -EPROTO);
	assert_int_equal(pwrite(s->fd, &other, sizeof(other), 0), sizeof(other));
	assert_int_equal(cube_keep_open(s->fd, &k, &s->err), -EPROTO);
	assert_null(k);
	assert_int_equal(cube_keep_open(-1, &k, &s->err), -EPROTO);
	close(fd);
}

static void test_settings(void **state)
{
	struct stage *s = *state;
	const struct cube_keep_setting *first;
	char key[16];

	cube_keep_set(s->k, "a", 1);
	cube_keep_set(s->k, "b", 2);
	cube_keep_set(s->k, "a", 3);
	cube_keep_set(s->k, "a key that is longer than any setting's", 4);
	again(s);
	first = s->k->head->settings;
	assert_string_equal(first[0].key, "a");
	assert_int_equal(atomic_load(&first[0].value), 3);
	assert_string_equal(first[1].key, "b");
	assert_int_equal(atomic_load(&first[2].there), 0);
	for (int i = 0; i < CUBE_KEEP_SETTINGS + 2; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		cube_keep_set(s->k, key, 5);
	}
	assert_string_equal(first[CUBE_KEEP_SETTINGS - 1].key, "k29");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_records, setup, teardown),
		cmocka_unit_test_setup_teardown(test_settings, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
		cmocka_unit_test(test_texts),
		cmocka_unit_test_setup_teardown(test_strangers, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
