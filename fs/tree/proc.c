/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at the process behind a request. */
#include "fs/tree/proc.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/macros.h"

#define PROC_STATUS         8192
#define PROC_STAT_EXIT_CODE 52 /* field of /proc/PID/stat, from 1 */
#define PROC_STAT_STATE     3  /* the first behind the name */

#define PROC_BIT(sig) (UINT64_C(1) << ((sig)-1))

/* Signals that end a wait on a command or a verb, and those that end a mere read as well. */
static const uint64_t proc_lasting = PROC_BIT(SIGHUP) | PROC_BIT(SIGINT) | PROC_BIT(SIGQUIT) |
				     PROC_BIT(SIGTERM) | PROC_BIT(SIGALRM) | PROC_BIT(SIGKILL);
static const uint64_t proc_reading = PROC_BIT(SIGUSR1) | PROC_BIT(SIGUSR2) | (~UINT64_C(0) << 31);

static bool proc_read(pid_t pid, const char *file, char *text, size_t size)
{
	cube_auto_fd fd = -1;
	char path[48];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return true;
}

/* What stands behind "\nKEY:" in /proc/PID/status. */
static const char *proc_value(const char *status, const char *key)
{
	const char *at = strstr(status, key);

	return at == NULL ? NULL : at + strlen(key);
}

static uint64_t proc_mask(const char *status, const char *key)
{
	const char *at = proc_value(status, key);

	return at == NULL ? 0 : strtoull(at, NULL, 16);
}

/* The signal in exit_code. Only for a process without memory: `stat` of a live one takes the lock that a
 * process in execve holds while it waits for our answer. */
int cube_proc_exit_signal(pid_t pid)
{
	char text[PROC_STATUS], *at;

	if (!proc_read(pid, "stat", text, sizeof(text)))
		return 0;
	at = strrchr(text, ')');
	if (at == NULL)
		return 0;
	at++;
	for (int field = PROC_STAT_STATE; field < PROC_STAT_EXIT_CODE && at != NULL; field++)
		at = strchr(at + 1, ' ');
	return at == NULL ? 0 : (int)(strtol(at, NULL, 10) & 0x7f);
}

static int (*proc_ask)(void *ctx, pid_t pid);
static void *proc_ask_ctx;

void cube_proc_ask(int (*ask)(void *ctx, pid_t pid), void *ctx)
{
	proc_ask = ask;
	proc_ask_ctx = ctx;
}

void cube_proc_look(pid_t pid, struct cube_proc *ret)
{
	char status[PROC_STATUS];
	const char *tgid;

	*ret = (struct cube_proc){.known = true};
	if (pid <= 0 || !proc_read(pid, "status", status, sizeof(status)))
		return;
	tgid = proc_value(status, "\nTgid:");
	if (tgid == NULL)
		return;
	ret->visible = true;
	ret->tgid = (pid_t)strtol(tgid, NULL, 10);
	ret->exiting = proc_value(status, "\nVmSize:") == NULL;
	if (ret->exiting)
		ret->exit_signal =
			proc_ask != NULL ? proc_ask(proc_ask_ctx, pid) : cube_proc_exit_signal(pid);
}

bool cube_proc_interrupted(pid_t pid, bool lasting)
{
	char status[PROC_STATUS];
	uint64_t pending;

	if (pid <= 0 || !proc_read(pid, "status", status, sizeof(status)))
		return true;
	pending = proc_mask(status, "\nSigPnd:") | proc_mask(status, "\nShdPnd:");
	pending &= ~proc_mask(status, "\nSigBlk:");
	return (pending & (proc_lasting | (lasting ? 0 : proc_reading))) != 0;
}
