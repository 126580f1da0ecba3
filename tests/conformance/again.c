/* SPDX-License-Identifier: Apache-2.0 */
/* A second link to the same sandbox: what the first one did not see is told. */
#include <signal.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "tests/conformance/conformance.h"

static void ended_meanwhile(struct subject *s)
{
	struct bed b = bed_open(s);
	uint64_t boot = ear_wait(b.ear, HEARD_UP, 0)->id;
	const struct heard *started, *synced;
	struct run r;

	run_init(&r, b.ear, "cat; exit 9");
	r.start.in = CUBE_STDIN_PIPE;
	run_start(&r);
	(void)ear_wait(b.ear, HEARD_STARTED, r.start.job);
	assert_int_equal(cube_link_input(b.ear->link, r.start.job, "abc\n", 4), 4);
	cube_link_eof(b.ear->link, r.start.job);
	ear_close(b.ear);
	b.ear = ear_open(&s->stage, b.id);
	run_adopt(&r, b.ear);
	run_wait(&r);
	assert_int_equal(ear_wait(b.ear, HEARD_UP, 0)->id, boot);
	assert_int_equal(r.ended->end.code, 9);
	assert_string_equal(r.out, "abc\n");
	started = ear_wait(b.ear, HEARD_STARTED, r.start.job);
	synced = ear_wait(b.ear, HEARD_SYNCED, 0);
	assert_true(heard_before(started, synced));
	run_done(&r);
	bed_close(&b);
}

/* It runs on, and the new link steers it. */
static void runs_on(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r;

	run_init(&r, b.ear, "echo first\ncat");
	r.start.in = CUBE_STDIN_PIPE;
	run_start(&r);
	ear_wait_output(b.ear, r.start.job, 6);
	ear_close(b.ear);
	b.ear = ear_open(&s->stage, b.id);
	run_adopt(&r, b.ear);
	assert_true(
		heard_before(ear_wait(b.ear, HEARD_STARTED, r.start.job), ear_wait(b.ear, HEARD_SYNCED, 0)));
	assert_int_equal(cube_link_input(b.ear->link, r.start.job, "second\n", 7), 7);
	cube_link_eof(b.ear->link, r.start.job);
	assert_true(ear_wait(b.ear, HEARD_OUTPUT, r.start.job)->total >= 6);
	run_wait(&r);
	assert_string_equal(r.out, "first\nsecond\n");
	run_done(&r);
	bed_close(&b);
}

/* Kept until it is forgotten, and not longer. */
static void forgotten(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run kept, dropped;

	run_init(&kept, b.ear, "exit 4");
	run_expect(&kept, CUBE_END_EXIT, 4);
	run_init(&dropped, b.ear, "true");
	run_expect(&dropped, CUBE_END_EXIT, 0);
	cube_link_forget(b.ear->link, dropped.start.job);
	cube_link_forget(b.ear->link, 99999);
	cube_free(run_text(b.ear, "true")); /* so that the forgetting has arrived */
	for (int i = 0; i < 2; i++) {
		ear_close(b.ear);
		b.ear = ear_open(&s->stage, b.id);
		assert_int_equal(ear_wait(b.ear, HEARD_ENDED, kept.start.job)->end.code, 4);
		assert_null(ear_listen(b.ear, HEARD_ENDED, dropped.start.job, 0));
	}
	kept.ear = dropped.ear = b.ear;
	run_done(&kept);
	run_done(&dropped);
	bed_close(&b);
}

static void session_told(struct subject *s)
{
	struct bed b = bed_open(s);
	struct run r;

	run_init(&r, b.ear, "cat; cd /tmp; export LATE=1");
	r.start.session = b.session;
	r.start.in = CUBE_STDIN_PIPE;
	run_start(&r);
	(void)ear_wait(b.ear, HEARD_STARTED, r.start.job);
	cube_link_eof(b.ear->link, r.start.job);
	ear_close(b.ear);
	b.ear = ear_open(&s->stage, b.id);
	run_adopt(&r, b.ear);
	run_wait(&r);
	assert_string_equal(ear_wait(b.ear, HEARD_SESSION, b.session)->cwd, "/tmp");
	assert_true(heard_before(ear_wait(b.ear, HEARD_SESSION, b.session), r.ended));
	run_done(&r);
	expect_output(&b, b.session, "pwd; echo $LATE", "/tmp\n1\n");
	bed_close(&b);
}

const struct check checks_again[] = {
	{"ended while nobody listened", CUBE_CAP_EXEC, 0, ended_meanwhile},
	{"runs on over a new link", CUBE_CAP_EXEC, 0, runs_on},
	{"an end record is kept until it is forgotten", CUBE_CAP_EXEC, 0, forgotten},
	{"a session changed while nobody listened", CUBE_CAP_EXEC, 0, session_told},
	{.name = NULL},
};
