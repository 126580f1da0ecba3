/* SPDX-License-Identifier: Apache-2.0 */
/* What the link remembers of each job that the agent knows. */
#include "backends/agent/link_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"

struct agent_job *cube_agent_job_new(struct agent_link *l, uint64_t id, uint64_t session)
{
	struct agent_job *job;

	if (cube_imap_count(l->jobs) >= CUBE_AGENT_JOBS_MAX)
		return NULL;
	job = cube_calloc(1, sizeof(*job));
	if (job == NULL)
		return NULL;
	*job = (struct agent_job){.id = id, .out_fd = -1, .order_fd = -1, .last = -1};
	if (cube_imap_put(l->jobs, id, job) < 0) {
		cube_free(job);
		return NULL;
	}
	if (session != 0 && cube_imap_put(l->sessions, session, job) == 0)
		job->session = session;
	return job;
}

void cube_agent_job_close_fds(struct agent_job *job)
{
	int out_fd = cube_steal_fd(&job->out_fd), order_fd = cube_steal_fd(&job->order_fd);

	if (out_fd >= 0)
		(void)close(out_fd);
	if (order_fd >= 0)
		(void)close(order_fd);
}

int cube_agent_job_spool(struct agent_job *job, int out_fd, int order_fd)
{
	int code;

	cube_agent_job_close_fds(job);
	job->out_fd = fcntl(out_fd, F_DUPFD_CLOEXEC, 0);
	if (job->out_fd < 0)
		return -errno;
	if (order_fd < 0)
		return 0;
	job->order_fd = fcntl(order_fd, F_DUPFD_CLOEXEC, 0);
	if (job->order_fd >= 0)
		return 0;
	code = -errno;
	cube_agent_job_close_fds(job); /* half of it would take output without saying whose it is */
	return code;
}

void cube_agent_job_free(struct agent_link *l, struct agent_job *job)
{
	if (job->session != 0)
		(void)cube_imap_take(l->sessions, job->session);
	(void)cube_imap_take(l->jobs, job->id);
	cube_agent_job_close_fds(job);
	cube_free(job->held);
	cube_free(job);
}

static int job_done(void *ctx, uint64_t key, void *value)
{
	(void)ctx;
	(void)key;
	cube_agent_job_close_fds(value);
	cube_free(((struct agent_job *)value)->held);
	cube_free(value);
	return 0;
}

void cube_agent_jobs_done(struct agent_link *l)
{
	if (l->jobs != NULL)
		(void)cube_imap_each(l->jobs, job_done, NULL);
	cube_imap_free(l->jobs);
	cube_imap_free(l->sessions);
	cube_imap_free(l->stalled);
}
