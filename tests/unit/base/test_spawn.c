/* SPDX-License-Identifier: Apache-2.0 */
/* Helper programs: what the child finds, what comes back, time-outs and cancels. */
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"
#include "backends/base/spawn.h"

/* What a test does not name is none; no test means descriptor 0 of its own. */
static struct cube_spawn spawn_of(struct cube_spawn s)
{
	s.cwd = s.cwd != 0 ? s.cwd : -1;
	s.in = s.in != 0 ? s.in : -1;
	s.out = s.out != 0 ? s.out : -1;
	return s;
}

#define SPAWN(...)  spawn_of((struct cube_spawn){__VA_ARGS__})
#define SHELL(text) ((const char *const[]){"sh", "-c", (text), NULL})

/* Runs a shell script; its text must be @want and its exit code @code. */
static void script_says(struct cube_spawn s, int code, const char *want)
{
	struct cube_buf text = CUBE_BUF(10000);
	struct cube_err err = {0};
	int status = -1;

	s.text = &text;
	if (cube_spawn_run(&s, NULL, &status, &err) != 0)
		fail_msg("%s", err.text);
	assert_true(WIFEXITED(status));
	assert_string_equal(cube_buf_str(&text), want);
	assert_int_equal(WEXITSTATUS(status), code);
	cube_buf_done(&text);
}

static void test_text_and_code(void **state)
{
	(void)state;
	script_says(SPAWN(.argv = SHELL("echo out; echo err >&2; exit 3")), 3, "out\nerr\n");
	script_says(SPAWN(.argv = ((const char *const[]){"/bin/sh", "-c", "echo $0 $1", "a b", "c", NULL})),
		    0, "a b c\n");
}

static void test_environment(void **state)
{
	const char *const env[] = {"X=1", "Y=2", NULL};
	char want[8192];

	(void)state;
	(void)snprintf(want, sizeof(want), "LC_ALL=C\nPATH=%s\n", getenv("PATH"));
	script_says(SPAWN(.argv = SHELL("env | grep -v -e '^PWD=' -e '^_=' -e '^SHLVL=' | sort")), 0, want);
	script_says(SPAWN(.argv = SHELL("/usr/bin/env | /usr/bin/sort | /usr/bin/grep '^[XY]'"), .env = env),
		    0, "X=1\nY=2\n");
}

/* Only 0, 1, 2 are open, though here others are, without close-on-exec too. */
static void test_descriptors_are_closed(void **state)
{
	int leaky = open("/dev/null", O_RDONLY); /* NOLINT: on purpose */
	int high = fcntl(leaky, F_DUPFD, 500);

	(void)state;
	assert_true(leaky >= 0 && high >= 500);
	script_says(SPAWN(.argv = SHELL("ls /proc/$$/fd")), 0, "0\n1\n2\n");
	(void)close(leaky);
	(void)close(high);
}

/* Descriptors get their numbers even where these are the others', and one twice. */
static void test_descriptors_are_passed(void **state)
{
	struct place *p = *state;
	const char *const names[] = {"in", "a", "b", "c"};
	const int numbers[] = {90, 5, 3, 4}; /* a, b and c shall become 3, 4, 5, and a once more 6 */
	const int fds[] = {5, 3, 4, 5};
	int high[4];

	for (int i = 0; i < 4; i++) {
		int fd = openat(p->fd, names[i], O_RDWR | O_CREAT | O_CLOEXEC, 0600);

		high[i] = fcntl(fd, F_DUPFD_CLOEXEC, 50);
		(void)close(fd);
	}
	for (int i = 0; i < 4; i++) {
		assert_int_equal(dup3(high[i], numbers[i], O_CLOEXEC), numbers[i]);
		(void)close(high[i]);
	}
	assert_int_equal(pwrite(90, "content\n", 8, 0), 8);
	script_says(
		SPAWN(.argv = SHELL("for i in 3 4 5 6; do basename $(readlink /proc/$$/fd/$i); done; cat"),
		      .fds = fds, .nfds = 4, .in = 90),
		0, "a\nb\nc\na\ncontent\n");
	for (int i = 0; i < 4; i++)
		(void)close(numbers[i]);
}

