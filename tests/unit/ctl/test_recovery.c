/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon goes and comes back: everything that was promised is there, what runs goes on. */
#include "tests/unit/ctl/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "ctl/ctl_priv.h"

static struct cube_cube *find(struct stage *s, const char *name)
{
	cube_domain_enter(s->d);
	struct cube_cube *c = cube_domain_find(s->d, name);
	cube_domain_leave(s->d);
	return c;
}

static struct cube_job *find_job(struct stage *s, struct cube_cube *c, const char *name)
{
	cube_domain_enter(s->d);
	struct cube_job *j = cube_job_find(c, name);
	if (j != NULL)
		cube_job_ref(j);
	cube_domain_leave(s->d);
	assert_non_null(j);
	return j;
}

static void expect_output(struct stage *s, struct cube_job *j, enum cube_stream stream, const char *want)
{
	char *out = stage_output(s, j, stream);

	assert_string_equal(out, want);
	cube_free(out);
}

static void expect(struct stage *s, struct cube_cube *c, const char *text, const char *want)
{
	char *out;
	int code = stage_exec(s, c, NULL, text, &out);

	if (code < -1)
		fail_msg("'%s': %s", text, s->err.text);
	assert_int_equal(code, 0);
	assert_string_equal(out, want);
	cube_free(out);
}

/* Both ways to go: in order and killed. */
typedef void (*go_fn)(struct stage *s);

/* A sandbox with all that can be said of one, commands in two sessions, a job that ended and one that runs.
 */
static void fill(struct stage *s)
{
	struct cube_cube *c =
		stage_make(s, "dev memory=64M label.a='b c' env.GREETING=hello command_timeout=77");
	struct cube_session *in = NULL;
	struct cube_job *j;

	expect(s, c, "cd /tmp; export X=1; echo first", "first\n");
	assert_int_equal(stage_cube(s, c, "set resume=no"), 0);
	cube_domain_enter(s->d);
	assert_int_equal(cube_session_create(c, "side \xff", &in, &s->err), 0);
	cube_domain_leave(s->d);
	assert_int_equal(stage_verb(s, CUBE_SCOPE_SESSION, in, "set patience=3"), 0);
	assert_int_equal(stage_exec(s, c, "side \xff", "cd /workspace; export Y=2", NULL), 0);
	j = stage_start(s, c, "na\nme\xfe", "echo out; err err; exit 4");
	assert_int_equal(stage_end(s, j), 4);
	stage_unref(s, j);
	j = stage_start(s, c, "server", "echo up; await go; err down; exit 5");
	stage_printed(s, j, 3);
	stage_unref(s, j);
	assert_int_equal(stage_root(s, "rename dev prod"), 0);
}

static void check_cube(struct stage *s, struct cube_cube *c)
{
	struct cube_session *in = cube_session_find(c, "side \xff");

	assert_int_equal(c->phase, CUBE_RUNNING);
	assert_int_equal(c->limits.memory, 64 << 20);
	assert_int_equal(c->command_timeout_s, 77);
	assert_false(c->resume);
	assert_string_equal(cube_map_get(c->labels, "a"), "b c");
	assert_non_null(in);
	assert_int_equal(in->patience_s, 3);
	assert_string_equal(cube_session_main(c)->latest->name, "1");
	assert_null(find(s, "dev"));
}

static void check_jobs(struct stage *s, struct cube_cube *c)
{
	struct cube_job *j = find_job(s, c, "1");

	expect_output(s, j, CUBE_STREAM_OUTPUT, "first\n");
	stage_unref(s, j);
	j = find_job(s, c, "na\nme\xfe");
	assert_int_equal(j->state, CUBE_JOB_ENDED);
	assert_int_equal(j->end.code, 4);
	expect_output(s, j, CUBE_STREAM_STDOUT, "out\n");
	expect_output(s, j, CUBE_STREAM_STDERR, "err\n");
	stage_unref(s, j);
	stage_go(s, c, "go");
	j = find_job(s, c, "server");
	assert_int_equal(stage_end(s, j), 5);
	assert_int_equal(j->end.how, CUBE_END_EXIT);
	expect_output(s, j, CUBE_STREAM_STDOUT, "up\n");
	expect_output(s, j, CUBE_STREAM_STDERR, "down\n");
	stage_unref(s, j);
}

