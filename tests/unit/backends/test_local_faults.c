/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong around a sandbox: always a sentence, nothing left behind, and the next one works. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "tests/unit/backends/den.h"

#define ROUNDS 24 /* kills at different moments */

static struct stage stage;
static char fakes[] = "/tmp/cubefs-fakes.XXXXXX";
static char path_before[4096];

static void set_path(const char *path)
{
	assert_int_equal(setenv("PATH", path, 1), 0); /* NOLINT(concurrency-mt-unsafe): the loop reads none */
}

static int open_stage(void **state)
{
	(void)state;
	(void)snprintf(path_before, sizeof(path_before), "%s",
		       getenv("PATH")); /* NOLINT(concurrency-mt-unsafe) */
	assert_non_null(mkdtemp(fakes));
	den_open(&stage, NULL);
	return 0;
}

static int close_stage(void **state)
{
	(void)state;
	stage_close(&stage);
	(void)den_remove(fakes);
	return 0;
}

/* A program `crun` before all others in PATH; the instance is opened anew with it. */
static void fake_crun(const char *text)
{
	char path[128], before[4200];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/crun", fakes);
	(void)unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	assert_true(fd >= 0);
	assert_int_equal(dprintf(fd,
				 "#!/bin/sh\ncase $1 in --version) echo crun version 9.9; exit;; esac\n%s\n",
				 text) > 0,
			 1);
	assert_int_equal(close(fd), 0);
	(void)snprintf(before, sizeof(before), "%s:%s", fakes, path_before);
	set_path(before);
	den_reopen(&stage);
}

static void real_crun(void)
{
	set_path(path_before);
	den_reopen(&stage);
}

/* A create that must fail so, with a sentence that has @says in it, and leave nothing. */
static void create_fails(const struct cube_spec *spec, int code, const char *says)
{
	struct cube_err err = {0};
	char *id = NULL;

	assert_int_equal(cube_backend_create(stage.b, spec, NULL, &id, &err), code);
	assert_null(id);
	if (strstr(err.text, says) == NULL)
		fail_msg("'%s' does not say '%s'", err.text, says);
	assert_false(den_left(&stage, spec->uid));
}

static void works_again(void)
{
	char *id = stage_create(&stage, NULL);

	den_says(&stage, id, "echo works", "works\n");
	assert_int_equal(cube_backend_destroy(stage.b, id, NULL), 0);
	assert_false(den_left(&stage, id));
	cube_free(id);
}

static void no_crun(void **state)
{
	struct cube_spec spec = den_spec();
	struct cube_status status;

	(void)state;
	set_path("/nonexistent");
	den_reopen(&stage);
	set_path(path_before);
	assert_int_equal(stage.b->caps, 0);
	create_fails(&spec, -EOPNOTSUPP, "crun is not installed: apt-get install crun");
	assert_int_equal(cube_backend_status(stage.b, NULL, &status, NULL), 0);
	assert_int_equal(status.caps, 0);
	assert_non_null(strstr(status.missing[0], "crun is not installed"));
	den_reopen(&stage);
	works_again();
}

static void old_crun(void **state)
{
	(void)state;
	fake_crun("exit 1");
	assert_true(stage.b->caps != 0);
	set_path(fakes);
	assert_int_equal(den_host("sed -i s/9.9/0.17/ \"$PATH\"/crun 2>/dev/null || /bin/sed -i s/9.9/0.17/ "
				  "\"$PATH\"/crun"),
			 0);
	den_reopen(&stage);
	assert_int_equal(stage.b->caps, 0);
	assert_non_null(strstr(stage.b->missing[0], "too old"));
	real_crun();
}

static void crun_refuses(void **state)
{
	struct cube_spec spec = den_spec();

	(void)state;
	/* --cgroup-manager=disabled --root DIR --log FILE run ... */
	fake_crun("echo 'no such thing here' >$5; exit 3");
	create_fails(&spec, -EIO, "no such thing here");
	fake_crun("kill -KILL $$");
	create_fails(&spec, -EIO, "KILL");
	fake_crun("exit 0"); /* says that all is well, and nothing runs */
	create_fails(&spec, -EIO, "ended at once");
	fake_crun("echo 'write: No space left on device' >$5; exit 1");
	create_fails(&spec, -ENOSPC, "No space");
	real_crun();
	works_again();
}

