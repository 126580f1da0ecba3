/* SPDX-License-Identifier: Apache-2.0 */
/* The local backend for an ordinary user. The test is root's: it runs itself again as somebody, without and
 * with subordinate ids (in a mount namespace where /etc/subuid and /etc/subgid say so). */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
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
#include "backends/local/ids.h"
#include "tests/unit/backends/den.h"

#define COUNT         65536
#define VICTIM_ROUNDS 1000 /* nobody killed it: the test is over */
#define ROUNDS        8

static struct stage stage;
/* Ids that nobody else has here, not even another run of this test. */
static uid_t somebody;
static uint32_t subordinates;

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

static void destroy(char *id)
{
	struct cube_err err;

	if (cube_backend_destroy(stage.b, id, &err) < 0)
		fail_msg("destroy: %s", err.text);
	assert_false(den_left(&stage, id));
	cube_free(id);
}

/* ---- as somebody ---- */

static void life(void **state)
{
	char *id = stage_create(&stage, NULL);

	(void)state;
	den_says(&stage, id, "id -u; pwd; echo kept >/etc/kept; echo w >w; cat /etc/kept",
		 "0\n/workspace\nkept\n");
	assert_int_equal(cube_backend_stop(stage.b, id, 5, NULL, NULL), 0);
	assert_int_equal(stage_state(&stage, id), CUBE_IS_STOPPED);
	assert_int_equal(cube_backend_start(stage.b, id, NULL, NULL), 0);
	den_says(&stage, id, "cat /etc/kept w", "kept\nw\n");
	destroy(id);
}

static void files(void **state)
{
	char *id = stage_create(&stage, NULL);
	struct cube_root root;
	struct stat st;

	(void)state;
	den_says(&stage, id, "echo x >/workspace/f", "");
	assert_int_equal(cube_backend_root(stage.b, id, &root, NULL), 0);
	assert_true(root.swap_owner);
	assert_int_equal(root.n_mounts >= 2, 1);
	assert_string_equal(root.mounts[0].path, "/workspace");
	assert_false(root.mounts[0].read_only);
	assert_string_equal(root.mounts[1].path + 1,
			    strchr("uo", root.mounts[1].path[1]) ? root.mounts[1].path + 1 : "");
	assert_true(root.mounts[1].read_only);
	assert_int_equal(fstatat(root.mounts[0].fd, "f", &st, 0), 0);
	assert_int_equal(st.st_uid, root.uid_base);
	cube_root_close(&root);
	destroy(id);
}

/* This machine's programs cannot be changed; its other files are not there. */
static void host_is_closed(void **state)
{
	char *id = stage_create(&stage, NULL);

	(void)state;
	den_says(&stage, id, "touch /usr/bin/x 2>/dev/null || echo closed", "closed\n");
	den_says(&stage, id, "ls -A /root /home /srv | grep -v '^/' | tr -d '\\n'", "");
	den_says(&stage, id, "grep -c ' / / ' /proc/self/mountinfo", "0\n");
	den_says(&stage, id, "unshare -Ur true 2>/dev/null || echo refused", "refused\n");
	destroy(id);
}

static void processes_are_limited(void **state)
{
	struct cube_spec spec = den_spec();
	char *id = NULL, *neighbour = stage_create(&stage, NULL), *out;
	struct cube_err err;
	int code;

	(void)state;
	spec.limits.pids = 30;
	if (cube_backend_create(stage.b, &spec, NULL, &id, &err) < 0)
		fail_msg("create: %s", err.text);
	out = den_sh(&stage, id, "for i in $(seq 100); do sleep 100 & done >/dev/null 2>&1; echo all", &code);
	assert_null(strstr(out, "all"));
	cube_free(out);
	den_says(&stage, neighbour, "for i in $(seq 50); do sleep 1 >/dev/null & done; echo all", "all\n");
	destroy(id);
	destroy(neighbour);
}

static void pause_by_signals(void **state)
{
	char *id = stage_create(&stage, NULL);
	struct ear *e = ear_open(&stage, id);
	struct run r;

	(void)state;
	run_init(
		&r, e,
		"echo 0 >/workspace/n; echo ready; i=0; while :; do i=$((i+1)); echo $i >/workspace/n; done");
	run_start(&r);
	ear_wait_output(e, r.start.job, 6);
	assert_int_equal(cube_backend_pause(stage.b, id, NULL, NULL), 0);
	assert_int_equal(stage_state(&stage, id), CUBE_IS_PAUSED);
	{
		struct cube_root root;
		struct stat a, b;

		assert_int_equal(cube_backend_root(stage.b, id, &root, NULL), 0);
		assert_int_equal(fstatat(root.mounts[0].fd, "n", &a, 0), 0);
		(void)usleep(100000);
		assert_int_equal(fstatat(root.mounts[0].fd, "n", &b, 0), 0);
		assert_int_equal(a.st_mtim.tv_nsec, b.st_mtim.tv_nsec);
		cube_root_close(&root);
	}
	assert_int_equal(cube_backend_resume(stage.b, id, NULL, NULL), 0);
	assert_int_equal(stage_state(&stage, id), CUBE_IS_RUNNING);
	ear_close(e);
	(void)close(r.start.out_fd);
	(void)close(r.start.order_fd);
	destroy(id);
}