static void everything_is_there(go_fn go)
{
	struct cube_cube *c;
	struct stage s;

	host_open(&s);
	fill(&s);
	go(&s);
	stage_up(&s);
	c = find(&s, "prod");
	assert_non_null(c);
	check_cube(&s, c);
	check_jobs(&s, c);
	/* The shells live on as well, and know what changes in the environment. */
	expect(&s, c, "pwd; echo $X $GREETING; export PATH=mine", "/tmp\n1 hello\n");
	cube_domain_enter(s.d);
	assert_int_equal(cube_cube_set_env(c, "NEW=1", 6, &s.err), 0);
	cube_domain_leave(s.d);
	expect(&s, c, "echo $NEW [$GREETING] $PATH", "1 [] mine\n");
	assert_string_equal(c->last_job->name, "7");
	assert_int_equal(stage_root(&s, "destroy prod"), 0);
	assert_int_equal(host_count(), 0);
	host_close(&s);
}

static void after_an_end(void **state)
{
	(void)state;
	everything_is_there(stage_down);
}

static void after_a_kill(void **state)
{
	(void)state;
	everything_is_there(stage_killed);
}

/* Accepted and not started: it runs with the next daemon. */
static void what_waited_runs(void **state)
{
	struct stage s;
	struct cube_job *j;

	(void)state;
	host_open(&s);
	struct cube_cube *c = stage_make(&s, "dev");
	struct cube_job *first = stage_run(&s, c, NULL, "echo 1; await go");

	cube_domain_enter(s.d);
	assert_int_equal(cube_job_create(c, "next", &j, &s.err), 0);
	cube_domain_leave(s.d);
	assert_int_equal(stage_job(&s, j, "session main"), 0);
	cube_domain_enter(s.d);
	assert_int_equal(cube_job_submit(j, false, "echo 2", 6, &s.err), 0);
	assert_int_equal(j->state, CUBE_JOB_WAITING);
	cube_job_unref(j);
	cube_domain_leave(s.d);
	stage_unref(&s, first);
	stage_killed(&s);
	stage_up(&s);
	c = find(&s, "dev");
	stage_go(&s, c, "go");
	j = find_job(&s, c, "next");
	assert_int_equal(stage_end(&s, j), 0);
	expect_output(&s, j, CUBE_STREAM_OUTPUT, "2\n");
	stage_unref(&s, j);
	j = find_job(&s, c, "1");
	assert_int_equal(j->end.code, 0);
	expect_output(&s, j, CUBE_STREAM_OUTPUT, "1\n");
	stage_unref(&s, j);
	host_close(&s);
}

/* It ended while nobody was there: the far side kept the record. */
static void ends_meanwhile(void **state)
{
	struct stage s;

	(void)state;
	host_open(&s);
	struct cube_cube *c = stage_make(&s, "dev");
	struct cube_job *j = stage_start(&s, c, "x", "sleep 20; echo done; exit 9");

	stage_unref(&s, j);
	stage_killed(&s);

	/* The sandbox goes on without us: its loop needs a turn. */
	stage_up(&s);
	c = find(&s, "dev");
	j = find_job(&s, c, "x");
	assert_int_equal(stage_end(&s, j), 9);
	expect_output(&s, j, CUBE_STREAM_STDOUT, "done\n");
	stage_unref(&s, j);
	/* Told once, and not again by the next one. */
	stage_down(&s);
	stage_up(&s);
	j = find_job(&s, find(&s, "dev"), "x");
	assert_int_equal(j->end.code, 9);
	stage_unref(&s, j);
	host_close(&s);
}

static ssize_t feed(struct stage *s, struct cube_job *j, const char *text)
{
	cube_domain_enter(s->d);
	ssize_t n = cube_job_input(j, text, strlen(text), &s->err);
	cube_domain_leave(s->d);
	return n;
}

