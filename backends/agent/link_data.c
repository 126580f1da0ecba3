/* SPDX-License-Identifier: Apache-2.0 */
/* Output that comes over the stream: this end writes the spool and acknowledges.
 *
 * A disk that is full stops the acknowledgements of that job and nothing else: the agent keeps what it has,
 * within the job's limit, and is asked for it again every second. */
#include "backends/agent/link_priv.h"

#include <errno.h>
#include <unistd.h>

#include "backends/base/spool.h"

#define DATA_RETRY_MS 1000

/* What of @m is new; false when nothing is. */
static bool data_trim(const struct agent_job *job, struct cube_wire_data *m)
{
	uint64_t known = job->total > m->offset ? job->total - m->offset : 0;

	if (known >= m->len)
		return false;
	m->bytes = (const unsigned char *)m->bytes + known;
	m->offset += known;
	m->before += known;
	m->len -= known;
	return true;
}

static int data_write(struct agent_job *job, const struct cube_wire_data *m)
{
	const unsigned char *bytes = m->bytes;
	size_t done = 0;
	int r = 0;

	/* Behind a gap (what the limit took) a run begins anew, so that its record says what is missing. */
	if (m->offset > job->total)
		job->last = -1;
	/* First: whoever finds the files after our death must know whose the last bytes are. */
	if (job->order_fd >= 0)
		r = cube_spool_note(job->order_fd, &job->last, m->err, m->offset, m->before);
	while (r == 0 && done < m->len) {
		ssize_t n = pwrite(job->out_fd, bytes + done, m->len - done, (off_t)(m->offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		done += (size_t)n;
	}
	return r;
}

static void data_stall(struct agent_link *l, struct agent_job *job)
{
	(void)cube_imap_put(l->stalled, job->id, job);
	if (l->retry != NULL)
		cube_timer_start(l->retry, DATA_RETRY_MS);
}

static int data_again(void *ctx, uint64_t id, void *value)
{
	struct agent_link *l = ctx;
	const struct agent_job *job = cube_imap_get(l->jobs, id);

	(void)value;
	if (job != NULL)
		(void)cube_agent_send_number(l, CUBE_WIRE_RESUME, id, job->total);
	return 0;
}

void cube_agent_data_retry(void *ctx)
{
	struct agent_link *l = ctx;

	pthread_mutex_lock(&l->lock);
	(void)cube_imap_each(l->stalled, data_again, l);
	cube_imap_free(l->stalled);
	l->stalled = cube_imap_new();
	if (l->stalled == NULL)
		l->dead = true;
	pthread_mutex_unlock(&l->lock);
}

/* The bytes of stderr among the first offset + len. */
static uint64_t data_err_total(const struct agent_job *job, const struct cube_wire_data *m)
{
	if (job->order_fd < 0)
		return 0;
	return m->err ? m->before + m->len : m->offset - m->before;
}

/* Neither stream may have fewer bytes than before. */
static bool data_fits(const struct agent_job *job, const struct cube_wire_data *m)
{
	uint64_t err_total = data_err_total(job, m);

	return err_total >= job->err_total && m->offset + m->len - err_total >= job->total - job->err_total;
}

/* Stores it: true when the totals are other than before. */
static bool data_store(struct agent_link *l, struct agent_job *job, const struct cube_wire_data *m)
{
	if (data_write(job, m) < 0) {
		data_stall(l, job);
		return false;
	}
	job->err_total = data_err_total(job, m);
	job->total = m->offset + m->len;
	(void)cube_agent_send_number(l, CUBE_WIRE_ACK, job->id, job->total);
	return true;
}

int cube_agent_receive_data(struct agent_link *l, const struct cube_wire_head *head, const void *body,
			    struct cube_err *err)
{
	struct cube_wire_data m;
	struct agent_job *job;
	uint64_t total = 0, err_total = 0;
	bool tell = false, ok = !l->pass_fds && cube_wire_get_data(body, head->len, &m);

	pthread_mutex_lock(&l->lock);
	job = cube_imap_get(l->jobs, head->id);
	if (ok && job != NULL && job->out_fd >= 0 && cube_imap_get(l->stalled, job->id) == NULL &&
	    data_trim(job, &m)) {
		ok = data_fits(job, &m);
		tell = ok && data_store(l, job, &m);
	}
	if (tell) {
		total = job->total;
		err_total = job->err_total;
	}
	pthread_mutex_unlock(&l->lock);
	if (!ok)
		return cube_fail(err, -EPROTO,
				 "the agent sent output that breaks the protocol: restart the sandbox");
	if (tell && cube_agent_listening(l))
		l->handler->output(l->ctx, head->id, total, err_total);
	if (tell)
		cube_agent_end_held(l, head->id);
	return 0;
}
