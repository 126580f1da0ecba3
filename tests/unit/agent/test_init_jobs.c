/* SPDX-License-Identifier: Apache-2.0 */
/* cube-init: jobs that are processes of their own: text and words, environment, directory, user, what a
 * process is born with. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/agent/rig.h"

static void script(struct rig *r)
{
	static const struct {
		const char *text, *output;
		enum cube_end how;
		int code;
	} runs[] = {
		{"echo out; echo err >&2; exit 3", "out\nerr\n", CUBE_END_EXIT, 3},
		{"printf 'no newline'", "no newline", CUBE_END_EXIT, 0},
		{"echo 'unbalanced", NULL, CUBE_END_EXIT, 2},
		{"if", NULL, CUBE_END_EXIT, 2},
		{"", "", CUBE_END_EXIT, 0},
		{"#comment", "", CUBE_END_EXIT, 0},
		{"cat <<E\nhere\nE", "here\n", CUBE_END_EXIT, 0},
		{"printf 'a\rb\tc'", "a\rb\tc", CUBE_END_EXIT, 0},
		{"cat", "", CUBE_END_EXIT, 0},
		{"nosuchcommand", NULL, CUBE_END_EXIT, 127},
		{"kill -SEGV $$", "", CUBE_END_SIGNAL, 139},
		{"kill -KILL $$", "", CUBE_END_SIGNAL, 137},
		{"umask", "0022\n", CUBE_END_EXIT, 0},
		{"exec 3<&-; ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 ", CUBE_END_EXIT, 0},
	};

	for (unsigned i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
		rig_expect(r, rig_do(r, &(struct rig_run){.text = runs[i].text}), runs[i].output, runs[i].how,
			   runs[i].code);
}

static void test_script(void **state)
{
	(void)state;
	rig_each(script);
}

/* Every byte a text may have, in a size beyond any pipe and frame. */
static void long_text(struct rig *r)
{
	size_t len = (1u << 20) + 17;
	char *text = malloc(len + 1);
	char *out;
	size_t n;

	assert_non_null(text);
	n = (size_t)snprintf(text, len, "cat <<'E'\n");
	for (; n < len - 3; n++)
		text[n] = (char)(n % 251 + 1) == 'E' ? 'e' : (char)(n % 251 + 1);
	memcpy(text + len - 3, "\nE\n", 3);
	text[len] = '\0';
	{
		uint64_t id = rig_do(r, &(struct rig_run){.text = text, .text_len = len});

		rig_expect(r, id, NULL, CUBE_END_EXIT, 0);
		out = rig_output(r, id, &n);
		assert_int_equal(n, len - 10 - 2);
		assert_memory_equal(out, text + 10, n);
		free(out);
	}
	free(text);
}

static void test_long_text(void **state)
{
	struct rig *r = rig_new("/bin/bash", false, false);

	(void)state;
	/* What is put before the text does not move its lines. */
	rig_expect(r, rig_do(r, &(struct rig_run){.text = "echo $LINENO\necho $LINENO"}), "1\n2\n",
		   CUBE_END_EXIT, 0);
	long_text(r);
	rig_free(r);
}

static void test_too_long(void **state)
{
	struct rig *r = rig_new(NULL, false, false);
	size_t len = (4u << 20) + 1;
	char *text = malloc(len);

	(void)state;
	assert_non_null(text);
	memset(text, '\n', len);
	assert_int_equal(rig_refused(r, &(struct rig_run){.text = text, .text_len = len}), -EMSGSIZE);
	assert_int_equal(rig_refused(r, &(struct rig_run){.text = "true", .env = text, .env_len = len}),
			 -EMSGSIZE);
	rig_expect(r, rig_do(r, &(struct rig_run){.text = text, .text_len = len - 1}), "", CUBE_END_EXIT, 0);
	free(text);
	rig_free(r);
}