static void what_is_missing(void **state)
{
	struct cube_spec spec = den_spec();
	struct cube_err err;
	char *id = NULL;

	(void)state;
	if (stage.b->caps & CUBE_CAP_MEMORY)
		skip(); /* a control group is delegated to who runs this */
	assert_non_null(strstr(stage.b->missing[8], "control group"));
	spec.limits.memory = 1 << 30;
	assert_int_equal(cube_backend_create(stage.b, &spec, NULL, &id, &err), -EOPNOTSUPP);
}

static void users(void **state)
{
	char *id = stage_create(&stage, NULL);

	(void)state;
	if (!(stage.b->caps & CUBE_CAP_USERS)) {
		den_says(&stage, id, "chown 1:1 /workspace 2>/dev/null || echo alone", "alone\n");
	} else {
		den_says(&stage, id, "touch f; chown 1000:1000 f && stat -c %u:%g f", "1000:1000\n");
	}
	destroy(id);
}

static int as_somebody(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(life),
		cmocka_unit_test(files),
		cmocka_unit_test(host_is_closed),
		cmocka_unit_test(processes_are_limited),
		cmocka_unit_test(pause_by_signals),
		cmocka_unit_test(what_is_missing),
		cmocka_unit_test(users),
	};

	return cmocka_run_group_tests(tests, open_stage, close_stage);
}

/* ---- one daemon after the other ---- */

/* In the directory VICTIM: "leave" makes a sandbox and leaves it, "find" finds it and ends it, "victim" makes
 * and ends them until it is killed, "sweep" ends what it finds. */
static int role_open(struct cube_backend **ret)
{
	struct cube_backend_env env = {.name = "test",
				       .state_dir = getenv("VICTIM")}; /* NOLINT(concurrency-mt-unsafe) */
	struct cube_err err;

	if (cube_backend_local.prepare(env.state_dir, NULL, &err) < 0 ||
	    cube_backend_open(&cube_backend_local, &env, ret, &err) < 0)
		return 1;
	return 0;
}

static int role_leave(void)
{
	struct cube_spec spec = {.uid = "00000000000000aa", .name = "left"};
	struct cube_backend *b;
	char *id;

	if (role_open(&b) != 0 || cube_backend_create(b, &spec, NULL, &id, NULL) < 0)
		return 1;
	cube_free(id);
	cube_backend_close(b);
	return 0;
}

static int role_find(void)
{
	const char *id = "00000000000000aa";
	struct cube_info info;
	struct cube_backend *b;
	struct cube_root root;
	int rc = role_open(&b);

	if (rc != 0 || cube_backend_inspect(b, id, &info, NULL) < 0 || info.state != CUBE_IS_RUNNING)
		return 1;
	if (cube_backend_root(b, id, &root, NULL) < 0 || mkdirat(root.mounts[0].fd, "found", 0755) < 0)
		return 2;
	cube_root_close(&root);
	if (cube_backend_stop(b, id, 0, NULL, NULL) < 0 || cube_backend_start(b, id, NULL, NULL) < 0)
		return 3;
	rc = cube_backend_destroy(b, id, NULL) < 0 ? 4 : 0;
	cube_backend_close(b);
	return rc;
}

static int role_victim(void)
{
	struct cube_backend *b;
	bool told = false;

	if (role_open(&b) != 0)
		return 1;
	for (unsigned i = 0; i < VICTIM_ROUNDS; i++) {
		struct cube_spec spec = den_spec();
		char *id;

		if (cube_backend_create(b, &spec, NULL, &id, NULL) < 0 ||
		    cube_backend_destroy(b, id, NULL) < 0)
			return 2;
		cube_free(id);
		if (!told)
			told = write(STDOUT_FILENO, "ready\n", 6) == 6;
	}
	return 0;
}

struct swept {
	char ids[8][CUBE_ID_MAX + 1];
	unsigned n;
};

static void swept_each(void *ctx, const struct cube_info *info)
{
	struct swept *s = ctx;

	if (s->n < CUBE_COUNT(s->ids))
		memcpy(s->ids[s->n++], info->id, sizeof(info->id));
}

static int role_sweep(void)
{
	struct swept swept = {.n = 0};
	struct cube_backend *b;

	if (role_open(&b) != 0 || cube_backend_list(b, NULL, swept_each, &swept, NULL) < 0)
		return 1;
	for (unsigned i = 0; i < swept.n; i++)
		if (cube_backend_destroy(b, swept.ids[i], NULL) < 0)
			return 2;
	cube_backend_close(b);
	return 0;
}

static const struct {
	const char *word;
	int (*run)(void);
} roles[] = {
	{"somebody", as_somebody}, {"leave", role_leave}, {"find", role_find},
	{"victim", role_victim},   {"sweep", role_sweep},
};