static bool takes_input(void *ctx)
{
	return cube_job_own(ctx)->reported;
}

/* An input that stays open does so for the next daemon; one whose writer went with the mount has ended. */
static void stdin_goes_on(void **state)
{
	struct cube_job *stream, *plain;
	struct stage s;

	(void)state;
	host_open(&s);
	struct cube_cube *c = stage_make(&s, "dev");

	cube_domain_enter(s.d);
	assert_int_equal(cube_job_create(c, "stream", &stream, &s.err), 0);
	assert_int_equal(cube_job_create(c, "plain", &plain, &s.err), 0);
	cube_job_input_open(plain);
	cube_domain_leave(s.d);
	assert_int_equal(stage_job(&s, stream, "stdin stream"), 0);
	assert_int_equal(feed(&s, plain, "begun\n"), 6);
	cube_domain_enter(s.d);
	assert_int_equal(cube_job_submit(stream, false, "cat; echo end", 13, &s.err), 0);
	assert_int_equal(cube_job_submit(plain, false, "cat; echo end", 13, &s.err), 0);
	cube_domain_leave(s.d);
	assert_int_equal(feed(&s, stream, "early\n"), 6);
	stage_printed(&s, stream, 6);
	stage_printed(&s, plain, 6);
	stage_unref(&s, stream);
	stage_unref(&s, plain);
	stage_killed(&s);
	stage_up(&s);
	c = find(&s, "dev");
	stream = find_job(&s, c, "stream");
	plain = find_job(&s, c, "plain");
	assert_int_equal(stage_end(&s, plain), 0);
	expect_output(&s, plain, CUBE_STREAM_STDOUT, "begun\nend\n");
	assert_true(stage_until(&s, takes_input, stream));
	assert_int_equal(feed(&s, stream, "late\n"), 5);
	assert_int_equal(stage_job(&s, stream, "eof"), 0);
	assert_int_equal(stage_end(&s, stream), 0);
	expect_output(&s, stream, CUBE_STREAM_STDOUT, "early\nlate\nend\n");
	stage_unref(&s, stream);
	stage_unref(&s, plain);
	host_close(&s);
}

/* Pieces of an input at every place that it passes, when the daemon is killed and when the link alone breaks. */
#define UNDER_WAY 150000
static void stdin_under_way(void **state)
{
	static char data[6 * UNDER_WAY + 1];
	struct cube_job *j;
	struct stage s;
	char *out;

	(void)state;
	for (size_t i = 0; i < sizeof(data) - 1; i++)
		data[i] = (char)('a' + (i / 7 + i / 4999) % 26);
	host_open(&s);
	struct cube_cube *c = stage_make(&s, "dev");
	cube_domain_enter(s.d);
	assert_int_equal(cube_job_create(c, "x", &j, &s.err), 0);
	cube_domain_leave(s.d);
	assert_int_equal(stage_job(&s, j, "stdin stream"), 0);
	cube_domain_enter(s.d);
	assert_int_equal(cube_job_submit(j, false, "await go; cat", 13, &s.err), 0);
	cube_domain_leave(s.d);
	for (unsigned i = 0; i < 6; i++) {
		char piece[UNDER_WAY + 1];

		memcpy(piece, data + (size_t)i * UNDER_WAY, UNDER_WAY);
		piece[UNDER_WAY] = '\0';
		assert_int_equal(feed(&s, j, piece), UNDER_WAY);
		assert_int_equal(cube_job_input_total(j), (i + 1) * UNDER_WAY);
		if (i % 2 == 1) {
			expect(&s, c, "echo x; drop", "x\n");
			continue;
		}
		stage_unref(&s, j);
		stage_killed(&s);
		stage_up(&s);
		c = find(&s, "dev");
		j = find_job(&s, c, "x");
		assert_int_equal(cube_job_input_total(j), (i + 1) * UNDER_WAY);
	}
	assert_int_equal(stage_job(&s, j, "eof"), 0);
	stage_go(&s, c, "go");
	assert_int_equal(stage_end(&s, j), 0);
	out = stage_output(&s, j, CUBE_STREAM_STDOUT);
	assert_string_equal(out, data);
	cube_free(out);
	stage_unref(&s, j);
	host_close(&s);
}

