/* SPDX-License-Identifier: Apache-2.0 */
/* Use, auto-pause, life times, leases. Time is what the test says. */
#include "tests/unit/ctl/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "ctl/ctl_priv.h"
#include "ctl/errlog.h"
#include "ctl/event.h"
#include "ctl/show.h"

#define S     UINT64_C(1000000000)
#define BEGIN UINT64_C(1795980186000000000)

static _Atomic uint64_t now;

static void time_begins(void)
{
	now = BEGIN;
	cube_clock_fake(&now);
}

static int setup(void **state)
{
	time_begins();
	return stage_setup(state);
}

static int teardown(void **state)
{
	int r = stage_teardown(state);

	cube_clock_fake(NULL);
	return r;
}

/* So many seconds pass, and everybody looks at the clock. */
static void pass(struct stage *s, uint64_t seconds)
{
	now += seconds * S;
	cube_domain_enter(s->d);
	for (struct cube_cube *c = cube_domain_next(s->d, 0); c != NULL;) {
		uint64_t seq = c->seq;

		cube_times_look(c); /* it may be gone afterwards */
		c = cube_domain_next(s->d, seq);
	}
	cube_domain_leave(s->d);
}

static void expect_phase(struct stage *s, struct cube_cube *c, enum cube_phase phase, const char *reason)
{
	if (!stage_phase(s, c, phase))
		fail_msg("%s is %s", c->name, cube_phase_name(c->phase));
	cube_domain_enter(s->d);
	assert_string_equal(c->reason, reason);
	cube_domain_leave(s->d);
}

/* Nothing has happened to it, and nothing is about to. */
static void expect_runs(struct stage *s, struct cube_cube *c)
{
	cube_domain_enter(s->d);
	assert_int_equal(c->phase, CUBE_RUNNING);
	assert_null(cube_own(c)->op);
	cube_domain_leave(s->d);
}

static uint64_t idle_since(struct stage *s, struct cube_cube *c)
{
	cube_domain_enter(s->d);
	uint64_t since = cube_use_idle_since(c);
	cube_domain_leave(s->d);
	return since;
}

static unsigned count_events(struct stage *s, const char *what)
{
	static char text[65536];
	char wanted[64];
	unsigned n = 0;

	(void)snprintf(wanted, sizeof(wanted), "\"event\":\"%s\"", what);
	cube_domain_enter(s->d);
	uint64_t pos = cube_events_first(s->d->events);
	ssize_t len = cube_events_read(s->d->events, &pos, text, sizeof(text) - 1);
	cube_domain_leave(s->d);
	assert_in_range(len, 0, sizeof(text) - 1);
	text[len] = '\0';
	for (const char *at = text; (at = strstr(at, wanted)) != NULL; at++)
		n++;
	return n;
}

static void expect_line(struct stage *s, struct cube_cube *c, const char *line)
{
	struct cube_buf text = CUBE_BUF(65536);

	cube_domain_enter(s->d);
	assert_int_equal(cube_show_status(c, &text), 0);
	cube_domain_leave(s->d);
	if (strstr(cube_buf_str(&text), line) == NULL)
		fail_msg("no '%s' in\n%s", line, cube_buf_str(&text));
	cube_buf_done(&text);
}

static void expect_list(struct stage *s, const char *line)
{
	struct cube_buf text = CUBE_BUF(65536);

	cube_domain_enter(s->d);
	assert_int_equal(cube_show_list(s->d, &text), 0);
	cube_domain_leave(s->d);
	if (strstr(cube_buf_str(&text), line) == NULL)
		fail_msg("no '%s' in\n%s", line, cube_buf_str(&text));
	cube_buf_done(&text);
}

static void expect_refused(struct stage *s, struct cube_cube *c, const char *line, int code, const char *part)
{
	int r = c != NULL ? stage_cube(s, c, line) : stage_root(s, line);

	if (r != code || strstr(s->err.text, part) == NULL)
		fail_msg("'%s': %s '%s', wanted %s with '%s'", line, cube_errno_name(r), s->err.text,
			 cube_errno_name(code), part);
}

/* ---- Keys and verbs ---- */

