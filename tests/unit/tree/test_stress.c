/* SPDX-License-Identifier: Apache-2.0 */
/* Many callers at once, a bounded number of rounds each, over the tree and the mem backend: sandboxes, sessions, jobs,
 * conversations, inputs and cancelled reads. What each reads is checked; the sanitizers look at the rest. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/tree/rig.h"

#define CALLERS 8
#define ROUNDS  96
#define SHARED  3

static atomic_uint bad;

/* cmocka's own checks leave by longjmp, which a thread of ours must not. */
static void expect(bool holds, const char *what, int caller)
{
	if (holds)
		return;
	(void)fprintf(stderr, "caller %d: %s\n", caller, what);
	atomic_fetch_add(&bad, 1);
}

struct caller {
	pthread_t thread;
	int number;
	char path[160];
	char text[4096];
	struct rig_call call;
};

/* SANDBOX/SUFFIX, of one that all share. */
static const char *shared(struct caller *c, int round, const char *suffix)
{
	(void)snprintf(c->path, sizeof(c->path), "s%d/%s", (c->number + round) % SHARED, suffix);
	return c->path;
}

static const char *read_all(struct caller *c, struct cube_handle *h)
{
	size_t len = 0;

	for (;;) {
		const char *piece = rig_read(&c->call, h, len);

		if (c->call.out_len == 0 || len + c->call.out_len >= sizeof(c->text))
			break;
		memcpy(c->text + len, piece, c->call.out_len);
		len += c->call.out_len;
	}
	c->text[len] = '\0';
	return c->text;
}

/* Opens as a channel and reads to the end; "" where it cannot be opened. */
static const char *follow(struct caller *c, const char *path)
{
	struct cube_handle *h;

	c->text[0] = '\0';
	if (rig_open(path, O_RDWR, &h) < 0)
		return c->text;
	(void)read_all(c, h);
	rig_release(h);
	return c->text;
}

static void sandboxes(struct caller *c, int round)
{
	char name[32], path[64];

	(void)snprintf(name, sizeof(name), "own%d-%d", c->number, round);
	(void)snprintf(path, sizeof(path), "%s/exec", name);
	expect(rig_on(CUBE_REQ_MKDIR, "", name) == 0, "mkdir of a sandbox", c->number);
	expect(rig_echo("echo mine", path) >= 0, "a command in a new sandbox", c->number);
	(void)snprintf(path, sizeof(path), "%s/exit", name);
	expect(strcmp(follow(c, path), "0\n") == 0, "its exit", c->number);
	expect(rig_on(CUBE_REQ_RMDIR, "", name) == 0, "rmdir of a sandbox", c->number);
}

static void sessions(struct caller *c, int round)
{
	char name[32], dir[64], path[120], want[40];

	(void)snprintf(name, sizeof(name), "t%d", c->number);
	(void)snprintf(dir, sizeof(dir), "%s", shared(c, round, "sessions"));
	expect(rig_on(CUBE_REQ_MKDIR, dir, name) == 0, "mkdir of a session", c->number);
	(void)snprintf(path, sizeof(path), "%s/%s/exec", dir, name);
	(void)snprintf(want, sizeof(want), "echo said %d", round);
	expect(rig_echo(want, path) >= 0, "a command in a session", c->number);
	(void)snprintf(want, sizeof(want), "said %d\n", round);
	expect(strcmp(follow(c, path), want) == 0, "what it printed", c->number);
	expect(rig_on(CUBE_REQ_RMDIR, dir, name) == 0, "rmdir of a session", c->number);
}

