/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the agent. Each is checked as if the sandbox had written it, because it may have. */
#include "backends/agent/link_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"

static int recv_bad(struct cube_err *err, const char *what)
{
	return cube_fail(err, -EPROTO, "the agent sent a %s that breaks the protocol: restart the sandbox",
			 what);
}

bool cube_agent_listening(struct agent_link *l)
{
	bool on;

	pthread_mutex_lock(&l->lock);
	on = !l->closed;
	pthread_mutex_unlock(&l->lock);
	return on;
}

static int recv_hello(struct agent_link *l, const struct cube_wire_head *head, const void *body,
		      struct cube_err *err)
{
	struct cube_wire_hello m;

	if (l->greeted || !cube_wire_get_hello(body, head->len, &m))
		return recv_bad(err, "greeting");
	if (cube_wire_version(&m) == 0)
		return cube_fail(err, -EPROTO,
				 "the agent speaks protocol versions %u to %u, this daemon %u to %u: "
				 "restart the sandbox to renew it",
				 m.min, m.max, CUBE_WIRE_VERSION_MIN, CUBE_WIRE_VERSION_MAX);
	l->greeted = true;
	pthread_mutex_lock(&l->lock);
	l->caps = m.caps;
	pthread_mutex_unlock(&l->lock);
	if (cube_agent_listening(l))
		l->handler->up(l->ctx, m.boot);
	return 0;
}

static int recv_synced(struct agent_link *l, const struct cube_wire_head *head, const void *body,
		       struct cube_err *err)
{
	(void)body;
	if (head->len != 0)
		return recv_bad(err, "synced");
	if (cube_agent_listening(l))
		l->handler->synced(l->ctx);
	return 0;
}

static int recv_started(struct agent_link *l, const struct cube_wire_head *head, const void *body,
			struct cube_err *err)
{
	struct cube_wire_started m;
	struct agent_job *job;
	bool tell, adopted = false;

	if (!cube_wire_get_started(body, head->len, &m) || m.received - m.taken > CUBE_WIRE_WINDOW)
		return recv_bad(err, "start");
	pthread_mutex_lock(&l->lock);
	job = cube_imap_get(l->jobs, head->id);
	if (job == NULL) {
		job = cube_agent_job_new(l, head->id, m.tail ? 0 : m.session);
		if (job != NULL) {
			job->sent = job->received = m.received;
			job->taken = m.taken;
			job->ended = m.tail;
			adopted = !m.tail;
		}
	}
	/* Of what an earlier link started this end has to know where the output goes. */
	tell = job != NULL && (!l->pass_fds && job->out_fd < 0 ? true : !job->ended && m.pid != 0);
	pthread_mutex_unlock(&l->lock);
	if (tell && cube_agent_listening(l))
		l->handler->started(l->ctx, head->id, m.tail ? 0 : (int)m.pid);
	if (adopted && cube_agent_listening(l))
		l->handler->input(l->ctx, head->id, m.received);
	return 0;
}

/* Takes new totals, as far as they are possible: never less than before, never more than the spool has. */
static bool recv_totals(struct agent_link *l, struct agent_job *job, const struct cube_wire_output *m)
{
	uint64_t total = m->total;
	struct stat st;

	if (!l->pass_fds)
		return false; /* this end writes the spool and knows by itself */
	if (job->out_fd >= 0 && fstat(job->out_fd, &st) == 0 && total > (uint64_t)st.st_size)
		total = (uint64_t)st.st_size;
	if (total < job->total || m->err_total < job->err_total || m->err_total > total ||
	    (total == job->total && m->err_total == job->err_total))
		return false;
	job->total = total;
	job->err_total = m->err_total;
	return true;
}

static int recv_output(struct agent_link *l, const struct cube_wire_head *head, const void *body,
		       struct cube_err *err)
{
	struct cube_wire_output m;
	struct agent_job *job;
	uint64_t total = 0, err_total = 0;
	bool tell;

	if (!cube_wire_get_output(body, head->len, &m))
		return recv_bad(err, "progress");
	pthread_mutex_lock(&l->lock);
	job = cube_imap_get(l->jobs, head->id);
	tell = job != NULL && recv_totals(l, job, &m);
	if (tell) {
		total = job->total;
		err_total = job->err_total;
	}
	pthread_mutex_unlock(&l->lock);
	if (tell && cube_agent_listening(l))
		l->handler->output(l->ctx, head->id, total, err_total);
	cube_agent_end_held(l, head->id);
	return 0;
}

static int recv_credit(struct agent_link *l, const struct cube_wire_head *head, const void *body,
		       struct cube_err *err)
{
	struct agent_job *job;
	uint64_t received, taken;
	bool tell = false;

	if (!cube_wire_get_pair(body, head->len, &received, &taken) || taken > received)
		return recv_bad(err, "credit");
	pthread_mutex_lock(&l->lock);
	job = cube_imap_get(l->jobs, head->id);
	/* What was never sent is not believed. */
	if (job != NULL && received <= job->sent && received >= job->received && taken >= job->taken) {
		tell = !job->ended && (received > job->received || taken > job->taken);
		job->received = received;
		job->taken = taken;
	}
	pthread_mutex_unlock(&l->lock);
	if (tell && cube_agent_listening(l))
		l->handler->input(l->ctx, head->id, received);
	return 0;
}