static void states_are_kept(void **state)
{
	struct stage s;

	(void)state;
	host_open(&s);
	(void)stage_make(&s, "running");
	assert_int_equal(stage_cube(&s, stage_make(&s, "paused"), "pause"), 0);
	assert_int_equal(stage_cube(&s, stage_make(&s, "stopped"), "stop"), 0);
	stage_killed(&s);
	stage_up(&s);
	cube_domain_enter(s.d);
	assert_string_equal(cube_domain_next(s.d, 0)->name, "running");
	assert_string_equal(cube_domain_next(s.d, cube_domain_next(s.d, 0)->seq)->name, "paused");
	cube_domain_leave(s.d);
	assert_true(stage_phase(&s, find(&s, "running"), CUBE_RUNNING));
	assert_true(stage_phase(&s, find(&s, "paused"), CUBE_PAUSED));
	assert_true(stage_phase(&s, find(&s, "stopped"), CUBE_STOPPED));
	assert_string_equal(find(&s, "stopped")->reason, "stopped");
	expect(&s, find(&s, "paused"), "pwd", "/workspace\n");
	assert_int_equal(stage_cube(&s, find(&s, "stopped"), "start"), 0);
	expect(&s, find(&s, "stopped"), "pwd", "/workspace\n");
	host_close(&s);
}

static bool is_apart(void *ctx)
{
	return ((struct cube_cube *)ctx)->agent == NULL;
}

/* Restarted behind our back: what ran there is lost, what waits runs. */
static void restarted_meanwhile(void **state)
{
	struct stage s;

	(void)state;
	host_open(&s);
	struct cube_cube *c = stage_make(&s, "dev");
	struct cube_job *j = stage_start(&s, c, "x", "echo up; hang");
	char id[CUBE_ID_MAX + 1];

	stage_printed(&s, j, 3);
	stage_unref(&s, j);
	expect(&s, c, "cd /tmp; pwd", "/tmp\n");
	(void)snprintf(id, sizeof(id), "%s", c->id);

	struct cube_backend *b = c->service->backend;
	assert_int_equal(cube_fault_hold(host_faults(), "link"), 0);
	stage_unref(&s, stage_run(&s, c, NULL, "drop"));
	assert_true(stage_until(&s, is_apart, c));
	assert_int_equal(cube_backend_stop(b, id, 0, NULL, NULL), 0);
	assert_int_equal(cube_backend_start(b, id, NULL, NULL), 0);
	cube_fault_release(host_faults(), "link");
	j = find_job(&s, c, "x");
	assert_int_equal(stage_end(&s, j), -1);
	assert_int_equal(j->end.how, CUBE_END_LOST);
	expect_output(&s, j, CUBE_STREAM_STDOUT, "up\n");
	stage_unref(&s, j);
	assert_true(stage_phase(&s, c, CUBE_RUNNING));
	expect(&s, c, "pwd", "/workspace\n");
	host_close(&s);
}

static void gone_meanwhile(void **state)
{
	struct stage s;

	(void)state;
	host_open(&s);
	struct cube_cube *c = stage_make(&s, "dev");
	char id[CUBE_ID_MAX + 1];

	expect(&s, c, "echo kept", "kept\n");
	(void)snprintf(id, sizeof(id), "%s", c->id);
	assert_int_equal(cube_backend_destroy(c->service->backend, id, NULL), 0);
	assert_true(stage_phase(&s, c, CUBE_ERROR));
	assert_string_equal(c->reason, "lost");
	assert_true(c->terminal);
	assert_int_equal(stage_cube(&s, c, "start"), -EHOSTDOWN);
	stage_down(&s);
	stage_up(&s);
	c = find(&s, "dev");
	assert_int_equal(c->phase, CUBE_ERROR);
	struct cube_job *j = find_job(&s, c, "1");
	expect_output(&s, j, CUBE_STREAM_OUTPUT, "kept\n");
	stage_unref(&s, j);
	assert_int_equal(stage_root(&s, "destroy dev"), 0);
	host_close(&s);
}