/* ---- root's part ---- */

static char *user_dir(void)
{
	static char dir[40];

	(void)snprintf(dir, sizeof(dir), "/tmp/cubefs-user.XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chown(dir, somebody, somebody), 0);
	assert_int_equal(setenv("VICTIM", dir, 1), 0); /* NOLINT(concurrency-mt-unsafe) */
	return dir;
}

static void alone(void **state)
{
	(void)state;
	assert_int_equal(den_again("somebody", somebody), 0);
}

static void restarted(void **state)
{
	char *dir = user_dir();

	(void)state;
	assert_int_equal(den_again("leave", somebody), 0);
	assert_int_equal(den_again("find", somebody), 0);
	assert_int_equal(den_remove(dir), 0);
}

static bool something_runs(void)
{
	char command[200];

	(void)snprintf(command, sizeof(command),
		       "ps -eo uid,stat,args | grep -E '^ *(%u|%u) ' | grep -v defunct | grep -q "
		       "'[c]ube-init\\|[c]run'",
		       somebody, subordinates);
	return den_host(command) == 0;
}

static void killed(void **state)
{
	char *dir = user_dir(), kill_all[64];

	(void)state;
	(void)snprintf(kill_all, sizeof(kill_all), "pkill -KILL -x -u %u test_local_user", somebody);
	for (unsigned round = 0; round < ROUNDS; round++) {
		int ends[2];
		char c;
		pid_t pid;

		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		pid = fork();
		if (pid == 0) {
			den_die_together();
			(void)dup2(ends[1], STDOUT_FILENO);
			_exit(den_again("victim", somebody));
		}
		assert_int_equal(close(ends[1]), 0);
		assert_int_equal(read(ends[0], &c, 1), 1);
		(void)usleep(round * 5000);
		assert_int_equal(den_host(kill_all), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_int_equal(close(ends[0]), 0);
		assert_int_equal(den_again("sweep", somebody), 0);
		(void)usleep(20000);
		assert_false(something_runs());
	}
	assert_int_equal(den_remove(dir), 0);
}

/* Lines for somebody in the files that newuidmap reads, seen by this process and its children alone. */
static int give_ids(void **state)
{
	static const char *const files[] = {"/etc/subuid", "/etc/subgid"};

	(void)state;
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	for (size_t i = 0; i < CUBE_COUNT(files); i++) {
		char path[] = "/tmp/cubefs-subids.XXXXXX";
		int fd = mkstemp(path);

		assert_true(fd >= 0);
		assert_true(dprintf(fd, "%u:%u:%d\n", somebody, subordinates, COUNT) > 0);
		assert_int_equal(fchmod(fd, 0644), 0);
		assert_int_equal(close(fd), 0);
		if (access(files[i], F_OK) < 0)
			return -1;
		assert_int_equal(mount(path, files[i], NULL, MS_BIND, NULL), 0);
		assert_int_equal(unlink(path), 0);
	}
	return 0;
}

static void subordinate(void **state)
{
	uint32_t first, count;
	char path[] = "/tmp/cubefs-subids.XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_true(dprintf(fd, "other:1:5\nbad\nme:x:1\nme:300000:70000\n\n77:5:9\nlast:1:1\n") > 0);
	assert_int_equal(close(fd), 0);
	assert_true(cube_local_ids_subordinate(path, "me", 1, &first, &count));
	assert_int_equal(first, 300000);
	assert_int_equal(count, COUNT);
	assert_true(cube_local_ids_subordinate(path, "nobody", 77, &first, &count));
	assert_int_equal(first, 5);
	assert_int_equal(count, 9);
	assert_false(cube_local_ids_subordinate(path, "last", 2, &first, &count)); /* one id is no range */
	assert_false(cube_local_ids_subordinate(path, "unknown", 3, &first, &count));
	assert_int_equal(unlink(path), 0);
	assert_false(cube_local_ids_subordinate(path, "me", 1, &first, &count));
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest without[] = {
		cmocka_unit_test(subordinate),
		cmocka_unit_test(alone),
		cmocka_unit_test(restarted),
		cmocka_unit_test(killed),
	};
	static const struct CMUnitTest with[] = {
		cmocka_unit_test(alone),
		cmocka_unit_test(restarted),
		cmocka_unit_test(killed),
	};
	int rc;

	if (!den_agent())
		return den_skip("cube-init is not built");
	for (size_t i = 0; argc == 2 && i < CUBE_COUNT(roles); i++)
		if (strcmp(argv[1], roles[i].word) == 0)
			return roles[i].run();
	if (geteuid() != 0)
		return as_somebody();
	somebody = 40000 + (uid_t)getpid() % 20000;
	subordinates = 1000000 + (uint32_t)getpid() % 1000 * COUNT;
	den_public_make();
	rc = cmocka_run_group_tests(without, NULL, NULL);
	if (rc == 0)
		rc = cmocka_run_group_tests(with, give_ids, NULL);
	den_public_remove();
	return rc;
}
