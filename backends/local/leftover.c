/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch may leave behind. */
#include "backends/local/leftover.h"

#include "backends/base/buf.h"
#include "backends/base/file.h"
#include "backends/ns/mounts.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEFTOVER_ROUNDS 1000
#define LEFTOVER_QUIET  3 /* looks without a find: one may miss a process that is just being executed */

static bool leftover_is_crun(pid_t pid, const char *id)
{
	struct cube_buf words = CUBE_BUF(65536);
	size_t n = strlen(id) + 1;
	char path[64];
	bool is;

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	is = cube_file_read(AT_FDCWD, path, &words) == 0 && words.len > n &&
	     memcmp(words.data + words.len - n, id, n) == 0 &&
	     memmem(words.data, words.len, "--cgroup-manager=disabled", 25) != NULL;
	cube_buf_done(&words);
	return is;
}

/* The first one that is found, after @after in the order of /proc; 0: none. */
static pid_t leftover_next(DIR *proc, const char *id)
{
	const struct dirent *e;

	while ((e = readdir(proc)) != NULL) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid > 1 && pid != getpid() && (leftover_is_crun(pid, id) || cube_ns_mount_is(pid, id)))
			return pid;
	}
	return 0;
}

pid_t cube_local_leftover_find(const char *id)
{
	DIR *proc = opendir("/proc");
	pid_t pid = proc ? leftover_next(proc, id) : 0;

	if (proc)
		closedir(proc);
	return pid;
}

void cube_local_leftover_end(const char *id)
{
	unsigned quiet = 0;

	for (unsigned round = 0; round < LEFTOVER_ROUNDS && quiet < LEFTOVER_QUIET; round++) {
		DIR *proc = opendir("/proc");
		bool found = false;
		pid_t pid;

		while (proc && (pid = leftover_next(proc, id)) > 0) {
			found = true;
			(void)kill(pid, SIGKILL);
		}
		if (proc)
			closedir(proc);
		quiet = found ? 0 : quiet + 1;
		(void)poll(NULL, 0, 1); /* a killed one is gone a little later */
	}
}