/* Whoever held it has his end with the daemon's, in order or not. */
static void held_ones_go(void **state)
{
	static void (*const goes[])(struct stage * s) = {stage_down, stage_killed};

	(void)state;
	for (unsigned i = 0; i < CUBE_COUNT(goes); i++) {
		struct cube_hold hold = {0}, more = {0};
		struct stage s;

		host_open(&s);
		(void)stage_make(&s, "dev");
		struct cube_cube *c = stage_make(&s, "held");

		cube_domain_enter(s.d);
		assert_int_equal(cube_hold_take(&hold, c, NULL), 0);
		assert_int_equal(cube_hold_take(&more, c, NULL), 0);
		cube_hold_end(&more);
		s.d->closing =
			true; /* an end of the daemon closes channels too: that alone destroys nothing */
		cube_hold_end(&hold);
		s.d->closing = false;
		assert_int_equal(c->phase, CUBE_RUNNING);
		cube_domain_leave(s.d);
		goes[i](&s);
		stage_up(&s);
		assert_non_null(find(&s, "dev"));
		assert_null(find(&s, "held"));
		host_close(&s);
	}
}

/* ---- Half done ---- */

/* mkdir has promised it, so the next daemon makes it; `create` had not returned, so nothing is left. */
/* An orderly end does not wait for what the next daemon can do as well: not for a creation that takes ever so
 * long, not for an agent that does not answer. */
static void ends_at_once(void **state)
{
	struct stage s;
	struct cube_cube *c;
	struct cube_job *j;

	(void)state;
	host_open(&s);
	c = stage_make(&s, "dev");
	j = stage_start(&s, c, "x", "await go; exit 3");
	stage_unref(&s, j);
	assert_int_equal(cube_fault_hold(host_faults(), "link"), 0);
	stage_unref(&s, stage_run(&s, c, NULL, "drop"));
	assert_true(stage_until(&s, is_apart, c));
	assert_int_equal(cube_fault_hold(host_faults(), "create"), 0);
	assert_int_equal(stage_mkdir(&s, "promised", &c), 0);
	cube_domain_shutdown(s.d, 3600000);
	stage_down(&s);
	cube_fault_release(host_faults(), "create");
	cube_fault_release(host_faults(), "link");
	stage_up(&s);
	assert_true(stage_phase(&s, find(&s, "promised"), CUBE_RUNNING));
	c = find(&s, "dev");
	stage_go(&s, c, "go");
	j = find_job(&s, c, "x");
	assert_int_equal(stage_end(&s, j), 3);
	stage_unref(&s, j);
	host_close(&s);
}

static void creations_that_were_cut_off(void **state)
{
	struct stage s;
	struct cube_cube *c;

	(void)state;
	host_open(&s);
	assert_int_equal(cube_fault_hold(host_faults(), "create"), 0);
	assert_int_equal(stage_mkdir(&s, "promised", &c), 0);
	assert_int_equal(stage_root(&s, "create asked &"), 0);
	cube_domain_enter(s.d);
	assert_int_equal(c->phase, CUBE_CREATING);
	cube_domain_leave(s.d);
	stage_killed(&s);
	cube_fault_release(host_faults(), "create");
	stage_up(&s);
	assert_null(find(&s, "asked"));
	c = find(&s, "promised");
	assert_non_null(c);
	assert_true(stage_phase(&s, c, CUBE_RUNNING));
	expect(&s, c, "pwd", "/workspace\n");
	assert_int_equal(host_count(), 1);
	host_close(&s);
}

