/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox of one step. It is made, used and destroyed by the build's thread alone; what its agent tells
 * arrives on the loop's thread and is only noted there. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/spool.h"
#include "ctl/build.h"

#define BOX_JOB     1u
#define BOX_LIMIT   (UINT64_C(16) << 20)
#define BOX_LINE    800
#define BOX_AGENT_S 60u /* for its first word */

struct cube_box {
	struct cube_build *b;
	struct cube_backend *backend;
	char uid[17];
	char *id;
	struct cube_link *link;
	struct cube_post post;
	int news; /* eventfd: one of those below changed */
	int out;  /* the spool */
	pthread_mutex_t lock;
	bool synced, ended, down, closed;
	uint64_t total;
	struct cube_end_record end;
	struct cube_err why; /* of the end */
	/* the build's thread's */
	uint64_t read;
	struct cube_buf line;
};

/* ---- what the agent tells; the loop's thread ---- */

static void box_tell(struct cube_box *x)
{
	const uint64_t one = 1;

	(void)!write(x->news, &one, sizeof(one)); /* it counts: full means that there is news */
}

#define BOX_NOTE(x, statement)                                                                               \
	do {                                                                                                 \
		pthread_mutex_lock(&(x)->lock);                                                              \
		statement;                                                                                   \
		pthread_mutex_unlock(&(x)->lock);                                                            \
		box_tell(x);                                                                                 \
	} while (0)

static void box_up(void *ctx, uint64_t boot)
{
	(void)ctx, (void)boot;
}

static void box_synced(void *ctx)
{
	struct cube_box *x = ctx;

	BOX_NOTE(x, x->synced = true);
}

static void box_started(void *ctx, uint64_t job, int pid)
{
	(void)ctx, (void)job, (void)pid;
}

static void box_output(void *ctx, uint64_t job, uint64_t total, uint64_t err_total)
{
	struct cube_box *x = ctx;

	(void)job, (void)err_total;
	BOX_NOTE(x, x->total = total);
}

static void box_input(void *ctx, uint64_t job, uint64_t got)
{
	(void)ctx, (void)job, (void)got;
}

static void box_left(void *ctx, uint64_t n, bool still)
{
	(void)ctx, (void)n, (void)still;
}

static void box_session(void *ctx, const struct cube_link_session *s)
{
	(void)ctx, (void)s;
}

static void box_ended(void *ctx, uint64_t job, const struct cube_end_record *end, const struct cube_err *err)
{
	struct cube_box *x = ctx;

	(void)job;
	pthread_mutex_lock(&x->lock);
	x->ended = true;
	x->end = *end;
	x->total = end->total > x->total ? end->total : x->total;
	if (err != NULL)
		x->why = *err;
	pthread_mutex_unlock(&x->lock);
	box_tell(x);
}

static void box_down(void *ctx, const struct cube_err *err)
{
	struct cube_box *x = ctx;

	pthread_mutex_lock(&x->lock);
	x->down = true;
	if (err != NULL)
		x->why = *err;
	pthread_mutex_unlock(&x->lock);
	box_tell(x);
}

static const struct cube_link_handler box_handler = {
	.up = box_up,
	.synced = box_synced,
	.started = box_started,
	.output = box_output,
	.input = box_input,
	.session = box_session,
	.ended = box_ended,
	.left = box_left,
	.down = box_down,
};

/* ---- output into the log ---- */

static void box_line(struct cube_box *x)
{
	if (x->line.len > 0)
		cube_build_say(x->b, cube_buf_str(&x->line));
	cube_buf_reset(&x->line);
}

static void box_print(struct cube_box *x, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (data[i] == '\n' || data[i] == '\r' || x->line.len >= BOX_LINE)
			box_line(x);
		if (data[i] != '\n' && data[i] != '\r')
			(void)cube_buf_addc(&x->line, data[i]);
	}
}

static void box_show(struct cube_box *x, uint64_t total)
{
	const struct cube_spool_view v = {
		.out_fd = x->out, .order_fd = -1, .total = total, .limit = BOX_LIMIT};
	char data[16384];
	ssize_t n;

	while ((n = cube_spool_follow(&v, CUBE_STREAM_OUTPUT, data, sizeof(data), &x->read)) > 0)
		box_print(x, data, (size_t)n);
}

