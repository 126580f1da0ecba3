/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox from its creation to its end, and across restarts of the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/local/keep.h"
#include "tests/unit/backends/den.h"

static struct stage stage;

static int open_stage(void **state)
{
	(void)state;
	den_open(&stage, NULL);
	return 0;
}

static int close_stage(void **state)
{
	(void)state;
	stage_close(&stage);
	return 0;
}

static void destroy(const char *id)
{
	struct cube_err err = {0};

	if (cube_backend_destroy(stage.b, id, &err) < 0)
		fail_msg("destroy: %s", err.text);
	assert_false(den_left(&stage, id));
}

static char *read_root(const char *id, const char *path)
{
	struct cube_buf text = CUBE_BUF(65536);
	struct cube_root root;
	struct cube_err err;

	if (cube_backend_root(stage.b, id, &root, &err) < 0)
		fail_msg("root: %s", err.text);
	assert_int_equal(cube_file_read(root.fd, path, &text), 0);
	cube_root_close(&root);
	return cube_buf_steal(&text, NULL);
}

static void whole_life(void **state)
{
	char *id = stage_create(&stage, NULL), *text;

	(void)state;
	den_says(&stage, id, "echo kept >/etc/kept && pwd && echo work >w", "/workspace\n");
	text = read_root(id, "etc/kept");
	assert_string_equal(text, "kept\n");
	cube_free(text);
	assert_int_equal(stage_state(&stage, id), CUBE_IS_RUNNING);
	assert_int_equal(cube_backend_pause(stage.b, id, NULL, NULL), 0);
	assert_int_equal(stage_state(&stage, id), CUBE_IS_PAUSED);
	assert_int_equal(cube_backend_pause(stage.b, id, NULL, NULL), 0);
	assert_int_equal(cube_backend_resume(stage.b, id, NULL, NULL), 0);
	assert_int_equal(cube_backend_stop(stage.b, id, 5, NULL, NULL), 0);
	assert_int_equal(stage_state(&stage, id), CUBE_IS_STOPPED);
	assert_int_equal(cube_backend_stop(stage.b, id, 5, NULL, NULL), 0);
	text = read_root(id, "etc/kept");
	assert_string_equal(text, "kept\n");
	cube_free(text);
	assert_int_equal(cube_backend_start(stage.b, id, NULL, NULL), 0);
	assert_int_equal(cube_backend_start(stage.b, id, NULL, NULL), 0);
	den_says(&stage, id, "cat /etc/kept w", "kept\nwork\n");
	assert_true(stage_listed(&stage, id));
	destroy(id);
	assert_false(stage_listed(&stage, id));
	destroy(id);
	cube_free(id);
}

/* What is written outside is inside at once, and the other way, also after the daemon took the mounts over.
 */
static void both_sides(const char *id)
{
	struct cube_root root;
	cube_auto_fd fd = -1;

	assert_int_equal(cube_backend_root(stage.b, id, &root, NULL), 0);
	assert_int_equal(root.n_mounts, 1);
	assert_string_equal(root.mounts[0].path, "/workspace");
	fd = openat(root.mounts[0].fd, "outside", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "from outside\n", 13), 13);
	den_says(&stage, id, "cat /workspace/outside; echo inside >/workspace/inside; echo >/tmp/t",
		 "from outside\n");
	assert_int_equal(faccessat(root.mounts[0].fd, "inside", F_OK, 0), 0);
	assert_int_equal(faccessat(root.fd, "tmp/t", F_OK, 0), 0);
	assert_int_equal(faccessat(root.fd, "proc/self", F_OK, 0), -1);
	assert_int_equal(faccessat(root.fd, "dev/null", F_OK, 0), -1);
	assert_int_equal(faccessat(root.fd, "workspace/inside", F_OK, 0), -1);
	cube_root_close(&root);
}

static void daemon_restarts(void **state)
{
	char *id = stage_create(&stage, NULL), *paused = stage_create(&stage, NULL);

	(void)state;
	both_sides(id);
	assert_int_equal(cube_backend_pause(stage.b, paused, NULL, NULL), 0);
	den_reopen(&stage);
	assert_true(stage_listed(&stage, id) && stage_listed(&stage, paused));
	assert_int_equal(stage_state(&stage, id), CUBE_IS_RUNNING);
	assert_int_equal(stage_state(&stage, paused), CUBE_IS_PAUSED);
	both_sides(id);
	assert_int_equal(cube_backend_resume(stage.b, paused, NULL, NULL), 0);
	both_sides(paused);
	assert_int_equal(cube_backend_stop(stage.b, id, 0, NULL, NULL), 0);
	assert_int_equal(cube_backend_start(stage.b, id, NULL, NULL), 0);
	both_sides(id);
	assert_int_equal(cube_backend_stop(stage.b, id, 0, NULL, NULL), 0);
	den_reopen(&stage);
	assert_int_equal(stage_state(&stage, id), CUBE_IS_STOPPED);
	assert_int_equal(cube_backend_start(stage.b, id, NULL, NULL), 0);
	den_says(&stage, id, "cat /workspace/inside", "inside\n");
	destroy(id);
	destroy(paused);
	cube_free(id);
	cube_free(paused);
}