/* Made at the backend, and the daemon died before it knew: found by its mark. */
static void answers_that_were_lost(void **state)
{
	struct stage s;
	struct cube_cube *c;

	(void)state;
	host_open(&s);
	assert_int_equal(cube_fault_lose(host_faults(), "create", -EHOSTUNREACH, 1), 0);
	assert_int_equal(stage_mkdir(&s, "dev", &c), 0);
	assert_true(stage_phase(&s, c, CUBE_ERROR));
	assert_int_equal(host_count(), 1);
	assert_int_equal(stage_root(&s, "destroy dev"), 0);
	assert_int_equal(host_count(), 0);
	host_close(&s);
}

static bool nobody_dies(void *ctx)
{
	return cube_list_empty(&cube_domain_own(ctx)->dying);
}

static void destructions_that_were_cut_off(void **state)
{
	struct stage s;

	(void)state;
	host_open(&s);
	struct cube_cube *c = stage_make(&s, "dev");

	assert_int_equal(cube_fault_fail(host_faults(), "destroy", -EHOSTUNREACH, 0), 0);
	cube_domain_enter(s.d);
	assert_int_equal(cube_cube_remove(c, NULL, &s.err), 0);
	cube_domain_leave(s.d);
	stage_down(&s);
	assert_int_equal(host_count(), 1);
	cube_fault_release(host_faults(), "destroy");
	stage_up(&s);
	assert_null(find(&s, "dev"));
	stage_make(&s, "dev");
	assert_true(stage_until(&s, nobody_dies, s.d));
	assert_int_equal(host_count(), 1);
	host_close(&s);
}

/* ---- A state directory that is not as we left it ---- */

static void write_file(struct stage *s, const char *path, const char *data, size_t len)
{
	char full[256];

	(void)snprintf(full, sizeof(full), "%s/%s", s->dir, path);
	assert_int_equal(cube_state_replace(AT_FDCWD, full, data, len), 0);
}

/* Cut off at any byte the journal gives what its whole lines say. */
static void journal_cut_anywhere(void **state)
{
	struct stage s;
	char path[96], *journal;
	size_t len;

	(void)state;
	host_open(&s);
	struct cube_cube *c = stage_make(&s, "dev");

	expect(&s, c, "echo a", "a\n");
	struct cube_job *j = stage_start(&s, c, "named", "echo b");
	(void)stage_end(&s, j);
	stage_unref(&s, j);
	expect(&s, c, "cd /tmp", "");
	cube_domain_enter(s.d);
	(void)snprintf(path, sizeof(path), "cubes/%s/journal", c->uid);
	cube_domain_leave(s.d);
	stage_down(&s);
	journal = stage_file(&s, path);
	len = strlen(journal);
	for (size_t cut = 0; cut <= len; cut += cut % 7 == 0 ? 3 : 11) {
		write_file(&s, path, journal, cut);
		stage_up(&s);
		c = find(&s, "dev");
		assert_non_null(c);
		expect(&s, c, "echo again", "again\n");
		stage_down(&s);
	}
	cube_free(journal);
	host_close(&s);
}

static void damage(void **state)
{
	struct stage s;
	char path[96];

	(void)state;
	host_open(&s);
	(void)stage_make(&s, "good");
	struct cube_cube *c = stage_make(&s, "bad");

	cube_domain_enter(s.d);
	(void)snprintf(path, sizeof(path), "cubes/%s/cube.json", c->uid);
	cube_domain_leave(s.d);
	stage_down(&s);
	write_file(&s, path, "{\"version\":1", 12);
	(void)snprintf(path + strlen(path), sizeof(path) - strlen(path), ".old");
	write_file(&s, path, "", 0);
	stage_up(&s);
	assert_null(find(&s, "bad"));
	expect(&s, find(&s, "good"), "echo fine", "fine\n");
	stage_down(&s);
	char *still = stage_file(&s, path); /* it is not thrown away */
	assert_non_null(still);
	cube_free(still);
	host_close(&s);
}

