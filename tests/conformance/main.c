/* SPDX-License-Identifier: Apache-2.0 */
/* conformance SUBJECT [PATTERN]: opens a backend and runs every check (of that name, * and ? as in a shell)
 * that its capabilities call for. Exit code 77 where this machine cannot have it. */
#include "tests/conformance/conformance.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/macros.h"
#include "backends/decor/fault.h"
#include "backends/decor/trace.h"
#include "backends/registry.h"

#define SKIP       77
#define CHECKS_MAX 250

/* cubefs-backend(7) */
extern const struct cube_backend_ops cube_backend_folder;

static const struct dialect shell = {
	.hang = "sleep 1000",
	.deaf = "trap '' INT TERM; echo deaf; while :; do sleep 1000; done",
	.to_stderr = "echo e >&2",
	.suicide = "kill -KILL $$",
	.megabytes = "head -c 3145728 /dev/zero",
	.make_file = "echo inside > ",
	.make_inside = "",
};

static const struct dialect mem_words = {
	.hang = "hang",
	.deaf = "ignore INT TERM; echo deaf; hang",
	.to_stderr = "err e",
	.suicide = "kill KILL",
	.megabytes = "bytes 3M",
	.make_file = "write ",
	.make_inside = " inside",
};

static struct subject subjects[] = {
	{.name = "mem", .kind = "mem", .dialect = &mem_words},
	{.name = "mem-wrapped", .kind = "mem", .dialect = &mem_words, .wrapped = true},
	{.name = "mem-bare", .kind = "mem", .dialect = &mem_words, .conf = "caps = usage"},
	{.name = "mem-exec",
	 .kind = "mem",
	 .dialect = &mem_words,
	 .conf = "caps = -files, -pause, -tty, -users"},
	{.name = "example", .ops = &cube_backend_folder, .dialect = &shell},
	{.name = "local", .kind = "local", .dialect = &shell},
	{.name = "local-copies", .kind = "local", .dialect = &shell, .conf = "store = copies"},
	{.name = "docker", .kind = "docker", .dialect = &shell, .conf_env = "CUBEFS_TEST_DOCKER"},
	{.name = "libvirt",
	 .kind = "libvirt",
	 .dialect = &shell,
	 .conf_env = "CUBEFS_TEST_LIBVIRT",
	 .slow = true},
	{.name = "e2b",
	 .kind = "e2b",
	 .dialect = &shell,
	 .conf_env = "CUBEFS_TEST_E2B",
	 .no_pause_time = true},
};

static const struct check *const tables[] = {
	checks_life,  checks_state,      checks_exec,     checks_input,  checks_end,    checks_session,
	checks_again, checks_files,      checks_template, checks_ports,  checks_volume, checks_bind,
	checks_owner, checks_checkpoint, checks_kept,     checks_refuse,
};

/* ---- The checks as cmocka wants them ---- */

struct checked {
	const struct check *check;
	struct subject *subject;
};

static void run_check(void **state)
{
	const struct checked *c = *state;

	c->check->run(c->subject);
}

static bool applies(const struct subject *s, const struct check *c)
{
	uint32_t caps = s->stage.b->caps;

	return (caps & c->needs) == c->needs && (caps & c->lacks) == 0;
}

static int run_all(struct subject *s)
{
	static struct checked checked[CHECKS_MAX];
	static struct CMUnitTest tests[CHECKS_MAX];
	size_t n = 0, others = 0;

	for (size_t t = 0; t < CUBE_COUNT(tables); t++) {
		for (const struct check *c = tables[t]; c->name != NULL; c++) {
			if (!applies(s, c)) {
				others++;
				continue;
			}
			assert_true(n < CHECKS_MAX);
			checked[n] = (struct checked){.check = c, .subject = s};
			tests[n] = (struct CMUnitTest){
				.name = c->name,
				.test_func = run_check,
				.initial_state = &checked[n],
			};
			n++;
		}
	}
	printf("%s: %zu checks for its capabilities, %zu are for others\n", s->name, n, others);
	return _cmocka_run_group_tests(s->name, tests, n, NULL, NULL);
}

/* ---- The subject ---- */

static struct subject *find_subject(const char *name)
{
	for (size_t i = 0; i < CUBE_COUNT(subjects); i++) {
		if (strcmp(subjects[i].name, name) == 0)
			return &subjects[i];
	}
	return NULL;
}

/* Decorators that are told to do nothing must not be seen. */
static int wrap(struct stage *s, struct cube_err *err)
{
	struct cube_fault *rules;
	int r = cube_trace_wrap(s->b, NULL, NULL, &s->b, err);

	return r < 0 ? r : cube_fault_wrap(s->b, &s->b, &rules, err);
}

/* An instance without capabilities says why, often for all of them the same. */
static int explain(const struct cube_backend *b)
{
	const char *told = "";

	for (unsigned i = 0; i < CUBE_CAP_COUNT; i++) {
		if (b->missing[i][0] != '\0' && strcmp(b->missing[i], told) != 0)
			printf("skipped: %s: %s\n", cube_cap_name(i), b->missing[i]);
		told = b->missing[i];
	}
	return SKIP;
}

static int conformance(struct subject *s)
{
	const struct cube_backend_ops *ops = s->ops != NULL ? s->ops : cube_backend_find(s->kind);
	struct cube_err err;
	int r;

	if (ops == NULL) {
		printf("skipped: this build has no backend of kind %s\n", s->kind);
		return SKIP;
	}
	if (s->conf_env != NULL)
		s->conf = getenv(s->conf_env);
	if (s->conf_env != NULL && s->conf == NULL) {
		printf("skipped: %s is not set: it is the section of a service that the tests have started\n",
		       s->conf_env);
		return SKIP;
	}
	r = stage_open(&s->stage, ops, s->conf, &err);
	if (r < 0) {
		printf("skipped: %s\n", err.text);
		return r == -EOPNOTSUPP ? SKIP : 1;
	}
	if (s->wrapped && wrap(&s->stage, &err) < 0) {
		printf("%s\n", err.text);
		return 1;
	}
	r = s->stage.b->caps == 0 ? explain(s->stage.b) : run_all(s);
	bed_last(s);
	stage_close(&s->stage);
	return r;
}

int main(int argc, char **argv)
{
	struct subject *s = argc == 2 || argc == 3 ? find_subject(argv[1]) : NULL;
	int r;

	if (s == NULL) {
		(void)fprintf(stderr, "usage: conformance SUBJECT [PATTERN]\n");
		return 2;
	}
	if (argc == 3)
		cmocka_set_test_filter(argv[2]);
	r = conformance(s);
	return r == 0 || r == SKIP ? r : 1;
}