static int recv_session(struct agent_link *l, const struct cube_wire_head *head, const void *body,
			struct cube_err *err)
{
	char cwd[CUBE_WIRE_CWD_MAX + 1];
	struct cube_wire_session m;
	struct cube_link_session s = {.session = head->id};
	int r = cube_wire_join_add(&l->join, head, body);

	if (r == 0)
		return 0;
	if (r < 0 || !cube_wire_get_session(l->join.data, l->join.len, &m)) {
		cube_wire_join_done(&l->join);
		return r == -ENOMEM ? cube_fail(err, r, "no memory for a session's report")
				    : recv_bad(err, "session");
	}
	(void)snprintf(cwd, sizeof(cwd), "%.*s", (int)m.cwd_len, m.cwd_len > 0 ? m.cwd : "");
	s.cwd = cwd;
	s.fresh = (m.what & CUBE_WIRE_SESSION_FRESH) != 0;
	if ((m.what & CUBE_WIRE_SESSION_EXPORTS) != 0) {
		l->join.data[l->join.len] = '\0';
		s.exports = m.exports;
		s.exports_len = m.exports_len;
	}
	if (cwd[0] == '/' && cube_agent_listening(l))
		l->handler->session(l->ctx, &s);
	cube_wire_join_done(&l->join);
	return 0;
}

static const enum cube_end recv_how[CUBE_WIRE_HOWS] = {
	[CUBE_WIRE_EXIT] = CUBE_END_EXIT,         [CUBE_WIRE_SIGNAL] = CUBE_END_SIGNAL,
	[CUBE_WIRE_TIMED_OUT] = CUBE_END_TIMEOUT, [CUBE_WIRE_KILLED] = CUBE_END_KILLED,
	[CUBE_WIRE_LOST] = CUBE_END_LOST,
};

/* A KILL that nobody here sent, to the command itself or, as its shell says, to the last of its processes. */
static bool recv_maybe_oom(const struct cube_wire_ended *m)
{
	return (m->how == CUBE_WIRE_SIGNAL && m->signal == SIGKILL) ||
	       (m->how == CUBE_WIRE_EXIT && m->code == 128 + SIGKILL && m->err == 0);
}

static void recv_record(struct agent_link *l, const struct cube_wire_ended *m, uint64_t oom_count,
			struct cube_end_record *end)
{
	struct cube_agent_oom oom;

	end->how = recv_how[m->how];
	end->code = m->how == CUBE_WIRE_LOST ? -1 : m->code;
	end->signal = m->signal;
	end->wall_ns = m->wall_ns;
	end->lost = m->output.lost;
	pthread_mutex_lock(&l->lock);
	oom = l->oom;
	pthread_mutex_unlock(&l->lock);
	if (oom.probe != NULL && recv_maybe_oom(m) && oom.probe(oom.ctx, oom_count)) {
		end->how = CUBE_END_OOM;
		end->code = 128 + SIGKILL;
		end->signal = SIGKILL;
	}
}

/* The end is known here, and the output is not: it is kept until then. With the lock held. */
static bool recv_hold(struct agent_link *l, struct agent_job *job, const struct cube_wire_ended *m)
{
	struct cube_wire_ended *copy;

	if (l->pass_fds || m->output.total <= job->total || m->output.total > INT64_MAX)
		return false;
	copy = cube_malloc(sizeof(*copy) + m->text_len);
	if (copy == NULL)
		return false;
	*copy = *m;
	if (m->text_len > 0)
		memcpy(copy + 1, m->text, m->text_len);
	copy->text = (const char *)(copy + 1);
	cube_free(job->held);
	job->held = copy;
	return true;
}

/* The job is over here: its session is free, its spool is the agent's alone or complete. With the lock held.
 */
static void recv_finish(struct agent_link *l, struct agent_job *job, const struct cube_wire_ended *m,
			struct cube_end_record *end)
{
	(void)recv_totals(l, job, &m->output);
	end->total = job->total;
	end->err_total = job->err_total;
	job->ended = true;
	if (job->session != 0)
		(void)cube_imap_take(l->sessions, job->session);
	job->session = 0;
	if (l->pass_fds)
		cube_agent_job_close_fds(job);
}

static void recv_tell_end(struct agent_link *l, uint64_t id, const struct cube_wire_ended *m,
			  uint64_t oom_count, struct cube_end_record *end)
{
	struct cube_err why;

	recv_record(l, m, oom_count, end);
	if (m->err != 0)
		(void)cube_fail(&why, m->err, "%.*s", (int)m->text_len, m->text);
	if (cube_agent_listening(l))
		l->handler->ended(l->ctx, id, end, m->err != 0 ? &why : NULL);
}

static int recv_ended(struct agent_link *l, const struct cube_wire_head *head, const void *body,
		      struct cube_err *err)
{
	struct cube_wire_ended m;
	struct cube_end_record end = {0};
	struct agent_job *job;
	uint64_t oom_count = 0;
	bool tell;

