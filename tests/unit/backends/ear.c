/* SPDX-License-Identifier: Apache-2.0 */
/* A listener on a link: keeps all that it was told, in order, and lets the test wait for some of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "backends/base/alloc.h"
#include "tests/unit/backends/stage.h"

static const char *const kind_names[] = {"up",    "synced",  "started", "output",
					 "input", "session", "ended",   "down"};

/* On the loop's thread. */
static void ear_add(struct ear *e, const struct heard *what)
{
	struct heard *h = cube_memdup(what, sizeof(*what));

	assert_non_null(h);
	pthread_mutex_lock(&e->lock);
	h->seq = e->seq++;
	*e->last = h;
	e->last = &h->next;
	pthread_cond_broadcast(&e->more);
	pthread_mutex_unlock(&e->lock);
}

static void on_up(void *ctx, uint64_t boot)
{
	ear_add(ctx, &(struct heard){.kind = HEARD_UP, .id = boot});
}

static void on_synced(void *ctx)
{
	ear_add(ctx, &(struct heard){.kind = HEARD_SYNCED});
}

static void on_started(void *ctx, uint64_t job, int pid)
{
	ear_add(ctx, &(struct heard){.kind = HEARD_STARTED, .id = job, .pid = pid});
}

static void on_output(void *ctx, uint64_t job, uint64_t total, uint64_t err_total)
{
	ear_add(ctx,
		&(struct heard){.kind = HEARD_OUTPUT, .id = job, .total = total, .err_total = err_total});
}

static void on_input(void *ctx, uint64_t job, uint64_t got)
{
	ear_add(ctx, &(struct heard){.kind = HEARD_INPUT, .id = job, .total = got});
}

static void on_session(void *ctx, const struct cube_link_session *s)
{
	struct heard h = {
		.kind = HEARD_SESSION, .id = s->session, .fresh = s->fresh, .cwd = cube_strdup(s->cwd)};

	if (s->exports != NULL)
		h.exports = cube_strndup(s->exports, s->exports_len);
	ear_add(ctx, &h);
}

static void on_ended(void *ctx, uint64_t job, const struct cube_end_record *end, const struct cube_err *err)
{
	struct heard h = {.kind = HEARD_ENDED, .id = job, .end = *end};

	if (err != NULL)
		h.err = *err;
	ear_add(ctx, &h);
}

static void on_left(void *ctx, uint64_t n, bool still)
{
	(void)ctx, (void)n, (void)still;
}

static void on_down(void *ctx, const struct cube_err *err)
{
	ear_add(ctx, &(struct heard){.kind = HEARD_DOWN, .err = *err});
}

static const struct cube_link_handler ear_handler = {
	.up = on_up,
	.synced = on_synced,
	.started = on_started,
	.output = on_output,
	.input = on_input,
	.session = on_session,
	.ended = on_ended,
	.left = on_left,
	.down = on_down,
};

static void ear_free(struct ear *e)
{
	for (struct heard *h = e->first, *next; h != NULL; h = next) {
		next = h->next;
		cube_free(h->cwd);
		cube_free(h->exports);
		cube_free(h);
	}
	(void)pthread_mutex_destroy(&e->lock);
	(void)pthread_cond_destroy(&e->more);
	cube_free(e);
}

int ear_try(struct stage *s, const char *id, struct ear **ret, struct cube_err *err)
{
	struct ear *e = cube_calloc(1, sizeof(*e));
	int r;

	assert_non_null(e);
	e->stage = s;
	e->last = &e->first;
	(void)pthread_mutex_init(&e->lock, NULL);
	(void)pthread_cond_init(&e->more, NULL);
	r = cube_backend_link(s->b, id, &ear_handler, e, NULL, &e->link, err);
	if (r < 0)
		ear_free(e);
	else
		*ret = e;
	return r;
}

struct ear *ear_open(struct stage *s, const char *id)
{
	struct ear *e = NULL;
	struct cube_err err;

	if (ear_try(s, id, &e, &err) < 0)
		fail_msg("link: %s", err.text);
	assert_true(heard_before(ear_wait(e, HEARD_UP, 0), ear_wait(e, HEARD_SYNCED, 0)));
	return e;
}

/* ---- Closing, on the loop's thread, so that no handler function runs when it is done ---- */

struct closing {
	struct cube_post post;
	struct ear *ear;
	pthread_mutex_t lock;
	pthread_cond_t done;
	bool closed;
};

static void close_on_loop(struct cube_post *post)
{
	struct closing *c = cube_container_of(post, struct closing, post);

	cube_link_close(c->ear->link);
	pthread_mutex_lock(&c->lock);
	c->closed = true;
	pthread_cond_signal(&c->done);
	pthread_mutex_unlock(&c->lock);
}

void ear_close(struct ear *e)
{
	struct closing c = {.post.fn = close_on_loop, .ear = e};

	(void)pthread_mutex_init(&c.lock, NULL);
	(void)pthread_cond_init(&c.done, NULL);
	cube_loop_post(e->stage->loop, &c.post);
	pthread_mutex_lock(&c.lock);
	while (!c.closed)
		pthread_cond_wait(&c.done, &c.lock);
	pthread_mutex_unlock(&c.lock);
	(void)pthread_mutex_destroy(&c.lock);
	(void)pthread_cond_destroy(&c.done);
	ear_free(e);
}

/* ---- Waiting ---- */

static const struct heard *ear_find(const struct ear *e, const struct heard *after, enum heard_kind kind,
				    uint64_t id)
{
	for (const struct heard *h = after != NULL ? after->next : e->first; h != NULL; h = h->next) {
		if (h->kind == kind && (id == 0 || h->id == id))
			return h;
	}
	return NULL;
}

static struct timespec in_ms(unsigned ms)
{
	struct timespec at;

	(void)clock_gettime(CLOCK_REALTIME, &at);
	at.tv_sec += ms / 1000;
	at.tv_nsec += (long)(ms % 1000) * 1000000;
	if (at.tv_nsec >= 1000000000) {
		at.tv_nsec -= 1000000000;
		at.tv_sec++;
	}
	return at;
}

static const struct heard *ear_listen_after(struct ear *e, const struct heard *after, enum heard_kind kind,
					    uint64_t id, unsigned ms)
{
	struct timespec until = in_ms(ms);
	const struct heard *h;
	int r = 0;

	pthread_mutex_lock(&e->lock);
	while ((h = ear_find(e, after, kind, id)) == NULL && r == 0)
		r = pthread_cond_timedwait(&e->more, &e->lock, &until);
	pthread_mutex_unlock(&e->lock);
	return h;
}

const struct heard *ear_listen(struct ear *e, enum heard_kind kind, uint64_t id, unsigned ms)
{
	return ear_listen_after(e, NULL, kind, id, ms);
}

const struct heard *ear_wait_after(struct ear *e, const struct heard *after, enum heard_kind kind,
				   uint64_t id)
{
	const struct heard *h = ear_listen_after(e, after, kind, id, STAGE_PATIENCE_MS);

	if (h == NULL)
		fail_msg("nothing heard of %s %llu", kind_names[kind], (unsigned long long)id);
	return h;
}

const struct heard *ear_wait(struct ear *e, enum heard_kind kind, uint64_t id)
{
	return ear_wait_after(e, NULL, kind, id);
}

void ear_wait_output(struct ear *e, uint64_t job, uint64_t total)
{
	const struct heard *h = NULL;

	do
		h = ear_wait_after(e, h, HEARD_OUTPUT, job);
	while (h->total < total);
}

bool heard_before(const struct heard *a, const struct heard *b)
{
	return a->seq < b->seq;
}
