/* SPDX-License-Identifier: Apache-2.0 */
/* Pause without a freezer. */
#include "backends/local/standstill.h"

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STANDSTILL_FILE   "stopped"
#define STANDSTILL_ROUNDS 64
#define STANDSTILL_MAX    (1u << 20)

struct standstill {
	pid_t init;
	ino_t ns; /* its pid namespace */
	void (*each)(struct standstill *s, pid_t pid, char state);
	struct cube_buf *before; /* " PID " of those who were stopped before, collected or looked up */
	unsigned running;        /* found in this round */
	bool first;              /* round */
};

/* Letter of the process's state; 0: gone. */
static char standstill_state(pid_t pid)
{
	char path[64], text[512], *at;
	cube_auto_fd fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = 0;
	at = strrchr(text, ')');
	return at && at[1] == ' ' ? at[2] : 0;
}

static ino_t standstill_ns(pid_t pid)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	return stat(path, &st) < 0 ? 0 : st.st_ino;
}

/* Every living process of the namespace but the first. */
static int standstill_round(struct standstill *s)
{
	DIR *d = opendir("/proc");
	const struct dirent *e;

	if (!d)
		return -errno;
	s->running = 0;
	while ((e = readdir(d)) != NULL) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
		char state;

		if (pid <= 0 || pid == s->init || standstill_ns(pid) != s->ns)
			continue;
		state = standstill_state(pid);
		if (state && state != 'Z' && state != 'X')
			s->each(s, pid, state);
	}
	closedir(d);
	return 0;
}

static void standstill_stop(struct standstill *s, pid_t pid, char state)
{
	if (state != 'T' && state != 't') {
		s->running++;
		(void)kill(pid, SIGSTOP);
	} else if (s->first) {
		(void)cube_buf_printf(s->before, " %d ", (int)pid);
	}
}

static void standstill_continue(struct standstill *s, pid_t pid, char state)
{
	char word[16];

	(void)state;
	(void)snprintf(word, sizeof(word), " %d ", (int)pid);
	if (!strstr(cube_buf_str(s->before), word))
		(void)kill(pid, SIGCONT);
}

int cube_local_standstill(pid_t init, int dir, struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_buf before = CUBE_BUF(STANDSTILL_MAX);
	struct standstill s = {.init = init,
			       .ns = standstill_ns(init),
			       .each = standstill_stop,
			       .before = &before,
			       .first = true,
			       .running = 1};
	const struct timespec moment = {.tv_nsec = 1000000};
	int rc = s.ns ? 0 : -ESRCH;

	for (unsigned round = 0; rc == 0 && s.running > 0; round++) {
		rc = cube_cancel_fired(cancel)   ? -EINTR
		     : round < STANDSTILL_ROUNDS ? standstill_round(&s)
						 : -EBUSY;
		if (rc == 0 && s.first)
			rc = cube_file_replace(dir, STANDSTILL_FILE, cube_buf_str(&before), before.len, 0600);
		s.first = false;
		if (rc == 0 && s.running > 0)
			(void)nanosleep(&moment,
					NULL); /* a signal is taken by one who runs, a little later */
	}
	cube_buf_done(&before);
	/* The agent last: its clocks of time-outs stand still with the others, as under a freezer. (From
	 * outside of its process namespace STOP reaches process 1 too.) */
	if (rc == 0 && kill(init, SIGSTOP) < 0)
		rc = -errno;
	if (rc < 0)
		cube_local_standstill_end(init, dir);
	return rc < 0 ? cube_fail(err, rc, "the sandbox's processes cannot be stopped: %s",
				  cube_errno_text(rc))
		      : 0;
}

void cube_local_standstill_end(pid_t init, int dir)
{
	struct cube_buf before = CUBE_BUF(STANDSTILL_MAX);
	struct standstill s = {
		.init = init, .ns = standstill_ns(init), .each = standstill_continue, .before = &before};

	(void)cube_file_read(dir, STANDSTILL_FILE, &before);
	if (s.ns)
		(void)standstill_round(&s);
	(void)kill(init, SIGCONT);
	cube_buf_done(&before);
	(void)unlinkat(dir, STANDSTILL_FILE, 0);
}
