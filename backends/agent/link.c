/* SPDX-License-Identifier: Apache-2.0 */
/* The link to cube-init: its life and its methods. */
#include "backends/agent/link_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"

#define LINK_ROUNDS 16 /* reads before others have their turn */

static const int no_fds[2] = {-1, -1};

static struct agent_link *link_of(struct cube_link *l)
{
	return cube_container_of(l, struct agent_link, base);
}

static void link_free(struct agent_link *l)
{
	cube_agent_send_drop(l);
	cube_agent_jobs_done(l);
	cube_wire_join_done(&l->join);
	cube_free(l->feed);
	(void)pthread_mutex_destroy(&l->lock);
	cube_free(l);
}

/* On the loop's thread, once. */
static void link_down(struct agent_link *l, const struct cube_err *err)
{
	bool tell;

	cube_watch_free(l->watch);
	l->watch = NULL;
	pthread_mutex_lock(&l->lock);
	l->dead = true;
	cube_agent_send_drop(l);
	tell = !l->closed;
	pthread_mutex_unlock(&l->lock);
	if (tell)
		l->handler->down(l->ctx, err);
}

/* More bytes: how many, 0 at the end, -errno. */
static ssize_t link_read(struct agent_link *l)
{
	size_t space;
	void *to = cube_wire_feed_space(l->feed, &space);
	ssize_t n;

	do
		n = read(l->fd, to, space);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		l->feed->len += (size_t)n;
	return n < 0 ? -errno : n;
}

static int link_frames(struct agent_link *l, struct cube_err *err)
{
	struct cube_wire_head head;
	const void *body;
	int r;

	/* A stream may still have the end of what was said to an earlier daemon. */
	if (!l->pass_fds && !l->greeted && !cube_wire_feed_sync(l->feed))
		return 0;
	while ((r = cube_wire_feed_next(l->feed, &head, &body)) > 0) {
		r = cube_agent_receive(l, &head, body, err);
		if (r < 0)
			return r;
	}
	return r < 0 ? cube_fail(err, r, "the agent sent a frame that is too long: restart the sandbox") : 0;
}

