/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon that is killed at any moment has kept what it had promised: sandboxes, names, environments, jobs,
 * output.
 *
 * A child runs a domain and says on a pipe what was promised, after it was; it is killed while it goes on;
 * then this process looks at what is on disk. (What ran there is gone with the child, for `mem` lives in its
 * process.) */
#include "tests/unit/ctl/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"

#define ROUNDS 12

/* Never returns: promises until it is killed. */
static void child(const char *dir, int out)
{
	static const char conf[] = "[backend mem]\nkind=mem\n";
	struct stage s = {.err = {0}};
	struct cube_cube *c;

	(void)snprintf(s.dir, sizeof(s.dir), "%s", dir);
	(void)cube_conf_parse(conf, strlen(conf), "test", &s.conf, &s.err);
	stage_up(&s);
	c = stage_make(&s, "dev");
	(void)dprintf(out, "made dev\n");
	for (unsigned i = 1;; i++) {
		char text[64], name[64];

		(void)snprintf(text, sizeof(text), "echo number %u; exit %u", i, i % 100);
		(void)stage_exec(&s, c, NULL, text, NULL);
		(void)snprintf(name, sizeof(name), "job%u", i);
		struct cube_job *j = stage_start(&s, c, name, "hang");
		(void)dprintf(out, "job %s\n", name);
		(void)stage_job(&s, j, "kill KILL");
		(void)stage_end(&s, j);
		stage_unref(&s, j);
		(void)snprintf(name, sizeof(name), "set label.round=%u", i);
		(void)stage_cube(&s, c, name);
		(void)dprintf(out, "round %u\n", i);
		(void)snprintf(name, sizeof(name), "create side%u", i);
		(void)stage_root(&s, name);
		(void)dprintf(out, "side %u\n", i);
		(void)snprintf(name, sizeof(name), "destroy side%u", i);
		(void)stage_root(&s, name);
		(void)dprintf(out, "gone %u\n", i);
	}
}

/* What was promised until the end of the pipe. */
struct promised {
	bool dev;
	unsigned job, round, side, gone;
};

static void read_promises(FILE *in, struct promised *p)
{
	char line[64];

	*p = (struct promised){0};
	while (fgets(line, sizeof(line), in) != NULL) {
		p->dev = p->dev || strcmp(line, "made dev\n") == 0;
		(void)sscanf(line, "job job%u", &p->job);  /* NOLINT(cert-err34-c): our own numbers */
		(void)sscanf(line, "round %u", &p->round); /* NOLINT(cert-err34-c) */
		(void)sscanf(line, "side %u", &p->side);   /* NOLINT(cert-err34-c) */
		(void)sscanf(line, "gone %u", &p->gone);   /* NOLINT(cert-err34-c) */
	}
}

static void check_job(struct stage *s, struct cube_cube *c, const char *name, unsigned i, bool named)
{
	char want[32], *out;

	cube_domain_enter(s->d);
	struct cube_job *j = cube_job_find(c, name);
	if (j != NULL)
		cube_job_ref(j);
	cube_domain_leave(s->d);
	assert_non_null(j);
	(void)stage_end(s, j);
	if (!named) {
		assert_int_equal(j->end.how, CUBE_END_EXIT);
		assert_int_equal(j->end.code, i % 100);
		(void)snprintf(want, sizeof(want), "number %u\n", i);
		out = stage_output(s, j, CUBE_STREAM_OUTPUT);
		assert_string_equal(out, want);
		cube_free(out);
	}
	stage_unref(s, j);
}

static void check(struct stage *s, const struct promised *p)
{
	char name[32];
	struct cube_cube *c;
	unsigned round;

	cube_domain_enter(s->d);
	c = cube_domain_find(s->d, "dev");
	cube_domain_leave(s->d);
	if (!p->dev)
		return;
	assert_non_null(c);
	for (unsigned i = 1; i <= p->round; i++) {
		(void)snprintf(name, sizeof(name), "%u", 2 * i - 1);
		check_job(s, c, name, i, false);
	}
	for (unsigned i = 1; i <= p->job; i++) {
		(void)snprintf(name, sizeof(name), "job%u", i);
		check_job(s, c, name, i, true);
	}
	cube_domain_enter(s->d);
	const char *label = cube_map_get(c->labels, "round");
	round = label != NULL ? (unsigned)strtoul(label, NULL, 10) : 0;
	assert_in_range(round, p->round, p->round + 1);
	(void)snprintf(name, sizeof(name), "side%u", p->side);
	if (p->side > p->gone)
		assert_true(cube_domain_find(s->d, name) != NULL || p->side == p->gone + 1);
	(void)snprintf(name, sizeof(name), "side%u", p->gone);
	assert_null(cube_domain_find(s->d, name));
	cube_domain_leave(s->d);
}

static void one_round(unsigned ms)
{
	static const char conf[] = "[backend mem]\nkind=mem\n";
	struct stage s = {.err = {0}};
	struct promised p;
	int ends[2];
	pid_t pid;

	(void)snprintf(s.dir, sizeof(s.dir), "/tmp/cubefs-kill-XXXXXX");
	assert_non_null(mkdtemp(s.dir));
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(ends[0]);
		child(s.dir, ends[1]);
		_exit(1);
	}
	(void)close(ends[1]);
	(void)usleep(ms * 1000);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);

	FILE *in = fdopen(ends[0], "r");

	assert_non_null(in);
	read_promises(in, &p);
	(void)fclose(in);
	assert_int_equal(cube_conf_parse(conf, strlen(conf), "test", &s.conf, &s.err), 0);
	stage_up(&s);
	check(&s, &p);
	stage_close(&s);
}

static void killed_at_any_moment(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++)
		one_round(30 + 37 * i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_at_any_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
