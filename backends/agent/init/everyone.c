/* SPDX-License-Identifier: Apache-2.0 */
/* Signals to all. As process 1 "all" is what /proc shows; else (tests) what descends from the agent. */
#include "backends/agent/init/everyone.h"

#include <signal.h>
#include <unistd.h>

#include "backends/agent/init/group.h"
#include "backends/agent/init/held.h"
#include "backends/agent/init/procs.h"

#define ROUNDS 64

/* Whom the freeze has stopped. */
static struct init_procs frozen;

static int everyone_list(struct init_procs *out)
{
	pid_t self = getpid();
	size_t kept = 0;
	int r = init_procs_read(out);

	if (r < 0)
		return r;
	init_procs_mark_below(out, self);
	for (size_t i = 0; i < out->len; i++) {
		const struct init_proc *one = &out->all[i];

		/* What was started from outside into the sandbox has no parent here. */
		if (one->pid == self || (self != 1 && !one->mark) || !init_proc_alive(one) ||
		    init_group_is_ours(one->pid))
			continue;
		out->all[kept++] = *one;
	}
	out->len = kept;
	return 0;
}

/* Sends @sig to those that are not in @done yet and adds them: how many. With @running, only to those not
 * stopped. */
static unsigned everyone_round(struct init_procs *all, struct init_procs *done, int sig, bool running)
{
	unsigned fresh = 0;

	if (everyone_list(all) < 0)
		return 0;
	for (size_t i = 0; i < all->len; i++) {
		const struct init_proc *one = &all->all[i];

		if ((running && one->state == 'T') || init_procs_find(done, one->pid, one->start) != NULL)
			continue;
		(void)kill(one->pid, sig);
		if (init_procs_add(done, one) == 0)
			fresh++;
	}
	return fresh;
}

/* Two quiet rounds: one that is orphaned just then may hide from a single one. */
static void everyone_rounds(struct init_procs *done, int sig, bool running)
{
	struct init_procs all = {0};
	unsigned quiet = 0;

	for (int round = 0; round < ROUNDS && quiet < 2; round++)
		quiet = everyone_round(&all, done, sig, running) == 0 ? quiet + 1 : 0;
	init_procs_done(&all);
}

void init_everyone_signal(int sig)
{
	struct init_procs done = {0};

	if (sig == SIGKILL) {
		everyone_rounds(&done, SIGSTOP, false);
		for (size_t i = 0; i < done.len; i++)
			(void)kill(done.all[i].pid, SIGKILL);
	} else {
		everyone_rounds(&done, sig, false);
	}
	init_procs_done(&done);
}

void init_everyone_freeze(bool on)
{
	if (on) {
		everyone_rounds(&frozen, SIGSTOP, true);
		return;
	}
	for (size_t i = 0; i < frozen.len; i++)
		(void)kill(frozen.all[i].pid, SIGCONT);
	init_procs_done(&frozen);
}

uint64_t init_everyone_count(void)
{
	struct init_procs all = {0};
	uint64_t n = 0;

	if (everyone_list(&all) == 0) {
		for (size_t i = 0; i < all.len; i++)
			n += !init_group_is_shell(all.all[i].pid);
	}
	init_procs_done(&all);
	return n;
}

bool init_everyone_holds(void)
{
	struct init_procs all = {0};
	bool holds = everyone_list(&all) < 0;

	for (size_t i = 0; !holds && i < all.len; i++)
		holds = init_group_is_shell(all.all[i].pid) && init_held(all.all[i].pid);
	init_procs_done(&all);
	return holds;
}

bool init_everyone_left(void)
{
	struct init_procs all = {0};
	bool left = everyone_list(&all) == 0 && all.len > 0;

	init_procs_done(&all);
	return left;
}
