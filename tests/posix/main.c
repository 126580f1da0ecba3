/* SPDX-License-Identifier: Apache-2.0 */
/* The POSIX suite: what the system calls on files promise, checked on whatever file system a directory is on.
 *
 *     posix-suite [-i DIRECTORY] DIRECTORY [CASE ...]
 *
 * -i: the same directory, as the other side of the file system sees it. Prints a line for each check and one of
 * numbers at the end; the exit status says whether all were right. */
#include <ftw.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/posix/suite.h"

static const struct suite_case *const tables[] = {
	suite_open, suite_names,  suite_rename, suite_modes, suite_times, suite_sizes,
	suite_data, suite_xattrs, suite_locks,  suite_dirs,  suite_nodes, NULL,
};

static const char *inner;   /* -i */
static const char *current; /* the case that runs */
static unsigned checks, wrong;

static const char *errno_name(int error)
{
	const char *name = strerrorname_np(error);

	return error == 0 || name == NULL ? "0" : name;
}

static void report(bool ok, const char *text, const char *got, const char *wanted)
{
	checks++;
	wrong += !ok;
	if (ok)
		(void)printf("ok %s: %s\n", current, text);
	else
		(void)printf("wrong %s: %s: %s, not %s\n", current, text, got, wanted);
}

void suite_ok(const char *text, long long got, int error)
{
	report(got >= 0, text, errno_name(error), "success");
}

void suite_fails(const char *text, int error, long long got, int got_error)
{
	report(got == -1 && error == got_error, text, got == -1 ? errno_name(got_error) : "success",
	       errno_name(error));
}

void suite_is(const char *text, long long got, long long wanted)
{
	char a[32], b[32];

	(void)snprintf(a, sizeof(a), "%lld", got);
	(void)snprintf(b, sizeof(b), "%lld", wanted);
	report(got == wanted, text, a, b);
}

static void trouble(const char *what, const char *name)
{
	char text[PATH_MAX + 64];

	(void)snprintf(text, sizeof(text), "%s %s", what, name);
	report(false, text, errno_name(errno), "success");
}

/* ---- other processes ---- */

pid_t suite_start(int (*fn)(void))
{
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(fn());
	return pid;
}

int suite_end(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int suite_child(int (*fn)(void))
{
	return suite_end(suite_start(fn));
}

/* The child's checks are counted here by what it hands back through a pipe. */
void suite_as_user(void (*fn)(void))
{
	unsigned numbers[2] = {0, 1};
	int ends[2];
	pid_t pid;

	(void)fflush(stdout);
	if (pipe(ends) < 0) {
		trouble("pipe", "");
		return;
	}
	pid = fork();
	if (pid == 0) {
		checks = wrong = 0;
		if (setgroups(0, NULL) < 0 || setresgid(SUITE_GROUP, SUITE_GROUP, SUITE_GROUP) < 0 ||
		    setresuid(SUITE_USER, SUITE_USER, SUITE_USER) < 0)
			trouble("to become", "an ordinary user");
		else
			fn();
		numbers[0] = checks;
		numbers[1] = wrong;
		(void)fflush(stdout);
		_exit(write(ends[1], numbers, sizeof(numbers)) == sizeof(numbers) ? 0 : 1);
	}
	(void)close(ends[1]);
	if (pid < 0 || read(ends[0], numbers, sizeof(numbers)) != sizeof(numbers))
		trouble("a child of", current);
	(void)close(ends[0]);
	(void)suite_end(pid);
	checks += numbers[0];
	wrong += numbers[1];
}

/* ---- small things ---- */

const char *suite_inner(const char *name)
{
	static char paths[2][PATH_MAX];
	static unsigned last;
	char *path = paths[++last % 2];

	(void)snprintf(path, PATH_MAX, "%s/%s/%s", inner, current, name);
	return path;
}

int suite_file(const char *name, const char *text)
{
	const size_t len = strlen(text);
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		trouble("to write", name);
	if (fd >= 0 && close(fd) < 0)
		trouble("to close", name);
	return 0;
}

struct stat suite_stat(const char *name)
{
	struct stat st = {.st_ino = 0};

	if (lstat(name, &st) < 0)
		trouble("lstat", name);
	return st;
}

bool suite_has(const char *name, const char *text)
{
	char buf[4096];
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf));

	if (fd >= 0)
		(void)close(fd);
	return n == (ssize_t)strlen(text) && memcmp(buf, text, (size_t)n) == 0;
}

mode_t suite_mode(const char *name)
{
	return suite_stat(name).st_mode & 07777;
}

/* ---- the cases ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	(void)remove(path);
	return 0;
}

static bool case_wanted(const struct suite_case *c, char *const *names)
{
	if ((c->needs & SUITE_ROOT) != 0 && geteuid() != 0)
		return false;
	if ((c->needs & SUITE_INNER) != 0 && inner == NULL)
		return false;
	if (*names == NULL)
		return true;
	while (*names != NULL && strcmp(*names, c->name) != 0)
		names++;
	return *names != NULL;
}

static void case_run(const struct suite_case *c, const char *top)
{
	current = c->name;
	(void)umask(022);
	if (chdir(top) < 0 || mkdir(c->name, 0755) < 0 || chdir(c->name) < 0) {
		trouble("a directory for", c->name);
		return;
	}
	c->run();
	(void)umask(022);
	if (chdir(top) < 0 || nftw(c->name, remove_one, 16, FTW_DEPTH | FTW_PHYS) < 0 ||
	    access(c->name, F_OK) == 0)
		trouble("to remove", c->name);
	(void)fflush(stdout);
}

int main(int argc, char **argv)
{
	int option, cases = 0;

	while ((option = getopt(argc, argv, "i:")) == 'i')
		inner = optarg;
	if (option != -1 || optind >= argc) {
		(void)fprintf(stderr, "usage: posix-suite [-i DIRECTORY] DIRECTORY [CASE ...]\n");
		return 2;
	}
	for (const struct suite_case *const *table = tables; *table != NULL; table++) {
		for (const struct suite_case *c = *table; c->name != NULL; c++) {
			if (!case_wanted(c, argv + optind + 1))
				continue;
			case_run(c, argv[optind]);
			cases++;
		}
	}
	(void)printf("%d cases, %u checks, %u wrong\n", cases, checks, wrong);
	return wrong == 0 && cases > 0 ? 0 : 1;
}
