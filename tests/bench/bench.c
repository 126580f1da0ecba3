/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what a user of the mount waits for, without a shell of its own in between. Each prints p50 p90 max
 * in microseconds.
 *
 *     bench exec SANDBOX COUNT TEXT           write TEXT to exec, close, read exec to its end
 *     bench first MOUNT COUNT TEXT            mkdir, and the same: to the first output; rmdir is not counted
 *     bench spawn COUNT PROGRAM [ARG ...]     run a program (what a user would pick instead)
 *     bench together MOUNT EACH TEXT NAME...  EACH commands at once in each sandbox, a session for each
 *     bench create MOUNT COUNT TEXT           COUNT sandboxes at once, until each gave its output; prints the
 * whole */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/sample.h"

static void bench_die(const char *what)
{
	(void)fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
	_exit(1);
}

/* One command through DIR/exec, its output thrown away. */
static void bench_command(const char *dir, const char *text)
{
	static const char newline = '\n';
	char path[512], block[4096];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/exec", dir);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0 || write(fd, &newline, 1) < 0 || close(fd) < 0)
		bench_die(path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		bench_die(path);
	while (read(fd, block, sizeof(block)) > 0)
		;
	(void)close(fd);
}

static void bench_mkdir(const char *path)
{
	if (mkdir(path, 0777) < 0)
		bench_die(path);
}

static int bench_exec(char **argv, unsigned count, uint64_t *ns)
{
	for (unsigned i = 0; i < count; i++) {
		uint64_t start = sample_now();

		bench_command(argv[0], argv[2]);
		ns[i] = sample_now() - start;
	}
	return 0;
}

static int bench_first(char **argv, unsigned count, uint64_t *ns)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/bench-first", argv[0]);
	for (unsigned i = 0; i < count; i++) {
		uint64_t start = sample_now();

		bench_mkdir(path);
		bench_command(path, argv[2]);
		ns[i] = sample_now() - start;
		if (rmdir(path) < 0)
			bench_die(path);
		(void)usleep(50000); /* the destruction behind is not what is measured */
	}
	return 0;
}

/* Nanoseconds that the program took, 0 where it failed. */
static uint64_t bench_spawn_one(char **words)
{
	uint64_t start = sample_now();
	pid_t pid = vfork();
	int status;

	if (pid == 0) {
		(void)execvp(words[0], words);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		return 0;
	return sample_now() - start;
}

static int bench_spawn(char **argv, unsigned count, uint64_t *ns)
{
	for (unsigned i = 0; i < count; i++) {
		ns[i] = bench_spawn_one(argv + 1);
		if (ns[i] == 0)
			return 1;
	}
	return 0;
}

struct bench_one {
	pthread_t thread;
	char dir[512];
	const char *text;
	uint64_t start, *ns;
};

static void *bench_run_one(void *arg)
{
	struct bench_one *one = arg;

	bench_command(one->dir, one->text);
	*one->ns = sample_now() - one->start;
	return NULL;
}

/* Runs all @n commands at once, each on a thread; times count from the common start. */
static void bench_at_once(struct bench_one *all, unsigned n, uint64_t *ns)
{
	uint64_t start = sample_now();

	for (unsigned i = 0; i < n; i++) {
		all[i].start = start;
		all[i].ns = &ns[i];
		if (pthread_create(&all[i].thread, NULL, bench_run_one, &all[i]) != 0)
			bench_die("thread");
	}
	for (unsigned i = 0; i < n; i++)
		(void)pthread_join(all[i].thread, NULL);
	sample_print(ns, n);
}

static int bench_together(char **argv, int argc)
{
	unsigned each = (unsigned)strtoul(argv[1], NULL, 10), n = 0, total = each * (unsigned)(argc - 3);
	struct bench_one *all = calloc(total, sizeof(*all));
	uint64_t *ns = calloc(total, sizeof(*ns));

	if (all == NULL || ns == NULL || total == 0)
		return 2;
	for (int k = 3; k < argc; k++) {
		for (unsigned i = 0; i < each; i++, n++) {
			(void)snprintf(all[n].dir, sizeof(all[n].dir), "%s/%s/sessions/b%u", argv[0], argv[k],
				       i);
			if (mkdir(all[n].dir, 0777) < 0 && errno != EEXIST)
				bench_die(all[n].dir);
			all[n].text = argv[2];
		}
	}
	bench_at_once(all, total, ns);
	free(all);
	free(ns);
	return 0;
}

static int bench_create(char **argv)
{
	unsigned count = (unsigned)strtoul(argv[1], NULL, 10);
	struct bench_one *all = calloc(count, sizeof(*all));
	uint64_t *ns = calloc(count, sizeof(*ns)), start = sample_now();

	if (all == NULL || ns == NULL || count == 0)
		return 2;
	for (unsigned i = 0; i < count; i++) {
		(void)snprintf(all[i].dir, sizeof(all[i].dir), "%s/bench-%u", argv[0], i);
		bench_mkdir(all[i].dir);
		all[i].text = argv[2];
	}
	bench_at_once(all, count, ns);
	(void)fprintf(stderr, "all usable after %.1f ms\n", (double)(sample_now() - start) / 1e6);
	for (unsigned i = 0; i < count; i++)
		(void)rmdir(all[i].dir);
	free(all);
	free(ns);
	return 0;
}

/* Those that take one sample after the other. */
static const struct {
	const char *name;
	int count_at; /* which argument is the count */
	int (*run)(char **argv, unsigned count, uint64_t *ns);
} bench_series[] = {
	{"exec", 1, bench_exec},
	{"first", 1, bench_first},
	{"spawn", 0, bench_spawn},
};

static int bench_serial(const char *name, char **argv)
{
	for (unsigned i = 0; i < sizeof(bench_series) / sizeof(bench_series[0]); i++) {
		unsigned count = (unsigned)strtoul(argv[bench_series[i].count_at], NULL, 10);
		uint64_t *ns;
		int r;

		if (strcmp(name, bench_series[i].name) != 0)
			continue;
		ns = calloc(count, sizeof(*ns));
		if (ns == NULL || count == 0)
			return 2;
		r = bench_series[i].run(argv, count, ns);
		if (r == 0)
			sample_print(ns, count);
		free(ns);
		return r;
	}
	return 2;
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		(void)fprintf(stderr, "usage: see the head of bench.c\n");
		return 2;
	}
	if (strcmp(argv[1], "together") == 0 && argc > 5)
		return bench_together(argv + 2, argc - 2);
	if (strcmp(argv[1], "create") == 0 && argc == 5)
		return bench_create(argv + 2);
	return bench_serial(argv[1], argv + 2);
}