static void refused(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev");

	expect_refused(s, NULL, "create x idle=soon", -EINVAL, "idle=soon");
	expect_refused(s, NULL, "create x idle=-1", -EINVAL, "idle=-1");
	expect_refused(s, NULL, "create x lifetime=1.5", -EINVAL, "lifetime=1.5");
	expect_refused(s, NULL, "create x lifetime=4294967296", -EINVAL, "lifetime=");
	expect_refused(s, NULL, "create x at_end=sleep", -EINVAL, "destroy, stop or pause");
	expect_refused(s, c, "renew", -EINVAL, "usage: renew SECONDS");
	expect_refused(s, c, "renew 0", -EINVAL, "at least 1");
	expect_refused(s, c, "renew soon", -EINVAL, "'soon'");
	expect_refused(s, c, "lease", -EINVAL, "usage: lease SECONDS");
	expect_refused(s, c, "lease -1", -EINVAL, "'-1'");
	expect_refused(s, c, "set idle=x", -EINVAL, "idle=x");
	expect_refused(s, c, "set at_end=", -EINVAL, "at_end=");
	expect_refused(s, c, "set idle_background=maybe", -EINVAL, "yes or no");
	expect_line(s, c, "\nends -\nlease -\nidle 0\nidle_background no\nlifetime 0\nat_end destroy\n");
}

static void without_capabilities(void **state)
{
	struct stage s;

	(void)state;
	time_begins();
	stage_open(&s, "[backend mem]\nkind=mem\ncaps=-pause,-stop\n");
	struct cube_cube *c = stage_make(&s, "dev lifetime=60");

	expect_refused(&s, NULL, "create x idle=5", -EOPNOTSUPP, "idle=5");
	expect_refused(&s, NULL, "create x at_end=pause", -EOPNOTSUPP, "at_end=pause");
	expect_refused(&s, NULL, "create x at_end=stop", -EOPNOTSUPP, "at_end=stop");
	expect_refused(&s, c, "set idle=5", -EOPNOTSUPP, "pause");
	assert_int_equal(stage_cube(&s, c, "set idle=0"), 0);
	assert_int_equal(stage_cube(&s, c, "set at_end=destroy"), 0);
	stage_close(&s);
	cube_clock_fake(NULL);
}

/* ---- Idle ---- */

static void idle_pauses(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev idle=10");

	pass(s, 9);
	expect_runs(s, c);
	expect_list(s, "dev running mem base 9 - ");
	assert_int_equal(stage_exec(s, c, NULL, "true", NULL), 0);
	pass(s, 9);
	expect_runs(s, c);
	pass(s, 1);
	expect_phase(s, c, CUBE_PAUSED, "idle");
	assert_int_equal(count_events(s, "idle"), 1);
	assert_int_equal(count_events(s, "paused"), 1);
	/* Looking is no use. */
	expect_list(s, "dev paused mem base 10 - ");
	expect_line(s, c, "idle_since 2026-");
	expect_phase(s, c, CUBE_PAUSED, "idle");
	/* A command is. */
	assert_int_equal(stage_exec(s, c, NULL, "pwd", NULL), 0);
	assert_int_equal(count_events(s, "resumed"), 1);
	pass(s, 10);
	expect_phase(s, c, CUBE_PAUSED, "idle");
	assert_int_equal(stage_cube(s, c, "set resume=no"), 0);
	assert_int_equal(stage_exec(s, c, NULL, "pwd", NULL), -EHOSTDOWN - 1000);
	assert_non_null(strstr(s->err.text, "only `resume` resumes it"));
	assert_int_equal(stage_cube(s, c, "resume"), 0);
	pass(s, 9);
	expect_runs(s, c);
	assert_int_equal(stage_cube(s, c, "set idle=0"), 0);
	pass(s, 1000);
	expect_runs(s, c);
}

