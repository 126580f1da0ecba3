/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the local backend's tests. */
#include "tests/unit/backends/den.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/spawn.h"

static void den_skipped(void **state)
{
	print_message("%s\n", (const char *)*state);
	skip();
}

int den_skip(const char *why)
{
	union {
		const char *text;
		void *state;
	} u = {.text = why};
	const struct CMUnitTest tests[] = {
		{.name = "all", .test_func = den_skipped, .initial_state = u.state},
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The build's directory is somewhere above the test's. */
bool den_agent(void)
{
	char path[PATH_MAX + 16];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

	if (getenv("CUBEFS_AGENT") != NULL) /* NOLINT(concurrency-mt-unsafe): one thread yet */
		return true;
	for (path[n > 0 ? n : 0] = '\0'; strrchr(path, '/') != NULL;) {
		*strrchr(path, '/') = '\0';
		(void)strncat(path, "/cube-init", 11);
		if (access(path, X_OK) == 0)
			return setenv("CUBEFS_AGENT", path, 1) == 0; /* NOLINT(concurrency-mt-unsafe) */
		*strrchr(path, '/') = '\0';
	}
	return false;
}

void den_open(struct stage *s, const char *conf)
{
	struct cube_err err;

	if (stage_open(s, &cube_backend_local, conf, &err) < 0)
		fail_msg("%s", err.text);
}

void den_reopen(struct stage *s)
{
	struct cube_err err;

	cube_backend_close(s->b);
	if (cube_backend_open(&cube_backend_local, &s->env, &s->b, &err) < 0)
		fail_msg("%s", err.text);
}

int den_remove(const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	char above[PATH_MAX];
	cube_auto_fd dir = -1;

	(void)snprintf(above, sizeof(above), "%.*s", (int)(name - path), path);
	dir = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? -errno : cube_file_remove_tree(dir, name);
}

int den_host(const char *text)
{
	const char *const argv[] = {"/bin/sh", "-c", text, NULL};
	const struct cube_spawn s = {.argv = argv, .cwd = -1, .in = -1, .out = -1};
	int status = -1;

	assert_int_equal(cube_spawn_run(&s, NULL, &status, NULL), 0);
	return WEXITSTATUS(status);
}

char *den_sh(struct stage *s, const char *id, const char *text, int *ret_code)
{
	struct ear *e = ear_open(s, id);
	struct run r;
	char *all;

	run_init(&r, e, text);
	run_start(&r);
	run_wait(&r);
	if (ret_code != NULL)
		*ret_code = r.ended->end.code;
	else if (r.ended->end.how != CUBE_END_EXIT || r.ended->end.code != 0)
		fail_msg("'%s' ended %s %d: %s", text, cube_end_name(r.ended->end.how), r.ended->end.code,
			 r.all);
	all = cube_steal(r.all);
	run_done(&r);
	ear_close(e);
	return all;
}

void den_says(struct stage *s, const char *id, const char *text, const char *expected)
{
	int code;
	char *all = den_sh(s, id, text, &code);

	assert_string_equal(all, expected);
	cube_free(all);
}

struct cube_spec den_spec(void)
{
	static char uid[17];

	return stage_spec(uid);
}

static bool den_group_left(const char *id)
{
	static const char *const trees[] = {"", "/unified", "/memory", "/pids", "/cpu", "/freezer"};
	char path[PATH_MAX];
	bool left = false;

	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++) {
		(void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cubefs/%s", trees[i], id);
		left = left || access(path, F_OK) == 0;
	}
	return left;
}

/* Processes are found by the source of their root, which is the sandbox's id. */
static bool den_process_left(const char *id)
{
	char command[200];

	(void)snprintf(command, sizeof(command), "grep -qs ' / .* - overlay %s ' /proc/[0-9]*/mountinfo", id);
	return den_host(command) == 0;
}

bool den_left(const struct stage *s, const char *id)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/cubes/%s", s->dir, id);
	return access(path, F_OK) == 0 || den_group_left(id) || den_process_left(id);
}

/* Behind a change of ids, which takes it back. */
void den_die_together(void)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() == 1)
		_exit(125);
}

int den_again(const char *arg, uid_t uid)
{
	char word[64], self[] = "/proc/self/exe";
	const char *copy = uid != 0 ? den_public() : NULL;
	char *argv[] = {self, word, NULL};
	int status;
	pid_t pid;

	(void)snprintf(word, sizeof(word), "%s", arg);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (uid != 0 &&
		    (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
			_exit(126);
		den_die_together();
		execv(copy != NULL ? copy : self, argv);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
