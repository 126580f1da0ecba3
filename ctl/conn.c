/* SPDX-License-Identifier: Apache-2.0 */
/* The link to a sandbox's agent: made behind, dropped, made again; what the far side reports, brought under
 * the lock.
 *
 * A connection is an object of its own, since the loop's thread may be inside one of its handlers while
 * another thread gives it up: `dead` says so, and the link is closed and the memory freed on the loop's
 * thread alone. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "ctl/ctl_priv.h"

#define DRAIN_MS         5000
#define RELINK_MS        100u
#define RELINK_MAX_MS    10000u
#define RELINK_STABLE_NS UINT64_C(200000000)

struct conn_work {
	struct cube_work work;
	struct cube_conn *conn;
	struct cube_cube *cube; /* referenced */
	char id[CUBE_ID_MAX + 1];
};

bool cube_conn_ready(const struct cube_cube *c)
{
	const struct cube_conn *conn = cube_own((struct cube_cube *)(uintptr_t)c)->conn;

	return conn != NULL && conn->agent != NULL && conn->synced;
}

static bool conn_unheard(struct cube_cube *c)
{
	if (c->phase != CUBE_RUNNING || cube_conn_ready(c) || !(c->service->backend->caps & CUBE_CAP_EXEC))
		return false;
	for (const struct cube_job *j = cube_job_next_live(c, 0); j != NULL;
	     j = cube_job_next_live(c, j->seq))
		if (j->state == CUBE_JOB_RUNNING)
			return true;
	return false;
}

unsigned cube_domain_unheard(struct cube_domain *d)
{
	unsigned n = 0;

	cube_list_each (i, &d->cubes)
		n += conn_unheard(cube_list_entry(i, struct cube_cube, link));
	return n;
}

/* ---- Closing ---- */

static void conn_free(struct cube_conn *conn)
{
	cube_cancel_unref(conn->cancel);
	cube_free(conn);
}

static void conn_close(struct cube_post *post)
{
	struct cube_conn *conn = cube_container_of(post, struct cube_conn, post);
	struct cube_domain *d = conn->domain;

	cube_link_close(conn->agent);
	if (d != NULL) {
		cube_domain_enter(d);
		cube_list_remove(&conn->link);
		cube_domain_leave(d);
	}
	conn_free(conn);
}

/* It may be inside a handler or on its way out of the backend: the last that has it lets it go. */
static void conn_retire(struct cube_conn *conn)
{
	conn->dead = true;
	if (conn->agent == NULL || conn->closing)
		return;
	conn->closing = true;
	conn->post.fn = conn_close;
	cube_loop_post(conn->domain->loop, &conn->post);
}

void cube_conn_drop(struct cube_cube *c)
{
	struct cube_conn *conn = cube_steal(cube_own(c)->conn);

	c->agent = NULL;
	cube_use_unlinked(c);
	if (conn == NULL)
		return;
	cube_cancel_fire(conn->cancel);
	conn_retire(conn);
}

void cube_conn_drain(struct cube_cube *c, const struct cube_cancel *cancel)
{
	struct cube_cancel *down = NULL; /* fires when the link is dropped, for whatever reason */

	cube_domain_enter(c->domain);
	if (cube_conn_ready(c) && !c->domain->closing)
		down = cube_cancel_ref(cube_own(c)->conn->cancel);
	cube_domain_leave(c->domain);
	if (down == NULL)
		return;
	struct pollfd either[] = {{.fd = cube_cancel_fd(down), .events = POLLIN},
				  {.fd = cube_cancel_fd(cancel), .events = POLLIN}};
	(void)poll(either, CUBE_COUNT(either), DRAIN_MS);
	cube_cancel_unref(down);
}

void cube_conns_close(struct cube_domain *d)
{
	struct cube_list *conns = &cube_domain_own(d)->conns;

	for (struct cube_list *i = cube_list_pop(conns); i != NULL; i = cube_list_pop(conns)) {
		struct cube_conn *conn = cube_list_entry(i, struct cube_conn, link);

		/* The loop has ended, so this thread stands for it; what it still has posted only frees. */
		cube_link_close(cube_steal(conn->agent));
		conn->domain = NULL;
		if (!conn->closing)
			conn_free(conn);
	}
}

/* ---- Making ---- */

void cube_conn_again(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);
	unsigned ms = own->relink_tries < 7 ? RELINK_MS << own->relink_tries : RELINK_MAX_MS;

	if (c->domain->closing || c->phase == CUBE_REMOVED || cube_alarm_is_on(&own->relink))
		return;
	own->relink_tries++;
	cube_alarm_set(c->domain, &own->relink, ms < RELINK_MAX_MS ? ms : RELINK_MAX_MS);
}