static void what_use_is(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev idle=10");
	struct cube_job *j = stage_start(s, c, "server", "hang");

	/* A job that runs. */
	pass(s, 100);
	expect_runs(s, c);
	assert_int_equal(idle_since(s, c), 0);
	expect_line(s, c, "idle_since -\n");
	expect_list(s, "dev running mem base 0 - ");
	assert_int_equal(stage_job(s, j, "kill KILL"), 0);
	(void)stage_end(s, j);
	/* Its stdin. */
	stage_unref(s, j);
	cube_domain_enter(s->d);
	assert_int_equal(cube_job_create(c, "fed", &j, &s->err), 0);
	cube_job_input_open(j);
	cube_domain_leave(s->d);
	pass(s, 100);
	expect_runs(s, c);
	cube_domain_enter(s->d);
	cube_job_input_close(j);
	cube_job_unref(j);
	cube_domain_leave(s->d);
	assert_int_equal(idle_since(s, c), now);
	/* A channel, a connection. */
	cube_domain_enter(s->d);
	cube_use_begin(c);
	cube_use_begin(c);
	cube_domain_leave(s->d);
	pass(s, 100);
	cube_domain_enter(s->d);
	cube_use_end(c);
	cube_domain_leave(s->d);
	pass(s, 100);
	expect_runs(s, c);
	assert_int_equal(idle_since(s, c), 0);
	cube_domain_enter(s->d);
	cube_use_end(c);
	cube_domain_leave(s->d);
	pass(s, 9);
	expect_runs(s, c);
	pass(s, 1);
	expect_phase(s, c, CUBE_PAUSED, "idle");
}

static uint64_t files;

static uint64_t files_used(void *ctx, struct cube_cube *c)
{
	(void)ctx, (void)c;
	return files;
}

static void open_files(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev idle=10");

	cube_domain_enter(s->d);
	s->d->watcher.files_used = files_used;
	files = UINT64_MAX;
	cube_domain_leave(s->d);
	pass(s, 100);
	expect_runs(s, c);
	assert_int_equal(idle_since(s, c), 0);
	cube_domain_enter(s->d);
	files = now - 3 * S; /* closed a moment ago */
	cube_domain_leave(s->d);
	assert_int_equal(idle_since(s, c), now - 3 * S);
	pass(s, 6);
	expect_runs(s, c);
	pass(s, 1);
	expect_phase(s, c, CUBE_PAUSED, "idle");
}

static void leases(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev idle=10");

	assert_int_equal(stage_cube(s, c, "lease 50"), 0);
	expect_line(s, c, "idle_since -\n");
	pass(s, 49);
	expect_runs(s, c);
	expect_line(s, c, "lease 2026-");
	pass(s, 10);
	expect_runs(s, c);
	expect_line(s, c, "lease -\n");
	assert_int_equal(idle_since(s, c), now - 9 * S);
	pass(s, 1);
	expect_phase(s, c, CUBE_PAUSED, "idle");
	assert_int_equal(stage_cube(s, c, "lease 1000"), 0);
	expect_phase(s, c, CUBE_PAUSED, "idle"); /* it is no use that needs it running */
	assert_int_equal(stage_cube(s, c, "resume"), 0);
	pass(s, 100);
	expect_runs(s, c);
	assert_int_equal(stage_cube(s, c, "lease 0"), 0);
	expect_line(s, c, "lease -\n");
	pass(s, 9);
	expect_runs(s, c);
	pass(s, 1);
	expect_phase(s, c, CUBE_PAUSED, "idle");
}

static bool left_is_known(void *ctx)
{
	return cube_own(ctx)->left_known;
}

/* What ended commands left running. */
static void background(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev idle=10");

	assert_int_equal(stage_exec(s, c, NULL, "linger 2", NULL), 0);
	pass(s, 10);
	assert_true(stage_until(s, left_is_known, c));
	expect_runs(s, c);
	assert_int_equal(idle_since(s, c), 0);
	pass(s, 100);
	expect_runs(s, c);
	assert_int_equal(count_events(s, "idle"), 0);
	/* The last of them goes. */
	assert_int_equal(stage_exec(s, c, NULL, "linger 0", NULL), 0);
	assert_int_equal(idle_since(s, c), now);
	pass(s, 10);
	expect_phase(s, c, CUBE_PAUSED, "idle");
	/* They do not count. */
	assert_int_equal(stage_exec(s, c, NULL, "linger 2", NULL), 0);
	assert_int_equal(stage_cube(s, c, "set idle_background=yes"), 0);
	pass(s, 10);
	expect_phase(s, c, CUBE_PAUSED, "idle");
}

static bool used_now(void *ctx)
{
	return ((struct cube_cube *)ctx)->used_wall == now;
}

