/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox must not see, do or take: this machine's secrets and paths, its agent, rights outside, more
 * than its share. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "tests/unit/backends/den.h"

static struct stage stage;
static char *box, *neighbour;
static char secret[] = "/opt/cubefs-test-secret.XXXXXX";
static char private_dir[] = "/usr/lib/cubefs-test-private.XXXXXX";

static void make_secrets(void)
{
	char path[64];
	int fd = mkstemp(secret);

	assert_true(fd >= 0 && close(fd) == 0); /* mode 0600 */
	assert_non_null(mkdtemp(private_dir));  /* mode 0700 */
	(void)snprintf(path, sizeof(path), "%s/f", private_dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0 && close(fd) == 0);
}

static int open_stage(void **state)
{
	(void)state;
	make_secrets();
	den_open(&stage, NULL);
	neighbour = stage_create(&stage, NULL); /* the first: crun compiles its filter of system calls ... */
	box = stage_create(&stage, NULL);       /* ... and is given it for this one */
	return 0;
}

static int close_stage(void **state)
{
	(void)state;
	assert_int_equal(cube_backend_destroy(stage.b, box, NULL), 0);
	assert_int_equal(cube_backend_destroy(stage.b, neighbour, NULL), 0);
	cube_free(box);
	cube_free(neighbour);
	stage_close(&stage);
	(void)unlink(secret);
	(void)den_remove(private_dir);
	return 0;
}

static void fails(const char *text)
{
	int code = 0;
	char *out = den_sh(&stage, box, text, &code);

	if (code == 0)
		fail_msg("'%s' works: %s", text, out);
	cube_free(out);
}

/* ---- what is seen ---- */

static void empty_places(void **state)
{
	(void)state;
	den_says(&stage, box, "ls -A /root /home /srv /mnt /media | grep -v '^/' | tr -d '\\n'", "");
	den_says(&stage, box, "stat -c '%a %u' /root /tmp /var/tmp", "700 0\n1777 0\n1777 0\n");
	fails("ls /boot");
	fails("ls /lost+found");
	fails("test -e /var/log/dpkg.log");
}

static void only_known_names(void **state)
{
	char *names;

	(void)state;
	names = den_sh(&stage, box,
		       "ls / | grep -vxE "
		       "'bin|dev|etc|home|lib|lib32|lib64|libx32|media|mnt|opt|proc|root|run|sbin|srv|"
		       "sys|tmp|usr|var|workspace'",
		       (int[]){0});
	assert_string_equal(names, "");
	cube_free(names);
}

static void passwords(void **state)
{
	(void)state;
	fails("grep -v '^[^:]*:\\*:' /etc/shadow"); /* every line of it is a locked one, made here */
	den_says(&stage, box, "stat -c %a:%u /etc/shadow", "640:0\n");
	den_says(&stage, box,
		 "for u in $(cut -d: -f1 /etc/passwd); do grep -q \"^$u:\" /etc/shadow || echo $u; done", "");
	fails("find /etc -type f ! -name 'shadow' ! -name gshadow ! -perm -004 | grep .");
}

static void private_files(void **state)
{
	char text[200];

	(void)state;
	(void)snprintf(text, sizeof(text), "test -e %s", secret);
	fails(text);
	(void)snprintf(text, sizeof(text), "ls %s", private_dir);
	fails(text);
	den_says(&stage, box, "find /usr /opt -xdev ! -type l ! -perm -004 | grep -v cubefs-test- | head -3",
		 "");
	/* The name is free for the sandbox's own use. */
	(void)snprintf(text, sizeof(text), "echo mine >%s; cat %s", secret, secret);
	den_says(&stage, box, text, "mine\n");
}

static void no_paths_of_the_host(void **state)
{
	char text[200];

	(void)state;
	(void)snprintf(text, sizeof(text),
		       "grep -l -e %s -e /state -e upperdir=/ -e lowerdir=/ /proc/*/mountinfo "
		       "/proc/mounts 2>/dev/null; cat /proc/self/mountinfo | grep -c overlay",
		       stage.dir);
	den_says(&stage, box, text, "2\n");
	den_says(&stage, box, "cut -d: -f3 /proc/1/cgroup | sort -u", "/\n");
	fails("ls /sys/fs/cgroup/*/cubefs 2>/dev/null | grep .");
}