	if (!cube_wire_get_ended(body, head->len, &m))
		return recv_bad(err, "end");
	pthread_mutex_lock(&l->lock);
	job = cube_imap_get(l->jobs, head->id);
	/* Not known, or told before. */
	tell = job != NULL && !job->ended && !recv_hold(l, job, &m);
	if (tell) {
		recv_finish(l, job, &m, &end);
		oom_count = job->oom_count;
	}
	pthread_mutex_unlock(&l->lock);
	if (tell)
		recv_tell_end(l, head->id, &m, oom_count, &end);
	return 0;
}

void cube_agent_end_held(struct agent_link *l, uint64_t id)
{
	struct cube_end_record end = {0};
	struct cube_wire_ended *m = NULL;
	struct agent_job *job;
	uint64_t oom_count = 0;

	pthread_mutex_lock(&l->lock);
	job = cube_imap_get(l->jobs, id);
	if (job != NULL && job->held != NULL && job->total >= job->held->output.total) {
		m = cube_steal(job->held);
		recv_finish(l, job, m, &end);
		oom_count = job->oom_count;
	}
	pthread_mutex_unlock(&l->lock);
	if (m != NULL)
		recv_tell_end(l, id, m, oom_count, &end);
	cube_free(m);
}

static int recv_find_taken_up(void *ctx, uint64_t id, void *value)
{
	if (!((const struct agent_job *)value)->taken_up)
		return 0;
	*(uint64_t *)ctx = id;
	return 1;
}

void cube_agent_taken_up(struct agent_link *l)
{
	for (;;) {
		uint64_t id = 0, total = 0, err_total = 0;
		struct agent_job *job;
		int found;

		pthread_mutex_lock(&l->lock);
		found = cube_imap_each(l->jobs, recv_find_taken_up, &id);
		job = found != 0 ? cube_imap_get(l->jobs, id) : NULL;
		if (job != NULL) {
			job->taken_up = false;
			total = job->total;
			err_total = job->err_total;
		}
		pthread_mutex_unlock(&l->lock);
		if (found == 0)
			return;
		if (total > 0 && cube_agent_listening(l))
			l->handler->output(l->ctx, id, total, err_total);
		cube_agent_end_held(l, id); /* nothing more may come */
	}
}

static int recv_gone(struct agent_link *l, const struct cube_wire_head *head, const void *body,
		     struct cube_err *err)
{
	struct agent_job *job;

	(void)body;
	if (head->len != 0)
		return recv_bad(err, "farewell");
	pthread_mutex_lock(&l->lock);
	job = cube_imap_get(l->jobs, head->id);
	if (job != NULL && job->ended)
		cube_agent_job_free(l, job);
	pthread_mutex_unlock(&l->lock);
	return 0;
}

/* One from before it was said may have such a shell. */
static bool recv_says_held(struct agent_link *l)
{
	bool says;

	pthread_mutex_lock(&l->lock);
	says = (l->caps & CUBE_WIRE_CAP_HELD) != 0;
	pthread_mutex_unlock(&l->lock);
	return says;
}

static int recv_left(struct agent_link *l, const struct cube_wire_head *head, const void *body,
		     struct cube_err *err)
{
	uint64_t n;

	if (!cube_wire_get_number(body, head->len, &n))
		return recv_bad(err, "number of processes");
	if (cube_agent_listening(l))
		l->handler->left(l->ctx, n & ~CUBE_WIRE_LEFT_HELD, n == 0 && recv_says_held(l));
	return 0;
}

static const struct {
	enum cube_wire_type type;
	int (*fn)(struct agent_link *l, const struct cube_wire_head *head, const void *body,
		  struct cube_err *err);
} recv_table[] = {
	{CUBE_WIRE_HELLO, recv_hello},     {CUBE_WIRE_SYNCED, recv_synced},
	{CUBE_WIRE_STARTED, recv_started}, {CUBE_WIRE_OUTPUT, recv_output},
	{CUBE_WIRE_CREDIT, recv_credit},   {CUBE_WIRE_DATA, cube_agent_receive_data},
	{CUBE_WIRE_SESSION, recv_session}, {CUBE_WIRE_ENDED, recv_ended},
	{CUBE_WIRE_GONE, recv_gone},       {CUBE_WIRE_LEFT, recv_left},
};

int cube_agent_receive(struct agent_link *l, const struct cube_wire_head *head, const void *body,
		       struct cube_err *err)
{
	if (l->greeted == (head->type == CUBE_WIRE_HELLO))
		return recv_bad(err, "message before its greeting, or a second greeting,");
	if (l->join.open && (head->type != l->join.type || head->id != l->join.id))
		return recv_bad(err, "message in the middle of another");
	for (unsigned i = 0; i < CUBE_COUNT(recv_table); i++) {
		if (recv_table[i].type == head->type)
			return recv_table[i].fn(l, head, body, err);
	}
	if ((head->flags & CUBE_WIRE_OPTIONAL) != 0)
		return 0;
	return cube_fail(err, -EPROTO, "the agent sent a message of type %u, which this daemon does not know",
			 head->type);
}