/* A pause that fails is told, and comes again as late as the first time. */
static void pause_fails(void **state)
{
	struct stage s;

	(void)state;
	time_begins();
	stage_open(&s, "[backend mem]\nkind=mem\nfail=pause:EREMOTEIO:1\n");
	struct cube_cube *c = stage_make(&s, "dev idle=10");

	pass(&s, 10);
	assert_true(stage_until(&s, used_now, c)); /* so a failure sets it */
	assert_true(stage_phase(&s, c, CUBE_RUNNING));
	pass(&s, 9);
	expect_runs(&s, c);
	pass(&s, 1);
	expect_phase(&s, c, CUBE_PAUSED, "idle");
	stage_close(&s);
	cube_clock_fake(NULL);
}

/* ---- Life times ---- */

static bool is_gone(void *ctx)
{
	struct stage *s = ctx;

	return cube_domain_next(s->d, 0) == NULL && cube_list_empty(&cube_domain_own(s->d)->dying);
}

static void destroyed_at_the_end(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev lifetime=60");

	expect_line(s, c, "ends 2026-");
	expect_list(s, "dev running mem base 0 60 ");
	pass(s, 59);
	expect_runs(s, c);
	expect_list(s, "dev running mem base 59 1 ");
	assert_int_equal(stage_cube(s, c, "renew 100"), 0);
	pass(s, 99);
	expect_runs(s, c);
	/* Neither use nor a lease nor a pause makes it longer. */
	assert_int_equal(stage_cube(s, c, "lease 1000"), 0);
	assert_int_equal(stage_cube(s, c, "pause"), 0);
	struct cube_job *j = stage_start(s, c, "long", "hang");
	pass(s, 1);
	assert_true(stage_until(s, is_gone, s));
	assert_int_equal(stage_end(s, j), 128 + 9);
	stage_unref(s, j);
	assert_int_equal(count_events(s, "lifetime"), 1);
	assert_int_equal(count_events(s, "destroyed"), 1);
}

static void stopped_at_the_end(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev lifetime=60 at_end=stop");

	pass(s, 60);
	expect_phase(s, c, CUBE_STOPPED, "lifetime");
	expect_line(s, c, "ends -\n");
	pass(s, 1000);
	expect_phase(s, c, CUBE_STOPPED, "lifetime");
	assert_int_equal(stage_exec(s, c, NULL, "true", NULL), -EHOSTDOWN - 1000);
	assert_non_null(strstr(s->err.text, "stopped: lifetime; `start` starts it"));
	/* Another life, as long as the first. */
	assert_int_equal(stage_cube(s, c, "start"), 0);
	pass(s, 59);
	expect_runs(s, c);
	assert_int_equal(stage_cube(s, c, "pause"), 0);
	pass(s, 1);
	expect_phase(s, c, CUBE_STOPPED, "lifetime");
	assert_int_equal(count_events(s, "lifetime"), 2);
}

static void paused_at_the_end(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev at_end=pause lifetime=60");
	struct cube_job *j = stage_start(s, c, "long", "hang");

	pass(s, 60);
	expect_phase(s, c, CUBE_PAUSED, "lifetime");
	expect_line(s, c, "ends -\n");
	assert_int_equal(j->state, CUBE_JOB_RUNNING);
	stage_unref(s, j);
	pass(s, 1000);
	expect_phase(s, c, CUBE_PAUSED, "lifetime");
	assert_int_equal(stage_exec(s, c, NULL, "true", NULL), 0);
	pass(s, 59);
	expect_runs(s, c);
	pass(s, 1);
	expect_phase(s, c, CUBE_PAUSED, "lifetime");
	/* It was paused by its user when its life ended: that is as it shall be. */
	assert_int_equal(stage_cube(s, c, "renew 5"), 0);
	pass(s, 5);
	expect_phase(s, c, CUBE_PAUSED, "lifetime");
	assert_int_equal(count_events(s, "lifetime"), 3);
}