static uint64_t words(struct rig *r, const char *words, size_t len)
{
	return rig_do(r, &(struct rig_run){.text = words, .text_len = len, .argv = true});
}

static void argv(struct rig *r)
{
	uint64_t id;

	rig_expect(r, words(r, RIG_LITERAL("printf\0[%s]\0a b\0\0$HOME;'\"\0*")), "[a b][][$HOME;'\"][*]",
		   CUBE_END_EXIT, 0);
	rig_expect(r, words(r, RIG_LITERAL("/bin/sh\0-c\0exit 7\0")), "", CUBE_END_EXIT, 7);
	id = words(r, RIG_LITERAL("nosuchprogram"));
	rig_expect(r, id, "", CUBE_END_EXIT, 127);
	assert_int_equal(rig_job(r, id)->err.code, -ENOENT);
	assert_string_equal(rig_job(r, id)->err.text, "nosuchprogram: not found");
	id = words(r, RIG_LITERAL("/etc/passwd"));
	rig_expect(r, id, "", CUBE_END_EXIT, 126);
	assert_int_equal(rig_job(r, id)->err.code, -EACCES);
	id = words(r, "", 0);
	rig_expect(r, id, "", CUBE_END_EXIT, 127);
}

static void test_argv(void **state)
{
	struct rig *r = rig_new(NULL, false, false);

	(void)state;
	argv(r);
	rig_free(r);
	r = rig_new(NULL, false, true);
	argv(r);
	rig_free(r);
}

/* A script without an interpreter is no program: no shell is put in its place. PATH is the job's own. */
static void test_argv_path(void **state)
{
	struct rig *r = rig_new(NULL, false, false);
	char env[160], path[128];
	struct rig_run run = {.text = "tool", .argv = true, .env = env};
	int fd;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/tool", r->dir);
	fd = open(path, O_WRONLY | O_CREAT, 0755);
	assert_int_equal(write(fd, "exit 5\n", 7), 7);
	run.env_len = (size_t)snprintf(env, sizeof(env), "PATH=/nowhere:%s", r->dir) + 1;
	rig_expect(r, rig_do(r, &run), "", CUBE_END_EXIT, 126);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, "#!/bin/sh\nexit 5\n", 17, 0), 17);
	(void)close(fd);
	rig_expect(r, rig_do(r, &run), "", CUBE_END_EXIT, 5);
	run.env_len = (size_t)snprintf(env, sizeof(env), "PATH=/nowhere") + 1;
	rig_expect(r, rig_do(r, &run), "", CUBE_END_EXIT, 127);
	rig_free(r);
}

static void test_env(void **state)
{
	static const char env[] = "A=1\0B=two words\nand lines\0C=\0notavariable\0=neither\0A=last";
	static const char expected[] = "A=1\0B=two words\nand lines\0C=\0A=last\0PWD=/usr";
	struct rig *r = rig_new(NULL, false, false);
	uint64_t id;
	char *out;
	size_t len;

	(void)state;
	id = rig_do(r, &(struct rig_run){.text = "/usr/bin/env\0-0",
					 .text_len = 15,
					 .argv = true,
					 .env = env,
					 .env_len = sizeof(env),
					 .cwd = "/usr"});
	out = rig_output(r, id, &len);
	assert_int_equal(len, sizeof(expected));
	assert_memory_equal(out, expected, len);
	free(out);
	id = rig_do(r,
		    &(struct rig_run){.text = "/usr/bin/env", .argv = true, .env = "PWD=/x", .env_len = 6});
	rig_expect(r, id, "PWD=/x\n", CUBE_END_EXIT, 0);
	rig_free(r);
}

