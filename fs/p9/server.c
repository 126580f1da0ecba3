/* SPDX-License-Identifier: Apache-2.0 */
/* The server: its connections, their limits, its end. */
#include <errno.h>
#include <time.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/log.h"
#include "fs/p9/priv.h"

#define SERVER_THREADS  16
#define SERVER_CHECK_MS 5000
#define SERVER_AGAIN_MS 20

const struct cube_p9_limits cube_p9_limits_default = {
	.connections = 256, .fids = 16384, .tags = 1024, .msize = CUBE_P9_MSIZE_MAX};

static void server_check(void *ctx)
{
	struct cube_p9 *s = ctx;
	uint64_t now = cube_clock_mono() / 1000000;

	cube_list_each (i, &s->conns)
		cube_p9_conn_check(cube_list_entry(i, struct p9_conn, link), now);
	cube_p9_listeners_go_on(s);
	if (!s->stopped)
		cube_timer_start(s->timer, SERVER_CHECK_MS);
}

static void server_again(void *ctx)
{
	struct cube_p9 *s = ctx;
	struct cube_list now = CUBE_LIST_INIT(now), *i;

	while ((i = cube_list_pop(&s->nagging)) != NULL)
		cube_list_push(&now, i);
	while ((i = cube_list_pop(&now)) != NULL) {
		struct p9_conn *c = cube_list_entry(i, struct p9_conn, nagging);

		cube_p9_calls_stop(c);
		cube_p9_fids_close(c);
		cube_p9_conn_unref(c);
	}
}

void cube_p9_server_again(struct p9_conn *c)
{
	struct cube_p9 *s = c->server;

	if (!cube_list_empty(&c->nagging))
		return;
	(void)pthread_mutex_lock(&c->lock);
	cube_p9_conn_ref_locked(c);
	(void)pthread_mutex_unlock(&c->lock);
	cube_list_push(&s->nagging, &c->nagging);
	cube_timer_start(s->again, SERVER_AGAIN_MS);
}

int cube_p9_new(const struct cube_p9_options *o, struct cube_p9 **ret, struct cube_err *err)
{
	struct cube_p9 *s = cube_calloc(1, sizeof(*s));

	if (s == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	s->o = *o;
	cube_list_init(&s->conns);
	cube_list_init(&s->listeners);
	cube_list_init(&s->nagging);
	(void)pthread_mutex_init(&s->lock, NULL);
	(void)pthread_cond_init(&s->idle, NULL);
	s->timer = cube_timer_new(o->loop, server_check, s);
	s->again = cube_timer_new(o->loop, server_again, s);
	s->pool = cube_pool_new(SERVER_THREADS);
	if (s->timer == NULL || s->again == NULL || s->pool == NULL) {
		cube_p9_free(s);
		return cube_fail(err, -ENOMEM, "9P: out of memory or threads");
	}
	cube_timer_start(s->timer, SERVER_CHECK_MS);
	*ret = s;
	return 0;
}

int cube_p9_serve(struct cube_p9 *s, int in, int out, const struct cube_p9_peer *peer,
		  void (*ended)(void *ctx), void *ctx, struct cube_err *err)
{
	struct p9_conn *c;

	if (s->stopped)
		return cube_fail(err, -ESHUTDOWN, "cubefs is ending");
	if (s->n_conns >= s->o.limits.connections)
		return cube_fail(err, -EMFILE, "there are %u connections already", s->n_conns);
	(void)pthread_mutex_lock(&s->lock);
	s->live++;
	(void)pthread_mutex_unlock(&s->lock);
	c = cube_p9_conn_new(s, in, out, peer);
	if (c == NULL)
		return cube_fail(err, -ENOMEM, "out of memory, or a descriptor that cannot be waited for");
	c->ended = ended;
	c->ctx = ctx;
	s->n_conns++;
	cube_list_push(&s->conns, &c->link);
	cube_log(CUBE_LOG_INFO, "9p", "%s: connected", c->name);
	return 0;
}

void cube_p9_server_gone(struct cube_p9 *s)
{
	(void)pthread_mutex_lock(&s->lock);
	if (--s->live == 0)
		(void)pthread_cond_broadcast(&s->idle);
	(void)pthread_mutex_unlock(&s->lock);
}

void cube_p9_stop(struct cube_p9 *s)
{
	s->stopped = true;
	cube_p9_listeners_stop(s);
	cube_list_each (i, &s->conns)
		cube_p9_conn_cut(cube_list_entry(i, struct p9_conn, link), NULL);
	(void)pthread_mutex_lock(&s->lock);
	s->ended = true;
	(void)pthread_cond_broadcast(&s->idle);
	(void)pthread_mutex_unlock(&s->lock);
}

bool cube_p9_idle(struct cube_p9 *s, unsigned ms)
{
	struct timespec until;
	int code = 0;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000 + 1;
	(void)pthread_mutex_lock(&s->lock);
	while ((!s->ended || s->live > 0) && code == 0)
		code = pthread_cond_timedwait(&s->idle, &s->lock, &until);
	(void)pthread_mutex_unlock(&s->lock);
	return code == 0;
}

void cube_p9_free(struct cube_p9 *s)
{
	if (s == NULL)
		return;
	cube_p9_listeners_stop(s);
	cube_pool_free(s->pool);
	if (s->timer != NULL)
		cube_timer_free(s->timer);
	if (s->again != NULL)
		cube_timer_free(s->again);
	(void)pthread_mutex_destroy(&s->lock);
	(void)pthread_cond_destroy(&s->idle);
	cube_free(s);
}