/* The newer state never reached the medium: the one before it counts. */
static void damage_of_the_newer_one(void **state)
{
	struct stage s;
	char path[96];

	(void)state;
	host_open(&s);
	struct cube_cube *c = stage_make(&s, "dev");

	assert_int_equal(stage_cube(&s, c, "set label.x=1"), 0);
	assert_int_equal(stage_cube(&s, c, "set label.x=2"), 0);
	cube_domain_enter(s.d);
	(void)snprintf(path, sizeof(path), "cubes/%s/cube.json", c->uid);
	cube_domain_leave(s.d);
	stage_killed(&s);
	write_file(&s, path, "", 0);
	stage_up(&s);
	c = find(&s, "dev");
	assert_non_null(c);
	assert_string_equal(cube_map_get(c->labels, "x"), "1");
	expect(&s, c, "echo fine", "fine\n");
	host_close(&s);
}

static void nothing_is_left_of_what_never_was(void **state)
{
	struct stage s;
	char path[128];

	(void)state;
	host_open(&s);
	stage_down(&s);
	(void)snprintf(path, sizeof(path), "%s/cubes/0123456789abcdef", s.dir);
	assert_int_equal(mkdir(path, 0700), 0);
	(void)snprintf(path, sizeof(path), "%s/cubes/0123456789abcdee.removed", s.dir);
	assert_int_equal(mkdir(path, 0700), 0);
	stage_up(&s);
	assert_int_equal(access(path, F_OK), -1);
	(void)snprintf(path, sizeof(path), "%s/cubes/0123456789abcdef", s.dir);
	assert_int_equal(access(path, F_OK), -1);
	host_close(&s);
}

/* Much was run: the journal stays small, the directory too. */
static void journal_is_compact(void **state)
{
	struct stage s;
	char path[96], *journal;

	(void)state;
	host_open(&s);
	assert_int_equal(stage_root(&s, "set jobs_kept=3"), 0);
	struct cube_cube *c = stage_make(&s, "dev");

	for (unsigned i = 0; i < 40; i++)
		expect(&s, c, "echo x", "x\n");
	cube_domain_enter(s.d);
	(void)snprintf(path, sizeof(path), "cubes/%s/journal", c->uid);
	cube_domain_leave(s.d);
	stage_down(&s);
	stage_up(&s);
	c = find(&s, "dev");
	assert_int_equal(c->next_job, 41);
	stage_down(&s);
	journal = stage_file(&s, path);
	assert_in_range(strlen(journal), 10, 3000);
	cube_free(journal);
	host_close(&s);
}

/* The agent breaks in the middle of everything, again and again. */
static void links_that_break(void **state)
{
	struct stage s;

	(void)state;
	host_open(&s);
	struct cube_cube *c = stage_make(&s, "dev");
	struct cube_job *j = stage_start(&s, c, "long", "echo 1; await go; err 2; exit 6");

	assert_int_equal(cube_fault_fail(host_faults(), "link", -EHOSTUNREACH, 2), 0);
	for (unsigned i = 0; i < 4; i++)
		expect(&s, c, "echo x; drop", "x\n");
	stage_go(&s, c, "go");
	assert_int_equal(stage_end(&s, j), 6);
	expect_output(&s, j, CUBE_STREAM_OUTPUT, "1\n2\n");
	stage_unref(&s, j);
	host_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_an_end),
		cmocka_unit_test(after_a_kill),
		cmocka_unit_test(what_waited_runs),
		cmocka_unit_test(ends_meanwhile),
		cmocka_unit_test(stdin_goes_on),
		cmocka_unit_test(stdin_under_way),
		cmocka_unit_test(states_are_kept),
		cmocka_unit_test(restarted_meanwhile),
		cmocka_unit_test(gone_meanwhile),
		cmocka_unit_test(held_ones_go),
		cmocka_unit_test(ends_at_once),
		cmocka_unit_test(creations_that_were_cut_off),
		cmocka_unit_test(answers_that_were_lost),
		cmocka_unit_test(destructions_that_were_cut_off),
		cmocka_unit_test(journal_cut_anywhere),
		cmocka_unit_test(damage),
		cmocka_unit_test(damage_of_the_newer_one),
		cmocka_unit_test(nothing_is_left_of_what_never_was),
		cmocka_unit_test(journal_is_compact),
		cmocka_unit_test(links_that_break),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