/* ---- waiting ---- */

/* For news, at most @ms (-1: for ever). -EINTR, -ETIMEDOUT. */
static int box_wait(struct cube_box *x, int ms, struct cube_err *err)
{
	struct pollfd fds[] = {{.fd = x->news, .events = POLLIN},
			       {.fd = cube_cancel_fd(x->b->cancel), .events = POLLIN}};
	uint64_t n;
	int r = poll(fds, 2, ms);

	if (cube_cancel_fired(x->b->cancel))
		return cube_fail(err, -EINTR,
				 "the build was interrupted; the next goes on with the steps that are done");
	if (r == 0)
		return cube_fail(err, -ETIMEDOUT, "the agent of the step's sandbox does not answer");
	(void)!read(x->news, &n, sizeof(n));
	return 0;
}

static int box_state(struct cube_box *x, bool *synced, bool *ended, uint64_t *total, struct cube_err *err)
{
	int r = 0;

	pthread_mutex_lock(&x->lock);
	*synced = x->synced;
	*ended = x->ended;
	*total = x->total;
	if (x->down && !x->ended)
		r = cube_fail(err, -EHOSTDOWN, "the step's sandbox ended: %s", x->why.text);
	pthread_mutex_unlock(&x->lock);
	return r;
}

/* ---- opening, closing ---- */

/* The intention: what a daemon that is killed leaves is found by its mark. */
static int box_note(struct cube_box *x, struct cube_err *err)
{
	struct cube_template_entry *t = x->b->entry;
	int r;

	cube_domain_enter(x->b->domain);
	memcpy(t->box, x->uid, sizeof(t->box));
	r = cube_template_record_save(t, err);
	cube_domain_leave(x->b->domain);
	return r;
}

static int box_create(struct cube_box *x, const char *template, struct cube_err *err)
{
	const struct cube_spec spec = {.uid = x->uid,
				       .name = "build",
				       .template = template,
				       .net = x->b->net ? CUBE_NET_OPEN : CUBE_NET_NONE};
	int r = cube_backend_check_spec(x->backend, &spec, err);

	if (r == 0)
		r = cube_backend_create(x->backend, &spec, x->b->cancel, &x->id, err);
	if (r == 0)
		r = cube_backend_link(x->backend, x->id, &box_handler, x, x->b->cancel, &x->link, err);
	return r;
}

static int box_ready(struct cube_box *x, struct cube_err *err)
{
	bool synced = false, ended;
	uint64_t total;
	int r = 0;

	while (r == 0 && !synced) {
		r = box_state(x, &synced, &ended, &total, err);
		if (r == 0 && !synced)
			r = box_wait(x, (int)BOX_AGENT_S * 1000, err);
	}
	return r;
}

static struct cube_box *box_new(struct cube_build *b)
{
	struct cube_box *x = cube_calloc(1, sizeof(*x));
	uint64_t n;

	if (x == NULL)
		return NULL;
	x->b = b;
	x->backend = b->entry->service->backend;
	x->line = CUBE_BUF(BOX_LINE + 16);
	x->out = open(b->domain->state_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	x->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)pthread_mutex_init(&x->lock, NULL);
	if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n) || x->out < 0 || x->news < 0) {
		cube_box_close(x);
		return NULL;
	}
	(void)snprintf(x->uid, sizeof(x->uid), "%016llx", (unsigned long long)n);
	return x;
}

int cube_box_open(struct cube_build *b, const char *template, struct cube_box **ret, struct cube_err *err)
{
	struct cube_box *x = box_new(b);
	int r;

	if (x == NULL)
		return cube_fail_errno(err, "a sandbox for the step");
	r = box_note(x, err);
	if (r == 0)
		r = box_create(x, template, err);
	if (r == 0)
		r = box_ready(x, err);
	if (r < 0) {
		cube_box_close(x);
		return r;
	}
	*ret = x;
	return 0;
}