/* The sandbox runs, and then crun fails. */
static void crun_fails_late(void **state)
{
	struct cube_spec spec = den_spec();
	char text[4200];

	(void)state;
	(void)snprintf(text, sizeof(text), "PATH=%s crun \"$@\"; echo 'a late failure' >$5; exit 1",
		       path_before);
	fake_crun(text);
	create_fails(&spec, -EIO, "a late failure");
	real_crun();
	works_again();
}

static void wrong_wishes(void **state)
{
	struct cube_spec spec = den_spec();

	(void)state;
	spec.template = "no-such";
	create_fails(&spec, -ENOENT, "no template no-such");
	spec.template = "../cubes";
	create_fails(&spec, -EINVAL, "../cubes");
	spec.template = NULL;
	spec.privileged = true;
	create_fails(&spec, -EOPNOTSUPP, "privileged");
	spec.privileged = false;
	spec.limits.disk = 1 << 20;
	if (!(stage.b->caps & CUBE_CAP_DISK))
		create_fails(&spec, -EOPNOTSUPP, "disk");
}

static void unknown_ids(void **state)
{
	static const char *const ids[] = {
		"0123456789abcdef",
		"..",
		".",
		"",
		"x/y",
		"0123456789ABCDEF",
		"00000000000000000000000000000000000000000000000000000000000000000"};
	struct cube_info info;

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(ids); i++) {
		assert_true(cube_backend_inspect(stage.b, ids[i], &info, NULL) < 0);
		assert_true(cube_backend_start(stage.b, ids[i], NULL, NULL) < 0);
	}
	assert_int_equal(cube_backend_destroy(stage.b, ids[0], NULL), 0);
}

/* ---- a disk that is full ---- */

static void fill(const char *dir, bool all)
{
	static const char zeros[65536];
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/ballast", dir);
	if (!all) {
		assert_int_equal(unlink(path), 0);
		return;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	while (write(fd, zeros, 1) > 0)
		;
	assert_int_equal(close(fd), 0);
}

static void full_disk(void **state)
{
	char dir[] = "/tmp/cubefs-small.XXXXXX", state_dir[64];
	struct cube_backend_env env = stage.env;
	struct cube_backend *before = stage.b;
	char stage_dir[sizeof(stage.dir)];

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(mount("small", dir, "tmpfs", 0, "size=2m"),
			 0); /* in the namespace of this process */
	(void)snprintf(state_dir, sizeof(state_dir), "%s/state", dir);
	assert_int_equal(mkdir(state_dir, 0700), 0);
	memcpy(stage_dir, stage.dir, sizeof(stage_dir));
	(void)snprintf(stage.dir, sizeof(stage.dir), "%s", state_dir);
	env.state_dir = state_dir;
	assert_int_equal(cube_backend_open(&cube_backend_local, &env, &stage.b, NULL), 0);
	works_again();
	fill(dir, true);
	for (unsigned i = 0; i < 3; i++) {
		struct cube_spec spec = den_spec();

		create_fails(&spec, -ENOSPC, "");
	}
	fill(dir, false);
	works_again();
	cube_backend_close(stage.b);
	stage.b = before;
	memcpy(stage.dir, stage_dir, sizeof(stage_dir));
	assert_int_equal(umount2(dir, MNT_DETACH), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* ---- a daemon that is killed ---- */

/* In a process of its own: makes and ends sandboxes until it is killed. */
static int victim(void)
{
	struct cube_backend_env env = {.name = "test",
				       .state_dir = getenv("VICTIM")}; /* NOLINT(concurrency-mt-unsafe) */
	struct cube_backend *b;
	struct cube_err err;

	if (cube_backend_local.prepare(env.state_dir, NULL, &err) < 0 ||
	    cube_backend_open(&cube_backend_local, &env, &b, &err) < 0)
		return 1;
	(void)!write(STDOUT_FILENO, "ready\n", 6);
	for (;;) {
		struct cube_spec spec = den_spec();
		char *id;

		spec.template = "box"; /* for which no walk over this machine's files has to be waited for */
		if (cube_backend_create(b, &spec, NULL, &id, &err) < 0 ||
		    cube_backend_destroy(b, id, &err) < 0)
			return 2;
		cube_free(id);
	}
}

static pid_t victim_start(int *ret_out)
{
	char self[4096], word[] = "victim";
	char *argv[] = {self, word, NULL};
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int ends[2] = {-1, -1};
	pid_t pid;

	assert_true(n > 0 && pipe2(ends, O_CLOEXEC) == 0);
	self[n] = '\0';
	assert_int_equal(setenv("VICTIM", stage.dir, 1), 0); /* NOLINT(concurrency-mt-unsafe) */
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (dup2(ends[1], STDOUT_FILENO) < 0)
			_exit(1);
		den_die_together();
		execv(self, argv);
		_exit(127);
	}
	assert_int_equal(close(ends[1]), 0);
	*ret_out = ends[0];
	return pid;
}

struct leftovers {
	char ids[16][CUBE_ID_MAX + 1];
	unsigned n;
};

static void leftovers_each(void *ctx, const struct cube_info *info)
{
	struct leftovers *l = ctx;

	assert_true(l->n < CUBE_COUNT(l->ids));
	assert_string_equal(info->id, info->uid);
	memcpy(l->ids[l->n++], info->id, sizeof(info->id));
}

static void import_box(void)
{
	struct den_tar *t = den_tar_new(NULL);
	struct cube_err err;
	int fd;

	den_tar_root(t);
	fd = den_tar_end(t);
	if (stage_import(&stage, "box", "/box.tar", fd, &err) < 0)
		fail_msg("import: %s", err.text);
	assert_int_equal(close(fd), 0);
}

static void killed_daemon(void **state)
{
	char ready[16];

	(void)state;
	import_box();
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct leftovers left = {.n = 0};
		struct cube_err err = {0};
		int out;
		pid_t pid = victim_start(&out);

		assert_true(read(out, ready, sizeof(ready)) > 0);
		(void)usleep(round * 2500);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_int_equal(close(out), 0);
		den_reopen(&stage);
		assert_int_equal(cube_backend_list(stage.b, NULL, leftovers_each, &left, &err), 0);
		for (unsigned i = 0; i < left.n; i++) {
			struct cube_info info;

			assert_int_equal(cube_backend_inspect(stage.b, left.ids[i], &info, &err), 0);
			if (cube_backend_destroy(stage.b, left.ids[i], &err) < 0)
				fail_msg("round %u: %s", round, err.text);
			assert_false(den_left(&stage, left.ids[i]));
		}
	}
	works_again();
}

static void damaged_record(void **state)
{
	char *id = stage_create(&stage, NULL), path[128];
	struct cube_info info;
	struct cube_err err;
	int fd;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/cubes/%s/local.json", stage.dir, id);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "{\"version\":", 11), 11);
	assert_int_equal(close(fd), 0);
	den_reopen(&stage);
	assert_true(stage_listed(&stage, id));
	assert_int_equal(cube_backend_inspect(stage.b, id, &info, NULL), 0);
	assert_string_equal(info.reason, "damaged");
	assert_int_equal(cube_backend_start(stage.b, id, NULL, &err), -EIO);
	assert_int_equal(cube_backend_destroy(stage.b, id, NULL), 0);
	assert_false(den_left(&stage, id));
	cube_free(id);
}

