/* SPDX-License-Identifier: Apache-2.0 */
/* A domain for tests. */
#include "tests/unit/ctl/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/base/log.h"
#include "ctl/ctl_priv.h"

static const char stage_conf[] = "[backend mem]\nkind=mem\n";

static void *stage_loop(void *ctx)
{
	struct stage *s = ctx;

	cube_loop_run(s->loop);
	return NULL;
}

void stage_up(struct stage *s)
{
	struct cube_domain_options o = {
		.state_dir = s->dir, .conf = s->conf, .uid = getuid(), .gid = getgid()};

	cube_log_setup(-1, CUBE_LOG_ERROR);
	if (s->loop == NULL)
		s->loop = cube_loop_new();
	assert_non_null(s->loop);
	o.loop = s->loop;
	if (cube_domain_open(&o, &s->d, &s->err) < 0)
		fail_msg("cube_domain_open: %s", s->err.text);
	assert_int_equal(pthread_create(&s->thread, NULL, stage_loop, s), 0);
	assert_int_equal(cube_domain_start(s->d, &s->err), 0);
}

void stage_open(struct stage *s, const char *conf)
{
	*s = (struct stage){0};
	stage_open_on(s, conf[0] != '\0' ? conf : stage_conf);
}

void stage_open_on(struct stage *s, const char *text)
{
	(void)snprintf(s->dir, sizeof(s->dir), "/tmp/cubefs-ctl-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	if (cube_conf_parse(text, strlen(text), "test", &s->conf, &s->err) < 0)
		fail_msg("configuration: %s", s->err.text);
	stage_up(s);
}

/* A test that fails inside the lock jumps out with it. */
static void stage_unlock(struct stage *s)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 2;
	(void)pthread_mutex_timedlock(&s->d->lock, &until);
	cube_domain_leave(s->d);
}

void stage_down(struct stage *s)
{
	stage_unlock(s);
	cube_domain_shutdown(s->d, 5000);
	cube_loop_stop(s->loop);
	assert_int_equal(pthread_join(s->thread, NULL), 0);
	cube_domain_close(s->d);
	s->d = NULL;
	if (s->keep_loop)
		return;
	cube_loop_free(s->loop);
	s->loop = NULL;
}

/* ---- As if killed ---- */

#define KEPT_MAX 64

struct kept_file {
	char path[192];
	char *data;
	size_t len;
};

static const char *const kept_names[] = {"cube.json", "env", "journal"};

static void keep_file(struct stage *s, struct kept_file *files, unsigned *n, const char *uid,
		      const char *name)
{
	struct kept_file *f = &files[*n];
	struct cube_buf text = CUBE_BUF((size_t)64 << 20);

	assert_true(*n < KEPT_MAX);
	(void)snprintf(f->path, sizeof(f->path), "%s/cubes/%s/%s", s->dir, uid, name);
	if (cube_file_read(AT_FDCWD, f->path, &text) == 0) {
		f->data = cube_buf_steal(&text, &f->len);
		++*n;
	}
	cube_buf_done(&text);
}

/* Output is written by the far side into the very same files: those stay. */
void stage_killed(struct stage *s)
{
	struct kept_file files[KEPT_MAX] = {{.len = 0}};
	unsigned n = 0;

	cube_domain_enter(s->d);
	for (struct cube_cube *c = cube_domain_next(s->d, 0); c != NULL; c = cube_domain_next(s->d, c->seq))
		for (size_t i = 0; i < CUBE_COUNT(kept_names); i++)
			keep_file(s, files, &n, c->uid, kept_names[i]);
	cube_domain_leave(s->d);
	stage_down(s);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(cube_state_replace(AT_FDCWD, files[i].path, files[i].data, files[i].len), 0);
		cube_free(files[i].data);
	}
}

void stage_close(struct stage *s)
{
	s->keep_loop = false;
	if (s->d != NULL)
		stage_down(s);
	cube_conf_free(s->conf);
	assert_int_equal(cube_file_remove_tree(AT_FDCWD, s->dir), 0);
}

int stage_setup(void **state)
{
	struct stage *s = calloc(1, sizeof(*s));

	stage_open(s, "");
	*state = s;
	return 0;
}

int stage_teardown(void **state)
{
	stage_close(*state);
	free(*state);
	return 0;
}

/* ---- Waiting ---- */

bool stage_until(struct stage *s, bool (*holds)(void *ctx), void *ctx)
{
	const struct timespec pause = {.tv_nsec = 500000};

	for (unsigned i = 0; i < 40000; i++) {
		cube_domain_enter(s->d);
		bool yes = holds(ctx);
		cube_domain_leave(s->d);
		if (yes)
			return true;
		(void)nanosleep(&pause, NULL);
	}
	return false;
}

struct phase_wait {
	struct cube_cube *c;
	enum cube_phase phase;
};

static bool phase_holds(void *ctx)
{
	const struct phase_wait *w = ctx;

	return w->c->phase == w->phase && w->c->doing == NULL;
}

bool stage_phase(struct stage *s, struct cube_cube *c, enum cube_phase phase)
{
	return stage_until(s, phase_holds, &(struct phase_wait){c, phase});
}

/* ---- Verbs ---- */

struct verb_wait {
	struct cube_verb_call call;
	bool done;
	int code;
};

static void verb_done(struct cube_verb_call *call, int code)
{
	struct verb_wait *w = cube_container_of(call, struct verb_wait, call);

	assert_false(w->done);
	w->done = true;
	w->code = code;
}