static void inputs(struct caller *c, int round)
{
	char name[32], dir[64], path[120];
	struct cube_handle *h;

	(void)snprintf(name, sizeof(name), "in%d", c->number);
	(void)snprintf(dir, sizeof(dir), "%s", shared(c, round, "jobs"));
	expect(rig_on(CUBE_REQ_MKDIR, dir, name) == 0, "mkdir of a job", c->number);
	(void)snprintf(path, sizeof(path), "%s/%s/ctl", dir, name);
	expect(rig_echo("stdin stream", path) >= 0, "stdin stream", c->number);
	(void)snprintf(path, sizeof(path), "%s/%s/cmd", dir, name);
	expect(rig_echo("cat", path) >= 0, "the job's command", c->number);
	(void)snprintf(path, sizeof(path), "%s/%s/stdin", dir, name);
	if (rig_open(path, O_WRONLY, &h) == 0) {
		expect(rig_write(h, "first ") == 6 && rig_write(h, "second") == 6, "its input", c->number);
		rig_release(h);
	}
	(void)snprintf(path, sizeof(path), "%s/%s/ctl", dir, name);
	expect(rig_echo("eof", path) >= 0, "eof", c->number);
	(void)snprintf(path, sizeof(path), "%s/%s/output", dir, name);
	expect(strcmp(follow(c, path), "first second") == 0, "what came back", c->number);
	expect(rig_on(CUBE_REQ_RMDIR, dir, name) == 0, "rmdir of a job", c->number);
}

/* Two of them at once in one session: each has its own output and nothing else. */
static void conversations(struct caller *c, int round)
{
	struct cube_handle *h;
	char line[40], want[40];

	if (rig_open(shared(c, round, "exec"), O_RDWR, &h) < 0) {
		expect(false, "open of a conversation", c->number);
		return;
	}
	for (int i = 0; i < 2; i++) {
		(void)snprintf(line, sizeof(line), "echo %d-%d-%d\n", c->number, round, i);
		(void)snprintf(want, sizeof(want), "%d-%d-%d\n", c->number, round, i);
		expect(rig_write(h, line) > 0, "a line of a conversation", c->number);
		expect(strcmp(read_all(c, h), want) == 0, "its answer", c->number);
	}
	rig_release(h);
}

static void cancelled(struct caller *c, int round)
{
	struct cube_handle *h;

	(void)round;
	if (rig_open("events", O_RDWR, &h) < 0)
		return;
	rig_fill(&c->call, CUBE_REQ_READ, 0);
	c->call.r.handle = h;
	c->call.r.size = 100;
	rig_start(&c->call);
	if (!rig_over(&c->call))
		cube_tree_cancel(rig.tree, c->call.r.key);
	expect(rig_end(&c->call) != 0, "a read of events that was called off", c->number);
	rig_release(h);
}

static void looks(struct caller *c, int round)
{
	static const char *const files[] = {"list", "events", "error", "README", "ctl"};
	struct cube_handle *h;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (rig_open(files[i], O_RDONLY, &h) < 0)
			continue;
		(void)rig_read(&c->call, h, 0);
		rig_release(h);
	}
	if (rig_open(shared(c, round, "status"), O_RDONLY, &h) == 0) {
		expect(strncmp(rig_read(&c->call, h, 0), "state running\n", 14) == 0, "status", c->number);
		rig_release(h);
	}
	rig_fill(&c->call, CUBE_REQ_READDIR, rig_node(shared(c, round, "jobs")));
	expect(rig_run(&c->call) == 0, "a listing", c->number);
}

static void *caller_run(void *arg)
{
	static void (*const does[])(struct caller * c, int round) = {sandboxes,     sessions,  inputs,
								     conversations, cancelled, looks};
	const int n = sizeof(does) / sizeof(does[0]);
	struct caller *c = arg;

	for (int round = 0; round < ROUNDS; round++)
		does[(c->number + round) % n](c, round);
	return NULL;
}

static void everyone_at_once(void **state)
{
	struct caller *callers = calloc(CALLERS, sizeof(*callers));
	char name[16];

	(void)state;
	assert_non_null(callers);
	for (int i = 0; i < SHARED; i++) {
		(void)snprintf(name, sizeof(name), "s%d", i);
		rig_cube(name);
	}
	for (int i = 0; i < CALLERS; i++) {
		callers[i].number = i;
		assert_int_equal(pthread_create(&callers[i].thread, NULL, caller_run, &callers[i]), 0);
	}
	for (int i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
	assert_int_equal(atomic_load(&bad), 0);
	/* Nothing of theirs is left, and the rest works. */
	assert_string_equal(rig_ls("s0/sessions"), ". .. main ");
	assert_int_equal(rig_echo("echo still", "s0/exec"), 0);
	assert_string_equal(rig_cat("s0/exec"), "still\n");
	free(callers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(everyone_at_once)};

	return cmocka_run_group_tests(tests, rig_up, rig_down);
}
