/* SPDX-License-Identifier: Apache-2.0 */
/* How a command ends: signals of its own and of ours, interrupts, time-outs. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "tests/conformance/conformance.h"

static struct run hang(struct bed *b, const char *text)
{
	struct run r;

	run_init(&r, b->ear, text);
	run_start(&r);
	(void)ear_wait(b->ear, HEARD_STARTED, r.start.job);
	return r;
}

static void expect_end(struct run *r, enum cube_end how, int code, int sig)
{
	run_wait(r);
	assert_string_equal(cube_end_name(r->ended->end.how), cube_end_name(how));
	assert_int_equal(r->ended->end.code, code);
	assert_int_equal(r->ended->end.signal, sig);
	run_done(r);
}

static void killed(struct subject *s)
{
	static const int signals[] = {SIGTERM, SIGKILL, SIGHUP, SIGINT};
	struct bed b = bed_open(s);

	for (size_t i = 0; i < CUBE_COUNT(signals); i++) {
		struct run r = hang(&b, s->dialect->hang);

		cube_link_kill(b.ear->link, r.start.job, signals[i]);
		expect_end(&r, CUBE_END_KILLED, 128 + signals[i], signals[i]);
	}
	bed_close(&b);
}

/* A stopped one too. */
static void stopped_and_killed(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r = hang(&b, s->dialect->hang);

	cube_link_kill(b.ear->link, r.start.job, SIGSTOP);
	assert_null(ear_listen(b.ear, HEARD_ENDED, r.start.job, 100));
	cube_link_kill(b.ear->link, r.start.job, SIGKILL);
	expect_end(&r, CUBE_END_KILLED, 137, SIGKILL);
	bed_close(&b);
}

static void stopped_and_continued(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r = cat_start(&b);

	cube_link_kill(b.ear->link, r.start.job, SIGSTOP);
	assert_int_equal(cube_link_input(b.ear->link, r.start.job, "x\n", 2), 2);
	cube_link_eof(b.ear->link, r.start.job);
	assert_null(ear_listen(b.ear, HEARD_ENDED, r.start.job, 200));
	cube_link_kill(b.ear->link, r.start.job, SIGCONT);
	expect_end(&r, CUBE_END_EXIT, 0, 0);
	bed_close(&b);
}

static void own_signal(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r = hang(&b, s->dialect->suicide);

	expect_end(&r, CUBE_END_SIGNAL, 137, SIGKILL);
	bed_close(&b);
}

static void harmless(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r = hang(&b, s->dialect->hang);

	cube_link_kill(b.ear->link, r.start.job, SIGCHLD);
	cube_link_kill(b.ear->link, r.start.job, SIGWINCH);
	cube_link_kill(b.ear->link, 99999, SIGKILL);
	assert_null(ear_listen(b.ear, HEARD_ENDED, r.start.job, 100));
	cube_link_kill(b.ear->link, r.start.job, SIGKILL);
	expect_end(&r, CUBE_END_KILLED, 137, SIGKILL);
	bed_close(&b);
}

static void interrupted(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r = hang(&b, s->dialect->hang);

	cube_link_interrupt(b.ear->link, r.start.job);
	cube_link_interrupt(b.ear->link, r.start.job);
	expect_end(&r, CUBE_END_KILLED, 130, SIGINT);
	bed_close(&b);
}

/* Two seconds for INT, two for TERM. */
static void interrupted_deaf(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r = hang(&b, s->dialect->deaf);
	uint64_t from;

	ear_wait_output(b.ear, r.start.job, 5);
	from = cube_clock_mono();
	cube_link_interrupt(b.ear->link, r.start.job);
	expect_end(&r, CUBE_END_KILLED, 137, SIGKILL);
	assert_true(cube_clock_mono() - from >= UINT64_C(3500000000));
	bed_close(&b);
}

static void timed_out(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r;

	run_init(&r, b.ear, s->dialect->hang);
	r.start.timeout_s = 1;
	run_start(&r);
	run_wait(&r);
	assert_int_equal(r.ended->end.how, CUBE_END_TIMEOUT);
	assert_int_equal(r.ended->end.code, 124);
	run_done(&r);
	bed_close(&b);
}

static void timed_out_later(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r = hang(&b, s->dialect->hang);
	struct run other;

	run_init(&other, b.ear, s->dialect->hang);
	other.start.timeout_s = 1;
	run_start(&other);
	cube_link_timeout(b.ear->link, other.start.job, 0); /* none after all */
	cube_link_timeout(b.ear->link, r.start.job, 1);
	run_wait(&r);
	assert_int_equal(r.ended->end.how, CUBE_END_TIMEOUT);
	assert_null(ear_listen(b.ear, HEARD_ENDED, other.start.job, 300));
	cube_link_kill(b.ear->link, other.start.job, SIGKILL);
	expect_end(&other, CUBE_END_KILLED, 137, SIGKILL);
	run_done(&r);
	bed_close(&b);
}

static void all_killed(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r[3];

	for (size_t i = 0; i < CUBE_COUNT(r); i++)
		r[i] = hang(&b, s->dialect->hang);
	cube_link_kill_all(b.ear->link, SIGKILL);
	for (size_t i = 0; i < CUBE_COUNT(r); i++)
		expect_end(&r[i], CUBE_END_KILLED, 137, SIGKILL);
	cube_free(run_text(b.ear, "true"));
	bed_close(&b);
}

static void frozen_inside(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r = cat_start(&b);

	cube_link_freeze(b.ear->link, true);
	assert_int_equal(cube_link_input(b.ear->link, r.start.job, "x\n", 2), 2);
	assert_null(ear_listen(b.ear, HEARD_OUTPUT, r.start.job, 200));
	cube_link_freeze(b.ear->link, false);
	cube_link_eof(b.ear->link, r.start.job);
	expect_end(&r, CUBE_END_EXIT, 0, 0);
	bed_close(&b);
}

static void destroyed(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r = hang(&b, s->dialect->hang);
	struct cube_err err;

	assert_int_equal(cube_backend_destroy(s->stage.b, b.id, NULL), 0);
	(void)ear_wait(b.ear, HEARD_DOWN, 0);
	expect_failure(cube_link_start(b.ear->link, &r.start, &err), -EHOSTDOWN, &err);
	run_done(&r);
	bed_close(&b);
}

const struct check checks_end[] = {
	{"killed", CUBE_CAP_EXEC, 0, killed},
	{"stopped, then killed", CUBE_CAP_EXEC, 0, stopped_and_killed},
	{"stopped, then continued", CUBE_CAP_EXEC, 0, stopped_and_continued},
	{"a signal of its own", CUBE_CAP_EXEC, 0, own_signal},
	{"signals that do nothing", CUBE_CAP_EXEC, 0, harmless},
	{"interrupted", CUBE_CAP_EXEC, 0, interrupted},
	{"interrupted, and does not listen", CUBE_CAP_EXEC, 0, interrupted_deaf},
	{"a time-out", CUBE_CAP_EXEC, 0, timed_out},
	{"a time-out that is changed", CUBE_CAP_EXEC, 0, timed_out_later},
	{"all killed", CUBE_CAP_EXEC, 0, all_killed},
	{"frozen from inside", CUBE_CAP_EXEC, 0, frozen_inside},
	{"destroyed while it runs", CUBE_CAP_EXEC, 0, destroyed},
	{.name = NULL},
};