/* 0 when there is nothing more, -errno with a sentence when the link is broken. */
static int link_receive(struct agent_link *l, struct cube_err *err)
{
	for (int round = 0; round < LINK_ROUNDS; round++) {
		ssize_t n = link_read(l);
		int r;

		if (n == -EAGAIN)
			return 0;
		if (n == 0)
			return cube_fail(err, -EHOSTDOWN, "the agent of the sandbox closed the connection");
		if (n < 0)
			return cube_fail(err, (int)n, "the connection to the agent of the sandbox broke: %s",
					 cube_errno_text((int)n));
		r = link_frames(l, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static void link_watch_set(struct agent_link *l)
{
	bool more;

	pthread_mutex_lock(&l->lock);
	more = !cube_list_empty(&l->queue);
	pthread_mutex_unlock(&l->lock);
	if (l->watch != NULL)
		cube_watch_set(l->watch, CUBE_WATCH_IN | (more ? CUBE_WATCH_OUT : 0));
}

static void link_ready(void *ctx, unsigned events)
{
	struct agent_link *l = ctx;
	struct cube_err err = {0};

	if ((events & CUBE_WATCH_OUT) != 0) {
		pthread_mutex_lock(&l->lock);
		cube_agent_send_queued(l);
		pthread_mutex_unlock(&l->lock);
		link_watch_set(l);
	}
	if ((events & CUBE_WATCH_IN) != 0 && cube_agent_listening(l) && link_receive(l, &err) < 0)
		link_down(l, &err);
}

static void link_attach(struct agent_link *l)
{
	struct cube_err err;

	l->retry = cube_timer_new(l->loop, cube_agent_data_retry, l);
	l->watch = l->retry == NULL ? NULL : cube_watch_new(l->loop, l->fd, CUBE_WATCH_IN, link_ready, l);
	if (l->watch == NULL) {
		(void)cube_fail(&err, -ENOMEM, "no memory to watch the agent of the sandbox");
		link_down(l, &err);
	}
}

static void link_destroy(struct agent_link *l)
{
	cube_watch_free(l->watch);
	cube_timer_free(l->retry);
	(void)close(l->fd);
	link_free(l);
}

/* What only the loop's thread may do: begin to watch, watch for room, go away. */
static void link_posted(struct cube_post *post)
{
	struct agent_link *l = cube_container_of(post, struct agent_link, post);
	bool closed, dead;

	pthread_mutex_lock(&l->lock);
	l->posted = false;
	closed = l->closed;
	dead = l->dead;
	pthread_mutex_unlock(&l->lock);
	if (closed)
		link_destroy(l);
	else if (l->retry == NULL)
		link_attach(l);
	else if (!dead || l->watch != NULL)
		link_watch_set(l);
	if (!closed && !dead)
		cube_agent_taken_up(l);
}

static void link_post(struct agent_link *l)
{
	if (l->posted)
		return;
	l->posted = true;
	cube_loop_post(l->loop, &l->post);
}

static void link_close(struct cube_link *base)
{
	struct agent_link *l = link_of(base);

	pthread_mutex_lock(&l->lock);
	l->closed = true;
	(void)shutdown(l->fd, SHUT_RDWR);
	link_post(l);
	pthread_mutex_unlock(&l->lock);
}

/* What START says, out of what the caller wants. */
static struct cube_wire_start link_start_message(const struct cube_link_start *s)
{
	struct cube_wire_start m = {
		.session = s->session,
		.limit = s->limit,
		.timeout_s = s->timeout_s,
		.rows = s->rows,
		.cols = s->cols,
		.text = s->text,
		.text_len = s->text_len,
		.env = s->env,
		.env_len = s->env_len,
		.cwd = s->cwd,
		.cwd_len = s->cwd != NULL ? strlen(s->cwd) : 0,
		.user = s->user,
		.user_len = s->user != NULL ? strlen(s->user) : 0,
	};

	m.what = (uint16_t)((s->argv ? CUBE_WIRE_START_ARGV : 0) |
			    (s->in == CUBE_STDIN_PIPE ? CUBE_WIRE_START_STDIN : 0) |
			    (s->tty ? CUBE_WIRE_START_TTY : 0) | (s->merge ? CUBE_WIRE_START_MERGE : 0) |
			    (s->cwd != NULL ? CUBE_WIRE_START_CWD : 0));
	return m;
}

static int link_start_check(const struct cube_wire_start *m, struct cube_err *err)
{
	if (m->text_len > CUBE_WIRE_TEXT_MAX)
		return cube_fail(err, -EMSGSIZE, "a command has at most %u bytes, this one has %zu",
				 CUBE_WIRE_TEXT_MAX, m->text_len);
	if (m->env_len > CUBE_WIRE_ENV_MAX)
		return cube_fail(err, -EMSGSIZE, "an environment has at most %u bytes, this one has %zu",
				 CUBE_WIRE_ENV_MAX, m->env_len);
	if (m->cwd_len > CUBE_WIRE_CWD_MAX || m->user_len > CUBE_WIRE_USER_MAX)
		return cube_fail(err, -EMSGSIZE, "the directory or the user of a command is too long a name");
	return 0;
}

/* With the lock held. */
static int link_start_locked(struct agent_link *l, const struct cube_link_start *s, const void *data,
			     size_t len, uint64_t oom_count, struct cube_err *err)
{
	const int fds[2] = {l->pass_fds ? s->out_fd : -1, l->pass_fds ? s->order_fd : -1};
	struct agent_job *job;
	int r;

	if (l->dead || l->closed)
		return cube_fail(err, -EHOSTDOWN, "the connection to the agent of the sandbox is down");
	if (s->session != 0 && cube_imap_get(l->sessions, s->session) != NULL)
		return cube_fail(err, -EBUSY, "the session has a command: wait for its end");
	job = cube_imap_get(l->jobs, s->job) == NULL ? cube_agent_job_new(l, s->job, s->session) : NULL;
	if (job == NULL)
		return cube_fail(err, -ENOMEM, "no memory for another job");
	job->oom_count = oom_count;
	r = cube_agent_job_spool(job, s->out_fd, s->order_fd);
	if (r == 0)
		r = cube_agent_send(l, data, len, fds);
	if (r < 0) {
		cube_agent_job_free(l, job);
		return cube_fail(err, r, "the command could not be sent to the agent: %s",
				 cube_errno_text(r));
	}
	return 0;
}

/* Without the lock, since it asks somebody else. */
static uint64_t link_oom_count(struct agent_link *l)
{
	struct cube_agent_oom oom;

	pthread_mutex_lock(&l->lock);
	oom = l->oom;
	pthread_mutex_unlock(&l->lock);
	return oom.count != NULL ? oom.count(oom.ctx) : 0;
}

static int link_start(struct cube_link *base, const struct cube_link_start *s, struct cube_err *err)
{
	struct agent_link *l = link_of(base);
	struct cube_wire_start m = link_start_message(s);
	unsigned flags = !l->pass_fds ? 0 : CUBE_WIRE_FD_OUT | (s->order_fd >= 0 ? CUBE_WIRE_FD_ORDER : 0);
	struct cube_wire_out out;
	uint64_t oom_count;
	unsigned char *data;
	int r = link_start_check(&m, err);

	if (r < 0)
		return r;
	data = cube_malloc(cube_wire_start_size(&m));
	if (data == NULL)
		return cube_fail(err, -ENOMEM, "no memory for a command of %zu bytes", m.text_len);
	cube_wire_out_init(&out, data, cube_wire_start_size(&m));
	(void)cube_wire_put_start(&out, s->job, flags, &m);
	oom_count = link_oom_count(l);
	pthread_mutex_lock(&l->lock);
	r = link_start_locked(l, s, data, out.len, oom_count, err);
	pthread_mutex_unlock(&l->lock);
	cube_free(data);
	return r;
}

/* One INPUT, with the lock held: bytes that were taken. */
static size_t link_input_some(struct agent_link *l, struct agent_job *job, const void *data, size_t len)
{
	unsigned char frame[CUBE_WIRE_HEADER + CUBE_WIRE_INPUT_MAX];
	struct cube_wire_out out;
	size_t window = CUBE_WIRE_WINDOW - (size_t)(job->sent - job->taken);
	size_t at;

	if (len > window)
		len = window;
	if (len > CUBE_WIRE_INPUT_MAX)
		len = CUBE_WIRE_INPUT_MAX;
	if (len == 0)
		return 0;
	cube_wire_out_init(&out, frame, sizeof(frame));
	at = cube_wire_begin(&out, CUBE_WIRE_INPUT, 0, job->id);
	cube_wire_put_bytes(&out, data, len);
	if (!cube_wire_end(&out, at) || cube_agent_send(l, frame, out.len, no_fds) < 0)
		return 0;
	job->sent += len;
	return len;
}

static ptrdiff_t link_input(struct cube_link *base, uint64_t id, const void *data, size_t len)
{
	struct agent_link *l = link_of(base);
	const unsigned char *bytes = data;
	struct agent_job *job;
	size_t done = 0, n = 1;

	pthread_mutex_lock(&l->lock);
	job = cube_imap_get(l->jobs, id);
	while (job != NULL && !job->ended && done < len && n > 0) {
		n = link_input_some(l, job, bytes + done, len - done);
		done += n;
	}
	pthread_mutex_unlock(&l->lock);
	return (ptrdiff_t)done;
}

static void link_plain(struct cube_link *base, enum cube_wire_type type, uint64_t id)
{
	struct agent_link *l = link_of(base);
	unsigned char data[CUBE_WIRE_HEADER];
	struct cube_wire_out out;

	cube_wire_out_init(&out, data, sizeof(data));
	(void)cube_wire_put_plain(&out, type, id);
	pthread_mutex_lock(&l->lock);
	(void)cube_agent_send(l, data, out.len, no_fds);
	pthread_mutex_unlock(&l->lock);
}

static void link_number(struct cube_link *base, enum cube_wire_type type, uint64_t id, uint64_t v)
{
	struct agent_link *l = link_of(base);

	pthread_mutex_lock(&l->lock);
	(void)cube_agent_send_number(l, type, id, v);
	pthread_mutex_unlock(&l->lock);
}

static void link_eof(struct cube_link *l, uint64_t job)
{
	link_plain(l, CUBE_WIRE_EOF, job);
}

static void link_kill(struct cube_link *l, uint64_t job, int sig)
{
	link_number(l, CUBE_WIRE_KILL, job, (uint64_t)sig);
}

static void link_interrupt(struct cube_link *l, uint64_t job)
{
	link_plain(l, CUBE_WIRE_INTERRUPT, job);
}

static void link_pair(struct cube_link *base, enum cube_wire_type type, uint64_t id, uint64_t a, uint64_t b)
{
	struct agent_link *l = link_of(base);
	unsigned char data[CUBE_WIRE_HEADER + 16];
	struct cube_wire_out out;

	cube_wire_out_init(&out, data, sizeof(data));
	(void)cube_wire_put_pair(&out, type, id, a, b);
	pthread_mutex_lock(&l->lock);
	(void)cube_agent_send(l, data, out.len, no_fds);
	pthread_mutex_unlock(&l->lock);
}

static void link_winsize(struct cube_link *l, uint64_t job, uint16_t rows, uint16_t cols)
{
	link_pair(l, CUBE_WIRE_WINSIZE, job, rows, cols);
}

static void link_timeout(struct cube_link *l, uint64_t job, uint32_t seconds)
{
	link_number(l, CUBE_WIRE_TIMEOUT, job, seconds);
}

static void link_forget(struct cube_link *l, uint64_t job)
{
	link_plain(l, CUBE_WIRE_FORGET, job);
}

static void link_session_close(struct cube_link *l, uint64_t session, bool reset)
{
	link_number(l, CUBE_WIRE_SESSION_CLOSE, session, reset);
}

static void link_kill_all(struct cube_link *l, int sig)
{
	link_number(l, CUBE_WIRE_KILL_ALL, 0, (uint64_t)sig);
}

static void link_freeze(struct cube_link *l, bool on)
{
	link_number(l, CUBE_WIRE_FREEZE, 0, on);
}

static void link_paused(struct cube_link *l, uint64_t ms)
{
	if (!link_of(l)->still_clock)
		link_number(l, CUBE_WIRE_PAUSED, 0, ms);
}

/* An agent from before these messages would end the connection. */
static bool link_knows_times(struct cube_link *base)
{
	struct agent_link *l = link_of(base);
	bool knows;

	pthread_mutex_lock(&l->lock);
	knows = (l->caps & CUBE_WIRE_CAP_TIMES) != 0;
	pthread_mutex_unlock(&l->lock);
	return knows;
}

static int link_look(struct cube_link *l)
{
	if (!link_knows_times(l))
		return -EOPNOTSUPP;
	link_plain(l, CUBE_WIRE_LOOK, 0);
	return 0;
}

static void link_deadline(struct cube_link *l, uint64_t ms, enum cube_link_end what)
{
	static const enum cube_wire_end ends[] = {
		[CUBE_LINK_END_NONE] = CUBE_WIRE_END_NONE,
		[CUBE_LINK_END_STOP] = CUBE_WIRE_END_STOP,
		[CUBE_LINK_END_STILL] = CUBE_WIRE_END_STILL,
	};

	if (link_knows_times(l))
		link_pair(l, CUBE_WIRE_DEADLINE, 0, ms, ends[what]);
}

static int link_adopt(struct cube_link *base, uint64_t id, int out_fd, int order_fd, uint64_t total,
		      uint64_t err_total)
{
	struct agent_link *l = link_of(base);
	struct agent_job *job;
	int r = 0;

	if (l->pass_fds)
		return 0;
	pthread_mutex_lock(&l->lock);
	job = cube_imap_get(l->jobs, id);
	if (job != NULL && job->out_fd < 0) {
		r = cube_agent_job_spool(job, out_fd, order_fd);
		if (r == 0) {
			job->total = total;
			job->err_total = err_total;
			r = cube_agent_send_number(l, CUBE_WIRE_RESUME, id, total);
			job->taken_up = true;
			link_post(l);
		}
	}
	pthread_mutex_unlock(&l->lock);
	return r;
}

static const struct cube_link_ops link_ops = {
	.start = link_start,
	.input = link_input,
	.eof = link_eof,
	.kill = link_kill,
	.interrupt = link_interrupt,
	.winsize = link_winsize,
	.timeout = link_timeout,
	.forget = link_forget,
	.session_close = link_session_close,
	.kill_all = link_kill_all,
	.freeze = link_freeze,
	.paused = link_paused,
	.look = link_look,
	.deadline = link_deadline,
	.adopt = link_adopt,
	.close = link_close,
};

static int link_greet(struct agent_link *l)
{
	const struct cube_wire_hello m = {.min = CUBE_WIRE_VERSION_MIN,
					  .max = CUBE_WIRE_VERSION_MAX,
					  .caps = l->pass_fds ? CUBE_WIRE_CAP_FDS : 0};
	unsigned char data[64];
	struct cube_wire_out out;

	cube_wire_out_init(&out, data, sizeof(data));
	(void)cube_wire_put_hello(&out, &m);
	return cube_agent_send(l, data, out.len, no_fds);
}

static struct agent_link *link_alloc(void)
{
	struct agent_link *l = cube_calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	(void)pthread_mutex_init(&l->lock, NULL);
	cube_list_init(&l->queue);
	cube_wire_join_init(&l->join, CUBE_WIRE_LONG_MAX, cube_malloc, cube_free);
	l->feed = cube_malloc(sizeof(*l->feed)); /* not cleared: most of it is never touched */
	l->jobs = cube_imap_new();
	l->sessions = cube_imap_new();
	l->stalled = cube_imap_new();
	if (l->feed == NULL || l->jobs == NULL || l->sessions == NULL || l->stalled == NULL) {
		link_free(l);
		return NULL;
	}
	cube_wire_feed_init(l->feed);
	return l;
}

int cube_agent_link_new(struct cube_loop *loop, int fd, bool pass_fds, const struct cube_link_handler *h,
			void *ctx, struct cube_link **ret, struct cube_err *err)
{
	struct agent_link *l;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return cube_fail_errno(err, "the connection to the agent cannot be used");
	l = link_alloc();
	if (l == NULL)
		return cube_fail(err, -ENOMEM, "no memory for a link to the agent");
	l->base.ops = &link_ops;
	l->loop = loop;
	l->handler = h;
	l->ctx = ctx;
	l->fd = fd;
	l->pass_fds = pass_fds;
	l->post.fn = link_posted;
	pthread_mutex_lock(&l->lock);
	l->posted = true;    /* the one below */
	(void)link_greet(l); /* a failure shows as `down` */
	pthread_mutex_unlock(&l->lock);
	cube_loop_post(loop, &l->post);
	*ret = &l->base;
	return 0;
}

void cube_agent_link_set_oom(struct cube_link *base, const struct cube_agent_oom *oom)
{
	struct agent_link *l = link_of(base);

	pthread_mutex_lock(&l->lock);
	l->oom = *oom;
	pthread_mutex_unlock(&l->lock);
}

void cube_agent_link_set_still_clock(struct cube_link *base)
{
	link_of(base)->still_clock = true;
}

uint64_t cube_agent_link_caps(struct cube_link *base)
{
	struct agent_link *l = link_of(base);
	uint64_t caps;

	pthread_mutex_lock(&l->lock);
	caps = l->caps;
	pthread_mutex_unlock(&l->lock);
	return caps;
}