void cube_cube_inspect(struct cube_cube *c)
{
	/* What is under way settles it; without memory it is tried again. */
	if (cube_op_begin(c, CUBE_OP_ADOPT, 0, NULL, NULL) < 0 && cube_own(c)->op == NULL)
		cube_conn_again(c);
}

static void conn_failed(struct cube_cube *c, int code, const struct cube_err *err)
{
	const struct cube_op *op = cube_own(c)->op;

	/* During an operation it is expected, and the operation's end settles it. */
	if ((c->phase == CUBE_RUNNING || c->phase == CUBE_PAUSED) && (op == NULL || op->waits_link)) {
		cube_log(CUBE_LOG_INFO, "ctl", "link to '%s': %s", c->name, err->text);
		cube_conn_again(c);
	}
	cube_op_linked(c, code, err);
}

/* All that the far side has to say anew. */
static void conn_expect(struct cube_cube *c)
{
	cube_list_each (i, &c->jobs) {
		struct cube_job_own *j = cube_job_own(cube_list_entry(i, struct cube_job, link));

		j->reported = j->unadopted = false;
	}
}

/* Of a job that an earlier link started this one learns where the output goes on; as soon as the backend has handed it
 * over. False: it cannot, so that neither more of it nor its end would ever be told: the link is given up for another. */
static bool conn_adopt(struct cube_conn *conn, struct cube_job *j)
{
	struct cube_cube *c = conn->cube;
	struct cube_err err = {0};
	int code = cube_output_adopt(j, conn->agent);

	cube_job_own(j)->unadopted = false;
	if (code >= 0)
		return true;
	(void)cube_fail(&err, code, "the output of job '%s' is not taken: %s", j->name,
			cube_errno_text(code));
	cube_conn_drop(c);
	conn_failed(c, code, &err);
	return false;
}

static bool conn_adopt_all(struct cube_conn *conn)
{
	cube_list_each (i, &conn->cube->jobs) {
		struct cube_job *j = cube_list_entry(i, struct cube_job, link);

		if (cube_job_own(j)->unadopted && !conn_adopt(conn, j))
			return false;
	}
	return true;
}

static void conn_forget_ended(struct cube_cube *c)
{
	cube_list_each (i, &c->jobs) {
		struct cube_job_own *j = cube_job_own(cube_list_entry(i, struct cube_job, link));

		if (!j->unforgotten || j->unsettled)
			continue;
		j->unforgotten = false;
		cube_link_forget(c->agent, j->j.number);
	}
}

/* What it did not speak of: never arrived there if the agent is the one it was sent to, else lost. */
static void conn_miss(struct cube_cube *c, uint64_t boot)
{
	static const struct cube_err lost = {.code = -EHOSTDOWN,
					     .text = "the agent does not know it any more"};

	uint64_t at = 0;

	for (struct cube_job *j = cube_job_next_live(c, at); j != NULL; j = cube_job_next_live(c, at)) {
		at = j->seq;
		if (j->state != CUBE_JOB_RUNNING || cube_job_own(j)->reported)
			continue;
		if (cube_job_own(j)->boot == boot && j->pid == 0)
			cube_job_again(j);
		else
			cube_job_end_without(j, CUBE_END_LOST, 0, &lost);
	}
	cube_jobs_settle(c);
}

static void conn_is_ready(struct cube_conn *conn)
{
	struct cube_cube *c = conn->cube;

	conn->ready_mono = cube_clock_mono();
	c->agent = conn->agent;
	conn_forget_ended(c);
	conn_miss(c, conn->boot);
	if (cube_own(c)->paused_owed != 0)
		cube_link_paused(c->agent, cube_own(c)->paused_owed);
	cube_own(c)->paused_owed = 0;
	cube_times_tell(c);
	cube_op_linked(c, 0, NULL);
	cube_jobs_kick(c);
	cube_cube_changed(c);
}

static void conn_made(struct cube_conn *conn, struct cube_link *agent, int code, const struct cube_err *err)
{
	struct cube_cube *c = conn->cube;

	if (code < 0) {
		bool dead = conn->dead;

		cube_list_remove(&conn->link);
		conn_free(conn);
		if (dead)
			return;
		cube_own(c)->conn = NULL;
		conn_failed(c, code, err);
		return;
	}
	conn->agent = agent;
	if (conn->dead) {
		conn_retire(conn);
		return;
	}
	c->agent = agent;
	if (conn_adopt_all(conn) && conn->synced)
		conn_is_ready(conn);
}