static void changes_stay_inside(void **state)
{
	struct stat st;

	(void)state;
	den_says(&stage, box,
		 "touch /usr/bin/cubefs-test-new /etc/cubefs-test-new && chown 1000:1000 /usr/bin/env && "
		 "rm /usr/bin/who && mv /usr/share/doc /usr/share/doc2 && stat -c %u:%g /usr/bin/env",
		 "1000:1000\n");
	assert_int_equal(lstat("/usr/bin/cubefs-test-new", &st), -1);
	assert_int_equal(lstat("/etc/cubefs-test-new", &st), -1);
	assert_int_equal(lstat("/usr/share/doc2", &st), -1);
	assert_int_equal(stat("/usr/bin/env", &st), 0);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(lstat("/usr/bin/who", &st), 0);
	den_says(&stage, neighbour,
		 "test -e /usr/bin/who && test ! -e /usr/bin/cubefs-test-new && echo apart", "apart\n");
}

/* ---- what can be done ---- */

static void no_rights(void **state)
{
	static const char *const texts[] = {
		"mount -t tmpfs x /mnt",
		"mount --bind /usr /mnt",
		"umount /workspace",
		"unshare -U true",
		"unshare -m true",
		"unshare -n true",
		"echo 1 >/proc/sys/kernel/panic",
		"echo b >/proc/sysrq-trigger",
		"echo 100 >/proc/sys/vm/swappiness",
		"mknod /tmp/sda b 8 0",
		"mknod /tmp/mem c 1 1",
		"dmesg",
		"chroot /proc/1/root true",
		"nsenter -t 1 -m true",
		"date -s 2020-01-01",
		"hostname other",
		"echo -1000 >/proc/self/oom_score_adj",
		"cat /proc/kcore | head -c 1 | grep .",
		"head -c 1 /proc/keys | grep .",
	};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(texts); i++)
		fails(texts[i]);
	den_says(&stage, box, "grep -E 'NoNewPrivs|Seccomp:' /proc/self/status | tr -d '\\t\\n'",
		 "NoNewPrivs:1Seccomp:2");
}

static void capabilities(void **state)
{
	(void)state;
	/* Those of containers, without SYS_ADMIN (21), SYS_PTRACE (19), NET_ADMIN (12), SYS_MODULE (16); none
	 * inherited. */
	den_says(&stage, box, "grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)' /proc/self/status | tr -d '\\t' | sort",
		 "CapAmb:0000000000000000\nCapBnd:00000000a80425fb\nCapEff:00000000a80425fb\nCapInh:"
		 "0000000000000000\n"
		 "CapPrm:00000000a80425fb\n");
}

/* System calls that no program of the sandbox needs: numbers of x86_64. */
static void system_calls(void **state)
{
	static const char *const calls[] = {
		"248", /* add_key */
		"250", /* keyctl */
		"321", /* bpf */
		"298", /* perf_event_open */
		"323", /* userfaultfd */
		"425", /* io_uring_setup */
		"304", /* open_by_handle_at */
		"428", /* open_tree */
		"430", /* fsopen */
		"155", /* pivot_root */
		"175", /* init_module */
		"246", /* kexec_load */
		"169", /* reboot */
		"163", /* acct */
	};

	(void)state;
#ifdef __x86_64__
	for (size_t i = 0; i < CUBE_COUNT(calls); i++) {
		char text[160];

		(void)snprintf(text, sizeof(text),
			       "perl -e '$r = syscall(%s, 0, 0, 0, 0, 0); exit($r == -1 && $! == 1 ? 0 : 1)'",
			       calls[i]);
		den_says(&stage, box, text, "");
	}
	/* clone3(CLONE_NEWUSER): its flags cannot be filtered; the namespace's own limit refuses (ENOSPC). */
	den_says(&stage, box,
		 "perl -e '$a = pack(\"Q11\", 0x10000000, 0, 0, 0, 17); $r = syscall(435, $a, 88); "
		 "exit(0) if $r == 0; exit($r == -1 && $! == 28 ? 0 : 1)'",
		 "");
#else
	(void)calls;
	skip();
#endif
}

static void agent_is_safe(void **state)
{
	(void)state;
	den_says(&stage, box, "kill -KILL 1; kill -STOP 1; kill -SEGV 1; sleep 0.1; echo alive", "alive\n");
	fails("for f in 0 1 2 3 4 5 6 7 8 9; do readlink /proc/1/fd/$f; done | grep .");
	fails("cat </proc/1/fd/3");
	fails("ls /proc/1/cwd/ /proc/1/root/");
	fails("cat /proc/1/maps | grep .");
	fails("cat /proc/1/environ | grep .");
	fails("readlink /proc/1/exe");
	fails("cat /proc/1/mem");
	fails("echo x >/dev/.cube-init");
	fails("rm /dev/.cube-init");
	assert_int_equal(stage_state(&stage, box), CUBE_IS_RUNNING);
	den_says(&stage, box, "echo still", "still\n");
}