/* The answer to a create was lost: the same mark finds the same sandbox. */
static void asked_twice(void **state)
{
	struct cube_spec spec = den_spec();
	char *id = NULL, *again = NULL;

	(void)state;
	assert_int_equal(cube_backend_create(stage.b, &spec, NULL, &id, NULL), 0);
	den_says(&stage, id, "echo here >/workspace/f", "");
	assert_int_equal(cube_backend_create(stage.b, &spec, NULL, &again, NULL), 0);
	assert_string_equal(id, again);
	den_says(&stage, id, "cat /workspace/f", "here\n");
	destroy(id);
	cube_free(id);
	cube_free(again);
}

static pid_t first_process(const char *id)
{
	char command[200];
	int pid = 0;
	FILE *p;

	(void)snprintf(command, sizeof(command),
		       "grep -o '\"pid\": *[0-9]*' %s/cubes/%s/local.json | tr -dc 0-9", stage.dir, id);
	p = popen(command, "r"); /* NOLINT(cert-env33-c) */
	assert_non_null(p);
	assert_int_equal(fscanf(p, "%d", &pid), 1); /* NOLINT(cert-err34-c) */
	(void)pclose(p);
	return pid;
}

static void dies_alone(void **state)
{
	char *id = stage_create(&stage, NULL);
	struct cube_info info;

	(void)state;
	den_says(&stage, id, "echo here >/workspace/f", "");
	assert_int_equal(kill(first_process(id), SIGKILL), 0);
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(cube_backend_inspect(stage.b, id, &info, NULL), 0);
		if (info.state == CUBE_IS_STOPPED)
			break;
		(void)usleep(1000);
	}
	assert_int_equal(info.state, CUBE_IS_STOPPED);
	assert_string_equal(info.reason, "exited");
	assert_int_equal(cube_backend_start(stage.b, id, NULL, NULL), 0);
	den_says(&stage, id, "cat /workspace/f", "here\n");
	destroy(id);
	cube_free(id);
}

static void own_names(void **state)
{
	struct cube_spec spec = den_spec();
	char *id = NULL, expected[64];

	(void)state;
	spec.name = "a-name";
	assert_int_equal(cube_backend_create(stage.b, &spec, NULL, &id, NULL), 0);
	den_says(&stage, id, "hostname; cat /etc/hostname", "a-name\na-name\n");
	den_says(&stage, id, "getent hosts a-name | tr -s ' '", "127.0.1.1 a-name\n");
	(void)snprintf(expected, sizeof(expected), "%s%s\n", id, id);
	den_says(&stage, id, "cat /etc/machine-id", expected);
	den_says(&stage, id, "grep -c nameserver /etc/resolv.conf; true", "0\n");
	destroy(id);
	cube_free(id);
}

static void usage(void **state)
{
	char *id = stage_create(&stage, NULL);
	struct cube_usage u = {.disk = UINT64_MAX};

	(void)state;
	den_says(&stage, id, "head -c 3000000 /dev/zero >/workspace/f; sync", "");
	for (unsigned i = 0; i < 2000 && u.disk == UINT64_MAX; i++) { /* found behind our back */
		assert_int_equal(cube_backend_usage(stage.b, id, &u, NULL), 0);
		(void)usleep(1000);
	}
	assert_true(u.disk >= 3000000 && u.disk < 10000000);
	assert_true(u.pids >= 1 && u.pids < 20);
	assert_true(u.memory > 0 && u.memory < 200000000);
	assert_true(u.cpu_ns > 0 && u.cpu_ns < UINT64_MAX);
	assert_int_equal(u.oom_kills, 0);
	destroy(id);
	cube_free(id);
}

static void templates(void **state)
{
	struct den_tar *t = den_tar_new("xz");
	struct cube_err err;
	char *id;
	int fd;

	(void)state;
	den_tar_root(t);
	den_tar_add(t, "etc/motd", S_IFREG, 0644, 0, "tar\n", 4);
	den_tar_add(t, "home/u/own", S_IFREG, 0600, 1000, "", 0);
	fd = den_tar_end(t);
	if (stage_import(&stage, "box", "/somewhere.tar.xz", fd, &err) < 0)
		fail_msg("import: %s", err.text);
	assert_int_equal(close(fd), 0);
	id = stage_create(&stage, "box");
	den_says(&stage, id, "cat /etc/motd; stat -c %u:%a /home/u/own; id -u", "tar\n1000:600\n0\n");
	assert_int_equal(cube_backend_template_remove(stage.b, "box", &err), -EBUSY);
	destroy(id);
	assert_int_equal(cube_backend_template_remove(stage.b, "box", &err), 0);
	assert_int_equal(cube_backend_template_remove(stage.b, "host", &err), -EPERM);
	cube_free(id);
}

/* The same on a kernel that cannot clone what is attached nowhere. */
static void attached_mounts(void **state)
{
	(void)state;
	assert_int_equal(den_again("attached", 0), 0);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_life),  cmocka_unit_test(daemon_restarts),
		cmocka_unit_test(asked_twice), cmocka_unit_test(dies_alone),
		cmocka_unit_test(own_names),   cmocka_unit_test(usage),
		cmocka_unit_test(templates),
	};
	static const struct CMUnitTest again[] = {cmocka_unit_test(attached_mounts)};
	int rc;

	if (geteuid() != 0)
		return den_skip("as an ordinary user: test_local_user");
	if (!den_agent())
		return den_skip("cube-init is not built");
	if (argc == 2 && strcmp(argv[1], "attached") == 0) {
		cube_local_keep_attached();
		return cmocka_run_group_tests(tests, open_stage, close_stage);
	}
	rc = cmocka_run_group_tests(tests, open_stage, close_stage);
	return rc != 0 ? rc : cmocka_run_group_tests(again, NULL, NULL);
}
