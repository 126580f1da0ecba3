/* SPDX-License-Identifier: Apache-2.0 */
/* Stop and start, pause and resume. */
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "tests/conformance/conformance.h"

static void drop(struct subject *s, char *id)
{
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
}

static void stop_start(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);

	assert_int_equal(cube_backend_stop(s->stage.b, id, 0, NULL, NULL), 0);
	assert_int_equal(stage_state(&s->stage, id), CUBE_IS_STOPPED);
	assert_int_equal(cube_backend_stop(s->stage.b, id, 0, NULL, NULL), 0);
	assert_int_equal(cube_backend_start(s->stage.b, id, NULL, NULL), 0);
	assert_int_equal(stage_state(&s->stage, id), CUBE_IS_RUNNING);
	assert_int_equal(cube_backend_start(s->stage.b, id, NULL, NULL), 0);
	drop(s, id);
}

static void stop_destroy(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);

	assert_int_equal(cube_backend_stop(s->stage.b, id, 0, NULL, NULL), 0);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	assert_false(stage_listed(&s->stage, id));
	cube_free(id);
}

/* What runs ends, the link breaks, a new one after the start finds another boot. */
static void stop_ends_jobs(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);
	struct ear *e = ear_open(&s->stage, id);
	uint64_t boot = ear_wait(e, HEARD_UP, 0)->id;
	struct cube_err err;
	struct ear *other = NULL;
	struct run r;

	run_init(&r, e, s->dialect->hang);
	run_start(&r);
	(void)ear_wait(e, HEARD_STARTED, r.start.job);
	assert_int_equal(cube_backend_stop(s->stage.b, id, 2, NULL, NULL), 0);
	(void)ear_wait(e, HEARD_DOWN, 0);
	expect_failure(cube_link_start(e->link, &r.start, &err), -EHOSTDOWN, &err);
	expect_failure(ear_try(&s->stage, id, &other, &err), -EHOSTDOWN, &err);
	run_done(&r);
	ear_close(e);
	assert_int_equal(cube_backend_start(s->stage.b, id, NULL, NULL), 0);
	e = ear_open(&s->stage, id);
	assert_true(ear_wait(e, HEARD_UP, 0)->id != boot);
	cube_free(run_text(e, "true"));
	ear_close(e);
	drop(s, id);
}

static void stop_unknown(struct subject *s)
{
	struct cube_err err;

	expect_failure(cube_backend_stop(s->stage.b, "no-such-sandbox", 0, NULL, &err), -ENOENT, &err);
	expect_failure(cube_backend_start(s->stage.b, "no-such-sandbox", NULL, &err), -ENOENT, &err);
}

static void pause_resume(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);

	assert_int_equal(cube_backend_pause(s->stage.b, id, NULL, NULL), 0);
	assert_int_equal(stage_state(&s->stage, id), CUBE_IS_PAUSED);
	assert_int_equal(cube_backend_pause(s->stage.b, id, NULL, NULL), 0);
	assert_int_equal(cube_backend_resume(s->stage.b, id, NULL, NULL), 0);
	assert_int_equal(stage_state(&s->stage, id), CUBE_IS_RUNNING);
	assert_int_equal(cube_backend_resume(s->stage.b, id, NULL, NULL), 0);
	drop(s, id);
}

/* Resumes it. Where the pause took the link down there is another one now, and true is returned. */
static bool resume(struct bed *b, struct run *r)
{
	bool down = ear_listen(b->ear, HEARD_DOWN, 0, 0) != NULL;

	assert_int_equal(cube_backend_resume(b->subject->stage.b, b->id, NULL, NULL), 0);
	if (!down)
		return false;
	ear_close(b->ear);
	b->ear = ear_open(&b->subject->stage, b->id);
	run_adopt(r, b->ear);
	return true;
}

static void pause_holds(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r = cat_start(&b);

	assert_int_equal(cube_backend_pause(s->stage.b, b.id, NULL, NULL), 0);
	(void)cube_link_input(b.ear->link, r.start.job, "late\n", 5);
	cube_link_eof(b.ear->link, r.start.job);
	assert_null(ear_listen(b.ear, HEARD_OUTPUT, r.start.job, 200));
	if (resume(&b, &r)) { /* it did not arrive, and is said again */
		assert_int_equal(ear_wait(b.ear, HEARD_INPUT, r.start.job)->total, 0);
		assert_int_equal(cube_link_input(b.ear->link, r.start.job, "late\n", 5), 5);
		cube_link_eof(b.ear->link, r.start.job);
	}
	run_wait(&r);
	assert_string_equal(r.out, "late\n");
	run_done(&r);
	bed_close(&b);
}