static void box_unlink(struct cube_post *post)
{
	struct cube_box *x = cube_container_of(post, struct cube_box, post);

	cube_link_close(cube_steal(x->link));
	BOX_NOTE(x, x->closed = true);
}

/* On the loop's thread, behind whatever it is telling now. */
static void box_drop_link(struct cube_box *x)
{
	struct pollfd fd = {.fd = x->news, .events = POLLIN};
	bool closed = x->link == NULL;

	if (!closed) {
		x->post.fn = box_unlink;
		cube_loop_post(x->b->domain->loop, &x->post);
	}
	while (!closed) {
		uint64_t n;

		(void)poll(&fd, 1, -1);
		(void)!read(x->news, &n, sizeof(n));
		pthread_mutex_lock(&x->lock);
		closed = x->closed;
		pthread_mutex_unlock(&x->lock);
	}
}

void cube_box_close(struct cube_box *x)
{
	struct cube_err err;

	if (x == NULL)
		return;
	box_drop_link(x);
	if (x->id != NULL && cube_backend_destroy(x->backend, x->id, &err) < 0)
		cube_build_say(x->b, err.text);
	if (x->out >= 0)
		(void)close(x->out);
	if (x->news >= 0)
		(void)close(x->news);
	(void)pthread_mutex_destroy(&x->lock);
	cube_buf_done(&x->line);
	cube_free(x->id);
	cube_free(x);
}

/* ---- using ---- */

static int box_start(struct cube_box *x, const struct cube_step *s, struct cube_err *err)
{
	const struct cube_template_config *c = &x->b->config;
	struct cube_buf env = CUBE_BUF(2 * CUBE_ENV_MAX);
	struct cube_env_text *full = NULL;
	int r = cube_env_apply(cube_buf_str(&c->env), c->env.len, cube_buf_str(&s->env), s->env.len, &env);

	if (r == 0)
		full = cube_create_env_text(cube_buf_str(&env), env.len);
	cube_buf_done(&env);
	if (full == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");

	const struct cube_link_start start = {
		.job = BOX_JOB,
		.argv = s->argv,
		.text = s->text.data,
		.text_len = s->text.len,
		.env = full->data,
		.env_len = full->len,
		.cwd = c->workdir[0] != '\0' ? c->workdir : "/",
		.user = c->user,
		.in = CUBE_STDIN_EMPTY,
		.merge = true,
		.out_fd = x->out,
		.order_fd = -1,
		.limit = BOX_LIMIT,
	};
	r = cube_link_start(x->link, &start, err);
	cube_env_text_unref(full);
	return r;
}

static int box_result(struct cube_box *x, const struct cube_step *s, struct cube_err *err)
{
	if (x->end.how == CUBE_END_EXIT && x->end.code == 0)
		return 0;
	if (x->why.text[0] != '\0')
		return cube_fail(err, -EREMOTEIO, "line %u: %s", s->line, x->why.text);
	return cube_fail(err, -EREMOTEIO,
			 "line %u: the command ended (%s) with code %d; its output is in log", s->line,
			 cube_end_name(x->end.how), x->end.code);
}

int cube_box_run(struct cube_box *x, const struct cube_step *s, struct cube_err *err)
{
	bool synced, ended = false;
	uint64_t total = 0;
	int r = box_start(x, s, err);

	while (r == 0 && !ended) {
		r = box_state(x, &synced, &ended, &total, err);
		box_show(x, total);
		if (r == 0 && !ended)
			r = box_wait(x, -1, err);
	}
	box_line(x);
	return r == 0 ? box_result(x, s, err) : r;
}

int cube_box_root(struct cube_box *x, struct cube_root *ret, struct cube_err *err)
{
	return cube_backend_root(x->backend, x->id, ret, err);
}

int cube_box_commit(struct cube_box *x, const char *name, struct cube_err *err)
{
	int r;

	box_drop_link(x);
	x->closed = false;
	r = cube_backend_stop(x->backend, x->id, 1, x->b->cancel, err);
	if (r == 0)
		r = cube_backend_template_commit(x->backend, x->id, name, x->b->cancel, err);
	return r;
}