static void test_cwd(void **state)
{
	struct rig *r = rig_new(NULL, false, false);
	uint64_t id;

	(void)state;
	rig_expect(r, rig_do(r, &(struct rig_run){.text = "pwd", .cwd = "/usr/bin"}), "/usr/bin\n",
		   CUBE_END_EXIT, 0);
	id = rig_do(r, &(struct rig_run){.text = "pwd", .cwd = "/no/such/place"});
	rig_expect(r, id, "", CUBE_END_EXIT, 126);
	assert_int_equal(rig_job(r, id)->err.code, -ENOENT);
	assert_non_null(strstr(rig_job(r, id)->err.text, "/no/such/place"));
	assert_int_equal(rig_job(r, id)->starts, 1);
	rig_free(r);
}

/* No signal is blocked or ignored, the process leads a session, its parent is no shell of ours. */
static void birth(struct rig *r)
{
	uint64_t id = rig_do(
		r, &(struct rig_run){.text = "sed -n '/^Sig[BI]/p' /proc/self/status | tr -d '0\\t\\n'"});

	rig_expect(r, id, "SigBlk:SigIgn:", CUBE_END_EXIT, 0);
	id = rig_do(r,
		    &(struct rig_run){
			    .text = "set -- $(cut -d' ' -f1,5,6 /proc/$$/stat); echo $(($1-$2)) $(($1-$3))"});
	rig_expect(r, id, "0 0\n", CUBE_END_EXIT, 0);
	id = rig_do(r, &(struct rig_run){.text = "ls /proc/self/fd | tr '\\n' ' '", .argv = false});
	rig_expect(r, id, "0 1 2 3 ", CUBE_END_EXIT, 0);
}

static void test_birth(void **state)
{
	(void)state;
	rig_each(birth);
}

static uint64_t as(struct rig *r, const char *user)
{
	return rig_do(
		r,
		&(struct rig_run){
			.text = "/usr/bin/id\0-u", .text_len = 14, .argv = true, .user = user, .cwd = "/"});
}

static void test_users(void **state)
{
	struct rig *r;
	uint64_t id;

	(void)state;
	if (geteuid() != 0)
		skip();
	r = rig_new(NULL, false, false);
	rig_expect(r, as(r, ""), "0\n", CUBE_END_EXIT, 0);
	rig_expect(r, as(r, "nobody"), "65534\n", CUBE_END_EXIT, 0);
	rig_expect(r, as(r, "65534"), "65534\n", CUBE_END_EXIT, 0);
	rig_expect(r, as(r, "4711:12"), "4711\n", CUBE_END_EXIT, 0);
	id = rig_do(r, &(struct rig_run){.text = "id -g; id -G; echo x > /etc/x.cubefs",
					 .user = "4711:12",
					 .cwd = "/"});
	assert_true(rig_has(r, id, "12\n12\n"));
	assert_true(rig_job(r, id)->end.code != 0);
	id = rig_do(r, &(struct rig_run){.text = "id -G", .user = "4711", .cwd = "/"});
	rig_expect(r, id, "4711\n", CUBE_END_EXIT, 0);
	id = as(r, "no-such-user");
	rig_expect(r, id, "", CUBE_END_EXIT, 126);
	assert_non_null(strstr(rig_job(r, id)->err.text, "no-such-user"));
	rig_expect(r, as(r, "nobody:no-such-group"), "", CUBE_END_EXIT, 126);
	rig_expect(r, as(r, ":5"), "", CUBE_END_EXIT, 126);
	rig_expect(r, as(r, "99999999999"), "", CUBE_END_EXIT, 126);
	rig_expect(
		r,
		rig_do(r, &(struct rig_run){.text = "cat <<E\n$(id -u)\nE\n", .user = "nobody", .cwd = "/"}),
		"65534\n", CUBE_END_EXIT, 0);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_script),    cmocka_unit_test(test_long_text),
		cmocka_unit_test(test_too_long),  cmocka_unit_test(test_argv),
		cmocka_unit_test(test_argv_path), cmocka_unit_test(test_env),
		cmocka_unit_test(test_cwd),       cmocka_unit_test(test_birth),
		cmocka_unit_test(test_users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
