/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker was at that does not answer. */
#include "fs/hung.h"

#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"

#define HUNG_SIGNAL     (SIGRTMIN + 3)
#define HUNG_FRAMES     64
#define HUNG_THREADS    1024
#define HUNG_TOTAL_NS   UINT64_C(2000000000)
#define HUNG_THREAD_NS  UINT64_C(100000000)
#define HUNG_STEP_MS    1
#define HUNG_KERNEL_MAX 4096

/* What the thread that was asked writes down. */
struct hung_answer {
	_Atomic uint32_t asked; /* number of the question */
	_Atomic uint32_t given; /* the same number: the rest is the answer to it */
	int32_t n;
	void *frames[HUNG_FRAMES];
};

static struct hung_answer *hung_answer; /* set once, before there are threads or children */

void cube_hung_init(void)
{
	void *at =
		mmap(NULL, sizeof(*hung_answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at != MAP_FAILED)
		hung_answer = at;
}

static void hung_asked(int sig)
{
	int error = errno;
	uint32_t number = atomic_load(&hung_answer->asked);

	(void)sig;
	hung_answer->n = backtrace(hung_answer->frames, HUNG_FRAMES);
	atomic_store(&hung_answer->given, number);
	errno = error;
}

void cube_hung_listen(void)
{
	struct sigaction sa = {.sa_handler = hung_asked, .sa_flags = SA_RESTART};
	void *first[1];

	if (hung_answer == NULL)
		return;
	(void)backtrace(first, 1); /* it loads a library the first time: not in a signal's handler */
	(void)sigemptyset(&sa.sa_mask);
	(void)sigaction(HUNG_SIGNAL, &sa, NULL);
}

/* ---- what the kernel knows ---- */

static void hung_kernel_one(int out, pid_t pid, int tid, const char *what)
{
	struct cube_buf text = CUBE_BUF(HUNG_KERNEL_MAX);
	char path[80];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, what);
	if (cube_file_read(AT_FDCWD, path, &text) == 0 && text.len > 0)
		(void)dprintf(out, "  %s: %s%s", what, cube_buf_str(&text),
			      text.data[text.len - 1] == '\n' ? "" : "\n");
	cube_buf_done(&text);
}

static void hung_kernel(int out, pid_t pid, int tid)
{
	static const char *const whats[] = {"comm", "stat", "wchan", "syscall", "stack"};

	(void)dprintf(out, "thread %d\n", tid);
	for (size_t i = 0; i < CUBE_COUNT(whats); i++)
		hung_kernel_one(out, pid, tid, whats[i]);
}

/* ---- what they say themselves ---- */

static bool hung_answered(uint32_t number, uint64_t until)
{
	while (atomic_load(&hung_answer->given) != number) {
		if (cube_clock_mono() > until)
			return false;
		(void)poll(NULL, 0, HUNG_STEP_MS);
	}
	return true;
}

static void hung_trace(int out, pid_t pid, int tid, uint64_t end)
{
	uint64_t until = cube_clock_mono() + HUNG_THREAD_NS;
	uint32_t number = atomic_fetch_add(&hung_answer->asked, 1) + 1;

	if (syscall(SYS_tgkill, pid, tid, HUNG_SIGNAL) < 0 ||
	    !hung_answered(number, until < end ? until : end)) {
		(void)dprintf(out, "thread %d says nothing\n", tid);
		return;
	}
	(void)dprintf(out, "thread %d\n", tid);
	backtrace_symbols_fd(hung_answer->frames, hung_answer->n, out);
}

/* ---- the file ---- */

static unsigned hung_threads(pid_t pid, int tids[HUNG_THREADS])
{
	const struct dirent *e;
	char path[32];
	unsigned n = 0;
	DIR *d;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d != NULL && n < HUNG_THREADS && (e = readdir(d)) != NULL) /* NOLINT(concurrency-mt-unsafe) */
		if (e->d_name[0] != '.')
			tids[n++] = (int)strtol(e->d_name, NULL, 10);
	if (d != NULL)
		(void)closedir(d);
	return n;
}

/* The older ones move up by one. */
static int hung_open(const char *state_dir)
{
	cube_auto_fd dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char from[16], to[16];

	for (unsigned i = CUBE_HUNG_KEPT; i > 1; i--) {
		(void)snprintf(from, sizeof(from), "hung.%u", i - 1);
		(void)snprintf(to, sizeof(to), "hung.%u", i);
		(void)renameat(dir, from, dir, to);
	}
	return openat(dir, "hung.1", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
}

void cube_hung_write(const char *state_dir, pid_t pid, unsigned seconds)
{
	uint64_t end = cube_clock_mono() + HUNG_TOTAL_NS;
	cube_auto_fd out = hung_open(state_dir);
	int tids[HUNG_THREADS];
	unsigned n = hung_threads(pid, tids);
	char when[CUBE_TIME_TEXT];

	if (out < 0) {
		cube_log(CUBE_LOG_WARNING, "supervise", "%s/hung.1: %s", state_dir, cube_errno_text(errno));
		return;
	}
	(void)dprintf(out, "%s the worker, process %d, has not answered for %u s\n\nWhat the kernel says:\n",
		      cube_clock_text(cube_clock_wall(), when), pid, seconds);
	for (unsigned i = 0; i < n; i++)
		hung_kernel(out, pid, tids[i]);
	(void)kill(pid, SIGCONT);
	(void)dprintf(out, "\nWhere they say they are:\n");
	for (unsigned i = 0; hung_answer != NULL && i < n && cube_clock_mono() < end; i++)
		hung_trace(out, pid, tids[i], end);
}