/* ---- cancelling ---- */

static void *fire_soon(void *arg)
{
	(void)usleep(200000);
	cube_cancel_fire(arg);
	return NULL;
}

static void cancelled(void **state)
{
	struct cube_cancel *cancel = cube_cancel_new();
	struct cube_spec spec = den_spec();
	struct cube_err err = {0};
	pthread_t thread;
	char *id = NULL;

	(void)state;
	fake_crun("sleep 60");
	assert_int_equal(pthread_create(&thread, NULL, fire_soon, cancel), 0);
	assert_int_equal(cube_backend_create(stage.b, &spec, cancel, &id, &err), -EINTR);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(den_left(&stage, spec.uid));
	assert_int_equal(cube_backend_create(stage.b, &spec, cancel, &id, &err), -EINTR);
	assert_false(den_left(&stage, spec.uid));
	cube_cancel_unref(cancel);
	real_crun();
	works_again();
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_crun),        cmocka_unit_test(old_crun),
		cmocka_unit_test(crun_refuses),   cmocka_unit_test(crun_fails_late),
		cmocka_unit_test(wrong_wishes),   cmocka_unit_test(unknown_ids),
		cmocka_unit_test(full_disk),      cmocka_unit_test(killed_daemon),
		cmocka_unit_test(damaged_record), cmocka_unit_test(cancelled),
	};

	if (!den_agent())
		return den_skip("cube-init is not built");
	if (argc == 2 && strcmp(argv[1], "victim") == 0)
		return victim();
	if (geteuid() != 0)
		return den_skip("as an ordinary user: test_local_user");
	return cmocka_run_group_tests(tests, open_stage, close_stage);
}
