/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a command and does not let any process of it live on: reap SECONDS COMMAND [ARGUMENT...]
 *
 * It is the subreaper of all that the command starts, so that daemons, their children and the sandboxes'
 * first processes become its children when their parents end. When the command has ended they get a moment
 * to end too; what is left then is named, killed, and makes the result a failure. After SECONDS the command
 * and its process group get TERM, and ten seconds later KILL. Result: the command's exit code, 128+signal,
 * or 1. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE_MS 5000  /* for what ends behind the command */
#define KILL_MS  10000 /* between TERM and KILL */
#define TICK_MS  20

static pid_t command;
static int status;
static bool ended;

static volatile sig_atomic_t told_to_end;

static void on_signal(int sig)
{
	(void)sig;
	told_to_end = 1;
}

static long now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void tick(void)
{
	const struct timespec t = {.tv_nsec = TICK_MS * 1000000L};

	(void)nanosleep(&t, NULL);
}

/* Collects who ended. False: there is no child any more. */
static bool collect(void)
{
	for (;;) {
		int how;
		pid_t pid = waitpid(-1, &how, WNOHANG);

		if (pid < 0)
			return errno == EINTR;
		if (pid == 0)
			return true;
		if (pid == command) {
			status = how;
			ended = true;
		}
	}
}

/* A child of ours, or 0. The kernel lists them in /proc/self/task/TID/children. */
static pid_t first_child(void)
{
	char path[64], text[32] = "";
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	return n > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

static void tell(pid_t pid)
{
	char path[64], text[256] = "";
	ssize_t n = 0;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		(void)close(fd);
	}
	for (ssize_t i = 0; i + 1 < n; i++)
		if (text[i] == '\0')
			text[i] = ' ';
	(void)fprintf(stderr, "FAIL: a process is left: %d %s\n", (int)pid, text);
}

/* Waits for the command; false when it had to be ended. */
static bool wait_command(long seconds)
{
	long end = now_ms() + seconds * 1000, kill_at = 0;

	while (collect() && !ended) {
		if (kill_at == 0 && (told_to_end || now_ms() >= end)) {
			(void)fprintf(stderr, "FAIL: ended after %ld seconds\n", seconds);
			(void)kill(-command, SIGTERM);
			kill_at = now_ms() + KILL_MS;
		} else if (kill_at != 0 && now_ms() >= kill_at) {
			(void)kill(-command, SIGKILL);
		}
		tick();
	}
	return kill_at == 0;
}

/* True: nothing of it was left. */
static bool wait_rest(void)
{
	long end = now_ms() + GRACE_MS;
	bool clean = true;
	pid_t left;

	while (collect() && now_ms() < end)
		tick();
	while (collect()) {
		left = first_child();
		if (left > 0) {
			tell(left);
			(void)kill(left, SIGKILL);
			clean = false;
		}
		tick();
	}
	return clean;
}

int main(int argc, char **argv)
{
	const struct sigaction act = {.sa_handler = on_signal};
	long seconds = argc > 2 ? strtol(argv[1], NULL, 10) : 0;
	bool clean;

	if (seconds <= 0) {
		(void)fprintf(stderr, "usage: reap SECONDS COMMAND [ARGUMENT...]\n");
		return 2;
	}
	if (prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L) < 0) {
		perror("reap: prctl");
		return 2;
	}
	(void)sigaction(SIGTERM, &act, NULL);
	(void)sigaction(SIGINT, &act, NULL);
	command = fork();
	if (command < 0) {
		perror("reap: fork");
		return 2;
	}
	if (command == 0) {
		(void)setpgid(0, 0);
		(void)execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	(void)setpgid(command, command); /* whoever comes first */
	clean = wait_command(seconds);
	clean = wait_rest() && clean;
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	return WEXITSTATUS(status) == 0 && !clean ? 1 : WEXITSTATUS(status);
}