static void changed_meanwhile(void **state)
{
	struct stage *s = *state;
	struct cube_cube *c = stage_make(s, "dev lifetime=60");

	pass(s, 30);
	assert_int_equal(stage_cube(s, c, "set lifetime=60"), 0);
	pass(s, 59);
	expect_runs(s, c);
	assert_int_equal(stage_cube(s, c, "set lifetime=0"), 0);
	expect_line(s, c, "ends -\n");
	pass(s, 1000);
	expect_runs(s, c);
	assert_int_equal(stage_cube(s, c, "renew 10"), 0);
	assert_int_equal(stage_cube(s, c, "set at_end=stop"), 0);
	pass(s, 10);
	expect_phase(s, c, CUBE_STOPPED, "lifetime");
	/* Renewed it has a life, which none of its own follows. */
	assert_int_equal(stage_cube(s, c, "start"), 0);
	expect_line(s, c, "ends -\n");
}

/* A stop that fails is tried again, not at once, and told once. */
static void end_fails(void **state)
{
	struct stage s;

	(void)state;
	time_begins();
	stage_open(&s, "[backend mem]\nkind=mem\nfail=stop:EREMOTEIO:1\n");
	struct cube_cube *c = stage_make(&s, "dev lifetime=60 at_end=stop");

	pass(&s, 60);
	assert_true(stage_phase(&s, c, CUBE_RUNNING));
	pass(&s, 9);
	expect_runs(&s, c);
	pass(&s, 1);
	expect_phase(&s, c, CUBE_STOPPED, "lifetime");
	assert_int_equal(count_events(&s, "lifetime"), 1);
	stage_close(&s);
	cube_clock_fake(NULL);
}

/* ---- The daemon goes and comes back ---- */

static struct cube_cube *find(struct stage *s, const char *name)
{
	cube_domain_enter(s->d);
	struct cube_cube *c = cube_domain_find(s->d, name);
	cube_domain_leave(s->d);
	return c;
}

static bool doomed_is_gone(void *ctx)
{
	struct stage *s = ctx;

	return cube_domain_find(s->d, "doomed") == NULL && cube_list_empty(&cube_domain_own(s->d)->dying);
}

static void kept_over_a_restart(void **state)
{
	struct stage s;

	(void)state;
	time_begins();
	host_open(&s);
	(void)stage_make(&s, "doomed lifetime=60");
	(void)stage_make(&s, "stops lifetime=60 at_end=stop");
	(void)stage_make(&s, "pauses lifetime=60 at_end=pause");
	(void)stage_make(&s, "lives lifetime=600 idle=300");
	assert_int_equal(stage_cube(&s, find(&s, "lives"), "lease 500"), 0);
	assert_int_equal(stage_cube(&s, find(&s, "lives"), "set idle_background=yes"), 0);
	stage_killed(&s);
	now += 200 * S;
	stage_up(&s);
	assert_true(stage_until(&s, doomed_is_gone, &s));
	expect_phase(&s, find(&s, "stops"), CUBE_STOPPED, "lifetime");
	expect_phase(&s, find(&s, "pauses"), CUBE_PAUSED, "lifetime");
	assert_true(stage_phase(&s, find(&s, "lives"), CUBE_RUNNING));
	expect_line(&s, find(&s, "lives"), "\nidle 300\nidle_background yes\nlifetime 600\nat_end destroy\n");
	assert_int_equal(find(&s, "lives")->times.ends_wall, BEGIN + 600 * S);
	assert_int_equal(find(&s, "lives")->times.lease_wall, BEGIN + 500 * S);
	assert_int_equal(host_count(), 3);
	pass(&s, 400);
	assert_true(stage_until(&s, doomed_is_gone, &s));
	assert_null(find(&s, "lives"));
	host_close(&s);
	cube_clock_fake(NULL);
}

static bool is_linked(void *ctx)
{
	return cube_conn_ready(ctx);
}

/* Nobody was there who could have used it: the time without use begins with the daemon. */
static void idle_begins_anew(void **state)
{
	struct stage s;

	(void)state;
	time_begins();
	host_open(&s);
	(void)stage_make(&s, "dev idle=100");
	stage_down(&s);
	now += 1000 * S;
	stage_up(&s);
	assert_true(stage_until(&s, is_linked, find(&s, "dev")));
	pass(&s, 99);
	expect_runs(&s, find(&s, "dev"));
	pass(&s, 1);
	expect_phase(&s, find(&s, "dev"), CUBE_PAUSED, "idle");
	host_close(&s);
	cube_clock_fake(NULL);
}

