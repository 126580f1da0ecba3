/* SPDX-License-Identifier: Apache-2.0 */
/* A loop, a state directory, an instance of a backend. */
#include "tests/unit/backends/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"

#define SECTION "backend test"

static void *stage_loop(void *arg)
{
	cube_loop_run(arg);
	return NULL;
}

static void stage_conf(struct stage *s, const char *conf)
{
	cube_auto_str text = cube_asprintf("[" SECTION "]\n%s\n", conf != NULL ? conf : "");
	struct cube_err err;

	if (cube_conf_parse(text, strlen(text), "the test's configuration", &s->conf, &err) < 0)
		fail_msg("%s", err.text);
}

static void stage_end(struct stage *s)
{
	if (s->loop != NULL)
		cube_loop_free(s->loop);
	cube_conf_free(s->conf);
	(void)cube_file_remove_tree(AT_FDCWD, s->dir);
}

int stage_open(struct stage *s, const struct cube_backend_ops *ops, const char *conf, struct cube_err *err)
{
	int r = 0;

	*s = (struct stage){.dir = "/tmp/cubefs-stage.XXXXXX"};
	assert_non_null(mkdtemp(s->dir));
	stage_conf(s, conf);
	if (ops->prepare != NULL)
		r = ops->prepare(s->dir, cube_conf_find(s->conf, SECTION), err);
	if (r == 0)
		s->loop = cube_loop_new();
	if (s->loop == NULL) {
		stage_end(s);
		return r < 0 ? r : cube_fail(err, -ENOMEM, "no loop");
	}
	s->env = (struct cube_backend_env){
		.name = "test",
		.state_dir = s->dir,
		.loop = s->loop,
		.conf = cube_conf_find(s->conf, SECTION),
	};
	r = cube_backend_open(ops, &s->env, &s->b, err);
	if (r < 0) {
		stage_end(s);
		return r;
	}
	assert_int_equal(pthread_create(&s->thread, NULL, stage_loop, s->loop), 0);
	s->running = true;
	return 0;
}

struct last {
	char id[CUBE_ID_MAX + 1];
};

static void last_each(void *ctx, const struct cube_info *info)
{
	struct last *last = ctx;

	(void)snprintf(last->id, sizeof(last->id), "%s", info->id);
}

/* A test that failed leaves its sandboxes, and those of some backends outlive the instance. */
static void stage_sweep(struct stage *s)
{
	struct last last;

	do {
		last.id[0] = '\0';
		(void)cube_backend_list(s->b, NULL, last_each, &last, NULL);
	} while (last.id[0] != '\0' && cube_backend_destroy(s->b, last.id, NULL) == 0);
}

void stage_close(struct stage *s)
{
	stage_sweep(s);
	cube_loop_stop(s->loop);
	assert_int_equal(pthread_join(s->thread, NULL), 0);
	cube_backend_close(s->b);
	stage_end(s);
}

struct cube_spec stage_spec(char uid[17])
{
	uint64_t n = 0;

	assert_int_equal(getrandom(&n, sizeof(n), 0), sizeof(n));
	(void)snprintf(uid, 17, "%016" PRIx64, n);
	return (struct cube_spec){.uid = uid, .name = "box"};
}

char *stage_create(struct stage *s, const char *template)
{
	char uid[17];
	struct cube_spec spec = stage_spec(uid);
	struct cube_err err;
	char *id = NULL;

	spec.template = template;
	if (cube_backend_create(s->b, &spec, NULL, &id, &err) < 0)
		fail_msg("create: %s", err.text);
	return id;
}

enum cube_state stage_state(struct stage *s, const char *id)
{
	struct cube_info info;
	struct cube_err err;

	if (cube_backend_inspect(s->b, id, &info, &err) < 0)
		fail_msg("inspect: %s", err.text);
	return info.state;
}

struct search {
	const char *id;
	unsigned hits;
};

static void search_each(void *ctx, const struct cube_info *info)
{
	struct search *search = ctx;

	search->hits += strcmp(info->id, search->id) == 0 ? 1 : 0;
}

bool stage_listed(struct stage *s, const char *id)
{
	struct search search = {.id = id};
	struct cube_err err;

	if (cube_backend_list(s->b, NULL, search_each, &search, &err) < 0)
		fail_msg("list: %s", err.text);
	assert_true(search.hits <= 1);
	return search.hits == 1;
}

static void import_log(void *ctx, const char *line)
{
	(void)ctx;
	assert_true(line[0] != '\0' && strchr(line, '\n') == NULL);
}

static void import_progress(void *ctx, unsigned percent)
{
	(void)ctx;
	assert_true(percent <= 100);
}

int stage_import(struct stage *s, const char *name, const char *source, int fd, struct cube_err *err)
{
	const struct cube_template_order o = {
		.name = name, .source = source, .fd = fd, .log = import_log, .progress = import_progress};

	return cube_backend_template_import(s->b, &o, NULL, err);
}
