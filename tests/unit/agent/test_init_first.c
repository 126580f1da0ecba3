/* SPDX-License-Identifier: Apache-2.0 */
/* cube-init as process 1 of a pid namespace, and short of everything: it never dies of it. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/agent/rig.h"

static void each_first(void (*fn)(struct rig *r))
{
	for (int groups = 0; groups < 2; groups++) {
		struct rig *r = rig_new_first(NULL, groups);

		fn(r);
		rig_free(r);
	}
}

static uint64_t sh(struct rig *r, const char *text)
{
	return rig_do(r, &(struct rig_run){.text = text});
}

/* Waits until all that slept has ended and is reaped; the number of those that are left. */
#define ALL_REAPED                                                                                           \
	"for i in $(seq 400); do "                                                                           \
	"n=$(grep -lE '^(Name:.sleep|State:.Z)' /proc/[0-9]*/status 2>/dev/null | wc -l); "                  \
	"[ $n -eq 0 ] && break; sleep 0.05; done; echo $n"

/* Whatever loses its parent becomes its child, and is reaped. */
static void orphans(struct rig *r)
{
	rig_expect(r, sh(r, "for i in 1 2 3 4 5 6 7 8 9 10; do (setsid sh -c 'sleep 0.05' &) ; done"), "",
		   CUBE_END_EXIT, 0);
	rig_expect(r, sh(r, ALL_REAPED), "0\n", CUBE_END_EXIT, 0);
	rig_expect(r, rig_say(r, "(sleep 0.05 &); " ALL_REAPED), "0\n", CUBE_END_EXIT, 0);
}

static void test_orphans(void **state)
{
	(void)state;
	each_first(orphans);
}

/* Signals from inside do nothing to it, not even of root; its descriptors and memory cannot be looked at. */
static void attacks(struct rig *r)
{
	uint64_t id;

	rig_expect(r,
		   sh(r, "for s in HUP QUIT USR1 USR2 PIPE ALRM SEGV BUS FPE ILL ABRT STOP TSTP KILL 34 64; "
			 "do kill -$s 1; done; echo ok"),
		   "ok\n", CUBE_END_EXIT, 0);
	id = sh(r, "ls /proc/1/fd/ 2>&1 | head -n 1; cat /proc/1/environ /proc/1/maps 2>&1 | head -n 1");
	rig_wait_end(r, id);
	rig_expect(r, sh(r, "echo here"), "here\n", CUBE_END_EXIT, 0);
	rig_expect(r, rig_say(r, "cd /usr; export A=1"), "", CUBE_END_EXIT, 0);
	/* Everybody but process 1, the caller's shell too. */
	id = rig_start(r, &(struct rig_run){.text = "echo ready; sleep 300"});
	rig_wait_total(r, id, 6);
	assert_int_equal(rig_job(r, sh(r, "kill -9 -1"))->ends, 1);
	rig_wait_end(r, id);
	(void)usleep(100000); /* they die when they next run */
	rig_expect(r, rig_say(r, "echo $A; pwd"), "1\n/usr\n", CUBE_END_EXIT, 0);
	rig_wait_end(r, rig_say(r, "kill -9 -1"));
	(void)usleep(100000);
	rig_expect(r, rig_say(r, "echo $A; pwd"), "1\n/usr\n", CUBE_END_EXIT, 0);
}

static void test_attacks(void **state)
{
	(void)state;
	each_first(attacks);
}

/* One that forks as fast as it can, within a limit: the agent goes on and ends it. */
static void fork_bomb(struct rig *r)
{
	uint64_t id =
		rig_start(r, &(struct rig_run){.text = "ulimit -u 200; echo ready; b() { b | b & b; }; b",
					       .user = "nobody",
					       .cwd = "/"});

	rig_wait_total(r, id, 6);
	(void)usleep(300000);
	rig_expect(r, sh(r, "echo alive"), "alive\n", CUBE_END_EXIT, 0);
	cube_link_kill(r->link, id, SIGKILL);
	rig_wait_end(r, id);
	rig_expect(r, sh(r, "sleep 0.1; ps -u nobody -o pid= | wc -l"), "0\n", CUBE_END_EXIT, 0);
}

static void test_fork_bomb(void **state)
{
	(void)state;
	each_first(fork_bomb);
}