static const struct cube_link_handler conn_handler;

static void conn_work(struct cube_work *w)
{
	struct conn_work *cw = cube_container_of(w, struct conn_work, work);
	struct cube_domain *d = cw->cube->domain;
	struct cube_link *agent = NULL;
	struct cube_err err = {0};
	int code = cube_backend_link(cw->cube->service->backend, cw->id, &conn_handler, cw->conn,
				     cw->conn->cancel, &agent, &err);

	cube_domain_enter(d);
	conn_made(cw->conn, agent, code, &err);
	cube_cube_unref(cw->cube);
	cube_task_end(d);
	cube_domain_leave(d);
	cube_free(cw);
}

static struct cube_conn *conn_new(struct cube_cube *c)
{
	struct cube_conn *conn = cube_calloc(1, sizeof(*conn));

	if (conn == NULL)
		return NULL;
	conn->domain = c->domain;
	conn->cube = c;
	conn->cancel = cube_cancel_new();
	if (conn->cancel == NULL) {
		cube_free(conn);
		return NULL;
	}
	cube_list_push(&cube_domain_own(c->domain)->conns, &conn->link);
	return conn;
}

int cube_conn_begin(struct cube_cube *c, struct cube_err *err)
{
	struct conn_work *cw = cube_calloc(1, sizeof(*cw));
	struct cube_conn *conn = cw != NULL ? conn_new(c) : NULL;

	if (conn == NULL) {
		cube_free(cw);
		cube_conn_again(c);
		return cube_fail(err, -ENOMEM, "link to '%s': out of memory", c->name);
	}
	cube_own(c)->conn = conn;
	conn_expect(c);
	cw->work.run = conn_work;
	cw->work.key = cube_backend_queue_key(c->service->backend, c);
	cw->conn = conn;
	cw->cube = cube_cube_ref(c);
	(void)snprintf(cw->id, sizeof(cw->id), "%s", c->id != NULL ? c->id : "");
	cube_task_submit(c->domain, &cw->work);
	return 0;
}

void cube_conn_settle(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);

	if (c->phase != CUBE_RUNNING || own->op != NULL || own->conn != NULL || c->domain->closing ||
	    cube_alarm_is_on(&own->relink) || !(c->service->backend->caps & CUBE_CAP_EXEC))
		return;
	(void)cube_conn_begin(c, NULL); /* without memory it is tried again later */
}

/* ---- What the far side says ---- */

/* Under the lock from here to conn_leave; NULL: nobody listens any more (and the lock was given back). */
static struct cube_conn *conn_enter(void *ctx)
{
	struct cube_conn *conn = ctx;

	cube_domain_enter(conn->domain);
	if (!conn->dead)
		return conn;
	cube_domain_leave(conn->domain);
	return NULL;
}

static void conn_leave(struct cube_conn *conn)
{
	cube_domain_leave(conn->domain);
}

static void conn_up(void *ctx, uint64_t boot)
{
	struct cube_conn *conn = conn_enter(ctx);

	if (conn == NULL)
		return;
	conn->boot = boot;
	if (cube_own(conn->cube)->boot != boot) {
		cube_own(conn->cube)->boot = boot;
		cube_cube_sessions_anew(conn->cube);
		(void)cube_state_save(conn->cube,
				      NULL); /* unknown, it would only be taken for another boot */
	}
	conn_leave(conn);
}

static void conn_synced(void *ctx)
{
	struct cube_conn *conn = conn_enter(ctx);

	if (conn == NULL)
		return;
	conn->synced = true;
	if (conn->agent != NULL)
		conn_is_ready(conn);
	conn_leave(conn);
}

/* A job that nobody here knows: its start was cut off by our own death before it was promised to anyone. */
static void conn_stranger(struct cube_conn *conn, uint64_t job, bool ended)
{
	if (job >= conn->cube->next_job)
		conn->cube->next_job = job + 1;
	if (conn->agent == NULL)
		return; /* told again when it ends, or at the next link */
	if (ended)
		cube_link_forget(conn->agent, job);
	else
		cube_link_kill(conn->agent, job, 9);
}

