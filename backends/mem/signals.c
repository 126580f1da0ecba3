/* SPDX-License-Identifier: Apache-2.0 */
/* Signals: their names, and what they do to a process that says nothing of its own. */
#include <signal.h>
#include <string.h>
#include <strings.h>

#include "backends/base/num.h"
#include "backends/mem/mem_priv.h"

#define SIGNAL_MAX 31 /* no real-time ones */

static const struct {
	int sig;
	enum mem_action action;
} actions[] = {
	{SIGCHLD, MEM_SIG_NOTHING},  {SIGURG, MEM_SIG_NOTHING}, {SIGWINCH, MEM_SIG_NOTHING},
	{SIGCONT, MEM_SIG_CONTINUE}, {SIGSTOP, MEM_SIG_STOP},   {SIGTSTP, MEM_SIG_STOP},
	{SIGTTIN, MEM_SIG_STOP},     {SIGTTOU, MEM_SIG_STOP},
};

enum mem_action mem_signal_action(int sig)
{
	if (sig < 1 || sig > SIGNAL_MAX)
		return MEM_SIG_NOTHING;
	for (size_t i = 0; i < CUBE_COUNT(actions); i++) {
		if (actions[i].sig == sig)
			return actions[i].action;
	}
	return MEM_SIG_END;
}

int mem_signal_number(const char *name)
{
	uint64_t n;

	if (cube_num_u64(name, SIGNAL_MAX, &n) == 0)
		return (int)n;
	if (strncasecmp(name, "SIG", 3) == 0)
		name += 3;
	for (int sig = 1; sig <= SIGNAL_MAX; sig++) {
		const char *abbrev = sigabbrev_np(sig);

		if (abbrev != NULL && strcasecmp(abbrev, name) == 0)
			return sig;
	}
	return 0;
}