/* A pause that outlives the daemon does not count for a command's time-out, either. */
static void pause_outlives_the_daemon(void **state)
{
	struct stage s;

	(void)state;
	time_begins();
	host_open(&s);
	struct cube_cube *c = stage_make(&s, "dev command_timeout=60");
	struct cube_job *j = stage_start(&s, c, "long", "echo begun; hang");

	stage_printed(&s, j, 6);
	stage_unref(&s, j);
	assert_int_equal(stage_cube(&s, c, "pause"), 0);
	stage_killed(&s);
	now += 1000 * S;
	stage_up(&s);
	assert_int_equal(find(&s, "dev")->phase, CUBE_PAUSED);
	assert_int_not_equal(cube_own(find(&s, "dev"))->paused_wall, 0);
	assert_int_equal(stage_cube(&s, find(&s, "dev"), "resume"), 0);
	cube_domain_enter(s.d);
	j = cube_job_find(cube_domain_find(s.d, "dev"), "long");
	assert_non_null(j);
	assert_int_equal(j->state, CUBE_JOB_RUNNING);
	assert_int_equal(cube_own(cube_domain_find(s.d, "dev"))->paused_wall, 0);
	assert_int_equal(cube_own(cube_domain_find(s.d, "dev"))->paused_owed, 0);
	cube_domain_leave(s.d);
	host_close(&s);
	cube_clock_fake(NULL);
}

static bool told_so(void *ctx)
{
	const uint64_t *wanted = ctx;

	return host_told()->calls > 0 && host_told()->wall == wanted[0] && host_told()->what == wanted[1];
}

static void expect_told(struct stage *s, uint64_t wall, enum cube_expiry what)
{
	uint64_t wanted[2] = {wall, what};

	assert_true(stage_until(s, told_so, wanted));
}

static bool is_noted(void *ctx)
{
	struct cube_buf text = CUBE_BUF(65536);
	struct cube_cube *c = ctx;
	bool yes;

	yes = cube_errlog_text(c->errors, &text) == 0 &&
	      strstr(cube_buf_str(&text), "lifetime: EREMOTEIO: ") != NULL;
	cube_buf_done(&text);
	return yes;
}

/* A backend that ends sandboxes by a clock of its own hears of every change. */
static void service_is_told(void **state)
{
	struct stage s;

	(void)state;
	time_begins();
	host_open(&s);
	*host_told() = (struct host_told){.calls = 0};
	struct cube_cube *c = stage_make(&s, "dev lifetime=60 at_end=stop");
	expect_told(&s, BEGIN + 60 * S, CUBE_EXPIRY_STOP);
	now += 10 * S;
	assert_int_equal(stage_cube(&s, c, "renew 100"), 0);
	expect_told(&s, BEGIN + 110 * S, CUBE_EXPIRY_STOP);
	assert_int_equal(stage_cube(&s, c, "set at_end=pause"), 0);
	expect_told(&s, BEGIN + 110 * S, CUBE_EXPIRY_PAUSE);
	assert_int_equal(stage_cube(&s, c, "set lifetime=0"), 0);
	expect_told(&s, 0, CUBE_EXPIRY_PAUSE);
	(void)stage_make(&s, "other");
	expect_told(&s, 0, CUBE_EXPIRY_DESTROY);
	host_told()->refuses = true;
	assert_int_equal(stage_cube(&s, c, "renew 7200"), 0);
	assert_true(stage_until(&s, is_noted, c));
	host_close(&s);
	cube_clock_fake(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(refused, setup, teardown),
		cmocka_unit_test(without_capabilities),
		cmocka_unit_test_setup_teardown(idle_pauses, setup, teardown),
		cmocka_unit_test_setup_teardown(what_use_is, setup, teardown),
		cmocka_unit_test_setup_teardown(open_files, setup, teardown),
		cmocka_unit_test_setup_teardown(leases, setup, teardown),
		cmocka_unit_test_setup_teardown(background, setup, teardown),
		cmocka_unit_test(pause_fails),
		cmocka_unit_test_setup_teardown(destroyed_at_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(stopped_at_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(paused_at_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(changed_meanwhile, setup, teardown),
		cmocka_unit_test(end_fails),
		cmocka_unit_test(kept_over_a_restart),
		cmocka_unit_test(idle_begins_anew),
		cmocka_unit_test(pause_outlives_the_daemon),
		cmocka_unit_test(service_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