/* No descriptors: an end with a sentence, and all is well again when there are some. */
static void no_descriptors(struct rig *r)
{
	struct rlimit old, none = {0};
	char path[64];
	uint64_t id;

	rig_expect(r, rig_say(r, "cd /usr; export A=1"), "", CUBE_END_EXIT, 0);
	assert_int_equal(prlimit(r->agent, RLIMIT_NOFILE, NULL, &old), 0);
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)r->agent);
	for (rlim_t n = 8; n < 40; n++) {
		none = (struct rlimit){n, old.rlim_max};
		assert_int_equal(prlimit(r->agent, RLIMIT_NOFILE, &none, NULL), 0);
		id = rig_do(r, &(struct rig_run){.text = "echo fine", .input = true});
		assert_true(rig_job(r, id)->err.code != 0 || rig_job(r, id)->end.code == 0);
		if (rig_job(r, id)->err.code != 0)
			assert_true(rig_job(r, id)->end.code == 126 && rig_job(r, id)->err.text[0] != '\0');
		cube_link_forget(r->link, id);
		id = rig_say(r, "echo fine");
		rig_wait_end(r, id);
		assert_true(rig_job(r, id)->err.code != 0 || rig_has(r, id, "fine\n"));
		cube_link_forget(r->link, id);
	}
	assert_int_equal(prlimit(r->agent, RLIMIT_NOFILE, &old, NULL), 0);
	rig_expect(r, sh(r, "echo fine"), "fine\n", CUBE_END_EXIT, 0);
	rig_expect(r, rig_say(r, "echo $A; pwd"), "1\n/usr\n", CUBE_END_EXIT, 0);
}

static void test_no_descriptors(void **state)
{
	(void)state;
	each_first(no_descriptors);
}

static bool write_file(const char *dir, const char *name, const char *text)
{
	char path[160];
	int fd;
	bool ok;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ok = fd >= 0 && write(fd, text, strlen(text)) > 0;
	if (fd >= 0)
		(void)close(fd);
	return ok;
}

/* No processes: the same. */
static void test_no_processes(void **state)
{
	static const char *const tops[] = {"/sys/fs/cgroup/pids", "/sys/fs/cgroup"};
	char group[96] = "", pid[16];
	struct rig *r;
	uint64_t id;

	(void)state;
	r = rig_new_first(NULL, false);
	(void)snprintf(pid, sizeof(pid), "%d", (int)r->agent);
	for (unsigned i = 0; i < 2; i++) {
		(void)snprintf(group, sizeof(group), "%s/cubefs-pids-%d", tops[i], (int)getpid());
		if (mkdir(group, 0755) == 0 && write_file(group, "pids.max", "1") &&
		    write_file(group, "cgroup.procs", pid))
			break;
		(void)rmdir(group);
		group[0] = '\0';
	}
	if (group[0] != '\0') {
		id = sh(r, "echo no");
		rig_expect(r, id, "", CUBE_END_EXIT, 126);
		assert_int_equal(rig_job(r, id)->err.code, -EAGAIN);
		id = rig_say(r, "echo no");
		rig_expect(r, id, "", CUBE_END_EXIT, 126);
		assert_int_equal(rig_job(r, id)->err.code, -EAGAIN);
		/* Room for the wrapper and not for what it wraps. */
		assert_true(write_file(group, "pids.max", "2"));
		id = sh(r, "echo no");
		rig_expect(r, id, "", CUBE_END_EXIT, 126);
		assert_int_equal(rig_job(r, id)->err.code, -EAGAIN);
		assert_true(write_file(group, "pids.max", "max"));
		rig_expect(r, rig_say(r, "echo yes"), "yes\n", CUBE_END_EXIT, 0);
	}
	rig_free(r);
	if (group[0] != '\0')
		assert_int_equal(rmdir(group), 0);
}

/* TERM stops the sandbox: TERM for all, HUP for a terminal's shell; a second one is KILL for those who do not listen, and
 * it is gone with them. */
static void stopping(struct rig *r)
{
	uint64_t polite = rig_start(
		r, &(struct rig_run){
			   .text = "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.02; done"});
	uint64_t deaf = rig_start(
		r, &(struct rig_run){.text = "trap '' TERM; echo ready; while :; do sleep 0.02; done"});
	int status;

	rig_wait_total(r, polite, 6);
	rig_wait_total(r, deaf, 6);
	assert_int_equal(kill(r->agent, SIGTERM), 0);
	rig_expect(r, polite, NULL, CUBE_END_EXIT, 5);
	assert_int_equal(waitpid(r->agent, &status, WNOHANG), 0); /* it waits for the other */
	assert_int_equal(kill(r->agent, SIGTERM), 0);
	assert_int_equal(waitpid(r->agent, &status, 0), r->agent);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	r->agent = 0;
	assert_true(rig_has(r, polite, "bye\n"));
	rig_expect(r, deaf, NULL, CUBE_END_KILLED, 137);
}

static void test_stopping(void **state)
{
	(void)state;
	each_first(stopping);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_orphans),      cmocka_unit_test(test_attacks),
		cmocka_unit_test(test_fork_bomb),    cmocka_unit_test(test_no_descriptors),
		cmocka_unit_test(test_no_processes), cmocka_unit_test(test_stopping),
	};

	if (geteuid() != 0) {
		print_message("only root may make a pid namespace: skipped\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