static void conn_started(void *ctx, uint64_t job, int pid)
{
	struct cube_conn *conn = conn_enter(ctx);
	struct cube_job *j;

	if (conn == NULL)
		return;
	j = cube_job_by_number(conn->cube, job);
	if (j == NULL || (j->state != CUBE_JOB_RUNNING && j->state != CUBE_JOB_ENDED)) {
		if (pid != 0)
			conn_stranger(conn, job, false);
	} else {
		bool taken = true;

		if (conn->agent != NULL && !conn->synced)
			taken = conn_adopt(conn, j);
		else
			cube_job_own(j)->unadopted = !conn->synced;
		if (taken && j->state == CUBE_JOB_RUNNING) {
			cube_job_own(j)->reported = true;
			j->pid = pid;
			cube_wake(&j->changed);
		}
	}
	conn_leave(conn);
}

/* What waiters need is done; the rest comes when they have their answers. */
static void conn_settle_job(struct cube_conn *conn, struct cube_job *j, void (*rest)(struct cube_job *))
{
	struct cube_domain *d = conn->domain;

	cube_domain_leave(d);
	cube_domain_enter(d);
	rest(j);
	cube_job_unref(j);
	cube_domain_leave(d);
}

static void conn_output(void *ctx, uint64_t job, uint64_t total, uint64_t err_total)
{
	struct cube_conn *conn = conn_enter(ctx);
	struct cube_job *j;

	if (conn == NULL)
		return;
	j = cube_job_by_number(conn->cube, job);
	if (j == NULL || j->state < CUBE_JOB_RUNNING) {
		conn_leave(conn);
		return;
	}
	cube_job_own(j)->reported = true;
	cube_job_output(cube_job_ref(j), total, err_total);
	conn_settle_job(conn, j, cube_job_transcribe);
}

static void conn_input(void *ctx, uint64_t job, uint64_t got)
{
	struct cube_conn *conn = conn_enter(ctx);
	struct cube_job *j;

	if (conn == NULL)
		return;
	j = cube_job_by_number(conn->cube, job);
	if (j != NULL && j->state == CUBE_JOB_RUNNING)
		cube_job_input_got(j, got);
	conn_leave(conn);
}

static void conn_session(void *ctx, const struct cube_link_session *news)
{
	struct cube_conn *conn = conn_enter(ctx);
	struct cube_session *s;

	if (conn == NULL)
		return;
	s = cube_session_by_number(conn->cube, news->session);
	if (s != NULL)
		cube_session_news(s, news);
	conn_leave(conn);
}

static void conn_ended(void *ctx, uint64_t job, const struct cube_end_record *end, const struct cube_err *err)
{
	struct cube_conn *conn = conn_enter(ctx);
	struct cube_job *j;

	if (conn == NULL)
		return;
	j = cube_job_by_number(conn->cube, job);
	if (j == NULL || j->state < CUBE_JOB_RUNNING) {
		conn_stranger(conn, job, true);
		cube_jobs_kick(conn->cube); /* its session may take the next command now */
		conn_leave(conn);
		return;
	}
	cube_job_own(j)->reported = true;
	cube_job_own(j)->unforgotten = true;
	cube_job_ref(j);
	if (j->state == CUBE_JOB_RUNNING)
		cube_job_ended(j, end, err);
	conn_settle_job(conn, j, cube_job_settle);
}

static void conn_down(void *ctx, const struct cube_err *err)
{
	struct cube_conn *conn = conn_enter(ctx);
	struct cube_cube *c;

	if (conn == NULL)
		return;
	c = conn->cube;
	if (cube_own(c)->op == NULL && conn->ready_mono != 0 &&
	    cube_clock_mono() - conn->ready_mono > RELINK_STABLE_NS) {
		/* It is looked at once: most likely the sandbox ended. A link that broke at once has to wait.
		 */
		cube_own(c)->relink_tries = 0;
		cube_conn_drop(c);
		cube_cube_inspect(c);
		cube_cube_changed(c);
	} else {
		cube_conn_drop(c);
		conn_failed(c, err->code < 0 ? err->code : -EHOSTUNREACH, err);
	}
	conn_leave(conn);
}

static void conn_left(void *ctx, uint64_t n, bool still)
{
	struct cube_conn *conn = conn_enter(ctx);

	if (conn == NULL)
		return;
	if (conn->agent != NULL)
		cube_use_left(conn->cube, n, still);
	conn_leave(conn);
}

static const struct cube_link_handler conn_handler = {
	.up = conn_up,
	.synced = conn_synced,
	.started = conn_started,
	.output = conn_output,
	.input = conn_input,
	.session = conn_session,
	.ended = conn_ended,
	.left = conn_left,
	.down = conn_down,
};
