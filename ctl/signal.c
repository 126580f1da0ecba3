/* SPDX-License-Identifier: Apache-2.0 */
/* The table of signal names. */
#include "ctl/signal.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <strings.h>

#include "backends/base/macros.h"
#include "backends/base/num.h"

static const struct {
	const char *name;
	int sig;
	bool harmless; /* ignored, stopping or continuing unless a process does something about it */
} signals[] = {
	{.name = "HUP", .sig = SIGHUP},
	{.name = "INT", .sig = SIGINT},
	{.name = "QUIT", .sig = SIGQUIT},
	{.name = "ILL", .sig = SIGILL},
	{.name = "TRAP", .sig = SIGTRAP},
	{.name = "ABRT", .sig = SIGABRT},
	{.name = "BUS", .sig = SIGBUS},
	{.name = "FPE", .sig = SIGFPE},
	{.name = "KILL", .sig = SIGKILL},
	{.name = "USR1", .sig = SIGUSR1},
	{.name = "SEGV", .sig = SIGSEGV},
	{.name = "USR2", .sig = SIGUSR2},
	{.name = "PIPE", .sig = SIGPIPE},
	{.name = "ALRM", .sig = SIGALRM},
	{.name = "TERM", .sig = SIGTERM},
	{.name = "CHLD", .sig = SIGCHLD, .harmless = true},
	{.name = "CONT", .sig = SIGCONT, .harmless = true},
	{.name = "STOP", .sig = SIGSTOP, .harmless = true},
	{.name = "TSTP", .sig = SIGTSTP, .harmless = true},
	{.name = "TTIN", .sig = SIGTTIN, .harmless = true},
	{.name = "TTOU", .sig = SIGTTOU, .harmless = true},
	{.name = "URG", .sig = SIGURG, .harmless = true},
	{.name = "XCPU", .sig = SIGXCPU},
	{.name = "XFSZ", .sig = SIGXFSZ},
	{.name = "VTALRM", .sig = SIGVTALRM},
	{.name = "PROF", .sig = SIGPROF},
	{.name = "WINCH", .sig = SIGWINCH, .harmless = true},
	{.name = "IO", .sig = SIGIO},
	{.name = "PWR", .sig = SIGPWR},
	{.name = "SYS", .sig = SIGSYS},
};

int cube_signal_parse(const char *word, int *ret, struct cube_err *err)
{
	const char *name = strncasecmp(word, "SIG", 3) == 0 ? word + 3 : word;
	uint64_t n;

	for (size_t i = 0; i < CUBE_COUNT(signals); i++) {
		if (strcasecmp(name, signals[i].name) == 0) {
			*ret = signals[i].sig;
			return 0;
		}
	}
	if (cube_num_u64(word, 64, &n) == 0 && n > 0) {
		*ret = (int)n;
		return 0;
	}
	return cube_fail(err, -EINVAL,
			 "no signal '%s': a name as HUP, INT, TERM, KILL, USR1, or a number from 1 to 64",
			 word);
}

bool cube_signal_ends(int sig)
{
	for (size_t i = 0; i < CUBE_COUNT(signals); i++)
		if (signals[i].sig == sig)
			return !signals[i].harmless;
	return true;
}