static void network(void **state)
{
	(void)state;
	den_says(&stage, box, "ls /sys/class/net", "lo\n");
	den_says(&stage, box, "cat /sys/class/net/lo/operstate /proc/net/unix | grep -c @", "0\n");
	fails("bash -c 'echo >/dev/tcp/192.0.2.1/80'");
	den_says(&stage, box, "bash -c 'echo >/dev/tcp/127.0.0.1/1' 2>&1 | grep -o refused | head -1",
		 "refused\n");
}

/* ---- shares ---- */

static char *limited(uint64_t memory, uint32_t pids)
{
	struct cube_spec spec = den_spec();
	struct cube_err err;
	char *id = NULL;

	spec.limits.memory = memory;
	spec.limits.pids = pids;
	if (cube_backend_create(stage.b, &spec, NULL, &id, &err) < 0)
		fail_msg("create: %s", err.text);
	return id;
}

static void end(char *id)
{
	assert_int_equal(cube_backend_destroy(stage.b, id, NULL), 0);
	assert_false(den_left(&stage, id));
	cube_free(id);
}

static void fork_bomb(void **state)
{
	char *id = limited(0, 50);
	struct cube_usage usage;
	struct ear *e = ear_open(&stage, id);
	struct run r;

	(void)state;
	run_init(&r, e, "bomb() { bomb | bomb & }; bomb 2>/dev/null; sleep 600");
	run_start(&r);
	den_says(&stage, neighbour, "for i in $(seq 40); do /bin/true || exit 1; done; echo unhurt",
		 "unhurt\n");
	assert_int_equal(cube_backend_usage(stage.b, id, &usage, NULL), 0);
	assert_true(usage.pids <= 50);
	assert_int_equal(cube_backend_stop(stage.b, id, 1, NULL, NULL), 0);
	ear_close(e);
	(void)close(r.start.out_fd);
	(void)close(r.start.order_fd);
	end(id);
}

static void memory_hog(void **state)
{
	char *id = limited(64 << 20, 0);
	struct ear *e = ear_open(&stage, id);
	struct cube_usage usage;
	struct run r;

	(void)state;
	run_init_argv(&r, e, "perl\0-e\0my $a = 'x' x (300 << 20); print length $a", 51);
	run_start(&r);
	run_wait(&r);
	assert_int_equal(r.ended->end.how, CUBE_END_OOM);
	assert_int_equal(r.ended->end.code, 137);
	run_done(&r);
	ear_close(e);
	assert_int_equal(cube_backend_usage(stage.b, id, &usage, NULL), 0);
	assert_true(usage.oom_kills >= 1);
	assert_int_equal(stage_state(&stage, id), CUBE_IS_RUNNING);
	den_says(&stage, id, "echo lives on", "lives on\n");
	den_says(&stage, neighbour, "echo unhurt", "unhurt\n");
	end(id);
}

/* A kill from inside is not the memory limit's. */
static void killed_inside(void **state)
{
	struct ear *e = ear_open(&stage, box);
	struct run r;

	(void)state;
	run_init(&r, e, "kill -KILL $$");
	run_expect(&r, CUBE_END_SIGNAL, 137);
	run_done(&r);
	ear_close(e);
}

static void limits_change(void **state)
{
	char *id = limited(64 << 20, 0);
	struct cube_limits more = {.memory = 256 << 20};
	struct cube_limits less = {.memory = 32 << 20};

	(void)state;
	assert_int_equal(cube_backend_limit(stage.b, id, &more, NULL), 0);
	den_says(&stage, id, "perl -e 'my $a = q(x) x (100 << 20); print qq(fits\\n)'", "fits\n");
	assert_int_equal(cube_backend_limit(stage.b, id, &less, NULL), 0);
	fails("false");
	end(id);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_places),
		cmocka_unit_test(only_known_names),
		cmocka_unit_test(passwords),
		cmocka_unit_test(private_files),
		cmocka_unit_test(no_paths_of_the_host),
		cmocka_unit_test(changes_stay_inside),
		cmocka_unit_test(no_rights),
		cmocka_unit_test(capabilities),
		cmocka_unit_test(system_calls),
		cmocka_unit_test(agent_is_safe),
		cmocka_unit_test(network),
		cmocka_unit_test(fork_bomb),
		cmocka_unit_test(memory_hog),
		cmocka_unit_test(killed_inside),
		cmocka_unit_test(limits_change),
	};

	if (geteuid() != 0)
		return den_skip("as an ordinary user: test_local_user");
	if (!den_agent())
		return den_skip("cube-init is not built");
	return cmocka_run_group_tests(tests, open_stage, close_stage);
}