static bool verb_is_done(void *ctx)
{
	return ((struct verb_wait *)ctx)->done;
}

int stage_verb(struct stage *s, enum cube_scope scope, void *object, const char *line)
{
	struct verb_wait w = {
		.call = {.domain = s->d,
			 .scope = scope,
			 .object = object,
			 .by = {.pid = getpid(), .uid = getuid(), .gid = getgid(), .local = true},
			 .done = verb_done}};

	cube_domain_enter(s->d);
	cube_verb_start(&w.call, line, strlen(line));
	cube_domain_leave(s->d);
	if (!stage_until(s, verb_is_done, &w))
		fail_msg("'%s' does not end", line);
	s->err = w.call.err;
	(void)snprintf(s->answer, sizeof(s->answer), "%s", w.call.answer);
	return w.code;
}

struct cube_cube *stage_make(struct stage *s, const char *line)
{
	char verb[512], name[80];
	struct cube_cube *c;

	(void)snprintf(verb, sizeof(verb), "create %s", line);
	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(line, " "), line);
	if (stage_root(s, verb) < 0)
		fail_msg("%s: %s", verb, s->err.text);
	cube_domain_enter(s->d);
	c = cube_domain_find(s->d, name);
	cube_domain_leave(s->d);
	assert_non_null(c);
	return c;
}

int stage_mkdir(struct stage *s, const char *name, struct cube_cube **ret)
{
	struct cube_caller by = {.pid = getpid()};

	cube_domain_enter(s->d);
	int r = cube_cube_create(s->d, &by, name, NULL, 0, ret, &s->err);
	cube_domain_leave(s->d);
	return r;
}

/* ---- Commands ---- */

struct cube_job *stage_run(struct stage *s, struct cube_cube *c, const char *session, const char *text)
{
	struct cube_job *j = NULL;

	cube_domain_enter(s->d);
	struct cube_session *in = session != NULL ? cube_session_find(c, session) : cube_session_main(c);
	assert_non_null(in);
	if (cube_session_run(in, text, strlen(text), &j, &s->err) < 0)
		j = NULL;
	cube_domain_leave(s->d);
	return j;
}

struct cube_job *stage_start(struct stage *s, struct cube_cube *c, const char *name, const char *text)
{
	struct cube_job *j = NULL;

	cube_domain_enter(s->d);
	int r = cube_job_create(c, name, &j, &s->err);
	if (r == 0)
		r = cube_job_submit(j, false, text, strlen(text), &s->err);
	cube_domain_leave(s->d);
	if (r < 0)
		fail_msg("job '%s': %s", name != NULL ? name : "-", s->err.text);
	return j;
}

void stage_go(struct stage *s, struct cube_cube *c, const char *file)
{
	char text[80];

	(void)snprintf(text, sizeof(text), "write /workspace/%s", file);
	struct cube_job *j = stage_start(s, c, file, text);
	assert_int_equal(stage_end(s, j), 0);
	stage_unref(s, j);
}

static bool job_is_over(void *ctx)
{
	return ((struct cube_job *)ctx)->state == CUBE_JOB_ENDED;
}

int stage_end(struct stage *s, struct cube_job *j)
{
	int code;

	if (!stage_until(s, job_is_over, j))
		fail_msg("job '%s' does not end", j->name);
	cube_domain_enter(s->d);
	code = j->end.code;
	cube_domain_leave(s->d);
	return code;
}

struct print_wait {
	struct cube_job *j;
	uint64_t n;
};

static bool has_printed(void *ctx)
{
	const struct print_wait *w = ctx;

	return w->j->total >= w->n;
}

void stage_printed(struct stage *s, struct cube_job *j, uint64_t n)
{
	if (!stage_until(s, has_printed, &(struct print_wait){j, n}))
		fail_msg("job '%s' does not print", j->name);
}

char *stage_output(struct stage *s, struct cube_job *j, enum cube_stream stream)
{
	struct cube_spool_view v;
	struct cube_output *o;
	char *text;
	uint64_t size;

	cube_domain_enter(s->d);
	o = cube_job_view(j, &v);
	cube_domain_leave(s->d);
	if (o == NULL)
		return cube_strdup("");
	size = cube_spool_size(&v, stream);
	text = cube_calloc(1, size + 1);
	assert_non_null(text);
	assert_int_equal(cube_spool_pread(&v, stream, text, size, 0), size);
	cube_output_unref(o);
	return text;
}

void stage_unref(struct stage *s, struct cube_job *j)
{
	cube_domain_enter(s->d);
	cube_job_unref(j);
	cube_domain_leave(s->d);
}

int stage_exec(struct stage *s, struct cube_cube *c, const char *session, const char *text, char **out)
{
	struct cube_job *j = stage_run(s, c, session, text);
	int code;

	if (j == NULL)
		return s->err.code - 1000;
	code = stage_end(s, j);
	if (out != NULL)
		*out = stage_output(s, j, CUBE_STREAM_OUTPUT);
	stage_unref(s, j);
	return code;
}

char *stage_file(struct stage *s, const char *path)
{
	struct cube_buf text = CUBE_BUF((size_t)64 << 20);
	char full[256];

	(void)snprintf(full, sizeof(full), "%s/%s", s->dir, path);
	if (cube_file_read(AT_FDCWD, full, &text) < 0) {
		cube_buf_done(&text);
		return NULL;
	}
	return cube_buf_steal(&text, NULL);
}