/* A daemon that was started without 0, 1 and 2: our own pipes have these numbers then. */
static int spawn_without_stdio(const struct place *p)
{
	const int fds[] = {p->fd, p->fd};
	struct cube_spawn s = SPAWN(.argv = SHELL("cat; pwd -P; ls -d /proc/self/fd/4/; ls /proc/$$/fd"),
				    .fds = fds, .nfds = 2, .cwd = p->fd);
	struct cube_buf text = CUBE_BUF(1000);
	char want[200];
	int status = -1;

	(void)snprintf(want, sizeof(want), "%s\n/proc/self/fd/4/\n0\n1\n2\n3\n4\n", p->path);
	for (int fd = 0; fd < 50; fd++)
		(void)close(fd);
	s.text = &text;
	if (cube_spawn_run(&s, NULL, &status, NULL) != 0 || status != 0)
		return 1;
	status = strcmp(cube_buf_str(&text), want) != 0 ? 2 : 0;
	cube_buf_done(&text);
	return status;
}

static void test_without_stdio(void **state)
{
	pid_t pid = fork();
	int status = 0;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(spawn_without_stdio(*state));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_out(void **state)
{
	struct place *p = *state;
	cube_auto_fd out = openat(p->fd, "out", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	char data[16] = "";

	script_says(SPAWN(.argv = SHELL("echo out; echo err >&2"), .out = out), 0, "err\n");
	assert_int_equal(pread(out, data, sizeof(data), 0), 4);
	assert_memory_equal(data, "out\n", 4);
}

static void test_in_is_empty(void **state)
{
	(void)state;
	script_says(SPAWN(.argv = SHELL("cat; echo end")), 0, "end\n");
}

static void test_directory(void **state)
{
	struct place *p = *state;
	char want[80];

	script_says(SPAWN(.argv = SHELL("pwd")), 0, "/\n");
	(void)snprintf(want, sizeof(want), "%s\n", p->path);
	script_says(SPAWN(.argv = SHELL("pwd"), .cwd = p->fd), 0, want);
}

static void do_nothing(int sig)
{
	(void)sig;
}

/* No signal is blocked, ignored or handled; the child leads a session of its own. */
static void test_signals(void **state)
{
	static const char script[] =
		"grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d '\\t'; "
		"set -- $(cut -d' ' -f1,5,6 /proc/$$/stat); [ $1 = $2 ] && [ $1 = $3 ] && echo leads";
	static const char want[] = "SigBlk:0000000000000000\nSigIgn:0000000000000000\nleads\n";
	sigset_t some, before;

	(void)state;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGUSR1, do_nothing);
	(void)sigemptyset(&some);
	(void)sigaddset(&some, SIGTERM);
	(void)sigaddset(&some, SIGRTMIN);
	(void)pthread_sigmask(SIG_BLOCK, &some, &before);
	script_says(SPAWN(.argv = SHELL(script)), 0, want);
	(void)pthread_sigmask(SIG_SETMASK, NULL, &some);
	assert_int_equal(sigismember(&some, SIGTERM), 1); /* ours are as they were */
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	assert_true(signal(SIGUSR1, SIG_DFL) == do_nothing);
}

static void fails_with(struct cube_spawn s, int code, const char *text)
{
	struct cube_err err = {0};
	int status = -7;

	assert_int_equal(cube_spawn_run(&s, NULL, &status, &err), code);
	assert_string_equal(err.text, text);
	assert_int_equal(status, -7);
	assert_int_equal(cube_spawn_run(&s, NULL, &status, NULL), code);
	assert_int_equal(waitpid(-1, &status, WNOHANG), -1); /* no child is left */
	assert_int_equal(errno, ECHILD);
}

static int setup_fails(void *ctx)
{
	return *(int *)ctx;
}

static void test_failures(void **state)
{
	struct place *p = *state;
	cube_auto_fd file = openat(p->fd, "plain", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int bad_fd = 999, error = -EUSERS;
	char script[96], want[160];

	fails_with(SPAWN(.argv = ((const char *const[]){"cubefs-none", NULL})), -ENOENT,
		   "cubefs-none: no such program in PATH");
	fails_with(SPAWN(.argv = ((const char *const[]){"/none/x", NULL})), -ENOENT,
		   "/none/x: no such program, or its interpreter is missing");
	fails_with(SPAWN(.argv = ((const char *const[]){"/etc/passwd", NULL})), -EACCES,
		   "/etc/passwd: exec: Permission denied");
	fails_with(SPAWN(.argv = SHELL("exit 0"), .cwd = file), -ENOTDIR,
		   "sh: its directory: Not a directory");
	fails_with(SPAWN(.argv = SHELL("exit 0"), .fds = &bad_fd, .nfds = 1), -EBADF,
		   "sh: its descriptors: Bad file descriptor");
	fails_with(SPAWN(.argv = SHELL("exit 0"), .group = &bad_fd), -EBADF, "sh: Bad file descriptor");
	fails_with(SPAWN(.argv = SHELL("exit 0"), .setup = setup_fails, .setup_ctx = &error), -EUSERS,
		   "sh: its setup: Too many users");
	(void)snprintf(script, sizeof(script), "%s/script", p->path);
	{
		cube_auto_fd fd = open(script, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
		assert_int_equal(write(fd, "#!/none/sh\n", 11), 11);
	}
	(void)snprintf(want, sizeof(want), "%s: no such program, or its interpreter is missing", script);
	fails_with(SPAWN(.argv = ((const char *const[]){script, NULL})), -ENOENT, want);
}

static int setup_umask(void *ctx)
{
	(void)umask(*(mode_t *)ctx);
	return 0;
}

static void test_setup(void **state)
{
	mode_t mask = 0123;

	(void)state;
	script_says(SPAWN(.argv = SHELL("umask"), .setup = setup_umask, .setup_ctx = &mask), 0, "0123\n");
	assert_int_not_equal(umask(022), 0123); /* not ours */
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* The whole group dies: nobody is left who has the other end of the pipe. */
static void test_timeout(void **state)
{
	struct cube_spawn s = SPAWN(.argv = SHELL("trap '' TERM; echo begun; sleep 100 & wait; sleep 100"),
				    .timeout_ms = 300);
	struct cube_buf text = CUBE_BUF(100);
	struct cube_err err = {0};
	struct pollfd held = {.events = POLLIN};
	uint64_t begin = now_ms();
	int fds[2], status = -7;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	s.text = &text;
	s.fds = &fds[1];
	s.nfds = 1;
	assert_int_equal(cube_spawn_run(&s, NULL, &status, &err), -ETIMEDOUT);
	assert_string_equal(err.text, "sh: did not finish within 300 ms and was killed");
	assert_string_equal(cube_buf_str(&text), "begun\n");
	assert_int_equal(status, -7);
	assert_true(now_ms() - begin >= 300 && now_ms() - begin < 20000);
	(void)close(fds[1]);
	held.fd = fds[0];
	assert_int_equal(poll(&held, 1, 20000), 1);
	(void)close(fds[0]);
	cube_buf_done(&text);
	script_says(SPAWN(.argv = SHELL("echo fast"), .timeout_ms = 60000), 0, "fast\n");
}

static void *fire_later(void *arg)
{
	(void)usleep(100000);
	cube_cancel_fire(arg);
	return NULL;
}

static void test_cancel(void **state)
{
	struct cube_spawn s = SPAWN(.argv = SHELL("sleep 100"));
	struct cube_cancel *cancel = cube_cancel_new();
	struct cube_err err = {0};
	uint64_t begin = now_ms();
	pthread_t thread;
	int status = -7;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, fire_later, cancel), 0);
	assert_int_equal(cube_spawn_run(&s, cancel, &status, &err), -EINTR);
	assert_string_equal(err.text, "sh: cancelled");
	assert_true(now_ms() - begin < 20000);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(waitpid(-1, &status, WNOHANG), -1);
	/* fired before: nothing is started */
	s.argv = ((const char *const[]){"cubefs-none", NULL});
	assert_int_equal(cube_spawn_run(&s, cancel, &status, &err), -EINTR);
	cube_cancel_unref(cancel);
}

/* Much text neither hangs the child nor passes the ceiling. */
static void test_ceiling_of_text(void **state)
{
	struct cube_spawn s = SPAWN(.argv = SHELL("head -c 1000000 /dev/zero | tr '\\0' x; exit 5"));
	struct cube_buf text = CUBE_BUF(1000);
	int status = -1;

	(void)state;
	s.text = &text;
	assert_int_equal(cube_spawn_run(&s, NULL, &status, NULL), 0);
	assert_int_equal(WEXITSTATUS(status), 5);
	assert_int_equal(text.len, 1000);
	assert_int_equal(text.error, 0);
	cube_buf_done(&text);
}

/* One that stays behind and keeps the pipe open delays nobody. */
static void test_grandchild(void **state)
{
	struct cube_spawn s = SPAWN(.argv = SHELL("sleep 30 & echo $!"));
	struct cube_buf text = CUBE_BUF(100);
	uint64_t begin = now_ms();
	int status = -1;
	long pid;

	(void)state;
	s.text = &text;
	assert_int_equal(cube_spawn_run(&s, NULL, &status, NULL), 0);
	assert_true(now_ms() - begin < 20000);
	pid = strtol(cube_buf_str(&text), NULL, 10);
	assert_true(pid > 1);
	assert_int_equal(kill((pid_t)pid, SIGKILL), 0);
	cube_buf_done(&text);
}

static void test_start(void **state)
{
	struct cube_spawn s = SPAWN(.argv = SHELL("read x; exit $x"));
	int fds[2], status = 0;
	pid_t pid = -1;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	s.in = fds[0];
	assert_int_equal(cube_spawn_start(&s, &pid, NULL), 0);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	assert_int_equal(write(fds[1], "9\n", 2), 2);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 9);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

static void test_out_of_memory(void **state)
{
	struct cube_spawn s = SPAWN(.argv = SHELL("exit 0"));
	unsigned long nth;
	int status;

	(void)state;
	for (nth = 1;; nth++) {
		int r;

		cube_alloc_fail_at(nth);
		r = cube_spawn_run(&s, NULL, &status, NULL);
		cube_alloc_fail_at(0);
		if (r == 0)
			break;
		assert_int_equal(r, -ENOMEM);
	}
	assert_true(nth > 3);
}

static const struct describe_case {
	int status;
	const char *text; /* NULL: no buffer */
	const char *want;
} describe_cases[] = {
	{3 << 8, NULL, "exit code 3"},
	{3 << 8, "", "exit code 3"},
	{0, "first\nlast\n\n", "exit code 0: last"},
	{1 << 8, "only", "exit code 1: only"},
	{1 << 8, "\r\n \t\n", "exit code 1"},
	{SIGKILL, NULL, "signal KILL"},
	{SIGSEGV | 0x80, "core\r\n", "signal SEGV: core"},
	{60, NULL, "signal 60"},
};

static void test_describe(void **state)
{
	char out[64], small[8];

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(describe_cases); i++) {
		const struct describe_case *c = &describe_cases[i];
		struct cube_buf text = CUBE_BUF(100);

		if (c->text != NULL)
			(void)cube_buf_adds(&text, c->text);
		cube_spawn_describe(c->status, c->text != NULL ? &text : NULL, out, sizeof(out));
		assert_string_equal(out, c->want);
		cube_buf_done(&text);
	}
	cube_spawn_describe(3 << 8, NULL, small, sizeof(small));
	assert_string_equal(small, "exit co");
}

/* Many at once: each child has its own pipes only, so that none waits for another's. */
static void *run_some(void *arg)
{
	static int failure;

	for (int i = 0; i < 10; i++) {
		struct cube_spawn s = SPAWN(.argv = SHELL("echo text; exit 4"), .timeout_ms = 60000);
		struct cube_buf text = CUBE_BUF(100);
		int status = -1;

		s.text = &text;
		s.setup = arg != NULL ? setup_umask : NULL;
		s.setup_ctx = arg;
		if (cube_spawn_run(&s, NULL, &status, NULL) != 0 || WEXITSTATUS(status) != 4 ||
		    strcmp(cube_buf_str(&text), "text\n") != 0)
			return &failure;
		cube_buf_done(&text);
	}
	return NULL;
}

static void test_many_at_once(void **state)
{
	mode_t mask = 022;
	pthread_t threads[4];

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_some, i % 2 ? &mask : NULL), 0);
	for (size_t i = 0; i < CUBE_COUNT(threads); i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
}

#define IN_PLACE(fn) cmocka_unit_test_setup_teardown(fn, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_and_code),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_descriptors_are_closed),
		IN_PLACE(test_descriptors_are_passed),
		IN_PLACE(test_without_stdio),
		IN_PLACE(test_out),
		cmocka_unit_test(test_in_is_empty),
		IN_PLACE(test_directory),
		cmocka_unit_test(test_signals),
		IN_PLACE(test_failures),
		cmocka_unit_test(test_setup),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_ceiling_of_text),
		cmocka_unit_test(test_grandchild),
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_describe),
		cmocka_unit_test(test_many_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
