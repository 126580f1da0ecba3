/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a sandbox's processes, and what is cleaned up behind them. */
#include "backends/local/local_priv.h"

#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "backends/local/leftover.h"
#include "backends/ns/oom.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_WAIT_MS 20000

/* By a descriptor of the process, so that nobody who got its number meanwhile is hit. Waits for its end; with
 * process 1 its whole pid namespace goes. */
static int end_process(const struct cube_local_record *r, const struct cube_local_proc *p)
{
	cube_auto_fd fd = p->pid > 0 ? pidfd_open(p->pid, 0) : -1;
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	if (fd < 0 || !cube_local_proc_alive(r, p))
		return 0;
	if (pidfd_send_signal(fd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
		return -errno;
	return poll(&wait, 1, END_WAIT_MS) == 1 ? 0 : -ETIMEDOUT;
}

int cube_local_cube_end(struct cube_local *b, struct local_cube *c, struct cube_err *err)
{
	int rc;

	cube_local_group_kill(&b->cgroups, c->id);
	if (c->rec.stage == CUBE_STAGE_STARTING || c->damaged)
		cube_local_leftover_end(c->id);
	rc = end_process(&c->rec, &c->rec.init);
	if (rc < 0)
		return cube_fail(err, rc, "process %d of sandbox %s does not end: %s", (int)c->rec.init.pid,
				 c->id, cube_errno_text(rc));
	if (end_process(&c->rec, &c->rec.net_helper) == 0 && c->rec.net_helper.pid > 0)
		(void)waitpid(c->rec.net_helper.pid, NULL,
			      WNOHANG); /* where it was this process that started it */
	cube_ns_oom_forget(c->oom);
	c->oom = NULL;
	rc = cube_local_group_remove(&b->cgroups, c->id, err);
	c->rec.init = c->rec.net_helper = (struct cube_local_proc){0};
	c->rec.still = false;
	return rc;
}

/* Why it runs no more. What the machine's boot took away did not end by itself. */
static const char *end_reason(const struct cube_local_record *r, const struct cube_usage *usage)
{
	char boot[40];

	if (strcmp(cube_local_boot_id(boot), r->boot) != 0)
		return "lost";
	return usage->oom_kills != UINT64_MAX && usage->oom_kills > 0 ? "oom" : "exited";
}

int cube_local_cube_reap(struct cube_local *b, struct local_cube *c, struct cube_err *err)
{
	struct cube_usage usage;
	int rc;

	if (c->damaged || (c->rec.stage != CUBE_STAGE_RUNNING && c->rec.stage != CUBE_STAGE_STARTING) ||
	    cube_local_cube_runs(c))
		return 0;
	cube_local_group_usage(&b->cgroups, c->id, &usage);
	rc = cube_local_cube_end(b, c, err);
	if (rc < 0)
		return rc;
	(void)snprintf(c->rec.reason, sizeof(c->rec.reason), "%s", end_reason(&c->rec, &usage));
	c->rec.stage = CUBE_STAGE_STOPPED;
	return cube_local_cube_save(c, err);
}