static void pause_destroy(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);

	assert_int_equal(cube_backend_pause(s->stage.b, id, NULL, NULL), 0);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	assert_false(stage_listed(&s->stage, id));
	cube_free(id);
}

static void pause_stop(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);
	struct cube_err err;

	assert_int_equal(cube_backend_pause(s->stage.b, id, NULL, NULL), 0);
	assert_int_equal(cube_backend_stop(s->stage.b, id, 0, NULL, NULL), 0);
	assert_int_equal(stage_state(&s->stage, id), CUBE_IS_STOPPED);
	expect_failure(cube_backend_pause(s->stage.b, id, NULL, &err), -EHOSTDOWN, &err);
	expect_failure(cube_backend_resume(s->stage.b, id, NULL, &err), -EHOSTDOWN, &err);
	drop(s, id);
}

/* Time for which it was paused does not count. */
static void pause_keeps_time(struct subject *s)
{
	struct bed b;
	struct run r;

	if (s->no_pause_time)
		skip();
	b = bed_open(s);
	run_init(&r, b.ear, s->dialect->hang);
	r.start.timeout_s = 1;
	run_start(&r);
	(void)ear_wait(b.ear, HEARD_STARTED, r.start.job);
	assert_int_equal(cube_backend_pause(s->stage.b, b.id, NULL, NULL), 0);
	assert_null(ear_listen(b.ear, HEARD_ENDED, r.start.job, 1300));
	cube_link_paused(b.ear->link, 1300);
	if (resume(&b, &r))
		cube_link_paused(b.ear->link, 1300);
	assert_null(ear_listen(b.ear, HEARD_ENDED, r.start.job, 300));
	run_wait(&r);
	assert_int_equal(r.ended->end.how, CUBE_END_TIMEOUT);
	run_done(&r);
	bed_close(&b);
}

static void change_limits(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);
	const struct cube_limits limits = {.pids = 100};
	struct cube_err err;

	assert_int_equal(cube_backend_limit(s->stage.b, id, &limits, &err), 0);
	assert_int_equal(cube_backend_limit(s->stage.b, id, &(struct cube_limits){.pids = 0}, &err), 0);
	assert_int_equal(stage_state(&s->stage, id), CUBE_IS_RUNNING);
	drop(s, id);
}

/* At once, and for what is started later. */
static void another_name(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);
	struct cube_err err;

	for (unsigned i = 0; i < 2; i++) {
		struct ear *e = ear_open(&s->stage, id);
		char *text;

		if (i == 0)
			assert_int_equal(cube_backend_rename(s->stage.b, id, "another-name", NULL), 0);
		text = run_text(e, "hostname");
		assert_string_equal(text, "another-name\n");
		cube_free(text);
		ear_close(e);
		assert_int_equal(cube_backend_stop(s->stage.b, id, 0, NULL, NULL), 0);
		assert_int_equal(cube_backend_start(s->stage.b, id, NULL, NULL), 0);
	}
	expect_failure(cube_backend_rename(s->stage.b, id, "no/name", &err), -EINVAL, &err);
	drop(s, id);
	expect_failure(cube_backend_rename(s->stage.b, "no-such-sandbox", "x", &err), -ENOENT, &err);
}

const struct check checks_state[] = {
	{"stop, start, and again", CUBE_CAP_STOP, 0, stop_start},
	{"stop, destroy", CUBE_CAP_STOP, 0, stop_destroy},
	{"stop ends what runs", CUBE_CAP_STOP | CUBE_CAP_EXEC, 0, stop_ends_jobs},
	{"stop and start of what is not there", CUBE_CAP_STOP, 0, stop_unknown},
	{"pause, resume, and again", CUBE_CAP_PAUSE, 0, pause_resume},
	{"nothing moves in a pause", CUBE_CAP_PAUSE | CUBE_CAP_EXEC, 0, pause_holds},
	{"pause, destroy", CUBE_CAP_PAUSE, 0, pause_destroy},
	{"pause, stop", CUBE_CAP_PAUSE | CUBE_CAP_STOP, 0, pause_stop},
	{"a pause is no time", CUBE_CAP_PAUSE | CUBE_CAP_EXEC, 0, pause_keeps_time},
	{"another host name", CUBE_CAP_RENAME | CUBE_CAP_EXEC | CUBE_CAP_STOP, 0, another_name},
	{"other limits", CUBE_CAP_PIDS, 0, change_limits},
	{.name = NULL},
};
